from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from guieval.playground.phone.dice import Dice


def test_draws_are_the_same_on_every_platform_and_version() -> None:
    dice = Dice("test", 7, "x")
    assert [dice.below(1000) for _ in range(5)] == [686, 1, 290, 79, 775]
    assert dice.shuffled(range(6)) == [1, 5, 2, 0, 4, 3]


@given(st.integers(), st.lists(st.integers(), max_size=20), st.integers(0, 25))
def test_a_sample_holds_different_places(key: int, items: list[int], count: int) -> None:
    sample = Dice(key).sample(list(enumerate(items)), count)
    assert len(sample) == len(set(sample)) == min(count, len(items))
    assert set(sample) <= set(enumerate(items))


@given(st.integers(), st.integers(-5, 5), st.integers(0, 9))
def test_between_includes_both_ends_and_nothing_else(key: int, low: int, spread: int) -> None:
    dice = Dice(key)
    drawn = {dice.between(low, low + spread) for _ in range(400)}
    assert drawn == set(range(low, low + spread + 1))

"""Groups are drawn until enough pass, and never for ever."""

from __future__ import annotations

from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guieval.rewards.dynamic_sampling import collect


def test_no_more_is_drawn_than_is_needed() -> None:
    numbers = count()
    found = collect(lambda: next(numbers), lambda number: number % 3 == 0, groups=3, most_draws=100)
    assert (found.kept, found.drawn, found.complete) == ((0, 3, 6), 7, True)
    assert found.kept_share == 3 / 7 and next(numbers) == 7


def test_a_policy_that_solves_everything_does_not_hang_training() -> None:
    found = collect(lambda: 1, lambda _: False, groups=2, most_draws=5)
    assert (found.kept, found.drawn, found.complete) == ((), 5, False)


def test_data_may_end_before() -> None:
    groups = iter([1, 2])
    found = collect(lambda: next(groups, None), lambda _: True, groups=3, most_draws=9)
    assert (found.kept, found.drawn, found.complete) == ((1, 2), 2, False)
    assert collect(lambda: None, lambda _: True, groups=1, most_draws=1).kept_share is None


@given(st.lists(st.booleans(), min_size=1, max_size=30), st.integers(1, 5), st.integers(0, 20))
def test_what_is_kept_is_the_first_that_pass(passes: list[bool], groups: int, more: int) -> None:
    order = iter(enumerate(passes))
    found = collect(lambda: next(order, None), lambda each: each[1], groups=groups, most_draws=groups + more)
    seen = list(enumerate(passes))[: groups + more]
    assert list(found.kept) == [each for each in seen if each[1]][:groups]
    assert found.drawn <= groups + more and found.complete == (len(found.kept) == groups)


def test_a_cap_below_what_is_wanted_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="most_draws is 2"):
        collect(lambda: 1, lambda _: True, groups=3, most_draws=2)
    with pytest.raises(ValueError, match="groups is 0"):
        collect(lambda: 1, lambda _: True, groups=0, most_draws=2)

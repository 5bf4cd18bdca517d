"""The Pareto front, by hand."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from guieval.metrics.front import front

POINTS = [(900.0, 0.8), (500.0, 0.5), (100.0, 0.4), (400.0, 0.6), (900.0, 0.7)]


def test_the_front_holds_what_no_other_point_beats() -> None:
    assert front(POINTS) == [2, 3, 0]
    assert front([(1.0, 0.5), (1.0, 0.5)]) == [0, 1] and front([]) == []


@given(st.lists(st.tuples(st.integers(0, 5).map(float), st.integers(0, 5).map(float)), max_size=8))
def test_a_point_is_on_the_front_unless_another_is_as_good_in_both_and_better_in_one(points: list[tuple[float, float]]) -> None:
    def beaten(x: float, y: float) -> bool:
        return any(other[0] <= x and other[1] >= y and other != (x, y) for other in points)

    assert sorted(front(points)) == [place for place, point in enumerate(points) if not beaten(*point)]

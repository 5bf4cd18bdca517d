"""The Pareto front, by its definition; its drawing has one by hand."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from guieval.metrics.front import Spent, fronts
from guieval.metrics.measured import Measured


@given(st.lists(st.tuples(st.integers(0, 5).map(float), st.integers(0, 5)), max_size=8))
def test_a_point_is_on_the_front_unless_another_is_as_good_in_both_and_better_in_one(points: list[tuple[float, int]]) -> None:
    def beaten(x: float, y: float) -> bool:
        return any(other[0] <= x and other[1] >= y and other != (x, y) for other in points)

    best = [run for of_mode in fronts([Spent("", x, Measured(y / 5)) for x, y in points]) for run in of_mode]
    assert sorted((run.spent, round(5 * run.value)) for run in best) == sorted(each for each in points if not beaten(*each))

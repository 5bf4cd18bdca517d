"""Rounded metrics, and which points are on a front."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from guieval.metrics import Measured
from guieval.metrics.front import Spent, fronts
from guieval.metrics.measured import THOUSANDTHS
from guieval.metrics.rounding import alike, percentage
from guieval.reports.tables.table import Number
from tests.rows import every_row


@every_row(
    ("share", "form", "shown"),
    [
        *[(0.0, ".2f", "0.00"), (1 / 30_000, ".2f", "< 0.01"), (0.5e-4, ".2f", "0.01"), (29_999 / 30_000, ".2f", "> 99.99")],
        *[(0.99999, ".2f", "> 99.99"), (0.9999, ".2f", "99.99"), (1.0, ".2f", "100.00")],
        (sum([0.1] * 10), ".2f", "100.00"),  # 0.9999999999999999
        *[(1 / 3000, ".1f", "< 0.1"), (2999 / 3000, ".1f", "> 99.9"), (0.004, ".0f", "< 1"), (0.005, ".0f", "< 1")],
        *[(0.995, ".0f", "> 99"), (1 / 30_000, "+.2f", "< +0.01"), (-1 / 30_000, "+.2f", "> -0.01"), (0.0, "+.2f", "+0.00")],
        *[(0.99999, "+.2f", "+100.00"), (-0.125, "+.1f", "-12.5")],
    ],
)
def test_what_is_shown(share: float, form: str, shown: str) -> None:
    assert percentage(share, form) == shown


@given(st.integers(1, 10**7), st.integers(0, 10**7), st.integers(0, 3))
def test_only_none_is_0_and_only_all_is_100(whole: int, part: int, digits: int) -> None:
    part = min(part, whole)
    shown = percentage(part / whole, f".{digits}f")
    assert (shown == f"{0:.{digits}f}") == (part == 0)
    assert (shown == f"{100:.{digits}f}") == (part == whole)
    if shown[0] not in "<>":
        assert abs(float(shown) - 100 * part / whole) <= 0.5 * 10**-digits + 1e-9


def test_cells_of_tables_are_rounded_so() -> None:
    assert str(Number(Measured(1 / 30_000, 30_000), show_n=True)) == "< 0.01% of 30,000"
    assert str(Number(Measured(29_999 / 30_000), ".1f")) == "> 99.9%"
    assert str(Number(Measured(-1 / 30_000), unit=False, signed=True)) == "> -0.01"


def test_only_shares_are_shown_in_per_cent() -> None:
    distance = Measured(30.35, 7, unit=THOUSANDTHS, better="less")
    assert str(Number(distance, show_n=True)) == "30.4 \u2030 of the screen (n = 7)"
    assert str(Number(Measured(0.5, 4, missing=2, unit="s"), show_n=True)) == "0.50 s (n = 4) (2 missing)"
    assert str(Number(Measured(3.0, unit="pixels"))) == "3.00 pixels"


@every_row(
    ("values", "shown"),
    [
        *[([13.0, 68.3, 5.25], ["13.00", "68.30", "5.25"]), ([13.0, 68.3], ["13.0", "68.3"]), ([13.0, 7.0], ["13", "7"])],
        *[([1e-9, 13.0], ["1e-09", "13"]), ([], [])],
    ],
)
def test_a_column_keeps_its_trailing_zeros(values: list[float], shown: list[str]) -> None:
    assert alike(values) == shown


@given(st.lists(st.tuples(st.integers(0, 5).map(float), st.integers(0, 5)), max_size=8))
def test_a_point_is_on_the_front_unless_another_is_as_good_in_both_and_better_in_one(points: list[tuple[float, int]]) -> None:
    def beaten(x: float, y: float) -> bool:
        return any(other[0] <= x and other[1] >= y and other != (x, y) for other in points)

    best = [run for of_mode in fronts([Spent("", x, Measured(y / 5)) for x, y in points]) for run in of_mode]
    assert sorted((run.spent, round(5 * run.value)) for run in best) == sorted(each for each in points if not beaten(*each))

"""Shares in per cent: only none is 0, and only all is 100."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from guieval.metrics.rounding import alike, percentage
from guieval.reports.tables.table import per_cent
from tests.rows import every_row


@every_row(
    ("share", "form", "shown"),
    [
        (0.0, ".2f", "0.00"),
        (1 / 30_000, ".2f", "< 0.01"),
        (0.5e-4, ".2f", "0.01"),
        (29_999 / 30_000, ".2f", "> 99.99"),
        (0.99999, ".2f", "> 99.99"),
        (0.9999, ".2f", "99.99"),
        (1.0, ".2f", "100.00"),
        (sum([0.1] * 10), ".2f", "100.00"),  # 0.9999999999999999
        (1 / 3000, ".1f", "< 0.1"),
        (2999 / 3000, ".1f", "> 99.9"),
        (0.004, ".0f", "< 1"),
        (0.005, ".0f", "< 1"),
        (0.995, ".0f", "> 99"),
        (1 / 30_000, "+.2f", "< +0.01"),
        (-1 / 30_000, "+.2f", "> -0.01"),
        (0.0, "+.2f", "+0.00"),
        (0.99999, "+.2f", "+100.00"),
        (-0.125, "+.1f", "-12.5"),
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
    assert str(per_cent(1 / 30_000, 30_000)) == "< 0.01% of 30,000"
    assert str(per_cent(29_999 / 30_000, digits=1)) == "> 99.9%"
    assert str(per_cent(-1 / 30_000, unit="", signed=True)) == "> -0.01"


@every_row(
    ("values", "shown"),
    [
        ([13.0, 68.3, 5.25], ["13.00", "68.30", "5.25"]),
        ([13.0, 68.3], ["13.0", "68.3"]),
        ([13.0, 7.0], ["13", "7"]),
        ([1e-9, 13.0], ["1e-09", "13"]),
        ([], []),
    ],
)
def test_a_column_keeps_its_trailing_zeros(values: list[float], shown: list[str]) -> None:
    assert alike(values) == shown

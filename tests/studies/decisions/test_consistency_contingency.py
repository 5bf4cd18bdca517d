"""The tables of counts: the paper's own figures from its own counts, empty cells, and agreement with SciPy."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from guieval.metrics import Measured
from guieval.studies.consistency.contingency import Contingency, Detection, Stratified, summed
from tests.rows import every_row

TABLE_6 = Contingency(consistent_exact=5531, consistent_missed=1976, inconsistent_exact=456, inconsistent_missed=2037)
TABLE_21 = Detection(true_positive=273, false_negative=51, false_positive=15, true_negative=309)
COUNTS = st.integers(0, 3000)


def test_table_6_of_the_paper() -> None:
    """GUIEvalKit paper, Table 6 and section 5.4.1; the first ratio is printed there as 73.70."""
    assert TABLE_6.n == 10_000
    ratios = [TABLE_6.consistent_ratio, TABLE_6.inconsistent_ratio, TABLE_6.difference]
    assert [round(100 * (value or 0), 2) for value in ratios] == [73.68, 18.29, 55.39]
    figures = [TABLE_6.relative_risk, TABLE_6.odds_ratio, TABLE_6.chi_square]
    assert [round(value or 0, 2) for value in figures] == [4.03, 12.50, 2389.58]
    assert round(TABLE_6.phi or 0, 3) == 0.489
    assert TABLE_6.p is not None and TABLE_6.p < 1e-3 and TABLE_6.log10_p is not None and -521 < TABLE_6.log10_p < -520


BERKELEY = Stratified(  # R's UCBAdmissions, department by department: men admitted and rejected, women admitted and rejected
    tuple(
        Contingency(*cells)
        for cells in (
            *((512, 313, 89, 19), (353, 207, 17, 8), (120, 205, 202, 391)),
            *((138, 279, 131, 244), (53, 138, 94, 299), (22, 351, 24, 317)),
        )
    )
)


def test_what_holds_within_strata_is_what_r_prints_and_not_what_their_sum_shows() -> None:
    """mantelhaen.test(UCBAdmissions, correct = FALSE) and DescTools's BreslowDayTest(..., correct = TRUE)."""
    assert summed(BERKELEY.strata) == Contingency(1198, 1493, 557, 1278)
    assert summed(BERKELEY.strata).odds_ratio == pytest.approx(1.84108, abs=1e-5)
    assert BERKELEY.odds_ratio == pytest.approx(0.9046968, abs=1e-7)
    assert BERKELEY.odds_ratio_interval() == pytest.approx((0.7719074, 1.0603298), abs=1e-7)
    assert BERKELEY.chi_square == pytest.approx(1.5246, abs=1e-4)
    assert BERKELEY.equal_odds() == pytest.approx((18.8255, 5, 0.002071), abs=1e-4)
    # by hand: (20 * 30 / 100 + 9 * 10 / 40) / (30 * 20 / 100 + 21 * 1 / 40), with 20 of 50 to 20 of 50, and 9 of 30 to 1 of 10
    two = Stratified((Contingency(20, 30, 20, 30), Contingency(9, 21, 1, 9), Contingency(0, 0, 0, 0)))
    assert two.odds_ratio == pytest.approx(8.025 / 6.525)
    assert two.relative_risk == pytest.approx((20 * 50 / 100 + 9 * 10 / 40) / (20 * 50 / 100 + 1 * 30 / 40))


@given(*[st.integers(1, 3000)] * 4)
def test_equal_strata_have_what_each_of_them_has(a: int, b: int, c: int, d: int) -> None:
    one = Contingency(a, b, c, d)
    for within in (Stratified((one,)), Stratified((one, one))):
        assert within.odds_ratio == pytest.approx(one.odds_ratio) and within.relative_risk == pytest.approx(one.relative_risk)
    assert Stratified((one,)).odds_ratio_interval() == pytest.approx(one.odds_ratio_interval())
    assert Stratified((one,)).relative_risk_interval() == pytest.approx(one.relative_risk_interval())
    assert Stratified((one,)).chi_square == pytest.approx((one.chi_square or 0) * (one.n - 1) / one.n)
    assert Stratified((one, one)).equal_odds() == pytest.approx((0, 1, 1), abs=1e-6)


@pytest.mark.parametrize(
    ("rate", "estimate", "low", "high"),
    [
        (TABLE_21.accuracy, 0.898, 0.872, 0.919),  # its lower end is printed as 0.873
        (TABLE_21.true_positive_rate, 0.843, 0.799, 0.878),
        (TABLE_21.true_negative_rate, 0.954, 0.925, 0.972),
    ],
)
def test_table_22_from_table_21(rate: Measured, estimate: float, low: float, high: float) -> None:
    interval = rate.interval
    assert interval is not None and interval.method == "wilson" and interval.level == 0.95
    assert round(rate.value or 0, 3) == estimate
    assert (round(interval.low, 3), round(interval.high, 3)) == (low, high)


@given(COUNTS, COUNTS, COUNTS, COUNTS)
def test_no_table_divides_by_nothing(a: int, b: int, c: int, d: int) -> None:
    table = Contingency(a, b, c, d)
    json.dumps(table.to_json(), allow_nan=False)
    margins = (a + b) * (c + d) * (a + c) * (b + d)
    assert (table.phi is None) == (table.chi_square is None) == (table.p is None) == (margins == 0)
    if table.odds_ratio is None:
        assert a * d == 0 and b * c == 0
    elif math.isinf(table.odds_ratio):
        assert b * c == 0 < a * d


@given(*[st.integers(1, 3000)] * 4)
def test_full_tables_agree_with_scipy(a: int, b: int, c: int, d: int) -> None:
    table = Contingency(a, b, c, d)
    found = stats.chi2_contingency([[a, b], [c, d]], correction=False)
    assert table.chi_square == pytest.approx(found.statistic, abs=1e-6, rel=1e-9)
    assert table.p == pytest.approx(found.pvalue, rel=1e-5, abs=1e-300)
    assert table.phi == pytest.approx(stats.contingency.association([[a, b], [c, d]]) * (1 if a * d >= b * c else -1), abs=1e-9)
    risk = stats.contingency.relative_risk(a, a + b, c, c + d)
    assert table.relative_risk == pytest.approx(risk.relative_risk)
    ends = risk.confidence_interval(0.95)
    assert table.relative_risk_interval() == pytest.approx((ends.low, ends.high))
    odds = stats.contingency.odds_ratio([[a, b], [c, d]], kind="sample")
    ends = odds.confidence_interval(0.95)
    assert table.odds_ratio == pytest.approx(odds.statistic)
    assert table.odds_ratio_interval() == pytest.approx((ends.low, ends.high))


@every_row(
    ("cells", "risk", "odds"),
    [
        *(((5, 0, 0, 5), math.inf, math.inf), ((0, 5, 5, 0), 0.0, 0.0), ((5, 0, 5, 0), 1.0, None)),
        *(((0, 5, 0, 5), None, None), ((0, 0, 0, 0), None, None), ((5, 5, 0, 0), None, None)),
    ],
)
def test_empty_cells(cells: tuple[int, int, int, int], risk: float | None, odds: float | None) -> None:
    table = Contingency(*cells)
    assert (table.relative_risk, table.odds_ratio) == (risk, odds)
    assert table.odds_ratio_interval() is None


def test_nothing_holds_within_strata_of_nothing() -> None:
    for table in (Contingency(0, 0, 0, 0), Contingency(5, 0, 5, 0), Contingency(5, 0, 0, 5), Contingency(0, 1, 0, 0)):
        found = Stratified((table, table)).to_json()
        json.dumps(found, allow_nan=False)
        assert found["equal_odds"] is None and found["odds_ratio_interval"] is None


def test_rates_of_nothing() -> None:
    nothing = Detection(0, 0, 0, 0, undecided=3)
    assert nothing.accuracy.value is None and nothing.accuracy.interval is None
    assert nothing.to_json()["tpr"] == nothing.true_positive_rate

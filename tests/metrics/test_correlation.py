"""Correlations: closed forms, exact p-values, and what two papers print about their own tables."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from guieval.errors import UsageError
from guieval.metrics.correlation import correlate
from guieval.reports.leaderboards.published_results import get_results
from tests.rows import every_row

FEW = st.lists(st.tuples(st.integers(-50, 50), st.integers(-50, 50)), min_size=3, max_size=7)


def test_table_20_of_guievalkit_comes_from_straight_lines() -> None:
    table = get_results("guievalkit-table-20")
    printed = {each.name: each.values for each in table.statistics}
    second_order = []
    for place, column in enumerate(table.columns[1:], 1):
        _, live, static = zip(*table.pairs("androidworld", column.name), strict=True)
        found = correlate(static, live)
        assert found.n == 6
        assert found.r2 is not None and found.rank.rho is not None
        assert round(found.r2, 4) == printed["r2"][place]
        assert round(found.rank.rho, 4) == printed["spearman"][place]
        second_order.append(round(found.fits[1].r2 or 0, 4))
    assert second_order == [0.7586, 0.4869, 0.6813]  # the curves that are drawn; the printed numbers are not theirs


def test_correlations_of_ui_s1s_own_table() -> None:
    """R² = 0.934 is quoted; the figure does not name its models, and the table's eleven give less."""
    table = get_results("ui-s1-table-1")
    pg, live = (np.array(each) for each in list(zip(*table.pairs("sop-pg", "androidworld"), strict=True))[1:])
    tsr = np.array([each[1] for each in table.pairs("sop-tsr", "androidworld")])
    assert len(pg) == 11
    found = [correlate(x.tolist(), live.tolist()).r2 for x in (pg, tsr, (pg + tsr) / 2)]
    assert [round(each or 0, 3) for each in found] == [0.601, 0.492, 0.569]

    # The nearest of a choice that can be named beforehand: published 7B and 8B checkpoints, without OS-Genesis.
    names = ("OS-Atlas-7B", "Qwen2.5VL-7B", "AgentCPM-GUI-8B", "UI-TARS-7B", "UI-S1-7B")
    kept = [row for row in table.pairs("sop-pg", "androidworld") if row[0] in names]
    assert len(kept) == len(names)
    assert round(correlate([row[1] for row in kept], [row[2] for row in kept]).r2 or 0, 3) == 0.920

    # No six or more of the eleven give 0.934 by PG, or by the mean of PG and TSR, which the paper calls the score.
    for x in (pg, (pg + tsr) / 2):
        for size in range(6, 12):
            for rows in combinations(range(11), size):
                some = list(rows)
                assert round(float(np.corrcoef(x[some], live[some])[0, 1]) ** 2, 3) != 0.934


def test_ui_s1_table_2_cannot_give_its_quoted_correlation() -> None:
    """R² = 0.470 (AndroidControl high) needs models whose numbers cannot be read: four rows have both figures."""
    live = {row.title: row.values[5] for row in get_results("ui-s1-table-1").rows if row.values[5] is not None}
    both = [row.title for row in get_results("ui-s1-table-2").rows if row.title in live]
    variants = ("base, asked with the prompt of Appendix H", "with semi-online RL only")
    assert both == ["OS-Atlas-7B", *(f"Qwen2.5VL-7B ({variant})" for variant in variants), "UI-S1-7B"]


def test_a_line_by_hand_of_small_numbers_too() -> None:
    # y = 2x + (0, 0, 1, -1, 0): mean 4, SS_tot 38; slope 19/10, SS_res = 38 - 1.9 * 19 = 1.9
    found = correlate([0, 1, 2, 3, 4], [0, 2, 5, 5, 8])
    assert found.r2 == pytest.approx(1 - 1.9 / 38)
    assert found.fits[0].at([0, 4]) == pytest.approx([0.2, 7.8])
    assert found.fits[0].domain == (0, 4)
    assert correlate([1, 2, 3], [1e-9, 2e-9, 4e-9]).r2 == pytest.approx(27 / 28)  # of 1, 2, 4: SS_tot 14/3, SS_res 1/6
    assert correlate([1, 2, 3], [0.1, 0.1, 0.1]).r2 is None


def test_legendre_curves_find_their_own_polynomials_and_those_through_every_point_are_left_out() -> None:
    x = np.linspace(10, 90, 9)
    t = (x - 50) / 40
    y = 3 + 2 * t + 5 * (3 * t**2 - 1) / 2
    found = correlate(x.tolist(), y.tolist())
    assert (*found.fits[1].coefficients, found.fits[1].r2) == pytest.approx((3, 2, 5, 1))
    assert [fit.degree for fit in found.fits] == [1, 2, 3]
    assert [fit.degree for fit in correlate([1, 2, 3], [1, 3, 2]).fits] == [1]
    assert [fit.degree for fit in correlate([1, 1, 2, 2, 3], [1, 3, 2, 2, 3]).fits] == [1, 2]


def test_the_exact_p_value_counts_orders() -> None:
    # Of 3! orders only the two monotone ones have |rho| = 1; of 5! orders rho = 1 or -1 for two.
    assert correlate([1, 2, 3], [10, 20, 30]).rank.p_value == pytest.approx(2 / 6)
    found = correlate([1, 2, 3, 4, 5], [5, 4, 3, 2, 1]).rank
    assert (found.rho, found.p_value) == pytest.approx((-1, 2 / 120)) and found.method == "exact"
    # n = 4, one neighbouring pair exchanged: rho = 0.8; 8 of the 24 orders reach |rho| >= 0.8 (4 up, 4 down).
    assert correlate([1, 2, 3, 4], [1, 2, 4, 3]).rank.p_value == pytest.approx(8 / 24)


def test_many_points_use_students_t() -> None:
    from scipy.stats import spearmanr

    rng = np.random.default_rng(1)
    x = rng.normal(size=30)
    y = x + rng.normal(size=30)
    found, result = correlate(x.tolist(), y.tolist()).rank, spearmanr(x, y)
    assert (found.rho, found.p_value) == pytest.approx((result.statistic, result.pvalue)) and found.method == "t"


@given(FEW)
def test_rank_and_line_do_not_depend_on_the_order_of_models_or_the_scale(points: list[tuple[int, int]]) -> None:
    x, y = ([float(each[place]) for each in points] for place in (0, 1))
    if len(set(x)) < 2:
        return
    one = correlate(x, y)
    other = correlate([3 * each + 7 for each in reversed(x)], [each / 2 - 1 for each in reversed(y)])
    assert (one.rank.rho is None) == (other.rank.rho is None) == (one.r2 is None) == (len(set(y)) == 1)
    if one.rank.rho is not None:
        assert (one.rank.rho, one.rank.p_value) == pytest.approx((other.rank.rho, other.rank.p_value))
        assert one.r2 == pytest.approx(other.r2, abs=1e-9)
        assert 0 < (one.rank.p_value or 0) <= 1


@every_row(
    ("x", "y", "message"),
    [
        ([1.0, 2.0], [1.0, 2.0], "at least 3 points"),
        ([1.0, 2.0, 3.0], [1.0, 2.0], "3 values of x and 2 of y"),
        ([1.0, 1.0, 1.0], [1.0, 2.0, 3.0], "every x is 1"),
        ([1.0, 2.0, float("nan")], [1.0, 2.0, 3.0], "finite"),
    ],
)
def test_what_cannot_be_correlated_gives_the_reason(x: list[float], y: list[float], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        correlate(x, y)


def test_few_points_are_reported_as_few() -> None:
    assert any("only 6 points" in line for line in correlate([1, 2, 3, 4, 5, 6], [1, 2, 3, 4, 6, 5]).warnings)
    assert not correlate(list(range(12)), [*range(11), 3]).warnings

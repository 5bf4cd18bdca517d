"""Correlations: closed forms, exact p-values, and what two papers print about their own tables."""

from __future__ import annotations

import numpy as np
import pytest

from guieval.errors import UsageError
from guieval.reports.leaderboards.published_results import get_results, joined
from guieval.studies.correlation.coefficients import correlate
from guieval.studies.correlation.predictors import choices_of_models
from tests.rows import every_row


def test_table_20_of_guievalkit_comes_from_straight_lines() -> None:
    table = get_results("guievalkit-table-20")
    points = joined(["guievalkit-table-20"])
    printed = {each.name: each.values for each in table.statistics}
    second_order = []
    for place, column in enumerate(table.columns[1:], 1):
        _, live, static = zip(*points.pairs("androidworld", column.name), strict=True)
        found = correlate(static, live)
        assert found.n == 6
        assert found.r2 is not None and found.rank.rho is not None
        assert round(found.r2, 4) == printed["r2"][place]
        assert round(found.rank.rho, 4) == printed["spearman"][place]
        second_order.append(round(found.fits[1].r2 or 0, 4))
    assert second_order == [0.7586, 0.4869, 0.6813]  # the curves that are drawn; the printed numbers are not theirs


def test_correlations_of_ui_s1s_tables() -> None:
    """R² = 0.470, 0.398 and 0.934 are quoted; the figures do not name their models, and no choice of them gives all three."""
    stated = {"ac-high-sr": 0.470, "gui-odyssey-sr": 0.398, "sop-score": 0.934}
    both = joined(["ui-s1-table-1", "ui-s1-table-2"])
    points = {name: {row[0]: row[1:] for row in both.pairs(name, "androidworld")} for name in stated}
    models = [name for name in points["ac-high-sr"] if name in points["sop-score"]]
    live = [points["sop-score"][name][1] for name in models]
    found = choices_of_models({x: [own[name][0] for name in models] for x, own in points.items()}, live, [*stated.values()])
    whole, six = found[0], found[3]
    assert (whole.size, whole.choices, six.size, six.choices) == (9, 1, 6, 84)
    assert [round(each[0], 3) for each in whole.r2] == [0.504, 0.270, 0.714]
    assert [round(each[0], 3) for each in six.r2] == [0.479, 0.428, 0.937]
    variants = [f"Qwen2.5VL-7B ({each})" for each in ("base, asked with the prompt of Appendix H", "with offline RL")]
    named = ["OS-Atlas-7B", "AgentCPM-GUI-8B", "UI-TARS-7B", *variants, "Qwen2.5VL-7B (with semi-online RL only)"]
    assert [models[place] for place in six.nearest] == named
    assert all(low <= at <= high for each in found for at, low, high in each.r2)
    assert any("only 9 points" in line for line in correlate(range(9), live).warnings)
    assert not correlate(list(range(12)), [*range(11), 3]).warnings
    with pytest.raises(UsageError, match="4 to 16 models"):
        choices_of_models({"x": live[:3]}, live[:3], [0.5])


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

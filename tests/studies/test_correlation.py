"""Correlations and power: closed forms, exact p-values, simulated tests, and what two papers print about their tables."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from guieval.errors import UsageError
from guieval.metrics.power import design_effect, intraclass_correlation, needed, smallest_paired
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


def test_the_number_of_steps_by_hand_and_few_show_nothing() -> None:
    # (1.959964 sqrt(0.2) + 0.841621 sqrt(0.19))^2 / 0.01 = (0.876523 + 0.366852)^2 / 0.01
    assert needed(0.1, 0.2) == pytest.approx(154.598, abs=0.01)
    # all disagreements go one way: the second root is 0.2 sqrt(1 - 0.2) = 0.4 sqrt(0.2) with d = D = 0.2, so sqrt(0.16)
    assert needed(0.2, 0.2) == pytest.approx((1.959964 * math.sqrt(0.2) + 0.841621 * 0.4) ** 2 / 0.04, rel=1e-5)
    assert smallest_paired(0) is None and smallest_paired(3) is None and smallest_paired(20, 0.2) is None
    with pytest.raises(ValueError, match="cannot differ by"):
        needed(0.3, 0.2)


@given(st.integers(30, 100_000), st.floats(0.05, 0.6), st.floats(0.5, 0.99), st.floats(0.001, 0.2))
def test_the_smallest_difference_is_the_inverse(n: int, disagreement: float, power: float, alpha: float) -> None:
    smallest = smallest_paired(n, disagreement, power, alpha)
    if smallest is not None:
        assert needed(smallest, disagreement, power, alpha) == pytest.approx(n, rel=1e-6)


def test_a_simulated_test_finds_the_smallest_difference_four_times_out_of_five() -> None:
    n, disagreement = 2000, 0.2
    smallest = smallest_paired(n, disagreement)
    assert smallest is not None
    rng = np.random.default_rng(0)
    shares = [(disagreement + smallest) / 2, (disagreement - smallest) / 2, 1 - disagreement]
    first, second, _ = rng.multinomial(n, shares, 20_000).T
    found = np.abs(first - second) / np.sqrt(first + second) > 1.959964
    assert found.mean() == pytest.approx(0.8, abs=0.01)


def test_the_design_effect_and_the_correlation_within_episodes_by_hand() -> None:
    assert design_effect([1, 1, 1], 0.5) == 1
    assert design_effect([5, 5], 0.1) == pytest.approx(1.4)
    assert design_effect([2, 6], 0.25) == pytest.approx(1 + (40 / 8 - 1) * 0.25)
    # episodes of two: between = 2 (0.25 + 0.25 + 0) / 2 = 0.5, within = 2 * 0.25 / 3 = 1/6, (1/2 - 1/6) / (1/2 + 1/6) = 1/2
    episodes = [np.array(each, dtype=np.bool_) for each in ([1, 1], [0, 0], [1, 0])]
    assert intraclass_correlation(episodes) == pytest.approx(0.5)
    assert intraclass_correlation(episodes[:2]) == pytest.approx(1.0)
    assert intraclass_correlation([np.array([True, False])] * 3) == 0.0
    assert intraclass_correlation([np.array([True])] * 3) is None


def test_the_design_effect_is_what_episodes_do_to_a_mean() -> None:
    """Simulated episodes of 5 steps, each step its episode's own coin with probability sqrt(0.3): icc 0.3."""
    rng = np.random.default_rng(0)
    coins = rng.random((4000, 100)) < 0.6
    own = rng.random((4000, 100, 5)) < 0.6
    steps = np.where(rng.random((4000, 100, 5)) < math.sqrt(0.3), coins[:, :, None], own)
    variance = steps.mean(axis=(1, 2)).var()
    assert variance / (0.24 / 500) == pytest.approx(design_effect([5] * 100, 0.3), rel=0.06)

"""Power: the formulae by hand, against each other, and against simulated tests."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from guieval.metrics.power import design_effect, intraclass_correlation, needed, smallest_paired


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

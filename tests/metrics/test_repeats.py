"""Repeats: their mean, spread and interval, and differences between models, against numbers worked out by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import t as student

from guieval.metrics.intervals import Floats, Terms, pooled, quantile, quoted
from guieval.metrics.measured import Measured
from guieval.metrics.paired import difference
from guieval.metrics.repeats import Excess, Repeated, excess, mean_difference, over_repeats

STEPS = np.full(4, 2.0)


def terms(*right: float) -> Terms:
    return Terms(np.array(right, dtype=np.float64)[:, None], STEPS[:, None], pooled)


def measured(of: Terms, **more: object) -> Measured:
    value = float(of.numerator.sum() / of.denominator.sum())
    found = Measured(value, 8, count=8 * value, interval=quoted(*of))
    return replace(found, **more)  # type: ignore[arg-type]


def test_the_mean_of_two_repeats_has_their_spread_and_the_interval_of_the_episodes_means() -> None:
    """Six and four of eight steps are 0.75 and 0.5: mean 0.625, sd 0.25 / sqrt(2); a quarter of 3 missing is rounded up."""
    one, other = terms(2, 2, 1, 1), terms(1, 1, 1, 1)
    found = over_repeats([measured(one, missing=1), measured(other)], [[one], [other]])
    assert isinstance(found, Repeated) and found.repeats == (0.75, 0.5)
    assert (found.value, found.n, found.count) == (0.625, 8, 5) and found.spread == pytest.approx(0.25 / math.sqrt(2))
    assert found.missing == 1
    # 0.75 and 0.5 vary by 1/32 / 2; the rest is +-1/8, so draws explain 8/64 / (1 * 3) / 4 / 2 = 1/192 of that 1/64
    assert excess([shares(one, other)]).variance == pytest.approx([1 / 64 - 1 / 192])
    same = over_repeats([measured(one)] * 2, [[one]] * 2)
    assert same.spread == 0 and same.interval == quoted(*one)
    assert over_repeats([measured(one)], [[one]]) == measured(one)


def shares(*repeats: Terms) -> Floats:
    return np.array([each.numerator[:, 0] / 2 for each in repeats])[:, None]


def test_missing_steps_reach_from_all_wrong_to_all_right() -> None:
    right, wrong, all_right = terms(2, 2, 1, 1), terms(2, 2, 1, 0), terms(2, 2, 1, 2)
    whole = over_repeats([measured(wrong, missing=1), measured(right)], [[wrong, wrong, all_right], [right]])
    low = over_repeats([measured(wrong), measured(right)], [[wrong], [right]]).interval
    high = over_repeats([measured(all_right), measured(right)], [[all_right], [right]]).interval
    assert whole.interval is not None and low is not None and high is not None
    assert (whole.interval.low, whole.interval.high) == (min(low.low, high.low), max(low.high, high.high))


def test_what_all_episodes_of_a_repeat_share_widens_by_students_quantile() -> None:
    """Two repeats, all wrong and all right: the mean's variance is 1/4, with one degree of freedom, and episodes have none."""
    found = excess([np.array([[[0.0, 0.0]], [[1.0, 1.0]]])])
    assert [each.tolist() for each in found] == [[0.25], [0.25], [1.0]]
    t = float(student.ppf(0.975, 1))
    at = (np.array([0.5]), np.array([0.3]), np.array([0.6]))
    low, high = found.widened(*at)
    assert 0.5 - low == pytest.approx(math.hypot(0.2 * t / quantile(0.95), t / 2))
    assert high - 0.5 == pytest.approx(math.hypot(0.1 * t / quantile(0.95), t / 2))
    low, high = Excess(np.zeros(1), np.ones(1), np.ones(1)).widened(*at)
    assert (low.tolist(), high.tolist()) == ([0.3], [0.6])


def test_a_difference_over_repeats_is_one_question_whose_p_value_agrees_with_its_interval() -> None:
    rng = np.random.default_rng(3)
    below = np.full((30, 1), 6.0)
    one, other = (
        [Terms(rng.binomial(6, rate, (30, 1)).astype(float), below, pooled) for rate in rates]
        for rates in ((0.7, 0.8, 0.75), (0.55, 0.62, 0.6))
    )
    found = mean_difference(one, other)
    mine, theirs = (Terms(np.mean([each.numerator for each in of], axis=0), below, pooled) for of in (one, other))
    plain = difference(mine, theirs)
    assert (
        found.value is not None
        and found.value == pytest.approx(plain.value)
        and found.interval is not None
        and plain.interval is not None
    )
    assert found.interval.low < plain.interval.low and found.interval.high > plain.interval.high
    assert found.p_value is not None and plain.p_value is not None and plain.p_value < found.p_value < 0.05
    edge = mean_difference(one, other, 1 - found.p_value).interval
    assert edge is not None and edge.low == pytest.approx(0, abs=1e-6)
    back = mean_difference(other, one)
    assert back.p_value == pytest.approx(found.p_value) and back.value == pytest.approx(-found.value)
    assert mean_difference(one[:1], other[:1]) == difference(one[0], other[0])
    assert mean_difference(one[:1] * 2, other[:1] * 2) == difference(one[0], other[0])

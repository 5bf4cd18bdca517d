"""Comparing runs: closed forms, published vectors, and the promised rate of false alarms."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from guieval.metrics.intervals import Floats, Terms, mean_of_cells, pooled
from guieval.metrics.measured import Measured
from guieval.metrics.paired import difference, holm, holm_pairs, mcnemar, ranks, shared_steps, smallest_difference, turned
from guieval.metrics.repeats import differences
from tests.metrics.made_columns import PROTOCOL, made_columns
from tests.rows import every_row


def share(right: Floats, steps: Floats) -> Terms:
    return Terms(right, steps, pooled)


def flags(both: int, only_first: int, only_second: int, neither: int) -> tuple[np.ndarray, np.ndarray]:
    counts = (both, only_first, only_second, neither)
    return np.repeat([True, True, False, False], counts), np.repeat([True, False, True, False], counts)


@pytest.mark.ci
def test_false_alarms_are_as_rare_as_promised_and_mcnemar_gives_more_of_them() -> None:
    """Two runs equally good on average, each with its own strong and weak episodes of 12 steps."""
    rng = np.random.default_rng(11)
    sets, episodes, steps = 500, 60, 12
    alarms = by_steps = 0
    for _ in range(sets):
        skill = np.clip(rng.beta(3, 2, (episodes, 1)) + rng.normal(0, 0.25, (episodes, 2)), 0, 1)
        right = rng.random((2, episodes, steps)) < skill.T[:, :, None]
        sums = right.sum(axis=2).astype(np.float64)
        lengths = np.full(episodes, float(steps))
        found = difference(share(sums[0], lengths), share(sums[1], lengths))
        assert found.p_value is not None
        alarms += found.p_value < 0.05
        by_steps += mcnemar(right[0].ravel(), right[1].ravel()).p_value < 0.05
    assert 0.03 <= alarms / sets <= 0.07
    assert by_steps / sets > 0.10


def test_a_run_against_itself_and_too_few_episodes() -> None:
    right, steps = np.array([1.0, 2.0, 0.0]), np.array([2.0, 3.0, 1.0])
    found = difference(share(right, steps), share(right, steps))
    assert found.value == 0 and found.p_value == 1 and found.standard_error == 0
    assert found.interval is not None and found.interval.low == -found.interval.high < -0.5  # three episodes show little
    for count in (1, 0):
        found = difference(share(right[:count], steps[:count]), share(right[:count], steps[:count]))
        assert (found.value, found.interval, found.p_value, found.standard_error) == (0 if count else None, None, None, None)


def test_the_standard_error_is_the_mean_differences_and_as_many_one_way_as_the_other_are_none() -> None:
    rng = np.random.default_rng(2)
    one, other = rng.random(80), rng.random(80)
    found = difference(share(one, np.ones(80)), share(other, np.ones(80)))
    assert found.standard_error == pytest.approx((one - other).std() / math.sqrt(80), rel=0.04)
    one, other = np.tile([1.0, 0.0, 1.0], 4), np.tile([0.0, 1.0, 1.0], 4)
    found = difference(share(one, np.ones(12)), share(other, np.ones(12)))
    assert found.interval is not None
    assert (found.value, found.p_value, found.interval.low) == (0.0, 1.0, -found.interval.high)


@given(st.integers(0, 10_000), st.sampled_from([0.8, 0.9, 0.95, 0.99]), st.floats(-0.2, 0.2))
@settings(max_examples=60, deadline=None)
def test_p_is_below_one_minus_level_exactly_where_the_interval_leaves_zero_out(seed: int, level: float, shift: float) -> None:
    rng = np.random.default_rng(seed)
    one, other = rng.lognormal(size=30) + shift, rng.lognormal(size=30)
    found = difference(share(one, np.ones(30)), share(other, np.ones(30)), level=level)
    assert found.interval is not None and found.p_value is not None
    assert (found.p_value < 1 - level) == (found.interval.low > 0 or found.interval.high < 0)


@given(st.integers(0, 10_000), st.sampled_from(["steps", "single", "cells", "own denominators"]))
@settings(max_examples=40, deadline=None)
def test_swapping_the_runs_turns_everything_exactly_round(seed: int, kind: str) -> None:
    """To the last digit, since a p-value near 0.05 has a star in one order and none in the other otherwise."""
    rng = np.random.default_rng(seed)
    lengths = np.ones(20) if kind == "single" else rng.integers(1, 6, 20).astype(float)
    cells = np.eye(2)[np.arange(20) % 2] if kind == "cells" else np.ones((20, 1))
    combine = mean_of_cells if kind == "cells" else pooled
    runs = []
    for _ in range(2):
        below = rng.integers(1, 6, 20) if kind == "own denominators" else lengths
        runs.append(Terms(rng.binomial(below.astype(int), 0.6)[:, None] * cells, below[:, None] * cells, combine))
    one, other = runs
    forth, back = difference(one, other), difference(other, one)
    assert forth.interval is not None and back.interval is not None and forth.value is not None and forth.p_value is not None
    assert (back.value, back.p_value, back.standard_error) == (-forth.value, forth.p_value, forth.standard_error)
    assert (back.interval.low, back.interval.high) == (-forth.interval.high, -forth.interval.low)


def test_p_lies_between_the_exact_and_the_mid_p_of_the_sign_test() -> None:
    """Single steps: 9 against 3 of those that differ."""
    one, other = (np.repeat(each, (9, 3, 28)).astype(float) for each in ([1, 0, 1], [0, 1, 1]))
    exact = 2 * sum(math.comb(12, k) for k in range(4)) / 2**12
    found = difference(share(one, np.ones(40)), share(other, np.ones(40))).p_value
    assert found is not None and exact - math.comb(12, 3) / 2**12 < found < exact


def test_mcnemar_exact_and_without_discordant_pairs_or_with_equally_many() -> None:
    # 1 and 7 discordant pairs (airway data of Bentur et al. in Fagerland et al. 2013): 2 (C(8,0) + C(8,1)) / 2^8.
    found = mcnemar(*flags(1, 1, 7, 12))
    assert (found.both, found.only_first, found.only_second, found.neither) == (1, 1, 7, 12)
    assert found.method == "exact" and found.p_value == pytest.approx(18 / 256)
    assert mcnemar(*flags(3, 0, 0, 2)).p_value == 1
    assert mcnemar(*flags(0, 4, 4, 0)).p_value == 1
    assert mcnemar(*flags(0, 20, 20, 0)).p_value == pytest.approx(1)


@pytest.mark.parametrize(("fewer", "more", "method"), [(8, 16, "exact"), (8, 17, "mid-p"), (30, 60, "mid-p")])
def test_mcnemar_against_whole_numbers(fewer: int, more: int, method: str) -> None:
    n = fewer + more
    below = sum(math.comb(n, k) for k in range(fewer))
    weight = 1 if method == "exact" else 0.5
    found = mcnemar(*flags(5, more, fewer, 5))
    assert found.method == method
    assert found.p_value == pytest.approx(2 * (below + weight * math.comb(n, fewer)) / 2**n)


@pytest.mark.ci
def test_the_smallest_difference_is_found_with_the_promised_power() -> None:
    """By comparing runs that differ by just as much as the first comparison says."""
    rng = np.random.default_rng(5)

    def compared(apart: float) -> Measured:
        skill = rng.normal(0.6, 0.15, (60, 1)) + rng.normal(0, 0.1, (60, 2)) + np.array([apart / 2, -apart / 2])
        right = rng.binomial(6, np.clip(skill, 0, 1)).astype(float)
        return difference(share(right[:, 0], np.full(60, 6.0)), share(right[:, 1], np.full(60, 6.0)))

    stated = [smallest for _ in range(100) if (smallest := smallest_difference(compared(0.0))) is not None]
    typical = float(np.median(stated))
    found = [each.p_value is not None and each.p_value < 0.05 for each in (compared(typical) for _ in range(500))]
    assert 0.75 <= np.mean(found) <= 0.87


def test_no_smallest_difference_is_known_where_nothing_spreads() -> None:
    steps = np.ones(30)
    assert smallest_difference(difference(share(steps, steps), share(steps, steps))) is None
    assert smallest_difference(difference(share(steps[:1], steps[:1]), share(steps[:1], steps[:1]))) is None


def test_holm_by_hand() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []


def test_pairs_of_several_runs() -> None:
    rng = np.random.default_rng(4)
    steps = np.full(150, 6.0)
    base = rng.binomial(6, 0.5, 150).astype(np.float64)
    figures = [share(each, steps) for each in (base, np.minimum(base + 1, 6), base[::-1].copy())]
    table = differences([[each] for each in figures])
    assert table[1][0].value == pytest.approx((np.minimum(base + 1, 6) - base).sum() / 900)
    adjusted = holm_pairs(table)
    assert np.isnan(np.diag(adjusted)).all() and np.array_equal(adjusted, adjusted.T, equal_nan=True)
    assert adjusted[0, 1] < 1e-6 and adjusted[1, 2] < 1e-3
    assert adjusted[0, 2] == pytest.approx(table[0][2].p_value)
    assert table[0][1] == turned(table[1][0]) == difference(figures[0], figures[1])
    assert ranks([0.5, 0.66, 0.5], adjusted) == [2, 1, 2]
    assert differences([]) == []


def test_ranks_are_by_the_best_of_the_group() -> None:
    # Figures 0.9, 0.8, 0.7, 0.6: the second is like the first; the third is like the second but not like the first.
    p = np.ones((4, 4))
    for i, j in ((0, 2), (0, 3)):
        p[i, j] = p[j, i] = 0.001
    assert ranks([0.9, 0.8, 0.7, 0.6], p) == [1, 1, 3, 3]
    order = [3, 1, 0, 2]  # the same runs
    assert ranks([0.6, 0.8, 0.9, 0.7], p[np.ix_(order, order)]) == [3, 1, 1, 3]
    assert ranks([0.9, 0.8], np.full((2, 2), np.nan)) == [1, 1]
    assert ranks([], np.empty((0, 0))) == []


def test_runs_with_one_figure_are_ranked_alike_whichever_comes_first() -> None:
    """a and b have the same figure; c and d, alike too, differ from a, and only d from b as well."""
    names, figures = "abcd", {"a": 0.9, "b": 0.9, "c": 0.8, "d": 0.8}
    apart = {frozenset(pair) for pair in ("ac", "ad", "bd")}
    for order in itertools.permutations(names):
        p = np.array([[0.001 if frozenset((one, other)) in apart else 1.0 for other in order] for one in order])
        found = dict(zip(order, ranks([figures[name] for name in order], p), strict=True))
        assert found == {"a": 1, "b": 1, "c": 1, "d": 4}


def test_shared_steps_are_cut_and_ordered_alike() -> None:
    first = made_columns("aabc", exact=[True, False, True, True], groups={"app": ["x", "y", "z", "w"]})
    second = made_columns("dbaaa", exact=[False, False, True, True, False], samples=[1, 2, 3, 4, 5])
    one, other = shared_steps(first, second)
    assert [str(one.key_of(row)) for row in range(len(one))] == ["made-up/a#0", "made-up/a#1", "made-up/b#0"]
    assert [other.key_of(row) for row in range(len(other))] == [one.key_of(row) for row in range(len(one))]
    assert one.episodes == other.episodes and np.array_equal(one.episode, other.episode)
    assert one.groups["app"] == ["x", "y", "z"]
    assert other.samples.tolist() == [3, 4, 2]
    assert one.judged[PROTOCOL].exact_match.tolist() == [True, False, True]
    assert other.judged[PROTOCOL].exact_match.tolist() == [True, True, False]
    assert other.per_episode(other.judged[PROTOCOL].exact_match).tolist() == [2, 0]


def test_p_counts_the_episodes_that_differ_and_no_skew_doubts_a_large_difference() -> None:
    # Five of twelve episodes, all for one run: the probability of that is 2 / 2^5, however large the differences.
    steps = np.full(12, 4.0)
    shorter = steps - (np.arange(12) < 5)
    found = difference(share(shorter, shorter), share(np.where(np.arange(12) < 5, 0.0, 4.0), steps))
    assert found.p_value == pytest.approx(2 / 2**5)
    # One episode in 75 shows no difference, all others the same.
    steps = np.ones(150)
    found = difference(share(np.where(np.arange(150) < 2, 0.0, 1.0), steps), share(np.zeros(150), steps))
    assert found.p_value is not None and found.p_value < 1e-12


def test_a_difference_without_bounds_has_the_same_interval_in_every_unit() -> None:
    """Seconds or milliseconds: a difference is not held to be at most 1."""
    steps, slower = np.ones(30), 2.0 + np.arange(30) / 10
    seconds = difference(share(slower, steps), share(np.zeros(30), steps), share=False)
    scaled = difference(share(1000 * slower, steps), share(np.zeros(30), steps), share=False)
    for found in (seconds, scaled):
        assert found.value is not None and found.interval is not None
        assert found.interval.low < found.value < found.interval.high
    assert seconds.interval is not None and scaled.interval is not None
    assert scaled.interval.high == pytest.approx(1000 * seconds.interval.high)
    assert scaled.p_value == pytest.approx(seconds.p_value, abs=1e-9)


@pytest.mark.ci
@every_row(("rate", "apart"), [(0.85, 0.178), (0.6, 0.2), (0.3, 0.0)])
def test_the_interval_of_ten_episodes_holds_the_true_difference(rate: float, apart: float) -> None:
    """Episodes of some six steps, hard ones hard for both."""
    rng = np.random.default_rng(round(100 * rate))

    def chances(episodes: int) -> Floats:
        """Of both runs; the first is better."""
        return np.asarray(np.clip(rng.normal(0, 0.2, episodes) + np.array([[rate + apart / 2], [rate - apart / 2]]), 0, 1))

    truth = float(-np.diff(chances(200_000).mean(axis=1))[0])
    held = 0
    for _ in range(400):
        steps = 1 + rng.poisson(4.5, 10)
        first, second = rng.binomial(steps, chances(10)).astype(float)
        found = difference(share(first, steps.astype(float)), share(second, steps.astype(float))).interval
        held += found is not None and found.low <= truth <= found.high
    assert held / 400 >= 0.94


@pytest.mark.ci
def test_few_episodes_that_differ_raise_no_more_alarms_than_promised() -> None:
    """About three of a hundred single steps differ, either way alike; uncorrected resampling gives 20 % alarms here."""
    rng = np.random.default_rng(1)
    ones = np.ones(100)
    alarms = 0
    for _ in range(400):
        draw, base = rng.random(100), rng.random(100) < 0.6
        one = np.where(draw < 0.015, 1.0, np.where(draw < 0.03, 0.0, base))
        other = np.where(draw < 0.015, 0.0, np.where(draw < 0.03, 1.0, base))
        p_value = difference(share(one, ones), share(other, ones)).p_value
        alarms += p_value is not None and p_value < 0.05
    assert alarms / 400 <= 0.05


@every_row(("differing", "p_value"), [(0, 1.0), (1, 1.0), (2, 0.5), (4, 0.125), (6, 0.03125)])
def test_p_is_no_smaller_than_the_chance_that_all_lean_one_way(differing: int, p_value: float) -> None:
    wins = np.where(np.arange(6) < differing, 1.0, 0.0)
    found = difference(share(wins, np.ones(6)), share(np.zeros(6), np.ones(6)))
    assert found.value == pytest.approx(differing / 6)
    assert found.p_value == pytest.approx(p_value)


def test_runs_that_reach_unlike_cells_can_be_compared() -> None:
    rng = np.random.default_rng(0)
    cells = np.eye(2)[np.arange(40) % 2]
    one = Terms(cells * (rng.random((40, 1)) < 0.9), cells, mean_of_cells)
    other = share((rng.random(40) < 0.2).astype(np.float64), np.ones(40))
    found = difference(one, other)
    assert found.interval is not None and found.interval.low > 0
    assert found.p_value is not None and found.p_value < 0.001

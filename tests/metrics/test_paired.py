"""Comparing runs: closed forms, published vectors, and the promised rate of false alarms."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from guieval.errors import UsageError
from guieval.metrics.intervals import Floats, Terms, mean_of_cells, pooled
from guieval.metrics.paired import difference, differences, holm, holm_pairs, mcnemar, ranks, shared_steps, smallest_difference
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
    for number in range(sets):
        skill = np.clip(rng.beta(3, 2, (episodes, 1)) + rng.normal(0, 0.25, (episodes, 2)), 0, 1)
        right = rng.random((2, episodes, steps)) < skill.T[:, :, None]
        sums = right.sum(axis=2).astype(np.float64)
        lengths = np.full(episodes, float(steps))
        found = difference(share(sums[0], lengths), share(sums[1], lengths), seed=number, resamples=500)
        assert found.p_value is not None
        alarms += found.p_value < 0.05
        by_steps += mcnemar(right[0].ravel(), right[1].ravel()).p_value < 0.05
    assert 0.03 <= alarms / sets <= 0.07
    assert by_steps / sets > 0.10


def test_a_run_against_itself_and_too_few_episodes() -> None:
    right, steps = np.array([1.0, 2.0, 0.0]), np.array([2.0, 3.0, 1.0])
    found = difference(share(right, steps), share(right, steps))
    assert found.value == 0 and found.p_value == 1 and found.standard_error == 0
    assert found.interval is not None and (found.interval.low, found.interval.high) == (0, 0)
    for count in (1, 0):
        found = difference(share(right[:count], steps[:count]), share(right[:count], steps[:count]))
        assert (found.value, found.interval, found.p_value, found.standard_error) == (0 if count else None, None, None, None)


def test_standard_error_is_that_of_the_mean_of_differences() -> None:
    rng = np.random.default_rng(2)
    one, other = rng.random(80), rng.random(80)
    found = difference(share(one, np.ones(80)), share(other, np.ones(80)))
    assert found.standard_error == pytest.approx((one - other).std() / math.sqrt(80), rel=0.04)


@given(st.integers(0, 10_000), st.sampled_from([0.8, 0.9, 0.95, 0.99]), st.floats(-0.2, 0.2))
@settings(max_examples=60, deadline=None)
def test_p_is_below_one_minus_level_exactly_where_the_interval_leaves_zero_out(seed: int, level: float, shift: float) -> None:
    rng = np.random.default_rng(seed)
    one, other = rng.lognormal(size=30) + shift, rng.lognormal(size=30)
    found = difference(share(one, np.ones(30)), share(other, np.ones(30)), resamples=2000, level=level)
    assert found.interval is not None and found.p_value is not None
    if abs(found.p_value - (1 - level)) > 0.005:  # nearer than that the two round the resampled sets differently
        assert (found.p_value < 1 - level) == (found.interval.low > 0 or found.interval.high < 0)


def test_swapping_the_runs_turns_the_difference_round() -> None:
    rng = np.random.default_rng(3)
    one, other = share(rng.random(40), np.ones(40)), share(rng.random(40), np.ones(40))
    forth, back = difference(one, other), difference(other, one)
    assert forth.value is not None and back.value == pytest.approx(-forth.value)
    assert forth.p_value == pytest.approx(back.p_value, abs=0.02)


def test_a_p_value_is_never_finer_than_the_resampling() -> None:
    steps = np.full(50, 3.0)
    right = np.tile([3.0, 2.0], 25)
    found = difference(share(right, steps), share(np.tile([0.0, 1.0], 25), steps), resamples=999)
    assert found.p_value == pytest.approx(2 / 1000)


def test_mcnemar_exact() -> None:
    """1 and 7 discordant pairs (airway data of Bentur et al. in Fagerland et al. 2013): 2 (C(8,0) + C(8,1)) / 2^8."""
    found = mcnemar(*flags(1, 1, 7, 12))
    assert (found.both, found.only_first, found.only_second, found.neither) == (1, 1, 7, 12)
    assert found.method == "exact" and found.p_value == pytest.approx(18 / 256)


def test_mcnemar_without_discordant_pairs_or_with_equally_many() -> None:
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


def test_smallest_difference_is_found_with_the_promised_power() -> None:
    assert smallest_difference(0.01) == pytest.approx(0.0280159, abs=1e-6)  # 1.959964 + 0.841621
    assert smallest_difference(0.02, power=0.5, alpha=0.1) == pytest.approx(0.02 * 1.644854, abs=1e-6)


def test_holm_by_hand() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []


def test_pairs_of_several_runs() -> None:
    rng = np.random.default_rng(4)
    steps = np.full(150, 6.0)
    base = rng.binomial(6, 0.5, 150).astype(np.float64)
    figures = [share(each, steps) for each in (base, np.minimum(base + 1, 6), base[::-1].copy())]
    table = differences(figures, resamples=2000)
    assert table[1][0].value == pytest.approx((np.minimum(base + 1, 6) - base).sum() / 900)
    adjusted = holm_pairs(table)
    # Two pairs reach the least p-value there is, of which Holm triples the first and lets the second have no smaller one.
    assert np.isnan(np.diag(adjusted)).all() and np.array_equal(adjusted, adjusted.T, equal_nan=True)
    assert adjusted[0, 1] == pytest.approx(3 * 2 / 2001) and adjusted[1, 2] == pytest.approx(3 * 2 / 2001)
    assert adjusted[0, 2] == pytest.approx(table[0][2].p_value)
    assert ranks([0.5, 0.66, 0.5], adjusted) == [2, 1, 2]
    assert differences([]) == []


def test_ranks_are_by_the_best_of_the_group() -> None:
    # Figures 0.9, 0.8, 0.7, 0.6: the second is like the first; the third is like the second but not like the first.
    p = np.ones((4, 4))
    for i, j in ((0, 2), (0, 3)):
        p[i, j] = p[j, i] = 0.001
    assert ranks([0.9, 0.8, 0.7, 0.6], p) == [1, 1, 3, 3]
    turned = [3, 1, 0, 2]  # the same runs in another order
    assert ranks([0.6, 0.8, 0.9, 0.7], p[np.ix_(turned, turned)]) == [3, 1, 1, 3]
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
    first = made_columns(["a", "a", "b", "c"], exact=[True, False, True, True], groups={"app": ["x", "y", "z", "w"]})
    second = made_columns(["d", "b", "a", "a", "a"], exact=[False, False, True, True, False], samples=[1, 2, 3, 4, 5])
    one, other = shared_steps(first, second)
    assert [str(one.key_of(row)) for row in range(len(one))] == ["made-up/a#0", "made-up/a#1", "made-up/b#0"]
    assert [other.key_of(row) for row in range(len(other))] == [one.key_of(row) for row in range(len(one))]
    assert one.episodes == other.episodes and np.array_equal(one.episode, other.episode)
    assert one.groups["app"] == ["x", "y", "z"]
    assert other.samples.tolist() == [3, 4, 2]
    assert one.judged[PROTOCOL].exact_match.tolist() == [True, False, True]
    assert other.judged[PROTOCOL].exact_match.tolist() == [True, True, False]
    assert other.per_episode(other.judged[PROTOCOL].exact_match).tolist() == [2, 0]


def test_runs_without_a_shared_step_cannot_be_compared() -> None:
    with pytest.raises(UsageError, match="'one' and 'other' have no step in common"):
        shared_steps(made_columns(["a"], exact=[True], title="one"), made_columns(["b"], exact=[True], title="other"))


def test_a_difference_far_from_zero_is_not_doubted_for_being_skewed() -> None:
    """One episode in 75 shows no difference, all others the same: the resampled sets never come near 0."""
    steps = np.ones(150)
    found = difference(share(np.where(np.arange(150) < 2, 0.0, 1.0), steps), share(np.zeros(150), steps), resamples=2000)
    assert found.p_value == pytest.approx(2 / 2001)


@pytest.mark.ci
def test_few_episodes_that_differ_raise_no_more_alarms_than_promised() -> None:
    """About three of a hundred single steps differ, either way alike; uncorrected resampling gives 20 % alarms here."""
    rng = np.random.default_rng(1)
    ones = np.ones(100)
    alarms = 0
    for number in range(400):
        draw, base = rng.random(100), rng.random(100) < 0.6
        one = np.where(draw < 0.015, 1.0, np.where(draw < 0.03, 0.0, base))
        other = np.where(draw < 0.015, 0.0, np.where(draw < 0.03, 1.0, base))
        p_value = difference(share(one, ones), share(other, ones), seed=number, resamples=500).p_value
        alarms += p_value is not None and p_value < 0.05
    assert alarms / 400 <= 0.05


@every_row(("differing", "p_value"), [(0, 1.0), (1, None), (2, 0.5), (4, 0.125)])
def test_p_is_no_smaller_than_the_chance_that_all_lean_one_way(differing: int, p_value: float | None) -> None:
    wins = np.where(np.arange(6) < differing, 1.0, 0.0)
    found = difference(share(wins, np.ones(6)), share(np.zeros(6), np.ones(6)))
    assert found.value == pytest.approx(differing / 6)
    assert found.p_value == (None if p_value is None else pytest.approx(p_value, abs=0.02))


def test_runs_that_reach_unlike_cells_can_be_compared() -> None:
    rng = np.random.default_rng(0)
    cells = np.eye(2)[np.arange(40) % 2]
    one = Terms(cells * (rng.random((40, 1)) < 0.9), cells, mean_of_cells)
    other = share((rng.random(40) < 0.2).astype(np.float64), np.ones(40))
    found = difference(one, other)
    assert found.interval is not None and found.interval.low > 0
    assert found.p_value is not None and found.p_value < 0.001

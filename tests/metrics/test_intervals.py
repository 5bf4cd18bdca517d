"""Intervals against closed forms, random weights drawn one by one, and their own promise (coverage)."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import beta, binom

from guieval.metrics import intervals
from tests.rows import every_row


def clustered(rng: np.random.Generator, episodes: int) -> tuple[intervals.Floats, intervals.Floats]:
    """Right steps and steps of episodes that differ in difficulty (beta 3, 2: 60 % on average); 6 steps on average."""
    lengths = 1 + rng.poisson(5, episodes)
    return rng.binomial(lengths, rng.beta(3, 2, episodes)).astype(np.float64), lengths.astype(np.float64)


def ends(interval: intervals.Interval | None) -> tuple[float, float]:
    assert interval is not None
    return interval.low, interval.high


@pytest.mark.ci
@every_row(("episodes", "rate"), [(10, 0.3), (20, 0.3), (12, 0.9)])
def test_few_episodes_of_which_hardly_one_succeeds_have_no_certain_score(episodes: int, rate: float) -> None:
    """Where none of the sample succeeds, nothing says that none ever does: a bootstrap covered 78 to 83 % here."""
    rng = np.random.default_rng([episodes, round(10 * rate)])
    lengths = 1 + rng.poisson(4.5, (600, episodes))
    before = np.minimum(rng.geometric(1 - rate, lengths.shape) - 1, lengths)
    scores = (before / lengths + (before == lengths)) / 2
    long = 1 + rng.poisson(4.5, 400_000)
    reached = np.minimum(rng.geometric(1 - rate, long.shape) - 1, long)
    truth = float((reached / long + (reached == long)).mean() / 2)
    held = [low <= truth <= high for low, high in (ends(intervals.quoted(each, np.ones(episodes))) for each in scores)]
    assert np.mean(held) >= 0.93


def test_ten_episodes_without_success_may_succeed_in_a_quarter() -> None:
    progress, success = np.array([0.5, 0.2] + [0.0] * 8), np.zeros(10)
    highs = [ends(intervals.quoted(each, np.ones(10)))[1] for each in (progress, success, (progress + success) / 2)]
    assert highs == pytest.approx([0.339, 0.274, 0.302], abs=0.002)


@every_row("n", [10, 11, 25])
def test_single_steps_are_covered_whatever_their_rate(n: int) -> None:
    """Exactly, by the binomial distribution, and beside the intervals' ends, where coverage is lowest; Wilson's is at 84 %."""
    limits = np.array([ends(intervals.quoted((np.arange(n) < right).astype(float), np.ones(n))) for right in range(n + 1)])
    rates = np.concatenate([limits.ravel() - 1e-9, limits.ravel() + 1e-9])
    rates = rates[(rates > 0) & (rates < 1)]
    inside = (limits[:, 0] <= rates[:, None]) & (rates[:, None] <= limits[:, 1])
    assert (binom.pmf(np.arange(n + 1), n, rates[:, None]) * inside).sum(axis=1).min() >= 0.93


@pytest.mark.ci
@every_row(("episodes", "rate", "icc"), [(10, 0.05, 0.4), (20, 0.05, 0.15), (50, 0.97, 0.4), (10, 0.5, 0.0)])
def test_steps_are_covered_near_the_edges_too(episodes: int, rate: float, icc: float) -> None:
    """Where few episodes hold the mistakes; the bootstrap covered down to 0.89."""
    rng = np.random.default_rng([episodes, round(100 * rate)])
    both = 1 / icc - 1 if icc else 0.0
    held = 0
    for _ in range(400):
        steps = 1 + rng.poisson(4.5, episodes)
        chance = rng.beta(rate * both, (1 - rate) * both, episodes) if icc else rate
        low, high = ends(intervals.quoted(rng.binomial(steps, chance).astype(float), steps.astype(float)))
        held += low <= rate <= high
    assert held / 400 >= 0.94


@every_row(("right", "n", "near"), [(0, 10, 0.003), (3, 10, 0.001), (9, 10, 0.001), (2, 50, 0.001), (500, 1000, 1e-6)])
def test_single_steps_have_quantiles_of_the_beta_distribution(right: int, n: int, near: float) -> None:
    """Clopper and Pearson's, with a part of an unseen step where theirs have a whole one."""
    low, high = ends(intervals.quoted((np.arange(n) < right).astype(float), np.ones(n)))
    assert high == pytest.approx(beta.ppf(0.975, right + intervals.UNSEEN, n - right), abs=near)
    assert low == (0 if right == 0 else pytest.approx(beta.ppf(0.025, right, n - right + intervals.UNSEEN), abs=near))


def test_the_ends_are_quantiles_under_random_weights() -> None:
    rng = np.random.default_rng(3)
    right, steps = clustered(rng, 15)
    weights = rng.standard_exponential((200_000, 15))
    unseen = rng.standard_gamma(intervals.UNSEEN, 200_000) * steps.mean()
    low, high = ends(intervals.quoted(right, steps))
    of_lows, of_highs = ((weights @ right + extra) / (weights @ steps + unseen) for extra in (0.0, unseen))
    assert (of_lows < low).mean() == pytest.approx(0.025, abs=0.0015)
    assert (of_highs > high).mean() == pytest.approx(0.025, abs=0.0015)


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(1, 4)), min_size=1, max_size=12))
@settings(max_examples=30, deadline=None)
def test_the_interval_holds_the_figure_and_does_not_depend_on_the_episodes_order(episodes: list[tuple[int, int]]) -> None:
    def interval(of: list[tuple[int, int]]) -> intervals.Interval | None:
        return intervals.quoted(np.array([float(min(right, n)) for right, n in of]), np.array([float(n) for _, n in of]))

    first = interval(episodes)
    low, high = ends(first)
    figure = sum(min(right, n) for right, n in episodes) / sum(n for _, n in episodes)
    assert 0 <= low <= figure <= high <= 1 and (low, high) != (figure, figure)
    assert first == interval(sorted(episodes)) == interval(sorted(episodes, reverse=True))


def test_a_higher_level_is_wider_and_a_very_high_one_stays_within_what_a_share_can_be() -> None:
    right, steps = clustered(np.random.default_rng(0), 40)
    levels = (0.8, 0.99, 1 - 1e-12)
    (narrow, high), (wide, higher), (widest, highest) = (ends(intervals.quoted(right, steps, level=level)) for level in levels)
    assert 0 <= widest < wide < narrow < high < higher < highest <= 1


def test_right_and_wrong_turned_round_turn_the_interval_and_episodes_without_a_denominator_change_nothing() -> None:
    right, steps = clustered(np.random.default_rng(5), 12)
    low, high = ends(intervals.quoted(right, steps))
    assert ends(intervals.quoted(steps - right, steps)) == pytest.approx((1 - high, 1 - low), abs=1e-8)
    right, steps = clustered(np.random.default_rng(0), 30)
    assert intervals.quoted(np.append(right, [0.0, 0.0]), np.append(steps, [0.0, 0.0])) == intervals.quoted(right, steps)


def test_many_episodes_have_the_textbook_interval() -> None:
    right, steps = clustered(np.random.default_rng(1), 20_000)
    share = right.sum() / steps.sum()
    error = math.sqrt(((right - share * steps) ** 2).sum()) / steps.sum()
    assert ends(intervals.quoted(right, steps)) == pytest.approx((share - 1.96 * error, share + 1.96 * error), abs=1e-4)


def test_one_episode_says_almost_nothing_and_none_has_no_interval() -> None:
    low, high = ends(intervals.quoted(np.array([2.0]), np.array([5.0])))
    assert low < 0.02 and high > 0.97
    assert intervals.quoted(np.empty(0), np.empty(0)) is None and intervals.quoted(np.zeros(3), np.zeros(3)) is None
    assert intervals.wilson(0, 0) is None
    assert intervals.quoted_mean(np.empty(0), np.empty(0)) is None and intervals.quoted_mean(np.ones(1), np.ones(1)) is None
    emptied = np.array([[1.0, 0.0], [1.0, 0.0]])
    assert intervals.quoted(emptied, emptied, intervals.mean_of_cells) is None  # a cell without steps


@every_row("share", [0.0, 1.0])
def test_a_figure_of_zero_or_one_is_not_taken_for_certain(share: float) -> None:
    steps = np.array([3.0, 1.0, 7.0, 2.0])
    low, high = ends(intervals.quoted(share * steps, steps))
    assert (low, high) == pytest.approx((0.0, 0.594) if share == 0 else (0.406, 1.0), abs=0.002)


@pytest.mark.ci
def test_a_mean_over_cells_is_covered_however_unlike_their_sizes() -> None:
    rates, sizes = np.array([0.95, 0.6, 0.9]), np.array([0.6, 0.3, 0.1])
    rng = np.random.default_rng(2)
    held = []
    for _ in range(400):
        cell = rng.choice(3, 40, p=sizes)
        inside = np.eye(3)[cell]
        found = intervals.quoted(inside * (rng.random(40) < rates[cell])[:, None], inside, intervals.mean_of_cells)
        if found is not None:
            held.append(found.low <= rates.mean() <= found.high)
    assert len(held) > 380 and np.mean(held) >= 0.94


def test_a_mean_over_cells_does_not_spread_because_cells_differ() -> None:
    """Two cells of 400 steps, one nearly always right and one nearly never: far narrower than what is all at 50 %."""
    cells = np.eye(2)[np.arange(800) % 2]
    often = np.arange(800) % 40 >= 2
    right = cells * np.where(np.arange(800) % 2 == 0, often, ~often)[:, None]
    low, high = ends(intervals.quoted(right, cells, intervals.mean_of_cells))
    pooled_low, pooled_high = ends(intervals.quoted(right, cells))
    assert high - low < 0.5 * (pooled_high - pooled_low)


def test_a_cell_of_one_step_that_is_right_is_not_taken_for_certain() -> None:
    right, steps = np.zeros((11, 2)), np.zeros((11, 2))
    steps[:10, 0], right[:10, 0] = 1.0, [0, 1] * 5
    steps[10, 1] = right[10, 1] = 1.0
    low, high = ends(intervals.quoted(right, steps, intervals.mean_of_cells))
    assert low < 0.45 and 0.85 < high <= 1.0  # the figure is (0.5 + 1) / 2


def test_contributions_of_the_episodes_add_up_and_the_mean_of_cells_is_no_pooled_share() -> None:
    right, steps = np.array([[1.0, 0.0], [0.0, 3.0], [2.0, 1.0]]), np.array([[4.0, 0.0], [0.0, 3.0], [2.0, 2.0]])
    for combine in (intervals.mean_of_cells, intervals.pooled):
        values, weights = intervals.contributions(intervals.Terms(right, steps, combine))
        figure = float(combine(right.sum(axis=0)[None], steps.sum(axis=0)[None])[0])
        assert values.sum() / weights.sum() == pytest.approx(figure) and weights.mean() == pytest.approx(1)
    right, steps = np.array([[1.0, 0.0], [0.0, 3.0]]), np.array([[4.0, 0.0], [0.0, 3.0]])
    whole = right.sum(axis=0)[None], steps.sum(axis=0)[None]
    assert intervals.mean_of_cells(*whole).tolist() == [(1 / 4 + 1) / 2]
    assert intervals.pooled(*whole).tolist() == [4 / 7]
    assert np.isnan(intervals.mean_of_cells(right[:1], steps[:1])).all()


def test_a_mean_without_bounds() -> None:
    values = np.random.default_rng(0).normal(5, 2, 200)
    low, high = ends(intervals.quoted_mean(values, np.ones(200)))
    error = values.std() / math.sqrt(200)
    assert (low, high) == pytest.approx((values.mean() - 1.96 * error, values.mean() + 1.96 * error), abs=0.5 * error)
    assert ends(intervals.quoted_mean(np.full(8, 3.0), np.ones(8))) == (3.0, 3.0)


def test_an_interval_that_spans_others() -> None:
    one, other = intervals.wilson(2, 10), intervals.wilson(7, 12)
    assert one is not None and other is not None
    assert ends(intervals.spanning([one, other])) == (one.low, other.high)
    assert intervals.spanning([one, None]) is None and intervals.spanning([]) is None


@given(st.integers(1, 500), st.data())
def test_wilson_ends_solve_the_score_equation(n: int, data: st.DataObject) -> None:
    count = data.draw(st.integers(0, n))
    interval = intervals.wilson(count, n)
    assert interval is not None
    for end in (interval.low, interval.high):
        assert (count / n - end) ** 2 == pytest.approx(1.959963985**2 * end * (1 - end) / n, abs=1e-9)

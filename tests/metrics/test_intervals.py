"""Intervals against closed forms, another implementation, published numbers, and their own promise (coverage)."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from guieval.metrics.intervals import Floats, Terms, bootstrap, mean_of_cells, pooled, quoted, resample, wilson
from tests.rows import every_row


def clustered(rng: np.random.Generator, episodes: int) -> tuple[Floats, Floats]:
    """Right steps and steps of episodes that differ in difficulty (beta 3, 2: 60 % on average); 6 steps on average."""
    lengths = 1 + rng.poisson(5, episodes)
    return rng.binomial(lengths, rng.beta(3, 2, episodes)).astype(np.float64), lengths.astype(np.float64)


@pytest.mark.ci
def test_resampling_episodes_holds_its_level_where_resampling_steps_does_not() -> None:
    rng = np.random.default_rng(7)
    sets = 600
    held = by_steps = 0
    for number in range(sets):
        right, steps = clustered(rng, 60)
        interval = bootstrap(right, steps, seed=number, resamples=500)
        assert interval is not None and interval.method == "bca"
        held += interval.low <= 0.6 <= interval.high
        # A bootstrap of single steps is a binomial one, whatever the episodes.
        n = int(steps.sum())
        low, high = np.quantile(rng.binomial(n, right.sum() / n, 500) / n, [0.025, 0.975])
        by_steps += low <= 0.6 <= high
    assert 0.93 <= held / sets <= 0.97
    assert by_steps / sets < 0.90


@pytest.mark.ci
def test_near_zero_both_ends_are_missed_about_equally_often() -> None:
    """What BCa is for: percentile intervals of small shares are missed on one side mostly (about 6.5 % against 1.4 % here)."""
    rng = np.random.default_rng(3)
    below = above = 0
    for number in range(600):
        lengths = 1 + rng.poisson(3, 60)
        right = rng.binomial(lengths, rng.beta(0.5, 9.5, 60)).astype(np.float64)
        interval = bootstrap(right, lengths.astype(np.float64), seed=number, resamples=500)
        assert interval is not None
        below += interval.low > 0.05
        above += interval.high < 0.05
    assert below / 600 <= 0.045 and above / 600 <= 0.045


def test_bca_agrees_with_scipy() -> None:
    """SciPy's is without the correction for few episodes, so it is asked for the level whose normal quantile that gives."""
    from scipy import stats

    values = np.random.default_rng(0).lognormal(size=40)
    level = 2 * stats.norm.cdf(stats.t.ppf(0.975, 39) * math.sqrt(40 / 39)) - 1
    ours = bootstrap(values, np.ones(40), seed=1, resamples=20_000)
    other = stats.bootstrap(
        (values,), np.mean, n_resamples=20_000, method="BCa", confidence_level=level, rng=np.random.default_rng(2)
    )
    assert ours is not None
    width = ours.high - ours.low
    assert ours.low == pytest.approx(other.confidence_interval.low, abs=0.03 * width)
    assert ours.high == pytest.approx(other.confidence_interval.high, abs=0.03 * width)


def test_resampled_sets_of_three_episodes_occur_as_often_as_in_an_enumeration() -> None:
    right, steps = np.array([0.0, 1.0, 3.0]), np.array([1.0, 3.0, 4.0])
    expected = Counter(
        round(float(right[list(chosen)].sum() / steps[list(chosen)].sum()), 9)
        for chosen in itertools.product(range(3), repeat=3)
    )
    (drawn,) = resample([Terms(right, steps, pooled)], seed=5, resamples=27_000)
    found = Counter(np.round(drawn.drawn, 9).tolist())
    assert set(found) == set(expected)
    for figure, times in expected.items():
        assert found[figure] == pytest.approx(1000 * times, abs=4 * math.sqrt(1000 * times))
    assert drawn.value == 4 / 8
    assert sorted(drawn.left_out.tolist()) == [1 / 4, 4 / 7, 3 / 5]


def test_standard_error_of_a_mean_is_the_textbook_one() -> None:
    values = np.random.default_rng(1).normal(size=50)
    (drawn,) = resample([Terms(values, np.ones(50), pooled)], resamples=20_000)
    assert drawn.standard_error == pytest.approx(values.std() / math.sqrt(50), rel=0.03)


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(1, 4)), min_size=2, max_size=12))
@settings(max_examples=40, deadline=None)
def test_the_interval_depends_on_the_episodes_and_not_on_their_order(episodes: list[tuple[int, int]]) -> None:
    def interval(of: list[tuple[int, int]]) -> object:
        right = np.array([float(min(right, n)) for right, n in of])
        return bootstrap(right, np.array([float(n) for _, n in of]), seed=3, resamples=200)

    first = interval(episodes)
    assert first == interval(sorted(episodes))
    assert first == interval(sorted(episodes, reverse=True))


def test_a_seed_fixes_the_interval_and_a_higher_level_is_wider() -> None:
    right, steps = clustered(np.random.default_rng(0), 40)
    assert bootstrap(right, steps, seed=4) == bootstrap(right, steps, seed=4) != bootstrap(right, steps, seed=5)
    narrow, wide = bootstrap(right, steps, level=0.8), bootstrap(right, steps, level=0.99)
    assert narrow is not None and wide is not None
    assert wide.low < narrow.low < narrow.high < wide.high


def test_a_very_high_level_stays_among_the_resampled_sets() -> None:
    """One right step among 200 episodes makes the acceleration as large as it gets, 1/6."""
    right = np.zeros(200)
    right[0] = 1.0
    interval = bootstrap(right, np.full(200, 2.0), level=0.999999)
    assert interval is not None and 0.0 <= interval.low <= interval.high <= 0.05


def test_episodes_without_a_denominator_change_nothing() -> None:
    right, steps = clustered(np.random.default_rng(0), 30)
    with_others = bootstrap(np.append(right, [0.0, 0.0]), np.append(steps, [0.0, 0.0]), seed=1)
    assert with_others == bootstrap(right, steps, seed=1)


def test_what_has_no_interval_or_none_of_any_width() -> None:
    assert bootstrap(np.empty(0), np.empty(0)) is None and quoted(np.empty(0), np.empty(0)) is None and wilson(0, 0) is None
    assert bootstrap(np.zeros(3), np.zeros(3)) is None
    assert bootstrap(np.array([2.0]), np.array([5.0])) is None  # one episode gives no statement on others
    interval = bootstrap(np.full(8, 1.0), np.full(8, 2.0))
    assert interval is not None and (interval.low, interval.high) == (0.5, 0.5)


@every_row("share", [0.0, 1.0])
def test_a_figure_of_zero_or_one_is_not_taken_for_certain(share: float) -> None:
    steps = np.array([3.0, 1.0, 7.0, 2.0])
    assert bootstrap(share * steps, steps) == wilson(int(4 * share), 4)


def test_a_cell_that_few_resampled_sets_hold() -> None:
    # Cell 2 is one episode of ten: 1 - (9/10)^10 = 65 % of sets hold it, which is enough; ten such cells are not.
    right, steps = np.zeros((10, 2)), np.zeros((10, 2))
    steps[:, 0], right[:, 0] = 1.0, [0, 1] * 5
    steps[0, 1], right[0, 1] = 1.0, 1.0
    (drawn,) = resample([Terms(right, steps, mean_of_cells)])
    assert drawn.value == 0.75
    assert np.isnan(drawn.drawn).mean() == pytest.approx(0.9**10, abs=0.05)
    interval = bootstrap(right, steps, mean_of_cells)
    assert interval is not None and 0.5 <= interval.low < 0.75 < interval.high <= 1.0
    assert bootstrap(np.diag([0.0, 1.0] * 5), np.eye(10), mean_of_cells) is None


def test_mean_of_cells_is_no_pooled_share() -> None:
    right, steps = np.array([[1.0, 0.0], [0.0, 3.0]]), np.array([[4.0, 0.0], [0.0, 3.0]])
    whole = right.sum(axis=0)[None], steps.sum(axis=0)[None]
    assert mean_of_cells(*whole).tolist() == [(1 / 4 + 1) / 2]
    assert pooled(*whole).tolist() == [4 / 7]
    assert np.isnan(mean_of_cells(right[:1], steps[:1])).all()


def test_figures_of_unlike_episodes_are_not_drawn_together() -> None:
    with pytest.raises(ValueError, match=r"\[2, 3\] episodes"):
        resample([Terms(np.ones(2), np.ones(2), pooled), Terms(np.ones(3), np.ones(3), pooled)])


@given(st.integers(1, 500), st.data())
def test_wilson_ends_solve_the_score_equation(n: int, data: st.DataObject) -> None:
    count = data.draw(st.integers(0, n))
    interval = wilson(count, n)
    assert interval is not None
    for end in (interval.low, interval.high):
        assert (count / n - end) ** 2 == pytest.approx(1.959963985**2 * end * (1 - end) / n, abs=1e-9)


def test_what_is_quoted_depends_on_what_an_episode_is() -> None:
    single = np.array([1.0, 0.0, 1.0, 1.0, 0.0])
    assert quoted(single, np.ones(5)) == wilson(3, 5)
    assert quoted(np.append(single, 0.0), np.append(np.ones(5), 0.0)) == wilson(3, 5)
    right, steps = clustered(np.random.default_rng(0), 20)
    assert quoted(right, steps, seed=9) == bootstrap(right, steps, seed=9)
    cells = np.stack([single, 1 - single], axis=1)
    assert quoted(cells, np.ones((5, 2)), mean_of_cells) == bootstrap(cells, np.ones((5, 2)), mean_of_cells)
    shares = np.array([0.5, 0.25, 1.0, 0.0, 0.0])
    assert quoted(shares, np.ones(5)) == bootstrap(shares, np.ones(5))

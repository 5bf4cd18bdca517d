"""Two or more runs on the same steps: is one better, by how much, and which difference could have been detected?

The answer to quote is :func:`difference`: it gives whole episodes random weights (:mod:`guieval.metrics.intervals`), the same
ones for both runs, so it keeps both what makes an episode's steps alike and what makes an episode hard for both runs. McNemar's
test (:func:`mcnemar`) takes every step for independent; it is exact for grounding and for whether episodes succeed, and finds
differences too easily among the steps of longer episodes. It is shown as well because readers expect it. How often each is
wrong, and finds what there is, is in docs/statistics.md.

Sources: Q. McNemar, Psychometrika 12 (1947); M. Fagerland, S. Lydersen, P. Laake, "The McNemar test for binary matched-pairs
data: mid-p and asymptotic are better than exact conditional", BMC Med. Res. Methodol. 13:91 (2013); S. Holm, "A simple
sequentially rejective multiple test procedure", Scand. J. Statist. 6 (1979).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from guieval.errors import UsageError
from guieval.metrics.columns import RunColumns
from guieval.metrics.intervals import LEVEL, Floats, Interval, Kind, Terms, Weighed, contributions, sums, total
from guieval.metrics.measured import Measured

_DUST = 1e-9
"""Episodes in which the runs differ by less differ by rounding only."""
FEW_DISCORDANT = 25
"""Below so many discordant pairs McNemar's exact test is used, from there on its mid-p form."""


@dataclass(frozen=True)
class McNemar:
    """How two runs' right and wrong pairs fall, and the two-sided p-value of "both are right equally often"."""

    both: int
    only_first: int
    only_second: int
    neither: int
    p_value: float
    method: Literal["exact", "mid-p"]


def shared_steps(first: RunColumns, second: RunColumns) -> tuple[RunColumns, RunColumns]:
    """Both runs cut down to the steps that both planned, in the first one's order, so that row i is the same step in both.

    An episode that is shared in part is that part from then on, also for metrics of episodes: compare lengths before
    and after. Raises :class:`UsageError` if no step is shared.
    """
    places = {second.key_of(row): row for row in range(len(second))}
    rows = [(row, places[key]) for row in range(len(first)) if (key := first.key_of(row)) in places]
    if not rows:
        raise UsageError(f"{first.title!r} and {second.title!r} have no step in common, so there is nothing to compare")
    own, others = (np.array(each, dtype=np.intp) for each in zip(*rows, strict=True))
    return first.only(own), second.only(others)


def difference(first: Terms, second: Terms, level: float = LEVEL, *, share: bool = True) -> Measured:
    """The first run's metric minus the second's: row i of both is the same episode.

    The unseen episode is as large a difference as the episodes have that differ at all (their root mean square), so that two
    sides of episodes that differ alike are tested as the sign test does, between its exact and its mid-p form; it is all of
    an episode if none differ. Away from 0, the surer the difference, the nearer it is to all of an episode: how much better
    a run is at best may be in episodes that nobody saw. Of metrics that are no ``share`` it is at most twice the largest
    difference that was seen. The other way round, everything is exactly the other way round.

    The p-value is two-sided, below 1 - level if the interval excludes 0, but that few episodes cannot make it as small as
    that: at least 2 / 2^d, the probability that all d episodes in which the runs differ favour one side. The standard error is
    by how the episodes' differences spread. All three are ``None`` with a single episode, the value if one of the metrics is
    not defined.

    Raises ``ValueError`` for different numbers of episodes.
    """
    if len(first.numerator) != len(second.numerator):
        raise ValueError(f"metrics of {len(first.numerator)} and of {len(second.numerator)} episodes cannot be compared")
    value = total(first) - total(second)
    if not math.isfinite(value):
        return Measured(None)
    values, weights, differ = _between(first, second)
    if len(values) < 2:
        return Measured(value)
    forth, back = Weighed.of(values, weights), Weighed.of(-values, weights)
    if swapped := _order(back) < _order(forth):  # one of the two is computed, whichever run comes first
        forth, back = back, forth
    (low,), (high,), (p_value,) = (each.tolist() for each in tested(forth, level, np.array([float(differ)]), share=share))
    if _order(forth) == _order(back):  # as many episodes one way as the other
        low, high, p_value = -(high - low) / 2, (high - low) / 2, 1.0
    interval = Interval(low, high, level, "episodes")
    error = float(forth.standard_error[0])
    found = Measured(-value if swapped else value, interval=interval, p_value=p_value, standard_error=error)
    return turned(found) if swapped else found


class Tested(NamedTuple):
    """Of b differences: the ends of their intervals, and two-sided p-values; all (b,)."""

    low: Floats
    high: Floats
    p_value: Floats


def tested(of: Weighed, level: float = LEVEL, deciding: Floats | None = None, *, share: bool = True) -> Tested:
    """Intervals and tests of b differences, each the mean of its episodes', as :func:`difference` describes them.

    ``deciding``: (b,) in how many episodes the runs differ; those whose value is not 0 by default.
    """
    unlike = sums(of.counts * (np.abs(of.values) > _DUST))
    squares = sums(of.counts * of.values**2)
    size = np.where(unlike > 0, np.sqrt(squares / np.maximum(unlike, 1)), 1.0)
    from scipy.special import ndtr

    nothing, one = np.zeros(len(size)), np.ones(len(size))
    tails = ndtr(of.deviate(nothing, Kind(-size, one))), ndtr(-of.deviate(nothing, Kind(size, one)))
    tail = np.minimum(1.0, 2.0 * np.minimum(*tails))
    most = one if share else np.where(unlike > 0, 2.0 * np.abs(of.values).max(axis=1), 1.0)
    far = most - tail * (most - size)
    better = of.mean > 0
    low, high = of.ends(Kind(-np.where(better, size, far), one), Kind(np.where(better, far, size), one), level)
    all_one_way = np.minimum(1.0, 2.0 ** (1.0 - (unlike if deciding is None else deciding)))
    return Tested(low, high, np.maximum(tail, all_one_way))


def turned(between: Measured) -> Measured:
    """The second metric minus the first, from the first minus the second."""
    own = between.interval
    interval = None if own is None else replace(own, low=-own.high, high=-own.low)
    return replace(between, value=None if between.value is None else -between.value, interval=interval)


def mcnemar(first: NDArray[np.bool_], second: NDArray[np.bool_]) -> McNemar:
    """McNemar's test on (n,) right or wrong of two runs; only pairs in which they differ count.

    Exact (binomial) below :data:`FEW_DISCORDANT` such pairs. From there on mid-p, whose errors of the first kind stay near
    the level, while the exact test's stay below it and the continuity-corrected chi-square's still further below (Fagerland
    et al. 2013). p is 1 if there is no such pair.
    """
    only_first = int(np.count_nonzero(first & ~second))
    only_second = int(np.count_nonzero(second & ~first))
    both = int(np.count_nonzero(first & second))
    discordant, fewer = only_first + only_second, min(only_first, only_second)
    from scipy.stats import binom

    p_value = 2 * float(binom.cdf(fewer, discordant, 0.5))
    if few := discordant < FEW_DISCORDANT:
        p_value = min(1.0, p_value)
    else:
        p_value -= float(binom.pmf(fewer, discordant, 0.5))
    method: Literal["exact", "mid-p"] = "exact" if few else "mid-p"
    return McNemar(both, only_first, only_second, len(first) - both - discordant, p_value, method)


def smallest_difference(between: Measured, power: float = 0.8) -> float | None:
    """The smallest true difference that a test as sharp as this one finds with probability ``power``.

    How far the interval's end that decides is from the difference, and the normal quantile of ``power`` standard errors.
    ``None`` if there is no interval, or if all episodes differ alike, so that nothing is known about their spread.
    """
    from scipy.special import ndtri

    if between.interval is None or between.value is None or not (error := between.standard_error) or error <= _DUST:
        return None
    decisive = between.value - between.interval.low if between.value >= 0 else between.interval.high - between.value
    return decisive + float(ndtri(power)) * error


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's adjusted p-values: those below alpha may all be believed, with a chance of any error of at most alpha."""
    order = np.argsort(p_values, kind="stable")
    factors = np.arange(len(order), 0, -1)
    adjusted = np.empty(len(order))
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(factors * np.asarray(p_values, dtype=np.float64)[order]))
    return [float(each) for each in adjusted]


def holm_pairs(table: Sequence[Sequence[Measured]]) -> Floats:
    """(k, k) Holm's adjusted p-values of the k (k - 1) / 2 pairs of
    :func:`guieval.metrics.repeats.differences`; NaN if there is none."""
    k = len(table)
    pairs = {(i, j): p for i in range(k) for j in range(i + 1, k) if (p := table[i][j].p_value) is not None}
    adjusted = np.full((k, k), np.nan)
    for (i, j), p_value in zip(pairs, holm(list(pairs.values())), strict=True):
        adjusted[i, j] = adjusted[j, i] = p_value
    return adjusted


def ranks(metrics: Sequence[float], p_values: Floats, alpha: float = 0.05) -> list[int]:
    """The rank of each of k runs; runs that do not differ significantly from the best of their group share one.

    Going down by metric, a run opens a new group where its (k, k) ``p_values`` (e.g. :func:`holm_pairs`) against the best run
    of the present group (against each of them, if several have that very metric) is below ``alpha``; NaN, nothing known,
    opens none. A group's rank is 1 + the number of runs in better groups, so three runs with the best two alike are
    ranked 1, 1, 3; the order in which the runs are given changes no rank. Sharing a rank does not show that two runs are
    equal, and runs of neighbouring groups need not differ: one may not even differ from a better group's best run, if
    another that does has opened the group above it.
    """
    order = sorted(range(len(metrics)), key=lambda run: -metrics[run])
    rank_of = [1] * len(metrics)
    best: list[int] = []
    rank, placed = 1, 0
    for _, alike in groupby(order, key=lambda run: metrics[run]):
        same = list(alike)
        apart = [run for run in same if all(p_values[each, run] < alpha for each in best)]
        for run in same:
            rank_of[run] = rank
        placed += len(same)
        if apart:
            best, rank = apart, placed - len(apart) + 1
            for run in apart:
                rank_of[run] = rank
    return rank_of


def _between(first: Terms, second: Terms) -> tuple[Floats, Floats, int]:
    """Values and weights of the episodes of which the metrics' difference is the mean, and in how many the runs differ.

    Episodes in neither metric are dropped.
    """
    runs = [[np.asarray(part, dtype=np.float64).reshape(len(part), -1) for part in run[:2]] for run in (first, second)]
    some = np.any([(below != 0).any(axis=1) for _, below in runs], axis=0)
    (above, below), (others_above, others_below) = ((above[some], below[some]) for above, below in runs)
    if first.combine is second.combine and np.array_equal(below, others_below):
        differ = int(np.any(above != others_above, axis=1).sum())
        return *contributions(Terms(above - others_above, below, first.combine)), differ
    # Metrics with denominators of their own: each episode's influence on either.
    influences = [
        total(Terms(*parts, run.combine)) * (1.0 - weights) + values
        for parts, run in (((above, below), first), ((others_above, others_below), second))
        for values, weights in [contributions(Terms(*parts, run.combine))]
    ]
    one, other = np.hstack([above, below]), np.hstack([others_above, others_below])
    differ = int(np.any(one != other, axis=1).sum()) if one.shape == other.shape else len(one)
    return influences[0] - influences[1], np.ones(len(one)), differ


def _order(of: Weighed) -> tuple[list[float], list[float], list[float]]:
    return of.values.tolist(), of.weights.tolist(), of.counts.tolist()

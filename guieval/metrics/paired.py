"""Two or more runs on the same steps: is one better, by how much, and which difference could have been detected?

The answer to quote is the paired bootstrap's (:func:`difference`): it resamples whole episodes, the same ones for both runs,
so it keeps both what makes an episode's steps alike and what makes an episode hard for both runs. McNemar's test
(:func:`mcnemar`) takes every step for independent; it is exact for grounding and for whether episodes succeed, and finds
differences too easily among the steps of longer episodes. It is shown as well because readers expect it.

Sources: Q. McNemar, Psychometrika 12 (1947); M. Fagerland, S. Lydersen, P. Laake, "The McNemar test for binary matched-pairs
data: mid-p and asymptotic are better than exact conditional", BMC Med. Res. Methodol. 13:91 (2013); S. Holm, "A simple
sequentially rejective multiple test procedure", Scand. J. Statist. 6 (1979).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from guieval.errors import UsageError
from guieval.metrics.columns import RunColumns
from guieval.metrics.intervals import LEVEL, Floats, Resampled, Terms, resample
from guieval.metrics.measured import Measured

RESAMPLES = 10_000
"""More than for an interval: the smallest p-value is 2 / (resamples + 1), and Holm multiplies it by the number of pairs."""
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

    An episode that is shared in part is that part from then on, also for figures of episodes: compare lengths before
    and after. Raises :class:`UsageError` where no step is shared.
    """
    places = {second.key_of(row): row for row in range(len(second))}
    rows = [(row, places[key]) for row in range(len(first)) if (key := first.key_of(row)) in places]
    if not rows:
        raise UsageError(f"{first.title!r} and {second.title!r} have no step in common, so there is nothing to compare")
    own, others = (np.array(each, dtype=np.intp) for each in zip(*rows, strict=True))
    return first.only(own), second.only(others)


def difference(first: Terms, second: Terms, seed: int = 0, resamples: int = RESAMPLES, level: float = LEVEL) -> Measured:
    """The first run's figure minus the second's, by the paired bootstrap: row i of both is the same episode.

    The p-value is two-sided, below 1 - level where the interval leaves out 0, but that few episodes or resampled sets cannot
    make it as small as that (:meth:`guieval.metrics.intervals.Resampled.p_value`). Interval, p-value and standard error are
    ``None`` where there is no interval, the value where one of the figures is not defined.

    Raises ``ValueError`` for different numbers of episodes.
    """
    one, other = resample([first, second], seed, resamples)
    return _difference(one, other, level)


def differences(figures: Sequence[Terms], seed: int = 0, resamples: int = RESAMPLES) -> list[list[Measured]]:
    """(k, k) :func:`difference` of every two of k runs on the same episodes, all on the same resampled sets."""
    drawn = resample(figures, seed, resamples) if figures else []
    return [[_difference(one, other, LEVEL) for other in drawn] for one in drawn]


def mcnemar(first: NDArray[np.bool_], second: NDArray[np.bool_]) -> McNemar:
    """McNemar's test on (n,) right or wrong of two runs; only pairs in which they differ count.

    Exact (binomial) below :data:`FEW_DISCORDANT` such pairs. From there on mid-p, whose errors of the first kind stay near
    the level, where the exact test's stay below it and the continuity-corrected chi-square's still further below (Fagerland
    et al. 2013). p is 1 where there is no such pair.
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


def smallest_difference(standard_error: float, power: float = 0.8, alpha: float = 0.05) -> float:
    """The smallest true difference that a two-sided test at ``alpha`` finds with probability ``power``.

    ``standard_error`` is that of the difference, e.g. :func:`difference`; the difference is taken as normal.
    """
    from scipy.special import ndtri

    return float(ndtri(1 - alpha / 2) + ndtri(power)) * standard_error


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's adjusted p-values: those below alpha may all be believed, with a chance of any error of at most alpha."""
    order = np.argsort(p_values, kind="stable")
    factors = np.arange(len(order), 0, -1)
    adjusted = np.empty(len(order))
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(factors * np.asarray(p_values, dtype=np.float64)[order]))
    return [float(each) for each in adjusted]


def holm_pairs(table: Sequence[Sequence[Measured]]) -> Floats:
    """(k, k) Holm's adjusted p-values of the k (k - 1) / 2 pairs of :func:`differences`; NaN where there is none."""
    k = len(table)
    pairs = {(i, j): p for i in range(k) for j in range(i + 1, k) if (p := table[i][j].p_value) is not None}
    adjusted = np.full((k, k), np.nan)
    for (i, j), p_value in zip(pairs, holm(list(pairs.values())), strict=True):
        adjusted[i, j] = adjusted[j, i] = p_value
    return adjusted


def ranks(figures: Sequence[float], p_values: Floats, alpha: float = 0.05) -> list[int]:
    """The rank of each of k runs; runs that do not differ significantly from the best of their group share one.

    Going down by figure, a run opens a new group where its (k, k) ``p_values`` (e.g. :func:`holm_pairs`) against the best run
    of the present group (against each of them, where several have that very figure) is below ``alpha``; NaN, nothing known,
    opens none. A group's rank is 1 + the number of runs in better groups, so three runs with the best two alike are
    ranked 1, 1, 3; the order in which the runs are given changes no rank. Sharing a rank does not show that two runs are
    equal, and runs of neighbouring groups need not differ: one may not even differ from a better group's best run, where
    another that does has opened the group above it.
    """
    order = sorted(range(len(figures)), key=lambda run: -figures[run])
    rank_of = [1] * len(figures)
    best: list[int] = []
    rank, placed = 1, 0
    for _, alike in groupby(order, key=lambda run: figures[run]):
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


def _difference(one: Resampled, other: Resampled, level: float) -> Measured:
    between = one.minus(other)
    interval = between.interval(level)
    known = math.isfinite(between.value)
    return Measured(
        value=between.value if known else None,
        interval=interval,
        p_value=between.p_value(),
        standard_error=between.standard_error if interval is not None else None,
    )

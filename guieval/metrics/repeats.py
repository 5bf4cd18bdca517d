"""Repeats, which are runs of one model on the same steps that differ in their seeds alone, as one number.

The value is the mean over the repeats, the spread their standard deviation. The interval is over episodes *and* repeats: each
episode counts with its mean over repeats, so that the luck of single draws is in how the episodes spread
(:mod:`guieval.metrics.intervals`). Repeats may differ by more than such luck, e.g. because a seed draws a history for all
episodes: what their variance exceeds that of independent draws by, which the interaction of episodes and repeats estimates,
widens the interval, with the quantile of Student's t for Satterthwaite's degrees of freedom. Without an excess it is the
interval over episodes.

Source: F. Satterthwaite, "An approximate distribution of estimates of variance components", Biometrics Bulletin 2 (1946).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from statistics import stdev
from typing import NamedTuple
from typing import Protocol as Shape

import numpy as np

from guieval.metrics.columns import Judged, RunColumns
from guieval.metrics.intervals import (
    LEVEL,
    Floats,
    Interval,
    Terms,
    contributions,
    quantile,
    quoted,
    quoted_mean,
    spanning,
    total,
)
from guieval.metrics.measured import SHARE, Measured
from guieval.metrics.paired import difference, turned

_HALVINGS = 24
"""They find a p-value between 1e-15 and 1 to one millionth of its size."""


@dataclass(frozen=True)
class Repeated(Measured):
    """A mean over ``repeats``, the values of single repeats.

    ``n``, ``count``, ``missing``, ``upper`` and ``dropped_as_wrong`` are those of one repeat, on average; ``missing`` is
    rounded up.
    """

    repeats: tuple[float, ...] = ()

    @property
    def spread(self) -> float | None:
        """The standard deviation of single repeats (divided by their number less 1); ``None`` of a single one."""
        return stdev(self.repeats) if len(self.repeats) > 1 else None


class Measurable(Shape):
    """A metric, by what an average over repeats needs of it."""

    def measure(self, columns: RunColumns, judged: Judged, *, intervals: bool = True) -> Measured: ...
    def terms(self, columns: RunColumns, judged: Judged) -> Terms: ...
    def possible(self, columns: RunColumns, judged: Judged) -> list[Terms]: ...


class Excess(NamedTuple):
    """By what a mean over repeats varies beyond independent draws in its episodes, all (b,) of b experiments.

    ``variance`` of the mean, 0 if repeats differ by no more than such draws; ``whole``: with that of the episodes' means over
    repeats, and its degrees of freedom.
    """

    variance: Floats
    whole: Floats
    freedom: Floats

    def widened(self, centre: Floats, low: Floats, high: Floats, level: float = LEVEL) -> tuple[Floats, Floats]:
        """(b,) the ends of intervals over episodes, so that they are over repeats too."""
        from scipy.special import stdtrit

        z, some = quantile(level), self.variance > 0
        t = np.where(some, stdtrit(np.maximum(1.0, self.freedom), 0.5 + 0.5 * level), z)
        beyond = t * np.sqrt(self.variance)
        below, above = (np.hypot(away * t / z, beyond) for away in (centre - low, high - centre))
        return np.where(some, centre - below, low), np.where(some, centre + above, high)


def excess(shares: Sequence[Floats]) -> Excess:
    """Of the difference of the means over repeats of b experiments: each of ``shares`` is one run's (r, b, e) episodes.

    What an episode adds to its repeat's metric, so that a mean over e is the metric. A single repeat shows no excess. With one
    of ``shares`` it is of that mean itself. The sign of a difference changes nothing.
    """
    episodes = shares[0].shape[-1]
    variance, parts = np.zeros(shares[0].shape[1]), np.zeros(shares[0].shape[1])
    for of_run in shares:
        repeats = len(of_run)
        if repeats < 2 or episodes < 2:
            continue
        by_repeat = of_run.mean(axis=-1)
        rest = of_run - by_repeat[..., None] - of_run.mean(axis=0) + by_repeat.mean(axis=0)[..., None]
        between = by_repeat.var(axis=0, ddof=1) / repeats
        drawn = (rest**2).sum(axis=(0, 2)) / ((repeats - 1) * (episodes - 1)) / episodes / repeats
        some = between > drawn
        variance += np.where(some, between - drawn, 0.0)
        parts += np.where(some, between**2 / (repeats - 1) + drawn**2 / ((repeats - 1) * (episodes - 1)), 0.0)
    means = [of_run.mean(axis=0) for of_run in shares]
    own = (means[0] if len(means) == 1 else means[0] - means[1]).var(axis=-1, ddof=1) / episodes if episodes > 1 else variance
    parts += own**2 / max(1, episodes - 1)
    whole = own + variance
    return Excess(variance, whole, np.divide(whole**2, parts, out=np.ones_like(whole), where=parts > 0))


def over_repeats(found: Sequence[Measured], possible: Sequence[Sequence[Terms]] = (), level: float = LEVEL) -> Measured:
    """The mean of a metric over repeats with its spread, and its interval over episodes and repeats; one alone as it is.

    ``possible`` has the terms of each repeat, with its episodes in the same order: its own, and, if steps are missing, those
    with all of them wrong and all of them right, over which the interval reaches. Without them there is no interval. Repeats in
    which the metric is not defined do not count.
    """
    known = [place for place, each in enumerate(found) if each.value is not None]
    if len(found) == 1 or not known:
        return found[0]
    of = [found[place] for place in known]
    values = tuple(each.value for each in of if each.value is not None)
    interval = None
    if possible and any(each.interval is not None for each in of):
        interval = _interval([possible[place] for place in known], of[0].unit == SHARE, level)
    value = math.fsum(values) / len(values)
    bounds = {
        name: None if all(getattr(each, name) is None for each in of) else _mean_of(of, name, or_value=True)
        for name in ("upper", "dropped_as_wrong")
    }
    plain = {each.name: getattr(of[0], each.name) for each in fields(Measured)}
    plain |= {"value": value, "n": round(_mean_of(of, "n")), "count": _mean_of(of, "count"), "interval": interval, **bounds}
    plain |= {"missing": math.ceil(math.fsum(each.missing for each in found) / len(found))}
    return Repeated(**plain, repeats=values)


def measured(metric: Measurable, runs: Sequence[tuple[RunColumns, Judged]], *, intervals: bool = True) -> Measured:
    """A metric of a run, or its mean over runs that are repeats."""
    if len(runs) == 1:
        return metric.measure(*runs[0], intervals=intervals)
    found = [metric.measure(*run, intervals=intervals) for run in runs]
    possible = [[in_order(run[0], each) for each in metric.possible(*run)] for run in runs]
    return over_repeats(found, possible)


def in_order(columns: RunColumns, terms: Terms) -> Terms:
    """A metric's terms with the episodes in the order of their keys: the same for all runs of the same steps."""
    order = sorted(range(len(columns.episodes)), key=lambda place: columns.episodes[place])
    return Terms(terms.numerator[order], terms.denominator[order], terms.combine)


def mean_difference(first: Sequence[Terms], second: Sequence[Terms], level: float = LEVEL, *, share: bool = True) -> Measured:
    """The first model's mean over repeats minus the second's, episode by episode: one question, however many the repeats.

    As :func:`guieval.metrics.paired.difference` of the episodes' means over repeats, widened for what repeats differ by beyond
    independent draws. Then the p-value is 1 - the level at which the interval begins to hold 0.
    """
    one, other = _averaged(first), _averaged(second)
    found = difference(one, other, level, share=share)
    if len(first) == len(second) == 1 or (plain := found.value) is None:
        return found
    value = _mean_value(first) - _mean_value(second)
    found, moved = replace(found, value=value), value - plain
    beyond = excess([_shares(first), _shares(second)])
    if not beyond.variance[0] or found.interval is None:
        return found if found.interval is None else replace(found, interval=_moved(found.interval, moved))

    def ends(level: float) -> Interval:
        own = difference(one, other, level, share=share).interval
        assert own is not None  # as it has one of the given level
        found = _widened(beyond, value, _moved(own, moved), level)
        return replace(found, low=max(-1.0, found.low), high=min(1.0, found.high)) if share else found

    low, high = -15.0, 0.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if (at := ends(1.0 - 10.0**middle)).low <= 0.0 <= at.high:
            low = middle
        else:
            high = middle
    p_value = 1.0 if value == 0 else max(10.0**high, found.p_value or 0.0)
    error = math.sqrt((found.standard_error or 0.0) ** 2 + float(beyond.variance[0]))
    return replace(found, interval=ends(level), p_value=p_value, standard_error=error)


def differences(metrics: Sequence[Sequence[Terms]], *, share: bool = True) -> list[list[Measured]]:
    """(k, k) :func:`mean_difference` of every two of k models on the same episodes; a model has the terms of each repeat."""
    places = range(len(metrics))
    pairs = {(i, j): mean_difference(metrics[i], metrics[j], share=share) for i in places for j in places[i:]}
    return [[pairs[i, j] if i <= j else turned(pairs[j, i]) for j in places] for i in places]


def _interval(possible: Sequence[Sequence[Terms]], share: bool, level: float) -> Interval | None:
    ways = [[of[min(way, len(of) - 1)] if len(of) > 1 else of[0] for of in possible] for way in range(max(map(len, possible)))]
    return spanning([_one_interval(terms, share, level) for terms in ways])


def _one_interval(terms: Sequence[Terms], share: bool, level: float) -> Interval | None:
    if any(each.numerator.shape != terms[0].numerator.shape for each in terms):  # cells that are empty in some repeats
        return spanning([_quoted(each, share, level) for each in terms])
    averaged = _averaged(terms)
    found, value = _quoted(averaged, share, level), _mean_value(terms)
    if found is None or not math.isfinite(value):
        return None
    found = _widened(excess([_shares(terms)]), value, _moved(found, value - total(averaged)), level)
    return replace(found, low=max(0.0, found.low), high=min(1.0, found.high)) if share else found


def _quoted(terms: Terms, share: bool, level: float) -> Interval | None:
    return quoted(*terms, level) if share else quoted_mean(terms.numerator, terms.denominator, level)


def _averaged(terms: Sequence[Terms]) -> Terms:
    """The episodes' sums, each the mean over repeats."""
    if len(terms) == 1:
        return terms[0]
    above, below = ([each.numerator for each in terms], [each.denominator for each in terms])
    return Terms(np.mean(above, axis=0), np.mean(below, axis=0), terms[0].combine)


def _shares(terms: Sequence[Terms]) -> Floats:
    """(r, 1, e) what each episode adds to its repeat's metric, times the number of episodes."""
    rows = []
    for each in terms:
        values, weights = contributions(each)
        rows.append(values + total(each) * (1.0 - weights))
    return np.array(rows)[:, None]


def _mean_value(terms: Sequence[Terms]) -> float:
    return math.fsum(map(total, terms)) / len(terms)


def _moved(of: Interval, by: float) -> Interval:
    return replace(of, low=of.low + by, high=of.high + by)


def _widened(beyond: Excess, value: float, of: Interval, level: float) -> Interval:
    centre, *ends = (np.array([each]) for each in (value, of.low, of.high))
    low, high = beyond.widened(centre, ends[0], ends[1], level)
    return replace(of, low=float(low[0]), high=float(high[0]))


def _mean_of(of: Sequence[Measured], name: str, *, or_value: bool = False) -> float:
    values = [getattr(each, name) for each in of]
    if or_value:
        values = [each.value if value is None else value for each, value in zip(of, values, strict=True)]
    return math.fsum(values) / len(values)

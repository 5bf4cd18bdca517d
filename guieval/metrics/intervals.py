"""Confidence intervals that take whole episodes as independent, because the steps of one episode are not.

Give the episodes at hand random weights (Rubin's Bayesian bootstrap), and count in :data:`UNSEEN` of one more episode that
nobody has seen: for the lower end it is wrong throughout, for the upper end right. The interval's ends are quantiles of the
metric under such weights. With a whole unseen episode that is Gaffke's bound, for which no distribution is known that it covers
less often than promised, however few the episodes; for single steps it is Clopper and Pearson's exact interval. Like theirs it
is wider than it has to be, so less of an episode is counted in. A saddlepoint formula gives the quantiles, so no interval has a
seed or an error of resampling.

What was measured is in docs/statistics.md (``perf/coverage.py``): from 10 episodes on every 95 % interval covers the true
value in at least 93 % of the experiments; near 0 and 1, and if few episodes are right, mostly in 97 to 99 %. With fewer than
10 episodes it is as careful, and wide. A bootstrap of episodes (BCa) covers 78 to 92 % in such cases.

:mod:`guieval.metrics.paired` compares runs, :mod:`guieval.metrics.repeats` averages over repeats of a run,
:mod:`guieval.metrics.sampling` handles several answers to one step.

Sources: D. Rubin, "The Bayesian bootstrap", Ann. Statist. 9 (1981); N. Gaffke, "Three test statistics for a nonparametric
one-sided hypothesis on the mean of a nonnegative variable", Math. Methods Statist. 14 (2005); M. Phan, P. Thomas, E.
Learned-Miller, "Towards practical mean bounds for small samples", ICML (2021); O. Barndorff-Nielsen, "Approximate interval
probabilities", J. R. Statist. Soc. B 52 (1990), the saddlepoint formula; E. Wilson, "Probable inference", JASA 22 (1927).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Combine: TypeAlias = Callable[[Floats, Floats], Floats]
"""Turns sums of numerators and of denominators over episodes, both (r, c), into r metrics, each linear in the numerators; NaN
if one is not defined."""

LEVEL = 0.95
UNSEEN = 0.75
"""How much of an unseen episode is counted in: the fewest quarters with which single steps, of whatever rate, are covered in
93 % from 10 on, by summing up the binomial distribution."""
_SAME = 1e-12
"""Metrics nearer than this differ by rounding only."""
_FAR = 38.0
"""Standard deviations from which on a tail of the normal distribution is 0 among floats."""


@dataclass(frozen=True)
class Interval:
    """From ``low`` to ``high``, of confidence ``level``: over ``episodes``, or ``wilson``'s, of independent observations.

    ``episodes``: over repeats too, of a mean over these; ``student``: of a mean over seeds or of a fitted line; ``profile``: of
    a fitted curve; ``percentile``: of resampled models; ``lang-reiczigel``: of a rate corrected for the errors of its judge.
    """

    low: float
    high: float
    level: float
    method: Literal["episodes", "wilson", "percentile", "student", "profile", "lang-reiczigel"]


class Terms(NamedTuple):
    """A metric as sums over e episodes: ``numerator`` and ``denominator``, (e,) or (e, c), and how c sums of each combine."""

    numerator: Floats
    denominator: Floats
    combine: Combine


def sums(values: Floats, axis: int = 1) -> Floats:
    """Sums along an axis; numpy's own method is of no known type."""
    found: Floats = values.sum(axis=axis)
    return found


def pooled(numerator: Floats, denominator: Floats) -> Floats:
    """(r,) sum of all numerators / sum of all denominators; NaN if there is nothing to divide by."""
    return _divided(sums(numerator), sums(denominator))


def mean_of_cells(numerator: Floats, denominator: Floats) -> Floats:
    """(r,) plain mean of the c ratios; NaN if one of the c cells is empty."""
    return np.asarray(_divided(numerator, denominator).mean(axis=1), dtype=np.float64)


def total(of: Terms) -> float:
    """The metric; NaN if it is not defined."""
    return float(of.combine(np.atleast_2d(sums(of.numerator, 0)), np.atleast_2d(sums(of.denominator, 0)))[0])


class Kind(NamedTuple):
    """An episode of each of b sets, as it counts in its mean: ``value``, and ``weight``, which the mean divides by; (b,)."""

    value: Floats
    weight: Floats


@dataclass(frozen=True, eq=False)
class Weighed:
    """b sets of episodes of k kinds: ``values``, ``weights``, and ``counts``, how many there are of each; all (b, k).

    A set's mean is the sum of its values by that of its weights, which are 1 on average.
    """

    values: Floats
    weights: Floats
    counts: Floats

    @classmethod
    def of(cls, values: Floats, weights: Floats) -> Weighed:
        """One set of (e,) episodes, equal ones counted together, so that nothing depends on their order."""
        kinds, counts = np.unique(np.stack([values, weights], axis=1), axis=0, return_counts=True)
        return cls(kinds[None, :, 0], kinds[None, :, 1], counts[None].astype(np.float64))

    @property
    def mean(self) -> Floats:
        """(b,) the means of the episodes at hand."""
        return sums(self.counts * self.values) / sums(self.counts * self.weights)

    @property
    def standard_error(self) -> Floats:
        """(b,) of the means, by how the episodes spread; of at least two."""
        episodes = sums(self.counts)
        away = self.values - self.mean[:, None] * self.weights
        return np.sqrt(sums(self.counts * away**2) / (episodes * (episodes - 1)))

    def deviate(self, at: Floats, unseen: Kind) -> Floats:
        """(b,) the normal deviate of the chance that, under random weights and with ``unseen``, the mean is at most ``at``.

        The random weights are exponential, and gamma with shape :data:`UNSEEN` for the unseen episode.
        """
        own = self.values - at[:, None] * self.weights
        beyond = unseen.value - at * unseen.weight
        shapes = np.append(self.counts, np.full((len(at), 1), UNSEEN), axis=1)
        return _deviates(np.append(own, beyond[:, None], axis=1), shapes)

    def end(self, deviates: Floats, unseen: Kind) -> Floats:
        """(b,) the means at which :meth:`deviate` is ``deviates``."""
        own = _divided(self.values, self.weights)
        beyond = unseen.value / unseen.weight
        low, high = np.fmin(np.nanmin(own, axis=1), beyond), np.fmax(np.nanmax(own, axis=1), beyond)
        whole = sums(self.counts * self.weights) + UNSEEN * unseen.weight
        mean = (sums(self.counts * self.values) + UNSEEN * unseen.value) / whole
        squares = sums(self.counts * (self.values - mean[:, None] * self.weights) ** 2)
        spread = np.sqrt(squares + UNSEEN * (unseen.value - mean * unseen.weight) ** 2) / whole
        return _roots(lambda at: self.deviate(at, unseen) - deviates, (low, high), mean + deviates * spread, spread)

    def ends(self, least: Kind, most: Kind, level: float = LEVEL) -> tuple[Floats, Floats]:
        """(b,) the lower ends, with the unseen episode ``least``, and the upper ones, with ``most``."""
        z, sets = quantile(level), len(self.values)
        twice = Weighed(*(np.tile(each, (2, 1)) for each in (self.values, self.weights, self.counts)))
        unseen = Kind(*(np.concatenate(parts) for parts in zip(least, most, strict=True)))
        both = twice.end(np.repeat([-z, z], sets), unseen)
        return both[:sets], both[sets:]

    def shares(self, level: float = LEVEL) -> tuple[Floats, Floats]:
        """(b,) the lower and the upper ends of shares, whose values lie between 0 and the weights."""
        nothing, one = np.zeros(len(self.values)), np.ones(len(self.values))
        return self.ends(Kind(nothing, one), Kind(one, one), level)

    def without_bounds(self, level: float = LEVEL) -> tuple[Floats, Floats]:
        """(b,) the ends of means without bounds: the unseen episode is twice as far off as the farthest one seen."""
        mean, one = self.mean, np.ones(len(self.values))
        far = 2.0 * np.abs(self.values - mean[:, None] * self.weights).max(axis=1)
        return self.ends(Kind(mean - far, one), Kind(mean + far, one), level)


def contributions(terms: Terms) -> tuple[Floats, Floats]:
    """Values and weights, (e,), whose sums' ratio is the metric, and which spread as its episodes make it spread.

    A metric is linear in its numerators, so each episode's are multiplied by what they add to it, and its denominators alike.
    What only tells one cell from another is taken off: a mean over cells does not spread because cells differ.
    """
    numerator, denominator, combine = _columns(terms.numerator), _columns(terms.denominator), terms.combine
    episodes, total = len(denominator), sums(denominator, 0)
    each = episodes * combine(np.eye(len(total)), np.tile(total, (len(total), 1)))
    values, weights = numerator @ each, denominator @ each
    if len(total) > 1 and combine is not pooled:
        rates = sums(numerator, 0) / total
        values += weights * float(values.mean()) - denominator @ (rates * each)
    return values, weights


def quoted(numerator: Floats, denominator: Floats, combine: Combine = pooled, level: float = LEVEL) -> Interval | None:
    """The interval to print next to a share: ``combine`` of sums over e independent episodes, each (e,) or (e, c).

    Every numerator is between 0 and its denominator. Of metrics over cells the unseen episode is in the cell that moves the
    metric most. ``None`` if the metric is not defined.
    """
    numerator, denominator = _counted(_columns(numerator), _columns(denominator))
    above, below = sums(numerator, 0), sums(denominator, 0)
    if not len(numerator) or not math.isfinite(float(combine(above[None], below[None])[0])):
        return None
    terms = Terms(numerator, denominator, combine)
    of = Weighed.of(*contributions(terms))
    if combine is pooled:
        return _share(of.values.tobytes(), of.weights.tobytes(), of.counts.tobytes(), level)
    each = len(numerator) * combine(np.eye(len(below)), np.tile(below, (len(below), 1)))
    weights, rates = each * below / np.count_nonzero(denominator, axis=0), above / below
    down, up = -weights * rates, weights * (1.0 - rates)
    least, most = (
        Kind(of.mean * weights[cell] + reach[cell], weights[cell : cell + 1])
        for reach, cell in ((down, down.argmin()), (up, up.argmax()))
    )
    low, high = of.ends(least, most, level)
    return _interval((np.maximum(0.0, low), np.minimum(1.0, high)), level)


def quoted_mean(numerator: Floats, denominator: Floats, level: float = LEVEL) -> Interval | None:
    """The interval of a pooled mean of what has no bounds (:meth:`Weighed.without_bounds`).

    ``None`` without any denominator or with a single episode.
    """
    numerator, denominator = _counted(_columns(numerator), _columns(denominator))
    if len(numerator) < 2:
        return None
    return _interval(Weighed.of(*contributions(Terms(numerator, denominator, pooled))).without_bounds(level), level)


def spanning(intervals: Sequence[Interval | None]) -> Interval | None:
    """The interval that reaches from the lowest to the highest end; ``None`` if one is missing."""
    known = [each for each in intervals if each is not None]
    if not known or len(known) < len(intervals):
        return None
    return Interval(min(each.low for each in known), max(each.high for each in known), known[0].level, known[0].method)


def wilson(count: int, n: int, level: float = LEVEL) -> Interval | None:
    """Wilson's score interval of ``count`` successes in ``n`` independent trials; ``None`` for no trial.

    For metrics that were published with it. It covers a rate near 0 or 1 in as little as 84 % (n = 10, rate 0.018).
    """
    if n == 0:
        return None
    z = quantile(level)
    share = count / n
    whole = 2 * (n + z**2)
    centre = (2 * n * share + z**2) / whole
    half = z / whole * math.sqrt(4 * n * share * (1 - share) + z**2)
    return Interval(0.0 if count == 0 else centre - half, 1.0 if count == n else centre + half, level, "wilson")


def quantile(level: float) -> float:
    """The normal quantile that a two-sided interval of that level goes up to."""
    from scipy.special import ndtri  # scipy.stats costs half a second and 40 MiB to import

    return float(ndtri(0.5 + 0.5 * level))


def _interval(ends: tuple[Floats, Floats], level: float) -> Interval:
    return Interval(float(ends[0][0]), float(ends[1][0]), level, "episodes")


@lru_cache(maxsize=4096)
def _share(values: bytes, weights: bytes, counts: bytes, level: float) -> Interval:
    """Of one set of kinds; kept, because a command shows six of seven intervals more than once."""
    of = Weighed(*(np.frombuffer(each)[None] for each in (values, weights, counts)))
    return _interval(of.shares(level), level)


def _columns(values: Floats) -> Floats:
    array = np.asarray(values, dtype=np.float64)
    return array[:, None] if array.ndim == 1 else array


def _counted(numerator: Floats, denominator: Floats) -> tuple[Floats, Floats]:
    """Without the episodes in no denominator, which add to no sum."""
    some = np.any(denominator != 0, axis=1)
    return numerator[some], denominator[some]


def _divided(numerator: Floats, denominator: Floats) -> Floats:
    return np.divide(numerator, denominator, out=np.full_like(numerator, np.nan), where=denominator != 0)


def _deviates(values: Floats, shapes: Floats) -> Floats:
    """(b,) the normal deviates of the chances that sums of (b, k) ``values`` times gamma variables of ``shapes`` are at most 0.

    Barndorff-Nielsen's r*. In a tail of 0.025 its error is below 0.002, from ten episodes on below 0.001.
    """
    least: Floats = values.min(axis=1)
    most: Floats = values.max(axis=1)
    found = np.where(most <= 0, _FAR, -_FAR)
    rows = np.flatnonzero((least < 0) & (most > 0))
    values, shapes = values[rows], shapes[rows]
    low, high, tilt = 1.0 / least[rows], 1.0 / most[rows], np.zeros(len(rows))
    curvature = np.ones(len(rows))
    for _ in range(100):  # Newton's method, kept inside the bracket: where the tilted sum has the mean 0
        tilted = values / (1.0 - tilt[:, None] * values)
        weighted = shapes * tilted
        slope, curvature = sums(weighted), sums(weighted * tilted)
        settled = np.abs(slope) <= 1e-10 * np.sqrt(curvature)
        if settled.all():
            break
        low, high = np.where(slope < 0, tilt, low), np.where(slope < 0, high, tilt)
        step = tilt - slope / curvature
        tilt = np.where(settled, tilt, np.where((low < step) & (step < high), step, (low + high) / 2))
    v = tilt * np.sqrt(curvature)
    w = np.copysign(np.sqrt(2.0 * np.abs(sums(shapes * np.log1p(-tilt[:, None] * values)))), tilt)
    squares = sums(shapes * values**2)
    middle = np.abs(v) < 1e-3  # the formula divides 0 by 0 there; this is its limit
    limit = v + sums(shapes * values**3) / (3.0 * squares * np.sqrt(squares))
    apart = np.where(middle, 1.0, w)
    found[rows] = np.clip(np.where(middle, limit, w + np.log(np.where(middle, 1.0, v / apart)) / apart), -_FAR, _FAR)
    return found


def _roots(function: Callable[[Floats], Floats], bracket: tuple[Floats, Floats], first: Floats, run: Floats) -> Floats:
    """(b,) where rising functions are 0 in a bracket, tried first at ``first``, near which they rise by about 1 in ``run``."""
    low, high = bracket
    found = np.clip(first, low, high)
    value, done = function(found), high - low < _SAME
    for _ in range(200):  # the secant method, kept inside the bracket
        low, high = np.where(value < 0, found, low), np.where(value < 0, high, found)
        step = found - value * run
        inside = (low < step) & (step < high)
        ahead = np.where(done | (value == 0), found, np.where(inside, step, (low + high) / 2))
        done |= (inside & (np.abs(value) < 1e-8)) | (value == 0) | (high - low < _SAME)  # this step is the last
        if done.all():
            return ahead
        after = function(ahead)
        run = np.divide(ahead - found, after - value, out=run.copy(), where=after != value)
        found, value = ahead, after
    return found

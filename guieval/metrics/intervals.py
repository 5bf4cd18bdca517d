"""Confidence intervals that take whole episodes as independent, because the steps of one episode are not.

Every figure here is a function of sums over episodes (:data:`Combine`), so a resampled set is a vector of sums, and resampling
costs no more than counting. :mod:`guieval.metrics.paired` compares runs, :mod:`guieval.metrics.sampling` handles several
answers to one step.

Sources: B. Efron, "Better bootstrap confidence intervals", JASA 82 (1987), the BCa interval; T. Hesterberg, "What teachers
should know about the bootstrap", Am. Statistician 69 (2015), its correction for few episodes; E. B. Wilson, "Probable
inference", JASA 22 (1927).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Combine: TypeAlias = Callable[[Floats, Floats], Floats]
"""Turns sums of numerators and of denominators over episodes, both (r, c), into r figures; NaN where one is not defined."""

RESAMPLES = 2000
LEVEL = 0.95
_CELLS_AT_ONCE = 4_000_000
"""How many counts of resampled episodes are held at a time: 64 MB as integers and floats."""
_SAME = 1e-12
"""Figures nearer than this differ by rounding only."""


@dataclass(frozen=True)
class Interval:
    """From ``low`` to ``high``, of confidence ``level``. Without resampling, ``resamples`` is 0 and ``seed`` has no meaning."""

    low: float
    high: float
    level: float
    method: Literal["bca", "wilson", "percentile", "student", "profile"]
    seed: int | None = None
    resamples: int = 0


class Terms(NamedTuple):
    """A figure as sums over e episodes: ``numerator`` and ``denominator``, (e,) or (e, c), and how c sums of each combine."""

    numerator: Floats
    denominator: Floats
    combine: Combine


def pooled(numerator: Floats, denominator: Floats) -> Floats:
    """(r,) sum of all numerators / sum of all denominators; NaN where there is nothing to divide by."""
    return _divided(numerator.sum(axis=1), denominator.sum(axis=1))


def mean_of_cells(numerator: Floats, denominator: Floats) -> Floats:
    """(r,) plain mean of the c ratios; NaN where one of the c cells is empty."""
    return np.asarray(_divided(numerator, denominator).mean(axis=1), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Resampled:
    """A figure, or a difference of two, on the whole set and on sets drawn from it.

    ``value``: on the whole set, NaN where it is not defined. ``drawn``: (r,) on each resampled set. ``left_out``: (u,) with
    one episode left out, of each of u different kinds; ``terms``: (u, 2c) their sums; ``kinds``: (u,) how many episodes are of
    the kind. ``deciding``: the number of episodes with an influence: all, or for a difference those whose two sums differ.
    """

    value: float
    drawn: Floats
    left_out: Floats
    terms: Floats
    kinds: NDArray[np.int64]
    deciding: int
    seed: int

    def minus(self, other: Resampled) -> Resampled:
        """The difference to the same figure of another run, from the same call of :func:`resample`."""
        alike = self.terms.shape == other.terms.shape  # runs that stop may reach unlike cells
        differ = np.any(self.terms != other.terms, axis=1) if alike else np.ones(len(self.kinds), dtype=np.bool_)
        return Resampled(
            value=self.value - other.value,
            drawn=self.drawn - other.drawn,
            left_out=self.left_out - other.left_out,
            terms=np.hstack([self.terms, other.terms]),
            kinds=self.kinds,
            deciding=int(self.kinds[differ].sum()),
            seed=self.seed,
        )

    @property
    def standard_error(self) -> float | None:
        """The standard deviation over the resampled sets on which the figure is defined; ``None`` below two of them."""
        known = self.drawn[np.isfinite(self.drawn)]
        return float(known.std(ddof=1)) if len(known) > 1 else None

    def interval(self, level: float = LEVEL) -> Interval | None:
        """The BCa interval: the bootstrap's quantiles, corrected for bias and for a spread that changes with the figure.

        The quantiles are Student's for d - 1 instead of normal ones, and their distance is enlarged by sqrt(d / (d - 1)), for
        resampled sets of d deciding episodes vary that much too little (Hesterberg). That keeps the level where few episodes,
        or few in which two runs differ, carry the figure.

        ``None`` where the figure is not defined, where there is only one episode or only one decides, or where the figure is
        defined on less than half of the resampled sets (the others are skipped). Where all agree, its width is 0.
        """
        known = self._known()
        if known is None:
            return None
        if np.ptp(known) <= _SAME:
            return Interval(self.value, self.value, level, "bca", self.seed, len(self.drawn))
        from scipy.special import ndtr, stdtrit

        bias, acceleration = self._corrections(known)
        tails = np.array([(1 - level) / 2, (1 + level) / 2])
        z = bias + stdtrit(self.deciding - 1, tails) * self._enlarged()
        stretch = 1 - acceleration * z
        beyond = np.copysign(np.inf, z)  # where the correction runs off the scale, the end is the outermost resampled set
        low, high = np.quantile(known, ndtr(bias + np.divide(z, stretch, out=beyond, where=stretch > 0)))
        return Interval(float(low), float(high), level, "bca", self.seed, len(self.drawn))

    def p_value(self) -> float | None:
        """How surprising the difference would be if it were really 0, two-sided: 1 - the level at which the interval meets 0.

        At least 2 / (resamples + 1), the resolution of the resampling, and at least 2 / 2^d, the probability that all d
        deciding episodes favour one side. 1 where all resampled sets agree on 0; ``None`` where there is no interval.
        """
        known = self._known()
        if known is None:
            return None
        if np.all(np.abs(known) <= _SAME):
            return 1.0
        least = max(2.0 / (len(known) + 1), 2.0 ** (1 - self.deciding))
        if known.min() > _SAME or known.max() < -_SAME:
            return least
        from scipy.special import ndtri, stdtr

        # The inverse of the map in `interval`: which of Student's quantiles sends the interval's end to 0.
        bias, acceleration = self._corrections(known)
        z = float(ndtri(_share_below(known, 0.0))) - bias
        stretch = 1 + acceleration * z
        tail = float(stdtr(self.deciding - 1, (z / stretch - bias) / self._enlarged())) if stretch > 0 else 0.0
        return max(2.0 * min(tail, 1.0 - tail), least)

    def _known(self) -> Floats | None:
        """The figures of the resampled sets on which it is defined; ``None`` where there is no interval."""
        known = self.drawn[np.isfinite(self.drawn)]
        if not np.isfinite(self.value) or self.kinds.sum() < 2 or self.deciding == 1 or 2 * len(known) < len(self.drawn):
            return None
        return known

    def _enlarged(self) -> float:
        return math.sqrt(self.deciding / (self.deciding - 1))

    def _corrections(self, known: Floats) -> tuple[float, float]:
        """Efron's z0 and a; ties count half, as in figures made of counts many resampled sets give the very same number."""
        from scipy.special import ndtri

        there = np.isfinite(self.left_out)
        if not there.any():
            return float(ndtri(_share_below(known, self.value))), 0.0
        left_out, kinds = self.left_out[there], self.kinds[there]
        away = np.average(left_out, weights=kinds) - left_out
        spread = float((kinds * away**2).sum())
        acceleration = float((kinds * away**3).sum()) / (6 * spread**1.5) if spread > _SAME**2 else 0.0
        return float(ndtri(_share_below(known, self.value))), acceleration


def resample(figures: Sequence[Terms], seed: int = 0, resamples: int = RESAMPLES) -> list[Resampled]:
    """Draw sets of e episodes with replacement, and compute all ``figures`` on each of the same sets.

    Episodes in no figure's denominator are left out first: they add to no sum. Equal episodes are counted together (drawing
    e of e episodes is drawing multinomial counts of the different kinds), so the result depends neither on the episodes'
    order nor, in time, on their number. Raises ``ValueError`` for figures of unlike numbers of episodes.
    """
    parts = [_columns(each) for each in (part for terms in figures for part in terms[:2])]
    if len({len(part) for part in parts}) > 1:
        raise ValueError(f"figures of {sorted({len(part) for part in parts})} episodes cannot be resampled together")
    counted = np.any(np.hstack(parts[1::2]) != 0, axis=1)
    rows, kinds = np.unique(np.hstack(parts)[counted], axis=0, return_counts=True)
    ends = np.cumsum([part.shape[1] for part in parts])
    whole = kinds @ rows

    def all_figures(sums: Floats) -> list[Floats]:
        cut = np.split(sums, ends[:-1], axis=1)
        return [terms.combine(cut[2 * i], cut[2 * i + 1]) for i, terms in enumerate(figures)]

    values = all_figures(whole[None])
    drawn = all_figures(_drawn_sums(rows, kinds, seed, resamples))
    left_out = all_figures(whole - rows)
    terms = [np.hstack(np.split(rows, ends[:-1], axis=1)[2 * i : 2 * i + 2]) for i in range(len(figures))]
    return [
        Resampled(float(value[0]), of_sets, without, own, kinds, int(kinds.sum()), seed)
        for value, of_sets, without, own in zip(values, drawn, left_out, terms, strict=True)
    ]


def bootstrap(
    numerator: Floats,
    denominator: Floats,
    combine: Combine = pooled,
    seed: int = 0,
    resamples: int = RESAMPLES,
    level: float = LEVEL,
) -> Interval | None:
    """The interval of a figure that is ``combine`` of sums over e independent episodes, each (e,) or (e, c).

    BCa rather than plain percentiles: it costs nothing more here, and its ends lie where they should for shares near 0 or 1,
    whose spread depends on themselves (percentile intervals are biased towards the middle there). Corrected for few episodes
    (:meth:`Resampled.interval`), it still is a little too narrow below about 20 of them.

    Where every numerator is 0, or every one equals its denominator, all resampled sets agree and the bootstrap knows nothing;
    the interval is then Wilson's with each episode as one observation, which is careful: an episode holds at least that much.
    ``None`` without any denominator, with a single episode that has one (unless the figure is 0 or 1), or where less than
    half of the resampled sets define the figure.
    """
    numerator, denominator = _columns(numerator), _columns(denominator)
    counted = np.any(denominator != 0, axis=1)
    n = int(counted.sum())
    value = float(combine(numerator.sum(axis=0)[None], denominator.sum(axis=0)[None])[0])
    if n and np.isfinite(value) and (not numerator[counted].any() or np.array_equal(numerator[counted], denominator[counted])):
        return wilson(n if numerator[counted].any() else 0, n, level)
    (drawn,) = resample([Terms(numerator, denominator, combine)], seed, resamples)
    return drawn.interval(level)


def quoted(
    numerator: Floats,
    denominator: Floats,
    combine: Combine = pooled,
    seed: int = 0,
    resamples: int = RESAMPLES,
    level: float = LEVEL,
) -> Interval | None:
    """The interval to print beside a figure: Wilson's where every episode is one observation, else :func:`bootstrap`'s.

    One observation each have success rates and grounding (single-step episodes), pooled: numerators are then 0 or 1 and
    denominators 1. Resampling episodes gives nearly the same; Wilson's interval needs no resampling and keeps its
    level near 0 and 1.
    """
    above, below = _columns(numerator), _columns(denominator)
    single = combine is pooled and above.shape[1] == 1 and bool(np.isin(above, (0, 1)).all() and np.isin(below, (0, 1)).all())
    if single and bool((above <= below).all()):
        return wilson(int(above.sum()), int(below.sum()), level)
    return bootstrap(numerator, denominator, combine, seed, resamples, level)


def wilson(count: int, n: int, level: float = LEVEL) -> Interval | None:
    """Wilson's score interval of ``count`` successes in ``n`` independent trials; ``None`` for no trial."""
    if n == 0:
        return None
    from scipy.special import ndtri  # scipy.stats has this interval too, but costs half a second and 40 MiB to import

    z = float(ndtri(0.5 + 0.5 * level))
    share = count / n
    whole = 2 * (n + z**2)
    centre = (2 * n * share + z**2) / whole
    half = z / whole * math.sqrt(4 * n * share * (1 - share) + z**2)
    return Interval(0.0 if count == 0 else centre - half, 1.0 if count == n else centre + half, level, "wilson")


def _columns(values: Floats) -> Floats:
    array = np.asarray(values, dtype=np.float64)
    return array[:, None] if array.ndim == 1 else array


def _divided(numerator: Floats, denominator: Floats) -> Floats:
    # A sum that lost its last addend may be left with rounding dust, hence no comparison with 0 itself.
    there = np.abs(denominator) > _SAME
    return np.divide(numerator, denominator, out=np.full_like(numerator, np.nan), where=there)


def _share_below(known: Floats, value: float) -> float:
    """The share of resampled figures below ``value``, ties half; kept off 0 and 1 by half a resample."""
    below = np.count_nonzero(known < value - _SAME) + np.count_nonzero(np.abs(known - value) <= _SAME) / 2
    return min(max(below, 0.5), len(known) - 0.5) / len(known)


def _drawn_sums(rows: Floats, kinds: NDArray[np.int64], seed: int, resamples: int) -> Floats:
    """(resamples, columns) sums over resampled sets, a bounded number of them at a time."""
    sums = np.empty((resamples, rows.shape[1]))
    if not len(rows):
        sums[:] = 0.0
        return sums
    rng = np.random.default_rng(seed)
    episodes = int(kinds.sum())
    at_once = max(1, _CELLS_AT_ONCE // len(rows))
    for start in range(0, resamples, at_once):
        size = min(at_once, resamples - start)
        sums[start : start + size] = rng.multinomial(episodes, kinds / episodes, size).astype(np.float64) @ rows
    return sums

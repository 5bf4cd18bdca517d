"""Computes a protocol's metrics from a run's columns, as its source divides, averages and drops.

Every metric here is a function of sums over episodes (:meth:`ProtocolMetric.terms`), so that intervals and comparisons weigh
the episodes of exactly the number that is shown. What a source drops stays visible:
:attr:`guieval.metrics.measured.Measured.dropped_as_wrong` counts it as wrong. Intervals are computed in
:mod:`guieval.metrics.intervals`, judgements of steps by the evaluators.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from guieval.evaluation.protocol import ALL_STEPS, EXACT_MATCH, FailurePolicy, Fate, Metric
from guieval.metrics.columns import NOT_REACHED, TYPES, UNPARSEABLE, UNSUPPORTED, Judged, RunColumns
from guieval.metrics.intervals import Floats, Interval, Terms, mean_of_cells, pooled, quoted, spanning
from guieval.metrics.measured import SHARE, Better, Measured

Flags = NDArray[np.bool_]

_JUDGED, _WRONG, _RIGHT, _LEFT_OUT, _EPISODE_OUT, _ZERO = range(6)
_FATES: dict[Fate, int] = {"wrong": _WRONG, "left-out": _LEFT_OUT, "episode-left-out": _EPISODE_OUT, "zero": _ZERO}
_BY_EPISODE = frozenset({"progress", "success", "score"})
_PLACED = [TYPES.index("CLICK"), TYPES.index("LONG_PRESS")]
_OVER_CELLS = frozenset({"cells", "cells-by-size"})


@dataclass(frozen=True)
class ProtocolMetric:
    """A metric as its source computes it; ``policy`` is the protocol's, in place of which the metric may have its own."""

    metric: Metric
    policy: FailurePolicy = ALL_STEPS
    unit = SHARE
    better: Better = "more"

    @property
    def name(self) -> str:
        return self.metric.name

    @property
    def of_episodes(self) -> bool:
        return self.metric.measure in _BY_EPISODE

    @property
    def meaning(self) -> str:
        return self.metric.meaning

    @property
    def of(self) -> str:
        return self.metric.denominator(self.policy)

    def measure(self, columns: RunColumns, judged: Judged, *, intervals: bool = True) -> Measured:
        """Its value on these steps.

        A planned step of which nothing is known (no record, so no reference) is in scope of a metric over all types, stays in
        one that leaves types out, is in none that counts certain types, and belongs to no cell. In a mode that stops, a metric
        of episodes over some of the types is ``None`` if steps were never reached, because their references are not known.
        ``intervals``: with its interval over episodes, which reaches from that with all missing steps wrong to that with all
        of them right; there is none if no step in the metric's scope was measured.
        """
        metric, own = self.metric, self._own
        if self.cannot_tell(columns, judged):
            return Measured(None, 0, self.of, count=0.0)
        fates = _fates(own, columns, judged)
        made = _terms(metric, own, columns, judged, fates)
        value, count, n = _total(metric, made)
        dropped = fates >= _LEFT_OUT
        strict = upper = None
        if dropped.any():
            counted = np.where(dropped, _WRONG, fates)
            strict = _total(metric, _terms(metric, ALL_STEPS, columns, judged, counted))[0]
        if judged.unmeasured.any():
            possible = np.where(judged.unmeasured, _RIGHT, fates)
            upper = _total(metric, _terms(metric, own, columns, judged, possible))[0]
        return Measured(
            value,
            n,
            self.of,
            count=round(count) if count.is_integer() else count,
            missing=int((judged.unmeasured & _in_scope(metric, columns)).sum()) + columns.left_out,
            interval=self._interval(columns, judged, fates) if intervals and value is not None else None,
            upper=upper if upper != value else None,
            dropped_as_wrong=strict if strict != value else None,
        )

    def terms(self, columns: RunColumns, judged: Judged) -> Terms:
        """Its sums over the run's e episodes: numerator and denominator, (e, c), and how their sums combine.

        c is 1 except for averages over cells, which have one column for each cell that is not empty. Combining the sums over
        all episodes gives :meth:`measure`'s ``value``, NaN if that is ``None``.
        """
        if self.cannot_tell(columns, judged):
            return Terms(np.zeros((len(columns.episodes), 1)), np.zeros((len(columns.episodes), 1)), pooled)
        return _terms(self.metric, self._own, columns, judged, _fates(self._own, columns, judged))

    def possible(self, columns: RunColumns, judged: Judged) -> list[Terms]:
        """:meth:`terms`, and, if steps are missing, those with all of them wrong and with all of them right."""
        if self.cannot_tell(columns, judged):
            return [self.terms(columns, judged)]
        return self._possible(columns, judged, _fates(self._own, columns, judged))

    def cannot_tell(self, columns: RunColumns, judged: Judged) -> bool:
        """Whether it is of episodes and skips steps by their reference and the references of some are not known."""
        if not self.of_episodes or (self.metric.over is None and not self.metric.without):
            return False
        return bool(((judged.end == NOT_REACHED) & (columns.reference_type < 0)).any())

    @property
    def _own(self) -> FailurePolicy:
        return self.metric.failure or self.policy

    def _interval(self, columns: RunColumns, judged: Judged, fates: NDArray[np.int8]) -> Interval | None:
        if not (judged.measured & _in_scope(self.metric, columns)).any():
            return None
        return spanning([quoted(*each) for each in self._possible(columns, judged, fates)])

    def _possible(self, columns: RunColumns, judged: Judged, fates: NDArray[np.int8]) -> list[Terms]:
        possible = [fates]
        if judged.unmeasured.any():
            possible += [np.where(judged.unmeasured, fate, fates).astype(np.int8) for fate in (_WRONG, _RIGHT)]
        return [_terms(self.metric, self._own, columns, judged, each) for each in possible]


ALL_EXACT = ProtocolMetric(EXACT_MATCH)
"""Exact match over all steps."""


def by_size(numerator: Floats, denominator: Floats) -> Floats:
    """(r,) mean of c ratios, each weighing by the square of its denominator (a mean of means that were weighted already)."""
    with np.errstate(invalid="ignore"):
        return np.asarray((numerator * denominator).sum(axis=1) / (denominator * denominator).sum(axis=1))


def _fates(policy: FailurePolicy, columns: RunColumns, judged: Judged) -> NDArray[np.int8]:
    """How each step counts: by its judgement, or, without one, by the policy. A step that is not reached is a mismatch."""
    fates = np.full(len(columns), _JUDGED, dtype=np.int8)
    if policy.outside != "wrong":  # such an action that is left in is judged like any other
        fates[~columns.covered & (judged.end < UNPARSEABLE)] = _FATES[policy.outside]
    fates[judged.end == UNPARSEABLE] = _FATES[policy.unparseable]
    fates[judged.end == UNSUPPORTED] = _FATES[policy.unsupported]
    fates[judged.unmeasured] = _FATES[policy.missing]
    fates[judged.end == NOT_REACHED] = _WRONG
    return fates


def _in_scope(metric: Metric, columns: RunColumns) -> Flags:
    types = columns.reference_type
    scope = np.ones(len(columns), dtype=np.bool_)
    if metric.over is not None:
        scope = np.isin(types, [TYPES.index(name) for name in metric.over])
    if metric.without:
        scope &= ~np.isin(types, [TYPES.index(name) for name in metric.without])
    return scope


def _terms(metric: Metric, policy: FailurePolicy, columns: RunColumns, judged: Judged, fates: NDArray[np.int8]) -> Terms:
    if metric.measure in _BY_EPISODE:
        rows = columns.starts
        numerator, denominator = _episodes(metric, policy, columns, judged, fates)
    else:
        rows = np.arange(len(columns))
        counted = _in_scope(metric, columns) & judged.reached & (fates < _LEFT_OUT)
        exact, typed = (
            (counted & ((matches & (fates == _JUDGED)) | (fates == _RIGHT))).astype(np.float64)
            for matches in (judged.exact_match, judged.type_match)
        )
        if metric.measure == "graded":
            exact = _graded(exact, typed * (fates == _JUDGED), judged)
        numerator = typed if metric.measure == "type" else exact
        denominator = typed if metric.measure == "exact-given-type" else counted.astype(np.float64)
        if metric.measure == "exact-given-place":
            denominator *= np.isin(columns.predicted_type, _PLACED) | (fates == _RIGHT)
    if metric.average in _OVER_CELLS:
        return _cells(metric, columns, rows, numerator, denominator)
    if metric.measure not in _BY_EPISODE:
        numerator, denominator = columns.per_episode(numerator), columns.per_episode(denominator)
        if metric.average == "episodes":
            numerator, denominator = _shares(numerator, denominator)
    return Terms(numerator[:, None], denominator[:, None], pooled)


def _graded(exact: Floats, typed: Floats, judged: Judged) -> Floats:
    """(n,) each step's credit: of a point of the right type by its distance, of any other step its exact match."""
    pointed = (typed > 0) & np.isfinite(judged.distance)
    return np.where(pointed, np.maximum(0.0, 1.0 - math.sqrt(2.0) * judged.distance / 1000.0), exact)


def _episodes(
    metric: Metric, policy: FailurePolicy, columns: RunColumns, judged: Judged, fates: NDArray[np.int8]
) -> tuple[Floats, Floats]:
    """(e,) numerators and denominators of a metric of whole episodes, the sequences of their steps that count."""
    scope = _in_scope(metric, columns)
    sequence = scope & (fates < _LEFT_OUT)
    exact = sequence & ((judged.exact_match & (fates == _JUDGED)) | (fates == _RIGHT))
    failed = scope & (fates == _ZERO)
    # If a missing step is a gap in the episode, so is one that does not count. GUIEvalKit compares step numbers with
    # places, so it overlooks a gap after the last step that counts.
    gap = failed | ~scope if policy.missing == "zero" else failed
    rows = np.arange(len(columns))
    beyond = len(columns)
    first_miss = np.minimum.reduceat(np.where(sequence & ~exact, rows, beyond), columns.starts) if beyond else rows
    before = rows < first_miss[columns.episode]
    length = columns.per_episode(sequence)
    broken = columns.per_episode(gap & before) > 0
    prefix = np.where(broken, 0.0, columns.per_episode(sequence & before))
    out = columns.per_episode(scope & (fates == _EPISODE_OUT)) > 0
    length[out] = prefix[out] = 0.0
    if metric.measure == "progress" and metric.average == "all":
        return prefix, length
    progress, some = _shares(prefix, length)
    success = ((prefix == length) & ~broken & (length > 0)).astype(np.float64)
    some[columns.per_episode(failed) > 0] = 1.0  # an episode that counts 0 counts, even if no other step of it does
    return {"progress": progress, "success": success, "score": (progress + success) / 2}[metric.measure], some


def _shares(numerator: Floats, denominator: Floats) -> tuple[Floats, Floats]:
    """Each episode's own ratio, and 1 for each that has one."""
    some = denominator > 0
    return np.divide(numerator, denominator, out=np.zeros_like(numerator), where=some), some.astype(np.float64)


def _cells(metric: Metric, columns: RunColumns, rows: NDArray[np.intp], numerator: Floats, denominator: Floats) -> Terms:
    """Sums by cell of steps, or of episodes by their first ``rows``; one without a key is in no cell."""
    labels = [[values[row] for row in rows.tolist()] for values in map(columns.labels, metric.keys)]
    cell_of: dict[tuple[str, ...], int] = {}
    cells = np.array(
        [cell_of.setdefault(each, len(cell_of)) if all(each) else -1 for each in zip(*labels, strict=True)], dtype=np.intp
    )
    inside = cells >= 0
    sums = np.zeros((2, len(columns.episodes), max(1, len(cell_of))))
    for total, values in zip(sums, (numerator, denominator), strict=True):
        np.add.at(total, (columns.episode[rows[inside]], cells[inside]), values[inside])
    filled = sums[1].sum(axis=0) > 0
    if filled.any():
        sums = sums[:, :, filled]
    return Terms(sums[0], sums[1], mean_of_cells if metric.average == "cells" else by_size)


def _total(metric: Metric, made: Terms) -> tuple[float | None, float, int]:
    """The metric, the sum that it is an average of, and the number of addends."""
    numerator, denominator = _sums(made.numerator), _sums(made.denominator)
    if not sum(denominator):
        return None, 0.0, 0
    value = float(made.combine(np.array([numerator]), np.array([denominator]))[0])
    if metric.average in _OVER_CELLS:
        return value, math.fsum(a / b for a, b in zip(numerator, denominator, strict=True)), len(denominator)
    return value, numerator[0], round(denominator[0])


def _sums(values: Floats) -> list[float]:
    """Sums over episodes, exactly rounded, so that they do not depend on the episodes' order."""
    columns: Iterable[list[float]] = values.T.tolist()
    return [math.fsum(column) for column in columns]

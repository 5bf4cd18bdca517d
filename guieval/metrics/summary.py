"""All metrics of a run by name, in the order in which every command shows them, as one frozen value that goes into
``metrics.json``.

Exact match over all planned steps comes first, under that name; what drops steps has another name. Metrics that a protocol's
source leads with are a block of their own. How metrics are shown is :mod:`guieval.reports`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, combinations
from statistics import median
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pydantic import model_validator

from guieval.actions import ActionType, Frozen
from guieval.errors import UsageError
from guieval.evaluation.protocol import EXACT_MATCH, PROGRESS, SHARED, SUCCESS_RATE, TYPE_MATCH, FailurePolicy, Metric, Protocol
from guieval.history.modes import StopPolicy
from guieval.metrics.breakdown import BreakdownCell, by_action, by_groups
from guieval.metrics.claims import of_steps
from guieval.metrics.columns import NOT_RUN, TYPES, End, Judged, RunColumns
from guieval.metrics.measured import THOUSANDTHS, Measured, share_of
from guieval.metrics.protocol_metric import ProtocolMetric
from guieval.metrics.registry import UserMetric, registered
from guieval.metrics.repeats import measured, over_repeats

COVERAGE_NEEDED = 0.95
"""Share of steps that must lie inside both action spaces for covered metrics to be reported (GUIEvalKit paper, 3.3.1)."""
_COVERED = FailurePolicy(unparseable="left-out", unsupported="left-out", missing="left-out", outside="left-out")
WITHOUT_OPEN = " without OPEN"
"""The ending of the names of metrics that skip steps whose reference action is OPEN, as the GUIEvalKit paper does (4.1)."""
State: TypeAlias = Literal["finished", "stopped", "never answered"]
_SOP = (replace(PROGRESS, name="PG"), replace(SUCCESS_RATE, name="TSR"), Metric("score", "score"))


class Verdicts(Frozen):
    """The number of planned steps that ended in each way; the seven counts add up to ``planned``.

    ``not_reached`` is by design (the mode ends an episode at its first mismatch). ``infrastructure_failure`` (a request
    without an answer) and ``not_run`` (no record: the run stopped, or an earlier step of the episode failed; or a fault in the
    adapter's code) are missing.
    """

    right: int
    wrong: int
    unparseable: int
    unsupported: int
    infrastructure_failure: int
    not_reached: int
    not_run: int
    planned: int

    @model_validator(mode="after")
    def _adds_up(self) -> Verdicts:
        if self.measured + self.unmeasured + self.not_reached != self.planned:
            raise ValueError(f"the counts do not add up to {self.planned} planned steps")
        return self

    @property
    def measured(self) -> int:
        """Steps that were answered and scored."""
        return self.right + self.wrong + self.unparseable + self.unsupported

    @property
    def unmeasured(self) -> int:
        """Steps that should have been answered and were not."""
        return self.infrastructure_failure + self.not_run

    @property
    def state(self) -> State:
        """How far the steps came; whether a process still works on them is not known here."""
        return "finished" if not self.unmeasured else "stopped" if self.measured else "never answered"


@dataclass(frozen=True)
class GroupTable:
    """Type match and exact match by one key of ``task.groups``, or by each pair of values of two keys.

    A step without one of the keys is in no cell. The means are over cells, each weighing the same however many steps it has,
    so their ``n`` is the number of cells.
    """

    keys: tuple[str, ...]
    cells: tuple[BreakdownCell, ...]
    mean_type_match: Measured
    mean_exact_match: Measured


class RunSummary(Frozen):
    """The metrics of a run over its planned episodes, each the sequence of its steps that count.

    ``metrics``: by name, over all steps that the mode reaches unless the name says otherwise. A response that cannot be parsed
    or expressed is a mismatch, and so is a missing step. ``coverage`` is the share of measured predictions that lie in both the
    model's and the benchmark's action space; the covered metrics are over those steps only, and may be reported when
    :attr:`coverage_ok` (GUIEvalKit paper, 3.3.1). The prefix of an episode is its steps before the first one that is not exact:
    ``progress`` is the mean over episodes of prefix / length (AgentCPM-GUI, CoAT), ``step-weighted progress`` the sum of
    prefixes / the sum of lengths (GUIEvalKit), ``success rate`` the share of episodes that are prefix throughout. ``PG``,
    ``TSR`` and ``score`` (UI-S1 paper, appendix C) are of modes that stop at the first mismatch. Episode metrics without
    OPEN are absent if the references of steps that were not reached are not known.

    ``own``: those of the protocol's source, under its names. ``further``: those of :func:`guieval.metric`. ``unplanned`` counts
    recorded steps outside the plan, which enter no metric, ``left_out`` rows of a predictions file with its own steps whose
    answer cannot be read. ``by_action_type`` (by the reference's type) has the steps that the mode reaches, run or not, as
    far as their types are known, and ``groups`` those whose labels are known.
    """

    mode: str
    stop: StopPolicy
    protocol: str
    episodes: int
    verdicts: Verdicts
    incomplete_episodes: int
    unplanned: int
    left_out: int = 0
    metrics: dict[str, Measured]
    own: dict[str, Measured]
    further: dict[str, Measured]
    by_action_type: dict[str, BreakdownCell]
    groups: tuple[GroupTable, ...]

    @cached_property
    def all_metrics(self) -> Mapping[str, Measured]:
        return {**self.metrics, **self.own, **self.further}

    @property
    def exact_match(self) -> Measured:
        return self.metrics[EXACT_MATCH.name]

    @property
    def type_match(self) -> Measured:
        return self.metrics[TYPE_MATCH.name]

    @property
    def success_rate(self) -> Measured:
        return self.metrics[SUCCESS_RATE.name]

    @property
    def progress(self) -> Measured:
        """Mean over episodes of the steps before the first mismatch / the length."""
        return self.metrics[PROGRESS.name]

    @property
    def coverage(self) -> Measured:
        """Share of measured predictions in both action spaces."""
        return self.metrics["coverage"]

    @property
    def coverage_ok(self) -> bool:
        return self.coverage.value is not None and self.coverage.value >= COVERAGE_NEEDED

    @property
    def incomplete(self) -> int:
        return self.verdicts.unmeasured

    @property
    def state(self) -> State:
        return self.verdicts.state

    @property
    def complete(self) -> bool:
        return not self.verdicts.unmeasured


def summarise(columns: RunColumns, protocol: Protocol, *, intervals: bool = True, users: bool = True) -> RunSummary:
    """The metrics of a run under a protocol that judged it; without ``intervals`` in a fraction of the time.

    ``users``: also the metrics of :func:`guieval.metric`, which online runs never have, since their steps have no references.

    Raises :class:`guieval.errors.UsageError` if a metric of the user fails, or has the name of one of the protocol's.
    """
    return summarise_repeats([columns], protocol, intervals=intervals, users=users)


def summarise_repeats(
    runs: Sequence[RunColumns], protocol: Protocol, *, intervals: bool = True, users: bool = True
) -> RunSummary:
    """The summary of runs that are repeats: metrics are means over them (:mod:`guieval.metrics.repeats`), counts are sums.

    Raises as :func:`summarise`.
    """
    columns = runs[0]
    scored = [(run, run.judged[protocol.name]) for run in runs]
    own = {
        metric.name: measured(ProtocolMetric(metric, protocol.failure), scored, intervals=intervals)
        for metric in protocol.metrics
        if metric not in SHARED
    }
    defined = [dict(_metrics(*run)) for run in scored]
    metrics = {
        name: over_repeats([known for of_run in defined if isinstance(known := of_run.get(name), Measured)])
        if isinstance(each, Measured)
        else measured(each, [run for run, of_run in zip(scored, defined, strict=True) if name in of_run], intervals=intervals)
        for name, each in defined[0].items()
    }
    wanted = registered() if users and not protocol.judges_outcomes else {}
    further = {name: measured(each, scored, intervals=intervals) for name, each in wanted.items()}
    if taken := further.keys() & (own.keys() | metrics.keys()):
        raise UsageError(f"your metric {min(taken)!r} has the name of one of {protocol.name}; give it another")
    return RunSummary(
        mode=columns.mode,
        stop=columns.stop,
        protocol=protocol.name,
        episodes=sum(len(run.episodes) for run in runs),
        verdicts=Verdicts(planned=sum(map(len, runs)), **_summed([each.counts for _, each in scored])),
        incomplete_episodes=sum(int((run.per_episode(each.unmeasured) > 0).sum()) for run, each in scored),
        unplanned=sum(run.unplanned for run in runs),
        left_out=sum(run.left_out for run in runs),
        metrics={name: value for name, value in metrics.items() if name not in own},
        own=own,
        further=further,
        by_action_type={cell.labels[0]: cell for cell in _averaged([by_action(*run) for run in scored])},
        groups=tuple(_group_tables(scored)),
    )


def _metrics(columns: RunColumns, judged: Judged) -> Iterator[tuple[str, ProtocolMetric | UserMetric | Measured]]:
    """By name what is to be measured, or was: exact match first; in modes that stop, UI-S1's; without OPEN steps if there may
    be any; coverage; false claims of the end; what is no score."""

    opens = columns.reference_type == TYPES.index("OPEN")
    ways: list[tuple[str, frozenset[ActionType]]] = [("", frozenset())]
    ways += [(WITHOUT_OPEN, frozenset({"OPEN"}))] * bool((opens | (columns.reference_type < 0)).any())
    for ending, without in ways:
        for metric in (*SHARED, *(_SOP if columns.stop == "first-mismatch" and not ending else ())):
            skips = ProtocolMetric(replace(metric, without=without))
            if not skips.cannot_tell(columns, judged):
                yield metric.name + ending, skips
    for ending, without in ways:
        counted = judged.measured & ~opens if without else judged.measured
        yield f"coverage{ending}", share_of(int((columns.covered & counted).sum()), int(counted.sum()), "answered steps")
        for metric in (EXACT_MATCH, TYPE_MATCH):
            yield f"covered {metric.name}{ending}", ProtocolMetric(replace(metric, without=without), _COVERED)
    yield from ((metric.name, metric) for metric in of_steps(columns, judged))
    yield from _diagnostics(columns, judged)


def _diagnostics(columns: RunColumns, judged: Judged) -> Iterator[tuple[str, Measured]]:
    """Numbers that help to understand a run but are not scores; tokens are as reported by the server, over all samples."""

    def known(values: NDArray[np.float64], counted: NDArray[np.bool_]) -> list[float]:
        here: list[float] = values[counted & np.isfinite(values)].tolist()
        return here

    clicks = judged.measured & (columns.reference_type == TYPES.index("CLICK"))
    distances, texts = known(judged.distance, clicks), known(judged.similarity, judged.measured)
    middle = median(distances) if distances else None
    yield "median click distance", Measured(middle, len(distances), "measured clicks", unit=THOUSANDTHS, better="less")
    yield "mean text similarity", Measured(_mean(texts), len(texts), "measured texts")
    if columns.seconds is not None:
        seconds = known(columns.seconds, judged.measured)
        yield "mean seconds to answer", Measured(_mean(seconds), len(seconds), "answered steps", unit="s", better="less")
    for name, tokens in (("prompt tokens", columns.prompt_tokens), ("completion tokens", columns.completion_tokens)):
        if tokens is not None:
            reported = tokens[judged.reached & (judged.end != NOT_RUN) & (tokens >= 0)]
            total = int(reported.sum()) if len(reported) else None
            yield name, Measured(total, len(reported), "steps with known tokens", unit="tokens", better=None)


def _summed(counts: Sequence[Mapping[End, int]]) -> dict[str, int]:
    return {end: sum(each[end] for each in counts) for end in counts[0]}


def _averaged(cells: Sequence[Sequence[BreakdownCell]]) -> list[BreakdownCell]:
    """The cells of repeats, each the mean over those that have it."""
    found: dict[tuple[str, ...], list[BreakdownCell]] = {}
    for cell in chain.from_iterable(cells):
        found.setdefault(cell.labels, []).append(cell)
    return [
        BreakdownCell(labels, *(over_repeats([getattr(cell, match) for cell in of]) for match in ("type_match", "exact_match")))
        for labels, of in found.items()
    ]


def _group_tables(runs: Sequence[tuple[RunColumns, Judged]]) -> Iterator[GroupTable]:
    names = sorted(runs[0][0].groups)
    for keys in [*combinations(names, 1), *combinations(names, 2)]:
        if found := _averaged([by_groups(*run, keys) for run in runs]):
            means = ([getattr(cell, match) for cell in found] for match in ("type_match", "exact_match"))
            typed, exact = map(_mean_of_cells, means)
            yield GroupTable(keys=keys, cells=tuple(found), mean_type_match=typed, mean_exact_match=exact)


def _mean_of_cells(shares: list[Measured]) -> Measured:
    values = [each.value or 0.0 for each in shares]
    upper = [value if each.upper is None else each.upper for value, each in zip(values, shares, strict=True)]
    return Measured(_mean(values), len(values), "cells", upper=_mean(upper) if upper != values else None)


def _mean(values: list[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None

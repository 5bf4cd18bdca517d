"""Turns a stream of records into a run's figures while keeping only a few numbers for each step.

Denominators come from the plan (what the run set out to do), never from what happens to be recorded, so a server that dies
cannot raise a score. Steps are added in any order, and figures do not depend on it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations
from statistics import median
from sys import intern
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from guieval.actions import ActionSpace, ActionType
from guieval.evaluation.protocol import EXACT_MATCH, PROGRESS, SUCCESS_RATE, TYPE_MATCH, FailurePolicy, Figure
from guieval.history.modes import Mode
from guieval.metrics.columns import ENDS, FAILED, NOT_RUN, TYPES, Judged, RunColumns, stopped, total_known
from guieval.metrics.figures import FigureValue, cannot_tell, compute
from guieval.metrics.summary import (
    COVERAGE_NEEDED,
    Average,
    Cell,
    Diagnostics,
    GroupTable,
    Rate,
    RunSummary,
    Scores,
    Sop,
    Total,
    Verdicts,
    WithoutOpen,
)
from guieval.steps import EpisodeKey, Plan, ReferenceTypes, StepOutcome, StepRecord

_OPEN: frozenset[ActionType] = frozenset({"OPEN"})
_COVERED = FailurePolicy(unparseable="left-out", unsupported="left-out", missing="left-out", outside="left-out")
_COVERED_TYPE, _COVERED_EXACT = replace(TYPE_MATCH, failure=_COVERED), replace(EXACT_MATCH, failure=_COVERED)
_WEIGHTED = replace(PROGRESS, average="all")
SUMMARY_FIGURES: dict[str, Figure] = {
    "type_match": TYPE_MATCH,
    "exact_match": EXACT_MATCH,
    "without_open.type_match": replace(TYPE_MATCH, without=_OPEN),
    "without_open.exact_match": replace(EXACT_MATCH, without=_OPEN),
    "covered_type_match": _COVERED_TYPE,
    "covered_exact_match": _COVERED_EXACT,
    "without_open.covered_exact_match": replace(_COVERED_EXACT, without=_OPEN),
    "progress_episode_mean": PROGRESS,
    "progress_step_weighted": _WEIGHTED,
    "success_rate": SUCCESS_RATE,
    "sop.pg": PROGRESS,
    "sop.tsr": SUCCESS_RATE,
    "sop.score": Figure("score", "score", average="episodes"),
}
"""The figures of a :class:`guieval.metrics.summary.RunSummary` that have an interval, by their dotted names there."""
_Labels: TypeAlias = tuple[tuple[str, str], ...]
_CODES = {name: code for code, name in enumerate(TYPES)}
_ROW = np.dtype(
    [
        ("end", "i1"),
        ("type_match", "?"),
        ("exact_match", "?"),
        ("covered", "?"),
        ("finished", "?"),
        ("reference_type", "i1"),
        ("labels", "<i4"),
        ("distance", "<f8"),
        ("similarity", "<f8"),
        ("seconds", "<f8"),
        ("prompt_tokens", "<i8"),
        ("completion_tokens", "<i8"),
    ]
)
"""A step for the figures: 50 bytes. Unknown numbers are NaN, unknown tokens -1; ``labels`` numbers distinct ones."""
_NO_RECORD = (NOT_RUN, False, False, False, False, -1, 0, math.nan, math.nan, math.nan, -1, -1)


class RunTally:
    """The records of one run, cut down to what its figures need: about 170 bytes a step in episodes of AndroidControl's length.

    ``mode`` decides whether, and at which, mismatch an episode ends; the two action spaces decide coverage. ``types`` are the
    reference types of planned steps, also of those without a record; they are read by :meth:`summary`. Not thread-safe.
    """

    def __init__(
        self, mode: Mode, model_space: ActionSpace, benchmark_space: ActionSpace, types: ReferenceTypes | None = None
    ) -> None:
        self._mode = mode
        self._types: ReferenceTypes = {} if types is None else types
        self._spaces = (model_space, benchmark_space)
        self._episodes: dict[EpisodeKey, dict[int, int]] = {}
        self._labels: dict[_Labels, int] = {(): 0}
        self._rows = bytearray(np.array(_NO_RECORD, _ROW).tobytes())

    def __len__(self) -> int:
        """The number of different steps that were added."""
        return len(self._rows) // _ROW.itemsize - 1

    def add(self, record: StepRecord, outcome: StepOutcome | None = None) -> None:
        """Take in one record, scored by its first sample.

        ``outcome`` replaces the one stored with that sample, for scoring again under another protocol. Of several records
        of one step the last finished one counts; a failed request never replaces an answer.
        """
        row = self._row(record, outcome or record.sample.outcome)
        steps = self._episodes.get(record.task.episode_key)
        if steps is None:
            benchmark, subset, episode_id = record.task.episode_key
            steps = self._episodes[EpisodeKey(intern(benchmark), intern(subset), episode_id)] = {}
        place = steps.setdefault(record.task.step_index, len(self) + 1) * _ROW.itemsize
        if place < len(self._rows):
            known = np.frombuffer(self._rows, _ROW, 1, place)[0]
            standing = bool(known["end"] != FAILED), bool(known["finished"])
            if (bool(row["end"] != FAILED), bool(row["finished"])) < standing:
                return
        self._rows[place : place + _ROW.itemsize] = row.tobytes()

    def _row(self, record: StepRecord, outcome: StepOutcome) -> NDArray[np.void]:
        sample, task = record.sample, record.task
        measured = outcome.verdict != "infrastructure_failure"
        expressed = sample.action is not None and outcome.verdict in ("right", "wrong")
        labels = tuple(sorted(task.groups.items()))
        numbers = (outcome.distance, outcome.text_similarity, sample.seconds)
        paid = [usage for one in record.billed if (usage := one.paid) is not None]
        values = (
            ENDS.index(outcome.verdict),
            measured and outcome.type_match,
            measured and outcome.exact_match,
            expressed and all(sample.action in space for space in self._spaces if sample.action is not None),
            record.finished,
            _CODES[task.action.type],
            self._labels.setdefault(labels, len(self._labels)),
            *(math.nan if number is None else number for number in numbers),
            total_known(usage.prompt_tokens for usage in paid),
            total_known(usage.completion_tokens for usage in paid),
        )
        return np.array(values, _ROW)

    def summary(self, plan: Plan, within: Plan | None = None, left_out: int = 0) -> RunSummary:
        """The figures over the planned steps of each planned episode; an episode is the sequence of these steps.

        ``within`` is the plan of the whole run if ``plan`` is only a part of it, so records of the rest are not reported as
        unplanned. ``left_out`` is copied into the summary.

        In a mode that stops at the first mismatch, steps after an episode's first measured step that is not exact are not
        reached, even if a record exists (as when a run is scored again under another protocol). Where mismatches are patched,
        these are the steps after the first mismatch for which no patch is left. A patched step is a mismatch in every figure,
        so progress and success depend on the steps before the first one. Raises ``ValueError`` for an episode without steps.
        """
        for key, counted in plan.items():
            if not counted:
                raise ValueError(f"episode {key} is planned without steps")
        numbers = [self._episodes.get(key, {}).get(index, 0) for key, counted in plan.items() for index in counted]
        rows = np.frombuffer(self._rows, _ROW)[np.array(numbers, dtype=np.intp)]
        columns, judged = self._columns(plan, rows)
        recorded = judged.reached & (rows["end"] != NOT_RUN)
        flags = np.stack([judged.reached, judged.unmeasured, judged.type_match, judged.exact_match], axis=1).astype(np.int64)
        by_type = {name: flags[judged.reached & (columns.reference_type == code)].sum(axis=0) for name, code in _CODES.items()}
        by_labels = np.zeros((len(self._labels), flags.shape[1]), dtype=np.int64)
        np.add.at(by_labels, rows["labels"][recorded], flags[recorded])
        figures = _figures(columns, judged)
        verdicts = Verdicts(planned=len(columns), **judged.counts)
        return RunSummary(
            **figures,
            mode=self._mode.label,
            stop=self._mode.stop,
            episodes=len(plan),
            verdicts=verdicts,
            complete=verdicts.unmeasured == 0,
            incomplete=verdicts.unmeasured,
            incomplete_episodes=int((columns.per_episode(judged.unmeasured) > 0).sum()),
            unplanned=self._outside(plan if within is None else within),
            left_out=left_out,
            sop=_sop(figures["progress_episode_mean"], figures["success_rate"]) if columns.stop == "first-mismatch" else None,
            without_open=WithoutOpen(**_figures(columns, judged, _OPEN)),
            by_action_type={name: _scores(counts) for name, counts in by_type.items() if counts[0]},
            groups=tuple(_group_tables(dict(zip(self._labels, by_labels, strict=True)))),
            diagnostics=_diagnostics(rows, recorded, judged.measured),
        )

    def _columns(self, plan: Plan, rows: NDArray[np.void]) -> tuple[RunColumns, Judged]:
        """The planned steps as far as :func:`guieval.metrics.figures.compute` reads them; ``rows``: (n,) their records."""
        n = len(rows)
        episode = np.repeat(np.arange(len(plan), dtype=np.int32), [len(counted) for counted in plan.values()])
        starts = np.searchsorted(episode, np.arange(len(plan)))
        samples = np.ones(n, dtype=np.int16)
        judged = Judged(
            protocol="",
            end=rows["end"],
            type_match=rows["type_match"],
            exact_match=rows["exact_match"],
            distance=rows["distance"],
            similarity=rows["similarity"],
            exact_samples=samples,
            vote=rows["exact_match"],
        )
        judged = stopped(judged, episode, starts, self._mode.mismatches)
        planned = (self._types.get(key, {}).get(index, "") for key, counted in plan.items() for index in counted)
        types = np.fromiter((_CODES.get(name, -1) for name in planned), dtype=np.int8, count=n)
        known = judged.reached & (rows["end"] != NOT_RUN)
        columns = RunColumns(
            mode=self._mode.label,
            stop=self._mode.stop,
            episodes=tuple(plan),
            episode=episode,
            step_index=np.array([index for counted in plan.values() for index in counted], dtype=np.int32),
            length=np.zeros(n, dtype=np.int32),
            reference_type=np.where(known, rows["reference_type"], types),
            predicted_type=np.full(n, -1, dtype=np.int8),
            covered=rows["covered"],
            samples=samples,
            groups={},
            judged={judged.protocol: judged},
        )
        return columns, judged

    def _outside(self, plan: Plan) -> int:
        planned = (sum(index in counted for index in self._episodes.get(key, ())) for key, counted in plan.items())
        return len(self) - sum(planned)


def _figures(columns: RunColumns, judged: Judged, without: frozenset[ActionType] = frozenset()) -> dict[str, Any]:
    """The figures by their names in a summary; those over episodes are ``None`` where the steps to skip are not known."""

    def value_of(figure: Figure) -> FigureValue:
        return compute(replace(figure, without=without), FailurePolicy(), columns, judged)

    type_match, progress = value_of(TYPE_MATCH), value_of(PROGRESS)
    covered_type, covered_exact = value_of(_COVERED_TYPE), value_of(_COVERED_EXACT)
    coverage = _rate(covered_type.n, type_match.n - type_match.missing)
    known = not cannot_tell(replace(PROGRESS, without=without), columns, judged)
    return {
        "type_match": _bounded(type_match),
        "exact_match": _bounded(value_of(EXACT_MATCH)),
        "coverage": coverage,
        "coverage_ok": coverage.value is not None and coverage.value >= COVERAGE_NEEDED,
        "covered_type_match": _rate(round(covered_type.count), covered_type.n),
        "covered_exact_match": _rate(round(covered_exact.count), covered_exact.n),
        "progress_episode_mean": Average(value=progress.value, n=progress.n, upper=progress.upper) if known else None,
        "progress_step_weighted": _bounded(value_of(_WEIGHTED)) if known else None,
        "success_rate": _bounded(value_of(SUCCESS_RATE)) if known else None,
    }


def _bounded(value: FigureValue) -> Rate:
    return Rate(value=value.value, count=round(value.count), n=value.n, upper=value.upper)


def _rate(count: int, n: int, missing: int = 0) -> Rate:
    """A rate whose upper bound counts ``missing`` further ones."""
    if n == 0:
        return Rate(value=None, count=count, n=0)
    return Rate(value=count / n, count=count, n=n, upper=(count + missing) / n if missing else None)


def _mean(values: list[float], upper: list[float] | None = None) -> Average:
    n = len(values)
    if n == 0:
        return Average(value=None, n=0)
    bound = math.fsum(upper) / n if upper is not None and upper != values else None
    return Average(value=math.fsum(values) / n, n=n, upper=bound)


def _sop(pg: Average, tsr: Rate) -> Sop:
    if pg.value is None or tsr.value is None:
        return Sop(pg=pg, tsr=tsr, score=Average(value=None, n=pg.n))
    value = (pg.value + tsr.value) / 2
    upper = ((pg.value if pg.upper is None else pg.upper) + (tsr.value if tsr.upper is None else tsr.upper)) / 2
    return Sop(pg=pg, tsr=tsr, score=Average(value=value, n=pg.n, upper=None if upper == value else upper))


def _scores(counts: NDArray[np.int64]) -> Scores:
    """Of counted steps, unmeasured ones, type matches and exact matches."""
    n, unmeasured, type_matches, exact_matches = counts.tolist()
    return Scores(n=n, type_match=_rate(type_matches, n, unmeasured), exact_match=_rate(exact_matches, n, unmeasured))


def _group_tables(counts: dict[_Labels, NDArray[np.int64]]) -> Iterator[GroupTable]:
    """A table for each key, then for each pair of keys; ``counts`` are :func:`_scores`' of the steps with the same labels."""
    counts = {labels: own for labels, own in counts.items() if own[0]}
    names = sorted({key for labels in counts for key, _ in labels})
    for keys in [*combinations(names, 1), *combinations(names, 2)]:
        sums: dict[tuple[str, ...], NDArray[np.int64]] = {}
        for labels, own in counts.items():
            groups = dict(labels)
            if all(key in groups for key in keys):
                values = tuple(groups[key] for key in keys)
                sums[values] = sums.get(values, 0) + own
        cells = tuple(Cell(labels=values, scores=_scores(sums[values])) for values in sorted(sums))
        yield GroupTable(
            keys=keys,
            cells=cells,
            mean_type_match=_mean_of_rates([cell.scores.type_match for cell in cells]),
            mean_exact_match=_mean_of_rates([cell.scores.exact_match for cell in cells]),
        )


def _mean_of_rates(rates: list[Rate]) -> Average:
    values = [rate.count / rate.n for rate in rates]
    upper = [value if rate.upper is None else rate.upper for value, rate in zip(values, rates, strict=True)]
    return _mean(values, upper)


def _diagnostics(rows: NDArray[np.void], recorded: NDArray[np.bool_], measured: NDArray[np.bool_]) -> Diagnostics:
    def known(name: str, counted: NDArray[np.bool_]) -> list[float]:
        values: list[float] = rows[name][counted].tolist()
        return [value for value in values if math.isfinite(value)]

    def total(name: str) -> Total:
        values = rows[name][recorded]
        tokens = values[values >= 0].tolist()
        return Total(value=sum(tokens), n=len(tokens))

    distances = known("distance", measured & (rows["reference_type"] == _CODES["CLICK"]))
    return Diagnostics(
        click_distance_median=Average(value=median(distances) if distances else None, n=len(distances)),
        text_similarity_mean=_mean(known("similarity", measured)),
        seconds_mean=_mean(known("seconds", measured)),
        prompt_tokens=total("prompt_tokens"),
        completion_tokens=total("completion_tokens"),
    )

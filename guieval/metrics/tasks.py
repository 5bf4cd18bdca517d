"""The metrics of online runs: tasks as rows, with sums over their repetitions, as columns like those of steps.

Success rate, progress, pass@n and pass^n have intervals over tasks, since repetitions of one task are not independent; if
repetitions have no outcome, these reach from that with all of them failed to that with all successful.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from guieval.actions import ActionSpace, Frozen
from guieval.errors import UsageError
from guieval.evaluation import ActionEvaluator
from guieval.evaluation.protocol import PROGRESS, SUCCESS_RATE, Protocol
from guieval.history.modes import Mode
from guieval.metrics.breakdown import rows_by
from guieval.metrics.claims import CLAIMS, Claim
from guieval.metrics.columns import FAILED, NOT_RUN, RIGHT, UNPARSEABLE, WRONG, Judged, RunColumns, put_by_model, total_known
from guieval.metrics.intervals import Floats, Terms, pooled, quoted, spanning
from guieval.metrics.measured import SHARE, Better, Measured, mean_over_episodes
from guieval.metrics.repeats import measured, over_repeats
from guieval.metrics.sampling import pass_measured
from guieval.metrics.summary import State, Verdicts
from guieval.steps import (
    ENDS,
    VERDICTS,
    Ended,
    EpisodeKey,
    OnlineTask,
    Outcome,
    Plan,
    ReferenceTypes,
    Repetition,
    StepKey,
    StepOutcome,
    TaskRecord,
    faulty,
)
from guieval.wings import offered, offers

_JUDGED = "judged repetitions"
_ASKED = "judged repetitions of tasks to be stopped"


def _ended_by(name: Ended) -> Callable[[Outcome], float]:
    return lambda outcome: outcome.ended == name


def _claiming(claim: Claim, *, wrongly: bool = False) -> Callable[[Outcome], float]:
    return lambda outcome: (
        outcome.stopped == claim.status and not outcome.score.unjudged and not (wrongly and outcome.score.success)
    )


def _counted_as(name: str) -> Callable[[Outcome], float]:
    return lambda outcome: outcome.score.counts.get(name, 0.0)


_SUMS: Mapping[str, Callable[[Outcome], float]] = {
    "judged": lambda outcome: not outcome.score.unjudged,
    "success": lambda outcome: outcome.score.success,
    "progress": lambda outcome: outcome.score.progress,
    "to be stopped": lambda outcome: outcome.score.needs_stop,
    "score with a stop": lambda outcome: outcome.score.progress * (outcome.score.needs_stop and outcome.stopped is not None),
    "score above 0": lambda outcome: outcome.score.progress > 0 and outcome.score.needs_stop,
    "full score with a stop": lambda outcome: (
        outcome.score.progress == 1 and outcome.score.needs_stop and outcome.stopped is not None
    ),
    "with steps": lambda outcome: outcome.steps is not None,
    "steps": lambda outcome: outcome.steps or 0,
    "successes with steps": lambda outcome: outcome.steps is not None and outcome.ended == "success",
    "steps of successes": lambda outcome: (outcome.steps or 0) * (outcome.ended == "success"),
    **{claim.of: _claiming(claim) for claim in CLAIMS},
    **{claim.metric: _claiming(claim, wrongly=True) for claim in CLAIMS},
    "side effects": lambda outcome: bool(outcome.score.side_effects),
    "unparseable": lambda outcome: outcome.unparseable,
    "unsupported": lambda outcome: outcome.unsupported,
    **{f"ended: {name}": _ended_by(name) for name in ENDS},
}
"""What is summed over the outcomes of every task."""


@cache
def _sums() -> Mapping[str, Callable[[Outcome], float]]:
    """The same with what metrics of the wings count: the columns of :attr:`RunColumns.outcomes`."""
    read = {name for metric in task_metrics() for name in (metric.above, metric.below) if name is not None}
    return {**_SUMS, **{name: _counted_as(name) for name in sorted(read - _SUMS.keys())}}


@cache
def _place(name: str) -> int:
    return [*_sums()].index(name)


class TaskLedger:
    """The planned tasks as rows, and their outcomes; of several records of a task the last one with the most outcomes counts.

    It is to records of tasks what :class:`guieval.metrics.ledger.Ledger` is to those of steps, with the same methods. Raises
    :class:`UsageError` for a protocol other than the environment's.
    """

    def __init__(
        self,
        plan: Plan,
        evaluators: Sequence[ActionEvaluator],
        spaces: Sequence[ActionSpace],
        mode: Mode,
        lengths: Mapping[EpisodeKey, int] | None = None,
    ) -> None:
        if other := next((each.protocol.name for each in evaluators if not each.protocol.judges_outcomes), None):
            raise UsageError(f"an online run is scored by its environment: leave out the protocol {other!r}")
        self.evaluators = tuple(evaluators)
        self.outside: set[StepKey] = set()
        self._plan, self._mode, self._added = dict(plan), mode, 0
        self._found: dict[EpisodeKey, tuple[int, OnlineTask, Sequence[Repetition]]] = {}

    def __len__(self) -> int:
        """The number of different tasks with a record."""
        return len(self._found) + len(self.outside)

    def expect(self, types: ReferenceTypes) -> None:
        """Tasks have no reference actions."""

    def label(self, task: OnlineTask) -> None:
        """A task without a record has no labels."""

    def take(self, record: TaskRecord) -> None:
        self.add(record.task, record.samples)

    def add(self, task: OnlineTask, samples: Sequence[Repetition], judged: StepOutcome | None = None) -> None:
        number, key = self._added, task.episode_key
        self._added += 1
        if key not in self._plan:
            self.outside.add(task.key)
        elif key not in self._found or _judged(samples) >= _judged(self._found[key][2]):
            self._found[key] = number, task, samples

    def counts(self, number: int, task: OnlineTask) -> bool:
        """Whether the record that was added as the ``number``-th, from 0, is the one that counts for its task."""
        found = self._found.get(task.episode_key)
        return found is not None and found[0] == number

    def outcome(self, protocol: str, task: OnlineTask, sample: Repetition) -> StepOutcome:
        """The score of one repetition, with the environment's reason."""
        if sample.outcome is None:
            reason = "no outcome" if sample.error is None else f"{sample.error.stage}: {sample.error.message}"
        else:
            reason = sample.outcome.score.reason or sample.outcome.ended
        right = sample.verdict == "right"
        return StepOutcome(verdict=sample.verdict, type_match=right, exact_match=right, reason=reason)

    def recorded(self, plan: Plan) -> int:
        """How many tasks of a part of the plan have a record."""
        return sum(key in self._found for key in plan)

    def columns(self, plan: Plan | None = None, protocols: Sequence[str] | None = None, **about: Any) -> RunColumns:
        """The tasks of ``plan``, a part of the whole (``None``: all); ``about`` as of steps."""
        keys = list(self._plan if plan is None else plan)
        n = len(keys)
        found = [self._found.get(key) for key in keys]
        samples: list[Sequence[Repetition]] = [() if each is None else each[2] for each in found]
        groups = [{} if each is None else each[1].groups for each in found]
        sums = [[sum(map(value, _outcomes(each))) for value in _sums().values()] for each in samples]
        most = max([1, *(len(each) for _, _, each in self._found.values())])
        ended = [_ends(each) if each else [0] * NOT_RUN + [most] for each in samples]
        paid = [[usage for sample in each if (usage := sample.paid) is not None] for each in samples]
        by_model: dict[str, NDArray[np.int64]] = {}
        for row, each in enumerate(samples):
            put_by_model(by_model, row, n, (usage for sample in each for usage in sample.responses))
        first = [next(iter(_outcomes(each)), None) for each in samples]
        exact = np.array([outcome is not None and outcome.score.success for outcome in first], np.bool_)
        unknown = np.full(n, np.nan)
        judged = Judged(
            self.evaluators[0].protocol.name,
            np.array([_end(each, outcome) for each, outcome in zip(samples, first, strict=True)], np.int8),
            exact,
            exact,
            unknown,
            unknown,
            np.array([sum(outcome.score.success for outcome in _outcomes(each)) for each in samples], np.int16),
            exact,
        )
        return RunColumns(
            mode=self._mode.label,
            stop=self._mode.stop,
            episodes=tuple(keys),
            episode=np.arange(n, dtype=np.int32),
            step_index=np.zeros(n, np.int32),
            length=np.ones(n, np.int32),
            reference_type=np.full(n, -1, np.int8),
            predicted_type=np.full(n, -1, np.int8),
            covered=np.zeros(n, np.bool_),
            samples=np.array([*map(_judged, samples)], np.int16),
            drawn=np.array([*map(len, samples)], np.int16),
            prompt_tokens=np.array([total_known(usage.prompt_tokens for usage in each) for each in paid], np.int64),
            completion_tokens=np.array([total_known(usage.completion_tokens for usage in each) for each in paid], np.int64),
            tokens_by_model=by_model,
            seconds=np.array([math.nan if not each or each[0].seconds is None else each[0].seconds for each in samples]),
            groups={name: [own.get(name, "") for own in groups] for name in sorted({name for own in groups for name in own})},
            judged={judged.protocol: judged},
            outcomes=np.array(sums, np.float64).reshape(n, len(_sums())),
            ended=np.array(ended, np.int32).reshape(n, len(VERDICTS) + 2),
            unplanned=len(self.outside),
            **about,
        )


def _outcomes(samples: Sequence[Repetition]) -> list[Outcome]:
    return [sample.outcome for sample in samples if sample.outcome is not None]


def _judged(samples: Sequence[Repetition]) -> int:
    return sum(sample.answered for sample in samples)


def _ends(samples: Sequence[Repetition]) -> list[int]:
    """How the repetitions ended, in the order of :data:`guieval.metrics.columns.ENDS`."""
    counts = Counter(sample.verdict for sample in samples if not faulty(sample))
    return [*(counts[verdict] for verdict in VERDICTS), 0, sum(map(faulty, samples))]


def _end(samples: Sequence[Repetition], first: Outcome | None) -> int:
    if first is None:
        return NOT_RUN if all(map(faulty, samples)) else FAILED
    return {"right": RIGHT, "wrong": WRONG, "unparseable": UNPARSEABLE}[first.verdict]


@dataclass(frozen=True)
class TaskMetric:
    """A ratio of two sums over the outcomes of tasks, by their names; ``below`` is ``None`` for the number of outcomes.

    With ``spans`` its interval over tasks reaches from that with all repetitions without an outcome wrong to all right.
    """

    name: str
    meaning: str
    above: str
    of: str
    below: str | None = None
    unit: str = SHARE
    better: Better | None = "more"
    spans: bool = False
    of_episodes = False

    def measure(self, columns: RunColumns, judged: Judged, *, intervals: bool = True) -> Measured:
        above, below = self._sums(columns)
        count, n = float(above.sum()), float(below.sum())
        if self.spans:
            lost = _lost(columns)
            within = [quoted(*each) for each in self.possible(columns, judged)] if intervals and n else []
            found = mean_over_episodes(above, below, share=True)
            missing = int(lost.sum()) if self.name == SUCCESS_RATE.name else 0
            return replace(found, of=self.of, interval=spanning(within), missing=missing)
        if self.unit == SHARE:
            found = mean_over_episodes(above, below, share=True)
            interval = found.interval if intervals else None
            return replace(found, count=round(count), of=self.of, better=self.better, interval=interval)
        return Measured(count / n if n else None, round(n), self.of, count=round(count), unit=self.unit, better=self.better)

    def terms(self, columns: RunColumns, judged: Judged) -> Terms:
        """Its sums over the run's e tasks, (e, 1) each."""
        above, below = self._sums(columns)
        return Terms(above[:, None], below[:, None], pooled)

    def possible(self, columns: RunColumns, judged: Judged) -> list[Terms]:
        """The sums that an interval reaches over: with all repetitions without an outcome wrong, and right."""
        above, below = self._sums(columns)
        lost = _lost(columns) if self.spans else np.zeros_like(below)
        return [Terms(each[:, None], (below + lost)[:, None], pooled) for each in (above, above + lost)]

    def _sums(self, columns: RunColumns) -> tuple[Floats, Floats]:
        """(e,) numerators and denominators."""
        below = columns.samples.astype(np.float64) if self.below is None else _sum(columns, self.below)
        return _sum(columns, self.above), below


SUCCESS = TaskMetric(SUCCESS_RATE.name, "share of the repetitions that are a success", "success", _JUDGED, "judged", spans=True)
_TASK_METRICS = (
    SUCCESS,
    TaskMetric(PROGRESS.name, "mean progress that the environment states", "progress", _JUDGED, "judged", spans=True),
    *(
        TaskMetric(name, meaning, name, _ASKED, "to be stopped", spans=True)
        for name, meaning in {
            "score with a stop": "mean progress, 0 without a stop: AndroidWorld's own rule (suite_utils.py at d9c569f)",
            "score above 0": "any progress, however the task ended: BlueLM-GUI's rule (AndroidWorld/agent.py at 7689eba)",
            "full score with a stop": "progress 1 and a stop: guieval's rule for AndroidWorld",
        }.items()
    ),
    *(
        TaskMetric(name, each.meaning, name, f"repetitions {each.of}", each.of, better="less")
        for each in CLAIMS
        for name in [each.metric]
    ),
    TaskMetric(
        *("with side effects", "repetitions with changes that nobody asked for", "side effects", _JUDGED, "judged"),
        better="less",
    ),
    TaskMetric("mean steps", "steps of a repetition", "steps", _JUDGED, "with steps", "steps", "less"),
    TaskMetric(
        "mean steps of successes",
        "steps of a success",
        "steps of successes",
        "successes",
        "successes with steps",
        unit="steps",
        better="less",
    ),
)
_AT_THE_END = (
    TaskMetric("unparseable responses", "responses without an action", "unparseable", "steps", "steps", better="less"),
    TaskMetric(
        "unsupported actions", "actions that the environment cannot carry out", "unsupported", "steps", "steps", better="less"
    ),
)
LEADING = tuple(metric for metric in _TASK_METRICS if metric.name in (SUCCESS_RATE.name, PROGRESS.name, "mean steps"))
"""Those that tables of several runs show."""


@cache
def task_metrics() -> tuple[TaskMetric, ...]:
    """The metrics of tasks, those of the wings among them; pass@n and pass^n are not, which exist only for n repetitions."""
    of_wings = (metric for name in offers("task metrics") for metric in offered("task metrics", name))
    return (*_TASK_METRICS, *of_wings, *_AT_THE_END)


def _sum(columns: RunColumns, name: str) -> Floats:
    """(n,) a sum over the outcomes of each task."""
    assert columns.outcomes is not None  # they are columns of tasks
    values: Floats = columns.outcomes[:, _place(name)]
    return values


def _lost(columns: RunColumns) -> Floats:
    """(n,) the repetitions of each task that have no outcome."""
    assert columns.ended is not None  # they are columns of tasks
    lost: Floats = columns.ended[:, [FAILED, NOT_RUN]].sum(axis=1).astype(np.float64)
    return lost


class TaskSummary(Frozen):
    """The metrics of an online run, over the repetitions with an outcome unless the name or the denominator says otherwise.

    ``metrics``: by name, success rate first, whose ``missing`` are the repetitions without an outcome. pass@n and pass^n are
    over tasks with n outcomes. ``groups``: the success rate by label and value.
    """

    mode: str
    protocol: str
    tasks: int
    repetitions: int
    judged: int
    failed: int
    not_run: int
    ended: dict[Ended, int]
    metrics: dict[str, Measured]
    groups: dict[str, dict[str, Measured]]
    verdicts: Verdicts
    """How the repetitions ended."""

    @property
    def all_metrics(self) -> Mapping[str, Measured]:
        return self.metrics

    @property
    def success(self) -> Measured:
        return self.metrics[SUCCESS_RATE.name]

    @property
    def state(self) -> State:
        return self.verdicts.state

    @property
    def complete(self) -> bool:
        return not self.success.missing


def summarise_tasks(
    runs: Sequence[RunColumns], protocol: Protocol, *, intervals: bool = True, users: bool = True
) -> TaskSummary:
    """The metrics of a run of tasks, or their means over runs that are repeats; metrics of the user are of steps."""
    columns, scored = runs[0], [(run, run.judged[protocol.name]) for run in runs]
    of_some = {"to be stopped", *_sums().keys() - _SUMS.keys()}
    shown = [each for each in task_metrics() if each.below not in of_some or any(_sum(run, each.below).any() for run in runs)]
    metrics = {metric.name: measured(metric, scored, intervals=intervals) for metric in shown}
    passed = [_passed(run) for run in runs]
    counts = [run.ends(judged) for run, judged in scored]
    ends = {end: sum(each[end] for each in counts) for end in counts[0]}
    first = (SUCCESS_RATE.name, PROGRESS.name)
    return TaskSummary(
        mode=columns.mode,
        protocol=protocol.name,
        tasks=len(columns),
        repetitions=columns.repetitions * len(runs),
        judged=sum(int(run.samples.sum()) for run in runs),
        failed=ends["infrastructure_failure"],
        not_run=sum(int((judged.end == NOT_RUN).sum()) for _, judged in scored),
        ended={name: sum(int(_sum(run, f"ended: {name}").sum()) for run in runs) for name in ENDS},
        metrics={name: metrics[name] for name in first} | _means(passed) | metrics,
        groups={
            name: _means([groups[name] for groups in found if name in groups])
            for found in [[_groups(*run) for run in scored]]
            for name in found[0]
        },
        verdicts=Verdicts(planned=sum(ends.values()), **ends),
    )


def _means(of_runs: Sequence[Mapping[str, Measured]]) -> dict[str, Measured]:
    """By name the means over repeats, without intervals over them."""
    return {name: over_repeats([each[name] for each in of_runs if name in each]) for name in of_runs[0]}


def _passed(columns: RunColumns) -> dict[str, Measured]:
    """Over the tasks whose repetitions all have an outcome; the intervals are over all tasks."""
    n = columns.repetitions
    lost, whole = n - columns.samples.astype(np.int64), columns.samples == n
    if n == 1 or not whole.any() or not _sum(columns, "judged").any():
        return {}
    right = _sum(columns, "success").astype(np.int64)
    sizes, every = np.full(len(whole), n), np.ones_like(whole)
    lucks: tuple[tuple[str, Literal["any", "all"]], ...] = (("pass@", "any"), ("pass^", "all"))
    found = {}
    for word, luck in lucks:
        measured = pass_measured(luck, sizes, right, n, whole, lambda values: values)
        possible = [pass_measured(luck, sizes, each, n, every, lambda values: values) for each in (right, right + lost)]
        interval = spanning([each.interval for each in possible])
        found[f"{word}{n}"] = replace(measured, interval=interval, of=f"tasks with {n} judged repetitions")
    return found


def _groups(columns: RunColumns, judged: Judged) -> dict[str, dict[str, Measured]]:
    found = {name: success_by(columns, judged, [name]) for name in columns.groups}
    return {name: {value: replace(each, missing=0) for (value,), each in by.items()} for name, by in found.items() if by}


def success_by(columns: RunColumns, judged: Judged, by: Sequence[str]) -> dict[tuple[str, ...], Measured]:
    """The success rate for each combination of the tasks' labels; a task counts under each of its tags or apps.

    Raises :class:`UsageError` for a label that the tasks do not have.
    """
    return {labels: SUCCESS.measure(columns.only(rows), judged) for labels, rows in rows_by(columns, by).items()}

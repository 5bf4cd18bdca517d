"""The metrics of online runs, from the outcomes in a journal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from guieval.evaluation.protocol import PROGRESS, SUCCESS_RATE
from guieval.metrics import Measured
from guieval.metrics.intervals import Terms, pooled, quoted, spanning
from guieval.metrics.measured import mean_over_episodes, share_of
from guieval.metrics.sampling import pass_measured
from guieval.metrics.summary import State
from guieval.online.trajectory import ENDS, Ended, Outcome, read_outcome
from guieval.steps import EpisodeKey, Plan, StepRecord


@dataclass(frozen=True)
class OnlineMetrics:
    """The metrics of an online run, over the judged repetitions of its tasks unless the name or the denominator says otherwise.

    ``metrics``: by name, success rate first, whose ``missing`` are the repetitions without an outcome. It, progress, pass@n and
    pass^n have intervals over tasks, since repetitions of one task are not independent; where repetitions were not judged,
    these reach from that with all of them failed to that with all successful. "false completion" is among the repetitions that
    the model stopped as finished. pass@n and pass^n are over tasks with n judged repetitions. ``groups``: the success rate by
    label and value.
    """

    tasks: int
    repetitions: int
    judged: int
    failed: int
    not_run: int
    ended: Mapping[Ended, int]
    metrics: Mapping[str, Measured]
    groups: Mapping[str, Mapping[str, Measured]] = field(default_factory=dict)

    @property
    def success(self) -> Measured:
        """The success rate."""
        return self.metrics[SUCCESS_RATE.name]

    @property
    def state(self) -> State:
        """How far the tasks came."""
        return "finished" if not self.success.missing else "stopped" if self.judged else "never answered"


_JUDGED = "judged repetitions"


@dataclass
class _Task:
    outcomes: list[Outcome]
    failed: int
    groups: Mapping[str, str]


def online_metrics(records: Iterable[StepRecord], plan: Plan) -> OnlineMetrics:
    """The metrics of a run's records; of several records of a task, the last one with the most judged repetitions counts."""
    tasks, repetitions = _tasks(records, plan)
    outcomes = [outcome for task in tasks.values() for outcome in task.outcomes]
    won = [outcome for outcome in outcomes if outcome.ended == "success"]
    steps = sum(outcome.steps for outcome in outcomes)
    declared = [outcome for outcome in outcomes if outcome.stopped == "finish"]
    ended = Counter(outcome.ended for outcome in outcomes)
    known, not_run = list(tasks.values()), len(plan) - len(tasks)
    failed, unjudged = sum(task.failed for task in known), [repetitions] * not_run
    metrics = {
        SUCCESS_RATE.name: replace(_mean(known, _successful, unjudged), missing=failed + not_run * repetitions),
        PROGRESS.name: _mean(known, lambda outcome: outcome.score.progress, unjudged),
        **_passed(known, repetitions, not_run),
        "false completion": replace(
            share_of(sum(not outcome.score.success for outcome in declared), len(declared), "repetitions stopped as finished"),
            better="less",
        ),
        "with side effects": replace(
            share_of(sum(bool(outcome.score.side_effects) for outcome in outcomes), len(outcomes), _JUDGED), better="less"
        ),
        "mean steps": _steps(outcomes, _JUDGED),
        "mean steps of successes": _steps(won, "successes"),
        "unparseable responses": replace(share_of(sum(outcome.unparseable for outcome in outcomes), steps), better="less"),
        "unsupported actions": replace(share_of(sum(outcome.unsupported for outcome in outcomes), steps), better="less"),
    }
    return OnlineMetrics(
        tasks=len(plan),
        repetitions=repetitions,
        judged=len(outcomes),
        failed=failed,
        not_run=not_run,
        ended={name: ended[name] for name in ENDS},
        metrics=metrics,
        groups=_groups(known),
    )


def success_terms(records: Iterable[StepRecord], plan: Plan) -> Terms:
    """The success rate of :func:`online_metrics` as sums over the planned tasks, by their keys."""
    tasks, _ = _tasks(records, plan)
    judged = [tasks[key].outcomes if key in tasks else [] for key in sorted(plan)]
    return Terms(np.array([sum(map(_successful, each)) for each in judged]), np.array([*map(len, judged)], float), pooled)


def _tasks(records: Iterable[StepRecord], plan: Plan) -> tuple[dict[EpisodeKey, _Task], int]:
    """The planned tasks with a record, and how often each was repeated."""
    tasks: dict[EpisodeKey, _Task] = {}
    repetitions = 1
    for record in records:
        key = record.task.episode_key
        if key not in plan:
            continue
        repetitions = max(repetitions, len(record.samples))
        outcomes = [outcome for sample in record.samples if (outcome := read_outcome(sample.raw_response)) is not None]
        if key not in tasks or len(outcomes) >= len(tasks[key].outcomes):
            tasks[key] = _Task(outcomes, len(record.samples) - len(outcomes), record.task.groups)
    return tasks, repetitions


def _successful(outcome: Outcome) -> float:
    return float(outcome.score.success)


def _mean(tasks: Sequence[_Task], value: Callable[[Outcome], float], unjudged: Sequence[int] = ()) -> Measured:
    """The mean over all judged repetitions; ``unjudged`` are the repetitions of tasks without a record."""
    none = [0] * len(unjudged)
    above = np.array([*(sum(map(value, task.outcomes)) for task in tasks), *none], dtype=np.float64)
    below = np.array([*(len(task.outcomes) for task in tasks), *none], dtype=np.float64)
    lost = np.array([*(task.failed for task in tasks), *unjudged], dtype=np.float64)
    interval = spanning([quoted(each, below + lost) for each in (above, above + lost)]) if below.any() else None
    return replace(mean_over_episodes(above, below, share=True), of=_JUDGED, interval=interval)


def _steps(outcomes: Sequence[Outcome], of: str) -> Measured:
    steps, n = sum(outcome.steps for outcome in outcomes), len(outcomes)
    return Measured(steps / n if n else None, n, of, count=steps, unit="steps", better="less")


def _passed(tasks: Sequence[_Task], n: int, not_run: int) -> dict[str, Measured]:
    """Over the tasks whose repetitions were all judged; the intervals are over all tasks."""
    whole = np.array([len(task.outcomes) == n for task in tasks] + [False] * not_run)
    if n == 1 or not whole.any():
        return {}
    right = np.array([sum(map(_successful, task.outcomes)) for task in tasks] + [0.0] * not_run).astype(np.int64)
    lost = np.array([n - len(task.outcomes) for task in tasks] + [n] * not_run)
    sizes, every = np.full(len(whole), n), np.ones_like(whole)
    lucks: tuple[tuple[str, Literal["any", "all"]], ...] = (("pass@", "any"), ("pass^", "all"))
    found = {}
    for word, luck in lucks:
        measured = pass_measured(luck, sizes, right, n, whole, lambda values: values)
        possible = [pass_measured(luck, sizes, each, n, every, lambda values: values) for each in (right, right + lost)]
        interval = spanning([each.interval for each in possible])
        found[f"{word}{n}"] = replace(measured, interval=interval, of=f"tasks with {n} judged repetitions")
    return found


def _groups(tasks: Sequence[_Task]) -> dict[str, dict[str, Measured]]:
    labels = sorted({(name, value) for task in tasks for name, value in task.groups.items()})
    found: dict[str, dict[str, Measured]] = {}
    for name, value in labels:
        own = [task for task in tasks if task.groups.get(name) == value]
        found.setdefault(name, {})[value] = _mean(own, _successful)
    return found

"""The figures of online runs, from the outcomes in a journal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from guieval.metrics.intervals import Interval, quoted
from guieval.metrics.sampling import pass_figure
from guieval.online.trajectory import ENDS, Ended, Outcome, read_outcome
from guieval.steps import EpisodeKey, Plan, StepRecord


@dataclass(frozen=True)
class Share:
    """``count`` of ``n``, and the interval of that share; tasks are independent, repetitions of one task are not."""

    count: float
    n: int
    interval: Interval | None = None

    @property
    def value(self) -> float | None:
        """The share, ``None`` for n = 0."""
        return self.count / self.n if self.n else None


@dataclass(frozen=True)
class OnlineFigures:
    """Figures of an online run. Every figure is over the judged repetitions of its tasks, unless its comment says otherwise.

    ``success`` has Wilson's interval where each task was done once, else a bootstrap's over tasks. ``progress`` and ``steps``
    are means, of ``steps_of_successes`` over successes only. ``false_completions`` are among the repetitions that the model
    stopped as finished. ``pass_any`` and ``pass_all`` are pass@n and pass^n over tasks with n judged repetitions.
    """

    tasks: int
    repetitions: int
    judged: int
    failed: int
    not_run: int
    success: Share
    progress: Share
    steps: Share
    steps_of_successes: Share
    ended: Mapping[Ended, int]
    false_completions: Share
    side_effects: Share
    unparseable: Share
    unsupported: Share
    pass_any: Share | None = None
    pass_all: Share | None = None
    groups: Mapping[str, Mapping[str, Share]] = field(default_factory=dict)


@dataclass
class _Task:
    outcomes: list[Outcome]
    failed: int
    groups: Mapping[str, str]


def online_figures(records: Iterable[StepRecord], plan: Plan) -> OnlineFigures:
    """The figures of a run's records; of several records of a task, the last one with the most judged repetitions counts."""
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
    all_outcomes = [outcome for task in tasks.values() for outcome in task.outcomes]
    won = [outcome for outcome in all_outcomes if outcome.ended == "success"]
    steps = sum(outcome.steps for outcome in all_outcomes)
    declared = [outcome for outcome in all_outcomes if outcome.stopped == "finish"]
    ended = Counter(outcome.ended for outcome in all_outcomes)
    whole = [task for task in tasks.values() if len(task.outcomes) == repetitions]
    return OnlineFigures(
        tasks=len(plan),
        repetitions=repetitions,
        judged=len(all_outcomes),
        failed=sum(task.failed for task in tasks.values()),
        not_run=len(plan) - len(tasks),
        success=_success(list(tasks.values())),
        progress=_mean(list(tasks.values()), lambda outcome: outcome.score.progress),
        steps=Share(steps, len(all_outcomes)),
        steps_of_successes=Share(sum(outcome.steps for outcome in won), len(won)),
        ended={name: ended[name] for name in ENDS},
        false_completions=Share(sum(not outcome.score.success for outcome in declared), len(declared)),
        side_effects=Share(sum(bool(outcome.score.side_effects) for outcome in all_outcomes), len(all_outcomes)),
        unparseable=Share(sum(outcome.unparseable for outcome in all_outcomes), steps),
        unsupported=Share(sum(outcome.unsupported for outcome in all_outcomes), steps),
        pass_any=_passed("any", whole, repetitions),
        pass_all=_passed("all", whole, repetitions),
        groups=_groups(list(tasks.values())),
    )


def _success(tasks: Sequence[_Task]) -> Share:
    return _mean(tasks, lambda outcome: float(outcome.score.success))


def _mean(tasks: Sequence[_Task], value: Callable[[Outcome], float]) -> Share:
    """The mean over all repetitions, with an interval over tasks."""
    above = np.array([sum(map(value, task.outcomes)) for task in tasks], dtype=np.float64)
    below = np.array([len(task.outcomes) for task in tasks], dtype=np.float64)
    return Share(float(above.sum()), int(below.sum()), quoted(above, below))


def _passed(luck: Literal["any", "all"], whole: Sequence[_Task], n: int) -> Share | None:
    if n == 1 or not whole:
        return None
    right = np.array([sum(outcome.score.success for outcome in task.outcomes) for task in whole])
    everywhere = np.ones(len(whole), dtype=np.bool_)
    value, interval = pass_figure(luck, np.full(len(whole), n), right, n, everywhere, lambda values: values)
    return Share((value or 0.0) * len(whole), len(whole), interval)


def _groups(tasks: Sequence[_Task]) -> dict[str, dict[str, Share]]:
    labels = sorted({(name, value) for task in tasks for name, value in task.groups.items()})
    found: dict[str, dict[str, Share]] = {}
    for name, value in labels:
        found.setdefault(name, {})[value] = _success([task for task in tasks if task.groups.get(name) == value])
    return found

"""The figures of online runs, from the outcomes in a journal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from guieval.metrics.intervals import Interval, quoted, spanning
from guieval.metrics.sampling import pass_figure
from guieval.online.trajectory import ENDS, Ended, Outcome, read_outcome
from guieval.steps import EpisodeKey, Plan, StepRecord


@dataclass(frozen=True)
class Share:
    """``count`` of ``n``, and the interval of that share; tasks are independent, repetitions of one task are not.

    Where repetitions were not judged, the interval reaches from that with all of them failed to that with all successful.
    """

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

    ``success``, ``progress`` and the pass figures have intervals over tasks. ``progress`` and ``steps``
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
    known, not_run = list(tasks.values()), len(plan) - len(tasks)
    return OnlineFigures(
        tasks=len(plan),
        repetitions=repetitions,
        judged=len(all_outcomes),
        failed=sum(task.failed for task in tasks.values()),
        not_run=not_run,
        success=_mean(known, _successful, repetitions, not_run),
        progress=_mean(known, lambda outcome: outcome.score.progress, repetitions, not_run),
        steps=Share(steps, len(all_outcomes)),
        steps_of_successes=Share(sum(outcome.steps for outcome in won), len(won)),
        ended={name: ended[name] for name in ENDS},
        false_completions=Share(sum(not outcome.score.success for outcome in declared), len(declared)),
        side_effects=Share(sum(bool(outcome.score.side_effects) for outcome in all_outcomes), len(all_outcomes)),
        unparseable=Share(sum(outcome.unparseable for outcome in all_outcomes), steps),
        unsupported=Share(sum(outcome.unsupported for outcome in all_outcomes), steps),
        pass_any=_passed("any", known, repetitions, not_run),
        pass_all=_passed("all", known, repetitions, not_run),
        groups=_groups(known, repetitions),
    )


def _successful(outcome: Outcome) -> float:
    return float(outcome.score.success)


def _mean(tasks: Sequence[_Task], value: Callable[[Outcome], float], repetitions: int, not_run: int = 0) -> Share:
    """The mean over all judged repetitions, with an interval over tasks; ``not_run`` tasks have no record."""
    above = np.array([sum(map(value, task.outcomes)) for task in tasks] + [0.0] * not_run, dtype=np.float64)
    below = np.array([len(task.outcomes) for task in tasks] + [0] * not_run, dtype=np.float64)
    lost = np.array([task.failed for task in tasks] + [repetitions] * not_run, dtype=np.float64)
    interval = spanning([quoted(each, below + lost) for each in (above, above + lost)]) if below.any() else None
    return Share(float(above.sum()), int(below.sum()), interval)


def _passed(luck: Literal["any", "all"], tasks: Sequence[_Task], n: int, not_run: int) -> Share | None:
    """Over the tasks whose repetitions were all judged; the interval is over all tasks."""
    whole = np.array([len(task.outcomes) == n for task in tasks] + [False] * not_run)
    if n == 1 or not whole.any():
        return None
    right = np.array([sum(map(_successful, task.outcomes)) for task in tasks] + [0.0] * not_run).astype(np.int64)
    lost = np.array([n - len(task.outcomes) for task in tasks] + [n] * not_run)

    def figure(right: NDArray[np.int64], counted: NDArray[np.bool_]) -> tuple[float | None, Interval | None]:
        return pass_figure(luck, np.full(len(right), n), right, n, counted, lambda values: values)

    every = np.ones_like(whole)
    interval = spanning([figure(each, every)[1] for each in (right, right + lost)])
    return Share((figure(right, whole)[0] or 0.0) * int(whole.sum()), int(whole.sum()), interval)


def _groups(tasks: Sequence[_Task], repetitions: int) -> dict[str, dict[str, Share]]:
    labels = sorted({(name, value) for task in tasks for name, value in task.groups.items()})
    found: dict[str, dict[str, Share]] = {}
    for name, value in labels:
        own = [task for task in tasks if task.groups.get(name) == value]
        found.setdefault(name, {})[value] = _mean(own, _successful, repetitions)
    return found

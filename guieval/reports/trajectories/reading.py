"""Reads an online run: each repetition of each planned task with its steps, and how it ended."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest
from pathlib import Path
from typing import Literal, TypeAlias, get_args

from guieval.journal import RunFolder
from guieval.journal.run_folders import open_folder
from guieval.metrics import TaskSummary
from guieval.metrics.kinds import of_tasks
from guieval.online.trajectory import TrajectoryStep, last_attempts
from guieval.scoring.score import summary_of_run
from guieval.steps import ENDS, Ended, EpisodeKey, Outcome, Repetition, Usage

Unjudged: TypeAlias = Literal["infrastructure failure", "unfinished", "not run"]
"""The state of a repetition without an outcome. ``unfinished``: it has steps, but no record."""
ENDINGS: tuple[Ended | Unjudged, ...] = (*ENDS, *get_args(Unjudged))


@dataclass(frozen=True)
class RecordedTrajectory:
    """A repetition of a task: the steps of the attempt that counts, in order, and its outcome, ``None`` if it has none.

    ``failure`` is the message of an infrastructure failure. ``sample`` is its record, if there is one.
    """

    key: EpisodeKey
    repetition: int
    goal: str
    steps: tuple[TrajectoryStep, ...]
    outcome: Outcome | None = None
    failure: str | None = None
    sample: Repetition | None = None

    @property
    def responses(self) -> tuple[Usage | None, ...]:
        """The usage of every response that was paid for; of a recorded repetition as a sum that includes attempts given up."""
        own = tuple(usage for step in self.steps for usage in step.responses)
        if self.sample is None or not all(usage is not None and usage.whole for usage in own):
            return own
        return self.sample.responses

    @property
    def ended(self) -> Ended | Unjudged:
        """How it ended, one of :data:`ENDINGS`."""
        if self.outcome is not None:
            return self.outcome.ended
        if self.failure is not None:
            return "infrastructure failure"
        return "unfinished" if self.steps else "not run"


@dataclass(frozen=True)
class OnlineTrajectories:
    """An online run, ``run``, with its trajectories in plan order."""

    run: RunFolder

    def __iter__(self) -> Iterator[RecordedTrajectory]:
        for key in self.run.plan:
            yield from self.of(key)

    def of(self, key: EpisodeKey) -> list[RecordedTrajectory]:
        """The repetitions of a task, by number."""
        record = self.run.task(key)
        samples = () if record is None else record.samples
        goal = "" if record is None else record.task.instruction
        numbers = range(max(len(samples), self._begun.get(key, 1)))
        return [
            _trajectory(key, number, goal, self._attempts.get((key, number), ()), sample)
            for number, sample in zip_longest(numbers, samples)
        ]

    @cached_property
    def metrics(self) -> TaskSummary:
        return of_tasks(summary_of_run(self.run))

    @cached_property
    def _attempts(self) -> Mapping[tuple[EpisodeKey, int], Sequence[TrajectoryStep]]:
        return last_attempts(self.run.directory)

    @cached_property
    def _begun(self) -> Mapping[EpisodeKey, int]:
        """The number of repetitions of each task, up to the last one that has steps."""
        counts: dict[EpisodeKey, int] = {}
        for key, number in self._attempts:
            counts[key] = max(counts.get(key, 0), number + 1)
        return counts


def read_online(directory: Path) -> OnlineTrajectories:
    """Open an online run, which may be unfinished; :class:`guieval.errors.UsageError` if there is no run."""
    return OnlineTrajectories(open_folder(directory))


def _trajectory(
    key: EpisodeKey, number: int, goal: str, begun: Sequence[TrajectoryStep], sample: Repetition | None
) -> RecordedTrajectory:
    outcome = None if sample is None else sample.outcome
    counted = {step.index: step for step in begun if outcome is None or step.attempt == outcome.attempt}
    steps = tuple(counted[index] for index in sorted(counted))
    failure = None
    if sample is not None and outcome is None:
        failure = "it has no outcome" if sample.error is None else sample.error.message
    return RecordedTrajectory(key, number, steps[0].goal if steps else goal, steps, outcome, failure, sample)

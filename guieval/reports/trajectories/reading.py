"""Reads an online run: each repetition of each planned task with its steps, and how it ended."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal, TypeAlias, get_args

from guieval.online.figures import OnlineFigures, online_figures
from guieval.online.trajectory import ENDS, Ended, Outcome, TrajectoryStep, last_attempts, read_outcome
from guieval.reports.viewer.reading import ShownRun, read_run
from guieval.steps import EpisodeKey, Sample

Unjudged: TypeAlias = Literal["infrastructure failure", "unfinished", "not run"]
"""What a repetition without an outcome is. ``unfinished``: it has steps, but no record."""
ENDINGS: tuple[Ended | Unjudged, ...] = (*ENDS, *get_args(Unjudged))


@dataclass(frozen=True)
class Trajectory:
    """A repetition of a task: the steps of the attempt that counts, in order, and its outcome, ``None`` if it has none.

    ``failure`` is the message of an infrastructure failure.
    """

    key: EpisodeKey
    repetition: int
    goal: str
    steps: tuple[TrajectoryStep, ...]
    outcome: Outcome | None = None
    failure: str | None = None

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

    run: ShownRun

    def __iter__(self) -> Iterator[Trajectory]:
        for key in self.run.planned.plan:
            yield from self.of(key)

    def of(self, key: EpisodeKey) -> list[Trajectory]:
        """The repetitions of a task, by number."""
        record = self.run.read(key).get(0)
        samples = () if record is None else record.samples
        begun = self._begun.get(key, {})
        goal = "" if record is None else record.task.instruction
        last = max([len(samples) - 1, *begun, 0])
        return [
            _trajectory(key, number, goal, begun.get(number, ()), samples[number] if number < len(samples) else None)
            for number in range(last + 1)
        ]

    @cached_property
    def figures(self) -> OnlineFigures:
        """The figures of the run."""
        return online_figures(self.run.records, self.run.planned.plan)

    @cached_property
    def _begun(self) -> Mapping[EpisodeKey, Mapping[int, Sequence[TrajectoryStep]]]:
        """The steps of each task by repetition."""
        found: dict[EpisodeKey, dict[int, Sequence[TrajectoryStep]]] = {}
        for (key, number), steps in last_attempts(self.run.directory).items():
            found.setdefault(key, {})[number] = steps
        return found


def read_online(directory: Path) -> OnlineTrajectories:
    """Open an online run, which may be unfinished; :class:`guieval.errors.UsageError` if there is no run."""
    return OnlineTrajectories(read_run(directory))


def _trajectory(key: EpisodeKey, number: int, goal: str, begun: Sequence[TrajectoryStep], sample: Sample | None) -> Trajectory:
    outcome = None if sample is None else read_outcome(sample.raw_response)
    counted = {step.index: step for step in begun if outcome is None or step.attempt == outcome.attempt}
    steps = tuple(counted[index] for index in sorted(counted))
    failure = None
    if sample is not None and outcome is None:
        failure = "its outcome in the journal cannot be read" if sample.error is None else sample.error.message
    return Trajectory(key, number, steps[0].goal if steps else goal, steps, outcome, failure)

"""An online run as an object for scripts and notebooks: its metrics, and its trajectories with a picture of each step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, overload

from guieval.data.benchmark import named_key
from guieval.data.screenshots import read_picture
from guieval.errors import UsageError
from guieval.journal.run_files import Manifest
from guieval.metrics.of_run import Metrics
from guieval.online.trajectory import TrajectoryStep
from guieval.reports.marks import MarkOverlay
from guieval.reports.trajectories.reading import OnlineTrajectories, RecordedTrajectory

if TYPE_CHECKING:
    from PIL.Image import Image


@dataclass(frozen=True, eq=False)
class OpenedOnlineRun:
    """An online run: its manifest, its metrics, and its trajectories."""

    directory: Path
    manifest: Manifest = field(repr=False)
    _read: OnlineTrajectories = field(repr=False)

    def __len__(self) -> int:
        """How many tasks the run planned."""
        return len(self._read.run.plan)

    @property
    def tasks(self) -> tuple[str, ...]:
        """The ids of the planned tasks, in order; :meth:`trajectory` takes them."""
        return tuple(key.episode_id for key in self._read.run.plan)

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on the metrics, e.g. on damaged lines of the journal."""
        return tuple(self._read.run.notes)

    def metrics(self) -> Metrics:
        """The metrics that ``guieval score`` prints: success rate, progress, steps, tokens."""
        found, run = self._read.metrics, self._read.run
        steps = (self.manifest.selection and self.manifest.selection.text) or f"{len(self):,} tasks"
        return Metrics(found.protocol, steps, found, self.notes, label=run.label)

    def trajectory(self, task: str, repetition: int = 0, *, subset: str | None = None) -> OpenedTrajectory:
        """A repetition of a task, counted from 0, as the sequence of its steps.

        Raises :class:`guieval.errors.UsageError` if the run has no such task or repetition, or several subsets have the task.
        """
        repetitions = self._read.of(named_key(self._read.run.plan, task, subset, "the run", "task"))
        if not 0 <= repetition < len(repetitions):
            raise UsageError(f"task {task!r} has no repetition {repetition}: it has {len(repetitions)}, counted from 0")
        return OpenedTrajectory(repetitions[repetition], self.directory)

    def step(self, task: str, index: int, repetition: int = 0, *, subset: str | None = None) -> OpenedTrajectoryStep:
        """A step of a repetition of a task, counted from 0; :class:`UsageError` if there is none."""
        steps = self.trajectory(task, repetition, subset=subset)
        if not 0 <= index < len(steps):
            last = f"its steps are 0 to {len(steps) - 1}" if len(steps) else "it has no steps"
            raise UsageError(f"repetition {repetition} of task {task!r} has no step {index}; {last}")
        return steps[index]


@dataclass(frozen=True, eq=False)
class OpenedTrajectory(Sequence["OpenedTrajectoryStep"]):
    """The steps of a repetition of a task; ``trajectory`` has its outcome and how it ended."""

    trajectory: RecordedTrajectory
    directory: Path

    @cached_property
    def _steps(self) -> tuple[OpenedTrajectoryStep, ...]:
        return tuple(OpenedTrajectoryStep(step, self.directory) for step in self.trajectory.steps)

    def __len__(self) -> int:
        return len(self._steps)

    @overload
    def __getitem__(self, place: int) -> OpenedTrajectoryStep: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[OpenedTrajectoryStep]: ...
    def __getitem__(self, place: int | slice) -> OpenedTrajectoryStep | Sequence[OpenedTrajectoryStep]:
        return self._steps[place]


@dataclass(frozen=True, eq=False)
class OpenedTrajectoryStep:
    """A step of a trajectory: its ``record`` has the response, the action, and whether the action was carried out."""

    record: TrajectoryStep
    directory: Path = field(repr=False)

    def image(self) -> Image:
        """The screen that the model saw, with its action drawn on it as in the report.

        Raises :class:`guieval.errors.ScreenshotError` if the screenshot is missing or damaged.
        """
        screenshot = read_picture(self.directory, self.record.screenshot, self.record.size)
        overlay = MarkOverlay(screenshot.size)
        if self.record.action is not None:
            overlay.action(self.record.action, "prediction")
        return overlay.over(screenshot)

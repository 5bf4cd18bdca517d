"""Film strips: one task of an environment as several models did it, one below the other, with what each did on every screen.

Source: UI-S1 paper, Figure 13 (one task of AndroidWorld by four models).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any, NamedTuple

from guieval.errors import UsageError, nearest
from guieval.reports.opened import OpenedOnlineRun, open_run
from guieval.reports.plots.drawn import check_labels
from guieval.reports.plots.paper import MOST_SERIES, WIDTHS, Width, drawing

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from PIL.Image import Image

_ACROSS: dict[Width, int] = {"column": 4, "two-column": 8}
"""Screens in a line."""
_PIXELS = 480
"""The longer side of a screen in the file."""


class StripFrame(NamedTuple):
    """One screen with the marks of the action, and the action's type; ``None`` if the response could not be read."""

    screen: Image
    action: str | None


class Strip(NamedTuple):
    """One model's attempt at a task: how it ended, and its screens in order."""

    name: str
    ended: str
    frames: tuple[StripFrame, ...]


def strips(runs: Sequence[Path], task: str | None = None, labels: Sequence[str] | None = None) -> tuple[str, list[Strip]]:
    """The goal of a task, and the first repetition of it in each run; by default of the first task that all runs have.

    Raises :class:`UsageError` for a run that is not online, no common task, a task without steps, and a wrong number of labels.
    """
    if not runs or len(runs) > MOST_SERIES:
        raise UsageError(f"strips are drawn of 1 to {MOST_SERIES} online runs, got {len(runs)}")
    check_labels(labels, len(runs))
    opened: list[OpenedOnlineRun] = []
    for run in runs:
        read = open_run(run)
        if not isinstance(read, OpenedOnlineRun):
            raise UsageError(
                f"strips are of online runs, and {str(run)!r} is over recorded steps (`guieval report RUN --against`)"
            )
        opened.append(read)
    common = [each for each in opened[0].tasks if all(each in other.tasks for other in opened[1:])]
    if task is None and common:
        task = common[0]
    if task not in common:
        raise UsageError(
            f"the runs have no common task {task!r}{nearest(str(task), common)}; they have: {', '.join(common[:8])}"
        )
    names = labels or [run.manifest.model_name for run in opened]
    found, goal = [], ""
    for name, online in zip(names, opened, strict=True):
        attempt = online.trajectory(task)
        frames = []
        for step in attempt:
            screen = step.image()
            screen.thumbnail((_PIXELS, _PIXELS))
            goal = step.record.goal
            frames.append(StripFrame(screen, None if step.record.action is None else step.record.action.type))
        found.append(Strip(name, str(attempt.trajectory.ended), tuple(frames)))
    if not any(strip.frames for strip in found):
        raise UsageError(f"no run has a step of task {task!r}")
    return goal, found


def film_strips(found: Sequence[Strip], width: Width = "two-column") -> Figure:
    """The strips one below the other, each wrapped at four screens in a column and eight in two."""
    across = min(_ACROSS[width], max(5, *(len(strip.frames) for strip in found), 0))
    lines = [max(1, -(-len(strip.frames) // across)) for strip in found]
    inches = WIDTHS[width]
    first = next(frame.screen for strip in found for frame in strip.frames)
    height = inches / across * first.height / first.width
    with drawing(width, sum(lines) * (height + 0.16) + 0.2 * len(found)) as figure:
        parts: Any = figure.subfigures(len(found), 1, height_ratios=lines, squeeze=False)
        for part, strip, rows in zip(parts[:, 0], found, lines, strict=True):
            steps = f"{len(strip.frames)} step{'s' * (len(strip.frames) != 1)}"
            part.suptitle(
                fill(f"{strip.name}: {strip.ended}, {steps}", 110 if width == "two-column" else 52),
                x=0.01,
                ha="left",
                fontsize=8,
            )
            grid = part.subplots(rows, across, squeeze=False)
            for place, axes in enumerate(grid.flat):
                axes.set_axis_off()
                if place < len(strip.frames):
                    frame = strip.frames[place]
                    axes.imshow(frame.screen)
                    axes.set_title(f"{place} {frame.action or 'unreadable'}", fontsize=6, pad=2)
    return figure

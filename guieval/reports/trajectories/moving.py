"""Trajectories as moving pictures: each screen with the action drawn on it as in the report, and the last screen."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from guieval.data.screenshots import read_picture
from guieval.errors import ScreenshotError
from guieval.reports.marks import MarkOverlay
from guieval.reports.trajectories.reading import RecordedTrajectory

if TYPE_CHECKING:
    from PIL.Image import Image

Moving: TypeAlias = Literal["gif", "webp"]
MOVING: tuple[Moving, ...] = get_args(Moving)
SIDE = 640
"""Pixels of a picture's longer side."""
STEP, END = 1200, 3000
"""Milliseconds that a step is shown, and the end."""


def write_moving(file: Path, trajectory: RecordedTrajectory, directory: Path) -> bool:
    """Write a trajectory of the run in ``directory`` into ``file``, whose ending is the format; whether it has any screen.

    A screen that is missing or damaged is left out.
    """
    shown = [(step.screenshot, step.size, step.action) for step in trajectory.steps]
    if shown and trajectory.outcome is not None and trajectory.outcome.screenshot:
        shown.append((trajectory.outcome.screenshot, shown[-1][1], None))
    frames: list[Image] = []
    for screenshot, size, action in shown:
        try:
            picture = read_picture(directory, screenshot, size)
        except ScreenshotError:
            continue
        overlay = MarkOverlay(picture.size)
        if action is not None:
            overlay.action(action, "prediction")
        picture = overlay.over(picture)
        picture.thumbnail((SIDE, SIDE))
        frames.append(picture if not frames else picture.resize(frames[0].size))
    if frames:
        durations = [STEP] * (len(frames) - 1) + [END]
        file.parent.mkdir(exist_ok=True)
        frames[0].save(file, save_all=True, append_images=frames[1:], duration=durations, loop=0)
    return bool(frames)

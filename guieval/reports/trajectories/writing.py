"""Writes the page of an online run: the list of trajectories in the page itself, the steps of each in a data file of its own.

A screenshot is in the folder once, as a hard link if the file system allows it. Only files of the run's own folder of
screenshots are taken.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from guieval.actions import Unsupported, executable
from guieval.data.screenshots import resolve
from guieval.errors import ScreenshotError
from guieval.history import in_words
from guieval.journal.setup import describe
from guieval.metrics.rounding import percentage
from guieval.models.composition import in_words as stages_in_words
from guieval.online.trajectory import SCREENS, TrajectoryStep
from guieval.reports.console import Run, online_tables
from guieval.reports.pages.kit import DRAWN, LOADING, MARKS, NODES, STYLE, THEME
from guieval.reports.trajectories.moving import Moving, write_moving
from guieval.reports.trajectories.reading import ENDINGS, OnlineTrajectories, RecordedTrajectory
from guieval.reports.viewer.folder import PAGE, ReportFolder, Written, prepare
from guieval.reports.viewer.pictures import link
from guieval.reports.viewer.step import action_values, clipped

SCRIPTS = (NODES, LOADING, THEME, DRAWN, Path(__file__).parent / "page.js")
TEMPLATE = Path(__file__).parent / "page.html.jinja"
STYLES = (STYLE, MARKS, Path(__file__).parent / "style.css")
SIGNS = dict(zip(ENDINGS, "✓✕⊘✗…?↻○!–·", strict=True))
"""The mark of each ending, so that colour alone carries no meaning."""
_COLOURS = dict(zip(ENDINGS, (0, 2, 2, 2, 1, 3, 5, 6, 6, 6, 6), strict=True))
"""The colour of each ending, as the kit numbers those of verdicts."""
LINE_LIMIT = 300
MOVING_FOLDER = "moving"
_SCREEN = re.compile(rf"{SCREENS}/([0-9a-f]{{32}}\.(?:png|jpg))")


def write_trajectories(
    out: Path,
    online: OnlineTrajectories,
    *,
    images: bool = True,
    moving: Moving | None = None,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
) -> Written:
    """Write the page of an online run into ``out``. An earlier report in the folder is replaced; its images are reused.

    With ``moving`` every trajectory is a picture of that format as well. ``on_progress`` is called with (tasks done, all
    tasks). Raises :class:`guieval.errors.UsageError` for a folder with other contents.
    """
    prepare(out)
    run = online.run
    folder = ReportFolder(out, [run.directory])
    screens = Screens(run.directory, out, images)
    rows: list[dict[str, Any]] = []
    steps = 0
    for done, key in enumerate(run.plan, 1):
        repetitions = online.of(key)
        for trajectory in repetitions:
            row = row_values(trajectory, len(repetitions) > 1)
            values = task_values(trajectory, row, screens)
            file = f"{MOVING_FOLDER}/task-{len(rows):05}.{moving}"
            if moving is not None and write_moving(out / file, trajectory, run.directory):
                values["moving"] = file
            folder.script("task", "task", len(rows), values)
            rows.append({name: folder.shortened(value) if isinstance(value, str) else value for name, value in row.items()})
            steps += len(trajectory.steps)
        on_progress(done, len(run.plan))
    values = page_values(online, rows)
    values |= {"title": folder.shortened(values["title"]), "notes": [folder.shortened(note) for note in values["notes"]]}
    folder.page(TEMPLATE, SCRIPTS, STYLES, served=False, **values)
    return Written(out / PAGE, steps, len(rows), len(screens.kept), list(screens.lacking), run.notes)


def page_values(online: OnlineTrajectories, rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The variables of the page's template; ``rows`` are those of the list."""
    run = online.run
    counts = Counter(row["ended"] for row in rows)
    return {
        "title": f"{run.label} on {run.manifest.benchmark.name}, {run.manifest.mode.label}",
        "notes": [*run.notes, f"Set-up: {describe(run.manifest.setups)}."],
        "rows": rows,
        "endings": [(name, counts[name]) for name in ENDINGS if counts[name]],
        "tables": online_tables([Run("value", online.metrics)]),
    }


def task_values(trajectory: RecordedTrajectory, row: dict[str, Any], screens: Screens) -> dict[str, Any]:
    """The page's data of a trajectory; ``row`` is its row in the list."""
    last = None if trajectory.outcome is None else trajectory.outcome.screenshot
    steps = [_step_values(step, screens) for step in trajectory.steps]
    return {**row, "steps": steps, "last": screens.shown(last)}


def row_values(trajectory: RecordedTrajectory, repeated: bool) -> dict[str, Any]:
    """A trajectory's row in the list; every text is of one line."""
    outcome = trajectory.outcome
    name = "/".join(filter(None, (trajectory.key.subset, trajectory.key.episode_id)))
    reason = trajectory.failure or "" if outcome is None else outcome.score.reason
    return {
        "name": clipped(name, LINE_LIMIT),
        "repetition": trajectory.repetition + 1 if repeated else None,
        "goal": clipped(trajectory.goal, LINE_LIMIT),
        "ended": trajectory.ended,
        "sign": SIGNS[trajectory.ended],
        "code": _COLOURS[trajectory.ended],
        "count": len(trajectory.steps),
        "progress": None if outcome is None else f"{percentage(outcome.score.progress, '.0f')} %",
        "effects": [] if outcome is None else [clipped(side_effect, LINE_LIMIT) for side_effect in outcome.score.side_effects],
        "reason": clipped(reason, LINE_LIMIT),
    }


def _step_values(step: TrajectoryStep, screens: Screens) -> dict[str, Any]:
    return {
        "index": step.index,
        "screen": screens.shown(step.screenshot),
        "size": step.size,
        "action": None if step.action is None else action_values(executable(step.action) or step.action),
        "words": clipped("; then ".join(map(in_words, step.actions or (None,)))),
        "missed": _missed(step),
        "thought": clipped(step.thought),
        "conclusion": clipped(step.conclusion),
        "reasoning": clipped(step.reasoning),
        "text": clipped(step.text),
        "raw": clipped(stages_in_words(step.raw_response)),
        "seconds": step.seconds if step.seconds is not None and math.isfinite(step.seconds) else None,
    }


def _missed(step: TrajectoryStep) -> str | None:
    if step.executed:
        return None
    if step.action is None:
        return clipped("the response has no action" if step.error is None else step.error.message)
    if isinstance(step.action, Unsupported):
        return "the environment cannot carry out this action"
    return "the action was not given to the environment"


@dataclass
class Screens:
    """The screenshots in the folder: ``kept`` are the names of the files, ``lacking`` the reasons for missing ones.

    Without ``out`` they are only looked for, in the run's own folder.
    """

    directory: Path
    out: Path | None = None
    wanted: bool = True
    kept: set[str] = field(default_factory=set)
    lacking: dict[str, None] = field(default_factory=dict)

    def shown(self, path: str | None) -> dict[str, str] | None:
        """The file of a screenshot under ``name``, or the reason ``why`` there is none."""
        if path is None:
            return None
        if not self.wanted:
            return {"why": "the report was written without images"}
        found = _SCREEN.fullmatch(path)
        if found is None:
            return self._missing(f"{path!r} is not a screenshot of this run")
        name = found.group(1)
        if name not in self.kept:
            try:
                source = resolve(self.directory / SCREENS, name)
                if self.out is not None:
                    link(source, self.out / SCREENS / name, source.read_bytes)
            except ScreenshotError:
                return self._missing(f"the screenshot {path!r} does not exist")
            except OSError as error:
                return self._missing(f"the screenshot {path!r} cannot be copied: {error.strerror}")
            self.kept.add(name)
        return {"name": name}

    def _missing(self, why: str) -> dict[str, str]:
        self.lacking[why] = None
        return {"why": why}

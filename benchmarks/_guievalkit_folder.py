"""The folder that GUIEvalKit's data/process_ac.py (and AgentCPM-GUI's before it) writes: one JSON list of steps for an episode.

    test/android_control/<episode>/<episode>.json
    screenshots/<episode>/screenshot_<episode>_<step>.png

Actions and places are AITW's (:mod:`guieval.data.aitw_labels`): touch and lift as [y, x] fractions of the screen, scrolls
already turned into the finger's direction and drawn 0.3 of the screen long from its middle. The preparation takes every
episode that is not in the training split, adds a finish step on each last screenshot (low-level instruction "finish the
task"), and keeps every rectangle of the accessibility trees, windows and invisible nodes included, as [y, x, height, width]
fractions.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from guieval.data.aitw_labels import CODES, boxes_from_fractions, labelled_action
from guieval.data.benchmark import ABCBenchmark, EpisodeRef
from guieval.steps import Episode, EpisodeKey, StepTaskModel

from ._episode_folders import holds_episodes, other_place
from ._images import RecordedPaths
from ._rows import Row, episode, listed, placed, read_list, step, step_rows

FINISH = 10


class EpisodeFolder:
    """The episodes below ``folder``; without ``finish``, the finish steps that the preparation added are left out."""

    def __init__(self, benchmark: ABCBenchmark, folder: Path, *, finish: bool) -> None:
        self.benchmark = benchmark
        self._folder = folder
        self._finish = finish
        self._images = RecordedPaths(benchmark.root)

    def index(self) -> Sequence[EpisodeRef]:
        """Every episode in the order of the episodes' numbers; without those that hold only a finish step that is left out."""
        names = (entry.name for entry in self._folder.iterdir() if entry.is_dir())
        return listed(self.benchmark, sorted(names, key=_episode_order), self._ref)

    def _ref(self, name: str) -> EpisodeRef | None:
        file = self._folder / name / f"{name}.json"
        if not file.is_file():
            return None
        length = len(self._rows(file))
        return EpisodeRef(EpisodeKey(self.benchmark.name, "", name), length, file) if length else None

    def _rows(self, file: Path) -> list[Row]:
        rows = step_rows(read_list(file), str(file))
        without_finish = not self._finish and rows[-1].whole("result_action_type") == FINISH
        return rows[:-1] if without_finish else rows

    def load(self, ref: EpisodeRef) -> Episode:
        rows = self._rows(ref.locator)
        return episode(str(ref.locator), [self._step(ref, index, len(rows), row) for index, row in enumerate(rows)])

    def _step(self, ref: EpisodeRef, index: int, length: int, row: Row) -> StepTaskModel:
        name = ref.key.episode_id
        if str(row.value("episode_id")) != name:
            raise row.error("episode_id", f"is {row.value('episode_id')!r}, but the file belongs to episode {name!r}")
        extras = other_place(row, index, length, row.value("episode_id"))
        action = labelled_action(row, CODES, extras)
        return step(
            row.where,
            **placed(self.benchmark, ref, index, length),
            instruction=row.text("instruction"),
            low_level_instruction=row.text("low_instruction"),
            screenshot=self._images.relative(row.text("image_path")),
            screenshot_size=(row.whole("image_width"), row.whole("image_height")),
            action=action,
            elements=row.build("ui_positions", lambda: boxes_from_fractions(row.boxes("ui_positions"))),
            extras=extras,
        )


def episodes_folder(root: Path) -> Path | None:
    """The folder with one folder per episode, when ``root`` is of GUIEvalKit's layout or is within it."""
    inner = ("test/android_control", "android_control/test/android_control", "android_control", "")
    return next((folder for folder in (root / path for path in inner) if holds_episodes(folder)), None)


def folder_of_test(root: Path, folder: Path) -> Path:
    """The folder with ``test`` and, next to it, the screenshots; ``root`` if the episodes are in no such folder."""
    place = folder.resolve()
    if (place.parent.name, place.name) != ("test", "android_control"):
        return root
    return root / folder.relative_to(root).parent.parent if len(folder.relative_to(root).parts) > 1 else place.parent.parent


def _episode_order(name: str) -> tuple[int, str]:
    return (int(name), "") if name.isdecimal() else (2**63, name)

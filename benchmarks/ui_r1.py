"""UI-R1's test steps of AndroidControl (Lu et al., 2025): 7,868 steps of the test split, each with the step's own instruction.

Put the file, packed with gzip or not, into a folder. The authors do not publish the screenshots, which are AndroidControl's;
the loader looks for ``images/episode_<id>-screenshot_<n>.png``, as in the repository's README, or next to the file.

Layout: one JSON list; a row holds ``image`` (``episode_<id>-screenshot_<n>.png``), ``task`` (the step's instruction, empty in
ten rows; the episode's goal is not given) and ``gt``, the action:

===============  ===========================  ======================================================================
``action_type``  further fields               unified action
===============  ===========================  ======================================================================
click            ``x``, ``y`` (pixels)        CLICK
long_press       ``x``, ``y`` (pixels)        LONG_PRESS (documented, but no row has it)
scroll           ``direction``                SCROLL from the middle of the screen, against the word: it names where
                                              the content is explored, as AndroidControl's does, and a finger that
                                              shows what is further down moves up; ``extras["direction_label"]``
input_text       ``text``                     TYPE
open_app         ``app_name``                 OPEN
navigate_back    none                         PRESS BACK
===============  ===========================  ======================================================================

The rows are AndroidControl's 8,444 test steps without the 567 that wait and the 9 that press long, so episodes have gaps:
steps are numbered in order, and ``extras["step_id"]`` keeps ``<n>``.

The file does not state the sizes of the screens. A step's size is its image's if there is one; else what is known of the
episode (:mod:`._androidcontrol_screens`), else 1080x2400, or 1440x3120 if a point is outside of that.
``extras["screen_size_from"]`` names the source: image, known or fit.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from guieval.actions import ActionSpace, ActionType
from guieval.data.benchmark import ABCBenchmark, EpisodeRef, PublishedCount
from guieval.errors import DataError
from guieval.steps import Episode, EpisodeKey

from ._androidcontrol_release import released_action
from ._androidcontrol_screens import screen_for
from ._examples import written_by
from ._images import IMAGE_FOLDERS, size_of
from ._rows import Row, episode, one_of, placed, read_list, step

FILES = ("ac_test.json", "ac_test.json.gz")
SOURCE = "dataset/ac_test.json of github.com/lll6gg/UI-R1, commit 2fe9bf0"
TYPES: dict[ActionType, int] = {"CLICK": 5074, "SCROLL": 1211, "TYPE": 632, "OPEN": 608, "PRESS": 343}
ACTIONS = ("click", "long_press", "scroll", "input_text", "open_app", "navigate_back")

_IMAGE = re.compile(r"episode_(\d+)-screenshot_(\d+)\.png")


class UIR1(ABCBenchmark):
    """UI-R1's ``ac_test.json``: 7,868 steps with the step's own instruction, in 1,543 episodes with gaps."""

    name = "ui-r1"
    title = "UI-R1 AndroidControl test (low)"
    source = (
        "dataset/ac_test.json of github.com/lll6gg/UI-R1, packed with gzip or not, and AndroidControl's screenshots as "
        "images/episode_<id>-screenshot_<n>.png if there are any"
    )
    paper = "arXiv 2503.21620"
    licence = "Apache-2.0 (the repository)"
    published = (PublishedCount("ac_test.json", 7868, SOURCE, 1543, types=TYPES),)
    dataset = "androidcontrol"
    setting = "low"
    protocol = "guievalkit"
    action_space = ActionSpace(
        frozenset({"CLICK", "LONG_PRESS", "SCROLL", "TYPE", "OPEN", "PRESS"}), frozenset({"BACK"}), frozenset()
    )
    write_example = written_by("ui_r1.write_ui_r1")

    def __init__(self, root: Path, **options: Any) -> None:
        super().__init__(root, **options)
        file = next((root / name for name in FILES if (root / name).is_file()), None)
        if file is None:
            raise self.wrong_folder(root, " or ".join(FILES))
        self._file = file
        self._images = next((f"{name}/" for name in sorted(IMAGE_FOLDERS) if (root / name).is_dir()), "")

    @cached_property
    def _episodes(self) -> dict[str, list[tuple[int, Row]]]:
        """Every episode's rows with the numbers of their steps, in order; the whole file is 1.2 MB."""
        episodes: dict[str, dict[int, Row]] = {}
        for number, value in enumerate(read_list(self._file)):
            try:
                row = Row.of(value, f"{self._file}, row {number}")
                name, step_id = _named(row)
                steps = episodes.setdefault(name, {})
                if step_id in steps:
                    raise row.error("image", f"{row.value('image')!r} is already that of {steps[step_id].where}")
                steps[step_id] = row
            except DataError as error:
                self.refuse(error)
        return {name: sorted(steps.items()) for name, steps in episodes.items()}

    def index(self) -> Sequence[EpisodeRef]:
        if not self._episodes and not self.skipped:
            raise self.wrong_folder(self.root, f"step: its list in {self._file.name} is empty")
        return [EpisodeRef(EpisodeKey(self.name, "", name), len(steps), name) for name, steps in self._episodes.items()]

    def load(self, ref: EpisodeRef) -> Episode:
        entries = self._episodes[ref.locator]
        labels = [row.row("gt") for _, row in entries]
        points = ((label.number("x"), label.number("y")) for label in labels if "x" in label and "y" in label)
        screen, known_by = screen_for(ref.key.episode_id, points)
        steps = []
        for index, ((step_id, row), label) in enumerate(zip(entries, labels, strict=True)):
            one_of(label, "action_type", ACTIONS)
            task = row.text("task")
            screenshot = self._images + row.text("image")
            image = size_of(row, "image", self.root, screenshot)
            extras: dict[str, Any] = {"step_id": step_id, "screen_size_from": "image" if image else known_by}
            steps.append(
                step(
                    row.where,
                    **placed(self, ref, index, len(entries)),
                    instruction=task,
                    low_level_instruction=task,
                    screenshot=screenshot,
                    screenshot_size=image or screen,
                    action=released_action(label, image or screen, extras),
                    extras=extras,
                )
            )
        return episode(f"{self._file}, episode {ref.key.episode_id}", steps)


def _named(row: Row) -> tuple[str, int]:
    match = _IMAGE.fullmatch(row.text("image"))
    if match is None:
        raise row.error("image", f"expected episode_<id>-screenshot_<n>.png, got {row.value('image')!r:.80}")
    return match.group(1), int(match.group(2))

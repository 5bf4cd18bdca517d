"""GUI-Odyssey (Lu et al., 2024): long tasks across several apps on six emulated Android devices, phones, a fold and a tablet.

Two releases are in use, and both are read in place (v2 of the paper, ICCV 2025, describes v2 of the data):

- v2 (31 July 2025, recommended by its authors): ``huggingface.co/datasets/hflqf88888/GUIOdyssey``. The screenshots come as one
  split archive (``screenshots.zip``, ``.z01`` ...); unpack it into ``screenshots/``.
- v1 (June 2024): ``huggingface.co/datasets/OpenGVLab/GUI-Odyssey``. ``annotations/`` was reported to lack files that
  ``zips/annotations.zip`` has (issue 15 of the repository), and downloads to lack screenshots (issue 16).

Layout: ``annotations/<episode>.json``, ``screenshots/<episode>_<step>.png`` (or ``screenshots/data_*/...`` as v1 is
downloaded) and ``splits/{random,app,device,task}_split.json``, each ``{"train": [...], "test": [...]}`` with the names of
annotation files.

Labels, as ``data/format_converter.py`` reads them (all places are [x, y] in [0, 1000] of each axis):

- ``CLICK`` and ``LONG_PRESS`` with a list of places in ``info``: the first of them. With a key in ``info``: ``KEY_HOME``,
  ``KEY_BACK`` and ``KEY_APPSELECT`` (``KEY_RECENT`` in one version of the documentation) press HOME, BACK and RECENT.
- ``SCROLL``: where the finger starts and ends; the larger movement decides, a tie is vertical, and no movement at all counts
  as down, for that is what the authors' converter makes of it.
- ``TEXT`` types ``info``; ``COMPLETE`` stops with *finish*, ``INCOMPLETE`` with *impossible*. The documentation's own words
  for these, ``TYPE``, ``IMPOSSIBLE``, ``HOME`` and ``BACK``, are understood too.

RECENT is kept as its own button. AgentCPM-GUI's and GUIEvalKit's preparations turn it into HOME, so their scores call an
answer HOME right at such a step.

v2 adds ``sam2_bbox`` ([x1, y1, x2, y2] in [0, 1000], empty if nothing is touched), which becomes the step's only box, and
for every step ``low_level_instruction`` (the *low* setting needs it), ``description``, ``intention`` and ``context``. The last
three tell what is to be done or has been done: they are kept in ``extras`` and must not be shown to an agent under test.

Test / train episodes of v1: random 1,933 / 5,802, task 1,016 / 6,719, device 1,262 / 6,473, app 1,139 / 6,596. v2 has 8,334
episodes of 15.3 steps on average (8,834 in one place of its README); the numbers for its other splits are only in their files.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from guieval import actions as act
from guieval.data.benchmark import ABCBenchmark, EpisodeRef, PublishedCount
from guieval.data.names import parts_inside
from guieval.errors import DataError
from guieval.frames import PER_1000
from guieval.steps import Episode, EpisodeKey, StepTaskModel

from ._examples import written_by
from ._rows import Row, episode, listed, one_of, placed, read_row, step, step_rows

PARTS = ("test", "train")
KEYS: dict[str, act.Button] = {"KEY_HOME": "HOME", "KEY_BACK": "BACK", "KEY_APPSELECT": "RECENT", "KEY_RECENT": "RECENT"}

_V2_STUDY = "counted in hflqf88888/GUIOdyssey at 61632d0f by a study that used it; its authors state no step counts"
_V1_SCRIPTS = "AgentCPM-GUI and GUIEvalKit, process_odyssey.py; episodes also OpenGVLab/GUI-Odyssey, README of 2024"
_V1_PAPER = "episodes: arXiv 2406.08451v1; steps: screenshots counted in OpenGVLab/GUI-Odyssey, issue 16"
_V1, _V2 = {"release": "v1", "setup": "random"}, {"release": "v2", "setup": "random"}


class GuiOdyssey(ABCBenchmark):
    """GUI-Odyssey with the goal as the only instruction (*high*).

    ``setup`` names the published split file, which divides the episodes into test and training data: ``random``, ``app``,
    ``device`` or ``task``. An episode that the file does not name is of split ``unlisted``.
    """

    name = "gui-odyssey"
    title = "GUI-Odyssey (high)"
    source = (
        "GUI-Odyssey, v2 from huggingface.co/datasets/hflqf88888/GUIOdyssey or v1 from "
        "huggingface.co/datasets/OpenGVLab/GUI-Odyssey: annotations/<episode>.json, splits/{random,app,device,task}_split.json "
        "and the screenshots unpacked into screenshots/"
    )
    paper = "arXiv 2406.08451"
    licence = "CC BY 4.0"
    published = (
        PublishedCount("v2 random split, test", 25_807, _V2_STUDY, 1_666, split="test", groups=_V2),
        PublishedCount("v1 random split, test", 29_426, _V1_SCRIPTS, 1_933, split="test", groups=_V1),
        PublishedCount("v1, all episodes", 118_791, _V1_PAPER, 7_735, groups={"release": "v1"}),
    )
    dataset = "gui-odyssey"
    protocol = "odyssey-v2"
    action_space = act.ActionSpace(
        types=frozenset({"CLICK", "LONG_PRESS", "SCROLL", "TYPE", "PRESS", "STOP"}),
        buttons=frozenset({"BACK", "HOME", "RECENT"}),
    )
    write_example = written_by("gui_odyssey.write_gui_odyssey")

    def __init__(self, root: Path, *, setup: Literal["random", "app", "device", "task"] = "random", **options: Any) -> None:
        super().__init__(root, **options)
        if not (root / "annotations").is_dir() and (root / "data" / "annotations").is_dir():
            self.root = root / "data"  # where the authors' README has the data put inside their repository
        self._setup = setup
        self._annotations = self.root / "annotations"
        self._splits = self.root / "splits" / f"{setup}_split.json"
        if not self._annotations.is_dir():
            raise self.wrong_folder(root, "annotations/<episode>.json")
        if not self._splits.is_file():
            raise self.wrong_folder(root, f"splits/{setup}_split.json")

    def index(self) -> Sequence[EpisodeRef]:
        splits = self._split_of()
        present = {file.stem for file in self._annotations.glob("*.json")}
        if not present:
            raise self.wrong_folder(self.root, "annotations/<episode>.json")
        lacking = [name for name, split in splits.items() if split == "test" and name not in present]
        if lacking:
            self.refuse(
                DataError(
                    f"{self._splits}, field test: names {len(lacking)} episodes that {self._annotations} does not hold, "
                    f"the first is {lacking[0]!r}"
                )
            )
        names = [name for name in splits if name in present] + sorted(present - splits.keys())
        return listed(self, names, lambda name: self._ref(name, splits.get(name, "unlisted")))

    def _split_of(self) -> dict[str, str]:
        """The split of every episode that the split file names, test first, each part in the file's order."""
        row = read_row(self._splits)
        splits: dict[str, str] = {}
        for part in PARTS:
            listed = row.value(part)
            if not isinstance(listed, list) or not listed or not all(isinstance(name, str) for name in listed):
                raise row.error(part, f"expected a list of names of annotation files, got {listed!r:.80}")
            for name in (name.removesuffix(".json") for name in listed):
                if name in splits:
                    self.refuse(row.error(part, f"names episode {name!r}, which is already listed under {splits[name]}"))
                else:
                    splits[name] = part
        return splits

    def _ref(self, name: str, split: str) -> EpisodeRef:
        try:
            file = self._annotations.joinpath(*parts_inside(f"{name}.json"))
        except ValueError as error:
            raise DataError(f"{self._splits}: the episode {name[:200]!r} {error}") from None
        row = read_row(file)
        return EpisodeRef(EpisodeKey(self.name, "", name), len(step_rows(row.value("steps"), row.where)), file, split)

    def load(self, ref: EpisodeRef) -> Episode:
        row, name = read_row(ref.locator), ref.key.episode_id
        if str(row.value("episode_id")) != name:
            raise row.error("episode_id", f"is {row.value('episode_id')!r}, but the file belongs to episode {name!r}")
        rows = step_rows(row.value("steps"), row.where)
        task, device = row.row("task_info"), row.row("device_info")
        extras: dict[str, Any] = {key: task.values[key] for key in ("app", "meta_task") if key in task}
        if (stated := row.whole("step_length")) != len(rows):
            extras["step_length"] = stated  # the official scorer leaves such an episode out of its success rate
        shared = {"instruction": task.text("instruction"), "screenshot_size": (device.whole("w"), device.whole("h"))}
        groups = {"category": task.text("category"), "device": device.text("device_name"), "setup": self._setup}
        steps = [
            self._step(item, {**placed(self, ref, index, len(rows)), **shared}, groups, extras)
            for index, item in enumerate(rows)
        ]
        return episode(row.where, steps)

    def _step(self, row: Row, shared: dict[str, Any], groups: dict[str, str], episode_extras: dict[str, Any]) -> StepTaskModel:
        extras = dict(episode_extras)
        if (stated := row.whole("step")) != shared["step_index"]:
            extras["step"] = stated
        action = _action(row, extras)
        second = "low_level_instruction" in row or "sam2_bbox" in row
        extras |= {key: row.values[key] for key in ("description", "intention", "context", "ps") if row.values.get(key)}
        low = row.text("low_level_instruction") if second or self.setting == "low" else None
        return step(
            row.where,
            **shared,
            low_level_instruction=low,
            screenshot=self._screenshot(row.text("screenshot")),
            action=action,
            targets=row.build("sam2_bbox", lambda: act.Boxes(row.boxes("sam2_bbox")))
            if row.values.get("sam2_bbox")
            else act.Boxes(),
            groups={**groups, "release": "v2" if second else "v1"},
            extras=extras,
        )

    def _screenshot(self, name: str) -> str:
        direct = f"screenshots/{name}"
        if os.path.isfile(os.path.join(self.root, direct)):  # a path object costs more than the rest of reading a step
            return direct
        return self._parts.get(name, direct)

    @cached_property
    def _parts(self) -> dict[str, str]:
        """Where v1's screenshots lie before its preprocessing has moved them out of their numbered folders."""
        return {file.name: f"screenshots/{file.parent.name}/{file.name}" for file in self.root.glob("screenshots/data_*/*.png")}


class GuiOdysseyLow(GuiOdyssey):
    """GUI-Odyssey with the step's own instruction given (*low*), which only v2 publishes."""

    name = "gui-odyssey-low"
    title = "GUI-Odyssey (low)"
    setting = "low"


def _action(row: Row, extras: dict[str, Any]) -> act.Action:
    match row.text("action"):
        case "CLICK" | "LONG_PRESS" as name:
            if isinstance(row.value("info"), str):
                return act.Press(button=KEYS[one_of(row, "info", tuple(KEYS))])
            point = _point(row, _places(row, 1)[0])
            return act.Click(point=point) if name == "CLICK" else act.LongPress(point=point)
        case "SCROLL":
            start, end = _places(row, 2)
            if not all(map(math.isfinite, end)):  # where it starts is checked as a point
                raise row.error("info", f"expected finite numbers, got {row.value('info')!r:.80}")
            extras["path"] = [list(start), list(end)]
            direction = act.path_direction((start[0], start[1]), (end[0], end[1])) or "down"
            return act.Scroll(point=_point(row, start), direction=direction)
        case "TEXT" | "TYPE":
            return act.Type(text=row.text("info"))
        case "COMPLETE" | "INCOMPLETE" | "IMPOSSIBLE" as name:
            return act.Stop(status="finish" if name == "COMPLETE" else "impossible")
        case "HOME" | "BACK" as button:
            return act.Press(button=button)
        case name:
            raise row.error("action", f"expected CLICK, LONG_PRESS, SCROLL, TEXT, COMPLETE or INCOMPLETE, got {name!r}")


def _places(row: Row, count: int) -> list[tuple[float, ...]]:
    info = row.value("info")
    if not isinstance(info, list) or len(info) < count:
        raise row.error("info", f"expected {count} or more [x, y] in [0, 1000], got {info!r:.80}")
    return [Row({"info": place}, row.where).numbers("info", 2) for place in info[:count]]


def _point(row: Row, place: tuple[float, ...]) -> act.Point:
    x, y = place
    return row.build("info", lambda: PER_1000.decode(x, y, (1, 1)))

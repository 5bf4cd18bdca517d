"""AMEX (Chai et al., 2024): tasks of about thirteen steps in popular apps, with the elements of every screen.

Unpack the archives (instruction_anno.zip, element_anno.zip, screenshot.z01 to .z08 and .zip, 94 GB) side by side (``7z x
screenshot.zip`` joins the parts).

Layout: ``instruction_anno/*.json``, one episode each; ``screenshot/<image>``; ``element_anno/<image's name>.json`` (a step may
lack it). ``root`` may also be the folder that holds them as ``AMEX``. An archive unpacked into a folder of its own
name (``instruction_anno/instruction_anno/``) is found as well.

Labels: an episode has ``instruction`` and ``steps``; a step has ``action``: TAP at ``touch_coord``, SWIPE from there to
``lift_coord`` (here in the finger's direction), TYPE of ``type_text``, PRESS_BACK, PRESS_HOME, PRESS_ENTER, TASK_COMPLETE and
TASK_IMPOSSIBLE. Coordinates are [x, y] pixels of ``device_dim``, [width, height], which is also the size of the screenshot. As
in the authors' script, of two equal movements the vertical one is the swipe's, and no movement at all counts as up. Elements
are the ``clickable_elements``, [x1, y1, x2, y2] in the same pixels; scrollable areas are left out, for they hold every
point.

Splits: the release has none. The authors' data_utils/amex_to_qa.py tests on the instructions that begin with "Open", one of
nine apps and a full stop, and trains on the others; ``split`` records it. Counts: 3,046 episodes of 12.8 steps on average
(GUIEvalKit's paper); no exact number of steps is published. Low-level instructions are not part of the release.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from guieval.actions import Action, ActionSpace, Boxes, Click, Point, Press, Scroll, Stop, Type, path_direction
from guieval.data.benchmark import ABCBenchmark, EpisodeRef
from guieval.data.names import parts_inside
from guieval.frames import PIXELS, Size
from guieval.steps import Episode, EpisodeKey, StepTaskModel

from ._examples import written_by
from ._grounding import stated_size
from ._images import IMAGE_SUFFIXES
from ._rows import Row, episode, listed, meant, pixel_boxes, placed, read_row, step, step_rows

TEST_APPS = frozenset(
    {"booking", "citymapper", "gmail", "microsoft to do", "nbc news", "shein", "signal", "yelp", "youtube music"}
)
"""Apps whose tasks the authors' script keeps for testing, in lower case."""

_OPENS = re.compile(r"Open (.+?)\.", re.DOTALL)


class AMEX(ABCBenchmark):
    """AMEX's instructions with their chains of actions."""

    name = "amex"
    title = "AMEX"
    source = (
        "the archives in the folder AMEX of huggingface.co/datasets/Yuxiang007/AMEX, unpacked "
        "(instruction_anno/, element_anno/ and screenshot/)"
    )
    paper = "arXiv 2407.17490"
    licence = "CC BY 4.0"
    dataset = "amex"
    protocol = "guievalkit"
    action_space = ActionSpace(frozenset({"CLICK", "SCROLL", "TYPE", "PRESS", "STOP"}))
    write_example = written_by("amex.write_amex")

    def __init__(self, root: Path, **options: Any) -> None:
        super().__init__(root, **options)
        home = next((path for path in ("", "AMEX/") if self._folder(f"{path}instruction_anno")), None)
        if home is None:
            raise self.wrong_folder(root, "instruction_anno/*.json")
        self._episodes = self._folder(f"{home}instruction_anno") or ""
        self._elements = self._folder(f"{home}element_anno")
        self._screenshots = self._folder(f"{home}screenshot", "*.png") or f"{home}screenshot"

    def _folder(self, path: str, pattern: str = "*.json") -> str | None:
        """``path``, or the folder of the same name in it, whichever has such files."""
        inner = f"{path}/{path.rsplit('/', 1)[-1]}"
        return next((folder for folder in (path, inner) if any((self.root / folder).glob(pattern))), None)

    def index(self) -> Sequence[EpisodeRef]:
        return listed(self, sorted((self.root / self._episodes).glob("*.json")), self._ref)

    def _ref(self, file: Path) -> EpisodeRef:
        row = read_row(file)
        key = EpisodeKey(self.name, "", row.text("episode_id"))
        return EpisodeRef(key, len(step_rows(row.value("steps"), row.where)), file, _split(row))

    def load(self, ref: EpisodeRef) -> Episode:
        row = read_row(ref.locator)
        rows = step_rows(row.value("steps"), row.where)
        goal = row.text("instruction")
        return episode(row.where, [self._step(ref, goal, index, len(rows), item) for index, item in enumerate(rows)])

    def _step(self, ref: EpisodeRef, goal: str, index: int, length: int, row: Row) -> StepTaskModel:
        image = row.text("image_path")
        if not image.lower().endswith(IMAGE_SUFFIXES):
            raise row.error("image_path", f"expected the name of a PNG or JPEG image, got {image!r:.80}")
        size = stated_size(row, "device_dim")
        extras: dict[str, Any] = {"step_id": row.whole("step_id")}
        if row.values.get("package_name") is not None:
            extras["package_name"] = row.text("package_name")
        action = _action(row, size, extras)
        return step(
            row.where,
            **placed(self, ref, index, length),
            instruction=goal,
            screenshot=f"{self._screenshots}/{image}",
            screenshot_size=size,
            action=action,
            elements=self._clickable(image, size),
            extras=extras,
        )

    def _clickable(self, image: str, size: Size) -> Boxes:
        if self._elements is None:
            return Boxes()
        try:
            file = (self.root / self._elements).joinpath(*parts_inside(f"{image.rsplit('.', 1)[0]}.json"))
        except ValueError:  # the screenshot is refused when it is read
            return Boxes()
        if not os.path.isfile(file):
            return Boxes()
        row = read_row(file)
        corners = [element.numbers("bbox", 4) for element in row.rows("clickable_elements")]
        return row.build("clickable_elements", lambda: pixel_boxes(corners, size))


def _split(row: Row) -> str:
    opens = _OPENS.match(row.text("instruction"))
    return "test" if opens and opens[1].lower() in TEST_APPS else "train"


def _action(row: Row, size: Size, extras: dict[str, Any]) -> Action:
    meanings: dict[str, Callable[[], Action]] = {
        "TAP": lambda: Click(point=_point(row, size)),
        "SWIPE": lambda: _swipe(row, size, extras),
        "TYPE": lambda: Type(text=row.text("type_text")),
        "PRESS_BACK": lambda: Press(button="BACK"),
        "PRESS_HOME": lambda: Press(button="HOME"),
        "PRESS_ENTER": lambda: Press(button="ENTER"),
        "TASK_COMPLETE": lambda: Stop(status="finish"),
        "TASK_IMPOSSIBLE": lambda: Stop(status="impossible"),
    }
    return meant(row, "action", meanings)


def _swipe(row: Row, size: Size, extras: dict[str, Any]) -> Scroll:
    start = _point(row, size)
    lift_x, lift_y = row.numbers("lift_coord", 2)
    end = (lift_x * 1000.0 / size[0], lift_y * 1000.0 / size[1])
    if not (math.isfinite(lift_x) and math.isfinite(lift_y)):
        raise row.error("lift_coord", f"expected finite numbers, got {row.value('lift_coord')!r:.80}")
    extras["path"] = [list(start), list(end)]
    return Scroll(point=start, direction=path_direction(start, end) or "up")


def _point(row: Row, size: Size) -> Point:
    x, y = row.numbers("touch_coord", 2)
    return row.build("touch_coord", lambda: PIXELS.decode(x, y, size))

"""CAGUI (AgentCPM-GUI; Zhang et al., 2025): Chinese Android apps, tasks to carry out and elements to find.

Download it with ``huggingface-cli download openbmb/CAGUI --repo-type dataset --local-dir DIR``.

``cagui`` reads ``CAGUI_agent/domestic/<episode>/<episode>.json`` with the screenshots ``<episode>_<step>.jpeg`` next to it.
``root`` may be the download, ``CAGUI_agent`` (which GUIEvalKit calls ``test``), the folder with that, or ``domestic``.
Labels are AITW's: ``result_action_type`` 0 presses long and 4 touches at ``result_touch_yx`` and lifts at ``result_lift_yx``
([y, x] fractions; a tap when within 0.04, else a swipe in the finger's direction), 1 waits, 3 types ``result_action_text``, 5,
6 and 7 press BACK, HOME and ENTER, 10 ends the task as done, 11 as impossible. ``ui_positions`` are [y, x, height, width]
fractions; if a step has none, ``bbox`` is read, as GUIEvalKit does. Assumed: ``duration`` is in milliseconds, as in
AgentCPM-GUI's action schema (the data card says seconds); no score depends on it.

``cagui-grounding`` reads ``CAGUI_grounding/code/{cap,ocr}.jsonl``, packed with gzip or not, with the images in
``CAGUI_grounding/images/{cap,ocr}/``. ``root`` may be the download, ``CAGUI_grounding``, ``code``, or a folder with the two
lists in it. Two tasks: in fun2point (cap) the model is given what an element does, in text2point (ocr) which text it shows,
and must point at it; the label is a click on the middle of the box. AgentCPM-GUI's prompts put words of their own before the
text, which is the instruction here. The third task, bbox2text, asks for the text in a box and compares strings: that is no GUI
action and is left out. A box is given in pixels (``abs_position``) and in fractions (``rel_position``), and the size of the
screen follows from the two. ``id`` is not unique and stays in ``extras``; the image's number names the episode. One row of ocr
(416) has an empty text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import isfinite
from pathlib import Path
from typing import Any

from guieval.actions import ActionSpace
from guieval.data.aitw_labels import boxes_from_fractions, labelled_action
from guieval.data.benchmark import ABCBenchmark, EpisodeRef, PublishedCount
from guieval.frames import Size
from guieval.steps import Episode, EpisodeKey, StepTaskModel

from ._episode_folders import (
    annotation_in,
    episode_folders,
    holds_episodes,
    other_place,
    screenshot_beside,
    steps_in,
    text_or_none,
    ui_boxes,
)
from ._examples import written_by
from ._grounding import AnnotationList, Entry, GroundingBenchmark, GroundingItem, box_target, find_file
from ._rows import Row, episode, listed, placed, step

SUBSET = "domestic"
CODES = frozenset({0, 1, 3, 4, 5, 6, 7, 10, 11})

LISTS: dict[str, tuple[str, str]] = {"fun2point": ("cap", "bbox2function"), "text2point": ("ocr", "bbox2text")}
"""Per task, the file and the value of ``task`` in its rows."""

_CORNERS = re.compile(r"<\s*([^,<>]+),\s*([^,<>]+),\s*([^,<>]+),\s*([^,<>]+)>")
_IMAGE = re.compile(r"(?:.*/)?([^/]+)\.(?:jpe?g|png)", re.IGNORECASE)
_REPORT = "AgentCPM-GUI, arXiv 2506.01391"


class CAGUI(ABCBenchmark):
    """CAGUI's agent part: tasks in Chinese apps."""

    name = "cagui"
    title = "CAGUI (agent)"
    source = (
        "huggingface.co/datasets/openbmb/CAGUI (CAGUI_agent/domestic/<episode>/<episode>.json with the screenshots next to it)"
    )
    paper = "arXiv 2506.01391"
    licence = "CC BY-NC 4.0"
    published = (PublishedCount("agent", 4516, "README of github.com/xiaomi-research/guievalkit", episodes=600),)
    dataset = "cagui"
    protocol = "guievalkit"
    action_space = ActionSpace(frozenset({"CLICK", "LONG_PRESS", "SCROLL", "TYPE", "PRESS", "WAIT", "STOP"}))
    write_example = written_by("cagui.write_cagui_agent")

    def __init__(self, root: Path, **options: Any) -> None:
        super().__init__(root, **options)
        inner = ("CAGUI_agent/domestic", "domestic", "test/domestic")
        folders = [root / path for path in inner] + ([root] if root.resolve().name == SUBSET else [])
        found = next((folder for folder in folders if holds_episodes(folder)), None)
        if found is None:
            raise self.wrong_folder(root, f"{inner[0]}/<episode>/<episode>.json")
        self._folder = found

    def index(self) -> Sequence[EpisodeRef]:
        return listed(self, episode_folders(self._folder), self._ref)

    def _ref(self, folder: Path) -> EpisodeRef:
        file = annotation_in(folder)
        return EpisodeRef(EpisodeKey(self.name, SUBSET, folder.name), len(steps_in(file)), file)

    def load(self, ref: EpisodeRef) -> Episode:
        rows = steps_in(ref.locator)
        return episode(str(ref.locator), [self._step(ref, index, len(rows), row) for index, row in enumerate(rows)])

    def _step(self, ref: EpisodeRef, index: int, length: int, row: Row) -> StepTaskModel:
        extras = other_place(row, index, length, ref.key.episode_id)
        action = labelled_action(row, CODES, extras)
        boxes = "ui_positions" if row.values.get("ui_positions") else "bbox"
        return step(
            row.where,
            **placed(self, ref, index, length),
            instruction=row.text("instruction"),
            low_level_instruction=text_or_none(row, "low_instruction"),
            screenshot=screenshot_beside(self.root, ref.locator, row),
            screenshot_size=(row.whole("image_width"), row.whole("image_height")),
            action=action,
            elements=row.build(boxes, lambda: boxes_from_fractions(ui_boxes(row, boxes))),
            extras=extras,
        )


class CAGUIGrounding(GroundingBenchmark):
    """CAGUI's grounding part: point at the element that does something, or that shows a text."""

    name = "cagui-grounding"
    title = "CAGUI (grounding)"
    source = (
        "huggingface.co/datasets/openbmb/CAGUI (CAGUI_grounding/code/{cap,ocr}.jsonl with CAGUI_grounding/images/), the lists "
        "alone also from eval/grounding_eval/dataset/code of github.com/OpenBMB/AgentCPM-GUI"
    )
    paper = "arXiv 2506.01391"
    licence = "CC BY-NC 4.0; the lists alone also Apache-2.0"
    published = (
        PublishedCount("Fun2Point", 1500, f"{_REPORT}, appendix C.1", episodes=1500, subset="fun2point"),
        PublishedCount("Text2Point", 1500, f"{_REPORT}, appendix C.1", episodes=1500, subset="text2point"),
    )
    dataset = "cagui-grounding"
    protocol = "cagui-grounding"
    id_field = "image"
    image_folders = ("images",)
    write_example = written_by("cagui.write_cagui_grounding")

    def _find_lists(self) -> Sequence[AnnotationList]:
        root = self.root.resolve()
        inner = next(
            (name for name in ("CAGUI_grounding/code", "code", "") if find_file(self.root / name, ["cap.jsonl"])), None
        )
        if inner is None:
            raise self.wrong_folder(self.root, "CAGUI_grounding/code/cap.jsonl, packed or not")
        lists = []
        for task, (part, _) in LISTS.items():
            file = find_file(self.root / inner, [f"{part}.jsonl"])
            if file is None:
                raise self.wrong_folder(self.root, f"{inner}/{part}.jsonl beside cap.jsonl".lstrip("/"))
            lists.append(AnnotationList(file, part, task))
        if not inner and root.name == "code" and (root.parent / "images").is_dir():
            self.root = root.parent
        self._folders = {source.part: self._image_folder(inner.removesuffix("code"), source.part) for source in lists}
        return lists

    def _image_folder(self, home: str, part: str) -> str:
        """The data card's folder, or, for cap, the folder in which its rows have recorded their images."""
        images = f"{home}images"
        recorded_alone = part == "cap" and (self.root / images).is_dir() and not (self.root / images / part).is_dir()
        return images if recorded_alone else f"{images}/{part}"

    def _episode_id(self, entry: Entry) -> str:
        return _image(entry.row)[1]

    def _item(self, entry: Entry) -> GroundingItem:
        row, source = entry.row, entry.source
        if row.text("task") != (recorded := LISTS[source.subset][1]):
            raise row.error("task", f"expected {recorded!r} in this file, got {row.value('task')!r:.80}")
        corners = _corners(row, "abs_position")
        size = _size(row, corners, _corners(row, "rel_position"))
        return GroundingItem(
            instruction=row.text("text"),
            screenshot=f"{self._folders[source.part]}/{_image(row)[0]}",
            size=size,
            target=box_target(row, "abs_position", corners, size, "<x1, y1, x2, y2>"),
            groups={"task": source.subset},
            extras={"id": row.whole("id")},
        )


def _image(row: Row) -> tuple[str, str]:
    match = _IMAGE.fullmatch(row.text("image"))
    if match is None:
        raise row.error("image", f"expected the path of a PNG or JPEG image, got {row.value('image')!r:.80}")
    return match[0].rsplit("/", 1)[-1], match[1]


def _corners(row: Row, field: str) -> tuple[float, float, float, float]:
    match = _CORNERS.fullmatch(row.text(field))
    try:
        x1, y1, x2, y2 = map(float, match.groups() if match else ())
    except ValueError:
        raise row.error(field, f"expected '<x1, y1, x2, y2>', got {row.value(field)!r:.80}") from None
    if not (0 <= x1 <= x2 and 0 <= y1 <= y2):  # also refuses NaN
        raise row.error(field, f"expected the upper left and the lower right corner, got {row.value(field)!r:.80}")
    return x1, y1, x2, y2


def _size(row: Row, pixels: Sequence[float], shares: Sequence[float]) -> Size:
    """The screen on which the box's corners are both ``pixels`` and ``shares`` of it; (width, height) in pixels."""
    sides = []
    for near, far in ((0, 2), (1, 3)):
        exact = pixels[far] / shares[far] if shares[far] else 0.0
        side = round(exact) if isfinite(exact) else 0
        if side < 1 or any(abs(pixels[edge] - shares[edge] * side) > 0.5 for edge in (near, far)):
            raise row.error(
                "rel_position", f"{row.value('rel_position')!r} and abs_position do not tell one size of the screen"
            )
        sides.append(side)
    return sides[0], sides[1]

"""VenusBench-GD (Zhou et al., 2025): find a place on screens of phones, desktops and web pages, in six tasks.

The release is read in place: ``instruction/<task>.json`` next to ``images/<platform>/<application>/``. The basic tasks are
element, spatial and visual grounding, the advanced ones functional and reasoning grounding and refusal.

The row format is that of the authors' scorer (``eval.py`` of the branch VenusBench-GD of github.com/inclusionAI/UI-Venus) and
of a reader of the files on the hub (github.com/Smyan1909/SoMatic, ``benchmarks``): ``img_filename`` below ``images``,
``instruction`` in English and ``instruction_zh`` in Chinese, ``bbox`` as [x1, y1, x2, y2] in pixels, ``label`` (the kind of
element). The README's names of two lists (``reasoning_grounding.json``, ``refusal_spatial.json``) and the hub's
(``reason_grounding.json``, ``refusal_grounding.json``) are both read. The size of the images is not stated, so loading an
episode reads its image's header.

Labels: the reference is a click on the middle of the box. In the list of refusals nothing on the screen fits, so the reference
is ``Stop(status="impossible")``; their box is null, missing or [-1, -1, -1, -1], and any other one is refused as damaged. The
option ``language`` ("en" or "cn") selects the instruction; the authors have no Chinese one for refusals.

Groups: ``task``, ``level`` (basic, advanced), ``platform`` and ``application`` (the first two folders of the image),
``element``.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from guieval.actions import ActionSpace
from guieval.data.benchmark import PublishedCount
from guieval.frames import Size

from ._examples import written_by
from ._grounding import REFUSAL, AnnotationList, Entry, GroundingBenchmark, GroundingItem, Target, box_target, find_file
from ._images import needed_size
from ._rows import Row

TASKS = {
    "element": ("element_grounding",),
    "spatial": ("spatial_grounding",),
    "visual": ("visual_grounding",),
    "functional": ("functional_grounding",),
    "reasoning": ("reasoning_grounding", "reason_grounding"),
    "refusal": ("refusal_grounding", "refusal_spatial"),
}
"""The names of each task's list."""
BASIC = ("element", "spatial", "visual")
LANGUAGES = {"en": "instruction", "cn": "instruction_zh"}
_NO_BOX = (-1.0, -1.0, -1.0, -1.0)


class VenusBenchGD(GroundingBenchmark):
    """VenusBench-GD: 6,166 instructions in 97 applications, in English or Chinese.

    Below ``root``: ``instruction/<task>.json`` and ``images/``. ``language`` is "en" or "cn".
    """

    name = "venusbench-gd"
    title = "VenusBench-GD"
    source = "huggingface.co/datasets/inclusionAI/VenusBench-GD: instruction/<task>.json with images/"
    paper = "arXiv 2512.16501"
    licence = "MIT"
    published = (PublishedCount("all", 6166, "arXiv 2512.16501", 6166),)
    protocol = "venusbench-gd"
    dataset = "venusbench-gd"
    action_space = ActionSpace(frozenset({"CLICK", "STOP"}), frozenset(), frozenset({"impossible"}))
    image_folders = ("images",)
    write_example = written_by("grounding.write_venusbench_gd")

    def __init__(self, root: Path, *, language: Literal["en", "cn"] = "en", **options: Any) -> None:
        super().__init__(root, **options)
        self.language = language

    def _find_lists(self) -> Sequence[AnnotationList]:
        named = {task: [f"instruction/{name}.json" for name in names] for task, names in TASKS.items()}
        files = {task: find_file(self.root, names) for task, names in named.items()}
        lists = [AnnotationList(file, task) for task, file in files.items() if file is not None]
        if not lists:
            raise self.wrong_folder(self.root, "instruction/<task>.json, e.g. instruction/element_grounding.json")
        return lists

    def _item(self, entry: Entry) -> GroundingItem:
        row, task = entry.row, entry.source.part
        name = row.text("img_filename")
        screenshot = self._screenshot(name)
        size = needed_size(row, "img_filename", self.root, screenshot)
        field = LANGUAGES[self.language]
        others = [other for other in LANGUAGES.values() if other != field and row.values.get(other) is not None]
        folders = name.split("/")[:-1]
        return GroundingItem(
            instruction=row.text(field),
            screenshot=screenshot,
            size=size,
            target=_target(row, size, refusal=task == "refusal"),
            groups={
                "task": task,
                "level": "basic" if task in BASIC else "advanced",
                **dict(zip(("platform", "application"), folders, strict=False)),
                **({"element": row.text("label")} if row.values.get("label") is not None else {}),
            },
            extras={other: row.text(other) for other in others},
        )


def _target(row: Row, size: Size, *, refusal: bool) -> Target:
    if not refusal:
        return box_target(row, "bbox", row.numbers("bbox", 4), size)
    if row.values.get("bbox") is not None and row.numbers("bbox", 4) != _NO_BOX:
        raise row.error("bbox", f"expected null or [-1, -1, -1, -1] if nothing fits, got {row.value('bbox')!r:.80}")
    return REFUSAL

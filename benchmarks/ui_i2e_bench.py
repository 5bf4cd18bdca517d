"""UI-I2E-Bench (Liu et al., 2025): find the element that an instruction names (explicit) or only implies (implicit).

Put ``annotations.jsonl`` and ``screenshot/`` of the release into a folder. UI-Ins' conversion of the list
(``I2E_sspro_format.json`` of github.com/alibaba/UI-Ins), packed with gzip or not, is read too.

The row format is that of the authors' scorer (``UI-E2I-Synth/i2e-bench-eval.py`` of github.com/microsoft/FIVE-UI-Evol): one
JSON object a line with ``image`` (relative to the folder), ``instruction``, ``bounding_box`` as [x1, y1, x2, y2] in pixels,
and, if they are known, ``source``, ``el_type`` and ``annotations.instr_type`` (2 or "implicit"; any other number is
explicit). The release does not state the size of an image, so loading an episode reads its image's header; UI-Ins' rows state
it.

Labels: the reference is a click on the middle of the box. Three boxes of the list (309, 1084 and 1354 of UI-Ins' conversion)
have their corners the wrong way round: they are put in order here, while the authors' scorer counts every answer to them as
wrong. Four are a line. Groups are ``platform`` (``source``), ``element`` (``el_type``, of which the list spells some in two
cases) and ``instruction`` (explicit or implicit), by which the authors' scorer gives shares; a row without one of them is in
the group "unknown", as there.
"""

from __future__ import annotations

from typing import Any

from guieval.data.benchmark import PublishedCount

from ._examples import written_by
from ._grounding import Entry, GroundingBenchmark, GroundingItem, box_target, stated_size
from ._images import needed_size
from ._rows import Row, one_of

_SOURCE = "I2E_sspro_format.json of github.com/alibaba/UI-Ins, commit 6b05752, made from the released list"
KINDS = ("implicit", "explicit")
_IMPLICIT = 2
"""The number that marks an implicit instruction."""


class UII2EBench(GroundingBenchmark):
    """UI-I2E-Bench: 1,477 targets on phones, desktops and web pages, 917 of them only implied by their instruction.

    Below ``root``: ``annotations.jsonl`` and ``screenshot/``, or UI-Ins' list.
    """

    name = "ui-i2e-bench"
    title = "UI-I2E-Bench"
    source = (
        "huggingface.co/datasets/vaundys/I2E-Bench: annotations.jsonl with screenshot/, "
        "or I2E_sspro_format.json from evaluation/I2E_annotation of github.com/alibaba/UI-Ins"
    )
    paper = "arXiv 2504.11257"
    licence = "none found stated for the data (the scorer's repository is MIT)"
    published = (
        PublishedCount("all", 1477, _SOURCE, 1477, types={"CLICK": 1477}),
        PublishedCount("mobile", 705, _SOURCE, groups={"platform": "mobile"}),
        PublishedCount("desktop", 519, _SOURCE, groups={"platform": "desktop"}),
        PublishedCount("web", 253, _SOURCE, groups={"platform": "web"}),
        PublishedCount("implicit", 917, _SOURCE, groups={"instruction": "implicit"}),
        PublishedCount("explicit", 560, _SOURCE, groups={"instruction": "explicit"}),
    )
    protocol = "ui-i2e-bench"
    dataset = "ui-i2e-bench"
    lists = ("annotations.jsonl", "I2E_annotation/I2E_sspro_format.json", "I2E_sspro_format.json")
    image_folders = ("",)
    write_example = written_by("grounding.write_ui_i2e_bench")

    def _item(self, entry: Entry) -> GroundingItem:
        row = entry.row
        native = "bounding_box" in row
        screenshot = self._screenshot(row.text("image" if native else "img_filename"))
        size = needed_size(row, "image", self.root, screenshot) if native else stated_size(row, "img_size")
        box = "bounding_box" if native else "bbox"
        x1, y1, x2, y2 = row.numbers(box, 4)
        return GroundingItem(
            instruction=row.text("instruction"),
            screenshot=screenshot,
            size=size,
            target=box_target(row, box, (min(x1, x2), min(y1, y2), max(x1, x2), max(y1, y2)), size),
            groups={
                "platform": _text(row, "source" if native else "platform"),
                "element": _text(row, "el_type" if native else "ui_type").lower(),
                "instruction": _directness(row) if native else one_of(row, "group", KINDS),
            },
        )


def _text(row: Row, name: str) -> str:
    return row.text(name) if row.values.get(name) is not None else "unknown"


def _directness(row: Row) -> str:
    """Whether the instruction names its target, in the scorer's words."""
    notes = row.row("annotations") if row.values.get("annotations") is not None else Row({}, row.where)
    value: Any = notes.values.get("instr_type")
    if value is None:
        return "unknown"
    if isinstance(value, int) and not isinstance(value, bool):
        return "implicit" if value == _IMPLICIT else "explicit"
    return one_of(notes, "instr_type", KINDS, str.lower)

"""ScreenSpot-Pro (Li et al., 2025): find one element on high-resolution screens of professional desktop programs.

The release has 26 lists. The same lists are also read in ``ScreenSpot_Pro_data/`` (MAI-UI's evaluation) or directly in the
folder, packed with gzip or not, with or without images.

Labels: ``bbox`` is [x1, y1, x2, y2] in pixels of an image of ``img_size``; the reference is a click on its middle. Every row
has its instruction in English and Chinese; the option ``language`` selects the one that the model is given; the other one is
kept in the extras. The authors' negative instructions (nothing to be found) are not in the release.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from guieval.data.benchmark import PublishedCount

from ._examples import written_by
from ._grounding import AnnotationList, Entry, GroundingBenchmark, GroundingItem, box_target, stated_size
from ._rows import one_of

FOLDERS = ("annotations", "ScreenSpot_Pro_data", "")
PLATFORMS = ("windows", "macos", "linux")
LANGUAGES = {"en": "instruction", "cn": "instruction_cn"}
"""The languages by the authors' names, and the field with the instruction."""
_SOURCE = "arXiv 2504.07981"


class ScreenSpotPro(GroundingBenchmark):
    """ScreenSpot-Pro: 1,581 targets in 23 programs and 3 operating systems, with English or Chinese instructions.

    Below ``root``: ``annotations/<application>_<platform>.json`` and ``images/``. ``language`` is "en" or "cn".
    """

    name = "screenspot-pro"
    title = "ScreenSpot-Pro"
    source = (
        "huggingface.co/datasets/likaixin/ScreenSpot-Pro: annotations/<application>_<platform>.json with images/, "
        "or the same lists in MAI-UI's ScreenSpot_Pro_data/"
    )
    paper = "arXiv 2504.07981"
    licence = "MIT"
    published = (
        PublishedCount("all", 1581, _SOURCE, 1581, types={"CLICK": 1581}),
        PublishedCount("Development", 299, _SOURCE, groups={"group": "Dev"}),
        PublishedCount("Creative", 341, _SOURCE, groups={"group": "Creative"}),
        PublishedCount("CAD", 261, _SOURCE, groups={"group": "CAD"}),
        PublishedCount("Scientific", 254, _SOURCE, groups={"group": "Scientific"}),
        PublishedCount("Office", 230, _SOURCE, groups={"group": "Office"}),
        PublishedCount("Operating systems", 196, _SOURCE, groups={"group": "OS"}),
    )
    protocol = "sspro-official"
    dataset = "screenspot-pro"
    image_folders = ("images",)
    write_example = written_by("grounding.write_screenspot_pro")

    def __init__(self, root: Path, *, language: Literal["en", "cn"] = "en", **options: Any) -> None:
        super().__init__(root, **options)
        self.language = language

    def _find_lists(self) -> Sequence[AnnotationList]:
        for folder in FOLDERS:
            patterns = [f"*_{platform}.json{packed}" for platform in PLATFORMS for packed in ("", ".gz")]
            files = sorted({file for pattern in patterns for file in (self.root / folder).glob(pattern) if file.is_file()})
            if files:
                return [AnnotationList(file) for file in files]
        raise self.wrong_folder(self.root, "annotations/<application>_<platform>.json")

    def _item(self, entry: Entry) -> GroundingItem:
        row = entry.row
        size = stated_size(row, "img_size")
        field = LANGUAGES[self.language]
        others = [other for other in LANGUAGES.values() if other != field and other in row]
        return GroundingItem(
            instruction=row.text(field),
            screenshot=self._screenshot(row.text("img_filename")),
            size=size,
            target=box_target(row, "bbox", row.numbers("bbox", 4), size),
            groups={
                "group": row.text("group"),
                "application": row.text("application"),
                "platform": row.text("platform"),
                "element": one_of(row, "ui_type", ("text", "icon")),
            },
            extras={other: row.text(other) for other in others},
        )

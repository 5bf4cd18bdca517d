"""ScreenSpot (SeeClick, Cheng et al., 2024) and ScreenSpot-v2 (OS-Atlas, Wu et al., 2024): find one element by its
description.

Unpack v2's ``screenspotv2_image.zip``. The releases are read in place, and so are two redistributions that differ in folder
names and in how a box is written: v1's and v2's lists in ``annotations_v1/`` and ``annotations_v2/`` next to
``images/{desktop,mobile,web}/``, and the lists of MAI-UI's evaluation (``ScreenSpot_V2_data/screenspot_*_v2_convert.json``,
also packed with gzip).

Labels: ``bbox`` is [x, y, width, height] in pixels; in rows that state the image's size (``img_size``, MAI-UI's conversion) it
is [x1, y1, x2, y2]. The reference is a click on the box's middle. Rows without an id are named by their list and position, as
MAI-UI named them, so both forms of v2 name a row alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from guieval.data.benchmark import PublishedCount
from guieval.errors import UsageError

from ._examples import written_by
from ._grounding import CORNERS, AnnotationList, Entry, GroundingBenchmark, GroundingItem, box_target, find_file, stated_size
from ._images import needed_size
from ._rows import one_of

PLATFORMS = ("desktop", "mobile", "web")
FOLDER_OF_PREFIX = {"pc": "desktop", "mobile": "mobile", "web": "web"}
"""The text before the first underscore of a v2 image name, and the folder of v1 with the image."""


def _cells(source: str, counts: dict[str, tuple[int, int]]) -> tuple[PublishedCount, ...]:
    cells = [
        PublishedCount(f"{platform}, {element}", steps, source, groups={"platform": platform, "element": element})
        for platform, both in counts.items()
        for element, steps in zip(("text", "icon"), both, strict=True)
    ]
    total = sum(map(sum, counts.values()))
    return (PublishedCount("all", total, source, total, types={"CLICK": total}), *cells)


class ScreenSpot(GroundingBenchmark):
    """ScreenSpot v1: 1,272 targets on phones, desktops and web pages, 2 kinds of element (text, icon).

    The size of the images is not stated, so loading an episode reads its image's header.
    """

    name = "screenspot"
    title = "ScreenSpot"
    source = (
        "github.com/njucckevin/SeeClick: screenspot_{desktop,mobile,web}.json with screenspot_imgs/, "
        "or the same lists in annotations_v1/ with images/"
    )
    paper = "arXiv 2401.10935"
    licence = "Apache-2.0"
    published = _cells(
        "arXiv 2401.10935, the statistics of ScreenSpot", {"desktop": (194, 140), "mobile": (273, 229), "web": (230, 206)}
    )
    protocol = "seeclick-official"
    dataset = "screenspot"
    lists: ClassVar[tuple[str, ...]] = ("annotations_v1/screenspot_{}.json", "screenspot_{}.json")
    image_folders = ("screenspot_imgs", "images")
    write_example = written_by("grounding.write_screenspot")

    def _find_lists(self) -> Sequence[AnnotationList]:
        for pattern in self.lists:
            by_platform = {platform: find_file(self.root, [pattern.format(platform)]) for platform in PLATFORMS}
            files = [AnnotationList(file, platform) for platform, file in by_platform.items() if file is not None]
            if len(files) == len(PLATFORMS):
                return files
            if files:
                lacking = next(platform for platform, file in by_platform.items() if file is None)
                raise UsageError(
                    f"{str(self.root / pattern.format(lacking))!r} is missing, "
                    "and a score over the other platforms alone would mislead"
                )
        raise self.wrong_folder(self.root, f"{self.lists[-1].format(PLATFORMS[0])}, directly or in an annotations folder")

    def _item(self, entry: Entry) -> GroundingItem:
        row = entry.row
        name = row.text("img_filename")
        prefix, _, rest = name.partition("_")
        folder = FOLDER_OF_PREFIX.get(prefix) if "/" not in name else None
        screenshot = self._screenshot(name, *([f"{folder}/{rest}"] if folder else []))
        size = stated_size(row, "img_size") if "img_size" in row else needed_size(row, "img_filename", self.root, screenshot)
        x1, y1, third, fourth = row.numbers("bbox", 4)
        corners = (x1, y1, third, fourth) if "img_size" in row else (x1, y1, x1 + third, y1 + fourth)
        return GroundingItem(
            instruction=row.text("instruction"),
            screenshot=screenshot,
            size=size,
            target=box_target(row, "bbox", corners, size, CORNERS if "img_size" in row else "[x, y, width, height]"),
            groups={
                "platform": entry.source.part,
                "element": one_of(row, "ui_type" if "ui_type" in row else "data_type", ("text", "icon")),
            },
            extras={"data_source": row.text("data_source")} if "data_source" in row else {},
        )


class ScreenSpotV2(ScreenSpot):
    """ScreenSpot-v2: the same screens with wrong boxes and unclear descriptions of v1 corrected, 1,272 targets.

    Rows of MAI-UI's conversion state the size of their images and load without them.
    """

    name = "screenspot-v2"
    title = "ScreenSpot-v2"
    source = (
        "huggingface.co/datasets/OS-Copilot/ScreenSpot-v2: screenspot_{desktop,mobile,web}_v2.json with screenspotv2_image/, "
        "or MAI-UI's lists in annotations_v2/ or ScreenSpot_V2_data/ with images/"
    )
    paper = "arXiv 2410.23218"
    published = _cells(
        "the released lists of OS-Copilot/ScreenSpot-v2", {"desktop": (194, 140), "mobile": (290, 211), "web": (234, 203)}
    )
    dataset = "screenspot-v2"
    lists: ClassVar[tuple[str, ...]] = (
        "annotations_v2/screenspot_{}_v2.json",
        "ScreenSpot_V2_data/screenspot_{}_v2_convert.json",
        "screenspot_{}_v2_convert.json",
        "screenspot_{}_v2.json",
    )
    image_folders = ("screenspotv2_image", "images")
    write_example = written_by("grounding.write_screenspot_v2")

"""ScreenSpot (SeeClick, Cheng et al., 2024) and ScreenSpot-v2 (OS-Atlas, Wu et al., 2024): find one element by its description.

Reads the authors' releases and two redistributions of them that differ in folder names and in how a box is written. Every
row is an episode of one step whose label is a click on the middle of the target box.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeAlias

from guieval.actions import ActionSpace, Boxes, Click
from guieval.benchmark import ABCBenchmark, EpisodeRef
from guieval.errors import UsageError
from guieval.frames import PIXELS, Size
from guieval.steps import Episode, EpisodeKey

from ._images import image_size
from ._rows import Row, as_row, episode, read_list, step

Platform: TypeAlias = Literal["desktop", "mobile", "web"]
PLATFORMS: tuple[Platform, ...] = ("desktop", "mobile", "web")
FOLDER_OF_PREFIX = {"pc": "desktop", "mobile": "mobile", "web": "web"}
"""What stands before the first underscore of a v2 image name, and the folder of v1 that holds the image."""


@dataclass(frozen=True)
class _Entry:
    """One annotation row with the platform its file is of and its position in the file."""

    platform: Platform
    number: int
    row: Row


class ScreenSpot(ABCBenchmark):
    """ScreenSpot v1: 1,272 targets on phones, desktops and web pages, 2 kinds of element (text, icon).

    Below ``root``: ``screenspot_{desktop,mobile,web}.json``, directly or in ``annotations_v1/``, with the images in
    ``screenspot_imgs/`` (SeeClick's release) or ``images/``. A box is [x, y, width, height] in pixels. The image size is
    not stated, so loading an episode reads its image's header.
    """

    name: ClassVar[str] = "screenspot"
    title: ClassVar[str] = "ScreenSpot"
    source: ClassVar[str] = (
        "ScreenSpot (SeeClick, arXiv 2401.10935, Apache-2.0): screenspot_{desktop,mobile,web}.json with screenspot_imgs/ "
        "from github.com/njucckevin/SeeClick, or the same lists in annotations_v1/ with images/"
    )
    protocol: ClassVar[str] = "seeclick-official"
    action_space: ClassVar[ActionSpace] = ActionSpace(frozenset({"CLICK"}), frozenset(), frozenset())
    dataset: ClassVar[str] = "screenspot"
    lists: ClassVar[tuple[str, ...]] = ("annotations_v1/screenspot_{}.json", "screenspot_{}.json")
    image_folders: ClassVar[tuple[str, ...]] = ("screenspot_imgs", "images")

    def __init__(self, root: Path, **options: Any) -> None:
        super().__init__(root, **options)
        pattern = next((pattern for pattern in self.lists if (root / pattern.format(PLATFORMS[0])).is_file()), None)
        if pattern is None:
            raise UsageError(
                f"{str(root)!r} holds no {self.lists[-1].format(PLATFORMS[0])}, directly or in an annotations folder; "
                f"expected {self.source}"
            )
        self._files = {platform: root / pattern.format(platform) for platform in PLATFORMS}
        missing = [str(file) for file in self._files.values() if not file.is_file()]
        if missing:
            raise UsageError(f"{missing[0]!r} is missing, and a score over the other platforms alone would mislead")
        folders = [folder for folder in self.image_folders if (root / folder).is_dir()]
        self._images = folders[0] if folders else self.image_folders[0]
        self._folder_of_prefix = {
            prefix: folder for prefix, folder in FOLDER_OF_PREFIX.items() if (root / self._images / folder).is_dir()
        }

    @cached_property
    def _entries(self) -> dict[str, _Entry]:
        """Every row by its episode id; the three lists of the whole benchmark are half a megabyte."""
        entries: dict[str, _Entry] = {}
        for platform, file in self._files.items():
            for number, value in enumerate(read_list(file)):
                row = as_row(value, f"{file}, row {number}")
                name = row.text("id") if "id" in row else f"{self.name}_{platform}_{number}"
                if name in entries:
                    raise row.error("id", f"{name!r} is already that of {entries[name].row.where}")
                entries[name] = _Entry(platform, number, row)
        if not entries:
            raise UsageError(f"the lists in {str(self.root)!r} are empty; expected {self.source}")
        return entries

    def index(self) -> Sequence[EpisodeRef]:
        return [EpisodeRef(EpisodeKey(self.name, "", name), 1, name) for name in self._entries]

    def load(self, ref: EpisodeRef) -> Episode:
        entry = self._entries[ref.locator]
        row = entry.row
        screenshot = self._screenshot(row.text("img_filename"))
        size = self._size(row, screenshot)
        x1, y1, x2, y2 = _corners(row)
        middle = row.build("bbox", lambda: PIXELS.decode((x1 + x2) / 2, (y1 + y2) / 2, size))
        width, height = size
        box = [x1 * 1000.0 / width, y1 * 1000.0 / height, x2 * 1000.0 / width, y2 * 1000.0 / height]
        extras = {"data_source": row.text("data_source")} if "data_source" in row else {}
        only = step(
            row.where,
            benchmark=self.name,
            dataset=self.dataset,
            episode_id=ref.key.episode_id,
            step_index=0,
            episode_length=1,
            setting="grounding",
            instruction=row.text("instruction"),
            screenshot=screenshot,
            screenshot_size=size,
            action=Click(point=middle),
            boxes=Boxes([box]),
            groups={"platform": entry.platform, "element": _element(row)},
            extras=extras,
        )
        return episode(row.where, [only])

    def _screenshot(self, name: str) -> str:
        """The image's path relative to ``root``; v2 writes the platform before the name where v1 has folders for it."""
        prefix, _, rest = name.partition("_")
        if prefix in self._folder_of_prefix and "/" not in name:
            return f"{self._images}/{self._folder_of_prefix[prefix]}/{rest}"
        return f"{self._images}/{name}"

    def _size(self, row: Row, screenshot: str) -> Size:
        if "img_size" in row:
            width, height = row.numbers("img_size", 2)
            if not (width.is_integer() and height.is_integer() and width > 0 and height > 0):
                raise row.error("img_size", f"expected a width and a height in pixels, got {row.value('img_size')!r}")
            return int(width), int(height)
        try:
            size = image_size(self.root, screenshot)
        except ValueError as error:
            raise row.error("img_filename", f"the image {screenshot!r} {error}") from None
        if size is None:
            raise row.error(
                "img_filename", f"there is no image {screenshot!r} in {str(self.root)!r}, whose size the label needs"
            )
        return size


class ScreenSpotV2(ScreenSpot):
    """ScreenSpot-v2: the same screens with wrong boxes and unclear descriptions of v1 corrected, 1,272 targets.

    Below ``root``: ``screenspot_{desktop,mobile,web}_v2.json``, directly or in ``annotations_v2/``, with the images in
    ``screenspotv2_image/`` (OS-Copilot's release) or ``images/{desktop,mobile,web}/``. A box is [x, y, width, height] in
    pixels, or [x1, y1, x2, y2] in rows that state the image's size (``img_size``), as MAI-UI converted them.
    """

    name: ClassVar[str] = "screenspot-v2"
    title: ClassVar[str] = "ScreenSpot-v2"
    source: ClassVar[str] = (
        "ScreenSpot-v2 (OS-Atlas, arXiv 2410.23218, Apache-2.0): screenspot_{desktop,mobile,web}_v2.json with "
        "screenspotv2_image/ from huggingface.co/datasets/OS-Copilot/ScreenSpot-v2, "
        "or MAI-UI's lists in annotations_v2/ with images/"
    )
    dataset: ClassVar[str] = "screenspot-v2"
    lists: ClassVar[tuple[str, ...]] = ("annotations_v2/screenspot_{}_v2.json", "screenspot_{}_v2.json")
    image_folders: ClassVar[tuple[str, ...]] = ("screenspotv2_image", "images")


def _corners(row: Row) -> tuple[float, float, float, float]:
    """The target's corners in pixels. They may lie a little outside the image, as one in v2 does, but not cross."""
    x1, y1, third, fourth = row.numbers("bbox", 4)
    x2, y2 = (third, fourth) if "img_size" in row else (x1 + third, y1 + fourth)
    if not (x1 <= x2 and y1 <= y2):
        form = "[x1, y1, x2, y2]" if "img_size" in row else "[x, y, width, height]"
        raise row.error("bbox", f"expected {form} in pixels, got {row.value('bbox')!r}")
    return x1, y1, x2, y2


def _element(row: Row) -> str:
    field = "ui_type" if "ui_type" in row else "data_type"
    kind = row.text(field)
    if kind not in ("text", "icon"):
        raise row.error(field, f"expected text or icon, got {kind!r}")
    return kind

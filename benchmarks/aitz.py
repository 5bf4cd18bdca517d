"""Android in the Zoo (AiTZ; Zhang et al., 2024): tasks of Android in the Wild, each step described in words (CoAT).

Unpack the download (Google Drive or Baidu, 2.6 GB).

Layout: ``{train,test}/<subset>/<SUBSET>-<id>/<SUBSET>-<id>.json`` with the screenshots ``<SUBSET>-<id>_<step>.png`` next to it,
``<subset>`` being general, install, google_apps, single (training only) or web_shopping. ``root`` may be the folder of the two
splits, one that has it as ``android_in_the_zoo``, one split, or a folder with the episodes' folders in it. GUIEvalKit's
data/process_aitz.py writes the size of the image and fractional boxes into the same files; both are read. If no folder names
the split, it is taken from the ``image_full_path`` of the first step, else it is "test".

Labels: ``result_action_type`` has AITW's codes: 3 types ``result_action_text``, 4 touches at ``result_touch_yx`` and lifts
at ``result_lift_yx`` ([y, x] fractions), which is a tap when the two are within 0.04 and else a swipe in the finger's
direction, 5, 6 and 7 press BACK, HOME and ENTER, 10 ends the task as done, 11 as impossible.

``ui_positions`` are [y, x, height, width], in pixels in the release and in fractions once prepared. The numbers tell which: a
screen's boxes in pixels reach above 2, fractions do not, and have digits after the point. All steps of a file must agree, and
a file that leaves it open is refused. ``coat_action_desc`` is the step's low-level instruction; the other three ``coat_``
texts are in ``extras``.

Assumed: the episode's id is its folder's name without the subset's; if the rows state another one, ``extras`` keeps it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from guieval.actions import ActionSpace, Boxes
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
from ._images import needed_size
from ._rows import Row, episode, listed, placed, step

SPLITS = ("test", "train")
SUBSETS = ("general", "install", "google_apps", "single", "web_shopping")
CODES = frozenset({3, 4, 5, 6, 7, 10, 11})
LARGEST_FRACTION = 2.0
"""Fractions of a screen stay below this even for boxes that reach out of it; pixels of a whole screen do not."""

_README = "README of github.com/IMNearth/CoAT"


class _SplitFolder(NamedTuple):
    """A folder of episodes or of one, with the split and the subset that the folders around it name."""

    folder: Path
    split: str | None
    subset: str | None


class AiTZ(ABCBenchmark):
    """AiTZ in its authors' release, or as GUIEvalKit's data/process_aitz.py leaves it."""

    name = "aitz"
    title = "AiTZ"
    source = (
        "the download that the README of github.com/IMNearth/CoAT links "
        "({train,test}/<subset>/<SUBSET>-<id>/<SUBSET>-<id>.json with the screenshots next to it)"
    )
    paper = "arXiv 2403.02713"
    licence = "Apache-2.0, by the badge in its repository"
    published = (
        PublishedCount("test", 4724, _README, episodes=506, split="test"),
        PublishedCount("test, General", 1202, _README, episodes=156, split="test", subset="general"),
        PublishedCount("test, Install", 1108, _README, episodes=134, split="test", subset="install"),
        PublishedCount("test, GoogleApps", 621, _README, episodes=76, split="test", subset="google_apps"),
        PublishedCount("test, WebShopping", 1793, _README, episodes=140, split="test", subset="web_shopping"),
        PublishedCount("train", 13919, _README, episodes=1998, split="train"),
        PublishedCount("train, General", 2405, _README, episodes=323, split="train", subset="general"),
        PublishedCount("train, Install", 2519, _README, episodes=286, split="train", subset="install"),
        PublishedCount("train, GoogleApps", 1268, _README, episodes=166, split="train", subset="google_apps"),
        PublishedCount("train, Single", 2594, _README, episodes=844, split="train", subset="single"),
        PublishedCount("train, WebShopping", 5133, _README, episodes=379, split="train", subset="web_shopping"),
    )
    dataset = "aitz"
    protocol = "guievalkit"
    action_space = ActionSpace(frozenset({"CLICK", "SCROLL", "TYPE", "PRESS", "STOP"}))
    write_example = written_by("aitz.write_aitz")

    def __init__(self, root: Path, **options: Any) -> None:
        super().__init__(root, **options)
        self._places = _places(root)
        if not self._places:
            raise self.wrong_folder(root, "<subset>/<SUBSET>-<id>/<SUBSET>-<id>.json, below train and test or directly")

    def index(self) -> Sequence[EpisodeRef]:
        return listed(self, self._folders(), self._ref)

    def _folders(self) -> Iterator[_SplitFolder]:
        for place in self._places:
            for folder in episode_folders(place.folder):
                if subset := place.subset or _subset_of(folder.name):
                    yield _SplitFolder(folder, place.split, subset)

    def _ref(self, place: _SplitFolder) -> EpisodeRef:
        file = annotation_in(place.folder)
        rows = steps_in(file)
        subset = place.subset or ""
        key = EpisodeKey(self.name, subset, place.folder.name.removeprefix(f"{subset.upper()}-"))
        return EpisodeRef(key, len(rows), file, place.split or _recorded_split(rows[0]) or SPLITS[0])

    def load(self, ref: EpisodeRef) -> Episode:
        rows = steps_in(ref.locator)
        frame = _frame(rows)
        return episode(str(ref.locator), [self._step(ref, index, len(rows), row, frame) for index, row in enumerate(rows)])

    def _step(self, ref: EpisodeRef, index: int, length: int, row: Row, frame: str) -> StepTaskModel:
        screenshot = screenshot_beside(self.root, ref.locator, row)
        size = self._size(row, screenshot)
        extras = other_place(row, index, length, ref.key.episode_id)
        for field in ("coat_screen_desc", "coat_action_think", "coat_action_result"):
            if (stated := text_or_none(row, field)) is not None:
                extras[field] = stated
        action = labelled_action(row, CODES, extras)
        return step(
            row.where,
            **placed(self, ref, index, length),
            instruction=row.text("instruction"),
            low_level_instruction=text_or_none(row, "coat_action_desc"),
            screenshot=screenshot,
            screenshot_size=size,
            action=action,
            elements=row.build("ui_positions", lambda: _boxes(ui_boxes(row), frame, size)),
            extras=extras,
        )

    def _size(self, row: Row, screenshot: str) -> Size:
        if "image_width" in row or "image_height" in row:
            return row.whole("image_width"), row.whole("image_height")
        return needed_size(row, "image_path", self.root, screenshot)


class AiTZLow(AiTZ):
    """AiTZ with the description of the step's action given (*low*)."""

    name = "aitz-low"
    title = "AiTZ (low)"
    setting = "low"


def _places(root: Path) -> list[_SplitFolder]:
    """The folders of episodes in and below ``root``, in the order in which their episodes are listed."""
    for top in (root, root / "android_in_the_zoo"):
        if splits := [_SplitFolder(place.folder, split, place.subset) for split in SPLITS for place in _subsets(top / split)]:
            return splits
    place = root.resolve()
    split = next((name for name in (place.name, place.parent.name) if name in SPLITS), None)
    if subsets := _subsets(root):
        return [_SplitFolder(subset.folder, split, subset.subset) for subset in subsets]
    if root.is_dir() and any(_subset_of(entry.name) and (entry / f"{entry.name}.json").is_file() for entry in root.iterdir()):
        return [_SplitFolder(root, split, None)]
    return []


def _subsets(folder: Path) -> list[_SplitFolder]:
    return [_SplitFolder(folder / subset, None, subset) for subset in SUBSETS if holds_episodes(folder / subset)]


def _subset_of(name: str) -> str | None:
    return next((subset for subset in SUBSETS if name.startswith(f"{subset.upper()}-")), None)


def _recorded_split(row: Row) -> str | None:
    """The split in the path that the authors recorded, ``.../train/google_apps/GOOGLE_APPS-.../...png``."""
    parts = (text_or_none(row, "image_full_path") or "").split("/")
    return parts[-4] if len(parts) > 3 and parts[-4] in SPLITS else None


def _frame(rows: Sequence[Row]) -> Literal["pixels", "fractions"]:
    stated: dict[Literal["pixels", "fractions"], Row] = {}
    unclear: list[Row] = []
    for row in rows:
        numbers = [abs(number) for box in ui_boxes(row) for number in box]
        if any(number > LARGEST_FRACTION for number in numbers):
            stated.setdefault("pixels", row)
        elif any(number % 1 for number in numbers):
            stated.setdefault("fractions", row)
        elif numbers:
            unclear.append(row)
    if len(stated) == 2:
        raise stated["fractions"].error(
            "ui_positions", f"is in fractions of the screen, but in pixels at {stated['pixels'].where}"
        )
    if not stated and unclear:
        raise unclear[0].error("ui_positions", "does not tell whether it is in pixels or in fractions of the screen")
    return next(iter(stated), "fractions")


def _boxes(boxes: list[list[float]], frame: str, size: Size) -> Boxes:
    if frame == "pixels":
        width, height = size
        boxes = [[y / height, x / width, tall / height, wide / width] for y, x, tall, wide in boxes]
    return boxes_from_fractions(boxes)

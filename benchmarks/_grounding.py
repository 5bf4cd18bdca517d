"""Shared by the loaders of grounding sets: lists of rows, each a screenshot, a description and where the described thing is.

Every row is an episode of one step, named by the row's own id or by its list and position. Its reference is a click on the
middle of the target, or, if the description fits nothing on the screen, ``Stop(status="impossible")``.

A box is kept as it is published, also if it reaches over the edge of the image, has fractions of pixels or no area (a row
of UI-Vision is a single point); only a target whose middle is off the screen is damaged. Stated sizes are believed: whether
they are the images' is for ``guieval doctor``. A copy may have re-encoded its images, so if a named image is missing, the
one of the same name with another image suffix is taken.
"""

from __future__ import annotations

import io
import math
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from guieval.actions import ActionSpace, Boxes, Click, Point, Stop
from guieval.data.benchmark import ABCBenchmark, EpisodeRef
from guieval.errors import DataError, UsageError
from guieval.frames import PIXELS, Size
from guieval.steps import Episode, EpisodeKey

from ._images import find_image
from ._rows import Row, episode, parse, placed, read_list, read_whole, step

CORNERS = "[x1, y1, x2, y2]"


@dataclass(frozen=True)
class AnnotationList:
    """A file of rows, one JSON list or JSON lines; ``part`` is the loader's name of its content, e.g. a platform."""

    file: Path
    part: str = ""
    subset: str = ""

    @property
    def stem(self) -> str:
        """The file's name without ``.json`` or ``.json.gz``, and without what MAI-UI's conversion added to it."""
        return self.file.name.removesuffix(".gz").removesuffix(".json").removesuffix("_convert")


@dataclass(frozen=True)
class Entry:
    """One row with the list it is in and its position there."""

    row: Row
    source: AnnotationList
    number: int


@dataclass(frozen=True)
class Target:
    """The correct answer: the reference action, the box it is in, and the polygon if the target is one."""

    action: Click | Stop
    targets: Boxes = field(default_factory=Boxes)
    polygon: list[list[float]] | None = None


REFUSAL = Target(Stop(status="impossible"))


@dataclass(frozen=True)
class GroundingItem:
    """The content of a row in unified terms."""

    instruction: str
    screenshot: str
    size: Size
    target: Target
    groups: Mapping[str, str]
    extras: Mapping[str, Any] = field(default_factory=dict)


class GroundingBenchmark(ABCBenchmark):
    """A benchmark of one-step episodes; a subclass finds its lists and images, and reads a row."""

    setting = "grounding"
    action_space = ActionSpace(frozenset({"CLICK"}), frozenset(), frozenset())
    id_field: ClassVar[str] = "id"
    """The field that names a row's episode; an error about two rows of one id names it."""
    lists: ClassVar[tuple[str, ...]]
    """Where a benchmark of one list may have it, relative to the root, the authors' own place first."""
    image_folders: ClassVar[tuple[str, ...]]
    """Where images may be, relative to the root, the authors' own place first; "" is the root itself."""

    def __init__(self, root: Path, **options: Any) -> None:
        super().__init__(root, **options)
        self._lists = self._find_lists()
        folders = (folder for folder in self.image_folders if (root / folder).is_dir())
        self._images = next(folders, self.image_folders[0])

    def _find_lists(self) -> Sequence[AnnotationList]:
        """The annotation lists below the root, in the order of their episodes; raises ``wrong_folder`` if there are none."""
        file = find_file(self.root, self.lists)
        if file is None:
            raise self.wrong_folder(self.root, self.lists[0])
        return [AnnotationList(file)]

    @abstractmethod
    def _item(self, entry: Entry) -> GroundingItem:
        """The content of a row. Raises :class:`DataError` naming row and field."""

    def _episode_id(self, entry: Entry) -> str:
        return identity(entry.row, "id") if "id" in entry.row else f"{entry.source.stem}_{entry.number}"

    @cached_property
    def _entries(self) -> dict[EpisodeKey, Entry]:
        """Every row by its episode; the lists of the largest of these benchmarks are two megabytes."""
        entries: dict[EpisodeKey, Entry] = {}
        for source in self._lists:
            try:
                values = _rows_in(source.file)
            except DataError as error:
                self.refuse(error)
                continue
            for number, (where, value) in enumerate(values):
                try:
                    entry = Entry(Row.of(parse(value, where) if isinstance(value, bytes) else value, where), source, number)
                    key = EpisodeKey(self.name, source.subset, self._episode_id(entry))
                    if key in entries:
                        raise entry.row.error(self.id_field, f"{key.episode_id!r} is already that of {entries[key].row.where}")
                except DataError as error:
                    self.refuse(error)
                    continue
                entries[key] = entry
        if not entries and not self.skipped:
            raise UsageError(f"the lists in {str(self.root)!r} are empty; expected {self.source}")
        return entries

    def index(self) -> Sequence[EpisodeRef]:
        return [EpisodeRef(key, 1) for key in self._entries]

    def load(self, ref: EpisodeRef) -> Episode:
        entry = self._entries[ref.key]
        where, item = entry.row.where, self._item(entry)
        extras = dict(item.extras)
        if item.target.polygon is not None:
            extras["polygon"] = item.target.polygon
        only = step(
            where,
            **placed(self, ref, 0, 1),
            instruction=item.instruction,
            screenshot=item.screenshot,
            screenshot_size=item.size,
            action=item.target.action,
            targets=item.target.targets,
            groups=dict(item.groups),
            extras=extras,
        )
        return episode(where, [only])

    def _screenshot(self, *names: str) -> str:
        """The image's path relative to the root: the first of ``names`` that is there, else the first as it would be."""
        return find_image(self.root, *(f"{self._images}/{name}" if self._images else name for name in names))


def _rows_in(file: Path) -> list[tuple[str, Any]]:
    """The place and the value of every row; those of JSON lines are not parsed yet, so that one can be refused alone."""
    if ".jsonl" in file.suffixes:
        lines = io.BytesIO(read_whole(file)).readlines()
        return [(f"{file}, line {number}", line) for number, line in enumerate(lines, 1) if line.strip()]
    return [(f"{file}, row {number}", value) for number, value in enumerate(read_list(file))]


def find_file(root: Path, names: Iterable[str]) -> Path | None:
    """The first of ``names`` that is a file below ``root``, packed with gzip (``.gz`` after the name) or not."""
    candidates = (root / f"{name}{packed}" for name in names for packed in ("", ".gz"))
    return next((file for file in candidates if file.is_file()), None)


def identity(row: Row, name: str) -> str:
    """An id, which some lists write as a number."""
    value = row.value(name)
    return str(row.whole(name)) if isinstance(value, int) else row.text(name)


def stated_size(row: Row, name: str) -> Size:
    """An image's size as the row states it, [width, height] in pixels."""
    width, height = row.numbers(name, 2)
    if not (width.is_integer() and height.is_integer() and width > 0 and height > 0):
        raise row.error(name, f"expected a width and a height in pixels, got {row.value(name)!r:.80}")
    return int(width), int(height)


def box_target(row: Row, name: str, corners: Sequence[float], size: Size, form: str = CORNERS) -> Target:
    """A click on the middle of a box whose ``corners`` x1, y1, x2, y2 are in pixels; ``form`` is how the row writes it."""
    x1, y1, x2, y2 = corners
    if not (x1 <= x2 and y1 <= y2):
        raise row.error(name, f"expected {form} with the upper left corner first, got {row.value(name)!r:.120}")
    click = row.build(name, lambda: Click(point=PIXELS.decode((x1 + x2) / 2, (y1 + y2) / 2, size)))
    return Target(click, row.build(name, lambda: Boxes([_unified([(x1, y1), (x2, y2)], size)])))


def polygon_target(row: Row, name: str, flat: Sequence[float], size: Size) -> Target:
    """A click inside a polygon, given as x1, y1, x2, y2, ... in pixels; its box is the smallest one around it."""
    if len(flat) < 6 or len(flat) % 2:
        raise row.error(name, f"expected x and y of three corners or more, got {len(flat)} numbers")
    numbers = _unified(list(zip(flat[::2], flat[1::2], strict=True)), size)
    xs, ys = numbers[::2], numbers[1::2]
    point = row.build(name, lambda: _place_inside(xs, ys))
    return Target(
        row.build(name, lambda: Click(point=point)),
        Boxes([[min(xs), min(ys), max(xs), max(ys)]]),
        [[x, y] for x, y in zip(xs, ys, strict=True)],
    )


def _unified(points: Iterable[tuple[float, float]], size: Size) -> list[float]:
    width, height = size
    return [value for x, y in points for value in (x * 1000.0 / width, y * 1000.0 / height)]


def _place_inside(xs: Sequence[float], ys: Sequence[float]) -> Point:
    """The middle of the widest stretch inside a polygon at half its height; the middle of its box may lie outside.

    Raises ``ValueError`` for a polygon without an inside.
    """
    if not all(map(math.isfinite, (*xs, *ys))):
        raise ValueError("expected finite numbers")
    level = (min(ys) + max(ys)) / 2
    crossings = []
    for index, (x, y) in enumerate(zip(xs, ys, strict=True)):
        before_x, before_y = xs[index - 1], ys[index - 1]
        if (y > level) != (before_y > level):
            crossings.append(before_x + (level - before_y) * (x - before_x) / (y - before_y))
    crossings.sort()
    stretches = list(zip(crossings[::2], crossings[1::2], strict=True))
    left, right = max(stretches, key=lambda ends: ends[1] - ends[0], default=(0.0, 0.0))
    if not left < right:
        raise ValueError("the polygon has no area")
    return Point((left + right) / 2, level)

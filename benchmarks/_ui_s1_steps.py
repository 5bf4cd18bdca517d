"""UI-S1's annotation files of AndroidControl: JSONL, one episode on a line, places in pixels of the original screenshot.

The files do not say how large the screens are. A step's size is its image's where there is one, else the one given, else what
the rest of the episode shows (:func:`_screen_of`), else what is known of the episode (:mod:`._androidcontrol_screens`).
``extras["screen_size_from"]`` says which it was: image, option, swipe, box, known or fit.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from guieval.actions import (
    OPPOSITE,
    Action,
    Boxes,
    Button,
    Click,
    Direction,
    LongPress,
    Open,
    Point,
    Press,
    Scroll,
    Stop,
    StopStatus,
    Type,
    Wait,
    path_direction,
)
from guieval.data.benchmark import ABCBenchmark, EpisodeRef
from guieval.data.text_files import LineFile
from guieval.errors import DataError
from guieval.frames import PIXELS, Size
from guieval.steps import Episode, EpisodeKey

from ._androidcontrol_screens import LARGE, SCREENS, screen_for
from ._images import RecordedPaths, image_size
from ._rows import Row, direction, episode, parse, placed, step


class _Drawn(NamedTuple):
    """One step of UI-S1's file as far as pixels go: its touch point or swipe path, and its boxes."""

    points: tuple[tuple[float, float], ...]
    boxes: list[list[float]]


class _Span(NamedTuple):
    """Where an episode's line lies in the (unpacked) file; ``number`` counts lines from 1."""

    number: int
    start: int
    size: int


class StepsFile:
    """The episodes of one file, packed with gzip or not; without ``finish``, closing "terminate" steps are left out.

    Of a plain file only line positions are kept. A packed one cannot be read from the middle, so its text is (2.6 MB).
    """

    def __init__(self, benchmark: ABCBenchmark, file: Path, size: Size | None, *, finish: bool) -> None:
        self.benchmark = benchmark
        self._file = file
        self._lines = LineFile(file)
        self._size = size
        self._finish = finish
        self._split = "train" if "train" in file.name else "test"
        self._images = RecordedPaths(benchmark.root)

    def index(self) -> Sequence[EpisodeRef]:
        """Every episode in the file's order; those that hold only a left out finish step are none."""
        refs: dict[str, EpisodeRef] = {}
        for number, start, line in self._lines:
            span = _Span(number, start, len(line))
            if not line.strip():
                continue
            try:
                ref = self._ref(span, line)
                if ref.key.episode_id in refs:
                    raise self._doubled(ref, refs[ref.key.episode_id])
            except DataError as error:
                self.benchmark.refuse(error)
                continue
            refs[ref.key.episode_id] = ref
        return [ref for ref in refs.values() if ref.length]

    def _ref(self, span: _Span, line: bytes) -> EpisodeRef:
        row = self._row(span.number, line)
        steps = _steps(row)
        length = len(steps) - (not self._finish and _ends(steps[-1]))
        return EpisodeRef(EpisodeKey(self.benchmark.name, "", _episode_id(row)), length, span, self._split)

    def _doubled(self, ref: EpisodeRef, first: EpisodeRef) -> DataError:
        name = ref.key.episode_id
        return DataError(
            f"{self._file}, line {ref.locator.number}, field episode_id: "
            f"episode {name!r} is already on line {first.locator.number}"
        )

    def _row(self, number: int, line: bytes) -> Row:
        where = f"{self._file}, line {number}"
        return Row.of(parse(line, where), where)

    def load(self, ref: EpisodeRef) -> Episode:
        """The episode of ``ref``."""
        span: _Span = ref.locator
        row = self._row(span.number, self._lines.part(span.start, span.size))
        goal = row.text("goal")
        rows = [Row.of(item, f"{row.where}, step {index}") for index, item in enumerate(_steps(row))]
        drawn = [_drawn(item) for item in rows]
        stated = (self._size, "option") if self._size else _screen_of(ref.key.episode_id, drawn)
        if not self._finish and _ends(rows[-1].values):
            rows.pop()
        steps = []
        for index, (item, marks) in enumerate(zip(rows, drawn, strict=False)):
            screenshot = self._images.relative(item.text("screenshot"))
            size, size_from = self._image_size(item, screenshot) or stated
            extras: dict[str, Any] = {"screen_size_from": size_from}
            steps.append(
                step(
                    item.where,
                    **placed(self.benchmark, ref, index, len(rows)),
                    instruction=goal,
                    low_level_instruction=self._step_instruction(item),
                    screenshot=screenshot,
                    screenshot_size=size,
                    action=_pixel_action(item, marks, size, extras),
                    boxes=_boxes_from_pixels(item, marks, size),
                    extras=extras,
                )
            )
        return episode(row.where, steps)

    def _image_size(self, row: Row, screenshot: str) -> tuple[Size, str] | None:
        size = row.build("screenshot", lambda: image_size(self.benchmark.root, screenshot))
        return (size, "image") if size else None

    def _step_instruction(self, row: Row) -> str | None:
        if "step_instruction" in row:
            return row.text("step_instruction")
        if self.benchmark.setting == "low":
            raise row.error("step_instruction", f"is missing, but {self.benchmark.name!r} gives the model no other instruction")
        return None


def _steps(row: Row) -> list[Any]:
    steps = row.value("steps")
    if not isinstance(steps, list) or not steps:
        raise row.error("steps", f"expected a list of steps, got {steps!r:.80}")
    for index, item in enumerate(steps):
        if not isinstance(item, dict):
            raise row.error("steps", f"expected an object for step {index}, got {item!r:.80}")
    return steps


def _ends(step: Any) -> bool:
    """Whether a step, as it is in the file, says that the episode ends; a step too damaged to tell does not."""
    content = step.get("action_content") if isinstance(step, Mapping) else None
    return isinstance(content, Mapping) and content.get("action") == "terminate"


def _episode_id(row: Row) -> str:
    """The episode's id; the training file has none but in its screenshots' names, ``<episode>_<step>.png``."""
    if "episode_id" in row:
        return str(row.value("episode_id"))
    path = Row.of(_steps(row)[0], f"{row.where}, step 0").text("screenshot")
    name, separator, _ = path.rsplit("/", 1)[-1].rpartition("_")
    if not separator or not name:
        raise row.error("episode_id", f"is missing, and the screenshot {path!r} is not named <episode>_<step>.png")
    return name


def _drawn(row: Row) -> _Drawn:
    content = row.row("action_content")
    points = [content.numbers(field, 2) for field in ("coordinate", "coordinate2") if field in content]
    checks = row.row("check_options") if "check_options" in row else content
    field = "candidate_bbox" if "candidate_bbox" in checks else "bbox"
    return _Drawn(tuple((x, y) for x, y in points), checks.boxes(field) if field in checks else [])


def _screen_of(episode: str, drawn: Sequence[_Drawn]) -> tuple[Size, str]:
    """The size of an episode's screen, and what it is taken from.

    Every swipe in UI-S1's file runs along a middle line of the screen between 1/4 and 3/4 of the other axis, so its two ends
    add up to the size. Where an episode has none, a box that covers a whole screen shows the size.
    """
    for marks in drawn:
        if len(marks.points) == 2:
            (x1, y1), (x2, y2) = marks.points
            if math.isfinite(x1 + x2 + y1 + y2) and (size := (round(x1 + x2), round(y1 + y2))) in SCREENS:
                return size, "swipe"
    boxes = {tuple(box) for marks in drawn for box in marks.boxes}
    for size in SCREENS:
        if (0, 0, *size) in boxes:
            return size, "box"
    points = (point for marks in drawn for point in marks.points)
    return screen_for(episode, points, wide=any(x1 <= 0 and x2 == LARGE[0] for x1, _, x2, _ in boxes))


def _pixel_action(row: Row, marks: _Drawn, size: Size, extras: dict[str, Any]) -> Action:
    content = row.row("action_content")

    def point(field: str) -> Point:
        x, y = content.numbers(field, 2)
        return content.build(field, lambda: PIXELS.decode(x, y, size))

    def milliseconds() -> dict[str, float]:
        return {"duration": content.number("time") * 1000.0} if "time" in content else {}

    match content.text("action"):
        case "click":
            return Click(point=point("coordinate"))
        case "long_press":
            touched = point("coordinate")
            return content.build("time", lambda: LongPress(point=touched, **milliseconds()))
        case "swipe":
            return _pixel_swipe(row, (point("coordinate"), point("coordinate2")), extras)
        case "type":
            return Type(text=content.text("text"))
        case "open":
            return Open(app=content.text("text"))
        case "system_button":
            return Press(button=_button(content))
        case "wait":
            return content.build("time", lambda: Wait(**milliseconds()))
        case "terminate":
            return Stop(status=_status(content))
        case name:
            raise content.error(
                "action",
                f"expected click, long_press, swipe, type, open, system_button, wait or terminate, got {name!r}",
            )


def _pixel_swipe(row: Row, path: tuple[Point, Point], extras: dict[str, Any]) -> Scroll:
    """The finger's swipe for a scroll of UI-S1.

    Its ``direction`` is AndroidControl's own word, the content's direction on both axes: where the instruction names a side,
    67 of the steps called *right* say to swipe left and 14 right, 20 called *left* say right and one left. Its path was
    drawn from that word and follows the finger only vertically; horizontally it runs with the word, so there the finger
    starts at the path's other end.
    """
    along = path_direction(*path)
    if along is None:
        raise row.error("action_content.coordinate2", "expected another place than coordinate's")
    start, finger = path[0], along
    if along in ("left", "right"):
        start, finger = path[1], OPPOSITE[along]
    label: Direction = along
    checks = row.row("check_options") if "check_options" in row else None
    if checks is not None and "direction" in checks:
        label = direction(checks)
        finger = OPPOSITE[label]
    extras["direction_label"] = label
    extras["path"] = [list(point) for point in path]
    return Scroll(point=start, direction=finger)


def _button(content: Row) -> Button:
    match content.text("button").lower():
        case "back":
            return "BACK"
        case "home":
            return "HOME"
        case "enter":
            return "ENTER"
        case _:
            raise content.error("button", f"expected Back, Home or Enter, got {content.value('button')!r}")


def _status(content: Row) -> StopStatus:
    match content.text("status").lower():
        case "success":
            return "finish"
        case "failure":
            return "impossible"
        case _:
            raise content.error("status", f"expected success or failure, got {content.value('status')!r}")


def _boxes_from_pixels(row: Row, marks: _Drawn, size: Size) -> Boxes:
    if not marks.boxes:
        return Boxes()
    return row.build(
        "candidate_bbox", lambda: Boxes(np.array(marks.boxes, dtype=np.float64) * 1000.0 / np.array([*size, *size]))
    )

"""UI-S1's annotation files of AndroidControl: JSONL, one episode on a line, places in pixels of the original screenshot.

The files do not state the sizes of the screens. A step's size is its image's if there is one, else the one given, else what
the rest of the episode shows (:func:`_screen_of`), else what is known of the episode (:mod:`._androidcontrol_screens`).
``extras["screen_size_from"]`` names the source: image, option, swipe, box, known or fit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from guieval import actions as act
from guieval.data.benchmark import ABCBenchmark, EpisodeRef
from guieval.data.text_files import LineFile
from guieval.frames import PIXELS, Size
from guieval.steps import Episode, EpisodeKey

from ._androidcontrol_screens import LARGE, SCREENS, screen_for
from ._images import RecordedPaths, size_of
from ._rows import Row, Span, episode, line_row, listed, meant, one_of, parse, pixel_boxes, placed, step, step_rows

BUTTONS: dict[str, act.Button] = {"back": "BACK", "home": "HOME", "enter": "ENTER"}
STATUSES: dict[str, act.StopStatus] = {"success": "finish", "failure": "impossible"}


class _Drawn(NamedTuple):
    """One step of UI-S1's file as far as pixels go: its touch point or swipe path, and its boxes."""

    points: tuple[tuple[float, float], ...]
    boxes: list[list[float]]


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
        """Every episode in the file's order; without those that hold only a finish step that is left out."""
        lines = ((number, start, line) for number, start, line in self._lines if line.strip())
        return [ref for ref in listed(self.benchmark, lines, self._ref) if ref.length]

    def _ref(self, place: tuple[int, int, bytes]) -> EpisodeRef:
        number, start, line = place
        row = line_row(self._file, number, line)
        steps = _steps(row)
        length = len(steps) - (not self._finish and _ends(steps[-1]))
        span = Span(row.where, start, len(line))
        return EpisodeRef(EpisodeKey(self.benchmark.name, "", _episode_id(row)), length, span, self._split)

    def load(self, ref: EpisodeRef) -> Episode:
        span: Span = ref.locator
        row = Row.of(parse(self._lines.part(span.start, span.size), span.where), span.where)
        goal = row.text("goal")
        rows = _steps(row)
        drawn = [_drawn(item) for item in rows]
        stated = (self._size, "option") if self._size else _screen_of(ref.key.episode_id, drawn)
        if not self._finish and _ends(rows[-1]):
            rows.pop()
        steps = []
        for index, (item, marks) in enumerate(zip(rows, drawn, strict=False)):
            screenshot = self._images.relative(item.text("screenshot"))
            image = size_of(item, "screenshot", self.benchmark.root, screenshot)
            size, size_from = (image, "image") if image else stated
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
                    elements=item.build("candidate_bbox", partial(pixel_boxes, marks.boxes, size)),
                    extras=extras,
                )
            )
        return episode(row.where, steps)

    def _step_instruction(self, row: Row) -> str | None:
        if "step_instruction" in row:
            return row.text("step_instruction")
        if self.benchmark.setting == "low":
            raise row.error("step_instruction", f"is missing, but {self.benchmark.name!r} gives the model no other instruction")
        return None


def _steps(row: Row) -> list[Row]:
    return step_rows(row.value("steps"), row.where)


def _ends(step: Row) -> bool:
    """Whether a step of the file ends the episode; a damaged step does not."""
    content = step.values.get("action_content")
    return isinstance(content, Mapping) and content.get("action") == "terminate"


def _episode_id(row: Row) -> str:
    """The episode's id; the training file has none but in its screenshots' names, ``<episode>_<step>.png``."""
    if "episode_id" in row:
        return str(row.value("episode_id"))
    path = _steps(row)[0].text("screenshot")
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
    add up to the size. If an episode has none, a box that covers a whole screen shows the size.
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


def _pixel_action(row: Row, marks: _Drawn, size: Size, extras: dict[str, Any]) -> act.Action:
    content = row.row("action_content")

    def point(field: str) -> act.Point:
        x, y = content.numbers(field, 2)
        return content.build(field, lambda: PIXELS.decode(x, y, size))

    def milliseconds() -> dict[str, float]:
        return {"duration": content.number("time") * 1000.0} if "time" in content else {}

    def held() -> act.Action:
        touched = point("coordinate")
        return content.build("time", lambda: act.LongPress(point=touched, **milliseconds()))

    meanings: dict[str, Callable[[], act.Action]] = {
        "click": lambda: act.Click(point=point("coordinate")),
        "long_press": held,
        "swipe": lambda: _pixel_swipe(row, (point("coordinate"), point("coordinate2")), extras),
        "type": lambda: act.Type(text=content.text("text")),
        "open": lambda: act.Open(app=content.text("text")),
        "system_button": lambda: act.Press(button=BUTTONS[one_of(content, "button", tuple(BUTTONS), str.lower)]),
        "wait": lambda: content.build("time", lambda: act.Wait(**milliseconds())),
        "terminate": lambda: act.Stop(status=STATUSES[one_of(content, "status", tuple(STATUSES), str.lower)]),
    }
    return meant(content, "action", meanings)


def _pixel_swipe(row: Row, path: tuple[act.Point, act.Point], extras: dict[str, Any]) -> act.Scroll:
    """The finger's swipe for a scroll of UI-S1.

    Its ``direction`` is AndroidControl's own word, the content's direction on both axes: if the instruction names a side,
    67 of the steps called *right* say to swipe left and 14 right, 20 called *left* say right and one left. Its path was
    drawn from that word and follows the finger only vertically; horizontally it runs with the word, so there the finger
    starts at the path's other end.
    """
    along = act.path_direction(*path)
    if along is None:
        raise row.error("action_content.coordinate2", "expected another place than coordinate's")
    start, finger = path[0], along
    if along in ("left", "right"):
        start, finger = path[1], act.OPPOSITE[along]
    label: act.Direction = along
    checks = row.row("check_options") if "check_options" in row else None
    if checks is not None and "direction" in checks:
        label = one_of(checks, "direction", act.DIRECTIONS)
        finger = act.OPPOSITE[label]
    extras["direction_label"] = label
    extras["path"] = [list(point) for point in path]
    return act.Scroll(point=start, direction=finger)

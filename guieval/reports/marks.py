"""Draws on a screenshot what the step viewer's page draws: references, predictions, targets, elements and accepted areas.

Shapes and colours are those of ``guieval/reports/viewer`` (``script/marks.js`` and ``marks.css``), so that a figure made in
Python and a page of a report look alike. Places are in thousandths of the screen.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from guieval.actions import Action, Scroll, scroll_path
from guieval.steps import StepTaskModel

if TYPE_CHECKING:
    from PIL.Image import Image

BLUE, ORANGE = (0, 114, 178, 255), (200, 75, 0, 255)
"""The reference and its alternatives, and the prediction."""
_WHITE, _HALO, _LIGHT = (255, 255, 255, 255), (255, 255, 255, 230), (255, 255, 255, 191)
_BOX, _ACCEPTED, _ACCEPTED_FILL = (31, 120, 180, 255), (0, 121, 90, 255), (0, 158, 115, 33)
_PAGE = 900
"""Pixels of a page that a screenshot's longer side takes; larger screenshots get larger marks."""
_SMOOTHED = 3_000_000
"""Pixels up to which marks are drawn at twice the size and reduced, which smooths their edges."""

_Place = tuple[float, float]
_Colour = tuple[int, int, int, int]
Kind = Literal["reference", "alternative", "prediction"]


class MarkOverlay:
    """Marks for a screenshot of ``size`` pixels; :meth:`over` puts them on it.

    ``unit`` is the size of a pixel of the viewer's page in pixels of the screenshot.
    """

    def __init__(self, size: tuple[int, int], unit: float | None = None) -> None:
        from PIL import Image, ImageDraw

        self._finer = 2 if size[0] * size[1] <= _SMOOTHED else 1
        self._width, self._height = (side * self._finer for side in size)
        self.unit = max(1.0, max(size) / _PAGE) if unit is None else unit
        self._pixel = self.unit * self._finer
        self._layer = Image.new("RGBA", (self._width, self._height))
        self._draw = ImageDraw.Draw(self._layer)

    def over(self, screenshot: Image) -> Image:
        """The marks over a copy of the screenshot: RGB, of the same size."""
        from PIL import Image

        marks = self._layer.reduce(self._finer) if self._finer > 1 else self._layer
        return Image.alpha_composite(screenshot.convert("RGBA"), marks).convert("RGB")

    def boxes(
        self,
        targets: Iterable[Sequence[float]],
        elements: Iterable[Sequence[float]],
        polygon: Sequence[Sequence[float]] | None = None,
    ) -> None:
        """The elements of a step dotted, then its targets in a thicker line, with the corners of a target that has them."""
        for box in elements:
            self._line(self._rectangle(box), _LIGHT, 3)
            self._line(self._rectangle(box), _BOX, 1, dashes=(2, 2))
        shapes = [self._rectangle(box) for box in targets]
        for shape in shapes:
            self._line(shape, _LIGHT, 4)
        if polygon is not None:
            shapes.append(self._corners(polygon))
        for shape in shapes:
            self._line(shape, _BOX, 2)

    def accepted(
        self, boxes: Iterable[Sequence[float]], polygon: Sequence[Sequence[float]] | None, radii: Iterable[Sequence[float]]
    ) -> None:
        """Where a protocol accepts a click: boxes, a polygon, and ellipses of (x, y, horizontal radius, vertical radius)."""
        shapes = [self._rectangle(box) for box in boxes]
        if polygon is not None:
            shapes.append(self._corners(polygon))
        for x, y, across, down in radii:
            centre, radius = self._at(x, y), self._at(across, down)
            shapes.append(_round(centre, *radius))
        for shape in shapes:
            self._draw.polygon(shape, fill=_ACCEPTED_FILL)
        for shape in shapes:
            self._line(shape, _LIGHT, 3)
            self._line(shape, _ACCEPTED, 1.5, dashes=(5, 3))

    def action(self, action: Action, kind: Kind) -> None:
        """A ring with the letter R for the reference, a diamond with P for a prediction, a small ring for an alternative.

        A scroll has an arrow as well. An action without a point has no mark.
        """
        point = getattr(action, "point", None)
        if point is None:
            return
        colour = ORANGE if kind == "prediction" else BLUE
        centre = self._at(*point)
        if isinstance(action, Scroll):
            start, end = scroll_path(action)
            self._arrow(self._at(*start), self._at(*end), colour)
        small = kind == "alternative"
        reach = self._pixel * (11 if kind == "prediction" else 6 if small else 10)
        shape = _diamond(centre, reach) if kind == "prediction" else _round(centre, reach, reach)
        self._line(shape, _HALO, 4 if small else 6)
        self._line(shape, colour, 2 if small else 3, dashes=(3, 2) if small else None)
        self._draw.polygon(_round(centre, 3 * self._pixel, 3 * self._pixel), fill=_WHITE)
        self._draw.polygon(_round(centre, 2 * self._pixel, 2 * self._pixel), fill=colour)
        if not small:
            self._letter(centre, "P" if kind == "prediction" else "R", colour)

    def _letter(self, centre: _Place, letter: str, colour: _Colour) -> None:
        """A letter above the mark, on the other side of it if the screen ends."""
        from PIL import ImageFont

        pixel = self._pixel
        across, up = (17 if letter == "R" else -17) * pixel, -10 * pixel
        x = centre[0] + across if 8 * pixel <= centre[0] + across <= self._width - 8 * pixel else centre[0] - across
        y = centre[1] + up if centre[1] + up >= 14 * pixel else centre[1] - up
        font = ImageFont.load_default(15 * pixel)
        stroke = max(1, round(2 * pixel))
        self._draw.text((x, y), letter, fill=colour, font=font, anchor="ms", stroke_width=stroke, stroke_fill=_WHITE)

    def _arrow(self, start: _Place, end: _Place, colour: _Colour) -> None:
        turn = math.atan2(end[1] - start[1], end[0] - start[0])
        length = 13 * self._pixel
        wings = [(end[0] - length * math.cos(turn + by), end[1] - length * math.sin(turn + by)) for by in (0.5, -0.5)]
        for ink, width in ((_HALO, 6), (colour, 3)):
            self._line([start, end], ink, width, closed=False)
            self._line([wings[0], end, wings[1]], ink, width, closed=False)

    def _at(self, x: float, y: float) -> _Place:
        """A place in pixels; points far off-screen are clamped: Pillow overflows on huge coordinates."""
        near = [min(max(value, -2000.0), 3000.0) / 1000 for value in (x, y)]
        return near[0] * self._width, near[1] * self._height

    def _rectangle(self, box: Sequence[float]) -> list[_Place]:
        x1, y1, x2, y2 = box
        return self._corners([(x1, y1), (x2, y1), (x2, y2), (x1, y2)])

    def _corners(self, corners: Sequence[Sequence[float]]) -> list[_Place]:
        return [self._at(x, y) for x, y in corners]

    def _line(
        self,
        points: Sequence[_Place],
        colour: _Colour,
        width: float,
        *,
        dashes: tuple[float, float] | None = None,
        closed: bool = True,
    ) -> None:
        path = [*points, *points[:2]] if closed else [*points]
        wide = max(1, round(width * self._pixel))
        parts = [path] if dashes is None else _dashed(path[: len(points) + 1], *(self._pixel * dash for dash in dashes))
        for part in parts:
            self._draw.line(part, fill=colour, width=wide, joint="curve")


def step_overlay(
    size: tuple[int, int],
    task: StepTaskModel,
    prediction: Action | None = None,
    *,
    area: Mapping[str, Any] | None = None,
    polygon: Sequence[Sequence[float]] | None = None,
    boxes: bool = True,
    unit: float | None = None,
) -> MarkOverlay:
    """The marks of a step in the viewer's order: accepted ``area``, elements and targets (``boxes``), accepted actions."""
    overlay = MarkOverlay(size, unit)
    if area is not None:
        accepted = getattr(task, area["boxes"]) if isinstance(area["boxes"], str) else area["boxes"]
        overlay.accepted(accepted, polygon if area["polygon"] else None, area["radii"])
    if boxes:
        overlay.boxes(task.targets, task.elements, polygon)
    for action in task.alternatives:
        overlay.action(action, "alternative")
    overlay.action(task.action, "reference")
    if prediction is not None:
        overlay.action(prediction, "prediction")
    return overlay


def _round(centre: _Place, across: float, down: float) -> list[_Place]:
    turns = (math.tau * part / 72 for part in range(72))
    return [(centre[0] + across * math.cos(turn), centre[1] + down * math.sin(turn)) for turn in turns]


def _diamond(centre: _Place, reach: float) -> list[_Place]:
    x, y = centre
    return [(x, y - reach), (x + reach, y), (x, y + reach), (x - reach, y)]


def _dashed(path: Sequence[_Place], drawn: float, blank: float) -> list[list[_Place]]:
    """The path cut into pieces of length ``drawn`` with gaps of length ``blank``."""
    pieces: list[list[_Place]] = []
    pen, left = True, drawn
    piece = [path[0]]
    for start, end in itertools.pairwise(path):
        length, done = math.dist(start, end), 0.0
        while length - done > left:
            done += left
            share = done / length
            place = (start[0] + share * (end[0] - start[0]), start[1] + share * (end[1] - start[1]))
            if pen:
                pieces.append([*piece, place])
            pen, left, piece = not pen, blank if pen else drawn, [place]
        left -= length - done
        piece.append(end)
    return [*pieces, piece] if pen else pieces

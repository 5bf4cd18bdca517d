"""How a predicted point is compared with the label: which targets or elements count, their enlargement, and the distance.

Everything is compared in screen fractions (thousandths / 1000, each axis by its own side), in the order of operations the
published scorers use, so that borders fall on the same side as theirs. Borders are inclusive unless a rule sets otherwise.
A point within :data:`guieval.actions.BORDER` of a border is on it, and distances measured in pixels are compared to a
millionth of a pixel, because neither fractions nor thousandths can hold every whole pixel exactly.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from guieval.actions import BORDER, OUTWARD, Boxes, Point, contain
from guieval.evaluation.judgement import Judgement

Inside: TypeAlias = Literal["targets", "target-element", "elements", "nothing"]
Which: TypeAlias = Literal["any", "around-reference", "nearest", "nearest-to-prediction"]
Measure: TypeAlias = Literal["fraction", "canvas", "pixels", "longest-side", "diagonal"]
ClickReference: TypeAlias = Literal["label", "origin"]
Polygon: TypeAlias = tuple[tuple[float, float], ...]
Size: TypeAlias = tuple[int, int]
"""Width and height of a screenshot in pixels."""

_OUTWARD = OUTWARD / 1000.0
"""Shifts of a box's corners by a border's width, in screen fractions."""
_INWARD = -_OUTWARD
_PIXEL_BORDER = 1e-6
"""The width of a border in distances in pixels."""
_FEW = 8
"""Up to this many boxes, comparing them one by one is faster than as arrays."""
_ZERO, _HALF, _ONE, _THOUSAND = (np.array(number) for number in (0.0, 0.5, 1.0, 1000.0))
"""As arrays, because numpy computes faster with these than with Python's numbers."""
_ORIGIN = Point(0.0, 0.0)
_NONE = Boxes()
_TARGET_ELEMENT = "one of the step's targets or, if none contains it, the smallest of the elements"
_EARLIER_WORDS = (
    (_TARGET_ELEMENT, "the smallest of the boxes"),
    ("targets and elements", "boxes"),
    ("targets or elements", "boxes"),
    ("targets", "boxes"),
)


@dataclass(frozen=True)
class ClickRule:
    """Whether a point hits its target: inside an accepted box, or close enough to the reference point.

    Boxes. ``inside`` says which of a step's boxes may count: its ``targets``; its ``elements``, that is all boxes of the
    screen, its targets first; ``target-element``, its targets and, if none is around the reference point, the smallest element
    by area that is (the earlier first, border included); or ``nothing``. ``which`` selects among these, once they are
    enlarged: any, those that contain the reference point, or the ``nearest`` ones by distance of their centre to the reference
    point or to the prediction (the earlier box first at equal distance). ``enlarge`` scales each box about its centre. With
    ``clip`` the upper left corner is then cut at 0 without moving the size, and width and height are cut at 1 screen, so a box
    cut at the left or top reaches further right or down (AgentCPM-GUI and GUIEvalKit); without it nothing is cut (UI-S1).
    ``strict`` leaves a box's own border out. ``far_edge`` is taken off the right and lower edge before anything, in pixels of
    the screenshot (VLMEvalKit). With ``polygon`` a step that has one (:func:`guieval.evaluation.rules.polygon_of`) is judged by
    it, border included, and its boxes do not count. With ``first_corners`` the box from (x1, y1) to (x1 + x2, y1 + y2)
    replaces a polygon whose first two corners are (x1, y1) and (x2, y2) (MAI-UI).

    Distance. ``fallback`` is the distance to the reference point that is accepted regardless of the boxes; ``None`` accepts
    none, ``fallback_strict`` asks for less than it. ``measure`` is its unit: ``fraction``, the screen, each
    axis by its own side, so an ellipse on the screen; ``canvas``, pixels after both points were scaled onto a ``canvas``
    (width, height); ``pixels`` of the step's screenshot; ``longest-side``, the longer side of the screenshot; ``diagonal``, its
    diagonal. The last four are circles.

    Points. ``whole_pixels`` cuts the predicted point first to whole pixels of the screenshot, or of the ``canvas`` if
    distances are measured on one. ``zero_is_missing``: a predicted coordinate of 0 misses. ``reference="origin"`` compares
    with the upper left corner of the screen in place of the labelled point (CoAT's scorer at 9ab1a9f). With ``by_node`` the
    predicted point is replaced by the smallest box it is in (itself if it is in none), enlarged likewise: it hits when
    that contains the reference point, or when its intersection over union with an enlarged box that contains the reference
    point is above 0.5; ``which`` does not matter then (CoAT).
    """

    inside: Inside
    which: Which = "any"
    enlarge: float = 1.0
    clip: bool = False
    nearest: int = 5
    fallback: float | None = None
    strict: bool = False
    polygon: bool = False
    first_corners: bool = False
    measure: Measure = "fraction"
    canvas: tuple[float, float] = (1080.0, 2400.0)
    fallback_strict: bool = False
    zero_is_missing: bool = False
    whole_pixels: bool = False
    far_edge: float = 0.0
    reference: ClickReference = "label"
    by_node: bool = False

    def accepted(
        self, targets: Boxes, elements: Boxes, reference: Point, *, predicted: Point | None = None, screen: Size | None = None
    ) -> NDArray[np.float64]:
        """The boxes a point may be in: columns of a (4, k) array x1, y1, x2, y2, in screen fractions, their borders within.

        ``predicted`` matters only if boxes are chosen by it; without it all of them are returned. ``screen`` is the
        screenshot's width and height in pixels. Raises ``ValueError`` if the rule counts in pixels and it is not given.
        """
        if self.reference == "origin":
            reference = _ORIGIN
        x, y = reference.x / 1000.0, reference.y / 1000.0
        corners = self._corners(self.boxes_of(targets, elements, reference), screen)
        size = self._enlarge(corners)
        if self.which == "nearest":
            corners = self._nearest(corners, size, x, y)
        elif self.which == "nearest-to-prediction" and predicted is not None:
            corners = self._nearest(corners, size, predicted.x / 1000.0, predicted.y / 1000.0)
        corners += _INWARD if self.strict else _OUTWARD
        if self.which == "around-reference":
            corners = corners.compress(contain(corners, x, y), axis=1)
        return corners

    def boxes_of(self, targets: Boxes, elements: Boxes, reference: Point) -> Boxes:
        """The boxes of a step that may count (``inside``), as they are."""
        match self.inside:
            case "targets":
                return targets
            case "target-element":
                return target_boxes(targets, elements, reference)
            case "elements":
                return targets + elements
            case "nothing":
                return _NONE

    def _corners(self, boxes: Boxes, screen: Size | None) -> NDArray[np.float64]:
        """(4, k) the boxes as they are, in screen fractions."""
        corners = boxes.array.T.copy()
        if self.far_edge:
            sides = np.array([[float(side)] for side in _known(screen)])
            # Back to the pixels that the edge came from, so that the new edge is what the loader would compute from those.
            pixels = corners[2:] * sides
            pixels /= _THOUSAND
            pixels = pixels.round(6)
            pixels -= self.far_edge
            pixels *= _THOUSAND
            np.divide(pixels, sides, out=corners[2:])
        corners /= _THOUSAND
        return corners

    def _enlarge(self, corners: NDArray[np.float64]) -> NDArray[np.float64]:
        """Enlarge and cut the boxes in place; returns their (2, k) widths and heights."""
        near, far = corners[:2], corners[2:]
        size = far - near
        if self.clip:
            growth = size * (self.enlarge - 1)
            size += growth
            np.minimum(size, _ONE, out=size)
            growth *= _HALF
            near -= growth
            np.maximum(near, _ZERO, out=near)
            np.add(near, size, out=far)
        elif self.enlarge != 1.0:
            centre = near + far
            centre *= _HALF
            size *= self.enlarge
            half = size * _HALF
            np.subtract(centre, half, out=near)
            np.add(centre, half, out=far)
        return size

    def _nearest(self, corners: NDArray[np.float64], size: NDArray[np.float64], x: float, y: float) -> NDArray[np.float64]:
        """The ``nearest`` boxes by distance of their centre, the earlier first."""
        if corners.shape[1] <= self.nearest:
            return corners
        centre = size * _HALF
        centre += corners[:2]
        dx, dy = centre[0] - x, centre[1] - y
        dx *= dx
        dy *= dy
        dy += dx
        order = dy.argsort(kind="stable")
        chosen: NDArray[np.float64] = corners.take(order[: self.nearest], axis=1)
        return chosen

    def reach(self, screen: Size | None) -> tuple[float, float, float]:
        """The factors for a difference in screen fractions on each axis, and the distance accepted then (<=).

        There must be a fallback. Raises ``ValueError`` if the rule counts in pixels and ``screen`` is not given.
        """
        assert self.fallback is not None
        if self.measure == "fraction":
            return 1.0, 1.0, math.nextafter(self.fallback, -math.inf) if self.fallback_strict else self.fallback
        width, height = self.canvas if self.measure == "canvas" else _known(screen)
        limit = self.fallback
        if self.measure in ("longest-side", "diagonal"):
            limit *= max(width, height) if self.measure == "longest-side" else math.hypot(width, height)
        return width, height, limit - _PIXEL_BORDER if self.fallback_strict else limit + _PIXEL_BORDER

    def judge(
        self,
        targets: Boxes,
        elements: Boxes,
        reference: Point,
        predicted: Point,
        polygon: Polygon | None = None,
        screen: Size | None = None,
    ) -> Judgement:
        """Compare two points; ``distance`` is in thousandths of the screen, between the points as they were given.

        ``targets`` and ``elements`` are the step's. A ``polygon`` replaces them. ``screen`` is the screenshot's width and
        height in pixels. Raises ``ValueError`` if the rule counts in pixels and it is not given.
        """
        dx, dy = predicted.x - reference.x, predicted.y - reference.y
        distance = math.sqrt(dx * dx + dy * dy)
        if self.whole_pixels:
            predicted = _cut(predicted, self.canvas if self.measure == "canvas" else _known(screen))
        if self.zero_is_missing and not (predicted.x and predicted.y):
            return Judgement(True, False, distance, None, "a coordinate of 0 counts as none")
        if self.reference == "origin":
            reference = _ORIGIN
        x, y = predicted.x / 1000.0, predicted.y / 1000.0
        measured = 0.0
        if self.fallback is not None:
            sx, sy, limit = self.reach(screen)
            dx, dy = (x - reference.x / 1000.0) * sx, (y - reference.y / 1000.0) * sy
            measured = math.sqrt(dx * dx + dy * dy)
            if measured <= limit:
                return Judgement(True, True, distance, None, self._distances(distance, measured))
        if polygon is not None:
            if self.first_corners:
                polygon = _from_first_corners(polygon)
            if in_polygon(polygon, predicted.x, predicted.y):
                return Judgement(True, True, distance, None, "inside the target polygon")
            where = "outside the target polygon"
        elif self.by_node:
            if self._node_hits(self.boxes_of(targets, elements, reference), reference, predicted, screen):
                return Judgement(True, True, distance, None, "the element pointed at is around the reference, or nearly so")
            where = "the element pointed at is not around the reference"
        elif self.inside == "nothing":
            where = "boxes do not count"
        else:
            accepted = self.accepted(targets, elements, reference, predicted=predicted, screen=screen)
            if _any_contains(accepted, x, y):
                at = reference.x / 1000.0, reference.y / 1000.0
                if self.inside == "targets" or targets.containing(predicted).any():
                    return Judgement(True, True, distance, None, "inside a target box")
                around = contain(accepted.compress(contain(accepted, x, y), axis=1), *at).any()
                which = "around" if around else "that is not around"
                return Judgement(True, True, distance, None, f"inside a box of the screen {which} the reference")
            where = self._outside(targets, elements, any_counts=bool(accepted.shape[1]))
        if self.fallback is not None:
            where = f"{self._distances(distance, measured)}; {where}"
        return Judgement(True, False, distance, None, where)

    def _outside(self, targets: Boxes, elements: Boxes, *, any_counts: bool) -> str:
        targets_only = self.inside == "targets"
        if any_counts:
            return "outside every target box" if targets_only else "outside every box of the screen that counts"
        if len(targets if targets_only else targets + elements):
            return f"no {'target box' if targets_only else 'box of the screen'} is around the reference"
        return "the step has no target box" if targets_only else "the step has neither targets nor elements"

    def _node_hits(self, boxes: Boxes, reference: Point, predicted: Point, screen: Size | None) -> bool:
        """Whether the element pointed at, enlarged, contains the reference or is nearly a box that does."""
        x, y = predicted.x / 1000.0, predicted.y / 1000.0
        at_x, at_y = reference.x / 1000.0, reference.y / 1000.0
        corners = self._corners(boxes, screen)
        own = _smallest(corners, x, y)
        self._enlarge(corners)
        if own is None:
            return x == at_x and y == at_y
        holding = contain(corners + _OUTWARD, at_x, at_y)
        if holding[own]:
            return True
        target = corners[:, own].tolist()
        return any(overlap(target, other) > 0.5 for other in corners.compress(holding, axis=1).T.tolist())

    def _distances(self, distance: float, measured: float) -> str:
        assert self.fallback is not None
        allowed = "less than " if self.fallback_strict else ""
        if self.measure == "fraction":
            return f"{distance:.4g} thousandths from the reference; {allowed}{1000 * self.fallback:g} allowed"
        if self.measure in ("longest-side", "diagonal"):
            allowed += f"{self.fallback:g} of the {'longer side' if self.measure == 'longest-side' else 'diagonal'}"
        else:
            allowed += f"{self.fallback:.6g} px"
        return f"{measured:.4g} px from the reference; {allowed} allowed"

    def describe(self) -> str:
        to = "the reference point" if self.reference == "label" else "the upper left corner of the screen"
        boxes = "targets" if self.inside == "targets" else "targets and elements"
        if self.by_node:
            words = (
                f"the smallest of the step's {boxes} that holds the point holds {to}, or overlaps one that does with "
                "intersection over union above 0.5"
            )
        elif self.inside == "nothing":
            words = "boxes do not count"
        elif self.inside == "target-element":
            words = f"inside {_TARGET_ELEMENT} that contain {to} before they are enlarged"
        else:
            which = {
                "any": f"any of the step's {boxes}",
                "around-reference": f"one of the {boxes} that contain {to}",
                "nearest": f"one of the {self.nearest} {boxes} whose centre is nearest to {to}",
                "nearest-to-prediction": f"one of the {self.nearest} {boxes} whose centre is nearest to the predicted point",
            }[self.which]
            words = f"inside {which}"
        if self.far_edge:
            words += f", right and lower edge drawn in by {self.far_edge:g} px"
        if self.enlarge != 1.0:
            words += f", each enlarged x{self.enlarge:g} about its centre"
        if self.clip:
            words += ", upper left cut at 0 with the size kept, size cut at 1 screen"
        if self.strict:
            words += ", border left out"
        if self.polygon:
            words += ", or inside the step's polygon instead where it has one, border included"
        if self.first_corners:
            words += " (of the polygon, the box from its first corner to the sum of its first two)"
        if self.fallback is not None:
            much = {
                "fraction": f"{self.fallback:g} of the screen (each axis by its side)",
                "canvas": f"{self.fallback:.10g} px on a canvas of {self.canvas[0]:g} x {self.canvas[1]:g} px",
                "pixels": f"{self.fallback:g} px of the screenshot",
                "longest-side": f"{self.fallback:g} of the screenshot's longer side",
                "diagonal": f"{self.fallback:g} of the screenshot's diagonal",
            }[self.measure]
            words += f"; or {'less than' if self.fallback_strict else 'at most'} {much} from {to}"
        if self.whole_pixels:
            words += "; the predicted point is cut to whole pixels"
            if self.measure == "canvas":
                words += f" of a canvas of {self.canvas[0]:g} x {self.canvas[1]:g} px"
            words += " first"
        if self.zero_is_missing:
            words += "; a predicted coordinate of 0 misses"
        return words


def _from_first_corners(polygon: Polygon) -> Polygon:
    (x1, y1), (x2, y2) = polygon[:2]
    return (x1, y1), (x1 + x2, y1), (x1 + x2, y1 + y2), (x1, y1 + y2)


def in_polygon(polygon: Polygon, x: float, y: float) -> bool:
    """Whether a point is in a polygon (even-odd rule) or on its border."""
    inside = False
    x1, y1 = polygon[-1]
    for x2, y2 in polygon:
        if _on_edge(x, y, x1, y1, x2, y2):
            return True
        if (y1 > y) != (y2 > y) and x < (x2 - x1) * (y - y1) / (y2 - y1) + x1:
            inside = not inside
        x1, y1 = x2, y2
    return inside


def smallest_box(boxes: Boxes, point: Point) -> int | None:
    """Which box is the smallest by area of those that hold the point, border included; the first of equals."""
    return _smallest(boxes.array.T, point.x, point.y, OUTWARD) if len(boxes) else None


def target_boxes(targets: Boxes, elements: Boxes, point: Point) -> Boxes:
    """The targets of a step and, if none of them is around ``point``, the smallest of its elements that is."""
    if targets.containing(point).any():
        return targets
    smallest = smallest_box(elements, point)
    return targets if smallest is None else targets + Boxes(elements.array[smallest : smallest + 1])


def in_earlier_words(text: str) -> str:
    """Rules as earlier versions described them, when a step's targets and elements were one list of boxes."""
    for now, before in _EARLIER_WORDS:
        text = text.replace(now, before)
    return text


def _on_edge(x: float, y: float, x1: float, y1: float, x2: float, y2: float) -> bool:
    dx, dy = x2 - x1, y2 - y1
    square = dx * dx + dy * dy
    along = min(1.0, max(0.0, ((x - x1) * dx + (y - y1) * dy) / square)) if square else 0.0
    return math.hypot(x - x1 - along * dx, y - y1 - along * dy) <= BORDER


def _known(screen: Size | None) -> Size:
    if screen is None:
        raise ValueError("this rule counts in pixels, so the size of the screenshot must be given")
    return screen


def _cut(point: Point, screen: tuple[float, float]) -> Point:
    """The point at the whole pixel that it is in, made from it as loaders make points."""
    x, y = ((along * side / 1000.0 + _PIXEL_BORDER) // 1.0 * 1000.0 / side for along, side in zip(point, screen, strict=True))
    return Point(x, y)


def _any_contains(corners: NDArray[np.float64], x: float, y: float) -> bool:
    """Whether the point is in one of the columns that :meth:`ClickRule.accepted` gave."""
    if corners.shape[1] <= _FEW:
        return any(x1 <= x <= x2 and y1 <= y <= y2 for x1, y1, x2, y2 in corners.T.tolist())
    return bool(np.count_nonzero(contain(corners, x, y)))


def _smallest(corners: NDArray[np.float64], x: float, y: float, outward: NDArray[np.float64] = _OUTWARD) -> int | None:
    """Which column is the smallest by area of those that hold the point; the first of equals."""
    inside = contain(corners + outward, x, y).nonzero()[0]
    if len(inside) <= 1:
        return int(inside[0]) if len(inside) else None
    x1, y1, x2, y2 = corners.take(inside, axis=1)
    return int(inside[((x2 - x1) * (y2 - y1)).argmin()])


def overlap(one: Sequence[float], other: Sequence[float]) -> float:
    """Intersection over union of two boxes (x1, y1, x2, y2) in any unit; 0 if both are empty."""
    x1, y1, x2, y2 = other
    left, top, right, bottom = one
    common = max(min(right, x2) - max(left, x1), 0.0) * max(min(bottom, y2) - max(top, y1), 0.0)
    union = (right - left) * (bottom - top) + (x2 - x1) * (y2 - y1) - common
    return common / union if union > 0.0 else 0.0

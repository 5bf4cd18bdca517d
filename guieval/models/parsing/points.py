"""Reads points and boxes in the notations of models, in numbers of the model's own frame or in unified coordinates."""

from __future__ import annotations

import math
import re
from typing import Any

from guieval.actions import Click, Point, Unsupported
from guieval.errors import IncompleteAction, ParseError
from guieval.frames import Frame, Size

LONGEST_PLACE = 400
"""Longest text, in characters, that can be a place."""
_POINT_MARKUP = re.compile(r"<\|box_(?:start|end)\|>|<\|im_end\|>|</?(?:point|bbox|box)>|[\[\](),\s（），［］\"']+")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_SIDE = r"(-?\d+(?:\.\d+)?)"
_PAIR = re.compile(rf"(?:<\|box_start\|>|<point>)?[\[(]{{0,2}}{_SIDE}, ?{_SIDE}[\])]{{0,2}}(?:<\|box_end\|>|</point>)?")

_DECIMAL = r"-?\d++(?:\.\d++)?"
_IN_BRACKETS = (
    rf"[\[(（［]{{1,2}}+\s?{_DECIMAL}\s?[,，]\s?{_DECIMAL}(?:\s?[,，]\s?{_DECIMAL}){{0,2}}(?:\s?[,，])?\s?[\])）］]{{1,2}}"
)
_BARE_PLACE = re.compile(rf"{_IN_BRACKETS}(?:(?:[,，]\s?|[ \t]?){_IN_BRACKETS})?")
_MARKED_PLACE = re.compile(r"<\|box_start\|>([^<]*)<\|box_end\|>|<(point|box|bbox)>([^<]*)</\2>")


def is_numbers(text: str) -> bool:
    """Whether a text is nothing but numbers and the marks around a place."""
    return bool(_number_words(text))


def is_place(text: str) -> bool:
    """Whether a text is a place and nothing else. Cut off within a bracket, its last number may lack digits: that is none."""
    cut_off = text[-1:].isdigit() and not text[:1].isdigit()
    return not cut_off and is_numbers(text)


def _number_words(text: str) -> list[str]:
    """The numbers that a text consists of; none if it has anything else, or is too long for a place."""
    if len(text) > LONGEST_PLACE:
        return []
    if pair := _PAIR.fullmatch(text):  # by far the commonest form
        return list(pair.groups())
    words = _POINT_MARKUP.sub(" ", text).split()
    return words if all(map(_NUMBER.fullmatch, words)) else []


def numbers(text: str) -> tuple[float, ...]:
    """The numbers in a place as models write it.

    Reads ``(x,y)``, ``[x, y]``, ``x y``, ``[x1, y1, x2, y2]``, ``(x1,y1),(x2,y2)``, each also inside
    ``<|box_start|>..<|box_end|>``, ``<point>..</point>``, ``<bbox>`` or ``<box>``, with full-width brackets and commas, or with
    numbers in quotes; anything else in it is an error.
    """
    words = _number_words(text)
    if not words:
        raise ParseError(f"{text[:80]!r} is not a point")
    return tuple(map(float, words))


def stated_place(text: str) -> str | None:
    """The first place between tags or box tokens in a text, else the first one in brackets, as it is written."""
    marked = _MARKED_PLACE.search(text)
    if marked is not None:
        return marked[1] or marked[3] or ""
    # looking for a pair is slow if many are begun and none is closed
    bare = _BARE_PLACE.search(text) if any(mark in text for mark in "])）］") else None
    return None if bare is None else bare[0]


def first_place(text: str) -> str:
    """The place that a response gives: its first line if that has nothing else, else :func:`stated_place`."""
    first = text.strip().partition("\n")[0].rstrip(".")
    place = first if is_place(first) else stated_place(text)
    if place is None:
        raise ParseError(f"the response gives no place: {text.strip()[:80]!r}")
    return place


def place(value: object) -> tuple[float, float]:
    """A native (x, y): of a pair of numbers, of a box's middle, or of text that :func:`numbers` reads.

    A list inside a list of one is unwrapped (``[[x, y]]``), two pairs count as a box, and a number may be in quotes.
    """
    while isinstance(value, list) and len(value) == 1:
        value = value[0]
    if isinstance(value, str):
        coordinates = numbers(value)
    else:
        items: list[Any] = list(value) if isinstance(value, list | tuple) else [value]
        if not {*map(type, items)} <= {int, float}:  # quick for a pair of numbers, by far the commonest form
            items = [part for item in items for part in (item if isinstance(item, list) else [item])]
            items = [float(part) if isinstance(part, str) and _NUMBER.fullmatch(part.strip()) else part for part in items]
            if not all(isinstance(part, int | float) and not isinstance(part, bool) for part in items):
                raise ParseError(f"{value!r:.80} is not a point")
        try:
            coordinates = tuple(map(float, items))
        except OverflowError:
            raise ParseError(f"{value!r:.80} is not a point: a number is too large") from None
    if not all(map(math.isfinite, coordinates)):
        raise ParseError(f"{value!r:.80} is not a point: a number is not finite")
    if len(coordinates) == 2:
        return coordinates[0], coordinates[1]
    if len(coordinates) == 4:
        return (coordinates[0] + coordinates[2]) / 2, (coordinates[1] + coordinates[3]) / 2
    raise ParseError(f"{value!r:.80} is not a point: it holds {len(coordinates)} numbers, not 2 or 4")


def decoded(value: object, frame: Frame, size: Size) -> Point:
    """The unified point that :func:`place` finds in ``value``, read in ``frame`` on a screenshot of ``size``.

    Raises :class:`IncompleteAction` for a place outside the screen, which is not moved to the nearest one inside: that would
    invent an answer.
    """
    x, y = place(value)
    try:
        return frame.decode(x, y, size)
    except ValueError as error:
        raise IncompleteAction(f"the point {error}") from None


def clicked(value: object, frame: Frame, size: Size) -> Click | Unsupported:
    """A click on the point that :func:`decoded` finds; outside the screen, a click without a known place."""
    try:
        return Click(point=decoded(value, frame, size))
    except IncompleteAction as error:
        x, y = place(value)
        return Unsupported(name="click", arguments={"coordinate": [x, y]}, known="CLICK", problem=str(error))

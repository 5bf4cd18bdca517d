"""OS-Atlas's action calls: ``CLICK <point>[[x,y]]</point>``, ``TYPE [text]``, ``SCROLL [UP]``, ``PRESS_BACK``, ...

Source: OS-Copilot/OS-Atlas ``eval/data/*.jsonl`` (the prompts' action lists and reference answers). Places are in thousandths
of the screen. What SCROLL names differs: AndroidControl's labels name where the content comes from, GUI-Odyssey's where the
finger goes. Only whole calls in the format's own words are read here, as files of results and labels hold them; prose around
a call is the model adapter's to read.
"""

from __future__ import annotations

import re

from guieval.actions import (
    DIRECTIONS,
    OPPOSITE,
    Action,
    Click,
    Direction,
    LongPress,
    Open,
    Point,
    Press,
    Scroll,
    Stop,
    Type,
    Unsupported,
    Wait,
)
from guieval.errors import ParseError
from guieval.frames import PER_1000
from guieval.parsing import decoded
from guieval.steps import whole_text

_WORDS: dict[str, Action] = {
    "PRESS_BACK": Press(button="BACK"),
    "PRESS_HOME": Press(button="HOME"),
    "PRESS_RECENT": Press(button="RECENT"),
    "PRESS_ENTER": Press(button="ENTER"),
    "ENTER": Press(button="ENTER"),
    "WAIT": Wait(),
    "COMPLETE": Stop(status="finish"),
    "IMPOSSIBLE": Stop(status="impossible"),
}
_DESKTOP = frozenset(
    {"DOUBLECLICK", "RIGHTCLICK", "MOVETO", "HOTKEY"}
    | {f"PRESS_{key}" for key in ("SPACE", "TAB", "ESC", "PGDN", "PGUP", "UP", "DOWN", "LEFT", "RIGHT")}
)
_NAME = re.compile(r"\s*([A-Z_]+)(?![A-Za-z])\s*")
_PLACE = re.compile(r"(?:<point>)?\[\[?\s*(-?\d+(?:\.\d+)?)\s*,\s*(-?\d+(?:\.\d+)?)\s*\]?\](?:</point>)?")
_BRACKETED = re.compile(r"\[(.*)\]", re.DOTALL)


def call_action(call: str, *, content: bool) -> Action:
    """The action of one call. With ``content`` a scroll's word is the content's direction, the finger's opposite.

    A scroll names no place; its point is the middle of the screen. Raises :class:`ParseError` for anything but one call.
    """
    named = _NAME.match(call)
    if named is None:
        raise ParseError("there is no answer" if not call.strip() else f"{call.strip()[:60]!r} is no call")
    name, rest = named[1], call[named.end() :].strip()
    match name:
        case "CLICK" | "LONG_PRESS":
            place = _PLACE.fullmatch(rest)
            if place is None:
                raise ParseError(f"{name} gives no place: {rest[:60]!r}")
            point = decoded([float(place[1]), float(place[2])], PER_1000, (1, 1))
            return Click(point=point) if name == "CLICK" else LongPress(point=point)
        case "TYPE":
            return Type(text=_bracketed(name, rest))
        case "OPEN_APP":
            return Open(app=_bracketed(name, rest))
        case "SCROLL":
            return Scroll(point=Point(500.0, 500.0), direction=_direction(rest, content))
    if name in _DESKTOP:
        return Unsupported(name=name, arguments={"text": whole_text(rest)} if rest else {})
    if name not in _WORDS:
        raise ParseError(f"{name[:40]!r} is no action of this format")
    if rest:
        raise ParseError(f"{name} stands with other words: {rest[:60]!r}")
    return _WORDS[name]


def _bracketed(name: str, rest: str) -> str:
    text = _BRACKETED.fullmatch(rest)
    if text is None:
        raise ParseError(f"{name} gives no text in brackets: {rest[:60]!r}")
    return whole_text(text[1])


def _direction(rest: str, content: bool) -> Direction:
    word = _bracketed("SCROLL", rest).strip().lower()
    for direction in DIRECTIONS:
        if word == direction:
            return OPPOSITE[direction] if content else direction
    raise ParseError(f"SCROLL names no direction: {rest[:60]!r}")

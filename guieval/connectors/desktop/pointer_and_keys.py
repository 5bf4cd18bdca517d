"""Actions of the unified space as shell commands that carry them out on an X display, by xdotool and xclip."""

from __future__ import annotations

import math
import re
import shlex
from typing import NamedTuple

from guieval import actions as act
from guieval.connectors.servers.pixels import pixel

SCROLL_SHARE = 0.5
"""The part of the screen that one scroll without a distance moves the content by."""
MOST_SCREENS = 20
"""The most screens that a scroll with a distance moves the content by."""
LONGEST_SECONDS = 10.0
_WHEEL = {"down": 4, "up": 5, "right": 6, "left": 7}
"""Buttons of the wheel by the direction of the finger, with which the content moves."""
_POINTING = {"CLICK": " click 1", "DOUBLE_CLICK": " click --repeat 2 --delay 60 1", "RIGHT_CLICK": " click 3", "HOVER": ""}
_KEYS = {
    **{"ctrl": "ctrl", "control": "ctrl", "shift": "shift", "alt": "alt", "option": "alt"},
    **dict.fromkeys(("super", "win", "meta", "cmd", "command"), "super"),
    **{"enter": "Return", "return": "Return", "esc": "Escape", "escape": "Escape", "tab": "Tab", "space": "space"},
    **{"backspace": "BackSpace", "delete": "Delete", "del": "Delete", "insert": "Insert", "home": "Home", "end": "End"},
    **{"pageup": "Prior", "pgup": "Prior", "pagedown": "Next", "pgdn": "Next", "menu": "Menu", "apps": "Menu"},
    **{name: name.capitalize() for name in ("up", "down", "left", "right")},
    **{"plus": "plus", "+": "plus", "-": "minus", "minus": "minus", "=": "equal", ",": "comma", ".": "period", "/": "slash"},
    **{"\\": "backslash", ";": "semicolon", "'": "apostrophe", "[": "bracketleft", "]": "bracketright", "`": "grave"},
}
_MODIFIERS = {"ctrl", "shift", "alt", "super"}
_TYPED = re.compile(r"[\t\n\x20-\x7e]*")
"""What the keyboard has; other text comes by the clipboard."""


class ShellCommand(NamedTuple):
    """A shell script, and its standard input."""

    script: str
    given: bytes = b""


def command_of(action: act.ExecutableAction, size: tuple[int, int]) -> ShellCommand | None:
    """The command for an action on a screen of ``size`` in pixels; ``None`` for one that changes nothing on a display.

    The text of an action is only the input of a command or a quoted word, never part of a script.
    """
    match action:
        case act.Click() | act.DoubleClick() | act.RightClick() | act.Hover():
            return _xdotool(_to(action.point, size) + _POINTING[action.type])
        case act.LongPress():
            return _xdotool(f"{_to(action.point, size)} mousedown 1 sleep {_seconds(action.duration)} mouseup 1")
        case act.Drag():
            return _xdotool(_dragged(action, size))
        case act.Scroll():
            across = action.direction in ("left", "right")
            share = SCROLL_SHARE if action.distance is None else min(action.distance / 1000, MOST_SCREENS)
            notches = max(1, math.floor(share * size[0 if across else 1] / act.NOTCH_PIXELS + 0.5))
            return _xdotool(f"{_to(action.point, size)} click --repeat {notches} --delay 5 {_WHEEL[action.direction]}")
        case act.Type(text=""):
            return None
        case act.Type():
            return _text(action.text)
        case act.Press(button="ENTER"):
            return _xdotool("key Return")
        case act.Hotkey():
            return _keys(action.keys)
        case act.Wait():
            return ShellCommand(f"sleep {_seconds(action.duration)}")
    return None


def _xdotool(words: str) -> ShellCommand:
    return ShellCommand(f"xdotool {words}")


def _to(point: act.Point, size: tuple[int, int]) -> str:
    x, y = pixel(point, size)
    return f"mousemove {x} {y}"


def _seconds(milliseconds: float) -> str:
    return f"{min(milliseconds / 1000, LONGEST_SECONDS):.3f}"


def _dragged(action: act.Drag, size: tuple[int, int]) -> str:
    begin = "" if action.start is None else f"{_to(action.start, size)} "
    path = [action.end]
    if action.start is not None:
        (x, y), (end_x, end_y) = action.start, action.end
        path = [act.Point(x + (end_x - x) * part / 8, y + (end_y - y) * part / 8) for part in range(1, 9)]
    moves = " sleep 0.03 ".join(_to(point, size) for point in path)
    return f"{begin}mousedown 1 sleep 0.1 {moves} sleep 0.1 mouseup 1"


def _text(text: str) -> ShellCommand:
    if _TYPED.fullmatch(text):
        return ShellCommand("xdotool type --clearmodifiers --delay 4 --file -", text.encode())
    keep = "cat > /tmp/.text; for each in primary clipboard; do xclip -selection $each -i /tmp/.text > /dev/null; done"
    return ShellCommand(f"{keep}; xdotool key --clearmodifiers shift+Insert", text.encode(errors="replace"))


def _keys(keys: tuple[str, ...]) -> ShellCommand | None:
    """Keys pressed together; ``None`` if one of them is unknown."""
    names = [_key(key) for key in keys]
    if None in names:
        return None
    return _xdotool(f"key {shlex.quote('+'.join(name for name in names if name is not None))}")


def _key(key: str) -> str | None:
    """X's name of a key as pyautogui or xdotool write it, e.g. ``ctrl``, ``Return`` or ``a``."""
    plain = key.strip().lower().replace("_", "") or ("space" if key else "")
    if re.fullmatch(r"[a-z0-9]|f([1-9]|1[0-2])", plain):
        return plain.upper() if len(plain) > 1 else plain
    for side in ("left", "right"):
        if plain.removesuffix(side) in _MODIFIERS:
            plain = plain.removesuffix(side)
    return _KEYS.get(plain)

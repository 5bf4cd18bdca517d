"""Actions as the Python code of pyautogui that carries them out, as OSWorld's virtual machines run it."""

from __future__ import annotations

import math

from guieval import actions as act
from guieval.connectors.servers.pixels import pixel

SCROLL_SHARE = 0.5
"""The part of the screen that one scroll without a distance moves the content by."""
_POINTING = {"CLICK": "click", "DOUBLE_CLICK": "doubleClick", "RIGHT_CLICK": "rightClick", "HOVER": "moveTo"}
MOST_SCREENS = 100
"""The most screens that a scroll with a distance moves the content by."""


def pyautogui_code(action: act.ExecutableAction, size: tuple[int, int]) -> str | None:
    """The code for an action on a screen of ``size`` in pixels; ``None`` for one that a desktop does not have.

    All text of an action is written as a Python literal, so it can only be typed.
    """
    match action:
        case act.Click() | act.DoubleClick() | act.RightClick() | act.Hover():
            return f"pyautogui.{_POINTING[action.type]}({_place(action.point, size)})"
        case act.LongPress():
            seconds = min(action.duration, 10_000) / 1000
            move = f"pyautogui.moveTo({_place(action.point, size)})"
            return f"{move}; pyautogui.mouseDown(); time.sleep({seconds:g}); pyautogui.mouseUp()"
        case act.Drag():
            begin = "" if action.start is None else f"pyautogui.moveTo({_place(action.start, size)}); "
            return f"{begin}pyautogui.dragTo({_place(action.end, size)}, duration=0.5, button='left')"
        case act.Scroll():
            return f"pyautogui.moveTo({_place(action.point, size)}); {_wheel(action, size)}"
        case act.Type():
            return _typed(action.text) if action.text else None
        case act.Press(button="ENTER"):
            return "pyautogui.press('enter')"
        case act.Hotkey():
            return f"pyautogui.hotkey({', '.join(map(repr, action.keys))})"
    return None


def _place(point: act.Point, size: tuple[int, int]) -> str:
    x, y = pixel(point, size)
    return f"{x}, {y}"


def _wheel(action: act.Scroll, size: tuple[int, int]) -> str:
    """Turns the wheel; the content moves with the finger, and with a negative number up or left."""
    across = action.direction in ("left", "right")
    share = SCROLL_SHARE if action.distance is None else min(action.distance / 1000, MOST_SCREENS)
    notches = max(1, math.floor(share * size[0 if across else 1] / act.NOTCH_PIXELS + 0.5))
    if across:  # pyautogui's positive number moves the view to the right, and so the content to the left
        return f"pyautogui.hscroll({notches if action.direction == 'left' else -notches})"
    return f"pyautogui.scroll({notches if action.direction == 'down' else -notches})"


def _typed(text: str) -> str:
    """Types a text. ``<`` is pressed as two keys: pyautogui types ``>`` for it on some keyboards."""
    parts = [f"pyautogui.typewrite({part!r})" for part in text.split("<")]
    return "; pyautogui.hotkey('shift', ','); ".join(part for part in parts)

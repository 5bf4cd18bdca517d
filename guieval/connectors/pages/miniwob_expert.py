"""The expert of MiniWoB++: rules that read a page's structure and give the next action, in a script for the page.

The rules are guieval's own (``miniwob_expert.js``), written from the pages of the package ``miniwob``. They act as an
agent does, by mouse and keyboard; only what they know comes from the page's elements, which no evaluated model sees.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from guieval.actions import Action, Boxes, Click, DeviceAction, Drag, Hotkey, Hover, Point, Scroll, Type, Unsupported, Wait
from guieval.connectors.pages.window import Window
from guieval.data.files import read_text
from guieval.online.contract import ExpertStep


@cache
def expert_rules() -> str:
    """The script: a function for the page whose value is an action, or null."""
    return read_text(Path(__file__).with_suffix(".js"))


def expert_step(found: Mapping[str, Any], window: Window) -> ExpertStep:
    """The script's actions, with places in CSS pixels of the page in ``window``, in the unified space."""
    box = found.get("box")
    corners = [edge for corner in (box[:2], box[2:]) for edge in window.point(*corner)] if box else None
    return ExpertStep(_action(found, window), Boxes([corners] if corners else ()))


def _action(found: Mapping[str, Any], window: Window) -> Action:
    def at(place: Sequence[float]) -> Point:
        x, y = (min(1000.0, max(0.0, part)) for part in window.point(*place))
        return Point(x, y)

    match found["do"]:
        case "click":
            return Click(point=at(found["at"]))
        case "type":
            return Type(text=found["text"])
        case "wait":
            return Wait(duration=found["milliseconds"])
        case "scroll":
            by = found["by"]
            return Scroll(point=at(found["at"]), direction="up" if by > 0 else "down", distance=1000 * abs(by) / window.height)
        case "hover":
            return _unsupported(Hover(point=at(found["at"])))
        case "drag":
            return _unsupported(Drag(start=at(found["from"]), end=at(found["to"])))
        case "keys":
            return _unsupported(Hotkey(keys=tuple(found["keys"])))
        case other:
            raise ValueError(f"the expert's rules gave {other!r}; expected an action")


def _unsupported(action: DeviceAction) -> Unsupported:
    values = action.model_dump(mode="json")
    return Unsupported(name=values.pop("type").lower(), arguments=values, device=action)

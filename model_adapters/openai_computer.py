"""OpenAI models with the computer tool of the Responses API.

Source: PyPI openai 3.57.0, ``types/responses/computer_action.py``. Places are pixels of the image that is sent; a scroll's
``scroll_x`` and ``scroll_y`` are pixels of content. ``tool: computer_use_preview`` is the tool of the model of that name, which
newer models refuse. The tool's own description is not public; the words around it are ours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import Field

from guieval.actions import Action, Click, Point, RightClick, Scroll, Wait, path_direction
from guieval.errors import ParseError
from guieval.frames import Size
from guieval.models import Family
from guieval.models.parsing import call_tables as calls

from ._hosted import ADDED_CALLS, ComputerOptions, ComputerUse, Environment, drag, keys_pressed, scroll_by

_SCROLL = 300
"""Length in thousandths of a scroll that is written."""


def _click(call: calls.Arguments) -> Action:
    button = call.found("button") or "left"
    if call.found("keys"):
        return call.unsupported()
    match button:
        case "left":
            return Click(point=call.point(*calls.XY))
        case "right":
            return call.unsupported(RightClick(point=call.point(*calls.XY)))
        case "back":
            return calls.BACK
    return call.unsupported()


def _drag(call: calls.Arguments) -> Action:
    path = call.deciding("path")
    ends = [path[0], path[-1]] if isinstance(path, list) and len(path) > 1 else []
    if not all(isinstance(end, dict) for end in ends) or not ends:
        raise ParseError(f"drag has {path!r:.80} as 'path'")
    return drag(call, *([end.get("x"), end.get("y")] for end in ends))


def _scroll(call: calls.Arguments) -> Action:
    amounts = []
    for key in ("scroll_x", "scroll_y"):
        value = call.found(key) or 0
        if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1e9:
            raise ParseError(f"scroll has {value!r:.80} as {key!r}")
        amounts.append(value)
    across, along = amounts
    direction = path_direction((0.0, 0.0), (across, along))
    if direction is None:
        raise ParseError("the scroll has no length, so it has no direction")
    width, height = call.frame.extent(call.size)
    share = abs(across) / width if direction in ("left", "right") else abs(along) / height
    return scroll_by(call, direction, 1000 * share)


def _written_scroll(action: Scroll, writing: calls.Writing) -> dict[str, Any]:
    side = {"up": ("scroll_y", 1), "down": ("scroll_y", -1), "left": ("scroll_x", 1), "right": ("scroll_x", -1)}
    key, sign = side[action.direction]
    (x, y), (far_x, far_y) = writing.place(Point(0, 0)), writing.place(Point(_SCROLL, _SCROLL))
    length = far_x - x if key == "scroll_x" else far_y - y
    return {**writing.at(calls.XY, action.point), "scroll_x": 0, "scroll_y": 0, key: sign * max(1, length)}


def _keys(call: calls.Arguments) -> Action:
    names = call.deciding("keys")
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ParseError(f"keypress has {names!r:.80} as 'keys'")
    return keys_pressed(names, call)


CALLS = calls.CallTable(
    {
        "click": calls.Form(Click, _click, lambda action, writing: {"button": "left", **writing.at(calls.XY, action.point)}),
        "double_click": calls.double_clicked(*calls.XY),
        "scroll": calls.Form(Scroll, _scroll, _written_scroll),
        "drag": calls.Form(Scroll, _drag),
        "type": calls.typed("text"),
        "keypress": calls.enter(_keys, keys=["ENTER"]),
        "move": calls.hovered(*calls.XY),
        "wait": Wait(),
        **ADDED_CALLS,
    }
)


class OpenAIComputerOptions(ComputerOptions):
    """Options of OpenAI's computer-use models."""

    tool: Literal["computer", "computer_use_preview"] = Field("computer", description="the tool that the model takes")
    detail: Literal["low", "high", "auto", "original"] | None = Field(None, description="image detail; null leaves it out")


class OpenAIComputer(ComputerUse):
    """Adapter of OpenAI's computer-use models. Options: :class:`OpenAIComputerOptions`."""

    options: OpenAIComputerOptions
    table = CALLS
    family = Family(2026, ("phone", "desktop", "web"))
    source = (
        "OpenAI Responses API, computer tool (PyPI openai 3.57.0, types/responses/computer_action.py); words of this project"
    )
    frame_source = "OpenAI's computer-use guide: pixels of the screenshot that is sent"

    def _tools(self, environment: Environment, size: Size, functions: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        extra: dict[str, Any] = {} if self.options.detail is None else {"image_detail": self.options.detail}
        tool: dict[str, Any] = {"type": self.options.tool}
        if self.options.tool == "computer_use_preview":  # its environments are windows, mac, linux, ubuntu and browser
            name = "browser" if environment == "browser" else "linux"
            tool |= {"display_width": size[0], "display_height": size[1], "environment": name}
            extra["truncation"] = "auto"
        return extra | {"tools": [tool, *({"type": "function", "strict": False, **function} for function in functions)]}

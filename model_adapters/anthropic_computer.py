"""Claude with Anthropic's computer tools.

Source: PyPI anthropic 2.14.0, ``types/computer_*_input.py`` (the members of ``computer_toolset_20260801``, each a tool) and
``types/beta/beta_tool_computer_use_*_param.py`` (the dated tools before it: one tool ``computer`` whose ``action`` names the
member, sent with a beta header). Places are pixels of the image that is sent, directions those of the content. The tools' own
description is not public; the words around them are ours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import Field

from guieval.actions import OPPOSITE, Action, Click, Scroll, wheel_distance
from guieval.errors import ParseError
from guieval.frames import Size
from guieval.models import Family
from guieval.models.parsing import call_tables as calls

from ._hosted import ADDED_CALLS, SIDES, ComputerOptions, ComputerUse, Environment, drag, keys_pressed, scroll_by

_BETAS = {
    "computer_20251124": "computer-use-2025-11-24",
    "computer_20250124": "computer-use-2025-01-24",
    "computer_20241022": "computer-use-2024-10-22",
}
_DATED_TOKENS, _TOOLSET_TOKENS, _ZOOM_TOKENS = 735 + 499, 4520, 410
"""Tokens of the tools' definitions and system prompts; platform.claude.com, "Computer use tool", as of 22 August 2026."""
_MOST_REPEATS = 100
"""How often the toolset's ``key`` may be repeated."""
_CLICKS = 5
"""Clicks of the wheel of a scroll that is written."""


class AnthropicComputerOptions(ComputerOptions):
    """Options of Claude with a computer tool."""

    tool: Literal["computer_toolset_20260801", "computer_20251124", "computer_20250124", "computer_20241022"] = Field(
        "computer_toolset_20260801", description="the tool that the model takes"
    )
    zoom: bool = Field(True, description="whether the model may zoom in (from computer_20251124 on)")
    prompt_cache: bool = Field(False, description="cache tools and system prompt, which are the same for all steps")


def _click(call: calls.Arguments) -> Action:
    """A click; one with keys held, or where the pointer is, has no word in the unified space."""
    if call.found("text") or call.found("coordinate") is None:
        return call.unsupported()
    return Click(point=call.point("coordinate"))


def _drag(call: calls.Arguments) -> Action:
    return drag(call, call.needed("start_coordinate"), call.needed("coordinate"))


def _scroll(call: calls.Arguments) -> Action:
    direction = call.one_of(SIDES, "scroll_direction")
    distance = wheel_distance(call.found("scroll_amount"), direction, call.size)
    return scroll_by(call, direction, distance, keys=("coordinate",))


def _written_scroll(action: Scroll, writing: calls.Writing) -> dict[str, Any]:
    place = writing.at(("coordinate",), action.point)
    return {**place, "scroll_direction": OPPOSITE[action.direction], "scroll_amount": _CLICKS}


def _keys(call: calls.Arguments) -> Action:
    text = str(call.deciding("text"))
    return keys_pressed(text.split("+") if text != "+" else [text], call)


CALLS = calls.CallTable(
    {
        "left_click": calls.Form(Click, _click, calls.tap("coordinate").write),
        "right_click": calls.right_clicked("coordinate"),
        "double_click": calls.double_clicked("coordinate"),
        "left_click_drag": calls.Form(Scroll, _drag),
        "scroll": calls.Form(Scroll, _scroll, _written_scroll),
        "mouse_move": calls.hovered("coordinate"),
        "type": calls.typed("text"),
        "key": calls.enter(_keys, text="Return"),
        "wait": calls.waited("duration"),
        **calls.outside("middle_click", "triple_click", "left_mouse_down", "left_mouse_up", "hold_key"),
        **ADDED_CALLS,
    }
)


class AnthropicComputer(ComputerUse):
    """Adapter of Claude with a computer tool. Options: :class:`AnthropicComputerOptions`."""

    options: AnthropicComputerOptions
    table = CALLS
    family = Family(2026, ("phone", "desktop", "web"))
    source = "Anthropic Messages API, computer tools (PyPI anthropic 2.14.0, types/computer_*_input.py); words of this project"
    frame_source = "Anthropic's input types: x pixels from the left edge and y pixels from the top edge of the screenshot"

    @property
    def tool_tokens(self) -> int:
        if self.options.tool in _BETAS:
            return _DATED_TOKENS
        return _TOOLSET_TOKENS - (0 if self.options.zoom else _ZOOM_TOKENS)

    def _tools(self, environment: Environment, size: Size, functions: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        options = self.options
        tool: dict[str, Any] = {"type": options.tool}
        extra: dict[str, Any] = {"prompt_cache": True} if options.prompt_cache else {}
        if options.tool in _BETAS:
            tool |= {"name": "computer", "display_width_px": size[0], "display_height_px": size[1]}
            extra["betas"] = [_BETAS[options.tool]]
            if options.tool == "computer_20251124":
                tool["enable_zoom"] = options.zoom
        elif not options.zoom:
            tool["configs"] = {"zoom": {"enabled": False}}
        added = [
            {"name": function["name"], "description": function["description"], "input_schema": function["parameters"]}
            for function in functions
        ]
        return extra | {"tools": [tool, *added]}

    def _expanded(self, name: str, arguments: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
        if name == "key" and type(times := arguments.get("repeat")) is int and times > 1:
            once = {key: value for key, value in arguments.items() if key != "repeat"}
            return [(name, once)] * min(times, _MOST_REPEATS)
        if name != "computer":
            return [(name, arguments)]
        action = arguments.get("action")
        if not isinstance(action, str):
            raise ParseError("the call of computer names no action")
        return [(action, {key: value for key, value in arguments.items() if key != "action"})]

    def _written_call(self, name: str, arguments: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        if self.options.tool in _BETAS and name not in ADDED_CALLS:
            return "computer", {"action": name, **arguments}
        return name, arguments

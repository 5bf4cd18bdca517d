"""Gemini models with Google's computer-use tool.

Sources: PyPI google-genai 3.6.1 (``types.ComputerUse``); google-gemini/computer-use-preview@c93bb2d ``agent.py`` and
cua-lite@3680b91 ``lite/agents/models/gemini/action_space.py`` (the functions and their arguments, in the words of both). Places
are thousandths of the image's sides, from 0 to 999. ``verbs: legacy`` are those of gemini-2.5-computer-use-preview,
gemini-3-flash-preview and gemini-3.1-pro-preview; both kinds are read with either setting. The tool's own description is not
public; the words around it are ours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import Field

from guieval.actions import OPPOSITE, Action, Button, Press, Scroll, Type, Wait
from guieval.frames import PER_1000, Size
from guieval.models import LOOKS, Family
from guieval.models.parsing import call_tables as calls

from ._hosted import ADDED_CALLS, SIDES, ComputerOptions, ComputerUse, Environment, drag, keys_pressed, scroll_by

_SCROLL = 300
"""Length in thousandths of a scroll that is written."""
_BUTTONS: dict[str, Button] = {"home": "HOME", "back": "BACK", "app_switch": "RECENT", "enter": "ENTER"}


class GeminiComputerOptions(ComputerOptions):
    """Options of Gemini with its computer-use tool."""

    verbs: Literal["current", "legacy"] = Field("current", description="the functions that the model's tool has")


def _key(call: calls.Arguments) -> Action:
    name = str(call.deciding("key"))
    button = _BUTTONS.get(name.strip().lower())
    return Press(button=button) if button else keys_pressed([name], call)


def _hotkey(call: calls.Arguments) -> Action:
    keys = call.deciding("keys")
    return keys_pressed(keys if isinstance(keys, list) else str(keys).split("+"), call)


def _path(call: calls.Arguments) -> Action:
    if call.found("start_x") is not None:
        keys = ("start_x", "start_y", "end_x", "end_y")
    else:
        keys = ("x", "y", "destination_x", "destination_y")
    path = [call.needed(key) for key in keys]
    return drag(call, path[:2], path[2:])


def _scroll(call: calls.Arguments) -> Action:
    direction = call.one_of(SIDES, "direction")
    pixels, thousands = call.found("magnitude_in_pixels"), call.found("magnitude")
    if isinstance(pixels, int | float):
        return scroll_by(call, direction, pixels, whole=call.size[0 if direction in ("left", "right") else 1])
    return scroll_by(call, direction, thousands)


def _written_scroll(action: Scroll, writing: calls.Writing) -> dict[str, Any]:
    return {**writing.at(calls.XY, action.point), "direction": OPPOSITE[action.direction], "magnitude": _SCROLL}


CALLS = calls.CallTable(
    {
        "click": calls.tap(*calls.XY),
        "long_press": calls.hold(*calls.XY, seconds="seconds"),
        "scroll": calls.Form(Scroll, _scroll, _written_scroll),
        "drag_and_drop": calls.Form(Scroll, _path),
        "type": calls.typed("text"),
        "open_app": ADDED_CALLS["open_app"],
        "press_key": calls.Form(Press, _key, calls.pressed("key", _BUTTONS).write),
        "go_back": calls.BACK,
        "wait": calls.waited("seconds"),
        "end_task": ADDED_CALLS["end_task"],
        "hotkey": calls.Form(Press, _hotkey),
        "move": calls.hovered(*calls.XY),
        "double_click": calls.double_clicked(*calls.XY),
        "right_click": calls.right_clicked(*calls.XY),
        # the verbs of the models before
        "click_at": calls.tap(*calls.XY),
        "hover_at": calls.hovered(*calls.XY),
        "scroll_at": calls.Form(Scroll, _scroll),
        "scroll_document": calls.Form(Scroll, _scroll),
        "key_combination": calls.Form(Press, _hotkey),
        "wait_5_seconds": Wait(duration=5000.0),
        **calls.outside("middle_click", "triple_click", "mouse_down", "mouse_up", "key_down", "key_up"),
        **calls.outside("navigate", "go_forward", "search"),
    }
)
_LEGACY = {"click": "click_at", "scroll": "scroll_at"}


class GeminiComputer(ComputerUse):
    """Adapter of Gemini with its computer-use tool. Options: :class:`GeminiComputerOptions`."""

    options: GeminiComputerOptions
    fixed_frame = PER_1000
    table = CALLS
    several_actions = "the first is scored, of type_text_at its text"
    family = Family(2026, ("phone", "desktop", "web"))
    source = "Gemini API, computer-use tool (google-genai 3.6.1, google-gemini/computer-use-preview); words of this project"
    frame_source = "google-gemini/computer-use-preview agent.py: x and y divided by 1000, written from 0 to 999"

    @property
    def own_mobile_tools(self) -> bool:  # type: ignore[override]  # the older tool was made for browsers
        return self.options.verbs == "current"

    def _tools(self, environment: Environment, size: Size, functions: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        if self.options.verbs == "legacy":
            environment = "browser"
        declared = [
            {"name": function["name"], "description": function["description"], "parameters_json_schema": function["parameters"]}
            for function in functions
        ]
        tools: list[dict[str, Any]] = [{"computer_use": {"environment": f"ENVIRONMENT_{environment.upper()}"}}]
        if declared:
            tools.append({"function_declarations": declared})
        return {"tools": tools}

    def _expanded(self, name: str, arguments: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
        arguments = {key: value for key, value in arguments.items() if key not in ("safety_decision", "intent")}
        if name not in ("type", "type_text_at"):
            return [(name, arguments)]
        made: list[tuple[str, Mapping[str, Any]]] = []
        if name == "type_text_at":
            made.append(("click", {key: arguments.get(key) for key in calls.XY}))
            if arguments.get("clear_before_typing", True):
                made.append(("hotkey", {"keys": ["ctrl", "a"]}))
        made.append(("type", {"text": arguments.get("text")}))
        if arguments.get("press_enter"):
            made.append(("press_key", {"key": "enter"}))
        return made

    def _scored(self, actions: Sequence[Action], made: Sequence[tuple[str, Mapping[str, Any]]]) -> Action:
        """The first action; of ``type_text_at``, which clicks before it types, the text."""
        first = next(name for name, _ in made if name not in LOOKS)
        typed = next((action for action in actions if isinstance(action, Type)), None)
        return typed if first == "type_text_at" and typed is not None else actions[0]

    def _written_call(self, name: str, arguments: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        return (_LEGACY.get(name, name), arguments) if self.options.verbs == "legacy" else (name, arguments)

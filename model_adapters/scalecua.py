"""ScaleCUA (Qwen2.5-VL based): thought, operation and calls of functions, in pixels of the resized screenshot.

Source: OpenGVLab/ScaleCUA@5d92fee, ``evaluation/AndroidWorld/android_world/agents/PROMPT.py`` (prompts for phones and for
grounding), ``seeact_v.py`` and ``utils.py`` there (the request, resize limits, what a call means: a swipe's direction is the
finger's, and a place of numbers up to 1 is a fraction of the screen), ``evaluation/OSWorld/mm_agents/scalecua_agent.py`` and
``prompts.py`` (computers).

The past is the ``<operation>`` of each step, and only the current screenshot is shown. Several calls are carried out in order
online, and the first that acts is scored. A place is taken for a fraction if one of its numbers has a decimal point, since
(0, 0) and (1, 1) are pixels too. ``call_user``, which opens the telephone in the authors' client for phones and does nothing on
computers, is kept as an unsupported action. Not published: a step instruction takes the goal's place. The authors' prompts for
Windows, macOS and the web are not used.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import Field

from guieval.actions import Action, ActionSpace, Scroll, Wait
from guieval.errors import ParseError
from guieval.history import HistoryEntry
from guieval.models import ABCModel, Family, ImageLimits, ModelInput, ParsedResponse, Surface, chat, main_instruction
from guieval.models.parsing import call_tables as calls
from guieval.models.parsing import call_text, first_call, first_round, split_reasoning, tagged
from guieval.steps import StepTaskModel

from . import _pyautogui as code
from ._desktop_calls import VERTICAL, waited

_POSITIONS = {
    **code.POSITIONS,
    "swipe": ("from_coord", "to_coord", "direction", "amount"),
    "long_press": ("x", "y", "duration"),
    "open_app": ("app_name",),
    "response": ("answer",),
    "wait": ("seconds",),
}
_PLACES = (("x", "y"), ("from_coord",), ("to_coord",))


def _swipe(call: calls.Arguments) -> Action:
    start, end = call.found("from_coord"), call.found("to_coord")
    if end is not None:
        return call.swipe(calls.MIDDLE if start is None else start, end)
    if "direction" not in call.values:
        call = call._replace(values={**call.values, "direction": "up"})  # the function's default
    return call.scroll("direction", calls.MIDDLE if start is None else call.point("from_coord"))


_BOTH: dict[str, Action | calls.Form] = {
    "click": code.CALLS["click"],
    # the authors' reader takes the first text of a call under any key
    "write": calls.typed("message", "content", "text"),
    "wait": waited("seconds", default=Wait(duration=3000.0)),
    "response": calls.answered("answer"),
    "terminate": calls.stopped("status", default="finish"),
    **calls.outside("call_user"),
}
PHONE = calls.CallTable(
    {
        **_BOTH,
        "swipe": calls.Form(Scroll, _swipe, calls.swiped("from_coord", "to_coord").write),
        "long_press": calls.hold(*calls.XY, seconds="duration"),
        "open_app": calls.opened("app_name", "app", "name"),
        "navigate_home": calls.HOME,
        "navigate_back": calls.BACK,
        "keyboard_enter": calls.ENTER,  # read by the authors, and in no prompt
    }
)
COMPUTER = calls.CallTable(
    {
        **_BOTH,
        **{name: code.CALLS[name] for name in ("press", "scroll", "hotkey", "doubleClick", "rightClick", "moveTo", "dragTo")},
        **calls.outside("keyDown", "keyUp"),
    }
)


SURFACES = {"mobile": Surface(PHONE, ActionSpace(buttons=frozenset({"BACK", "HOME"}))), "computer": Surface(COMPUTER, VERTICAL)}
MOST = 20
"""Most calls of a response that are carried out online."""
_LEAD = re.compile(r"^[ \t]*(?:```\w*)?[ \t]*", re.MULTILINE)
"""Text allowed before a call on its line: blanks, or a fence."""


class ScaleCUAOptions(ImageLimits):
    """Options of ScaleCUA; image limits default to those of the authors' clients."""

    prompt: Literal["mobile", "computer"] = Field("mobile", description="what the model operates: a phone or an Ubuntu desktop")


class ScaleCUA(ABCModel):
    """Adapter of ScaleCUA. Options: :class:`ScaleCUAOptions`."""

    options: ScaleCUAOptions
    thought_form = "<think>\n{thought}\n</think>\n"
    pixels = 3136, 2_109_744
    thinking_switch = True
    grounds_silently = True
    surfaces = SURFACES
    family = Family(2025, ("phone", "desktop", "web", "grounding"), reader="makers")
    source = "github.com/OpenGVLab/ScaleCUA@5d92fee evaluation/AndroidWorld/android_world/agents/PROMPT.py"
    frame_source = "github.com/OpenGVLab/ScaleCUA@5d92fee evaluation/OSWorld/mm_agents/scalecua_agent.py"

    def prepare_input(self, task: StepTaskModel, history: Sequence[HistoryEntry]) -> ModelInput:
        if task.setting == "grounding":
            return chat(self.image(task), task.instruction, system=self.prompt("scalecua-grounding-system"))
        prompt = self.options.prompt
        lines = [f"Step {n}: {self.sentence(entry)}" for n, entry in enumerate(history, 1)]
        if prompt == "mobile":
            request = {"actions": "".join(f"{line}\n" for line in lines)}
        else:
            request = {"history": "\n".join(lines) or "None"}
        words = self.prompt(f"scalecua-{prompt}-user", instruction=main_instruction(task), **request)
        silent = "no-thinking-" if self.thinking is False else ""
        return chat(self.image(task), words, system=self.prompt(f"scalecua-{prompt}-{silent}system"))

    def parse_response(self, task: StepTaskModel, text: str) -> ParsedResponse:
        thought, rest = split_reasoning(first_round(text), "<action>")
        written = tagged(rest, "action")
        if written is None:
            raise ParseError(f"the response has no <action>: {text.strip()[:80]!r}")
        try:
            found = self._calls(written)
        except ParseError:
            if "</action>" not in rest or written.count("(") != written.count(")") + 1:
                raise
            found = self._calls(f"{written})")  # nothing was cut off
        width, height = self.frame(task).extent(task.screenshot_size)
        found = [code.PyAutoGuiCall(name, _in_pixels(arguments, width, height)) for name, arguments in found]
        action = code.action_of(self, task, found)
        return ParsedResponse(action, thought, tagged(rest, "operation") or None, self._batch(task, found))

    def _calls(self, written: str) -> list[code.PyAutoGuiCall]:
        """The calls in a response's action. What is not Python (its quotes, a missing end) is read as one call."""
        if written.count("(") <= written.count(")"):  # Python takes long for brackets that are never closed
            with contextlib.suppress(ParseError):
                return code.calls_of(_LEAD.sub("", written), _POSITIONS, bare=True)
        call = first_call(written, self.table)
        return [code.PyAutoGuiCall(call.name, call.arguments)]

    def _batch(self, task: StepTaskModel, found: Sequence[code.PyAutoGuiCall]) -> tuple[Action, ...]:
        actions: list[Action] = []
        for name, arguments in found[:MOST]:
            try:
                actions.append(self.read_call(task, name, arguments))
            except ParseError:  # what comes after it cannot be carried out in its place
                break
        return tuple(actions) if len(actions) > 1 else ()

    def write(self, task: StepTaskModel, action: Action, thought: str | None, conclusion: str | None) -> str:
        name, arguments = self.write_call(task, action)
        if isinstance(action, Scroll) and self.table is COMPUTER:
            arguments |= dict(zip(calls.XY, self.write_place(task, action.point), strict=True))
        answer = f"<action>\n{call_text(name, arguments)}\n</action>"
        if task.setting == "grounding":
            return answer
        sentence = f"<operation>\n{conclusion}\n</operation>\n" if conclusion else ""
        return (self.opening(task, thought) if thought and self.thinking is not False else "") + sentence + answer


def _in_pixels(arguments: Mapping[str, Any], width: float, height: float) -> dict[str, Any]:
    """The arguments of a call with its fractions of the screen in pixels."""
    changed = dict(arguments)
    for keys in _PLACES:
        pair = [arguments.get(key) for key in keys] if len(keys) == 2 else arguments.get(keys[0])
        if not isinstance(pair, list) or len(pair) != 2 or {*map(type, pair)} not in ({float}, {int, float}) or max(pair) > 1:
            continue
        scaled = [pair[0] * width, pair[1] * height]
        changed |= dict(zip(keys, scaled, strict=True)) if len(keys) == 2 else {keys[0]: scaled}
    return changed

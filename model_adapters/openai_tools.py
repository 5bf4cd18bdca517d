"""Models served by an OpenAI-compatible API (GPT-4o, Claude, Gemini and others): one function call a response.

No author publishes a prompt for these, so the words are ours. The interface is documented: ``tools``, ``tool_choice`` and
``parallel_tool_calls`` of the chat completions API, whose calls the engine passes on as text. The frame is an option of the
checkpoint and is stated to the model: pixels of the image that is sent (Claude; platform.claude.com "Coordinates and bounding
boxes"), thousandths (Gemini), or fractions (GPT-4o, as in ScreenSpot-Pro). A service that shrinks large images makes pixels
ambiguous, so ``max_side`` and ``max_pixels`` do it first. Thinking is set by the service's own sampling parameters.

The past is one line of text per step, with the model's own thoughts; only the current screenshot is sent. A grounding query
offers only a click. Calls written as text (``tools: false``) are read as well.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

from pydantic import Field

from guieval.actions import Action
from guieval.errors import ParseError
from guieval.frames import PER_1000, RELATIVE, Frame
from guieval.history import HistoryEntry
from guieval.models import Family, ModelInput, ParsedResponse, chat
from guieval.models.parsing import call_tables as calls
from guieval.models.parsing import first_call, json_value, split_reasoning
from guieval.steps import StepTaskModel

from ._hosted import BUTTON_NAMES, STATUSES, HostedModel, ImageSize, functions
from ._qwen_tools import split_reply

FrameName: TypeAlias = Literal["pixels", "0-1000", "0-1"]


class ToolOptions(ImageSize):
    """Options of models served by an API."""

    frame: FrameName = Field("0-1000", description="coordinates requested from the model; pixels are those of the image sent")
    detail: Literal["low", "high", "auto"] | None = Field(None, description="OpenAI's image detail; null leaves it out")
    tools: bool = Field(True, description="whether functions are offered; else they are described and the call is text")
    parallel_tool_calls: bool | None = Field(None, description="request field, which some services refuse; null leaves it out")


CALLS = calls.CallTable(
    {
        "click": calls.tap(*calls.XY),
        "long_press": calls.hold(*calls.XY, seconds="seconds"),
        "swipe": calls.scrolled("direction", *calls.XY, needs_place=True),
        "type_text": calls.typed("text"),
        "open_app": calls.opened("name"),
        "press_button": calls.pressed("button", BUTTON_NAMES),
        "wait": calls.waited("seconds"),
        "stop": calls.stopped("status", STATUSES),
    }
)


class OpenAITools(HostedModel):
    """Adapter of models served by an API. Options: :class:`ToolOptions`."""

    options: ToolOptions
    table = CALLS
    family = Family(2026, ("phone", "desktop", "web", "grounding"))
    source = "this project's own prompt over the OpenAI chat completions API (tools, tool_choice, image detail)"
    frame_source = "the option frame, which the prompt states to the model"

    def frame(self, task: StepTaskModel) -> Frame:
        frames: dict[FrameName, Frame] = {"pixels": self.sent, "0-1000": PER_1000, "0-1": RELATIVE}
        return frames[self.options.frame]

    def prepare_input(self, task: StepTaskModel, history: Sequence[HistoryEntry]) -> ModelInput:
        coordinates, offered = self._offer(task)
        kind = "grounding-" if task.setting == "grounding" else ""
        system = self.prompt(f"openai_tools-{kind}system", coordinates=coordinates)
        if not self.options.tools:
            described = "\n".join(map(json.dumps, offered))
            system += self.prompt("openai_tools-functions", functions=described)
        extra: dict[str, Any] = {} if self.options.detail is None else {"image_detail": self.options.detail}
        if self.options.tools:
            tools = tuple({"type": "function", "function": function} for function in offered)
            extra |= {"tools": tools, "tool_choice": "required"}
            if self.options.parallel_tool_calls is not None:
                extra["parallel_tool_calls"] = self.options.parallel_tool_calls
        return chat(self.question(task, history), self.image(task), system=system, extra=extra)

    def parse_response(self, task: StepTaskModel, text: str) -> ParsedResponse:
        thought, name, arguments = _read(text, grounding=task.setting == "grounding")
        given = arguments.get("thought")
        action = self.read_call(task, name, _with_xy(arguments))
        return ParsedResponse(action, (given.strip() if isinstance(given, str) else "") or thought)

    def write(self, task: StepTaskModel, action: Action, thought: str | None, conclusion: str | None) -> str:
        name, arguments = self.write_call(task, action)
        if "seconds" in arguments:
            arguments["seconds"] = float(arguments["seconds"])
        if thought and task.setting != "grounding":
            arguments = {"thought": thought, **arguments}
        call = json.dumps({"name": name, "arguments": arguments}, ensure_ascii=False)
        return f"<tool_call>\n{call}\n</tool_call>" if self.options.tools else call

    def _offer(self, task: StepTaskModel) -> tuple[str, tuple[dict[str, Any], ...]]:
        """The sentence about coordinates, and the functions."""
        width, height = self.sent.sent(task.screenshot_size)
        (right, bottom), unit = {
            "pixels": ((width, height), f"pixels of the screenshot, which is {width} x {height} pixels large"),
            "0-1000": ((1000, 1000), "whole thousandths of the screenshot's width and height, from 0 to 1000"),
            "0-1": ((1, 1), "fractions of the screenshot's width and height, from 0 to 1, with four decimals"),
        }[self.options.frame]
        coordinates = f"Coordinates are in {unit}; x goes from left to right and y from top to bottom."
        name = f"openai_tools-{'grounding-' if task.setting == 'grounding' else ''}tools"
        number = "number" if self.options.frame == "0-1" else "integer"
        return coordinates, functions(self.prompt(name, number=number, right=str(right), bottom=str(bottom)))


_EXPRESSION = re.compile(
    # of another name, a call is distinguished from prose by what is in its brackets
    rf"^(?=[ \t`*a-z_-])[ \t`*-]*+(?:Action[ \t]*[:：][ \t]*)?(?:functions\.)?"
    rf"(?=(?:{'|'.join(CALLS)})\(|[a-z_]\w{{0,40}}\(\w{{1,40}}\s?=)",
    re.MULTILINE | re.IGNORECASE,
)
_PLACE = re.compile(r"[\[(（]?\s*(\d+(?:\.\d+)?)\s*[,，]\s*(\d+(?:\.\d+)?)\s*[\])）]?")
_CALL_KEYS = frozenset({"name", "arguments", "parameters", "function", "type", "id", "recipient_name"})


def _read(text: str, *, grounding: bool) -> tuple[str | None, str, Mapping[str, Any]]:
    """Words before the call, the function's name and its arguments; the first call counts.

    Beyond the engine's own form these are read: the call as a JSON object without tags, in a fence, in a list or under
    ``function``; ``parameters`` for ``arguments``, either of them as JSON text, or their values next to the name; the name with
    ``functions.`` before it; calls inside GPT's ``multi_tool_use.parallel``; and a call expression, ``click(x=1, y=2)``.
    A grounding query may also be answered by the place alone.
    """
    if "<tool_call>" not in text:
        reasoning, rest = split_reasoning(text, "<tool_call>")
        place = _PLACE.fullmatch(rest.strip()) if grounding else None
        if place is not None:
            return reasoning, "click", {"x": place[1], "y": place[2]}
        begun = _EXPRESSION.search(rest)
        brace = rest.find("{")
        if begun is not None and (brace < 0 or begun.start() < brace):
            call = first_call(rest[begun.end() :], CALLS)
            return reasoning or rest[: begun.start()].strip() or None, call.name, call.arguments
        if brace < 0:
            words = rest.strip()
            raise ParseError(f"the response makes no function call: {words[:80]!r}" if words else "the response is empty")
    reply = split_reply(text)
    before = text.partition("<tool_call>")[0].strip() if "<tool_call>" in text else ""
    name, arguments = _named(reply.call)
    if grounding and not name and {"x", "y"} <= set(arguments):
        name = "click"
    return reply.thought or before or None, name, arguments


def _named(call: Any) -> tuple[str, Mapping[str, Any]]:
    while isinstance(call, list) and call:
        call = call[0]
    if isinstance(call, dict) and isinstance(call.get("function"), dict):
        call = call["function"]
    if not isinstance(call, dict):
        raise ParseError(f"the response's JSON is not a function call: {call!r:.80}")
    name = next((call[key] for key in ("name", "function", "recipient_name") if key in call), "")
    arguments = next((call[key] for key in ("arguments", "parameters") if key in call), None)
    if arguments is None:
        arguments = {key: value for key, value in call.items() if key not in _CALL_KEYS}
    if isinstance(arguments, str):
        arguments = json_value(arguments)
    if not isinstance(name, str) or not isinstance(arguments, dict):
        raise ParseError(f"the response's JSON is not a function call: {call!r:.80}")
    if name == "multi_tool_use.parallel":
        return _named(arguments.get("tool_uses"))
    return name.strip().lower().removeprefix("functions."), arguments


def _with_xy(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """The arguments with ``x`` and ``y``, also if the place is a pair under a name that other formats have for it."""
    pair = next((arguments[key] for key in ("coordinate", "point") if key in arguments), None)
    if pair is None or "x" in arguments or "y" in arguments:
        return arguments
    # four numbers would be a box, which services write in different orders
    if not isinstance(pair, list) or len(pair) != 2:
        raise ParseError(f"{pair!r:.80} is not a point")
    return {**arguments, "x": pair[0], "y": pair[1]}

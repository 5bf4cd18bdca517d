"""AgentCPM-GUI: one compact JSON object, its thought as the first key, points in thousandths of the screen.

Sources: OpenBMB/AgentCPM-GUI ``README.md`` (prompt, image size, sampling), ``eval/README.md`` FAQs 1 to 5 (past turns, no way
to open an app, the thought's switch, image size, coordinates), ``eval/utils/schema`` (what the schema allows),
``eval/grounding_eval/code/minicpm`` (the two grounding prompts), issue #18 (benchmarks are evaluated without a history; one or
two past steps help). A step instruction is sent alone. A query that is not a text on the screen is sent with their prompt for
the function of an element.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, Literal

from pydantic import Field

from guieval import actions as act
from guieval.errors import IncompleteAction, ParseError, whole_text
from guieval.frames import PER_1000, Size
from guieval.history import HistoryEntry
from guieval.models import ABCModel, Family, ImageRef, Message, ModelInput, Options, ParsedResponse, chat
from guieval.models.parsing import MAX_REPAIR, json_value, split_reasoning
from guieval.models.parsing.call_tables import BUTTON_NAMES, Arguments, amount
from guieval.models.prompts import main_instruction, own_response
from guieval.steps import StepTaskModel

IMAGE = "(<image>./</image>)"
"""Where vLLM puts the screenshot into the turn's text; without it the image would come before the question."""

TAP = 200.0
"""The schema's default duration in milliseconds; a longer touch without a direction is a long press."""


class AgentCPMOptions(Options):
    """The size and number of the images sent, and the grounding prompt."""

    long_side: int = Field(1120, ge=28, description="larger screenshots are shrunk until their longer side is this many pixels")
    max_images: int = Field(1, ge=1, description="screenshots per request, the current one included (FAQ 1, issue #18)")
    grounding: Literal["auto", "function", "text"] = Field(
        "auto", description="which grounding prompt is used; auto: the one for texts if the benchmark's task is text2point"
    )


class AgentCPMGUI(ABCModel):
    """Adapter of AgentCPM-GUI. Options: :class:`AgentCPMOptions`."""

    options: AgentCPMOptions
    fixed_frame = PER_1000
    action_space = act.ActionSpace(types=frozenset(act.ACTION_TYPES) - {"OPEN"})
    thinking_switch = True
    grounds_silently = True
    family = Family(2025, ("phone", "grounding"), reader="makers", recorded=11)
    source = "github.com/OpenBMB/AgentCPM-GUI README.md and eval/README.md"
    frame_source = "github.com/OpenBMB/AgentCPM-GUI README.md, FAQ 4 and 5"

    def prepare_input(self, task: StepTaskModel, history: Sequence[HistoryEntry]) -> ModelInput:
        if task.setting == "grounding":
            kind = self.options.grounding
            if kind == "auto":
                kind = "text" if task.groups.get("task") == "text2point" else "function"
            text = self.prompt(f"agentcpm_gui-grounding-{kind}-user", instruction=task.instruction)
            return chat(self.image(task), text, system=self.prompt(f"agentcpm_gui-grounding-{kind}-system"))
        system_text = self.prompt("agentcpm_gui-system")
        if self.thinking is False:
            system_text = system_text.replace('"required":["thought"]', '"optional":["thought"]')
        messages = [Message("system", (system_text,))]
        for entry in history[self.first_shown(history, self.options.max_images) :]:
            step = entry.task.low_level_instruction if task.setting == "low" else None
            messages.append(self._turn(entry.task, entry.task.instruction if step is None else step))
            messages.append(Message("assistant", (_compact(self._past_answer(entry)),)))
        return ModelInput((*messages, self._turn(task, main_instruction(task))))

    def opening(self, task: StepTaskModel, thought: str) -> str:
        # line breaks stay, so that the thought is as it was given: nobody reads a begun turn as JSON
        words = thought.replace("\\", "\\\\").replace('"', '\\"')
        # up to the quote of the next key: the tokeniser never cuts between these marks, only before the key's letters
        return f'{{"thought":"{words}","'

    def parse_response(self, task: StepTaskModel, text: str) -> ParsedResponse:
        reasoning, body = split_reasoning(text, '{"')
        grounding = task.setting == "grounding"
        value = read_object(body)
        if grounding and isinstance(value, list) and not any(isinstance(item, dict) for item in value):
            value = {"POINT": value}
        while isinstance(value, list) and value:
            value = value[0]
        if not isinstance(value, dict):
            raise ParseError(f"the response's JSON is not an object: {value!r:.80}")
        thought = value.get("thought")
        words = whole_text(thought).strip() if isinstance(thought, str) else reasoning
        return ParsedResponse(action_of(value, task.screenshot_size), words or None)

    def write(self, task: StepTaskModel, action: act.Action, thought: str | None, conclusion: str | None) -> str:
        before = {"thought": thought} if thought and not self.why_silent(task) else {}
        return _compact(before | object_of(action, task.screenshot_size))

    def _turn(self, task: StepTaskModel, question: str) -> Message:
        return Message("user", (self.prompt("agentcpm_gui-user", instruction=question) + IMAGE, self.image(task)))

    def image(self, task: StepTaskModel) -> ImageRef:
        # as in the authors' scripts: height first, then width, each other side cut to whole pixels
        width, height = task.screenshot_size
        longest = self.options.long_side
        if height > longest:
            width, height = max(1, width * longest // height), longest
        if width > longest:
            width, height = longest, max(1, height * longest // width)
        return ImageRef(task, None if (width, height) == task.screenshot_size else (width, height))

    def _past_answer(self, entry: HistoryEntry) -> dict[str, Any]:
        """A past step's object: the model's own, if it kept to the schema, else its action.

        What the schema has no word for (an app opened, a step that is in no action space) becomes a thought alone.
        """
        own = own_response(entry, read_object)
        if not isinstance(own, dict) or not own or not set(own) <= set(_KEYS):
            try:
                own = object_of(entry.action, entry.task.screenshot_size)
            except ValueError:
                return {"thought": self.sentence(entry), "STATUS": "continue"}
            own = ({"thought": entry.thought} if entry.thought else {}) | own
        return own if self.thinking is not False else {key: value for key, value in own.items() if key != "thought"}


_KEYS = ("thought", "POINT", "to", "duration", "PRESS", "TYPE", "STATUS", "DEEP_LINK", "CLEAR")
_BY_LOWER = {key.lower(): key for key in _KEYS}
_PRIMITIVES = ("POINT", "PRESS", "TYPE", "DEEP_LINK", "CLEAR")
_STOPS: dict[str, act.StopStatus] = {
    "finish": "finish",
    "satisfied": "finish",
    "impossible": "impossible",
    "interrupt": "impossible",
    "need_feedback": "impossible",
}
_BUTTONS: dict[str, act.Button] = {**BUTTON_NAMES, "appselect": "RECENT"}

_DECODER = json.JSONDecoder(strict=False)
_KEY = r"(?:POINT|to|duration|PRESS|TYPE|STATUS|DEEP_LINK|CLEAR)"
_CONTINUED = re.compile(rf'\s{{0,9}},?\s{{0,9}}"?(?={_KEY}"\s{{0,9}}:)')
_THOUGHT = re.compile(rf'\{{\s*"thought"\s*:\s*"(.*?)"\s*,\s*(?="{_KEY}"\s*:)', re.DOTALL)
_WIDE_MARKS = "，：｛｝［］（）"
_WIDE = re.compile(rf'"(?:\\.|[^"\\])*"?|[{_WIDE_MARKS}]', re.DOTALL)
_NARROW = str.maketrans(_WIDE_MARKS, ",:{}[]()")


def read_object(text: str) -> Any:
    """The first JSON value of a response. Raises :class:`ParseError` when there is none.

    Looser than :func:`guieval.models.parsing.json_value`: a turn that was begun for the model (``POINT":[1,2]}``), full-width
    punctuation outside quotes, quotes inside the thought that are not escaped.
    """
    continued = _CONTINUED.match(text)
    if continued is not None:
        text = '{"' + text[continued.end() :]
    start = text.find("{")
    if start >= 0 and "[" not in text[:start]:
        try:
            # an object that needs no tolerance, read many times faster
            return _DECODER.raw_decode(text, start)[0]
        except (ValueError, RecursionError):
            pass
    thought = _THOUGHT.match(text, max(start, 0))
    if thought is not None:
        rest = read_object("{" + text[thought.end() :])
        try:
            words = str(json.loads(f'"{thought[1]}"', strict=False))
        except ValueError:
            words = thought[1]
        return {"thought": words, **rest} if isinstance(rest, dict) else rest
    try:
        return json_value(text)
    except ParseError:
        if len(text) > MAX_REPAIR or not any(mark in text for mark in _WIDE_MARKS):
            raise
        narrowed = _WIDE.sub(lambda match: match[0] if match[0][0] == '"' else match[0].translate(_NARROW), text)
        if narrowed == text:
            raise
    return json_value(narrowed)


def action_of(value: dict[str, Any], size: Size) -> act.Action:
    """The action an object means. A status that ends the task goes before an action next to it, as in the authors' evaluator.

    Tolerated: keys and words in upper or lower case, numbers in quotes, keys of no meaning next to an action.
    """
    entries: dict[str, Any] = {}
    for key, item in value.items():
        known = _BY_LOWER.get(key.strip().lower())
        if known in entries:
            raise ParseError(f"the response gives {known!r} twice")
        if known is not None:
            entries[known] = item
    status = entries.get("STATUS", "")
    status = status.strip().lower() if isinstance(status, str) else status
    if isinstance(status, str) and status in _STOPS:
        return act.Stop(status=_STOPS[status])
    if status not in ("", "continue", "start"):
        raise ParseError(f"the response's STATUS {status!r:.40} is none of continue, start, {', '.join(_STOPS)}")
    primitives = [key for key in _PRIMITIVES if key in entries]
    if len(primitives) > 1:
        raise ParseError(f"the response has several actions at once: {', '.join(primitives)}")
    if "to" in entries and "POINT" not in entries:
        raise ParseError("the response's 'to' lacks the POINT it starts from")
    if not primitives:
        if "duration" in entries:
            return act.Wait(duration=amount(entries["duration"], "the response's duration", "milliseconds"))
        raise ParseError(f"the response's object has no action: {', '.join(map(repr, value))[:80] or 'it is empty'}")
    call = Arguments("object", entries, PER_1000, size)
    match primitives[0]:
        case "POINT":
            return _touch(call)
        case "PRESS":
            return act.Press(button=call.one_of(_BUTTONS, "PRESS"))
        case "TYPE":
            return act.Type(text=whole_text(call.text("TYPE")))
    name, value = primitives[0], entries[primitives[0]]
    return act.Unsupported(name=name, arguments={"value": whole_text(value)} if isinstance(value, str) else {})


def _touch(call: Arguments) -> act.Action:
    to = call.found("to")
    duration = amount(call.values.get("duration", TAP), "the response's duration", "milliseconds")
    try:
        return _touch_at(call, call.point("POINT"), to, duration)
    except IncompleteAction as error:
        return call.incomplete("SCROLL" if to is not None else "LONG_PRESS" if duration > TAP else "CLICK", str(error))


def _touch_at(call: Arguments, point: act.Point, to: Any, duration: float) -> act.Action:
    if to is None:
        return act.LongPress(point=point, duration=duration) if duration > TAP else act.Click(point=point)
    if isinstance(to, str) and to.strip().lower() in act.DIRECTIONS:
        return call.scroll("to", point)
    return call.swipe(call.values["POINT"], to)


def object_of(action: act.Action, size: Size) -> dict[str, Any]:
    """The object for an action; ``ValueError`` for what the schema has no word for."""
    match action:
        case act.Click() | act.LongPress() | act.Scroll():
            touch: dict[str, Any] = {"POINT": list(PER_1000.quantise(action.point, size))}
            if isinstance(action, act.Scroll):
                touch["to"] = action.direction
            elif isinstance(action, act.LongPress):
                # a touch that is no longer than a tap cannot be written; the authors' example presses for a second
                touch["duration"] = round(action.duration) if action.duration > TAP else 1000
            return touch
        case act.Type():
            return {"TYPE": action.text}
        case act.Press():
            # only the schema that responses are checked with lists APPSELECT, not the one the model is shown
            return {"PRESS": "APPSELECT" if action.button == "RECENT" else action.button}
        case act.Wait():
            return {"duration": round(action.duration)}
        case act.Stop():
            return {"STATUS": action.status}
    raise ValueError(f"AgentCPM-GUI has no word for {action!r}")


def _compact(value: dict[str, Any]) -> str:
    """An object as the model writes it: without any blank, which matters to its tokeniser (README)."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))

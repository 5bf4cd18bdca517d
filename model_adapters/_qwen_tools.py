"""The tool-call format of the Qwen-VL family: ``<tool_call>{"name": .., "arguments": {..}}</tool_call>``.

Shared by the families that speak ``mobile_use`` and ``computer_use``, also those that write the arguments alone or in tags of
another name; prompts, frames and history are theirs.
Source: QwenLM/Qwen2.5-VL ``cookbooks/utils/agent_function_call.py`` (actions; times in seconds; a swipe is the finger's path).
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple, cast

from guieval.actions import Action, Button, Press
from guieval.errors import ParseError
from guieval.frames import Frame
from guieval.history import HistoryEntry
from guieval.models import ABCModel, ParsedResponse, fill, own_response, step_instruction
from guieval.models.parsing import call_tables as calls
from guieval.models.parsing import clicked, first_round, function_calls, function_text, json_value, split_reasoning, tagged
from guieval.steps import StepTaskModel

TOOL = "mobile_use"
CONTINUED = re.compile(r"\s*(-?\d+(?:\.\d+)?(?:\s*,\s*-?\d+(?:\.\d+)?){1,3})\s*\]")
"""The rest of a call that was begun up to its coordinate's bracket."""
_TOOLS = frozenset({"mobile_use", "computer_use", "computer", "mobile_for_gui_owl", "function"})
_PLACES = ("point", "box", "point_2d", "bbox_2d")
_BUTTONS: dict[str, Button] = {"Back": "BACK", "Home": "HOME", "Enter": "ENTER", "Menu": "RECENT"}
"""Of "Menu" the description is "opening the application background menu"; UI-S1's labels write GUI-Odyssey's APPSELECT so."""


def _key(call: calls.Arguments) -> Action:
    value = call.values.get("text", call.values.get("keys"))
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    button = calls.BUTTON_NAMES.get(value.lower()) if isinstance(value, str) else None
    return Press(button=button) if button else calls.pressed_together("text", "keys").read(call)


CALLS = calls.CallTable(
    {
        **dict.fromkeys(("click", "left_click", "tap"), calls.tap("coordinate")),
        "long_press": calls.hold("coordinate", seconds="time"),
        # the published description of swipe says "coordinates2", its schema "coordinate2"
        "swipe": calls.swiped("coordinate", "coordinate2", "coordinates2"),
        "type": calls.typed("text"),
        "open": calls.opened("text"),
        "wait": calls.waited("time"),
        "terminate": calls.stopped("status", default="finish"),  # the Qwen3-VL prompt itself allows one without a status
        "system_button": calls.pressed("button", _BUTTONS),
        "key": calls.Form(Press, _key),
        "answer": calls.answered("text"),
        "mouse_move": calls.hovered("coordinate"),
        "left_click_drag": calls.dragged((), ("coordinate",)),
        "right_click": calls.right_clicked("coordinate"),
        "double_click": calls.double_clicked("coordinate"),
        # computer_use's: a positive number turns the wheel up; "hscroll" is "mapped to regular scroll", and goes as pyautogui's
        "scroll": calls.wheel("down", "up", "pixels", place=("coordinate",)),
        "hscroll": calls.wheel("left", "right", "pixels", place=("coordinate",)),
        **calls.outside("middle_click", "triple_click"),
    }
)


class Reply(NamedTuple):
    """A response taken apart: its texts without tags and labels, and the call as a JSON value."""

    thought: str | None
    conclusion: str | None
    call: Any


class QwenToolsModel(ABCModel):
    """An adapter whose responses are a thought, a call in tags, and a conclusion."""

    table = CALLS
    tag: ClassVar[str] = "tool_call"
    """The tag around a call."""
    tool: str = TOOL
    """The tool that a call names."""
    grounding_tool: ClassVar[str] = TOOL
    """The same on steps of grounding."""
    thinking_form: ClassVar[str] = "<think>\n{thought}\n</think>\n"
    """How a thought is written, with ``{thought}`` in it."""
    keeps_thoughts: ClassVar[bool] = True
    """Whether the past is shown with its thoughts."""

    def parse_response(self, task: StepTaskModel, text: str) -> ParsedResponse:
        reply = split_reply(text, self.tag)
        return ParsedResponse(self._action(task, reply.call), reply.thought, reply.conclusion)

    def _action(self, task: StepTaskModel, call: Any) -> Action:
        return action_of(self, task, call)

    def _call(self, task: StepTaskModel, action: Action) -> dict[str, Any]:
        """The call for any action, also one that the family has no word for, which the past may hold."""
        name, arguments = self.write_call(task, action)
        tool = self.grounding_tool if task.setting == "grounding" else self.tool
        return {"name": tool, "arguments": {"action": name, **arguments}}

    def _past_call(self, entry: HistoryEntry) -> dict[str, Any]:
        """A past step's call: as the model itself wrote it, if it did so in the published form, else its action as a call."""
        return own_response(entry, _own_call) or self._call(entry.task, entry.action)

    def _question(self, task: StepTaskModel, name: str, past: str) -> str:
        """The user's text: the prompt ``name``, or with a step instruction the form that InfiGUI-R1's authors use."""
        if task.setting != "low":
            return self.prompt(name, instruction=task.instruction, history=past)
        instructions = {"instruction": task.instruction, "step_instruction": step_instruction(task)}
        return self.prompt("infigui_r1-androidcontrol-user-low", **instructions, history=past)

    def _progress(self, history: Sequence[HistoryEntry]) -> str:
        """The past as conclusions, without newlines and double quotes, as the Qwen3-VL notebook writes "Task progress"."""
        sentences = (self.sentence(entry) for entry in history)
        return progress([sentence.replace("\n", "").replace('"', "") for sentence in sentences])

    def _thinking(self, thought: str) -> str:
        return fill(self.thinking_form, thought=thought)

    def opening(self, task: StepTaskModel, thought: str) -> str:
        return self._thinking(thought)

    def past_response(self, entry: HistoryEntry) -> str:
        if entry.raw_response is None:
            thought = entry.thought if self.keeps_thoughts else None
            return self.write(entry.task, entry.action, thought, self.sentence(entry))
        written = first_round(entry.raw_response)
        if not self.keeps_thoughts:
            return split_reasoning(written, "<tool_call>")[1].lstrip()
        # a thought that was given to the model, or that the server split off, is not in what it wrote
        apart = entry.thought and self.thinking is not False and entry.thought not in written
        return self._thinking(entry.thought or "") + written if apart else written


class XMLToolsModel(QwenToolsModel):
    """An adapter whose calls are in tags of their own, as Qwen3.5's chat template writes them, or in JSON."""

    def parse_response(self, task: StepTaskModel, text: str) -> ParsedResponse:
        """Read a response with a call in either form; what is thought before it may rehearse one."""
        thought, rest = split_reasoning(first_round(text), "<tool_call>")
        opened = rest.find("<function=")
        if opened < 0 or OBJECT.search(rest, 0, opened):
            return super().parse_response(task, text)
        call = next(function_calls(rest[opened:]), None)
        if call is None:
            raise ParseError(f"the response's call cannot be read: {rest[opened : opened + 80]!r}")
        arguments: dict[str, Any] = dict(call.arguments)
        if "action" not in arguments and "type" in arguments:  # seen of the smallest checkpoints
            arguments["action"] = arguments.pop("type")
        spoken, sentence = labelled(rest[:opened].removesuffix("\n").removesuffix("<tool_call>"))
        action = self._action(task, {"name": call.name, "arguments": arguments})
        return ParsedResponse(action, thought or spoken, sentence)


_LABELS = re.DOTALL | re.MULTILINE | re.IGNORECASE
_SENTENCE = re.compile(r"^[ \t*]*+Action[ \t*]*[:：][*]*(.*?)\Z", _LABELS)
_THOUGHT = re.compile(r"^[ \t*]*+Thought[ \t*]*[:：][*]*", _LABELS)
OBJECT = re.compile(r"(?:\[\s*)?\{\s*[\"']")
_NAMED = re.compile(r"\s*\{[^{}]{0,60}\"arguments\"\s*:\s*(?=\{)")
_MEANT = re.compile(r"[({\[=:]|\d")  # tags around words alone are talked about


def split_reply(text: str, tag: str = "tool_call") -> Reply:
    """Take a response apart; the first call of the first round counts. Raises :class:`ParseError` when no JSON can be read.

    Looser than :func:`guieval.models.parsing.json_value`: no tags around the call (then it has to begin a line, or follow a
    colon or a fence), or no closing one; ``tag`` is what the family calls them. The thought is the reasoning block if there
    is one, else the ``Thought:`` sentence; the conclusion is ``<conclusion>`` or the ``Action:`` sentence without its quotes.
    """
    thought, rest = split_reasoning(first_round(text), f"<{tag}>")
    opened = re.search(rf"<{tag}>(?=\s*(?:```\w*\s*)?[\[{{])", rest) or re.search(f"<{tag}>", rest)
    for passed in re.findall(rf"<{tag}>([^<]*+)</{tag}>", rest[: opened.start()] if opened is not None else ""):
        if _MEANT.search(passed):
            raise ParseError(f"the response's first call cannot be read: {passed.strip()[:80]!r}")
    if opened is None:
        head, body = _untagged(rest)
    else:
        first = OBJECT.search(rest, opened.end())
        head, body = rest[: opened.start()], rest[first.start() if first is not None else opened.end() :]
    spoken, sentence = labelled(head)
    conclusion = tagged(body, "conclusion") or tagged(head, "conclusion") or sentence
    thought = spoken if thought is None else thought
    # a text may hold the closing tag, so what is before it comes second
    ends = body.find(f"</{tag}>")
    try:
        call = json_value(body, ends=ends)
    except ParseError:
        # the tool's name lacks a quote, which does not matter (Qwen-Agent, nous_fncall_prompt.py)
        named = _NAMED.match(body)
        if named is None or named[0].count('"') % 2 == 0:
            raise
        call = json_value(body[named.end() :], ends=ends - named.end() if ends >= 0 else -1)
    return Reply(thought or None, conclusion or None, call)


def labelled(head: str) -> tuple[str | None, str | None]:
    """The ``Thought:`` and the ``Action:`` sentence of the words before a call, the latter without its quotes."""
    action, thought = _SENTENCE.search(head), _THOUGHT.search(head)
    conclusion = None if action is None else action[1].strip().removeprefix('"').removesuffix('"').strip()
    if thought is None:
        return None, conclusion or None
    after = _SENTENCE.search(head, thought.end())
    return head[thought.end() : after.start() if after is not None else len(head)].strip() or None, conclusion or None


def _untagged(text: str) -> tuple[str, str]:
    """The text before a call without tags, and the text from the call on; the whole text twice if it has no object."""
    first = OBJECT.search(text)
    if first is None:
        return text, text
    before = text[: first.start()].rstrip(" \t")
    # an object in the middle of a sentence is talked about, not called
    if before and not before.endswith(("\n", ":", "：", "`", ">", "json")):
        raise ParseError(f"the response talks about a call but makes none: {text.strip()[:80]!r}")
    return before.split("```")[0], text[first.start() :]


def _first(call: Any) -> Any:
    return call[0] if isinstance(call, list) and call and all(isinstance(item, dict) for item in call) else call


def action_of(
    model: ABCModel,
    task: StepTaskModel,
    call: Any,
    *,
    grounding: bool | None = None,
    table: calls.CallTable | None = None,
    frame: Frame | None = None,
) -> Action:
    """The action a call means, by default in the family's table and in the step's frame.

    Tolerated: the action's name in place of the tool's (``{"name": "left_click", ..}``); arguments without a call around
    them, or next to the name; ``parameters`` in place of ``arguments``; arguments as JSON text; a coordinate in place of the
    arguments; a call in a list of one; ``terminate`` without a status. With ``grounding``, by default on steps of it, also a
    coordinate without an action, a place of another name, and the family's box and point lists (``[x, y]``, ``bbox_2d``,
    ``point_2d``): there a place is an answer, on any other step it is not an action (a click and a long press look alike).
    ``bbox_2d`` and ``point_2d`` of a list are read in the family's frame of places.
    """
    grounding = task.setting == "grounding" if grounding is None else grounding
    places, frame, size = frame or model.place_frame(task), frame or model.frame(task), task.screenshot_size
    if grounding:
        named = named_place(call)
        if named is not None:
            return clicked(named, places, size)
        if isinstance(call, list) and call and not isinstance(call[0], dict):
            return clicked(call, frame, size)
    call = _first(call)
    if not isinstance(call, dict):
        raise ParseError(f"the response's JSON is not a call: {call!r:.80}")
    name, arguments = _name_and_arguments(call)
    if grounding and not name and set(arguments) == {"coordinate"}:
        name = "click"
    if grounding and "coordinate" not in arguments and (named := next(filter(arguments.get, _PLACES), None)) is not None:
        arguments = {**arguments, "coordinate": arguments[named]}
    return (model.table if table is None else table).read(name, arguments, frame, size, model.scroll_words)


def named_place(value: Any) -> object | None:
    """The ``bbox_2d`` or ``point_2d`` of an object, or of the first one of a list."""
    if isinstance(value, dict):
        return cast(object, value.get("bbox_2d", value.get("point_2d")))
    return named_place(value[0]) if isinstance(value, list) and value and isinstance(value[0], dict) else None


def _name_and_arguments(call: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    name = call.get("name", "")
    rest = {key: value for key, value in call.items() if key != "name"}
    arguments = call.get("arguments", call.get("parameters", rest))
    if isinstance(arguments, str):
        arguments = json_value(arguments)
    if isinstance(arguments, list):
        numeric = bool(arguments) and all(isinstance(item, int | float) for item in arguments)
        arguments = {"coordinate": arguments} if numeric else {"arguments": arguments}
    if not isinstance(name, str) or not isinstance(arguments, dict):
        raise ParseError(f"the response's JSON is not a call: {call!r:.80}")
    action = arguments.get("action", "" if name in _TOOLS else name)
    if not isinstance(action, str):
        raise ParseError(f"the call's action {action!r:.80} is not a name")
    return action.strip().lower(), {key: value for key, value in arguments.items() if key != "action"}


def _own_call(reply: str) -> dict[str, Any] | None:
    call = _first(split_reply(reply).call)
    if not isinstance(call, dict) or set(call) != {"name", "arguments"} or call["name"] != TOOL:
        return None
    arguments = call["arguments"]
    return call if isinstance(arguments, dict) and isinstance(arguments.get("action"), str) else None


def call_text(call: dict[str, Any]) -> str:
    """A call as the models write it in a response."""
    return f"<tool_call>\n{call_json(call)}\n</tool_call>"


def call_xml(call: dict[str, Any]) -> str:
    """A call as Qwen3.5's chat template writes it: its arguments in tags, each value on a line."""
    values = {key: value if isinstance(value, str) else json.dumps(value) for key, value in call["arguments"].items()}
    return f"<tool_call>\n{function_text(call['name'], values)}\n</tool_call>"


def call_json(call: dict[str, Any]) -> str:
    """A call as one line of JSON."""
    return json.dumps(call, ensure_ascii=False)


def progress(items: list[str]) -> str:
    """The notebooks' history line: each step numbered and followed by ``"; "``; empty on the first step."""
    return "".join(f"Step {number}: {item}; " for number, item in enumerate(items, 1))

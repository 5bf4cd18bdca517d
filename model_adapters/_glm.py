"""Shared by GLM-4.1V and GLM-4.5V: ``Memory`` / ``Reason`` / ``Action``, boxes in thousandths, the past inside the prompt.

Sources: zai-org/GLM-V ``examples/gui-agent/*/agent.md`` (actions, history sample, swipe words), ``README.md`` (grounding, box
tokens), ``glmv_reward`` (what the authors' own reader tolerates), ``inference/trans_infer_bench.py`` (a thought that is not
closed leaves the response unfinished); issues #114 (boxes) and #159 (past steps need a reason). No prompt with a step
instruction is published, so it takes the goal's place, as in GUIEvalKit. Each adapter defines its prompt, its tags and its
switch.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

from pydantic import Field

from guieval.actions import Action, ActionSpace, Click, Point, Scroll, StopStatus, Wait
from guieval.errors import ParseError
from guieval.frames import PER_999, PER_1000, Frame
from guieval.history import HistoryEntry
from guieval.models import ABCModel, ImageRef, ModelInput, Options, ParsedResponse, chat, main_instruction, own_response
from guieval.models.parsing import MAX_REPAIR, closed_thought, first_round, json_value
from guieval.models.parsing import call_tables as calls
from guieval.steps import StepTaskModel

BEGIN, END = "<|begin_of_box|>", "<|end_of_box|>"
FIRST_STEP = "You just started, no action has been performed yet."

_WHOLE_SCREEN = [[0, 0, 999, 999]]
_EMPTY_BOXES: tuple[Any, ...] = (None, "", [], [[]])
_STATUSES: dict[str, StopStatus] = {"complete": "finish", "infeasible": "impossible"}


def _swipe(call: calls.Arguments) -> Action:
    # left out or left empty, the whole screen is swiped
    return call.scroll("direction", calls.MIDDLE if call.values.get("box_2d") in _EMPTY_BOXES else call.point("box_2d"))


def _swiped(action: Scroll, writing: calls.Writing) -> dict[str, Any]:
    whole = action.point == calls.MIDDLE
    return {"direction": action.direction} | ({} if whole else {"box_2d": writing.place(action.point)})


# the format has no other way to type: the click before it and the enter key after it belong to the action; its required box is
# the whole screen, since the unified action has no place
_TYPED = replace(
    calls.typed("text"), write=lambda action, writing: {"text": action.text, "box_2d": _WHOLE_SCREEN, "override": False}
)
CALLS = calls.CallTable(
    {
        "click": calls.tap("box_2d"),
        "long_press": calls.hold("box_2d"),
        "input_text": _TYPED,
        "open_app": calls.opened("app_name"),
        "swipe": calls.Form(Scroll, _swipe, _swiped),
        "keyboard_enter": calls.ENTER,
        "navigate_home": calls.HOME,
        "navigate_back": calls.BACK,
        "navigate_recent": calls.RECENT,  # in no prompt; the past may hold it
        "wait": Wait(),
        "status": calls.stopped("goal_status", _STATUSES),
        "answer": calls.answered("text"),
    }
)


class GLMOptions(Options):
    """Options both versions take."""

    supported_apps: tuple[str, ...] = Field(
        (), description="names the prompt lists for open_app; the authors' list is that of AndroidWorld"
    )


class GLMModel(ABCModel):
    """The base of the adapters of both versions. One turn: the screenshot as it is, then all text."""

    navigation: ClassVar[str]
    """The name of the version's navigation prompt."""
    options: GLMOptions
    table = CALLS
    action_space = ActionSpace()
    """All of the unified space but PRESS(RECENT)."""

    def frame(self, task: StepTaskModel) -> Frame:
        """0 to 999 by the navigation prompts; 0 to 1000 by the README's words on grounding."""
        return PER_1000 if task.setting == "grounding" else PER_999

    def prepare_input(self, task: StepTaskModel, history: Sequence[HistoryEntry]) -> ModelInput:
        if task.setting == "grounding":
            text = self.prompt("glm-grounding", instruction=task.instruction)
        else:
            steps = (f"Step {index}:\n{self._past_step(entry)}" for index, entry in enumerate(history))
            past, values = "\n\n".join(steps) or FIRST_STEP, self._placeholders()
            text = self.prompt(self.navigation, instruction=main_instruction(task), history=past, **values)
        return chat(ImageRef(task), text)

    def _placeholders(self) -> dict[str, str]:
        """The prompt's fields besides the instruction and the history."""
        return {"supported_apps": ",".join(self.options.supported_apps)}

    def parse_response(self, task: StepTaskModel, text: str) -> ParsedResponse:
        """Read a response; of several actions or boxes the first counts.

        The thought is the ``<think>`` block, which has to be closed, the conclusion the reason; with thinking turned off the
        reason is both. Tolerated: no box tokens, or no closing one; ``<answer>`` unclosed or missing; fences; labels in bold or
        with a full-width colon; no ``Action:`` at all, if the object begins a line (a continued turn); Python notation with
        JSON's ``true``, leading zeros and doubled brackets, as in the authors' reward.
        """
        if task.setting == "grounding":
            text = first_round(text)
            thought, answer = closed_thought(text, BEGIN if BEGIN in text else "")
            return ParsedResponse(self.read_click(task, _place(answer)), thought or None)
        thought, _, reason, body = _parts(text)
        conclusion = reason if reason not in ("", "None") else None
        thought = thought or (conclusion if self.thinking is False else None)
        call = _call(body)
        return ParsedResponse(self.read_call(task, call.pop("action_type").strip().lower(), call), thought, conclusion)

    def _answer(self, task: StepTaskModel, action: Action, conclusion: str | None) -> str:
        if task.setting == "grounding" and isinstance(action, Click):
            return f"{BEGIN}{json.dumps(self.write_place(task, action.point))}{END}"
        call = json.dumps(self._call_of(task, action), ensure_ascii=False)
        return f"Memory: None\nReason: {conclusion or None}\nAction: {BEGIN}{call}{END}"

    def _past_step(self, entry: HistoryEntry) -> str:
        """A past step as the published samples show it, with the action as Python writes a dict."""

        def written(reply: str) -> str:
            _, memory, reason, body = _parts(reply)
            return f"Memory: {memory}\nReason: {reason}\nAction: {_call(body)!r}"

        own = own_response(entry, written)
        if own is not None:
            return own
        # no benchmark has memories; a step instruction is the nearest to a reason
        reason = (entry.conclusion and self.sentence(entry)) or entry.thought or self.sentence(entry)
        return f"Memory: None\nReason: {reason}\nAction: {self._call_of(entry.task, entry.action)!r}"

    def _call_of(self, task: StepTaskModel, action: Action) -> dict[str, Any]:
        """Any action as the family's object. A swipe from the middle is one of the whole screen, without box."""
        name, arguments = self.write_call(task, action)
        return {"action_type": name, **arguments}

    def write_place(self, task: StepTaskModel, point: Point) -> list[list[float]]:
        """A box without extent, since the size of its target is unknown."""
        place = super().write_place(task, point)
        return [place + place]


_LABEL = re.MULTILINE | re.IGNORECASE
_ACTION = re.compile(r"^[ \t*#]*+Action[ \t*]*[:：][ \t*]*", _LABEL)
_ACTION_ANYWHERE = re.compile(r"\bAction[ \t]{0,9}[:：]")
_REASON = re.compile(r"^[ \t*#]*+Reason[ \t*]*[:：][ \t*]*", _LABEL)
_MEMORY = re.compile(r"^[ \t*#]*+Memory[ \t*]*[:：][ \t*]*", _LABEL)
# only if it opens the answer: a typed text may hold the tag as well
_ANSWER = re.compile(r"<(?:\|assistant\|>\s{0,9}<)?answer>(?=\s{0,9}(?:[*#]|Memory|Reason|Action|<\||[\[{`]))", re.IGNORECASE)
_OBJECT = re.compile(r"(?:^|[:：`>]|json)[ \t]{0,20}(?:\[\s{0,9}){0,2}\{", re.MULTILINE)
_CALL = re.compile(r"\s*([A-Za-z_]\w{0,40})\(")
_NUMBER = r"-?\d{1,7}(?:\.\d{1,9})?"
_NEXT = rf"\s{{0,9}}[,，\s]\s{{0,9}}{_NUMBER}"
_OPEN, _CLOSE = r"[\[({<（［]\s{0,9}", r"\s{0,9}[\])}>）］]"
_BOX = re.compile(rf"{_OPEN}({_NUMBER}{_NEXT}{_NEXT}{_NEXT}){_CLOSE}")
_PAIR = re.compile(rf"{_OPEN}({_NUMBER}{_NEXT}){_CLOSE}")


def _parts(text: str) -> tuple[str | None, str, str, str]:
    """A response's thought, memory, reason, and what its action is to be looked for in."""
    text = first_round(text)
    thought, rest = closed_thought(text, BEGIN if BEGIN in text else "Action:")
    rest = _ANSWER.sub("", rest, count=1)
    label = _ACTION.search(rest) or _ACTION_ANYWHERE.search(rest)
    head, body = (rest[: label.start()], rest[label.end() :]) if label is not None else ("", _unlabelled(rest))
    reason = _REASON.search(head)
    memory = _MEMORY.search(head, 0, reason.start() if reason else len(head))
    words = head[reason.end() :].strip() if reason else head[memory.end() if memory else 0 :].strip()
    kept = head[memory.end() : reason.start() if reason else memory.end()].strip() if memory else ""
    return thought or None, kept or "None", words or "None", _boxed(body)


def _unlabelled(text: str) -> str:
    if BEGIN in text:
        return text
    begins = _OBJECT.search(text)
    # an object in the middle of a sentence is talked about, not chosen
    if begins is None and "{" in text:
        raise ParseError(f"the response talks about an action but chooses none: {text.strip()[:80]!r}")
    return text if begins is None else text[begins.start() :]


def _boxed(text: str) -> str:
    start = text.find(BEGIN)
    if start < 0:
        return text
    end = text.find(END, start)
    return text[start + len(BEGIN) : end if end >= 0 else len(text)]


def _place(answer: str) -> str:
    inside = _boxed(answer)
    # the prompt asks for a box: two numbers in brackets are only a place if there is none
    match = _BOX.search(inside) or _PAIR.search(inside)
    if match is not None:
        return match[1].replace("，", ",")
    if END in answer and BEGIN in answer and inside.strip()[:1].isdigit():
        return inside
    raise ParseError(f"the response has no box: {inside.strip()[:80]!r}")


_TOKEN = re.compile(
    r"'[^'\\]*+(?:\\.[^'\\]*+)*'|\"[^\"\\]*+(?:\\.[^\"\\]*+)*\"|\b(?:true|false|null)\b|(?<![\w.])0+(?=\d)", re.DOTALL
)
_WORDS = {"true": "True", "false": "False", "null": "None"}
_LEADING_ZERO = re.compile(r"0\d")


def _call(body: str) -> dict[str, Any]:
    named = _CALL.match(body)
    if named is not None:
        raise ParseError(f"the response calls {named[1]!r}, as the desktop and web prompts ask; this one asks for an object")
    stripped = body.strip()
    if stripped.startswith("{{") and stripped.endswith("}}"):
        body = stripped[1:-1]
    try:
        call = json_value(body)
    except ParseError:
        # a Python literal, but for JSON's words or leading zeros
        if len(body) > MAX_REPAIR or not (any(word in body for word in _WORDS) or _LEADING_ZERO.search(body)):
            raise
        call = json_value(_TOKEN.sub(lambda match: _WORDS.get(match[0], match[0].lstrip("0") and match[0]), body))
    if isinstance(call, list) and call:
        call = call[0]
    if not isinstance(call, dict) or not isinstance(call.get("action_type"), str):
        raise ParseError(f"the response's JSON is not an action: {call!r:.80}")
    return call

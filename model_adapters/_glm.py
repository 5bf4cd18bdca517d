"""What GLM-4.1V and GLM-4.5V share: ``Memory`` / ``Reason`` / ``Action``, boxes in thousandths, the past inside the prompt.

Sources: zai-org/GLM-V ``examples/gui-agent/*/agent.md`` (actions, history sample, swipe words), ``README.md`` (grounding, box
tokens), ``glmv_reward`` (what the authors' own reader forgives), ``inference/trans_infer_bench.py`` (a thought that is not
closed leaves the reply unfinished); issues #114 (boxes) and #159 (past steps need a reason).
Prompts, the tags around an answer and the thinking switch are the adapters' business.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from pydantic import Field

from guieval.actions import (
    DIRECTIONS,
    Action,
    ActionSpace,
    Button,
    Click,
    LongPress,
    Open,
    Point,
    Press,
    Scroll,
    Stop,
    Type,
    Unsupported,
    Wait,
)
from guieval.errors import ParseError
from guieval.frames import PER_999, PER_1000, Frame, Size
from guieval.history import HistoryEntry
from guieval.models import ImageRef, Message, ParsedResponse, fill
from guieval.parsing import decoded, json_value, well_formed
from guieval.steps import StepTaskModel

from ._arguments import needed, text_argument
from ._options import Options
from ._prompting import past_sentence, template
from ._rounds import first_round
from ._thoughts import closed_thought

SPACE = ActionSpace()
"""All of the unified space but PRESS(RECENT)."""
BEGIN, END = "<|begin_of_box|>", "<|end_of_box|>"
FIRST_STEP = "You just started, no action has been performed yet."

_BUTTONS: dict[str, Button] = {"keyboard_enter": "ENTER", "navigate_home": "HOME", "navigate_back": "BACK"}
_PRESSES: dict[Button, str] = {
    "ENTER": "keyboard_enter",
    "HOME": "navigate_home",
    "BACK": "navigate_back",
    # not of the family: the past has to tell it all the same
    "RECENT": "navigate_recent",
}
_STATUSES = {"complete": Stop(status="finish"), "infeasible": Stop(status="impossible")}
_WHOLE_SCREEN = [[0, 0, 999, 999]]
_MIDDLE = Point(500.0, 500.0)


class GLMOptions(Options):
    """Options both versions take."""

    supported_apps: tuple[str, ...] = Field(
        (), description="names the prompt lists for open_app; the authors' list is that of AndroidWorld"
    )

    @property
    def apps(self) -> str:
        """The names as the prompts write them."""
        return ",".join(self.supported_apps)


def frame(task: StepTaskModel) -> Frame:
    """0 to 999 by the prompts of the navigation; 0 to 1000 by the README's words on grounding."""
    return PER_1000 if task.setting == "grounding" else PER_999


def user_turn(task: StepTaskModel, text: str) -> Message:
    """The only turn: the screenshot as it is, then everything else."""
    return Message("user", (ImageRef(task), text))


def grounding_turn(task: StepTaskModel) -> Message:
    """The README's question for a box."""
    return user_turn(task, fill(template("glm-grounding"), instruction=task.instruction))


def past(history: Sequence[HistoryEntry]) -> str:
    """The past as the published samples show it: steps counted from 0, actions as Python writes a dict."""
    if not history:
        return FIRST_STEP
    return "\n\n".join(f"Step {index}:\n{_past_step(entry)}" for index, entry in enumerate(history))


def _past_step(entry: HistoryEntry) -> str:
    own = _own_step(entry)
    if own is not None:
        return own
    # no benchmark has memories; a step instruction is the nearest to a reason
    reason = entry.conclusion and past_sentence(entry, PER_999)
    call = call_of(entry.action, PER_999, entry.task.screenshot_size)
    return f"Memory: None\nReason: {reason or entry.thought or past_sentence(entry, PER_999)}\nAction: {call!r}"


def _own_step(entry: HistoryEntry) -> str | None:
    if entry.raw_response is None:
        return None
    try:
        _, memory, reason, body = _parts(entry.raw_response)
        call = _call(body)
    except ParseError:
        return None
    return f"Memory: {memory}\nReason: {reason}\nAction: {call!r}"


# --- replies --------------------------------------------------------------------------------------------------------

_LABEL = re.MULTILINE | re.IGNORECASE
_ACTION = re.compile(r"^[ \t*#]*Action[ \t*]*[:：][ \t*]*", _LABEL)
_ACTION_ANYWHERE = re.compile(r"\bAction[ \t]{0,9}[:：]")
_REASON = re.compile(r"^[ \t*#]*Reason[ \t*]*[:：][ \t*]*", _LABEL)
_MEMORY = re.compile(r"^[ \t*#]*Memory[ \t*]*[:：][ \t*]*", _LABEL)
# only where it opens the answer: a typed text may hold the tag as well
_ANSWER = re.compile(r"<(?:\|assistant\|>\s{0,9}<)?answer>(?=\s{0,9}(?:[*#]|Memory|Reason|Action|<\||[\[{`]))", re.IGNORECASE)
_OBJECT = re.compile(r"(?:^|[:：`>]|json)[ \t]{0,20}(?:\[\s{0,9}){0,2}\{", re.MULTILINE)
_CALL = re.compile(r"\s*([A-Za-z_]\w{0,40})\(")
_NUMBER = r"-?\d{1,7}(?:\.\d{1,9})?"
_NEXT = rf"\s{{0,9}}[,，\s]\s{{0,9}}{_NUMBER}"
_OPEN, _CLOSE = r"[\[({<（［]\s{0,9}", r"\s{0,9}[\])}>）］]"
_BOX = re.compile(rf"{_OPEN}({_NUMBER}{_NEXT}{_NEXT}{_NEXT}){_CLOSE}")
_PAIR = re.compile(rf"{_OPEN}({_NUMBER}{_NEXT}){_CLOSE}")


def read_reply(task: StepTaskModel, text: str, *, reason_is_thought: bool = False) -> ParsedResponse:
    """Read a reply; of several actions or boxes the first counts.

    The thought is the ``<think>`` block, which has to be closed, the conclusion the reason; with ``reason_is_thought`` the
    reason stands for both (thinking is off, so nothing else is thought). Tolerated: no box tokens, or no closing one;
    ``<answer>`` unclosed or missing; fences; labels in bold or with a full-width colon; no ``Action:`` at all, if the object
    begins a line (a continued turn); Python notation with JSON's ``true``, leading zeros and doubled brackets, as the authors'
    reward forgives. Raises :class:`ParseError` where there is no answer.
    """
    if task.setting == "grounding":
        text = first_round(well_formed(text))
        thought, answer = closed_thought(text, BEGIN if BEGIN in text else "")
        return ParsedResponse(Click(point=decoded(_place(answer), PER_1000, task.screenshot_size)), thought or None)
    thought, _, reason, body = _parts(text)
    conclusion = reason if reason not in ("", "None") else None
    thought = thought or (conclusion if reason_is_thought else None)
    return ParsedResponse(_action(_call(body), task.screenshot_size), thought, conclusion)


def _parts(text: str) -> tuple[str | None, str, str, str]:
    """A reply's thought, memory, reason, and what its action is to be looked for in."""
    text = first_round(well_formed(text))
    thought, rest = closed_thought(text, BEGIN if BEGIN in text else "Action:")
    rest = _ANSWER.sub("", rest, count=1)
    label = _ACTION.search(rest) or _ACTION_ANYWHERE.search(rest)
    head, body = (rest[: label.start()], rest[label.end() :]) if label is not None else ("", _unlabelled(rest))
    reason = _REASON.search(head)
    memory = _MEMORY.search(head, 0, reason.start() if reason else len(head))
    told = head[reason.end() :].strip() if reason else head[memory.end() if memory else 0 :].strip()
    kept = head[memory.end() : reason.start() if reason else memory.end()].strip() if memory else ""
    return thought or None, kept or "None", told or "None", _boxed(body)


def _unlabelled(text: str) -> str:
    if BEGIN in text:
        return text
    found = _OBJECT.search(text)
    # an object in the middle of a sentence is talked about, not chosen
    if found is None and "{" in text:
        raise ParseError(f"the reply talks about an action but chooses none: {text.strip()[:80]!r}")
    return text if found is None else text[found.start() :]


def _boxed(text: str) -> str:
    start = text.find(BEGIN)
    if start < 0:
        return text
    end = text.find(END, start)
    return text[start + len(BEGIN) : end if end >= 0 else len(text)]


def _place(answer: str) -> str:
    inside = _boxed(answer)
    # a box was asked for: two numbers in brackets are only a place where there is none
    found = _BOX.search(inside) or _PAIR.search(inside)
    if found is not None:
        return found[1].replace("，", ",")
    if END in answer and BEGIN in answer and inside.strip()[:1].isdigit():
        return inside
    raise ParseError(f"the reply holds no box: {inside.strip()[:80]!r}")


MAX_REPAIR = 4_000
"""Longest action, in characters, whose notation is mended."""
_TOKEN = re.compile(r"'(?:\\.|[^'\\])*+'|\"(?:\\.|[^\"\\])*+\"|\b(?:true|false|null)\b|(?<![\w.])0+(?=\d)", re.DOTALL)
_WORDS = {"true": "True", "false": "False", "null": "None"}
_LEADING_ZERO = re.compile(r"0\d")


def _call(body: str) -> dict[str, Any]:
    """The object of an action."""
    named = _CALL.match(body)
    if named is not None:
        raise ParseError(f"the reply calls {named[1]!r}, as the desktop and web prompts ask for; this one asks for an object")
    stripped = body.strip()
    if stripped.startswith("{{") and stripped.endswith("}}"):
        body = stripped[1:-1]
    try:
        call = json_value(body)
    except ParseError:
        mended = _mended(body)
        if mended == body:
            raise
        call = json_value(mended)
    if isinstance(call, list) and call:
        call = call[0]
    if not isinstance(call, dict) or not isinstance(call.get("action_type"), str):
        raise ParseError(f"the reply's JSON is no action: {call!r:.80}")
    return call


def _mended(text: str) -> str:
    """``text`` as a Python literal where only JSON's words or leading zeros keep it from being one."""
    if len(text) > MAX_REPAIR or not (any(word in text for word in _WORDS) or _LEADING_ZERO.search(text)):
        return text
    return _TOKEN.sub(lambda match: _WORDS.get(match[0], "" if match[0].strip("0") == "" else match[0]), text)


def _action(call: dict[str, Any], size: Size) -> Action:
    name = call["action_type"].strip().lower()
    arguments = {key: value for key, value in call.items() if key != "action_type"}
    match name:
        case "click":
            return Click(point=decoded(needed(name, arguments, "box_2d"), PER_999, size))
        case "long_press":
            return LongPress(point=decoded(needed(name, arguments, "box_2d"), PER_999, size))
        case "input_text":
            # the format has no other way to type: the click before it and the enter key after it belong to the action
            return Type(text=text_argument(name, arguments, "text"))
        case "open_app":
            app = text_argument(name, arguments, "app_name")
            if not app.strip():
                raise ParseError("open_app names no app")
            return Open(app=app)
        case "swipe":
            return _swipe(arguments, size)
        case "wait":
            return Wait()
        case "status":
            status = needed(name, arguments, "goal_status")
            stop = _STATUSES.get(status.strip().lower()) if isinstance(status, str) else None
            if stop is None:
                raise ParseError(f"the status {status!r:.80} is neither 'complete' nor 'infeasible'")
            return stop
        case "answer":
            return Unsupported(name=name, arguments=arguments)
    if name in _BUTTONS:
        return Press(button=_BUTTONS[name])
    raise ParseError(f"{name!r:.80} is not an action of this family" if name else "the reply names no action")


def _swipe(arguments: dict[str, Any], size: Size) -> Action:
    word = needed("swipe", arguments, "direction")
    direction = next((known for known in DIRECTIONS if isinstance(word, str) and word.strip().lower() == known), None)
    if direction is None:
        raise ParseError(f"the swipe's direction {word!r:.80} is none of {', '.join(DIRECTIONS)}")
    box = arguments.get("box_2d")
    # left out or left empty, the whole screen is swiped
    point = _MIDDLE if box in (None, "", [], [[]]) else decoded(box, PER_999, size)
    return Scroll(point=point, direction=direction)


# --- actions --------------------------------------------------------------------------------------------------------


def call_of(action: Action, frame: Frame, size: Size) -> dict[str, Any]:
    """Any action as the family's object, also one that it has no word for (as the past has to tell it).

    A point becomes a box of no extent, since nothing says how large its target is; the required box of ``input_text`` is
    the whole screen, since the unified action has no place. A swipe from the middle is one of the whole screen, without box.
    """
    match action:
        case Click() | LongPress():
            name = "click" if isinstance(action, Click) else "long_press"
            return {"action_type": name, "box_2d": _box(action.point, frame, size)}
        case Scroll():
            call: dict[str, Any] = {"action_type": "swipe", "direction": action.direction}
            return call if action.point == _MIDDLE else {**call, "box_2d": _box(action.point, frame, size)}
        case Type():
            return {"action_type": "input_text", "text": action.text, "box_2d": _WHOLE_SCREEN, "override": False}
        case Open():
            return {"action_type": "open_app", "app_name": action.app}
        case Press():
            return {"action_type": _PRESSES[action.button]}
        case Wait():
            return {"action_type": "wait"}
        case Stop():
            return {"action_type": "status", "goal_status": "complete" if action.status == "finish" else "infeasible"}
        case Unsupported():
            return {"action_type": action.name, **action.arguments}


def _box(point: Point, frame: Frame, size: Size) -> list[list[float]]:
    x, y = frame.quantise(point, size)
    return [[x, y, x, y]]


def answer(task: StepTaskModel, action: Action, conclusion: str | None) -> str:
    """What follows the thought in a reply."""
    size = task.screenshot_size
    if task.setting == "grounding" and isinstance(action, Click):
        return f"{BEGIN}{json.dumps(_box(action.point, PER_1000, size))}{END}"
    call = json.dumps(call_of(action, PER_999, size), ensure_ascii=False)
    return f"Memory: None\nReason: {conclusion or None}\nAction: {BEGIN}{call}{END}"

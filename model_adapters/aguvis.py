"""Aguvis (Qwen2-VL based): ``pyautogui`` and ``mobile`` calls, points as fractions of the screen, an inner monologue.

Sources: xlang-ai/aguvis ``src/aguvis/constants.py`` (prompts, functions, chat template) and ``src/aguvis/serve/cli.py``
(modes, history, sampling); xlang-ai/computer-agent-arena-hub ``hub/Aguvis`` (the same authors' agent on a chat server: how a
turn is begun there, how replies are read).

An assistant's turn names its recipient: ``all`` hears thought and action in words, ``os`` gets the call. The authors' modes are
beginnings of that turn: "force-plan" begins with ``Thought:`` (thinking on), a step instruction stands as ``Action:``
in front of the call, and their arena agent begins with recipient ``os`` where a call alone is wanted (thinking off). Without
a choice ("self-plan") nothing is begun. A given thought (GUIEvalKit paper, appendix E) begins the turn like "force-plan".

The recipient follows the role at once, in the training's format and in their script. A chat template of the Qwen2-VL kind puts
a newline in between; ``configs/chat_templates/aguvis.jinja`` does not.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from guieval.actions import (
    Action,
    ActionSpace,
    Button,
    Click,
    LongPress,
    Open,
    Press,
    Scroll,
    Stop,
    StopStatus,
    Type,
    Unsupported,
    Wait,
    path_direction,
    scroll_path,
)
from guieval.errors import ParseError, UsageError
from guieval.frames import RELATIVE, Frame, Size
from guieval.history import HistoryEntry
from guieval.models import ABCModel, ImageRef, Message, ModelConfig, ModelInput, ParsedResponse, fill
from guieval.parsing import Call, decoded, first_call, place, quoted, well_formed
from guieval.steps import StepTaskModel

from ._options import ImageLimits, read_options
from ._prompting import begun, given_thought, past_sentence, sent_size, step_instruction, template

FACTOR = 28
ALL = "<|recipient|>all\n"
OS = "<|recipient|>os\n"
NEXT_TURN = "<|im_end|>\n<|im_start|>assistant"


class Aguvis(ABCModel):
    """Adapter of Aguvis. Options: image limits (its coordinates are relative, so by default files are sent as they are)."""

    action_space = ActionSpace(statuses=frozenset({"finish"}))
    """The functions of the prompt, pyautogui's keyboard, and the ``terminate`` of the training data."""
    thinking_switch = True
    fixes_thought = True
    source = "github.com/xlang-ai/aguvis src/aguvis/constants.py, serve/cli.py"

    def __init__(self, config: ModelConfig, *, thinking: bool | None = None) -> None:
        super().__init__(config, thinking=thinking)
        self._options = read_options(ImageLimits, config)

    def frame(self, task: StepTaskModel) -> Frame:
        return RELATIVE

    def prepare_input(self, task: StepTaskModel, history: Sequence[HistoryEntry]) -> ModelInput:
        asked, beginning = ModelInput(self._messages(task, history)), self._beginning(task)
        return begun(asked, beginning) if beginning else asked

    def prepare_fixed_thought(self, task: StepTaskModel, history: Sequence[HistoryEntry], thought: str) -> ModelInput:
        if self.thinking is False:
            raise UsageError(f"model {self.config.name!r} is told not to think, so it can be given no thought")
        sentence = f"Action: {step_instruction(task)}\n" if task.setting == "low" else ""
        turn = f"{ALL}Thought: {given_thought(thought)}\n{sentence}"
        return begun(ModelInput(self._messages(task, history)), turn)

    def parse_response(self, task: StepTaskModel, text: str) -> ParsedResponse:
        return read_reply(text, self.frame(task), task.screenshot_size)

    def render(self, task: StepTaskModel, action: Action, thought: str | None = None, conclusion: str | None = None) -> str:
        if action not in self.action_space:
            raise ValueError(f"Aguvis cannot say {action!r}")
        call = write_call(action, self.frame(task), task.screenshot_size)
        beginning = self._beginning(task)
        # a turn that begins with the step instruction, or with recipient os, goes on with the call
        if beginning == OS or task.setting != "high" or not (thought or conclusion):
            return call
        head = "" if beginning else ALL
        head += f"{'' if beginning else 'Thought: '}{thought}\n" if thought else ""
        head += f"Action: {conclusion}\n" if conclusion else ""
        return f"{head}{NEXT_TURN}{OS}{call}"

    def _beginning(self, task: StepTaskModel) -> str:
        if task.setting == "grounding":
            return ALL
        if task.setting == "low":
            return f"{ALL}Action: {step_instruction(task)}\n"
        return "" if self.thinking is None else f"{ALL}Thought: " if self.thinking else OS

    def _messages(self, task: StepTaskModel, history: Sequence[HistoryEntry]) -> tuple[Message, ...]:
        grounding = task.setting == "grounding"
        lines = [
            f"Step {number}: {' '.join(past_sentence(entry, self.frame(entry.task)).split())}"
            for number, entry in enumerate(() if grounding else history, 1)
        ]
        told = fill(template("aguvis-user"), overall_goal=task.instruction, previous_actions="\n".join(lines) or "None")
        limits = (self._options.min_pixels, self._options.max_pixels)
        image = ImageRef(task, sent_size(task.screenshot_size, FACTOR, *limits))
        system = template("aguvis-grounding-system" if grounding else "aguvis-agent-system")
        return Message("system", (system,)), Message("user", (image, told))


# --- replies --------------------------------------------------------------------------------------------------------

_OUTSIDE = (
    *("doubleClick", "tripleClick", "rightClick", "middleClick", "moveTo", "moveRel", "dragTo", "dragRel"),
    *("hotkey", "keyDown", "keyUp", "mouseDown", "mouseUp", "scroll", "hscroll", "select_option", "answer"),
)
"""Mouse and keyboard beyond a finger's. Of ``scroll`` not even the sign is agreed on: pyautogui turns up for positive numbers,
readers of the training data turn down."""
_NAMES = (
    "click",
    "write",
    "typewrite",
    "press",
    "swipe",
    "home",
    "back",
    "wait",
    "long_press",
    "open_app",
    "terminate",
    *_OUTSIDE,
)
_FIRST_KEYS = {
    **dict.fromkeys(("write", "typewrite"), "message"),
    **dict.fromkeys(("press", "hotkey", "keyDown", "keyUp"), "keys"),
    **dict.fromkeys(("scroll", "hscroll"), "page"),
    **{"wait": "seconds", "open_app": "app_name", "terminate": "status", "answer": "text"},
}
_BACK_AND_HOME: dict[str, Button] = {"back": "BACK", "home": "HOME"}
_STATUSES: dict[str, StopStatus] = {"success": "finish", "failure": "impossible"}

_END = re.compile(r"<\|diff_marker\|>")
_TO_OS = re.compile(r"<\|recipient\|>os\b")
_TO_OS_STRIPPED = re.compile(r"^assistantos[ \t]*$", re.MULTILINE)
_TOKENS = re.compile(r"<\|[a-z_]{1,20}\|>(?:(?:assistant|all|os)\b)?")
_TOKENS_STRIPPED = re.compile(r"^assistant(?:all|os)[ \t]*$", re.MULTILINE)
_CALL = re.compile(
    r"^[ \t`>]*(?:Action[ \t]*[:：][ \t`]*)?(?:(?:pyautogui|mobile|browser)\.([A-Za-z_]\w{0,40})|("
    + "|".join(_NAMES)
    + r"))\(",
    re.MULTILINE,
)
_SENTENCE = re.compile(r"^[ \t*]*Action[ \t*]*[:：][ \t*]*(.*)", re.MULTILINE)
_LABEL = re.compile(r"\A[\s*]*(?:Thought|Observation)[ \t*]*[:：][ \t*]*")
_NUMBER = r"-?\d{1,20}(?:\.\d{1,30})?"
_TWO_NUMBERS = re.compile(rf"\s*(?:x\s*=\s*)?({_NUMBER})\s*,\s*(?:y\s*=\s*)?({_NUMBER})(?=\s*[,)])")
_TWO_LISTS = re.compile(r"\s*([\[(][^\])]{1,60}[\])])\s*,\s*([\[(][^\])]{1,60}[\])])")
_KEYED = re.compile(r"\s*(?:[A-Za-z_]\w{0,40}\s*=|\)|\Z)")


def read_reply(text: str, frame: Frame, size: Size) -> ParsedResponse:
    """Read a reply with points in ``frame`` on a screenshot of ``size``: the first call counts.

    A call begins a line; where a turn is addressed to ``os``, only what follows is looked at. Tolerated: the special tokens or
    what is left of them when a server drops them (``assistantall``, ``assistantos``); fences; the module's name left out;
    arguments by position; the arguments' other names that the authors' agent corrects (``text``, ``content``, ``key``,
    ``button``). The sentence behind ``Action:`` is the conclusion, what stands before it the thought.
    """
    text = _END.split(well_formed(text), maxsplit=1)[0]
    marker = _TO_OS.search(text) or ("assistantos" in text and _TO_OS_STRIPPED.search(text)) or None
    start = marker.end() if marker is not None else 0
    body = text[start:]
    found = _CALL.search(body)
    if found is None:
        raise ParseError(f"the reply holds no call: {body.strip()[:80]!r}")
    name = found[1] or found[2]
    call = first_call(f"{name}({_with_keys(name, body[found.end() :])}", _NAMES)
    words = _without_tokens(text[: marker.start()] if marker is not None else body[: found.start()])
    sentence = _SENTENCE.search(words)
    thought = words[: sentence.start()] if sentence is not None else words
    conclusion = sentence[1].strip() if sentence is not None else ""
    return ParsedResponse(_translate(call, frame, size), _LABEL.sub("", thought).strip("\n\t `") or None, conclusion or None)


def _without_tokens(text: str) -> str:
    text = _TOKENS.sub("", text)
    return _TOKENS_STRIPPED.sub("", text) if "assistant" in text else text


def _with_keys(name: str, arguments: str) -> str:
    """The arguments with the names that a call by position leaves out."""
    numbers = _TWO_NUMBERS.match(arguments)
    if numbers is not None:
        return f"x={numbers[1]}, y={numbers[2]}{arguments[numbers.end() :]}"
    lists = _TWO_LISTS.match(arguments)
    if lists is not None:
        return f"from_coord={lists[1]}, to_coord={lists[2]}{arguments[lists.end() :]}"
    if name in _FIRST_KEYS and not _KEYED.match(arguments):
        return f"{_FIRST_KEYS[name]}={arguments.lstrip()}"
    return arguments


def _translate(call: Call, frame: Frame, size: Size) -> Action:
    arguments = call.arguments
    if call.name in _BACK_AND_HOME:
        return Press(button=_BACK_AND_HOME[call.name])
    match call.name:
        case "click" if arguments.get("button", "left") != "left" or arguments.get("clicks", "1") != "1":
            return Unsupported(name="click", arguments=dict(arguments))
        case "click":
            return Click(point=decoded(_pair(call), frame, size))
        case "long_press":
            return LongPress(point=decoded(_pair(call), frame, size))
        case "write" | "typewrite":
            return Type(text=_needed(call, "message", "text", "content"))
        case "open_app":
            app = _needed(call, "app_name")
            if not app.strip():
                raise ParseError("the reply's open_app names no app")
            return Open(app=app)
        case "press":
            keys = _needed(call, "keys", "key", "button").strip("[]'\" \t").lower()
            return Press(button="ENTER") if keys in ("enter", "return") else Unsupported(name="press", arguments={"keys": keys})
        case "swipe":
            return _swipe(call, frame, size)
        case "wait":
            return _wait(arguments)
        case "terminate":
            status = arguments.get("status", "")
            if status not in _STATUSES:
                raise ParseError(f"the reply's status {status!r:.80} is none of {', '.join(_STATUSES)}")
            return Stop(status=_STATUSES[status])
    return Unsupported(name=call.name, arguments=dict(arguments))


def _needed(call: Call, *keys: str) -> str:
    for key in keys:
        if key in call.arguments:
            return call.arguments[key]
    raise ParseError(f"the reply's {call.name} gives no {keys[0]}")


def _pair(call: Call) -> list[object]:
    return [_needed(call, "x"), _needed(call, "y")]


def _swipe(call: Call, frame: Frame, size: Size) -> Action:
    start, end = _needed(call, "from_coord"), _needed(call, "to_coord")
    point = decoded(start, frame, size)
    decoded(end, frame, size)
    direction = path_direction(place(start), place(end))
    if direction is None:
        raise ParseError("the reply's swipe has no length, so it has no direction")
    return Scroll(point=point, direction=direction)


def _wait(arguments: Mapping[str, str]) -> Action:
    if "seconds" not in arguments:
        return Wait()
    try:
        seconds = float(arguments["seconds"])
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds < 1e9:
        raise ParseError(f"the reply's seconds {arguments['seconds']!r:.80} are no time to wait")
    return Wait(duration=seconds * 1000)


def write_call(action: Action, frame: Frame, size: Size) -> str:
    """The call for an action, as :func:`read_reply` reads it."""

    def pair(point: Any) -> tuple[float, float]:
        x, y = frame.quantise(point, size)
        return float(x), float(y)

    match action:
        case Click() | LongPress():
            x, y = pair(action.point)
            return f"{'pyautogui.click' if isinstance(action, Click) else 'mobile.long_press'}(x={x}, y={y})"
        case Scroll():
            start, end = (list(pair(point)) for point in scroll_path(action))
            return f"mobile.swipe(from_coord={start}, to_coord={end})"
        case Type():
            return f"pyautogui.write(message={quoted(action.text)})"
        case Open():
            return f"mobile.open_app(app_name={quoted(action.app)})"
        case Press():
            return "pyautogui.press(keys='enter')" if action.button == "ENTER" else f"mobile.{action.button.lower()}()"
        case Wait():
            return f"mobile.wait(seconds={action.duration / 1000:g})"
        case Stop():
            return "mobile.terminate(status='success')"
    raise ValueError(f"Aguvis cannot say {action!r}")

"""Aguvis (Qwen2-VL based): ``pyautogui`` and ``mobile`` calls, points as fractions of the screen, an inner monologue.

Sources: xlang-ai/aguvis ``src/aguvis/constants.py`` (prompts, functions, chat template) and ``src/aguvis/serve/cli.py``
(modes, history, sampling); xlang-ai/computer-agent-arena-hub ``hub/Aguvis`` (the same authors' agent on a chat server: how a
turn is begun there, how responses are read); xlang-ai/OpenCUA ``evaluation/agentnetbench/agent/aguvis.py`` (the wheel).

An assistant's turn names its recipient: ``all`` for thought and action in words, ``os`` for the call. The authors' modes begin
that turn: "force-plan" with ``Thought:`` (thinking on; also a given thought, GUIEvalKit paper, appendix E), a step instruction
with ``Action:``, their arena agent with recipient ``os`` for a call alone (thinking off), and "self-plan" with nothing. The
recipient directly follows the role. Chat templates of the Qwen2-VL kind put a newline in between;
``configs/chat_templates/aguvis.jinja`` does not.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from guieval.actions import Action, ActionSpace, Click, Hotkey, Unsupported
from guieval.errors import ParseError
from guieval.frames import RELATIVE
from guieval.history import HistoryEntry
from guieval.models import ABCModel, Family, ImageLimits, ModelInput, ParsedResponse, begun, chat, step_instruction
from guieval.models.parsing import call_tables as calls
from guieval.models.parsing import first_call
from guieval.steps import StepTaskModel

ALL = "<|recipient|>all\n"
OS = "<|recipient|>os\n"
NEXT_TURN = "<|im_end|>\n<|im_start|>assistant"


def _click(call: calls.Arguments) -> Action:
    if call.values.get("button", "left") != "left" or call.values.get("clicks", "1") != "1":
        return call.unsupported()
    return Click(point=call.point(*calls.XY))


def _press(call: calls.Arguments) -> Action:
    keys = str(call.deciding("keys", "key", "button")).strip("[]'\" \t").lower()
    if keys in ("enter", "return"):
        return calls.ENTER
    return Unsupported(name="press", arguments={"keys": keys}, device=Hotkey(keys=(keys,)))


CALLS = calls.CallTable(
    {
        "click": calls.Form(Click, _click, calls.tap(*calls.XY).write),
        **dict.fromkeys(("write", "typewrite"), calls.typed("message", "text", "content")),
        "press": calls.enter(_press, keys="enter"),
        "swipe": calls.swiped("from_coord", "to_coord"),
        "home": calls.HOME,
        "back": calls.BACK,
        "wait": calls.waited("seconds"),
        "long_press": calls.hold(*calls.XY),
        "open_app": calls.opened("app_name"),
        "terminate": calls.stopped("status"),
        "doubleClick": calls.double_clicked(*calls.XY),
        "rightClick": calls.right_clicked(*calls.XY),
        "moveTo": calls.hovered(*calls.XY),
        "dragTo": calls.dragged((), calls.XY),
        "hotkey": calls.pressed_together("keys"),
        "answer": calls.answered("text"),
        # as AgentNetBench's reader of this family: a positive number turns the wheel up
        "scroll": calls.wheel("down", "up", "page", "clicks", place=calls.XY, unit="screens"),
        "select_option": calls.selected("value"),
        **calls.outside("tripleClick", "middleClick", "moveRel", "dragRel"),
        **calls.outside("keyDown", "keyUp", "mouseDown", "mouseUp", "hscroll"),
    }
)
_PYAUTOGUI = ("click", "write", "press")
"""The functions that are written as pyautogui's; all others are ``mobile``'s."""
_FIRST_KEYS = {
    **dict.fromkeys(("write", "typewrite"), "message"),
    **dict.fromkeys(("press", "hotkey", "keyDown", "keyUp"), "keys"),
    **dict.fromkeys(("scroll", "hscroll"), "page"),
    **{"wait": "seconds", "open_app": "app_name", "terminate": "status", "answer": "text"},
}


class Aguvis(ABCModel):
    """Adapter of Aguvis. Options: image limits (its coordinates are relative, so by default files are sent as they are)."""

    options: ImageLimits
    table = CALLS
    fixed_frame = RELATIVE
    action_space = ActionSpace(statuses=frozenset({"finish"}))
    """The functions of the prompt, pyautogui's keyboard, and the ``terminate`` of the training data."""
    thinking_switch = True
    family = Family(2024, ("phone", "desktop", "web", "grounding"), reader="makers", recorded=150)
    source = "github.com/xlang-ai/aguvis src/aguvis/constants.py, serve/cli.py"
    frame_source = "github.com/xlang-ai/aguvis src/aguvis/constants.py"

    def prepare_input(self, task: StepTaskModel, history: Sequence[HistoryEntry]) -> ModelInput:
        grounding = task.setting == "grounding"
        lines = [
            f"Step {number}: {' '.join(self.sentence(entry).split())}"
            for number, entry in enumerate(() if grounding else history, 1)
        ]
        question = self.prompt("aguvis-user", overall_goal=task.instruction, previous_actions="\n".join(lines) or "None")
        system = self.prompt("aguvis-grounding-system" if grounding else "aguvis-agent-system")
        prepared, beginning = chat(self.image(task), question, system=system), self._beginning(task)
        return begun(prepared, beginning) if beginning else prepared

    def opening(self, task: StepTaskModel, thought: str) -> str:
        sentence = f"Action: {step_instruction(task)}\n" if task.setting == "low" else ""
        return f"{ALL}Thought: {thought}\n{sentence}"

    def parse_response(self, task: StepTaskModel, text: str) -> ParsedResponse:
        """Read a response; the first call counts.

        A call begins a line; in a turn addressed to ``os``, only what follows is read. Tolerated: the special tokens or what
        is left of them when a server drops them (``assistantall``, ``assistantos``); fences; the module's name left out;
        arguments by position; the arguments' other names that the authors' agent corrects (``text``, ``content``, ``key``,
        ``button``). The sentence after ``Action:`` is the conclusion, what is before it the thought.
        """
        text = _END.split(text, maxsplit=1)[0]
        marker = _TO_OS.search(text) or ("assistantos" in text and _TO_OS_STRIPPED.search(text)) or None
        start = marker.end() if marker is not None else 0
        body = text[start:]
        match = _CALL.search(body)
        if match is None:
            raise ParseError(f"the response has no call: {body.strip()[:80]!r}")
        name = match[1] or match[2]
        call = first_call(f"{name}({_with_keys(name, body[match.end() :])}", CALLS)
        words = _TOKENS.sub("", text[: marker.start()] if marker is not None else body[: match.start()])
        if "assistant" in words:
            words = _TOKENS_STRIPPED.sub("", words)
        sentence = _SENTENCE.search(words)
        thought = words[: sentence.start()] if sentence is not None else words
        conclusion = sentence[1].strip() if sentence is not None else ""
        action = self.read_call(task, call.name, call.arguments)
        return ParsedResponse(action, _LABEL.sub("", thought).strip("\n\t `") or None, conclusion or None)

    def write(self, task: StepTaskModel, action: Action, thought: str | None, conclusion: str | None) -> str:
        call = CALLS.write_text(action, lambda point: list(map(float, self.write_place(task, point))))
        call = f"{'pyautogui' if call.split('(')[0] in _PYAUTOGUI else 'mobile'}.{call}"
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


_END = re.compile(r"<\|diff_marker\|>")
_TO_OS = re.compile(r"<\|recipient\|>os\b")
_TO_OS_STRIPPED = re.compile(r"^assistantos[ \t]*$", re.MULTILINE)
_TOKENS = re.compile(r"<\|[a-z_]{1,20}\|>(?:(?:assistant|all|os)\b)?")
_TOKENS_STRIPPED = re.compile(r"^assistant(?:all|os)[ \t]*$", re.MULTILINE)
_CALL = re.compile(
    r"^[ \t`>]*+(?:Action[ \t]*[:：][ \t`]*)?(?:(?:pyautogui|mobile|browser|computer)\.([A-Za-z_]\w{0,40})|("
    + "|".join(CALLS)
    + r"))\(",
    re.MULTILINE,
)
_SENTENCE = re.compile(r"^[ \t*]*+Action[ \t*]*[:：][ \t*]*(.*)", re.MULTILINE)
_LABEL = re.compile(r"\A[\s*]*+(?:Thought|Observation)[ \t*]*[:：][ \t*]*")
_NUMBER = r"-?\d{1,20}(?:\.\d{1,30})?"
_TWO_NUMBERS = re.compile(rf"\s*(?:x\s*=\s*)?({_NUMBER})\s*,\s*(?:y\s*=\s*)?({_NUMBER})(?=\s*[,)])")
_TWO_LISTS = re.compile(r"\s*([\[(][^\])]{1,60}[\])])\s*,\s*([\[(][^\])]{1,60}[\])])")
_KEYED = re.compile(r"\s*(?:[A-Za-z_]\w{0,40}\s*=|\)|\Z)")


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

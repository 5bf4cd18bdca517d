"""CogAgent-9B: status, plan, a sentence and a call, ``CLICK(box=[[x1,y1,x2,y2]])``, in thousandths of the screen.

Sources: THUDM/CogAgent@5fde01e (now zai-org), ``app/client.py`` (prompt, the past as calls and sentences), ``README.md`` (the
formats that can be asked for), ``Action_space_en.md`` (calls, the frame), and ``app_for_android`` of the same repository at
d799e158 (phones: the format with status, plan and sensitivity).

What a scroll's name says differs by platform: on computers the page scrolls that way, on phones the authors' client moves the
finger that way; the option ``scroll_words`` overrides it. A typed text comes with a box, which the unified action has no place
for, so a past one is written without. There is no call for a long press, a pause, or a phone's buttons. Not published: a step
instruction takes the goal's place; a grounding query is a task without a past, asked for in the format of sentence and call, as
ScreenSpot-Pro's authors do. The first CogAgent (18B, 2023) has another format and is not read here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Literal

from pydantic import Field

from guieval.actions import DIRECTIONS, Action, ActionSpace, Direction, Open, Point, Scroll
from guieval.errors import IncompleteAction
from guieval.frames import PER_1000
from guieval.history import HistoryEntry
from guieval.models import ABCModel, Family, ModelInput, Options, ParsedResponse, chat, main_instruction, own_response
from guieval.models.parsing import ScrollWords, first_call, quoted, stated_place
from guieval.models.parsing import call_tables as calls
from guieval.steps import StepTaskModel

_STEPS = 5
"""How far a scroll goes that is written, in notches: as far as in the authors' example."""


class CogAgentOptions(Options):
    """Options of CogAgent."""

    platform: Literal["Mobile", "WIN", "Mac"] = Field("Mobile", description="the system that the prompt names")
    format: Literal[
        "Status-Plan-Action-Operation-Sensitive",
        "Status-Plan-Action-Operation",
        "Status-Action-Operation-Sensitive",
        "Status-Action-Operation",
        "Action-Operation-Sensitive",
        "Action-Operation",
    ] = Field("Status-Plan-Action-Operation-Sensitive", description="what a response is asked to hold, except in grounding")
    scroll_words: ScrollWords | None = Field(
        None, description="what a scroll's name states; by default the finger's way on phones, the content's on computers"
    )


def _scroll(direction: Direction) -> calls.Form:
    def read(call: calls.Arguments) -> Action:
        point = call.point("box") if call.found("box") is not None else calls.MIDDLE
        return Scroll(point=point, direction=calls.turned(direction, call.scroll_words))

    def write(action: Scroll, writing: calls.Writing) -> dict[str, Any] | None:
        named = calls.turned(action.direction, writing.scroll_words) == direction
        return {"box": writing.place(action.point), "step_count": _STEPS} if named else None

    return calls.Form(Scroll, read, write)


def _press(call: calls.Arguments) -> Action:
    pressed = call.keys("key")
    return calls.ENTER if pressed.keys in (("return",), ("enter",)) else call.unsupported(pressed)


def _launch(call: calls.Arguments) -> Action:
    if (call.found("url") or "None") != "None":
        return call.unsupported()  # if both are given, the address counts
    app = call.text("app")
    if not app.strip() or app == "None":
        raise IncompleteAction(f"{call.name} names no app")
    return Open(app=app)


CALLS = calls.CallTable(
    {
        "CLICK": calls.tap("box"),
        "TYPE": calls.typed("text"),
        **{f"SCROLL_{direction.upper()}": _scroll(direction) for direction in DIRECTIONS},
        "KEY_PRESS": calls.enter(_press, key="Return"),
        "LAUNCH": calls.Form(Open, _launch, lambda action, _: {"app": action.app, "url": "None"}),
        "END": calls.FINISH,
        "DOUBLE_CLICK": calls.double_clicked("box"),
        "RIGHT_CLICK": calls.right_clicked("box"),
        "HOVER": calls.hovered("box"),
        **calls.outside("GESTURE", "QUOTE_TEXT", "QUOTE_CLIPBOARD", "LLM"),
    }
)


class CogAgent(ABCModel):
    """Adapter of CogAgent-9B. Options: :class:`CogAgentOptions`."""

    options: CogAgentOptions
    table = CALLS
    fixed_frame = PER_1000
    action_space = ActionSpace(
        types=frozenset({"CLICK", "TYPE", "SCROLL", "PRESS", "OPEN", "STOP"}),
        buttons=frozenset({"ENTER"}),
        statuses=frozenset({"finish"}),
    )
    family = Family(2024, ("phone", "desktop", "grounding"), reader="makers")
    source = "github.com/THUDM/CogAgent app/client.py, README.md, Action_space_en.md"
    frame_source = "github.com/THUDM/CogAgent Action_space_en.md (a / 1000 * w)"

    def prepare_input(self, task: StepTaskModel, history: Sequence[HistoryEntry]) -> ModelInput:
        grounding = task.setting == "grounding"
        past = () if grounding else history
        text = self.prompt(
            "cogagent-user",
            task=main_instruction(task),
            history="".join(f"\n{number}. {self._past(entry)}" for number, entry in enumerate(past)),
            platform=self.options.platform,
            format="Action-Operation" if grounding else self.options.format,
        )
        return chat(text, self.image(task))

    def parse_response(self, task: StepTaskModel, text: str) -> ParsedResponse:
        before, operation = _split(text)
        thought = "\n".join(match[0] for match in _THOUGHT.finditer(before)).strip()
        sentence = _SENTENCE.search(before)
        conclusion = sentence[1].strip() if sentence is not None else ""
        return ParsedResponse(self._action(task, operation), thought or None, conclusion or None)

    def _action(self, task: StepTaskModel, operation: str) -> Action:
        if _END.match(operation):
            return calls.FINISH
        if task.setting == "grounding" and "(" not in operation and (place := stated_place(operation)) is not None:
            return self.read_click(task, place)
        call = first_call(operation, CALLS)
        return self.read_call(task, call.name, call.arguments)

    @property
    def scroll_words(self) -> ScrollWords:
        return self.options.scroll_words or ("finger" if self.options.platform == "Mobile" else "content")

    def write(self, task: StepTaskModel, action: Action, thought: str | None, conclusion: str | None) -> str:
        before = f"Status: {thought}\n" if thought and "Status" in self.options.format else ""
        sentence = f"Action: {conclusion}\n" if conclusion else ""
        return f"{before}{sentence}Grounded Operation: {self._operation(task, action)}"

    def _operation(self, task: StepTaskModel, action: Action) -> str:
        name, arguments = self.write_call(task, action)
        values = (f"{key}={quoted(value) if key in _WORDS else value}" for key, value in arguments.items())
        return f"{name}({', '.join(values)})"

    def write_place(self, task: StepTaskModel, point: Point) -> str:
        x, y = (f"{side:03.0f}" for side in super().write_place(task, point))
        return f"[[{x},{y},{x},{y}]]"

    def _past(self, entry: HistoryEntry) -> str:
        """A past step: its call and its sentence, as the response has them; without a call for it, its sentence alone."""
        own = own_response(entry, _own)
        if own is not None:
            return own
        sentence = self.sentence(entry)
        call = self._operation(entry.task, entry.action) if entry.action in self.action_space else ""
        return f"{call}\t{sentence}"


_WORDS = frozenset({"text", "key", "app", "url"})
_LABEL = re.compile(r"Grounded Operation[ \t]*[:：]")
_SENTENCE = re.compile(r"^[ \t]*Action[ \t]*[:：](.*)", re.MULTILINE)
_THOUGHT = re.compile(r"^[ \t]*(?:Status|Plan)[ \t]*[:：].*(?:\n(?![ \t]*(?:Status|Plan|Action)[ \t]*[:：]).*)*", re.MULTILINE)
_BEGUN = re.compile(rf"^[ \t`]*(?:{'|'.join(CALLS)})\(", re.MULTILINE)
_END = re.compile(r"[ \t\n`]*END\b")


def _split(text: str) -> tuple[str, str]:
    """The text before the call, and the text from the call on; without its label, a call has to begin a line."""
    label = _LABEL.search(text)
    if label is not None:
        return text[: label.start()], text[label.end() :]
    begun = _BEGUN.search(text)
    return (text[: begun.start()], text[begun.start() :]) if begun is not None else (text, text)


def _own(reply: str) -> str | None:
    before, operation = _split(reply)
    sentence = _SENTENCE.search(before)
    call = first_call(operation, CALLS).text if not _END.match(operation) else "END()"
    return f"{call}\t{sentence[1].strip() if sentence is not None else ''}"

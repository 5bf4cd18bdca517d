"""AutoGLM-Phone: a thought and a ``do(action=..)`` or ``finish(..)`` call in tags, places in thousandths of the screen.

Source: zai-org/Open-AutoGLM@6b18d7b, ``phone_agent/config/prompts_{zh,en}.py`` (prompts), ``phone_agent/agent.py`` (the
conversation: past turns keep their text and lose their screenshot), ``phone_agent/actions/handler.py`` (reading; places are
divided by 1000, though the prompt speaks of 999, which the option ``scale`` chooses) and ``phone_agent/adb/device.py``.

The authors' prompt names the day and their agent names the app in front. A benchmark knows neither, so the day is an option
with a fixed default, and the app is "System Home", which is what their agent sends for an app that it does not know. Not
published: a step instruction takes the goal's place; a grounding query is the goal.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from guieval.actions import Action, ActionSpace, Point, Wait
from guieval.errors import ParseError
from guieval.history import HistoryEntry, describe
from guieval.models import ABCModel, DisputedScale, Family, Message, ModelInput, ParsedResponse, main_instruction, own_response
from guieval.models.parsing import CallExpression, first_call, quoted, split_reasoning
from guieval.models.parsing import call_tables as calls
from guieval.steps import StepTaskModel

_SCREEN = json.dumps({"current_app": "System Home"})


def _wait(call: calls.Arguments) -> Action:
    seconds = re.match(r"\s*(\d{1,6}(?:\.\d{1,3})?)", str(call.found("duration") or 1))
    if seconds is None:
        raise ParseError(f"the Wait's duration {call.found('duration')!r:.80} is not a number of seconds")
    return Wait(duration=1000 * float(seconds[1]))


CALLS = calls.CallTable(
    {
        "Tap": calls.tap("element"),
        "Type": calls.typed("text"),
        "Swipe": calls.swiped("start", "end"),
        "Long Press": calls.hold("element"),
        "Launch": calls.opened("app"),
        "Back": calls.BACK,
        "Home": calls.HOME,
        # in no prompt; the past may hold them
        "Enter": calls.ENTER,
        "Recent": calls.RECENT,
        "Wait": calls.Form(Wait, _wait, lambda action, writing: {"duration": f"{action.duration / 1000:g} seconds"}),
        "Type_Name": calls.typed("text"),
        "Double Tap": calls.double_clicked("element"),
        **calls.outside("Note", "Call_API", "Take_over", "Interact"),
    }
)
_NAMES = {name.lower(): name for name in CALLS}


class AutoGLMOptions(DisputedScale):
    """Options of AutoGLM-Phone."""

    language: Literal["cn", "en"] = Field("cn", description="language of the prompt")
    date: str | None = Field(None, description="today's date in the prompt's words; null for 8 December 2025, when it appeared")


class AutoGLMPhone(ABCModel):
    """Adapter of AutoGLM-Phone. Options: :class:`AutoGLMOptions`."""

    options: AutoGLMOptions
    thought_form = "<think>{thought}</think>\n"
    table = CALLS
    action_space = ActionSpace(buttons=frozenset({"BACK", "HOME"}), statuses=frozenset({"finish"}))
    family = Family(2025, ("phone",), reader="makers", recorded=16)
    source = "github.com/zai-org/Open-AutoGLM@6b18d7b phone_agent/config/prompts_zh.py, phone_agent/agent.py"
    frame_source = "github.com/zai-org/Open-AutoGLM@6b18d7b phone_agent/actions/handler.py (1000); its prompt says 999"

    def prepare_input(self, task: StepTaskModel, history: Sequence[HistoryEntry]) -> ModelInput:
        date = self.options.date or {"cn": "2025年12月08日 星期一", "en": "2025-12-08, Monday"}[self.options.language]
        messages = [Message("system", (self.prompt(f"autoglm_phone-{self.options.language}", date=date),))]
        texts = [f"{main_instruction(task)}\n\n{_SCREEN}", *[f"** Screen Info **\n\n{_SCREEN}"] * len(history)]
        for entry, text in zip(history, texts, strict=False):
            messages += [Message("user", (text,)), Message("assistant", (self.past_response(entry),))]
        return ModelInput((*messages, Message("user", (self.image(task), texts[len(history)]))))

    def parse_response(self, task: StepTaskModel, text: str) -> ParsedResponse:
        thought, call = _split(text)
        if call.name == "finish":
            return ParsedResponse(calls.FINISH, thought)
        arguments = {key: value for key, value in call.arguments.items() if key != "action"}
        name = call.arguments.get("action", "")
        return ParsedResponse(self.read_call(task, _NAMES.get(name.strip().lower(), name), arguments), thought)

    def write(self, task: StepTaskModel, action: Action, thought: str | None, conclusion: str | None) -> str:
        return f"<think>{thought or ''}</think>\n<answer>{self._call(task, action)}</answer>"

    def past_response(self, entry: HistoryEntry) -> str:
        """A past turn as the authors' agent keeps it: the thought, and the call as the model wrote it."""
        call = own_response(entry, lambda reply: _split(reply)[1].text) or self._call(entry.task, entry.action)
        return f"<think>{entry.thought or ''}</think><answer>{call}</answer>"

    def _call(self, task: StepTaskModel, action: Action) -> str:
        """A call as the prompt writes it; an impossible task, which the past may hold, ends in words."""
        if action.type == "STOP":
            message = "Task completed." if action in self.action_space else describe(action)
            return f"finish(message={_quoted(message)})"
        name, arguments = self.write_call(task, action)
        values = [
            f"{key}={value if isinstance(value, str) and value.startswith('[') and key in _PLACES else _quoted(str(value))}"
            for key, value in arguments.items()
        ]
        return f"do({', '.join([f'action={_quoted(name)}', *values])})"

    def write_place(self, task: StepTaskModel, point: Point) -> str:
        return f"[{','.join(f'{side:g}' for side in super().write_place(task, point))}]"


def _split(text: str) -> tuple[str | None, CallExpression]:
    """The thought and the call of a response; without tags, the thought is what is before the call, as the authors read it.

    So is that of a thought which is never closed (``phone_agent/model/client.py``, ``_parse_response``).
    """
    thought, rest = split_reasoning(text, "<answer>")
    begun = next((thought.find(mark) for mark in ("finish(message=", "do(action=") if mark in thought), -1) if thought else -1
    if thought and not rest and begun >= 0:
        thought, rest = thought[:begun], thought[begun:]
    words, tag, answer = rest.partition("<answer>")
    body = answer.partition("</answer>")[0] if tag else rest
    try:
        call = first_call(body, ("do", "finish"))
    except ParseError:
        # the message of a finish does not matter, so neither does how it is written
        end = body.find("finish(message=")
        if end < 0 or "do(" in body[:end]:
            raise
        call = CallExpression("finish", text=body[end:].strip())
    before = words if tag else body[: max(0, body.find(call.text))]
    return (thought or before).strip() or None, call


_PLACES = frozenset({"element", "start", "end"})


def _quoted(text: str) -> str:
    """Text in double quotes, escaped so that :func:`guieval.models.parsing.first_call` reads it back."""
    return '"' + quoted(text)[1:-1].replace("\\'", "'") + '"'

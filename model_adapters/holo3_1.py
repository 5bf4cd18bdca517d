"""Holo3 and Holo3.1 (Qwen3.5 based): a note, a thought and a tool call in one JSON object, in thousandths of the screen.

Source: hub.hcompany.ai "API reference" and "Models" (copies of 2026). The makers publish a recipe and no prompt: tools and
schema are the user's own, here guieval's (``prompts/holo3_1-system.txt``). Each screenshot is an observation, the past is what
the model wrote without its reasoning, and three screenshots are kept. The page on the loop of an agent was not read: that older
ones become ``[screenshot evicted]`` is what several users describe; where the task stands is ours, and no results of tools are
sent. A grounding query has Holo2's text, thinking turned off. The chat template opens the reasoning, so a response holds its
end alone. A response is not constrained to the schema on the server, which the makers advise.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from pydantic import Field

from guieval import actions as act
from guieval.errors import ParseError
from guieval.history import HistoryEntry
from guieval.models import Family, ImageLimits, Message, ModelInput, ParsedResponse, main_instruction
from guieval.models.parsing import ScrollWords, first_round, json_value, split_reasoning
from guieval.models.parsing import call_tables as calls
from guieval.steps import StepTaskModel

from .holo2 import Holo2

CALLS = calls.CallTable(
    {
        "click": calls.tap("x", "y"),
        "long_press": calls.hold("x", "y"),
        "write": calls.typed("content"),
        "scroll": calls.scrolled("direction", "x", "y"),
        "open_app": calls.opened("name"),
        "press_button": calls.pressed("button", {button.lower(): button for button in act.BUTTONS}),
        "wait": calls.waited("seconds"),
        "answer": calls.ended(calls.FINISH, "content"),
        "give_up": calls.ended(calls.IMPOSSIBLE, "reason"),
    }
)


class Holo31Options(ImageLimits):
    """Options of Holo3 and Holo3.1; image limits default to Holo2's."""

    max_images: int = Field(3, ge=1, le=5, description="screenshots per request, the current one included")


class Holo31(Holo2):
    """Adapter of Holo3 and Holo3.1. Options: :class:`Holo31Options`."""

    options: Holo31Options
    table = CALLS
    action_space = act.ActionSpace(buttons=frozenset(act.BUTTONS))
    scroll_words: ScrollWords = "content"
    thinking_switch = grounds_silently = True
    thinking_argument = "enable_thinking"
    family = Family(2026, ("phone", "desktop", "web", "grounding"))
    source = 'hub.hcompany.ai "API reference" (the recipe); the tools are guieval\'s'
    frame_source = 'hub.hcompany.ai "API reference" ("integers normalized to the image you sent", 0 to 1000)'

    def prepare_input(self, task: StepTaskModel, history: Sequence[HistoryEntry]) -> ModelInput:
        if task.setting == "grounding":
            return super().prepare_input(task, history)
        messages = [Message("system", (self.prompt("holo3_1-system"),)), Message("user", (main_instruction(task),))]
        for turn in self.conversation(task, history, self.options.max_images, hidden="[screenshot evicted]"):
            seen = ("<observation>\n", *turn.parts, "\n</observation>")
            messages.append(Message("user", seen) if turn.role == "user" else turn)
        return ModelInput(tuple(messages))

    def past_response(self, entry: HistoryEntry) -> str:
        """The object alone, as it was written if there is one."""
        try:
            return json.dumps(_object(entry.raw_response or "")[1], ensure_ascii=False)
        except ParseError:
            return self.write(entry.task, entry.action, None, entry.thought or self.sentence(entry))

    def parse_response(self, task: StepTaskModel, text: str) -> ParsedResponse:
        if task.setting == "grounding":
            return super().parse_response(task, text)
        reasoning, value = _object(text)
        call = {**value["tool_call"]}
        name = call.pop("tool_name", None)
        if not isinstance(name, str):
            raise ParseError(f"the response's tool_call names no tool: {call!r:.80}")
        action = self.read_call(task, name, call)
        batch = calls.answer_first("answer", call.get("content"), calls.FINISH) if action == calls.FINISH else ()
        if isinstance(action, act.Type) and call.get("press_enter") is True:
            batch = (action, calls.ENTER)
        thought = value.get("thought")
        return ParsedResponse(action, reasoning or None, thought if isinstance(thought, str) else None, batch)

    def write(self, task: StepTaskModel, action: act.Action, thought: str | None, conclusion: str | None) -> str:
        if task.setting == "grounding":
            return super().write(task, action, thought, conclusion)
        before = f"<think>\n{thought}\n</think>\n\n" if thought and self.thinking is not False else ""
        name, arguments = self.write_call(task, action)
        call = {"tool_name": name, **arguments}
        return before + json.dumps({"note": None, "thought": conclusion or "", "tool_call": call}, ensure_ascii=False)


def _object(text: str) -> tuple[str | None, dict[str, Any]]:
    """A response's reasoning and its object."""
    reasoning, rest = split_reasoning(first_round(text), '{"note"')
    value = json_value(rest)
    if not isinstance(value, dict) or not isinstance(value.get("tool_call"), dict):
        raise ParseError(f"the response's JSON has no tool_call: {value!r:.80}")
    return reasoning, value

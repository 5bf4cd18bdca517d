"""Fara-7B (Qwen2.5-VL-7B based): a thought and a ``computer_use`` call on web pages, in pixels of the resized screenshot.

Source: microsoft/fara@3f3f1fd, ``src/fara/_prompts.py`` and ``src/fara/qwen_helpers/fncall_prompt.py`` (the system prompt),
``src/fara/fara_agent.py`` (the conversation: the task, then each response with the screenshots of the last two; image limits;
what each action does).

``type`` clicks on its place, empties the field if asked to, types, and presses Enter by default. The typing is
scored, and mode online carries out all of it. The wheel turns up and down only. Not published: a step instruction and a
grounding query take the task's place. The agent names the page's address with every screenshot after the first, which
benchmarks do not record, so that line is left out; the last thought, which it takes for the answer to the task, is not sent to
a device.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pydantic import Field

from guieval.actions import Action, Click, Hotkey, Type, Unsupported, Wait
from guieval.history import HistoryEntry
from guieval.models import Family, ImageLimits, Message, ModelInput, ParsedResponse, main_instruction
from guieval.models.parsing import call_tables as calls
from guieval.steps import StepTaskModel

from . import _desktop_calls as desktop
from . import _qwen_tools as tools

PAGE = 800
"""How many pixels a scroll is written to move by."""

CALLS = desktop.and_the_past(
    calls.CallTable(
        {
            # the second names of actions are those that the agent takes too
            **dict.fromkeys(("left_click", "click"), calls.tap("coordinate")),
            **dict.fromkeys(
                ("type", "input_text"),
                calls.Form(
                    Type,
                    calls.typed("text", "text_value").read,
                    lambda action, _: {"text": action.text, "press_enter": False, "delete_existing_text": False},
                ),
            ),
            **dict.fromkeys(("key", "keypress"), desktop.keys("Enter")),
            # the agent moves by a page, whatever the number
            "scroll": calls.wheel("down", "up", "pixels", place=("coordinate",), unit=None, written=PAGE),
            "history_back": calls.BACK,
            **dict.fromkeys(("wait", "sleep"), desktop.waited("time", "duration", default=Wait(duration=3000.0))),
            **dict.fromkeys(("terminate", "stop"), tools.CALLS["terminate"]),
            **dict.fromkeys(("mouse_move", "hover"), calls.hovered("coordinate")),
            **calls.outside("visit_url", "web_search", "pause_and_memorize_fact"),
        }
    )
)


class FaraOptions(ImageLimits):
    """Options of Fara; image limits default to those of the authors' agent."""

    max_images: int = Field(3, ge=1, description="screenshots per request, the current one included")


class Fara(tools.QwenToolsModel):
    """Adapter of Fara. Options: :class:`FaraOptions`."""

    options: FaraOptions
    thinking_form = "{thought}\n"
    table = CALLS
    tool = grounding_tool = "computer_use"
    pixels = 3136, 12_845_056
    action_space = replace(desktop.VERTICAL, buttons=frozenset({"ENTER", "BACK"}))
    family = Family(2025, ("web",), reader="makers")
    source = "github.com/microsoft/fara@3f3f1fd src/fara/_prompts.py, src/fara/fara_agent.py"
    frame_source = "github.com/microsoft/fara@3f3f1fd src/fara/_prompts.py"

    def prepare_input(self, task: StepTaskModel, history: Sequence[HistoryEntry]) -> ModelInput:
        messages = [Message("system", (self._system(task),))]
        first_shown = self.first_shown(history, self.options.max_images)
        for index, step in enumerate((*(entry.task for entry in history), task)):
            words = self.prompt("fara-user-next") if index else main_instruction(task)
            if index >= first_shown:
                messages.append(Message("user", (self.image(step), words)))
            elif not index:
                messages.append(Message("user", (words,)))
            if index < len(history):
                messages.append(Message("assistant", (self.past_response(history[index]),)))
        return ModelInput(tuple(messages))

    def _system(self, task: StepTaskModel) -> str:
        return self.prompt("fara-system", **self.screen(task))

    def parse_response(self, task: StepTaskModel, text: str) -> ParsedResponse:
        """Read a response: what is before the call is the thought."""
        reply = tools.split_reply(text)
        action = self._action(task, reply.call)
        thought = reply.thought or text.partition("<tool_call>")[0].strip() if "<tool_call>" in text else reply.thought
        return ParsedResponse(action, thought or None, batch=self._batch(task, reply.call, action))

    def _batch(self, task: StepTaskModel, call: Any, action: Action) -> tuple[Action, ...]:
        """All that a ``type`` does."""
        arguments = call.get("arguments") if isinstance(call, dict) else None
        if not isinstance(action, Type) or not isinstance(arguments, dict):
            return ()
        batch: list[Action] = [action]
        if arguments.get("delete_existing_text", False) is True:
            batch.insert(0, Unsupported(name="key", arguments={"keys": ["Control", "a"]}, device=Hotkey(keys=("ctrl", "a"))))
        if arguments.get("coordinate") is not None:
            values = calls.Arguments("type", arguments, self.frame(task), task.screenshot_size)
            batch.insert(0, Click(point=values.point("coordinate")))
        if arguments.get("press_enter", True) is not False:
            batch.append(calls.ENTER)
        return tuple(batch) if len(batch) > 1 else ()

    def write(self, task: StepTaskModel, action: Action, thought: str | None, conclusion: str | None) -> str:
        words = thought or conclusion
        return (self._thinking(words) if words else "") + tools.call_text(self._call(task, action))

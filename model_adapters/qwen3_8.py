"""Qwen3.7 and Qwen3.8: Qwen3.5's architecture and chat template; an ``Action:`` sentence and a call in tags on desktops.

Source: OSWorld's agent for Qwen3.7 and later (xlang-ai/OSWorld ``mm_agents/qwen/prompts.py``), read in a third party's port
that calls itself verbatim: prompts, the conversation (up to 20 screenshots, of which the oldest ten are dropped at once) and
999ths. The prompt calls the screen 1000x1000; option ``scale`` chooses that, and ``guieval dev audit`` shows which one fits.

No prompt for phones is published: option ``prompt: mobile`` is Qwen3-VL's, as in Qwen3.5's adapter, and so is the grounding
query. The chat template opens the thought, so a response holds its end alone; words without a call after that end are the end
of the task, impossible where they say "infeasible". Without an end they may be a thought that was cut off, and are no action,
so a server should have no reasoning parser. ``call_user`` ends the task too; ``screenshot`` waits. A step instruction takes the
goal's place. The day in the prompt is an option with a fixed default.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import Field

from guieval.actions import Action, Wait
from guieval.errors import ParseError
from guieval.frames import PER_1000, Frame
from guieval.history import HistoryEntry
from guieval.models import SCALES, DisputedScale, Family, Message, ModelInput, ParsedResponse, Surface, main_instruction
from guieval.models.parsing import call_tables as calls
from guieval.models.parsing import first_round, split_reasoning
from guieval.steps import StepTaskModel

from . import _desktop_calls as desktop
from . import _qwen_tools as tools
from .qwen3_5 import CALLS as COMPUTER
from .qwen3_5 import Qwen35, Qwen35Options

COLLAPSED = "This screenshot has been collapsed."
HELD = ("key_down", "key_up", "left_mouse_down", "left_mouse_up")
DESKTOP = {**COMPUTER, "call_user": calls.FINISH, "screenshot": Wait(), **calls.outside(*HELD)}
CALLS = calls.CallTable({**DESKTOP, "left_click": calls.tap("coordinate"), "key": desktop.keys("enter")})
SURFACES = {**Qwen35.surfaces, "computer": Surface(CALLS, desktop.SPACE)}


class Qwen38Options(Qwen35Options, DisputedScale):
    """Options of Qwen3.7 and Qwen3.8; image limits default to OSWorld's."""

    prompt: Literal["mobile", "computer"] = Field(
        "computer", description="what the model operates: Qwen3-VL's prompt, or its own"
    )
    scale: Literal[999, 1000] = Field(999, description="extent of the screen on desktops, 999 or 1000")
    max_images: int = Field(20, ge=1, description="screenshots per request, the current one included")
    max_history: int = Field(100, ge=1, description="past steps as turns; older ones are named in the first request")
    date: str = Field("Saturday, August 01, 2026", description="today's date in the prompt's words")
    reasoning_effort: Literal["low", "medium", "xhigh"] | None = Field(None, description="how long it thinks; null: not sent")
    hosted: bool = Field(False, description="whether the makers' service answers, which takes the switch beside the template's")


class Qwen38(Qwen35):
    """Adapter of Qwen3.7 and Qwen3.8. Options: :class:`Qwen38Options`."""

    options: Qwen38Options
    pixels = 3136, 13_107_200
    keeps_thoughts = True  # the chat template keeps those after the last request that is no answer of a tool
    surfaces = SURFACES
    computer_tool = "computer_use"
    family = Family(2026, ("phone", "desktop", "grounding"))
    source = "github.com/xlang-ai/OSWorld mm_agents/qwen/prompts.py, in a port that calls itself verbatim"
    frame_source = f"{source} (the prompt: 1000; the code: 999)"

    def frame(self, task: StepTaskModel) -> Frame:
        return super().frame(task) if self._mobile else PER_1000 if task.setting == "grounding" else SCALES[self.options.scale]

    def fields(self, task: StepTaskModel) -> Mapping[str, Any]:
        effort = self.options.reasoning_effort
        template = {"enable_thinking": self.thinks(task), **({"reasoning_effort": effort} if effort else {})}
        return template if self.options.hosted else {"chat_template_kwargs": template}

    def prepare_input(self, task: StepTaskModel, history: Sequence[HistoryEntry]) -> ModelInput:
        if self._mobile or task.setting == "grounding":
            return super().prepare_input(task, history)
        return ModelInput(tuple(self._messages(task, history)))

    def _messages(self, task: StepTaskModel, history: Sequence[HistoryEntry]) -> list[Message]:
        messages = [Message("system", (self.prompt("qwen3_8-computer-system", current_date=self.options.date),))]
        first, shown = max(0, len(history) - self.options.max_history), self.first_shown(history, self.options.max_images)
        older = "\n".join(f"Step {number}: {self.sentence(entry)}" for number, entry in enumerate(history[:first], 1))
        query = self.prompt("qwen3_8-computer-user", instruction=main_instruction(task), history=older or "None")
        for index, step in enumerate((*(entry.task for entry in history), task)[first:], first):
            image = self.image(step) if index >= shown else COLLAPSED
            parts = ("<tool_response>\n", image, "\n</tool_response>") if index > first else (image, query)
            messages.append(Message("user", parts))
            if index < len(history):
                messages.append(Message("assistant", (self.past_response(history[index]),)))
        return messages

    def parse_response(self, task: StepTaskModel, text: str) -> ParsedResponse:
        try:
            return super().parse_response(task, text)
        except ParseError:
            thought, rest = split_reasoning(first_round(text), "<tool_call>")
            words = rest.strip()
            if self._mobile or task.setting == "grounding" or not words or "</think>" not in text or "<" in words:
                raise
            return ParsedResponse(calls.IMPOSSIBLE if "infeasible" in words.lower() else calls.FINISH, thought or None, words)

    def write(self, task: StepTaskModel, action: Action, thought: str | None, conclusion: str | None) -> str:
        if self._mobile or task.setting == "grounding":
            return super().write(task, action, thought, conclusion)
        before = self._thinking(thought) if thought and self.thinking is not False else ""
        return before + (f"Action: {conclusion}\n" if conclusion else "") + tools.call_xml(self._call(task, action))

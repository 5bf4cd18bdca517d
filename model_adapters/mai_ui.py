"""MAI-UI (Qwen3-VL based): a thought and a ``mobile_use`` call in tags, in 999ths of the screen; grounding in thousandths.

Source: Tongyi-MAI/MAI-UI@4dd07b9, ``src/prompt.py`` (prompts), ``src/mai_naivigation_agent.py`` (the conversation: the
instruction, then each past response with the screenshots of the last two, and SCALE_FACTOR = 999),
``src/mai_grounding_agent.py`` and ``evaluation/grounding/eval_server.py`` (grounding prompt; the first divides by 999, the
second by 1000; of 419 recorded responses no verdict depends on it). Both scales are options, and ``guieval dev audit`` shows
which one fits.

Not published: a step instruction takes the goal's place; the direction of a swipe is taken for the finger's (MobileWorld, by
the same authors, distinguishes it from a scroll). The prompt names the apps of AndroidWorld; it is sent to every benchmark.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from guieval.actions import Action, ActionSpace, Button, Click, Press, StopStatus, Wait
from guieval.frames import Frame
from guieval.history import HistoryEntry
from guieval.models import SCALES, DisputedScale, Family, ImageLimits, Message, ModelInput, ParsedResponse, chat
from guieval.models.parsing import ScrollWords, json_value, tagged
from guieval.models.parsing import call_tables as calls
from guieval.models.prompts import main_instruction
from guieval.steps import StepTaskModel

from . import _qwen_tools as tools

_BUTTONS: dict[str, Button] = {**calls.BUTTON_NAMES, "recent": "RECENT"}
"""The last one is in no prompt; the past may hold it."""
_STATUSES: dict[str, StopStatus] = {"success": "finish", "fail": "impossible", "failure": "impossible"}


def _button(call: calls.Arguments) -> Action:
    name = call.text("button").strip().lower()
    return call.unsupported() if name == "menu" else Press(button=call.one_of(_BUTTONS, "button"))


CALLS = calls.CallTable(
    {
        "click": calls.tap("coordinate"),
        "long_press": calls.hold("coordinate"),
        "type": calls.typed("text"),
        "swipe": calls.scrolled("direction", "coordinate"),
        "open": calls.opened("text"),
        "drag": calls.dragged(("start_coordinate",), ("end_coordinate",)),
        "system_button": calls.Form(Press, _button, calls.pressed("button", _BUTTONS).write),
        "wait": Wait(),
        "terminate": calls.stopped("status", _STATUSES),
        "answer": calls.answered("text"),
        "double_click": calls.double_clicked("coordinate"),
        "ask_user": calls.asked("text"),
        **calls.outside("mcp_tool"),
    }
)


class MAIUIOptions(ImageLimits, DisputedScale):
    """Options of MAI-UI; image limits default to those of the authors' grounding server."""

    max_images: int = Field(3, ge=1, description="screenshots per request, the current one included")
    scale: Literal[999, 1000] = Field(999, description="extent of the screen in the model's calls, 999 or 1000")
    grounding_scale: Literal[1000, 999] = Field(1000, description="extent of the screen in answers to grounding queries")
    scroll_words: ScrollWords = Field("finger", description="what the direction of a swipe names")


class MAIUI(tools.QwenToolsModel):
    """Adapter of MAI-UI. Options: :class:`MAIUIOptions`."""

    options: MAIUIOptions
    thinking_form = "<thinking>\n{thought}\n</thinking>\n"
    table = CALLS
    patch = 32
    pixels = 16 * 16 * 4, 6_553_600
    action_space = ActionSpace()
    thinking_switch = True
    family = Family(2025, ("phone", "grounding"), reader="makers", recorded=430)
    source = "github.com/Tongyi-MAI/MAI-UI@4dd07b9 src/prompt.py, src/mai_naivigation_agent.py"
    frame_source = (
        "github.com/Tongyi-MAI/MAI-UI@4dd07b9 src/mai_naivigation_agent.py (999), evaluation/grounding/eval_server.py (1000)"
    )

    def frame(self, task: StepTaskModel) -> Frame:
        return SCALES[self.options.grounding_scale] if task.setting == "grounding" else super().frame(task)

    def prepare_input(self, task: StepTaskModel, history: Sequence[HistoryEntry]) -> ModelInput:
        if task.setting == "grounding":
            return chat(f"{task.instruction}\n", self.image(task), system=self.prompt("mai_ui-grounding-system"))
        name = "mai_ui-mobile-system" if self.thinking is not False else "mai_ui-mobile-no-thinking-system"
        messages = [Message("system", (self.prompt(name),)), Message("user", (main_instruction(task),))]
        return ModelInput((*messages, *self.conversation(task, history, self.options.max_images)))

    def parse_response(self, task: StepTaskModel, text: str) -> ParsedResponse:
        answer = tagged(text, "answer") if task.setting == "grounding" else None
        if answer is not None:
            place = json_value(answer)
            place = place.get("coordinate", place) if isinstance(place, dict) else place
            return ParsedResponse(self.read_click(task, place), tagged(text, "grounding_think"))
        reply = tools.split_reply(_THOUGHT.sub(r"<think>\1</think>", text, count=1))
        return ParsedResponse(self._action(task, reply.call), reply.thought)

    def write(self, task: StepTaskModel, action: Action, thought: str | None, conclusion: str | None) -> str:
        if task.setting == "grounding" and isinstance(action, Click):
            x, y = self.write_place(task, action.point)
            before = f"<grounding_think>\n{thought}\n</grounding_think>\n" if thought else ""
            return f'{before}<answer>\n{{"coordinate":[{x:g},{y:g}]}}\n</answer>'
        return (self._thinking(thought or "") if self.thinking is not False else "") + self._called(task, action)

    def why_silent(self, task: StepTaskModel) -> str | None:
        return "the grounding prompt has a form of its own" if task.setting == "grounding" else super().why_silent(task)

    def past_response(self, entry: HistoryEntry) -> str:
        """A past response as the authors' agent writes it again: from its thought and its call."""
        return self._thinking(entry.thought or "") + self._called(entry.task, entry.action)

    def _called(self, task: StepTaskModel, action: Action) -> str:
        return f"<tool_call>\n{json.dumps(self._call(task, action), separators=(',', ':'))}\n</tool_call>"


_THOUGHT = re.compile(r"\A\s*+(?:<thinking>)?(.*?)</think(?:ing)?>", re.DOTALL)

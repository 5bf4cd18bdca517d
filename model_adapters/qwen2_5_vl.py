"""Qwen2.5-VL: ``mobile_use`` calls in pixels of the resized screenshot, the past as JSON calls in the user turn.

Sources: QwenLM/Qwen2.5-VL ``cookbooks/mobile_agent.ipynb`` (prompt, history, frame); InfiXAI/InfiGUI-R1
``eval/android_control`` (the line for a step instruction, adapted from the authors' own evaluation);
likaixin2000/ScreenSpot-Pro-GUI-Grounding ``models/qwen2_5vl.py`` (grounding: a prefilled ``left_click``); the GUIEvalKit
paper, appendix E (the ``<thinking>`` block of a given thought, printed there for GUI-Owl, which is this family tuned).
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from guieval.actions import Action, ActionSpace, Click
from guieval.errors import UsageError
from guieval.history import HistoryEntry
from guieval.models import Message, ModelInput, ParsedResponse, fill
from guieval.parsing import decoded
from guieval.steps import StepTaskModel

from . import _qwen_tools as tools
from ._family import QWEN_PIXELS, FamilyModel
from ._prompting import CONTINUE, begun, given_thought, step_instruction, template


class Qwen25VL(FamilyModel):
    """Adapter of Qwen2.5-VL. Options: ``min_pixels`` and ``max_pixels``, which must equal the server's (defaults: its own)."""

    title = "Qwen2.5-VL"
    pixels = QWEN_PIXELS
    action_space = ActionSpace()
    fixes_thought = True
    source = "github.com/QwenLM/Qwen2.5-VL cookbooks/mobile_agent.ipynb"
    frame_source = "github.com/QwenLM/Qwen2.5-VL cookbooks/mobile_agent.ipynb; QwenLM/Qwen3-VL issue #676"

    def prepare_input(self, task: StepTaskModel, history: Sequence[HistoryEntry]) -> ModelInput:
        image = self._image(task)
        width, height = (f"{side:.0f}" for side in self.frame(task).extent(task.screenshot_size))
        if task.setting == "grounding":
            turns = [
                (role, fill(text, width=width, height=height) if role == "system" else text)
                for role, text in tools.chat_turns(template("qwen2_5_vl-computer-grounding"))
            ]
            messages = tuple(
                tools.turn(role, fill(text, instruction=task.instruction) if role == "user" else text, image)
                for role, text in turns
            )
            return ModelInput(messages, prefill=True, extra=CONTINUE)
        system = fill(template("qwen2_5_vl-mobile-system"), width=width, height=height)
        past = [tools.call_json(tools.past_call(entry, self.frame(entry.task))) for entry in history]
        return ModelInput(
            (Message("system", (system,)), Message("user", (_query(task, tools.progress(past)), image))),
        )

    def prepare_fixed_thought(self, task: StepTaskModel, history: Sequence[HistoryEntry], thought: str) -> ModelInput:
        if task.setting == "grounding":
            raise UsageError("Qwen2.5-VL's grounding prompt begins the answer with a call: no thought can stand before it")
        return begun(self.prepare_input(task, history), _thinking(given_thought(thought)))

    def parse_response(self, task: StepTaskModel, text: str) -> ParsedResponse:
        frame, size = self.frame(task), task.screenshot_size
        if task.setting == "grounding":
            continued = _CONTINUED.match(text)
            if continued is not None:
                return ParsedResponse(Click(point=decoded(continued[1], frame, size)))
        reply = tools.split_reply(text)
        action = tools.action_of(reply.call, frame, size, grounding=task.setting == "grounding")
        return ParsedResponse(action, reply.thought, reply.conclusion)

    def _written(self, task: StepTaskModel, action: Action, thought: str | None, conclusion: str | None) -> str:
        call = tools.call_of(action, self.frame(task), task.screenshot_size)
        if task.setting == "grounding" and isinstance(action, Click):
            # the grounding prompt ends with an open bracket, which the model closes
            return json.dumps(call["arguments"]["coordinate"])[1:] + "}}\n</tool_call>"
        before = _thinking(thought) if thought else ""
        after = f"\n<conclusion>\n{conclusion}\n</conclusion>" if conclusion else ""
        return before + tools.call_text(call) + after


_CONTINUED = re.compile(r"\s*(-?\d+(?:\.\d+)?(?:\s*,\s*-?\d+(?:\.\d+)?){1,3})\s*\]")


def _thinking(thought: str) -> str:
    return f"<thinking>\n{thought}\n</thinking>\n"


def _query(task: StepTaskModel, past: str) -> str:
    if task.setting != "low":
        return fill(template("qwen2_5_vl-mobile-user"), instruction=task.instruction, history=past)
    return fill(
        template("infigui_r1-androidcontrol-user-low"),
        instruction=task.instruction,
        step_instruction=step_instruction(task),
        history=past,
    )

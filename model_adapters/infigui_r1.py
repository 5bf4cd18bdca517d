"""InfiGUI-R1 (Qwen2.5-VL-3B based): the ``mobile_use`` calls of Qwen2.5-VL after a thought that names the step's sub-goal.

Sources: InfiXAI/InfiGUI-R1 ``eval/android_control/android_control.py`` (prompts with and without a step instruction, the past
as the calls' arguments alone, image limit, the prompt without thinking). Grounding is published on the model card only; the
prompt is that of two public evaluators: one also sends its lower image limit, the other has the form without thinking.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

from guieval.actions import BUTTONS, Action, ActionSpace, Click
from guieval.errors import ParseError
from guieval.history import HistoryEntry
from guieval.models import HELPFUL, PATCH, Family, ImageLimits, ModelInput, ParsedResponse, chat
from guieval.models.parsing import first_round, json_value, split_reasoning, tagged
from guieval.steps import StepTaskModel

from . import _qwen_tools as tools

NEVER = "\0"  # no answer begins with it: if the reasoning is closed, its end tag alone counts


class InfiGUIR1(tools.QwenToolsModel):
    """Adapter of InfiGUI-R1. Options: ``min_pixels`` and ``max_pixels``, the latter for navigation and grounding alike."""

    options: ImageLimits
    pixels = 4 * PATCH**2, 6400 * PATCH**2
    grounding_pixels = 4 * PATCH**2, 5600 * PATCH**2
    action_space = ActionSpace(buttons=frozenset(BUTTONS))
    thinking_switch = True
    family = Family(2025, ("phone", "grounding"), reader="makers")
    source = frame_source = "github.com/InfiXAI/InfiGUI-R1 eval/android_control/android_control.py"

    def prepare_input(self, task: StepTaskModel, history: Sequence[HistoryEntry]) -> ModelInput:
        image = self.image(task)
        screen = self.screen(task)
        if task.setting == "grounding":
            system = self.prompt("infigui_r1-grounding-system") if self.thinking is not False else HELPFUL
            question = self.prompt("infigui_r1-grounding-user", instruction=task.instruction, **screen)
            return chat(image, question, system=system)
        system = self.prompt("infigui_r1-androidcontrol-system", **screen)
        if self.thinking is False:
            # the three lines that ask for a thought end before the tools
            system = HELPFUL + "\n\n" + system[system.index("# Tools") :]
        past = tools.progress([tools.call_json(self._past_call(entry)["arguments"]) for entry in history])
        question = self._question(task, "infigui_r1-androidcontrol-user-high", past)
        return chat(question, image, system=system)

    def parse_response(self, task: StepTaskModel, text: str) -> ParsedResponse:
        if task.setting == "grounding":
            return self._grounded(task, text)
        parsed = super().parse_response(task, text)
        sub_goal = tagged(parsed.thought, "step") if parsed.thought else None
        return replace(parsed, conclusion=parsed.conclusion or sub_goal or None)

    def write(self, task: StepTaskModel, action: Action, thought: str | None, conclusion: str | None) -> str:
        goal = f"<step>{conclusion}</step>" if conclusion and "<step>" not in (thought or "") else ""
        words = "\n".join(part for part in (thought, goal) if part)
        before = self._thinking(words) if words and self.thinking is not False else ""
        call = self._call(task, action)
        if task.setting == "grounding" and isinstance(action, Click):
            answer = json.dumps([{"point_2d": call["arguments"]["coordinate"], "label": "target"}])
            return f"{before}```json\n{answer}\n```"
        return before + tools.call_text(call)

    def _grounded(self, task: StepTaskModel, text: str) -> ParsedResponse:
        # the answer is the JSON after the reasoning, in which the model may already weigh a place
        text = first_round(text)
        thought, rest = split_reasoning(text, NEVER if "</think" in text else "```json")
        if "{" not in rest and "[" not in rest:
            raise ParseError(f"the response gives no place: {text.strip()[:80]!r}")
        call = tools.split_reply(rest).call if "<tool_call>" in rest else json_value(rest)
        return ParsedResponse(self._action(task, call), thought or None)

"""UI-Venus-1.5 (Qwen3-VL based): the response format of UI-Venus with prompts of its own, places in thousandths of the screen.

Source: inclusionAI/UI-Venus@c3a1442, ``models/navigation/utils.py`` (prompts for phones and web pages),
``Venus_framework/processor/uivenus_processor.py`` (the Chinese prompt of the agent on devices), ``models/navigation/
ui_venus_navi_agent.py`` (history: the last five steps, numbered from 0), ``models/grounding/ui_venus1_5_gd.py`` (grounding).

The frame is disputed within the repository: the Chinese prompt says 0 to 999, the agent on devices and the grounding code
divide by 1000, and the navigation script, which also served the first version, divides by the sides of the resized screenshot.
The option ``scale`` chooses the other one, and ``guieval dev audit`` shows which one fits. The answer [-1,-1] to a grounding
query refuses it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from guieval.actions import Action, Stop
from guieval.history import HistoryEntry
from guieval.models import HELPFUL, ABCModel, DisputedScale, Family, ModelInput, ParsedResponse, chat, main_instruction
from guieval.steps import StepTaskModel

from .ui_venus_navi import UIVenusNavi, UIVenusOptions

_REFUSED = re.compile(r"[^\[]{0,200}\[\s*-1\s*,\s*-1\s*,?\s*\]")
"""The first place of a response refuses the query, whatever is around it, as in the authors' reader."""


class UIVenus15Options(UIVenusOptions, DisputedScale):
    """The prompt's device, and how many past steps it lists."""

    prompt: Literal["mobile", "web", "cn"] = Field("mobile", description="the prompt: for phones, for web pages, or in Chinese")
    max_history: int = Field(5, ge=0, description="past steps in the prompt")


class UIVenus15(UIVenusNavi):
    """Adapter of UI-Venus-1.5. Options: :class:`UIVenus15Options`."""

    options: UIVenus15Options
    patch = 32
    pixels = 3136, 12_845_056
    family = Family(2026, ("phone", "web", "grounding"), reader="makers")
    source = "github.com/inclusionAI/UI-Venus@c3a1442 models/navigation/utils.py, models/grounding/ui_venus1_5_gd.py"
    frame_source = "github.com/inclusionAI/UI-Venus@c3a1442 Venus_framework/policy/ui_venus_policy.py (1000)"

    disputed_frames = ABCModel.disputed_frames

    def prepare_input(self, task: StepTaskModel, history: Sequence[HistoryEntry]) -> ModelInput:
        image = self.image(task)
        if task.setting == "grounding":
            instruction = task.instruction.removesuffix(".")
            return chat(image, self.prompt("ui_venus_1_5-grounding", instruction=instruction))
        shown = history[max(0, len(history) - self.options.max_history) :]
        past = "\n".join(f"Step {index}: {self._past_step(entry)}" for index, entry in enumerate(shown))
        prompt = self.prompt(f"ui_venus_1_5-{self.options.prompt}", instruction=main_instruction(task), history=past)
        return chat(prompt, image, system=HELPFUL)

    def parse_response(self, task: StepTaskModel, text: str) -> ParsedResponse:
        if task.setting == "grounding" and _REFUSED.match(text):
            return ParsedResponse(Stop(status="impossible"))
        return super().parse_response(task, text)

    def write(self, task: StepTaskModel, action: Action, thought: str | None, conclusion: str | None) -> str:
        if task.setting == "grounding" and action == Stop(status="impossible"):
            return "[-1,-1]"
        return super().write(task, action, thought, conclusion)

"""InfiGUI-G1 (Qwen2.5-VL based): a thought, then a list of candidate points in resized pixels, of which the first counts.

Source: InfiXAI/InfiGUI-G1@22208e4, ``eval/prompts.py`` (prompts with and without thinking, the first point is scored),
``eval/eval.py`` and ``eval/data.py`` (a screenshot is shrunk to 5600 tokens' pixels before it is rounded to the patches).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from guieval.actions import Action
from guieval.frames import ResizedPixels
from guieval.history import HistoryEntry
from guieval.models import HELPFUL, PATCH, Family, ModelInput, ParsedResponse, chat, main_instruction
from guieval.steps import StepTaskModel

from . import _qwen_tools as tools
from ._grounder import CLICKS
from .infigui_r1 import InfiGUIR1


class InfiGUIG1(InfiGUIR1):
    """Adapter of InfiGUI-G1. Options: ``min_pixels`` and ``max_pixels``, for the rounding to patches."""

    pixels = 4 * PATCH**2, 12_845_056
    grounding_pixels = pixels
    action_space = CLICKS
    family = Family(2025, ("grounding",), reader="makers")
    source = "github.com/InfiXAI/InfiGUI-G1@22208e4 eval/prompts.py"
    frame_source = "github.com/InfiXAI/InfiGUI-G1@22208e4 eval/eval.py"

    @property
    def first_resize(self) -> ResizedPixels:
        return ResizedPixels(1, 1, 5600 * PATCH**2)

    def prepare_input(self, task: StepTaskModel, history: Sequence[HistoryEntry]) -> ModelInput:
        system = self.prompt("infigui_g1-system") if self.thinking is not False else HELPFUL
        question = self.prompt("infigui_g1-user", instruction=main_instruction(task), **self.screen(task))
        return chat(self.image(task), question, system=system)

    def parse_response(self, task: StepTaskModel, text: str) -> ParsedResponse:
        return self._grounded(task, text)

    def _action(self, task: StepTaskModel, call: Any) -> Action:
        return tools.action_of(self, task, call, grounding=True)

    def write(self, task: StepTaskModel, action: Action, thought: str | None, conclusion: str | None) -> str:
        before = self._thinking(thought) if thought and self.thinking is not False else ""
        return before + json.dumps([{"point_2d": self._call(task, action)["arguments"]["coordinate"]}])

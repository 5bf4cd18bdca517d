"""GroundNext (Qwen2.5-VL based): a ``computer_use`` call in tags, in pixels of the resized screenshot, whose size is written.

Source: ServiceNow/GroundCUA@81136d4 ``groundcua/__init__.py`` (prompt, layout, image limits) and ``README.md`` (the form of a
response). Line feeds inside the prompt's JSON are the authors'. Whatever a call does, its ``coordinate`` is the answer. The
repository's benchmark code asks with another text (``eval/prompts.py``), which is not here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from guieval.actions import Action
from guieval.history import HistoryEntry
from guieval.models import Family, ImageLimits, ModelInput, chat, main_instruction
from guieval.steps import StepTaskModel

from ._grounder import CallingGrounder
from .se_gui import SEGUI


class GroundNext(SEGUI):
    """Adapter of GroundNext. Options: ``min_pixels`` and ``max_pixels``."""

    options: ImageLimits
    pixels = 78_400, 6_000_000
    family = Family(2025, ("grounding",), reader="makers")
    source = frame_source = "github.com/ServiceNow/GroundCUA@81136d4 groundcua/__init__.py"

    def prepare_input(self, task: StepTaskModel, history: Sequence[HistoryEntry]) -> ModelInput:
        system = self.prompt("groundnext-grounding-system", **self.screen(task))
        return chat(self.image(task), main_instruction(task), system=system)

    def _action(self, task: StepTaskModel, call: Any) -> Action:
        arguments = call.get("arguments") if isinstance(call, dict) else None
        if isinstance(arguments, dict) and "coordinate" in arguments:
            return self.read_click(task, arguments["coordinate"])
        return CallingGrounder._action(self, task, call)

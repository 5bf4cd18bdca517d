"""GTA1: the point or the ``pyautogui`` click for a description, in pixels of the resized screenshot.

Source: Yan98/GTA1@81f0c4c, ``src/grpo_grounding.py`` (the prompt of the first checkpoint, which was trained from
UI-TARS-1.5) and ``README.md`` (layout, resize rule, how a point is read). The later checkpoints are trained from OpenCUA. The
repository's script does not tell them apart; public servers of these send OpenCUA's grounding prompt and read its code, as is
done here (option ``form``). Their model cards could not be read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from guieval.actions import Action
from guieval.history import HistoryEntry
from guieval.models import Family, ImageLimits, ModelInput, ParsedResponse, chat, main_instruction
from guieval.steps import StepTaskModel

from . import _pyautogui as code
from ._grounder import Grounder


class GTA1Options(ImageLimits):
    """Options of GTA1; image limits default to those of the README."""

    form: Literal["point", "pyautogui"] = Field(
        "point", description="point: (x,y), of the first checkpoint (2507); pyautogui: code, of those trained from OpenCUA"
    )


class GTA1(Grounder):
    """Adapter of GTA1. Options: :class:`GTA1Options`."""

    options: GTA1Options
    table = code.CALLS
    system = "gta1-system"
    pixels = 3136, 4096 * 2160
    family = Family(2025, ("grounding",), reader="makers")
    source = "github.com/Yan98/GTA1@81f0c4c src/grpo_grounding.py"
    frame_source = "github.com/Yan98/GTA1@81f0c4c README.md"

    def prepare_input(self, task: StepTaskModel, history: Sequence[HistoryEntry]) -> ModelInput:
        if self.options.form == "point":
            return super().prepare_input(task, history)
        return chat(self.image(task), main_instruction(task), system=self.prompt("opencua-grounding-system"))

    def parse_response(self, task: StepTaskModel, text: str) -> ParsedResponse:
        if self.options.form == "point":
            return super().parse_response(task, text)
        return ParsedResponse(code.action_of(self, task, code.calls_in(text)))

    def write(self, task: StepTaskModel, action: Action, thought: str | None, conclusion: str | None) -> str:
        if self.options.form == "point":
            return super().write(task, action, thought, conclusion)
        return f"```python\n{code.written(self, task, action)}\n```"

    def _answer(self, x: str, y: str) -> str:
        return f"({x},{y})"

"""SE-GUI (Qwen2.5-VL based): a ``computer_use`` click in tags, in pixels of the resized screenshot.

Source: YXB-NKU/SE-GUI@0e26237, ``src/eval/test_grounding_r1_nothink.py`` (prompt, layout, limits for ScreenSpot-Pro; the
scripts for ScreenSpot and ScreenSpot-v2 state 2,007,040 and 3,512,320 pixels at most). The README's example sends no system
prompt and begins the answer instead; the recorded responses are the script's.
"""

from __future__ import annotations

from collections.abc import Sequence

from guieval.actions import Action
from guieval.history import HistoryEntry
from guieval.models import ABCModel, Family, ImageLimits, ModelInput, chat, main_instruction
from guieval.steps import StepTaskModel

from . import _qwen_tools as tools
from ._grounder import CallingGrounder


class SEGUI(CallingGrounder):
    """Adapter of SE-GUI. Options: ``min_pixels`` and ``max_pixels``."""

    options: ImageLimits
    pixels = 3136, 7_049_280
    opening = ABCModel.opening  # it is asked for no thought
    family = Family(2025, ("grounding",), reader="makers", recorded=46)
    source = frame_source = "github.com/YXB-NKU/SE-GUI@0e26237 src/eval/test_grounding_r1_nothink.py"

    def prepare_input(self, task: StepTaskModel, history: Sequence[HistoryEntry]) -> ModelInput:
        system = self.prompt("se_gui-system", **self.screen(task))
        return chat(self.image(task), main_instruction(task), system=system)

    def write(self, task: StepTaskModel, action: Action, thought: str | None, conclusion: str | None) -> str:
        place = self._call(task, action)["arguments"]["coordinate"]
        return tools.call_text({"name": "computer_use", "arguments": {"action": "left_click", "coordinate": place}})

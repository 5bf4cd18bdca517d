"""UI-Ins (Qwen2.5-VL based): a thought about what the instruction means, then a ``grounding`` call, in resized pixels.

Source: alibaba/UI-Ins@1953bbc, ``evaluation/eval/model.py`` (prompt, layout, the begun answer), ``evaluation/README.md``
(limit; the published command leaves the answer to the model). Thinking off is the script's guide text: the call begun, up to
its place.
"""

from __future__ import annotations

from collections.abc import Sequence

from guieval.actions import Action
from guieval.history import HistoryEntry
from guieval.models import HELPFUL, Family, ImageLimits, Message, ModelInput, ParsedResponse, begun, main_instruction
from guieval.steps import StepTaskModel

from . import _qwen_tools as tools
from ._grounder import CallingGrounder

GUIDE = '<tool_call>\n{"name": "grounding", "arguments": {"action": "click", "coordinate": ['


class UIIns(CallingGrounder):
    """Adapter of UI-Ins. Options: ``min_pixels`` and ``max_pixels``."""

    options: ImageLimits
    pixels = 3136, 12_845_056
    thinking_switch = True
    family = Family(2025, ("grounding",), reader="makers")
    source = frame_source = "github.com/alibaba/UI-Ins@1953bbc evaluation/eval/model.py"

    def prepare_input(self, task: StepTaskModel, history: Sequence[HistoryEntry]) -> ModelInput:
        system = Message("system", (HELPFUL, self.prompt("ui_ins-system")))
        prepared = ModelInput((system, Message("user", (self.image(task), main_instruction(task)))))
        return begun(prepared, GUIDE) if self.thinking is False else prepared

    def parse_response(self, task: StepTaskModel, text: str) -> ParsedResponse:
        continued = tools.CONTINUED.match(text) if self.thinking is False else None
        if continued is not None:
            return ParsedResponse(self.read_click(task, continued[1]))
        return super().parse_response(task, text)

    def write(self, task: StepTaskModel, action: Action, thought: str | None, conclusion: str | None) -> str:
        place = self._call(task, action)["arguments"]["coordinate"]
        call = f"{GUIDE}{','.join(map(str, place))}]}}}}\n</tool_call>"  # their reader takes no blank in a place
        if self.thinking is False:
            return call.removeprefix(GUIDE)
        return (self._thinking(thought) if thought else "") + call

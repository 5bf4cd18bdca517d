"""GUI-Owl-1.5 (Qwen3-VL based): an ``Action:`` sentence and a call in tags, in thousandths of the screen.

Sources: X-PLUG/MobileAgent@11cea57, folder Mobile-Agent-v3.5: ``android_world_v3.5/android_world/agents/gui_owl.py`` (the
request and the prompt for phones, with which AndroidWorld is evaluated; the last five screenshots) and
``cookbook/end2end_usage_computer.ipynb`` (prompt for computers). ``mobile_use/utils.py`` also names the day in the request and
offers ``interact``, and ``cookbook/end2end_usage_mobile.ipynb`` has a shorter prompt; neither is used here. All divide by 1000.

Not published: a step instruction takes the goal's place; a grounding query is the request under the prompt for computers. The
form of a Thinking checkpoint's reasoning is Qwen3-VL's.
"""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field

from guieval.history import HistoryEntry
from guieval.models import Family, ImageLimits, ModelConfig, ModelInput, main_instruction
from guieval.steps import StepTaskModel

from ._mobile_agent import MobileAgentModel


class GUIOwl15Options(ImageLimits):
    """Options of GUI-Owl-1.5; image limits default to those of ``mobile_use/utils.py``."""

    max_images: int = Field(5, ge=1, description="screenshots per request, the current one included")
    reasons: bool = Field(False, description="a Thinking checkpoint, whose responses begin with a reasoning block")


class GUIOwl15(MobileAgentModel):
    """Adapter of GUI-Owl-1.5. Options: :class:`GUIOwl15Options`."""

    options: GUIOwl15Options
    thought_form = "<think>\n{thought}\n</think>\n\n"
    patch = 32
    pixels = 4 * 32**2, 4 * 1024 * 32**2
    step_label = "Step"
    answer_ends = True
    family = Family(2026, ("phone", "desktop"), reader="makers")
    source = frame_source = (
        "github.com/X-PLUG/MobileAgent@11cea57 Mobile-Agent-v3.5/android_world_v3.5/android_world/agents/gui_owl.py"
    )

    def __init__(self, config: ModelConfig, *, thinking: bool | None = None) -> None:
        super().__init__(config, thinking=thinking)
        self.fixes_thought = self.options.reasons

    def prepare_input(self, task: StepTaskModel, history: Sequence[HistoryEntry]) -> ModelInput:
        most = self.options.max_images
        older = self._older(history, most) or "No previous action."
        request = self.prompt("gui_owl_1_5-user", instruction=main_instruction(task), history=older)
        system = self.prompt(f"gui_owl_1_5-{'computer' if task.setting == 'grounding' else 'mobile'}-system")
        return ModelInput(tuple(self._messages(task, history, request, system, most)))

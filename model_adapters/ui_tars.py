"""UI-TARS 1.0 (Qwen2-VL based): thought and call, points in thousandths of the screen, up to five screenshots.

Sources: bytedance/UI-TARS ``README_v1.md`` and issues #79, #83, #85, #164. Which published prompt is used with a checkpoint
is an option of the checkpoint, since a prompt belongs to a task and not to the model; the default is the one that its
authors confirmed (#85), which is also the only one with ``open_app``, ``wait`` and a scroll direction.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from guieval.actions import Action, ActionSpace, Click
from guieval.frames import PER_1000
from guieval.history import HistoryEntry
from guieval.models import HELPFUL, Family, ModelInput, begun, chat, fill, step_instruction
from guieval.steps import StepTaskModel

from . import _ui_tars as tars


class UITars10Options(tars.UITarsOptions):
    """Options of UI-TARS 1.0. Its coordinates are relative, so by default every screenshot is sent as it is."""

    prompt: Literal["androidcontrol", "androidworld", "guiodyssey", "mobile", "computer"] = Field(
        "androidcontrol", description="which published navigation prompt is used"
    )


class UITars(tars.UITarsModel):
    """Adapter of UI-TARS 1.0. Options: :class:`UITars10Options`."""

    prompts = "ui_tars"
    options: UITars10Options
    fixed_frame = PER_1000
    action_space = ActionSpace(buttons=frozenset({"BACK", "HOME", "RECENT"}))
    """The union over the published prompts; PRESS(ENTER) has no call in any of them."""
    thinking_switch = True
    family = Family(2025, ("phone", "desktop", "grounding"), reader="makers", recorded=89)
    source = "github.com/bytedance/UI-TARS README_v1.md and issue #85"
    frame_source = "github.com/bytedance/UI-TARS README_v1.md (Coordinate Mapping)"

    def prepare_input(self, task: StepTaskModel, history: Sequence[HistoryEntry]) -> ModelInput:
        if task.setting == "grounding":
            # README_v1's grounding sample: no past, the screenshot first, then the question, in one turn
            question = fill(self._prompt("grounding"), instruction=task.instruction)
            return chat(self.image(task), question, system=HELPFUL)
        prompt = self._prompt(self.options.prompt, thought=self._writes_thoughts(task))
        prepared = self._after(fill(prompt, instruction=task.instruction), task, history)
        return begun(prepared, self.opening(task, step_instruction(task))) if task.setting == "low" else prepared

    def why_silent(self, task: StepTaskModel) -> str | None:
        if task.setting == "low":
            return "the step instruction is its thought"
        silent = task.setting == "grounding" or not self._writes_thoughts(task)
        return "the grounding prompt, or the prompt without thinking, asks for no thought" if silent else None

    def write(self, task: StepTaskModel, action: Action, thought: str | None, conclusion: str | None) -> str:
        if task.setting == "grounding" and isinstance(action, Click):
            return self.write_place(task, action.point)
        if task.setting == "low":
            return f" {self._call(task, action)}"  # the prefilled turn ends with "Action:"
        return self._reply(task, action, thought if self._writes_thoughts(task) else None)

    def _writes_thoughts(self, task: StepTaskModel) -> bool:
        # with a step instruction the thought is given, not written, so the switch has nothing to turn off
        asks = "Thought: ..." in self._prompt(self.options.prompt)
        return asks and (self.thinking is not False or task.setting == "low")

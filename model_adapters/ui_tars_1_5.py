"""UI-TARS-1.5-7B (Qwen2.5-VL based): as UI-TARS 1.0, but in pixels of the resized screenshot and with its own prompts.

Sources: bytedance/UI-TARS ``prompts.py`` at 34722407 (the ``start_box`` form the open checkpoint was published with),
``README_coordinates.md`` (frame), issue #129 (scroll words); the switch for thinking (C.2.3) and the form of a
given thought (appendix E) are the GUIEvalKit paper's.
With a step instruction nothing is published for 1.5: it takes the goal's place, as GUIEvalKit does it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from guieval.actions import ACTION_TYPES, Action, ActionSpace
from guieval.history import HistoryEntry
from guieval.models import PATCH, Family, ModelInput, fill, main_instruction
from guieval.steps import StepTaskModel

from . import _ui_tars as tars


class UITars15Options(tars.UITarsOptions):
    """Options of UI-TARS 1.5; limits default to the authors' own."""

    prompt: Literal["mobile", "computer"] = Field("mobile", description="which published navigation prompt is used")
    language: Literal["English", "Chinese"] = Field("English", description="language requested for the thought")


class UITars15(tars.UITarsModel):
    """Adapter of UI-TARS-1.5. Options: :class:`UITars15Options`."""

    prompts = "ui_tars_1_5"
    options: UITars15Options
    pixels = 100 * PATCH**2, 16384 * PATCH**2
    action_space = ActionSpace(
        types=frozenset(ACTION_TYPES) - {"WAIT"}, buttons=frozenset({"BACK", "HOME"}), statuses=frozenset({"finish"})
    )
    """The actions that the mobile prompt lists: no wait, no enter, no way to say that a task is impossible."""
    thinking_switch = True
    grounds_silently = True
    family = Family(2025, ("phone", "desktop", "grounding"), reader="makers", recorded=9)
    source = "github.com/bytedance/UI-TARS prompts.py at 34722407 and README_coordinates.md"
    frame_source = "github.com/bytedance/UI-TARS README_coordinates.md"

    def prepare_input(self, task: StepTaskModel, history: Sequence[HistoryEntry]) -> ModelInput:
        if task.setting == "grounding":
            # laid out as a navigation step without a past; the authors publish the text, not the layout
            return self._after(fill(self._prompt("grounding"), instruction=task.instruction), task, ())
        thought = self._writes_thoughts(task)
        text = self._prompt(self.options.prompt, thought=thought)
        values = {"instruction": main_instruction(task)} | ({"language": self.options.language} if thought else {})
        return self._after(fill(text, **values), task, history)

    def write(self, task: StepTaskModel, action: Action, thought: str | None, conclusion: str | None) -> str:
        return self._reply(task, action, None if self.why_silent(task) else thought)

"""GUI-Owl: Qwen2.5-VL's ``mobile_use`` calls between a thinking block and a conclusion, in pixels of the resized screenshot.

Sources: X-PLUG/MobileAgent ``Mobile-Agent-v3/cookbook/end2end_usage.ipynb`` (prompts, both forms of history, limits),
``android_world_v3/.../agents/gui_owl.py`` (past conclusions without newlines and double quotes; ``tap`` for ``click``,
``open_app`` for ``open``). The past is given as conclusions, or as the whole conversation with the last two screenshots,
which is how its authors evaluate AndroidControl (issue #157); which one is an option of the checkpoint.

For a step instruction nothing is published: it takes the goal's place, as in GUIEvalKit, with the past as conclusions. The
authors' grounding prompt is not published; a grounding query is the instruction of the published ``computer_use`` prompt.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from guieval.actions import BUTTONS, Action, ActionSpace
from guieval.history import HistoryEntry
from guieval.models import PATCH, Family, ImageLimits, Message, ModelInput, chat, fill, main_instruction
from guieval.models.parsing import call_tables as calls
from guieval.steps import StepTaskModel

from . import _qwen_tools as tools

CALLS = calls.CallTable(tools.CALLS, open_app=tools.CALLS["open"], drag=calls.dragged(("coordinate",), ("coordinate2",)))
"""``drag`` is the computer prompt's, if it is the mouse's and no swipe."""


class GUIOwlOptions(ImageLimits):
    """Options of GUI-Owl; limits default to the authors' own, which differ between the mobile and the computer prompt."""

    history: Literal["conclusions", "turns"] = Field(
        "conclusions", description="how the past is given: in the user's turn, or as the conversation (high-level steps only)"
    )
    max_images: int = Field(2, ge=1, description="screenshots per request with history turns, the current one included")


class GUIOwl(tools.QwenToolsModel):
    """Adapter of GUI-Owl. Options: :class:`GUIOwlOptions`."""

    table = CALLS
    grounding_tool = "computer_use"
    pixels = 4 * PATCH**2, 12800 * PATCH**2
    grounding_pixels = 100 * PATCH**2, 12800 * PATCH**2
    options: GUIOwlOptions
    thinking_form = "<thinking>\n{thought}\n\n</thinking>\n"
    action_space = ActionSpace(buttons=frozenset(BUTTONS))
    thinking_switch = True
    family = Family(2025, ("phone", "desktop"), reader="makers")
    source = frame_source = "github.com/X-PLUG/MobileAgent Mobile-Agent-v3/cookbook/end2end_usage.ipynb"

    def prepare_input(self, task: StepTaskModel, history: Sequence[HistoryEntry]) -> ModelInput:
        name = "gui_owl-computer-system" if task.setting == "grounding" else "gui_owl-mobile-system"
        system = self.prompt(name, **self.screen(task))
        if task.setting == "grounding":
            query = fill(
                self._asking("gui_owl-computer-user"),
                instruction=task.instruction,
                history="No history. This is the first step.\n",
            )
            # the text between query and image is in the notebook's printed messages
            return chat(query, "Current screenshot:\n", self.image(task), system=system)
        if self.options.history == "turns" and task.setting == "high" and history:
            first, later = self._query(task, ""), self._asking("gui_owl-mobile-user-next-round")
            turns = [(first,), *[(later,)] * len(history)]
            return ModelInput((Message("system", (system,)), *self.conversation(task, history, self.options.max_images, turns)))
        return chat(self._query(task, self._progress(history)), self.image(task), system=system)

    def write(self, task: StepTaskModel, action: Action, thought: str | None, conclusion: str | None) -> str:
        written = tools.call_text(self._call(task, action))
        if self.thinking is False:
            return written
        before = self._thinking(thought) if thought else ""
        return before + written + (f"\n<conclusion>\n{conclusion}\n</conclusion>" if conclusion else "")

    def opening(self, task: StepTaskModel, thought: str) -> str:
        return f"<thinking>\n{thought}\n</thinking>\n"

    def _query(self, task: StepTaskModel, past: str) -> str:
        return fill(self._asking("gui_owl-mobile-user"), instruction=main_instruction(task), history=past)

    def _asking(self, name: str) -> str:
        """A prompt's text; without thinking, up to where it asks for a thought and a conclusion, as in the notebook."""
        text = self.prompt(name)
        return text if self.thinking is not False else text[: text.index("Before answering, explain")]

"""Qwen3-VL: a thought, an action sentence and a ``mobile_use`` call in thousandths (0 to 999) of the screen.

Source: QwenLM/Qwen3-VL ``cookbooks/mobile_agent.ipynb`` (prompt, history, decoding by 999). Whether a checkpoint thinks is
a property of the checkpoint (Instruct or Thinking), so there is no switch. The published prompt has no ``open``. A thought is
given to an Instruct checkpoint as the published ``Thought:`` line, to a Thinking one as its reasoning block (GUIEvalKit paper,
appendix E), which the server has to be started with ``configs/chat_templates/qwen3_vl-thinking.jinja`` for.

The authors' prompts for a step instruction and for grounding are not published in a readable form. A step instruction takes
the goal's place, as in GUIEvalKit; a grounding query is the query of the mobile prompt.

Two frames are published. The mobile prompt states that the screen is 999x999, and its notebook divides by 999. The grounding
lists ``bbox_2d`` and ``point_2d`` are "relative coordinates ranging from 0 to 1000" (``cookbooks/2d_grounding.ipynb``), or 0 to
999 (Alibaba Cloud's documentation); the authors leave it open (QwenLM/Qwen3-VL issues #1741, #1859). The option ``list_scale``
chooses between the two, and ``guieval dev audit`` shows which one fits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from guieval.actions import ACTION_TYPES, BUTTONS, Action, ActionSpace
from guieval.frames import PER_999, PER_1000, Frame
from guieval.history import HistoryEntry
from guieval.models import Family, ImageLimits, ModelInput, chat, main_instruction
from guieval.steps import StepTaskModel

from . import _qwen_tools as tools


class Qwen3VLOptions(ImageLimits):
    """Options of Qwen3-VL; image limits default to those of qwen-vl-utils."""

    reasons: bool = Field(False, description="a Thinking checkpoint, whose responses begin with a reasoning block")
    list_scale: Literal[1000, 999] = Field(1000, description="extent of the screen in bbox_2d and point_2d lists")


class Qwen3VL(tools.QwenToolsModel):
    """Adapter of Qwen3-VL. Options: :class:`Qwen3VLOptions`."""

    options: Qwen3VLOptions
    patch = 32
    pixels = 4 * 32**2, 16384 * 32**2
    fixed_frame = PER_999
    action_space = ActionSpace(types=frozenset(ACTION_TYPES) - {"OPEN"}, buttons=frozenset(BUTTONS))
    family = Family(2025, ("phone", "grounding"), reader="makers", recorded=1)
    source = "github.com/QwenLM/Qwen3-VL cookbooks/mobile_agent.ipynb"
    frame_source = "github.com/QwenLM/Qwen3-VL cookbooks/mobile_agent.ipynb (calls: 999), 2d_grounding.ipynb (lists: 1000)"

    def place_frame(self, task: StepTaskModel) -> Frame:
        return PER_1000 if self.options.list_scale == 1000 else PER_999

    def prepare_input(self, task: StepTaskModel, history: Sequence[HistoryEntry]) -> ModelInput:
        past = self._progress(history)
        query = self.prompt("qwen3_vl-mobile-user", instruction=main_instruction(task), history=past)
        return chat(query, self.image(task), system=self.prompt("qwen3_vl-mobile-system"))

    def opening(self, task: StepTaskModel, thought: str) -> str:
        return f"<think>\n{thought}\n</think>\n\n" if self.options.reasons else f"Thought: {thought}\n"

    def write(self, task: StepTaskModel, action: Action, thought: str | None, conclusion: str | None) -> str:
        call = tools.call_text(self._call(task, action))
        before = f"Thought: {thought}\n" if thought else ""
        return before + (f'Action: "{conclusion}"\n' if conclusion else "") + call

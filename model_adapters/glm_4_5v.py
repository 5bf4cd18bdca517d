"""GLM-4.5V: memory, reason and an action object with boxes in thousandths (0 to 999); thinks unless thinking is turned off.

Sources: zai-org/GLM-V ``examples/gui-agent/glm-45v/agent.md`` (prompt, its additional notes, history), ``README.md``
(grounding, the ``enable_thinking`` argument of the chat template). A given thought becomes the think block (GUIEvalKit paper,
appendix E); a server keeps it verbatim when it is started with ``configs/chat_templates/glm_4_5v.jinja``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

from pydantic import Field

from guieval.actions import Action
from guieval.history import HistoryEntry
from guieval.models import Family, ModelInput
from guieval.steps import StepTaskModel

from ._glm import GLMModel, GLMOptions

NO_THINKING: dict[str, Any] = {"chat_template_kwargs": {"enable_thinking": False}}


class GLM45Options(GLMOptions):
    """Options of GLM-4.5V."""

    notes: Literal["androidworld", "none"] = Field(
        "androidworld",
        description="additional notes: the published ones for AndroidWorld, which GUIEvalKit always sends, or none",
    )


class GLM45V(GLMModel):
    """Adapter of GLM-4.5V. Options: :class:`GLM45Options`."""

    navigation = "glm_4_5v-mobile"
    options: GLM45Options
    thinking_switch = True
    family = Family(2025, ("phone", "grounding"), reader="makers", recorded=32)
    source = frame_source = "github.com/zai-org/GLM-V examples/gui-agent/glm-45v/agent.md"

    def prepare_input(self, task: StepTaskModel, history: Sequence[HistoryEntry]) -> ModelInput:
        prepared = super().prepare_input(task, history)
        return replace(prepared, extra=NO_THINKING) if self.thinking is False else prepared

    def _placeholders(self) -> dict[str, str]:
        notes = self.prompt("glm_4_5v-mobile-additional-notes") if self.options.notes == "androidworld" else ""
        return {**super()._placeholders(), "additional_notes": notes}

    def why_silent(self, task: StepTaskModel) -> str | None:
        silent = self.thinking is False and task.setting == "grounding"
        return "thinking is turned off, and the grounding prompt asks for no reason" if silent else None

    def opening(self, task: StepTaskModel, thought: str) -> str:
        """The thought as the think block; with thinking turned off as the reason, which is then the only thought."""
        if self.thinking is False:
            return f"<think></think>\nMemory: None\nReason: {thought.strip()}\nAction:"
        return f"<think>{thought.strip()}</think>"

    def write(self, task: StepTaskModel, action: Action, thought: str | None, conclusion: str | None) -> str:
        if self.thinking is False:
            return self._answer(task, action, conclusion or thought)
        before = f"<think>{thought}</think>\n" if thought else ""
        return before + self._answer(task, action, conclusion)

"""GLM-4.1V-Thinking: memory, reason and an action object with boxes in thousandths (0 to 999), inside ``<answer>`` tags.

Sources: zai-org/GLM-V ``examples/gui-agent/glm-41v/agent.md`` (prompt, history), ``README.md`` (grounding, tags). The model
always thinks. A given thought becomes the think block (GUIEvalKit paper, appendix E), for which the server must be started with
``configs/chat_templates/glm_4_1v.jinja``.
"""

from __future__ import annotations

from guieval.actions import Action
from guieval.models import Family
from guieval.steps import StepTaskModel

from ._glm import GLMModel


class GLM41V(GLMModel):
    """Adapter of GLM-4.1V. Options: :class:`_glm.GLMOptions`."""

    navigation = "glm_4_1v-mobile"
    family = Family(2025, ("phone", "grounding"), reader="makers", recorded=32)
    source = frame_source = "github.com/zai-org/GLM-V examples/gui-agent/glm-41v/agent.md"

    def opening(self, task: StepTaskModel, thought: str) -> str:
        return f"<think>{thought.strip()}</think>\n<answer>"

    def write(self, task: StepTaskModel, action: Action, thought: str | None, conclusion: str | None) -> str:
        before = f"<think>{thought}</think>\n" if thought else ""
        return f"{before}<answer>{self._answer(task, action, conclusion)}</answer>"

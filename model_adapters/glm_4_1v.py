"""GLM-4.1V-Thinking: memory, reason and an action object with boxes in thousandths (0 to 999), inside ``<answer>`` tags.

Sources: zai-org/GLM-V ``examples/gui-agent/glm-41v/agent.md`` (prompt, history), ``README.md`` (grounding, tags). It always
thinks, so there is no switch. With a step instruction nothing is published: it takes the goal's place, as GUIEvalKit does it.
A thought is given as the think block (GUIEvalKit paper, appendix E), which the server has to be started with
``configs/chat_templates/glm_4_1v.jinja`` for.
"""

from __future__ import annotations

from collections.abc import Sequence

from guieval.actions import Action
from guieval.frames import Frame
from guieval.history import HistoryEntry
from guieval.models import ModelInput, ParsedResponse, fill
from guieval.steps import StepTaskModel

from . import _glm as glm
from ._family import FamilyModel
from ._prompting import begun, given_thought, main_instruction, template


class GLM41V(FamilyModel):
    """Adapter of GLM-4.1V. Options: :class:`_glm.GLMOptions`."""

    title = "GLM-4.1V"
    options_type = glm.GLMOptions
    _options: glm.GLMOptions
    action_space = glm.SPACE
    fixes_thought = True
    source = "github.com/zai-org/GLM-V examples/gui-agent/glm-41v/agent.md"
    frame_source = "github.com/zai-org/GLM-V examples/gui-agent/glm-41v/agent.md"

    def frame(self, task: StepTaskModel) -> Frame:
        return glm.frame(task)

    def prepare_input(self, task: StepTaskModel, history: Sequence[HistoryEntry]) -> ModelInput:
        if task.setting == "grounding":
            return ModelInput((glm.grounding_turn(task),))
        text = fill(
            template("glm_4_1v-mobile"),
            instruction=main_instruction(task),
            history=glm.past(history),
            supported_apps=self._options.apps,
        )
        return ModelInput((glm.user_turn(task, text),))

    def prepare_fixed_thought(self, task: StepTaskModel, history: Sequence[HistoryEntry], thought: str) -> ModelInput:
        return begun(self.prepare_input(task, history), f"<think>{given_thought(thought).strip()}</think>\n<answer>")

    def parse_response(self, task: StepTaskModel, text: str) -> ParsedResponse:
        return glm.parse_reply(task, text)

    def _written(self, task: StepTaskModel, action: Action, thought: str | None, conclusion: str | None) -> str:
        before = f"<think>{thought}</think>\n" if thought else ""
        return f"{before}<answer>{glm.answer(task, action, conclusion)}</answer>"

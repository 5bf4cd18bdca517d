"""GLM-4.5V: memory, reason and an action object with boxes in thousandths (0 to 999); thinks unless asked not to.

Sources: zai-org/GLM-V ``examples/gui-agent/glm-45v/agent.md`` (prompt, its additional notes, history), ``README.md``
(grounding, the ``enable_thinking`` argument of the chat template). With a step instruction nothing is published: it takes the
goal's place, as GUIEvalKit does it. A thought is given as the think block (GUIEvalKit paper, appendix E); a server leaves it to
the letter as it is when it is started with ``configs/chat_templates/glm_4_5v.jinja``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from pydantic import Field

from guieval.actions import Action
from guieval.errors import UsageError
from guieval.frames import Frame
from guieval.history import HistoryEntry
from guieval.models import Message, ModelInput, ParsedResponse, fill
from guieval.steps import StepTaskModel

from . import _glm as glm
from ._family import FamilyModel
from ._prompting import begun, given_thought, main_instruction, template

NO_THINKING: dict[str, Any] = {"chat_template_kwargs": {"enable_thinking": False}}


class GLM45Options(glm.GLMOptions):
    """Options of GLM-4.5V."""

    notes: Literal["androidworld", "none"] = Field(
        "androidworld",
        description="the prompt's additional notes: the published ones, made for AndroidWorld (GUIEvalKit sends them on every "
        "benchmark), or none",
    )


class GLM45V(FamilyModel):
    """Adapter of GLM-4.5V. Options: :class:`GLM45Options`."""

    title = "GLM-4.5V"
    options_type = GLM45Options
    _options: GLM45Options
    action_space = glm.SPACE
    thinking_switch = True
    fixes_thought = True
    source = "github.com/zai-org/GLM-V examples/gui-agent/glm-45v/agent.md"
    frame_source = "github.com/zai-org/GLM-V examples/gui-agent/glm-45v/agent.md"

    def frame(self, task: StepTaskModel) -> Frame:
        return glm.frame(task)

    def prepare_input(self, task: StepTaskModel, history: Sequence[HistoryEntry]) -> ModelInput:
        return ModelInput((self._turn(task, history),), extra=self._switch)

    def prepare_fixed_thought(self, task: StepTaskModel, history: Sequence[HistoryEntry], thought: str) -> ModelInput:
        """The thought as the think block; with thinking turned off, as the reason, which is then all that is thought."""
        words = given_thought(thought).strip()
        turn = f"<think>{words}</think>"
        if self.thinking is False:
            if task.setting == "grounding":
                raise UsageError(f"model {self.config.name!r} is asked neither to think nor for a reason: leave thinking on")
            turn = f"<think></think>\nMemory: None\nReason: {words}\nAction:"
        return begun(self.prepare_input(task, history), turn)

    def parse_response(self, task: StepTaskModel, text: str) -> ParsedResponse:
        return glm.parse_reply(task, text, reason_is_thought=self.thinking is False)

    def _written(self, task: StepTaskModel, action: Action, thought: str | None, conclusion: str | None) -> str:
        if self.thinking is False:
            return glm.answer(task, action, conclusion or thought)
        before = f"<think>{thought}</think>\n" if thought else ""
        return before + glm.answer(task, action, conclusion)

    @property
    def _switch(self) -> dict[str, Any]:
        return NO_THINKING if self.thinking is False else {}

    def _turn(self, task: StepTaskModel, history: Sequence[HistoryEntry]) -> Message:
        if task.setting == "grounding":
            return glm.grounding_turn(task)
        notes = template("glm_4_5v-mobile-additional-notes") if self._options.notes == "androidworld" else ""
        text = fill(
            template("glm_4_5v-mobile"),
            instruction=main_instruction(task),
            history=glm.past(history),
            supported_apps=self._options.apps,
            additional_notes=notes,
        )
        return glm.user_turn(task, text)

"""GLM-4.5V: memory, reason and an action object with boxes in thousandths (0 to 999); thinks unless told not to.

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
from guieval.models import ABCModel, Message, ModelConfig, ModelInput, ParsedResponse, fill
from guieval.steps import StepTaskModel

from . import _glm as glm
from ._options import read_options
from ._prompting import begun, given_thought, template, told_instruction

NO_THINKING: dict[str, Any] = {"chat_template_kwargs": {"enable_thinking": False}}


class GLM45Options(glm.GLMOptions):
    """Options of GLM-4.5V."""

    notes: Literal["androidworld", "none"] = Field(
        "androidworld",
        description="the prompt's additional notes: the published ones, made for AndroidWorld (GUIEvalKit sends them on every "
        "benchmark), or none",
    )


class GLM45V(ABCModel):
    """Adapter of GLM-4.5V. Options: :class:`GLM45Options`."""

    action_space = glm.SPACE
    thinking_switch = True
    fixes_thought = True
    source = "github.com/zai-org/GLM-V examples/gui-agent/glm-45v/agent.md"

    def __init__(self, config: ModelConfig, *, thinking: bool | None = None) -> None:
        super().__init__(config, thinking=thinking)
        self._options = read_options(GLM45Options, config)

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
                raise UsageError(f"model {self.config.name!r} is told not to think and asked for no reason: leave thinking on")
            turn = f"<think></think>\nMemory: None\nReason: {words}\nAction:"
        return begun(self.prepare_input(task, history), turn)

    def parse_response(self, task: StepTaskModel, text: str) -> ParsedResponse:
        return glm.read_reply(task, text, reason_is_thought=self.thinking is False)

    def render(self, task: StepTaskModel, action: Action, thought: str | None = None, conclusion: str | None = None) -> str:
        if action not in self.action_space:
            raise ValueError(f"GLM-4.5V cannot say {action!r}")
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
            instruction=told_instruction(task),
            history=glm.past(history),
            supported_apps=self._options.apps,
            additional_notes=notes,
        )
        return glm.user_turn(task, text)

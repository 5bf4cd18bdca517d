"""OpenMobile-2 (Qwen3.5 based): a ``Thought:`` and a ``mobile_use`` call in tags, as turns, on phones.

Source: OpenMobile2/OpenMobile2-Code@301fdb0 ``runtimes/prompts.py`` and ``runtimes/qwen35_thought_session.md`` (prompts, the
conversation: the task once, screenshots as answers of a tool, older ones collapsed; the form of a response). The tool says
999x999, and the agent for MobileGym takes places as thousandths; the option ``scale`` chooses the other one, and ``guieval
dev audit`` shows which one fits. The chat template's own thought is turned off. A response without ``Thought:`` is asked for
again there, and read here. Not published: a step instruction and a grounding query take the task's place.
"""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field

from guieval.actions import ACTION_TYPES, BUTTONS, Action, ActionSpace
from guieval.history import HistoryEntry
from guieval.models import DisputedScale, Family, ImageLimits, Message, ModelInput, main_instruction
from guieval.steps import StepTaskModel

from . import _qwen_tools as tools
from .qwen3_8 import COLLAPSED


class OpenMobile2Options(ImageLimits, DisputedScale):
    """Options of OpenMobile-2; image limits default to the base model's."""

    max_images: int = Field(3, ge=1, description="screenshots per request, the current one included")


class OpenMobile2(tools.XMLToolsModel):
    """Adapter of OpenMobile-2. Options: :class:`OpenMobile2Options`."""

    options: OpenMobile2Options
    patch = 32
    pixels = 65_536, 16_777_216
    thinking_argument = "enable_thinking"
    thinking_form = "Thought: {thought}\n"
    action_space = ActionSpace(types=frozenset(ACTION_TYPES) - {"OPEN"}, buttons=frozenset(BUTTONS))
    family = Family(2026, ("phone",))
    source = "github.com/OpenMobile2/OpenMobile2-Code@301fdb0 runtimes/prompts.py, runtimes/qwen35_thought_session.md"
    frame_source = "github.com/OpenMobile2/OpenMobile2-Code@301fdb0 (MobileGym's agent: 1000), runtimes/prompts.py (999)"

    def prepare_input(self, task: StepTaskModel, history: Sequence[HistoryEntry]) -> ModelInput:
        system = Message("system", (self.prompt("openmobile_2-mobile-system"),))
        query = self.prompt("openmobile_2-mobile-user", instruction=main_instruction(task))
        turns = self.conversation(task, history, self.options.max_images, [(query,)], hidden=COLLAPSED, later="tool")
        return ModelInput((system, *turns))

    def write(self, task: StepTaskModel, action: Action, thought: str | None, conclusion: str | None) -> str:
        words = thought or conclusion
        return (self._thinking(words) if words else "") + tools.call_xml(self._call(task, action))

"""The conversation of Mobile-Agent-v3.5: older steps are named in the request, the last ones are turns with their screenshots.

Source: X-PLUG/MobileAgent@11cea57 ``Mobile-Agent-v3.5/mobile_use/utils.py``. A response is an ``Action:`` sentence and a call
in tags.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from guieval.actions import BUTTONS, Action, ActionSpace, Answer, Stop, executable
from guieval.frames import PER_1000
from guieval.history import HistoryEntry, describe
from guieval.models import ABCModel, Message, ParsedResponse, Part
from guieval.models.parsing import call_tables as calls
from guieval.steps import StepTaskModel

from . import _qwen_tools as tools

CALLS = calls.CallTable(tools.CALLS, drag=calls.dragged((), ("coordinate",)), **calls.outside("interact"))


class MobileAgentModel(tools.QwenToolsModel):
    """An adapter with this conversation, by default in thousandths of the screen."""

    table = CALLS
    grounding_tool = "computer_use"
    keeps_thoughts = False
    fixed_frame = PER_1000
    action_space = ActionSpace(buttons=frozenset(BUTTONS))
    step_label: ClassVar[str]
    """The text before an older step's number in the request."""
    answer_ends: ClassVar[bool] = False
    """Whether the prompt for phones says that ``answer`` ends the task: online a stop follows it."""
    opening = ABCModel.opening

    def parse_response(self, task: StepTaskModel, text: str) -> ParsedResponse:
        parsed = super().parse_response(task, text)
        if self.answer_ends and isinstance(executable(parsed.action), Answer):
            return replace(parsed, batch=(parsed.action, Stop()))
        return parsed

    def _older(self, history: Sequence[HistoryEntry], max_images: int) -> str:
        """The steps without a screenshot, a line each; empty if there are none."""
        older = history[: self.first_shown(history, max_images)]
        return "\n".join(f"{self.step_label}{number}: {self.sentence(entry)}" for number, entry in enumerate(older, 1))

    def _messages(
        self, task: StepTaskModel, history: Sequence[HistoryEntry], request: str, system: str, max_images: int
    ) -> list[Message]:
        older = self.first_shown(history, max_images)
        turns: list[tuple[Part, ...]] = [()] * older + [(request,), *[()] * (len(history) - older)]
        return [Message("system", (system,)), *[*self.conversation(task, history, max_images, turns)][older:]]

    def write(self, task: StepTaskModel, action: Action, thought: str | None, conclusion: str | None) -> str:
        before = self._thinking(thought) if thought and self.thinking is not False else ""
        return f"{before}Action: {conclusion or describe(action)}\n{tools.call_text(self._call(task, action))}"

"""Models that only point: every step is a query, answered with a click, and the past is not shown.

A step instruction takes the goal's place, and on steps that are not grounding queries the goal is the query: a grounder is then
evaluated on what its planner would have to say.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from guieval.actions import Action, ActionSpace, Click
from guieval.history import HistoryEntry
from guieval.models import QWEN_PIXELS, ABCModel, ImageLimits, ModelInput, ParsedResponse, chat, main_instruction
from guieval.models.parsing import first_place
from guieval.steps import StepTaskModel

from . import _qwen_tools as tools

CLICKS = ActionSpace(types=frozenset({"CLICK"}))


class Grounder(ABCModel):
    """An adapter of a grounder whose answer is a place: the first that is in brackets, or a first line of numbers alone.

    Subclasses state prompt and form.
    """

    options: ImageLimits
    pixels: ClassVar[tuple[int, int] | None] = QWEN_PIXELS
    action_space = CLICKS
    system: ClassVar[str | None] = None
    """The name of its system prompt, which states the size of the screen."""
    user: ClassVar[str | None] = None
    """The name of its user's prompt; ``None`` if the query is sent as it is."""
    query: ClassVar[str] = "instruction"
    """The name of the query in the user's prompt."""

    def prepare_input(self, task: StepTaskModel, history: Sequence[HistoryEntry]) -> ModelInput:
        words = main_instruction(task)
        text = words if self.user is None else self.prompt(self.user, **{self.query: words})
        system = None if self.system is None else self.prompt(self.system, **self.screen(task))
        return chat(self.image(task), text, system=system)

    def parse_response(self, task: StepTaskModel, text: str) -> ParsedResponse:
        return ParsedResponse(self.read_click(task, self._place(text)))

    def _place(self, text: str) -> object:
        return first_place(text)

    def write(self, task: StepTaskModel, action: Action, thought: str | None, conclusion: str | None) -> str:
        assert isinstance(action, Click)
        x, y = (f"{side:g}" for side in self.write_place(task, action.point))
        return self._answer(x, y)

    def _answer(self, x: str, y: str) -> str:
        return f"({x}, {y})"


class CallingGrounder(tools.QwenToolsModel):
    """An adapter of a grounder whose answer is a call in tags; a bare place is an answer too."""

    pixels = QWEN_PIXELS
    action_space = CLICKS

    def _action(self, task: StepTaskModel, call: Any) -> Action:
        return tools.action_of(self, task, call, grounding=True)

"""Models that only point: every step is a query, answered with a click, and the past is not shown.

A step instruction takes the goal's place, and on steps that are not grounding queries the goal is the query: a grounder is then
evaluated on what its planner would have to say.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from guieval.actions import Action, ActionSpace, Click
from guieval.errors import ParseError
from guieval.history import HistoryEntry
from guieval.models import ModelInput, ParsedResponse, fill
from guieval.parsing import clicked, is_place, stated_place
from guieval.steps import StepTaskModel, whole_text

from . import _qwen_tools as tools
from ._family import QWEN_PIXELS, FamilyModel, ImageLimits, chat, main_instruction, template

CLICKS = ActionSpace(types=frozenset({"CLICK"}))


class Grounder(FamilyModel):
    """An adapter of a grounder whose answer is a place: the first that stands in brackets, or a first line of numbers alone.

    Subclasses state prompt and form.
    """

    _options: ImageLimits
    pixels = QWEN_PIXELS
    action_space = CLICKS
    system: ClassVar[str | None] = None
    """The name of its system prompt, which states the size of the screen."""
    user: ClassVar[str | None] = None
    """The name of its user's prompt; ``None`` where the query is sent as it is."""
    query: ClassVar[str] = "instruction"
    """The name of the query in the user's prompt."""

    def prepare_input(self, task: StepTaskModel, history: Sequence[HistoryEntry]) -> ModelInput:
        words = main_instruction(task)
        text = words if self.user is None else fill(template(self.user), **{self.query: words})
        system = None if self.system is None else fill(template(self.system), **self._screen(task))
        return chat(self._image(task), text, system=system)

    def parse_response(self, task: StepTaskModel, text: str) -> ParsedResponse:
        return ParsedResponse(clicked(self._place(whole_text(text)), self.frame(task), task.screenshot_size))

    def _place(self, text: str) -> object:
        first = text.strip().partition("\n")[0]
        place = first if is_place(first) else stated_place(text)
        if place is None:
            raise ParseError(f"the reply gives no place: {text.strip()[:80]!r}")
        return place

    def _written(self, task: StepTaskModel, action: Action, thought: str | None, conclusion: str | None) -> str:
        assert isinstance(action, Click)
        x, y = (f"{side:g}" for side in self.frame(task).quantise(action.point, task.screenshot_size))
        return self._answer(x, y)

    def _answer(self, x: str, y: str) -> str:
        return f"({x}, {y})"


class CallingGrounder(tools.QwenToolsModel):
    """An adapter of a grounder whose answer is a call in tags; a bare place is an answer too."""

    pixels = QWEN_PIXELS
    action_space = CLICKS

    def _action(self, task: StepTaskModel, call: Any) -> Action:
        return tools.action_of(call, self.frame(task), task.screenshot_size, grounding=True, table=self.table)

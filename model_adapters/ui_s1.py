"""UI-S1: a thought and a flat JSON action in ``<think>`` and ``<action>`` tags, the past as turns with two screenshots.

Sources: X-PLUG/MobileAgent ``UI-S1/x/data/agent/json.py`` (prompts, layout, past answers), ``UI-S1/evaluation/eval_qwenvl.py``
(always thinking; at most two screenshots, the current one included), ``UI-S1/x/qwen/image.py`` (limits); UI-S1 paper, appendix
H. The paper's example output holds a ``<think>`` block; the code, which passes an argument in the wrong place, sends the
examples without one: option ``examples`` chooses.

For a step instruction and for grounding nothing is published. Every turn then opens with its own step's instruction, in the
form the code has for repeating the query; a grounding query is put as the instruction of an episode of one step.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from pydantic import Field

from guieval.actions import Action, ActionSpace
from guieval.history import HistoryEntry
from guieval.models import Message, ModelInput, ParsedResponse, Part, fill
from guieval.steps import StepTaskModel

from . import _qwen_tools as tools
from ._family import PATCH, FamilyModel
from ._options import ImageLimits
from ._prompting import begun, given_thought, main_instruction, past_sentence, template
from ._rounds import first_round


class UIS1Options(ImageLimits):
    """Options of UI-S1; limits default to the authors' own."""

    max_images: int = Field(2, ge=1, description="screenshots per request, the current one included")
    examples: Literal["paper", "code"] = Field(
        "paper", description="example outputs in the prompt: with a thought (paper) or without one (what the code sends)"
    )


class UIS1(FamilyModel):
    """Adapter of UI-S1, which always thinks. Options: :class:`UIS1Options`."""

    title = "UI-S1"
    options_type = UIS1Options
    _options: UIS1Options
    pixels = 4 * PATCH**2, 12800 * PATCH**2
    action_space = ActionSpace()
    fixes_thought = True
    source = "github.com/X-PLUG/MobileAgent UI-S1/x/data/agent/json.py"
    frame_source = "github.com/X-PLUG/MobileAgent UI-S1/x/data/agent/json.py"

    def prepare_input(self, task: StepTaskModel, history: Sequence[HistoryEntry]) -> ModelInput:
        system = template("ui_s1-system")
        if self._options.examples == "code":
            system = system.replace("<think>\n...\n</think>\n", "")
        past = () if task.setting == "grounding" else history
        return ModelInput((Message("system", (system,)), *self._conversation(task, past)))

    def prepare_fixed_thought(self, task: StepTaskModel, history: Sequence[HistoryEntry], thought: str) -> ModelInput:
        return begun(self.prepare_input(task, history), _thinking(given_thought(thought)))

    def parse_response(self, task: StepTaskModel, text: str) -> ParsedResponse:
        reply = tools.split_reply(text, "action")
        grounding = task.setting == "grounding"
        action = tools.action_of(reply.call, self.frame(task), task.screenshot_size, grounding=grounding)
        return ParsedResponse(action, reply.thought)

    def _written(self, task: StepTaskModel, action: Action, thought: str | None, conclusion: str | None) -> str:
        return self._answer(task, action, thought)

    def _conversation(self, task: StepTaskModel, history: Sequence[HistoryEntry]) -> Iterator[Message]:
        """Every step as a user's turn and the answer to it; screenshots only of the last ``max_images``."""
        first_with_image = len(history) + 1 - self._options.max_images
        goal = main_instruction(task)
        opening, note = _first_turn()
        for index, step in enumerate((*(entry.task for entry in history), task)):
            parts: tuple[Part, ...] = (template("ui_s1-user-next"),)
            if task.setting == "low":
                own = past_sentence(history[index], self.frame(step)) if index < len(history) else goal
                parts = (fill(opening, instruction=step.low_level_instruction or own),)
            elif not index:
                parts = (fill(opening, instruction=goal),)
            parts = parts if index else (*parts, note)
            yield Message("user", (*parts, self._image(step)) if index >= first_with_image else parts)
            if index < len(history):
                yield Message("assistant", (self._past_answer(history[index]),))

    def _past_answer(self, entry: HistoryEntry) -> str:
        if entry.raw_response is None:
            return self._answer(entry.task, entry.action, entry.thought)
        written = first_round(entry.raw_response)
        # a thought that was given to the model, or that the server split off, is not in what it wrote
        apart = entry.thought and entry.thought not in written
        return _thinking(entry.thought or "") + written if apart else written

    def _answer(self, task: StepTaskModel, action: Action, thought: str | None) -> str:
        arguments = tools.call_of(action, self.frame(task), task.screenshot_size)["arguments"]
        return (_thinking(thought) if thought else "") + f"<action>\n{tools.call_json(arguments)}\n</action>"


def _thinking(thought: str) -> str:
    return f"<think>\n{thought}\n</think>\n"


def _first_turn() -> tuple[str, str]:
    """The first user's turn, which is two texts: the instruction with the output format, and a note about questions."""
    opening, mark, note = template("ui_s1-user-first").partition("If the query asks a question")
    return opening, mark + note

"""UI-S1: a thought and a flat JSON action in ``<think>`` and ``<action>`` tags, the past as turns with two screenshots.

Sources: X-PLUG/MobileAgent ``UI-S1/x/data/agent/json.py`` (prompts, layout, past answers), ``UI-S1/evaluation/eval_qwenvl.py``
(always thinking; at most two screenshots, the current one included), ``UI-S1/x/qwen/image.py`` (limits); UI-S1 paper, appendix
H. The paper's example output has a ``<think>`` block; the code, which passes an argument in the wrong place, sends the
examples without one: option ``examples`` chooses. Option ``prompt`` = ``paper`` sends the words that appendix H prints, with
its note on the File Manager; of the user's turns it prints only the instruction, so later turns are the code's.

For a step instruction and for grounding nothing is published. Every turn then begins with its step's instruction, in the form
that repeats the query; a grounding query is the instruction of an episode of one step.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Literal

from pydantic import Field

from guieval.actions import BUTTONS, Action, ActionSpace
from guieval.history import HistoryEntry
from guieval.models import PATCH, Family, ImageLimits, Message, ModelInput, ParsedResponse, Part, fill, main_instruction
from guieval.steps import StepTaskModel

from . import _qwen_tools as tools


class UIS1Options(ImageLimits):
    """Options of UI-S1; limits default to the authors' own."""

    max_images: int = Field(2, ge=1, description="screenshots per request, the current one included")
    prompt: Literal["code", "paper"] = Field(
        "code", description="words of the prompt: the released code's, or those that the paper prints (appendix H)"
    )
    examples: Literal["paper", "code"] = Field(
        "paper", description="example outputs in the code's prompt: with a thought (paper) or without one (what the code sends)"
    )


class UIS1(tools.QwenToolsModel):
    """Adapter of UI-S1, which always thinks. Options: :class:`UIS1Options`."""

    options: UIS1Options
    tag = "action"
    pixels = 4 * PATCH**2, 12800 * PATCH**2
    action_space = ActionSpace(buttons=frozenset(BUTTONS))
    family = Family(2025, ("phone",), reader="makers")
    source = frame_source = "github.com/X-PLUG/MobileAgent UI-S1/x/data/agent/json.py"

    def prepare_input(self, task: StepTaskModel, history: Sequence[HistoryEntry]) -> ModelInput:
        system = self.prompt("ui_s1-paper-system" if self.options.prompt == "paper" else "ui_s1-system")
        if self.options.examples == "code":
            system = system.replace("<think>\n...\n</think>\n", "")
        turns = tuple(self._turns(task, history))
        conversation = self.conversation(task, history, self.options.max_images, turns)
        return ModelInput((Message("system", (system,)), *conversation))

    def parse_response(self, task: StepTaskModel, text: str) -> ParsedResponse:
        return replace(super().parse_response(task, text), conclusion=None)

    def write(self, task: StepTaskModel, action: Action, thought: str | None, conclusion: str | None) -> str:
        call = tools.call_json(self._call(task, action)["arguments"])
        return (self._thinking(thought) if thought else "") + f"<action>\n{call}\n</action>"

    def _turns(self, task: StepTaskModel, history: Sequence[HistoryEntry]) -> Iterator[tuple[Part, ...]]:
        # the first turn is two texts: the instruction with the output format, and a note about questions
        opening, mark, note = self.prompt("ui_s1-user-first").partition("If the query asks a question")
        if self.options.prompt == "paper":
            opening = opening.partition("\n")[0]
        goal = main_instruction(task)
        for index, step in enumerate((*(entry.task for entry in history), task)):
            text = self.prompt("ui_s1-user-next")
            if task.setting == "low":
                own = self.sentence(history[index]) if index < len(history) else goal
                text = fill(opening, instruction=step.low_level_instruction or own)
            elif not index:
                text = fill(opening, instruction=goal)
            yield (text,) if index or self.options.prompt == "paper" else (text, mark + note)

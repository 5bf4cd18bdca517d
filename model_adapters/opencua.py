"""OpenCUA (Qwen2.5-VL based): an inner monologue in sections, then ``pyautogui`` code, in pixels of the resized screenshot.

Source: xlang-ai/OpenCUA@1d70f20, ``evaluation/agentnetbench/agent/opencua.py`` (prompts by how much is reasoned, the
conversation with the last three screenshots and ten steps, resize rule, how code is read), ``model/README.md`` (the grounding
prompt, which frame each checkpoint answers in: those made from Qwen2-VL and Kimi-VL in fractions of the screen).

A past step is its sentence (``## Action``), or its thought as well (option ``history``). An observation, which the longest
prompt asks for, is not kept. Not published: a step instruction takes the goal's place. Code is read with a fence around it, as
on the model card, and without one, as in the benchmark's form.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from guieval.actions import Action, ActionSpace
from guieval.frames import RELATIVE, Frame
from guieval.history import HistoryEntry
from guieval.models import ABCModel, Family, ImageLimits, Message, ModelInput, ParsedResponse, chat, main_instruction
from guieval.steps import StepTaskModel

from . import _pyautogui as code

_SECTION = re.compile(r"^[ \t]*#{1,3}[ \t]*(Observation|Thought|Action|Code)[ \t]*:?[ \t]*$", re.MULTILINE | re.IGNORECASE)


class OpenCUAOptions(ImageLimits):
    """Options of OpenCUA; image limits default to those of the authors' resize rule."""

    reasoning: Literal["l1", "l2", "l3", "l1_short", "l2_short", "l3_short"] = Field(
        "l2", description="the prompt: action alone (l1), with a thought (l2), with an observation too (l3); long or short"
    )
    history: Literal["action", "thought"] = Field("action", description="what the prompt shows of a past step")
    max_images: int = Field(3, ge=1, description="screenshots per request, the current one included")
    max_history: int = Field(10, ge=0, description="past steps in the prompt")
    relative: bool = Field(False, description="whether places are fractions of the screen (checkpoints made from Qwen2-VL)")


class OpenCUA(ABCModel):
    """Adapter of OpenCUA. Options: :class:`OpenCUAOptions`."""

    options: OpenCUAOptions
    thought_form = "## Thought:\n{thought}\n\n"
    table = code.CALLS
    pixels = 3136, 12_845_056
    grounds_silently = True
    action_space = ActionSpace(types=frozenset({"CLICK", "SCROLL", "TYPE", "PRESS", "STOP"}), buttons=frozenset({"ENTER"}))
    """What the prompts and pyautogui have of the unified actions: a desktop has no long press, apps by name, or Back."""
    family = Family(2025, ("desktop", "grounding"), reader="makers")
    source = "github.com/xlang-ai/OpenCUA@1d70f20 evaluation/agentnetbench/agent/opencua.py"
    frame_source = "github.com/xlang-ai/OpenCUA@1d70f20 model/README.md"

    def frame(self, task: StepTaskModel) -> Frame:
        return RELATIVE if self.options.relative else super().frame(task)

    def prepare_input(self, task: StepTaskModel, history: Sequence[HistoryEntry]) -> ModelInput:
        if task.setting == "grounding":
            return chat(self.image(task), task.instruction, system=self.prompt("opencua-grounding-system"))
        messages = [Message("system", (self.prompt(f"opencua-{self.options.reasoning}-system"),))]
        first_shown = self.first_shown(history, self.options.max_images)
        for index, entry in enumerate(history):
            if index >= first_shown:
                messages.append(Message("user", (self.image(entry.task),)))
            if index >= len(history) - self.options.max_history:
                messages.append(Message("assistant", (self._past_step(index, entry),)))
        question = self.prompt("opencua-user", instruction=main_instruction(task))
        return ModelInput((*messages, Message("user", (self.image(task), question))))

    def _past_step(self, index: int, entry: HistoryEntry) -> str:
        thought = f"## Thought:\n{entry.thought or ''}\n\n" if self.options.history == "thought" else ""
        return f"# Step {index + 1}:\n{thought}## Action:\n{self.sentence(entry)}\n"

    def parse_response(self, task: StepTaskModel, text: str) -> ParsedResponse:
        """Read a response: its sections, and the code in ``## Code``; without that section, anywhere in the response."""
        parts = _SECTION.split(text)
        sections = {name.lower(): body.strip() for name, body in reversed(list(zip(parts[1::2], parts[2::2], strict=True)))}
        found = code.calls_in(sections.get("code", parts[-1]))
        action = code.action_of(self, task, found)
        sentence = sections.get("action") if "code" in sections else None
        return ParsedResponse(action, sections.get("thought") or None, sentence or None)

    def write(self, task: StepTaskModel, action: Action, thought: str | None, conclusion: str | None) -> str:
        block = f"```python\n{code.written(self, task, action)}\n```"
        if task.setting == "grounding":
            return block
        head = f"## Thought:\n{thought}\n\n" if thought and self._thinks else ""
        sentence = f"## Action:\n{conclusion}\n\n" if conclusion else ""
        return f"{head}{sentence}## Code:\n{block}\n"

    def why_silent(self, task: StepTaskModel) -> str | None:
        return super().why_silent(task) if self._thinks else "its prompt asks for no thought"

    @property
    def _thinks(self) -> bool:
        return not self.options.reasoning.startswith("l1")

"""Seed / Doubao (hosted, 1.6 to 2.1) on desktops: UI-TARS-2's functions, every tag with a suffix, in thousandths of the screen.

Source: OSWorld's agent (xlang-ai/OSWorld ``mm_agents/seed_agent.py``, read in ljxpython/OSWorldUse@b5007a9): its two system
prompts, the conversation with screenshots as answers of a tool, thousandths, and that ``call_user`` and ``infeasible`` end a
task as failed. The service gives the thought apart, and at times writes tags without the suffix (sipeed/picoclaw issue 3153):
both are read.

The agent sends past reasoning in a field of its own, which is not sent here. There a response without a call ends the task as
done; here it is no action, since a thought may look the same. What a scroll's direction names is not stated: it turns the wheel
that way. The agent adds the computer's password to the task (option ``password``). Phones have no published prompt.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import Field

from guieval.actions import Action
from guieval.history import HistoryEntry
from guieval.models import ABCModel, Family, Message, ModelInput, ParsedResponse, main_instruction
from guieval.models.parsing import call_tables as calls
from guieval.steps import StepTaskModel

from .ui_tars_2 import CALLS, UITars2, UITars2Options

SUFFIX = "_never_used_51bce0c785ca2f68081bfa7d91973934"


class SeedOptions(UITars2Options):
    """Options of Seed; screenshots are sent as they are."""

    password: str | None = Field(None, description="the computer's password, which is added to the task")


class Seed(UITars2):
    """Adapter of hosted Seed. Options: :class:`SeedOptions`. The service cannot be given a thought."""

    options: SeedOptions
    table = calls.CallTable({"infeasible": calls.IMPOSSIBLE, **CALLS, **calls.outside("press")})
    pixels = None
    thinking_switch = True
    opening = ABCModel.opening
    thought_form = None
    family = Family(2026, ("desktop",))
    source = "github.com/ljxpython/OSWorldUse@b5007a9 mm_agents/seed_agent.py, a copy of xlang-ai/OSWorld's"
    frame_source = f"{source} (action_parse_res_factor: 1000)"

    def prepare_input(self, task: StepTaskModel, history: Sequence[HistoryEntry]) -> ModelInput:
        words = main_instruction(task)
        if self.options.password is not None:
            words += f"\nThe sudo password is {self.options.password}"
        system = (Message("system", (self.prompt(f"seed-computer-system-{number}"),)) for number in (1, 2))
        past = () if task.setting == "grounding" else history
        turns = self.conversation(task, past, self.options.max_images)
        seen = (Message("tool", turn.parts) if turn.role == "user" else turn for turn in turns)
        switch: dict[str, Any] = {"thinking": {"type": "disabled"}} if self.thinking is False else {"reasoning_effort": "high"}
        return ModelInput((*system, Message("user", (words,)), *seen), extra=switch)

    def parse_response(self, task: StepTaskModel, text: str) -> ParsedResponse:
        return super().parse_response(task, text.replace(SUFFIX, ""))

    def write(self, task: StepTaskModel, action: Action, thought: str | None, conclusion: str | None) -> str:
        before = f"<think{SUFFIX}>{thought}</think{SUFFIX}>" if thought and self.thinking is not False else ""
        return before + self._call(task, action)

    def _call(self, task: StepTaskModel, action: Action) -> str:
        name, arguments = self.write_call(task, action)
        lines = ((key, f"\n{value}\n" if str(value).startswith("\n") else value) for key, value in arguments.items())
        values = "".join(f"<parameter{SUFFIX}={key}>{value}</parameter{SUFFIX}>" for key, value in lines)
        return f"<seed:tool_call{SUFFIX}><function{SUFFIX}={name}>{values}</function{SUFFIX}></seed:tool_call{SUFFIX}>"

    def past_response(self, entry: HistoryEntry) -> str:
        """A past step's functions, without the reasoning in front of them."""
        if entry.raw_response is None:
            return self._call(entry.task, entry.action)
        return entry.raw_response.split(f"</think{SUFFIX}>")[-1]

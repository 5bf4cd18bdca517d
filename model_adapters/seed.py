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

import re
from collections.abc import Sequence
from typing import Any

from pydantic import Field

from guieval.actions import Action
from guieval.history import HistoryEntry
from guieval.models import Family, Message, ModelInput, ParsedResponse, main_instruction
from guieval.models.parsing import call_tables as calls
from guieval.steps import StepTaskModel

from .ui_tars_2 import CALLS, UITars2, UITars2Options

SUFFIX = "_never_used_51bce0c785ca2f68081bfa7d91973934"
_TAG = re.compile("</?(?:seed:tool_call|function|parameter)")


class SeedOptions(UITars2Options):
    """Options of Seed; screenshots are sent as they are."""

    password: str | None = Field(None, description="the computer's password, which is added to the task")


class Seed(UITars2):
    """Adapter of hosted Seed. Options: :class:`SeedOptions`. The service cannot be given a thought."""

    options: SeedOptions
    table = calls.CallTable({"infeasible": calls.IMPOSSIBLE, **CALLS, **calls.outside("press")})
    pixels = None
    thinking_switch = True
    thought_form = f"<think{SUFFIX}>{{thought}}</think{SUFFIX}>"
    fixes_thought = False
    family = Family(2026, ("desktop",))
    source = "github.com/ljxpython/OSWorldUse@b5007a9 mm_agents/seed_agent.py, a copy of xlang-ai/OSWorld's"
    frame_source = f"{source} (action_parse_res_factor: 1000)"

    def prepare_input(self, task: StepTaskModel, history: Sequence[HistoryEntry]) -> ModelInput:
        words = main_instruction(task)
        if self.options.password is not None:
            words += f"\nThe sudo password is {self.options.password}"
        system = (Message("system", (self.prompt(f"seed-computer-system-{number}"),)) for number in (1, 2))
        turns = self.conversation(task, history, self.options.max_images, first="tool", later="tool")
        switch: dict[str, Any] = {"thinking": {"type": "disabled"}} if self.thinking is False else {"reasoning_effort": "high"}
        return ModelInput((*system, Message("user", (words,)), *turns), extra=switch)

    def parse_response(self, task: StepTaskModel, text: str) -> ParsedResponse:
        return super().parse_response(task, text.replace(SUFFIX, ""))

    def _call(self, task: StepTaskModel, action: Action) -> str:
        return _TAG.sub(rf"\g<0>{SUFFIX}", super()._call(task, action))

    def past_response(self, entry: HistoryEntry) -> str:
        """A past step's functions, without the reasoning in front of them."""
        return (entry.raw_response or self._call(entry.task, entry.action)).split(f"</think{SUFFIX}>")[-1]

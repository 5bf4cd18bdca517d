"""Fara1.5 (Qwen3.5 based): Fara's conversation and tool on web pages, in thousandths of the screen.

Sources: microsoft/fara@6505fef ``src/fara/agents/fara/fara15_agent.py`` (the conversation, image limits, what each action does)
and ``src/fara/_prompts.py`` (the system prompt, whose identity names the 9B: none exists for the others). That coordinates are
thousandths is what three others quote of ``coord_spaces.py``.

The thought is plain text before the call; the chat template's own is turned off, since the model otherwise makes no call. A
scroll moves the page by as many thousandths of its height as it has ``pixels``. ``terminate`` has an answer and no status:
online the answer comes before the end. A question to the user is outside of the action space.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from guieval.actions import Action, Scroll, Stop, Wait
from guieval.frames import PER_1000
from guieval.models import Family
from guieval.models.parsing import call_tables as calls
from guieval.steps import StepTaskModel

from . import _desktop_calls as desktop
from .fara import CALLS as FARA
from .fara import Fara

WHEEL = calls.wheel("down", "up", "pixels", place=("coordinate",), unit=None, written=500)


def _scrolled(call: calls.Arguments) -> Action:
    distance = min(abs(float(call.needed("pixels"))), 1000.0) if isinstance(call.needed("pixels"), int | float) else None
    return WHEEL.read(call).model_copy(update={"distance": distance})


CALLS = calls.CallTable(
    {
        **FARA,
        "type": calls.typed("text"),
        "scroll": calls.Form(Scroll, _scrolled, WHEEL.write),
        "wait": desktop.waited("time", default=Wait()),
        "terminate": calls.ended(calls.FINISH, "answer", other=True),
        "ask_user_question": calls.asked("question"),
        **calls.outside("read_page_answer_question"),
    }
)


class Fara15(Fara):
    """Adapter of Fara1.5. Options: those of Fara."""

    table = CALLS
    thinking_argument = "enable_thinking"
    patch = 32
    fixed_frame = PER_1000
    action_space = replace(Fara.action_space, statuses=frozenset({"finish"}))
    family = Family(2026, ("web",), reader="makers")
    source = "github.com/microsoft/fara@6505fef src/fara/_prompts.py, src/fara/agents/fara/fara15_agent.py"
    frame_source = "github.com/microsoft/fara@6505fef src/fara/agents/fara/fara15_agent.py, coord_spaces.py"

    def _system(self, task: StepTaskModel) -> str:
        return self.prompt("fara1_5-browser-system")

    def _batch(self, task: StepTaskModel, call: Any, action: Action) -> tuple[Action, ...]:
        if not isinstance(action, Stop) or not isinstance(call, dict):
            return ()
        return calls.answer_first("terminate", call.get("arguments", {}).get("answer"), action)

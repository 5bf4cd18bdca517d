"""EvoCUA (Qwen3-VL based): an ``Action:`` sentence and a ``computer_use`` call on desktops, in 999ths of the screen.

Source: meituan/EvoCUA@4a0ad5f, ``mm_agents/evocua/prompts.py`` (prompt style S2, with which the released checkpoints are
evaluated) and ``evocua_agent.py`` (the conversation: the last four responses with their screenshots, older steps as sentences;
what each action does; relative coordinates). Style S1, pyautogui code, is not supported.

The prompt calls the screen 1000x1000, the agent divides by 999, which is the default; the option ``scale`` chooses the other
one, and ``guieval dev audit`` shows which one fits. The wheel turns up and down only, at any place, and a positive number
turns it up, as in pyautogui. ``hscroll`` and ``answer`` are described in the prompt, but its schema lacks them and the agent
ignores them. The agent decodes backslash escapes in typed text; here the text is the JSON's. Not published: a step
instruction and a grounding query take the goal's place.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from guieval.actions import Wait
from guieval.history import HistoryEntry
from guieval.models import DisputedScale, Family, ImageLimits, Message, ModelInput, main_instruction
from guieval.models.parsing import call_tables as calls
from guieval.steps import StepTaskModel

from . import _desktop_calls as desktop
from . import _qwen_tools as tools
from ._mobile_agent import MobileAgentModel

CALLS = desktop.and_the_past(
    calls.CallTable(
        {
            **dict.fromkeys(("left_click", "click"), calls.tap("coordinate")),
            "type": calls.typed("text"),
            "key": desktop.keys("enter"),
            "scroll": calls.wheel("down", "up", "pixels"),
            "wait": desktop.waited("time", default=Wait()),
            **{name: tools.CALLS[name] for name in ("terminate", "answer", "mouse_move", "right_click", "double_click")},
            "left_click_drag": calls.dragged((), ("coordinate",)),
            **calls.outside("hscroll", "middle_click", "triple_click", "key_down", "key_up"),
        }
    )
)


class EvoCUAOptions(ImageLimits, DisputedScale):
    """Options of EvoCUA; image limits default to those of the authors' agent."""

    scale: Literal[999, 1000] = Field(999, description="extent of the screen in the model's answers, 999 or 1000")
    max_images: int = Field(5, ge=1, description="screenshots per request, the current one included")


class EvoCUA(MobileAgentModel):
    """Adapter of EvoCUA. Options: :class:`EvoCUAOptions`."""

    options: EvoCUAOptions
    table = CALLS
    tool = grounding_tool = "computer_use"
    patch = 32
    pixels = 3136, 13_107_200
    step_label = "Step "
    action_space = desktop.VERTICAL
    family = Family(2026, ("desktop",), reader="makers")
    source = "github.com/meituan/EvoCUA@4a0ad5f mm_agents/evocua/prompts.py, mm_agents/evocua/evocua_agent.py"
    frame_source = "github.com/meituan/EvoCUA@4a0ad5f mm_agents/evocua/evocua_agent.py (999), prompts.py (1000)"
    keeps_thoughts = True

    def prepare_input(self, task: StepTaskModel, history: Sequence[HistoryEntry]) -> ModelInput:
        most = self.options.max_images
        older = self._older(history, most) or "None"
        request = self.prompt("evocua-user", instruction=main_instruction(task), history=older)
        system, first, *turns = self._messages(task, history, request, self.prompt("evocua-system"), most)
        return ModelInput((system, Message("user", first.parts[::-1]), *turns))  # the image comes before the words

"""EvoCUA (Qwen3-VL based): an ``Action:`` sentence and a ``computer_use`` call on desktops, in 999ths of the screen.

Source: meituan/EvoCUA@4a0ad5f, ``mm_agents/evocua/prompts.py`` (prompt style S2, with which the released checkpoints are
evaluated) and ``evocua_agent.py`` (the conversation: the last four replies with their screenshots, older steps as sentences;
what each action does; relative coordinates). Style S1, pyautogui code, is not supported.

The prompt calls the screen 1000x1000, the agent divides by 999; ``guieval audit`` shows which one fits. The wheel turns up and
down only, wherever the pointer is, and a positive number turns it up, as in pyautogui. ``hscroll`` and ``answer`` are described
in the prompt, but its schema lacks them and the agent ignores them. The agent decodes backslash escapes in typed text; here the
text is what the JSON holds. Not published: a step instruction and a grounding query take the goal's place.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import Field

from guieval.actions import Action, Press, Scroll, Wait
from guieval.errors import ParseError
from guieval.frames import PER_999, PER_1000, Frame
from guieval.history import HistoryEntry
from guieval.models import Message, ModelInput, fill
from guieval.parsing import call_tables as calls
from guieval.steps import StepTaskModel

from . import _qwen_tools as tools
from ._family import ImageLimits, main_instruction, template
from ._hosted import keys_pressed
from ._mobile_agent import MobileAgentModel
from .fara import UpAndDown

CLICKS = 5
"""How far a scroll is written to turn the wheel."""


def _scroll(call: calls.Arguments) -> Action:
    try:
        pixels = float(call.needed("pixels"))
    except (TypeError, ValueError, OverflowError):
        pixels = 0.0
    if not abs(pixels) > 0:
        raise ParseError(f"scroll has {call.values['pixels']!r:.80} as 'pixels'")
    return Scroll(point=calls.MIDDLE, direction="up" if pixels > 0 else "down")


def _pixels(action: Scroll, writing: calls.Writing) -> dict[str, Any] | None:
    sign = {"up": 1, "down": -1}.get(action.direction)
    return None if sign is None else {"pixels": sign * CLICKS}


def _wait(call: calls.Arguments) -> Action:
    return Wait(duration=call.milliseconds("time")) if "time" in call.values else Wait()


CALLS = calls.CallTable(
    {
        **dict.fromkeys(("left_click", "click"), calls.tap("coordinate")),
        "type": calls.typed("text"),
        "key": calls.Form(
            Press,
            lambda call: keys_pressed(call.keys("keys", "text").keys, call),
            lambda action, _: {"keys": ["enter"]} if action == calls.ENTER else None,
        ),
        "scroll": calls.Form(Scroll, _scroll, _pixels),
        "wait": calls.Form(Wait, _wait, calls.waited("time").write),
        **{name: tools.CALLS[name] for name in ("terminate", "answer", "mouse_move", "right_click", "double_click")},
        "left_click_drag": calls.dragged((), ("coordinate",)),
        **calls.outside("hscroll", "middle_click", "triple_click", "key_down", "key_up"),
    }
)


class EvoCUAOptions(ImageLimits):
    """Options of EvoCUA; image limits default to those of the authors' agent."""

    max_images: int = Field(5, ge=1, description="screenshots per request, the current one included")


class EvoCUA(MobileAgentModel):
    """Adapter of EvoCUA. Options: :class:`EvoCUAOptions`."""

    _options: EvoCUAOptions
    table = CALLS
    fixed_frame = PER_999
    patch = 32
    pixels = 3136, 13_107_200
    step_label = "Step "
    action_space = UpAndDown(
        types=frozenset({"CLICK", "SCROLL", "TYPE", "PRESS", "WAIT", "STOP"}), buttons=frozenset({"ENTER"})
    )
    source = "github.com/meituan/EvoCUA@4a0ad5f mm_agents/evocua/prompts.py, mm_agents/evocua/evocua_agent.py"
    frame_source = "github.com/meituan/EvoCUA@4a0ad5f mm_agents/evocua/evocua_agent.py (999), prompts.py (1000)"
    _past_reply = tools.QwenToolsModel._past_reply

    @property
    def disputed_frames(self) -> Sequence[Frame]:
        return (PER_1000,)

    def prepare_input(self, task: StepTaskModel, history: Sequence[HistoryEntry]) -> ModelInput:
        most = self._options.max_images
        older = self._older(history, most) or "None"
        request = fill(template("evocua-user"), instruction=main_instruction(task), history=older)
        system, first, *turns = self._messages(task, history, request, template("evocua-system"), most)
        return ModelInput((system, Message("user", first.parts[::-1]), *turns))  # the image comes before the words

    def _call(self, task: StepTaskModel, action: Action) -> dict[str, Any]:
        frame, size = self.frame(task), task.screenshot_size
        try:
            name, arguments = CALLS.write(action, lambda point: list(frame.quantise(point, size)))
        except ValueError:
            if action in self.action_space:
                raise
            # the past may hold what the family has no word for, which the base model has
            return {**tools.call_of(action, frame, size), "name": "computer_use"}
        return {"name": "computer_use", "arguments": {"action": name, **arguments}}

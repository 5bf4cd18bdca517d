"""Qwen3.5 and Qwen3.6: a thought and a call in tags, as JSON or as ``<function=..>``; ``mobile_use`` or ``computer``.

Sources: trycua/cua@b296ec9 ``libs/python/agent/cua_agent/loops/qwen35.py`` (the tool for computers, both forms of a call,
thousandths of the screen, image limits, the query of a grounding step); QwenLM/Qwen3.5@7e103ae ``README.md`` (checkpoints,
server). The authors publish no prompt for phones: option ``prompt: mobile`` is Qwen3-VL's, whose screen is 999x999. A call of
``computer`` is read as cua reads it under either prompt.

In cua ``terminate`` and ``answer`` are commented out, since its agent ends with the first response that makes no call; they are
offered here, so that the end of a task is an action. A positive number turns the wheel up, as the prompt states, and with
``hscroll`` to the right, as in pyautogui. A click with modifier keys is kept as an unsupported action.

Not published: a step instruction takes the goal's place. cua shows the whole conversation, with past calls as the server's own
messages; here they are texts, and the last ``max_images`` screenshots are shown. The prompt for phones writes the past as
Qwen3-VL's does. Thinking is turned on and off by the chat template's ``enable_thinking``. The template opens the thought
itself, so no thought can be given.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Literal

from pydantic import Field

from guieval.actions import ACTION_TYPES, BUTTONS, Action, ActionSpace, Wait
from guieval.frames import PER_999, PER_1000, Frame
from guieval.history import HistoryEntry
from guieval.models import ABCModel, Family, ImageLimits, Message, ModelConfig, ModelInput, Surface, chat, main_instruction
from guieval.models.parsing import call_tables as calls
from guieval.steps import StepTaskModel

from . import _desktop_calls as desktop
from . import _qwen_tools as tools

TOOL = "computer"
PHONE = ActionSpace(types=frozenset(ACTION_TYPES) - {"OPEN"}, buttons=frozenset(BUTTONS))


def _unmodified(form: calls.Form) -> calls.Form:
    """A click that is one of the unified space unless modifier keys are held."""
    return calls.Form(form.kind, lambda call: call.unsupported() if call.values.get("text") else form.read(call), form.write)


CALLS = desktop.and_the_past(
    calls.CallTable(
        {
            **dict.fromkeys(("left_click", "click"), _unmodified(calls.tap("coordinate"))),
            "type": calls.typed("text"),
            "key": desktop.keys("enter"),
            "scroll": calls.wheel("down", "up", "pixels", place=("coordinate",)),
            "hscroll": calls.wheel("left", "right", "pixels", place=("coordinate",)),
            "wait": desktop.waited("time", default=Wait()),
            **{name: tools.CALLS[name] for name in ("terminate", "answer", "mouse_move", "right_click", "double_click")},
            "left_click_drag": calls.dragged((), ("coordinate",)),
            **calls.outside("middle_click", "triple_click"),
        }
    )
)
SURFACES = {"mobile": Surface(tools.CALLS, PHONE), "computer": Surface(CALLS, desktop.SPACE)}


class Qwen35Options(ImageLimits):
    """Options of Qwen3.5; image limits default to cua's."""

    prompt: Literal["mobile", "computer"] = Field("mobile", description="what the model operates: Qwen3-VL's prompt, or cua's")
    max_images: int = Field(3, ge=1, description="screenshots per request with the prompt for computers, the current included")


class Qwen35(tools.XMLToolsModel):
    """Adapter of Qwen3.5 and Qwen3.6. Options: :class:`Qwen35Options`."""

    options: Qwen35Options
    thinking_form = "<think>\n{thought}\n</think>\n\n"
    patch = 32
    pixels = 3136, 12_845_056
    thinking_switch = True
    surfaces = SURFACES
    thinking_argument = "enable_thinking"
    family = Family(2026, ("phone", "desktop", "grounding"), reader="vLLM")
    source = "github.com/trycua/cua@b296ec9 libs/python/agent/cua_agent/loops/qwen35.py"
    frame_source = f"{source} (1000); github.com/QwenLM/Qwen3-VL cookbooks/mobile_agent.ipynb (999)"
    opening = ABCModel.opening

    grounding_tool = computer_tool = TOOL
    keeps_thoughts = False  # the chat template takes them out as well

    def __init__(self, config: ModelConfig, *, thinking: bool | None = None) -> None:
        super().__init__(config, thinking=thinking)
        self._mobile = self.options.prompt == "mobile"
        if not self._mobile:
            self.tool = self.computer_tool

    def frame(self, task: StepTaskModel) -> Frame:
        return PER_999 if self._mobile and task.setting != "grounding" else PER_1000

    @property
    def disputed_frames(self) -> Sequence[Frame]:
        return (PER_999, PER_1000)

    def prepare_input(self, task: StepTaskModel, history: Sequence[HistoryEntry]) -> ModelInput:
        if task.setting == "grounding":
            return chat(self.image(task), task.instruction, system=self.prompt("qwen3_5-grounding-system"))
        if self._mobile:
            past = self._progress(history)
            query = self.prompt("qwen3_vl-mobile-user", instruction=main_instruction(task), history=past)
            return chat(query, self.image(task), system=self.prompt("qwen3_vl-mobile-system"))
        messages = [Message("system", (self.prompt("qwen3_5-computer-system"),)), Message("user", (main_instruction(task),))]
        turns = self.conversation(task, history, self.options.max_images)
        return ModelInput((*messages, *turns))

    def _action(self, task: StepTaskModel, call: Any) -> Action:
        """The tool for computers has its own names and thousandths, also if the prompt offers the one for phones."""
        one = call[0] if isinstance(call, list) and len(call) == 1 else call
        if not self._mobile or not isinstance(one, dict) or one.get("name") != TOOL:
            return super()._action(task, call)
        return tools.action_of(self, task, one, table=CALLS, frame=PER_1000)

    def write(self, task: StepTaskModel, action: Action, thought: str | None, conclusion: str | None) -> str:
        call = tools.call_text(self._call(task, action))
        sentence = f'Action: "{conclusion}"\n' if conclusion else ""
        return (self._thinking(thought) if thought and self.thinking is not False else "") + sentence + call

    def write_call(self, task: StepTaskModel, action: Action) -> tuple[str, dict[str, Any]]:
        table = CALLS if task.setting == "grounding" else self.table
        return table.write(action, partial(self.write_place, task))

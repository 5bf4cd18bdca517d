"""UI-TARS-2: a thought and one or more functions in tags, in thousandths of the screen; desktops and browsers.

Sources: trycua/cua@b296ec9 ``libs/python/agent/cua_agent/loops/uitars2.py`` (the prompt, after the one the model is trained
with; thousandths; the conversation) and bytedance/UI-TARS-desktop@239b654, the authors' own client, ``multimodal/omni-tars``
(``core/src/environments/prompt_t5.ts``: the same functions, for browsers; ``environments/computer.ts``: what a scroll's
direction names; ``gui-agent/src/GUIAgentT5Adapter.ts``: thousandths). The authors' prompt names the time and has no function
that ends a task, so cua's is sent. The weights are not published.

A text that ends with a new line is submitted: the typing is scored, and mode online presses Enter as well. Of several functions
the first that acts is scored, and all are carried out online; ``open_computer`` and ``take_screenshot`` only look. Not
published: how many screenshots are shown (the default is UI-TARS's five), and the form of a step instruction and of a grounding
query, which take the goal's place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from pydantic import Field

from guieval.actions import Action, Point, Type, Wait
from guieval.errors import ParseError
from guieval.frames import PER_1000
from guieval.history import HistoryEntry
from guieval.models import ABCModel, Family, ImageLimits, Message, ModelInput, ParsedResponse, main_instruction
from guieval.models.parsing import (
    CallExpression,
    ScrollWords,
    first_round,
    function_calls,
    function_text,
    split_reasoning,
    tagged,
)
from guieval.models.parsing import call_tables as calls
from guieval.steps import StepTaskModel

from . import _desktop_calls as desktop
from . import _ui_tars as tars
from ._hosted import keys_pressed

SUBMITS = ("\\n", "\n")
"""The end of a text that is submitted: written out, as the authors' client reads it too, or a new line."""


def _typed(call: calls.Arguments) -> Action:
    text = call.text("content")
    end = next((end for end in SUBMITS if text.endswith(end)), "")
    return calls.ENTER if text == end != "" else Type(text=text.removesuffix(end))


MOST = 20
"""Most functions of a response that are carried out online."""
_LOOKS = frozenset({"open_computer", "take_screenshot"})
_KEY = calls.enter(lambda call: keys_pressed(call.keys("key").keys, call), key="enter")
CALLS = calls.CallTable(
    {
        "click": calls.tap("point"),
        "type": calls.Form(Type, _typed, calls.typed("content").write),
        "scroll": calls.scrolled("direction", "point"),
        **dict.fromkeys(("press", "hotkey"), _KEY),
        "wait": desktop.waited("time", default=Wait(duration=5000.0)),
        "finished": calls.FINISH,
        "call_user": calls.IMPOSSIBLE,
        "navigate_back": calls.BACK,  # of the authors' prompt for browsers
        "left_double": calls.double_clicked("point"),
        "right_single": calls.right_clicked("point"),
        "move_to": calls.hovered("point"),
        "drag": calls.dragged(("start_point",), ("end_point",)),
        **calls.outside("mouse_down", "mouse_up", "release", "navigate"),
    }
)
# what only the past may hold is written in UI-TARS' words, and read as well
CALLS |= {name: entry for name, entry in tars.CALLS.items() if name not in CALLS}


class UITars2Options(ImageLimits):
    """Options of UI-TARS-2; the image limit defaults to the largest image of the authors' client."""

    max_images: int = Field(5, ge=1, description="screenshots per request, the current one included")
    scroll_words: ScrollWords = Field("content", description="what a scroll's direction names (content: what comes into view)")


class UITars2(ABCModel):
    """Adapter of UI-TARS-2. Options: :class:`UITars2Options`."""

    options: UITars2Options
    thought_form: ClassVar[str | None] = "<gui_think> {thought} </gui_think>\n"
    table = CALLS
    fixed_frame = PER_1000
    pixels: ClassVar[tuple[int, int] | None] = 1, 2048 * 1960
    action_space = desktop.SPACE
    family = Family(2025, ("desktop", "web"), reader="cua")
    source = "github.com/trycua/cua@b296ec9 libs/python/agent/cua_agent/loops/uitars2.py"
    frame_source = "github.com/bytedance/UI-TARS-desktop@239b654 multimodal/omni-tars/gui-agent/src/GUIAgentT5Adapter.ts"

    def processor(self, task: StepTaskModel) -> None:
        """Not published: the limit is that of the authors' client."""

    def prepare_input(self, task: StepTaskModel, history: Sequence[HistoryEntry]) -> ModelInput:
        turns = self.conversation(task, history, self.options.max_images)
        system = Message("system", (self.prompt("ui_tars_2-system"),))
        return ModelInput((system, Message("user", (main_instruction(task),)), *turns))

    def parse_response(self, task: StepTaskModel, text: str) -> ParsedResponse:
        thought, made = _parts(text)
        acting = [(call.name, call.arguments) for call in made if call.name not in _LOOKS]
        if not acting:
            raise ParseError(
                "the response only looks at the screen" if made else f"the response has no call: {text.strip()[:80]!r}"
            )
        batch = self._read(task, *acting[0])
        action = batch[0]
        for name, arguments in acting[1:MOST]:
            try:
                batch += self._read(task, name, arguments)
            except ParseError:  # what comes after it cannot be carried out in its place
                break
        return ParsedResponse(action, thought, batch=tuple(batch) if len(batch) > 1 else ())

    def _read(self, task: StepTaskModel, name: str, arguments: Mapping[str, Any]) -> list[Action]:
        action = self.read_call(task, name, arguments)
        submitted = name == "type" and action != calls.ENTER and str(arguments.get("content")).endswith(SUBMITS)
        return [action, calls.ENTER] if submitted else [action]

    def write(self, task: StepTaskModel, action: Action, thought: str | None, conclusion: str | None) -> str:
        return (self.opening(task, thought) if thought and not self.why_silent(task) else "") + self._call(task, action)

    def _call(self, task: StepTaskModel, action: Action) -> str:
        name, arguments = self.write_call(task, action)
        return f"<seed:tool_call>{function_text(name, arguments, lines=False)}</seed:tool_call>"

    def write_place(self, task: StepTaskModel, point: Point) -> str:
        return "<point>{:g} {:g}</point>".format(*super().write_place(task, point))

    def past_response(self, entry: HistoryEntry) -> str:
        """A past step's thought and functions, without the reasoning in front of them."""
        if entry.raw_response is not None:
            return split_reasoning(first_round(entry.raw_response), "<seed:tool_call>")[1].strip()
        words = entry.thought or self.sentence(entry)
        return f"<gui_think> {words} </gui_think>\n{self._call(entry.task, entry.action)}"


def _parts(text: str) -> tuple[str | None, list[CallExpression]]:
    """A response's thought, and its functions in order."""
    reasoning, rest = split_reasoning(first_round(text), "<seed:tool_call>")
    words, tag, body = rest.partition("<seed:tool_call>")
    return tagged(words, "gui_think") or reasoning or None, list(function_calls(body if tag else rest))

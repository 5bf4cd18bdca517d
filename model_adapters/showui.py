"""ShowUI-2B (Qwen2-VL based): a Python dictionary with an action, a value and a position, as fractions of the screen.

Source: showlab/ShowUI@21ed7cb ``QUICK_START.md`` (prompts, layout, image limits, forms of a response) and
``data/dset_shared_navigation.py`` (the past: the last four actions as dictionaries, without screenshots). Of several
dictionaries the first counts. ``INPUT`` clicks on its position and types: the typing is scored, and both are carried out
online. On phones ``ANSWER`` states how the task ended. What the direction of a ``SCROLL`` names is not stated; by default what
comes into view. A step instruction takes the task's place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

from pydantic import Field

from guieval import actions as act
from guieval.errors import ParseError
from guieval.frames import RELATIVE
from guieval.history import HistoryEntry
from guieval.models import ABCModel, Family, ImageLimits, ModelInput, ParsedResponse, Surface, chat, main_instruction
from guieval.models.parsing import ScrollWords, is_place, json_value
from guieval.models.parsing import call_tables as calls
from guieval.steps import StepTaskModel

from . import _desktop_calls as desktop


def _swiped(call: calls.Arguments) -> act.Action:
    path = call.needed("position")
    if not isinstance(path, list) or len(path) != 2:
        raise ParseError(f"the SWIPE's position {path!r:.80} is no path")
    return call.swipe(*path)


def _path(action: act.Scroll, writing: calls.Writing) -> dict[str, Any]:
    return {"position": [list(writing.place(point)) for point in act.scroll_path(action)]}


def _ended(call: calls.Arguments) -> act.Action:
    return calls.IMPOSSIBLE if "impossible" in call.text("value").lower() else calls.FINISH


BOTH = calls.CallTable({"INPUT": calls.typed("value"), "ENTER": calls.ENTER})
WEB = calls.CallTable(
    {
        "CLICK": calls.tap("position"),
        **BOTH,
        "SCROLL": calls.scrolled("value"),
        "HOVER": calls.hovered("position"),
        "ANSWER": calls.answered("value"),
        **calls.outside("SELECT", "SELECT_TEXT", "COPY"),
    }
)
PHONE = calls.CallTable(
    {
        "TAP": calls.tap("position"),
        **BOTH,
        "SWIPE": calls.Form(act.Scroll, _swiped, _path),
        "ANSWER": calls.Form(act.Stop, _ended, lambda end, _: {"value": "task complete"} if end == calls.FINISH else None),
    }
)
KINDS = frozenset[act.ActionType]({"CLICK", "SCROLL", "TYPE", "PRESS"})
SPACE = act.ActionSpace(KINDS, frozenset({"ENTER"}), frozenset({"finish"}))
SURFACES = {
    "phone": Surface(desktop.and_the_past(PHONE), replace(SPACE, types=KINDS | {"STOP"})),
    "web": Surface(desktop.and_the_past(WEB), SPACE),
}


class ShowUIOptions(ImageLimits):
    """Options of ShowUI; image limits default to the authors'."""

    prompt: Literal["phone", "web"] = Field("phone", description="what the model operates")
    max_history: int = Field(4, ge=0, description="past actions in the prompt")
    scroll_words: ScrollWords = Field("content", description="what the direction of a SCROLL names on web pages")


class ShowUI(ABCModel):
    """Adapter of ShowUI. Options: :class:`ShowUIOptions`."""

    options: ShowUIOptions
    surfaces = SURFACES
    fixed_frame = RELATIVE
    pixels = 256 * 28**2, 1344 * 28**2
    family = Family(2024, ("phone", "web", "grounding"), reader="makers", recorded=2)
    source = "github.com/showlab/ShowUI@21ed7cb QUICK_START.md, data/dset_shared_navigation.py"
    frame_source = "github.com/showlab/ShowUI@21ed7cb QUICK_START.md (0 to 1)"

    def prepare_input(self, task: StepTaskModel, history: Sequence[HistoryEntry]) -> ModelInput:
        if task.setting == "grounding":
            return chat(self.prompt("showui-grounding"), self.image(task), task.instruction)
        shown = history[max(0, len(history) - self.options.max_history) :]
        past = [self._dictionary(entry.task, entry.action) for entry in shown]
        return chat(self.prompt(f"showui-{self.options.prompt}"), f"Task: {main_instruction(task)}", *past, self.image(task))

    def parse_response(self, task: StepTaskModel, text: str) -> ParsedResponse:
        first = text.strip().partition("\n")[0]
        if task.setting == "grounding" and is_place(first):
            return ParsedResponse(self.read_click(task, first))
        value = json_value(text)
        value = value[0] if isinstance(value, list) and value and isinstance(value[0], dict) else value
        name = value.get("action") if isinstance(value, dict) else None
        if not isinstance(value, dict) or not isinstance(name, str):
            raise ParseError(f"the response is no action: {text.strip()[:80]!r}")
        arguments = {key: item for key, item in value.items() if key != "action" and item is not None}
        action = self.read_call(task, name.upper() if name.upper() in self.table else name, arguments)
        if isinstance(action, act.Type) and "position" in arguments:
            click = self.read_click(task, arguments["position"])
            return ParsedResponse(action, batch=(click, action))
        return ParsedResponse(action)

    def write(self, task: StepTaskModel, action: act.Action, thought: str | None, conclusion: str | None) -> str:
        if task.setting == "grounding" and isinstance(action, act.Click):
            return str(self.write_place(task, action.point))
        return self._dictionary(task, action)

    def _dictionary(self, task: StepTaskModel, action: act.Action) -> str:
        name, arguments = self.write_call(task, action)
        return str({"action": name, "value": None, "position": None} | arguments)

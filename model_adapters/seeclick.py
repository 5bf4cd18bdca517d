"""SeeClick (Qwen-VL): a dictionary with AITW's action numbers, ``{"action_type": 4, "click_point": (0.50,0.75)}``.

Sources: njucckevin/SeeClick ``agent_tasks/aitw_test.py`` and ``aitw_process.py`` (prompt, history, answers),
``action_matching.py`` (what the numbers mean), ``pretrain/screenspot_test.py`` and ``readme.md`` (grounding, the frame),
``finetune/finetune.py`` (system message); google-research/android_in_the_wild (AITW's own numbers: 3 and 5 to 7, 10, 11).

Places are fractions of the screen with two decimals. The past is the last four actions as the model writes them, numbered from
0 in each prompt; an action without a number is given in words. Scrolls are named after the direction of the view: for "scroll
down" the finger goes up. No prompt with a step instruction is published, so it takes the goal's place. Grounding asks
for a point, as the authors recommend, and a box is read as its middle. Mind2Web's checkpoint writes a typed text as ``value``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from itertools import islice
from typing import Any

from guieval.actions import Action, ActionSpace, Click, Point, Scroll, Type, Unsupported
from guieval.errors import ParseError
from guieval.frames import PER_1000, Normalised, Size
from guieval.history import HistoryEntry
from guieval.models import ABCModel, Family, ImageRef, ModelInput, Options, ParsedResponse, chat, main_instruction
from guieval.models.parsing import MAX_REPAIR, clicked, json_value, numbers, tagged
from guieval.models.parsing import call_tables as calls
from guieval.steps import StepTaskModel

HUNDREDTHS = Normalised(1.0, digits=2)
PAST_STEPS = 4

_ALONE: dict[int, Action] = {
    # where the finger moves: action_matching.py draws 0 from (0.5, 0.8) to (0.5, 0.2) and 8 from (0.2, 0.5) to (0.8, 0.5)
    0: Scroll(point=calls.MIDDLE, direction="up"),
    1: Scroll(point=calls.MIDDLE, direction="down"),
    8: Scroll(point=calls.MIDDLE, direction="right"),
    9: Scroll(point=calls.MIDDLE, direction="left"),
    5: calls.BACK,
    6: calls.HOME,
    7: calls.ENTER,
    10: calls.FINISH,
    11: calls.IMPOSSIBLE,
}
"""The numbers without arguments. The format has no place for a scroll, so one is read from the middle of the screen."""


class SeeClick(ABCModel):
    """Adapter of SeeClick. It has no options: the model scales every screenshot to one size itself."""

    options: Options
    fixed_frame = HUNDREDTHS
    action_space = ActionSpace(types=frozenset({"CLICK", "SCROLL", "TYPE", "PRESS", "STOP"}))
    family = Family(2024, ("phone", "web", "grounding"), reader="makers")
    source = frame_source = "github.com/njucckevin/SeeClick agent_tasks/aitw_test.py, pretrain/screenspot_test.py"

    def prepare_input(self, task: StepTaskModel, history: Sequence[HistoryEntry]) -> ModelInput:
        if task.setting == "grounding":
            text = self.prompt("seeclick-grounding", instruction=task.instruction)
        else:
            past = "".join(f"Step{number}: {self._past_action(entry)}. " for number, entry in enumerate(history[-PAST_STEPS:]))
            text = self.prompt("seeclick-agent", instruction=main_instruction(task), history=past)
        # "Picture 1: <img></img>" and a line break, which the authors' tokenizer writes for an image, are the server's to write
        return chat(ImageRef(task), text, system=self.prompt("seeclick-system"))

    def parse_response(self, task: StepTaskModel, text: str) -> ParsedResponse:
        if task.setting == "grounding" and "{" not in text:
            return ParsedResponse(_place(text, task.screenshot_size))
        return ParsedResponse(_translate(_dictionary(text), task.screenshot_size))

    def write(self, task: StepTaskModel, action: Action, thought: str | None, conclusion: str | None) -> str:
        if task.setting == "grounding" and isinstance(action, Click):
            return _pair(action.point, task.screenshot_size)
        return _write(action, task.screenshot_size)

    def _past_action(self, entry: HistoryEntry) -> str:
        if entry.action in self.action_space:
            return _write(entry.action, entry.task.screenshot_size)
        return self.sentence(entry).removesuffix(".")


def _write(action: Action, size: Size) -> str:
    match action:
        case Click():
            return f'{{"action_type": 4, "click_point": {_pair(action.point, size)}}}'
        case Type():
            # the authors put the text between quotes as it is; if it has quotes itself, that cannot be read back
            return f'{{"action_type": 3, "typed_text": {json.dumps(action.text, ensure_ascii=False)}}}'
        case Scroll():
            action = action.model_copy(update={"point": calls.MIDDLE})
    number = next(number for number, other in _ALONE.items() if other == action)
    return f'{{"action_type": {number}}}'


def _pair(point: Point, size: Size) -> str:
    x, y = HUNDREDTHS.quantise(point, size)
    return f"({x:.2f},{y:.2f})"


_TYPED = re.compile(r'\{\s*"action_type"\s*:\s*"?3"?\s*,\s*"typed_text"\s*:\s*"')
_NEXT = re.compile(r"\{\s*[\"']action_type[\"']")
_TYPED_END = re.compile(r'"\s{0,9}\}')
_FULL_WIDTH = str.maketrans("（）［］｛｝，：“”", '()[]{},:""')


def _dictionary(text: str) -> dict[str, Any]:
    """The response's first action, however it is quoted; a typed text may hold quotes that are not escaped, as in training."""
    text = text[max(text.find("{"), 0) :]
    # further ones, which a model stuck in a loop writes without end, are not looked at
    following = _NEXT.search(text, 1)
    text = text[: following.start()] if following else text
    try:
        value = json_value(text)
    except ParseError:
        typed = _TYPED.match(text)
        ends = list(_TYPED_END.finditer(text, typed.end())) if typed is not None else []
        if typed is not None and ends:
            return {"action_type": 3, "typed_text": text[typed.end() : ends[-1].start()]}
        plain = text.translate(_FULL_WIDTH)
        if len(text) > MAX_REPAIR or plain == text or "typed_text" in text:
            raise
        value = json_value(plain)
    if not isinstance(value, dict):
        raise ParseError(f"the response is not an action: {value!r:.80}")
    return value


def _translate(arguments: dict[str, Any], size: Size) -> Action:
    action_type = arguments.get("action_type")
    # by its digits, since a number may be in quotes and True is not 1
    digits = re.fullmatch(r"\s*([0-9]{1,2})\s*", str(action_type))
    number = int(digits[1]) if digits else None
    if number in _ALONE:
        return _ALONE[number]
    match number:
        case 4:
            if "click_point" not in arguments:
                return Unsupported(name="click", arguments={}, known="CLICK", problem="the click gives no click_point")
            return clicked(arguments["click_point"], HUNDREDTHS, size)
        case 3:
            typed = arguments.get("typed_text", arguments.get("value"))
            if not isinstance(typed, str):
                raise ParseError(f"the response types no text: {typed!r:.80}")
            return Type(text=typed)
        case 2:  # Mind2Web's choice from a list
            return calls.selected("value").read(calls.Arguments("select", arguments, HUNDREDTHS, size))
    raise ParseError(f"the response's action_type {action_type!r:.80} is not an action of this family")


MAX_GROUPS = 500
"""How many texts in brackets are looked at; a model in a loop writes thousands."""
_GROUP = re.compile(r"[(（\[［]([^()（）\[\]［］]{1,80})[)）\]］]")


def _place(text: str, size: Size) -> Action:
    """The first place in brackets: a point or a box in fractions, or Qwen-VL's own ``<box>``, which is in thousandths."""
    box = tagged(text, "box")
    if box is not None:
        if not box.endswith(")"):
            raise ParseError(f"the response ends inside a box: {box[-80:]!r}")
        return clicked(box, PER_1000, size)
    for group in islice(_GROUP.finditer(text), MAX_GROUPS):
        try:
            coordinates = numbers(group[1])
        except ParseError:
            continue
        if len(coordinates) > 1:
            return clicked(list(coordinates), HUNDREDTHS, size)
    raise ParseError(f"the response has no place: {text.strip()[:80]!r}")

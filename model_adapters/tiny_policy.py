"""The tiny policy: a Qwen3-VL of three million weights trained on drawn icons, ``blue star click(512,037)``.

It is made by ``python -m guieval.training.tiny``, so the wire format is defined here. The prompt is the current screenshot, the
goal, and the past, one line a step: the model's own thought and action where it answered, the step instruction and the
reference action elsewhere. The reply's thought names what is tapped next; places are 0 to 999 per axis, always three digits.
The shipped checkpoint only clicks. Training can teach it the other actions.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from pydantic import Field

from guieval.actions import Action, ActionSpace, Click, LongPress, Open, Press, Scroll, Stop, Type, Unsupported, Wait
from guieval.errors import ParseError
from guieval.frames import PER_999, Size
from guieval.history import HistoryEntry, describe
from guieval.models import PATCH, ABCModel, ImageLimits, ModelInput, ParsedResponse, chat, main_instruction
from guieval.parsing import decoded
from guieval.steps import StepTaskModel, whole_text


class TinyOptions(ImageLimits):
    """The policy's prompts and replies."""

    words: bool = Field(True, description="whether replies and the past contain words, or actions alone")


class TinyPolicy(ABCModel):
    """Adapter of the tiny policy."""

    options: TinyOptions
    pixels = 4 * PATCH**2, 256 * PATCH**2
    """The limits of the checkpoint's own image processor."""
    fixed_frame = PER_999
    action_space = ActionSpace()
    source = "guieval.training.tiny, which trains it on this format"
    frame_source = "guieval.training.tiny"

    def prepare_input(self, task: StepTaskModel, history: Sequence[HistoryEntry]) -> ModelInput:
        lines = [main_instruction(task)]
        if task.setting == "high":  # a step instruction needs no past
            lines += [self._line(entry) for entry in history]
        return chat(self.image(task), "\n".join(lines))

    def parse_response(self, task: StepTaskModel, text: str) -> ParsedResponse:
        text = whole_text(text).strip()
        found = _ACTION.search(text) if text.endswith(")") else None
        if found is None:
            raise ParseError(f"the reply does not end in an action, such as click(X,Y): {text[-80:]!r}")
        return ParsedResponse(_action(found, task.screenshot_size), text[: found.start()].strip() or None)

    def write(self, task: StepTaskModel, action: Action, thought: str | None, conclusion: str | None) -> str:
        if thought is None and conclusion is not None and conclusion != describe(action):
            thought = conclusion.removeprefix("tap ")  # what a step instruction asks for, in the policy's words
        return self._reply(task, action, thought)

    def _line(self, entry: HistoryEntry) -> str:
        """A past step on one line: its text and its action, each where there is one."""
        sentence = entry.thought if entry.origin == "model" else entry.conclusion
        if isinstance(entry.action, Unsupported):
            return " ".join((sentence or describe(entry.action)).split())
        if sentence == describe(entry.action):
            sentence = None  # the description would give the place again, in another frame
        return " ".join(self._reply(entry.task, entry.action, sentence).split())

    def _reply(self, task: StepTaskModel, action: Action, thought: str | None) -> str:
        words = (thought or "").split() if self.options.words else []
        return " ".join([*words, _call(action, task.screenshot_size)])


_PLACE = "[0-9]{3},[0-9]{3}"
_ACTION = re.compile(
    rf"(?:click\((?P<click>{_PLACE})|hold\((?P<hold>{_PLACE})|swipe\((?P<swipe>{_PLACE}),(?P<direction>up|down|left|right)"
    r"|type\((?P<type>.*)|open\((?P<open>.*)|press\((?P<press>BACK|HOME|ENTER|RECENT)|(?P<wait>wait)\("
    r"|stop\((?P<stop>finish|impossible))\)\Z",
    re.DOTALL,
)


def _action(found: re.Match[str], size: Size) -> Action:
    """The action of a match of :data:`_ACTION`."""
    fields: dict[str, Any] = found.groupdict()
    place = fields["click"] or fields["hold"] or fields["swipe"]
    point: Any = decoded([int(number) for number in place.split(",")], PER_999, size) if place else None
    match found.lastgroup:
        case "click":
            return Click(point=point)
        case "hold":
            return LongPress(point=point)
        case "direction":
            return Scroll(point=point, direction=fields["direction"])
        case "type":
            return Type(text=fields["type"])
        case "open":
            return Open(app=fields["open"])
        case "press":
            return Press(button=fields["press"])
        case "wait":
            return Wait()
    return Stop(status=fields["stop"])


def _call(action: Action, size: Size) -> str:
    """The action as the policy writes it."""
    match action:
        case Click() | LongPress() | Scroll():
            x, y = PER_999.quantise(action.point, size)
            name, more = ("swipe", f",{action.direction}") if isinstance(action, Scroll) else (_TOUCHES[action.type], "")
            return f"{name}({x:03.0f},{y:03.0f}{more})"
        case Type():
            return f"type({action.text})"
        case Open():
            return f"open({action.app})"
        case Press():
            return f"press({action.button})"
        case Stop():
            return f"stop({action.status})"
    assert isinstance(action, Wait)
    return "wait()"


_TOUCHES = {"CLICK": "click", "LONG_PRESS": "hold"}

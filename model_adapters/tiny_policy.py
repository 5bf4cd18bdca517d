"""The tiny policy: a Qwen3-VL of three million weights trained on drawn icons, ``blue star click(512,037)``.

It is made by ``python -m guieval.playground.tiny_policy``, so the wire format is defined here. The prompt is the current
screenshot, the goal, and the past, one line a step: the model's own thought and action, or the step instruction and the
reference action if it did not answer. The thought names what is tapped next; places are 0 to 999 per axis, three digits each.
The shipped checkpoint only clicks. Training can teach it the other actions.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from pydantic import Field

from guieval.actions import BUTTONS, Action, ActionSpace, Point, Unsupported, Wait
from guieval.errors import ParseError
from guieval.frames import PER_999
from guieval.history import HistoryEntry, describe
from guieval.models import PATCH, ABCModel, Family, ImageLimits, ModelInput, ParsedResponse, chat, main_instruction
from guieval.models.parsing import call_tables as calls
from guieval.steps import StepTaskModel

CALLS = calls.CallTable(
    {
        "click": calls.tap("place"),
        "hold": calls.hold("place"),
        "swipe": calls.scrolled("direction", "place", needs_place=True),
        "type": calls.typed("text"),
        "open": calls.opened("app"),
        "press": calls.pressed("button", {name.lower(): name for name in BUTTONS}),
        "wait": Wait(),
        "stop": calls.stopped("status", {"finish": "finish", "impossible": "impossible"}),
    }
)


class TinyOptions(ImageLimits):
    """The policy's prompts and responses."""

    words: bool = Field(True, description="whether responses and the past contain words, or actions alone")


class TinyPolicy(ABCModel):
    """Adapter of the tiny policy."""

    options: TinyOptions
    table = CALLS
    pixels = 4 * PATCH**2, 256 * PATCH**2
    """The limits of the checkpoint's own image processor."""
    fixed_frame = PER_999
    action_space = ActionSpace()
    family = Family(2026, ("phone",))
    source = "guieval.playground.tiny_policy, which trains it on this format"
    frame_source = "guieval.playground.tiny_policy"

    def prepare_input(self, task: StepTaskModel, history: Sequence[HistoryEntry]) -> ModelInput:
        lines = [main_instruction(task)]
        if task.setting == "high":  # a step instruction needs no past
            lines += [self._line(entry) for entry in history]
        return chat(self.image(task), "\n".join(lines))

    def parse_response(self, task: StepTaskModel, text: str) -> ParsedResponse:
        text = text.strip()
        found = _ACTION.search(text) if text.endswith(")") else None
        if found is None:
            raise ParseError(f"the response does not end in an action, such as click(X,Y): {text[-80:]!r}")
        given = {group: value for group, value in found.groupdict().items() if value is not None}
        name = next(iter(given))
        arguments = {_ARGUMENTS.get(group, group): value for group, value in given.items()}
        return ParsedResponse(self.read_call(task, name, arguments), text[: found.start()].strip() or None)

    def write(self, task: StepTaskModel, action: Action, thought: str | None, conclusion: str | None) -> str:
        if thought is None and conclusion is not None and conclusion != describe(action):
            thought = conclusion.removeprefix("tap ")  # what a step instruction asks for, in the policy's words
        return self._reply(task, action, thought)

    def _line(self, entry: HistoryEntry) -> str:
        """A past step on one line: its text and its action, each if there is one."""
        sentence = entry.thought if entry.origin == "model" else entry.conclusion
        if isinstance(entry.action, Unsupported):
            return " ".join((sentence or describe(entry.action)).split())
        if sentence == describe(entry.action):
            sentence = None  # the description would give the place again, in another frame
        return " ".join(self._reply(entry.task, entry.action, sentence).split())

    def _reply(self, task: StepTaskModel, action: Action, thought: str | None) -> str:
        words = (thought or "").split() if self.options.words else []
        name, arguments = self.write_call(task, action)
        values = ",".join(map(str, arguments.values()))
        return " ".join([*words, f"{name}({values.upper() if name == 'press' else values})"])

    def write_place(self, task: StepTaskModel, point: Point) -> str:
        return ",".join(f"{side:03.0f}" for side in super().write_place(task, point))


_PLACE = "[0-9]{3},[0-9]{3}"
_ACTION = re.compile(
    rf"(?:click\((?P<click>{_PLACE})|hold\((?P<hold>{_PLACE})|swipe\((?P<swipe>{_PLACE}),(?P<direction>up|down|left|right)"
    r"|type\((?P<type>.*)|open\((?P<open>.*)|press\((?P<press>BACK|HOME|ENTER|RECENT)|(?P<wait>wait)\("
    r"|stop\((?P<stop>finish|impossible))\)\Z",
    re.DOTALL,
)
_ARGUMENTS = {"click": "place", "hold": "place", "swipe": "place", "type": "text", "open": "app"}
_ARGUMENTS |= {"press": "button", "stop": "status"}

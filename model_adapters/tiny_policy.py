"""The tiny policy: a Qwen3-VL of three million weights trained on drawn icons, ``blue star click(512,037)``.

It is made by ``python -m guieval.training.tiny``, so the wire format is defined here. The prompt is the current screenshot, the
goal, and the past, one line a step: the model's own thought and action where it answered, the step instruction and the
reference action elsewhere. The reply's thought names what is tapped next; places are 0 to 999 per axis, always three digits.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from guieval.actions import Action, ActionSpace, Click
from guieval.errors import ParseError
from guieval.frames import PER_999
from guieval.history import HistoryEntry, describe
from guieval.models import ModelInput, ParsedResponse
from guieval.parsing import decoded
from guieval.steps import StepTaskModel, whole_text

from ._family import PATCH, FamilyModel, chat, main_instruction


class TinyPolicy(FamilyModel):
    """Adapter of the tiny policy. It has no options: the checkpoint is built for this format alone."""

    pixels = 4 * PATCH**2, 256 * PATCH**2
    """The limits of the checkpoint's own image processor."""
    fixed_frame = PER_999
    action_space = ActionSpace(types=frozenset({"CLICK"}))
    source = "guieval.training.tiny, which trains it on this format"
    frame_source = "guieval.training.tiny"

    def prepare_input(self, task: StepTaskModel, history: Sequence[HistoryEntry]) -> ModelInput:
        lines = [main_instruction(task)]
        if task.setting == "high":  # a step instruction needs no past
            lines += [_line(entry) for entry in history]
        return chat(self._image(task), "\n".join(lines))

    def parse_response(self, task: StepTaskModel, text: str) -> ParsedResponse:
        text = whole_text(text).strip()
        start = text.rfind("click(")
        place = _PLACE.fullmatch(text, start) if start >= 0 else None
        if place is None:
            raise ParseError(f"the reply does not end in click(X,Y): {text[-80:]!r}")
        point = decoded([int(place[1]), int(place[2])], PER_999, task.screenshot_size)
        return ParsedResponse(Click(point=point), text[:start].strip() or None)

    def _written(self, task: StepTaskModel, action: Action, thought: str | None, conclusion: str | None) -> str:
        assert isinstance(action, Click)
        if thought is None and conclusion is not None and conclusion != describe(action):
            thought = conclusion.removeprefix("tap ")  # what a step instruction asks for, in the policy's words
        x, y = PER_999.quantise(action.point, task.screenshot_size)
        return " ".join([*(thought or "").split(), f"click({x:03.0f},{y:03.0f})"])


_PLACE = re.compile(r"click\(([0-9]{3}),([0-9]{3})\)")


def _line(entry: HistoryEntry) -> str:
    """A past step on one line: its text and its place, each where there is one."""
    sentence = entry.thought if entry.origin == "model" else entry.conclusion
    if sentence == describe(entry.action) and isinstance(entry.action, Click):
        sentence = None  # the description would give the place again, in another frame
    words = (sentence or "").split()
    if isinstance(entry.action, Click):
        x, y = PER_999.quantise(entry.action.point, entry.task.screenshot_size)
        return " ".join([*words, f"click({x:03.0f},{y:03.0f})"])
    return " ".join(words or describe(entry.action).split())

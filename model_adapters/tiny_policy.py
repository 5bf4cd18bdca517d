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
from guieval.frames import PER_999, Frame
from guieval.history import HistoryEntry, describe
from guieval.models import ABCModel, ImageRef, Message, ModelConfig, ModelInput, ParsedResponse
from guieval.parsing import decoded, well_formed
from guieval.steps import StepTaskModel

from ._options import Options, read_options
from ._prompting import sent_size, told_instruction

FACTOR = 28
MIN_PIXELS, MAX_PIXELS = 4 * FACTOR**2, 256 * FACTOR**2
"""Limits of the checkpoint's own image processor."""


class TinyPolicy(ABCModel):
    """Adapter of the tiny policy. It has no options: the checkpoint is built for this format alone."""

    action_space = ActionSpace(types=frozenset({"CLICK"}))
    source = "guieval.training.tiny, which trains it on this format"

    def __init__(self, config: ModelConfig, *, thinking: bool | None = None) -> None:
        super().__init__(config, thinking=thinking)
        read_options(Options, config)

    def frame(self, task: StepTaskModel) -> Frame:
        return PER_999

    def prepare_input(self, task: StepTaskModel, history: Sequence[HistoryEntry]) -> ModelInput:
        lines = [told_instruction(task)]
        if task.setting == "high":  # a step instruction needs no past
            lines += [_line(entry) for entry in history]
        image = ImageRef(task, sent_size(task.screenshot_size, FACTOR, MIN_PIXELS, MAX_PIXELS))
        return ModelInput((Message("user", (image, "\n".join(lines))),))

    def parse_response(self, task: StepTaskModel, text: str) -> ParsedResponse:
        text = well_formed(text).strip()
        start = text.rfind("click(")
        place = _PLACE.fullmatch(text, start) if start >= 0 else None
        if place is None:
            raise ParseError(f"the reply does not end in click(X,Y): {text[-80:]!r}")
        point = decoded([int(place[1]), int(place[2])], PER_999, task.screenshot_size)
        return ParsedResponse(Click(point=point), text[:start].strip() or None)

    def render(self, task: StepTaskModel, action: Action, thought: str | None = None, conclusion: str | None = None) -> str:
        if not isinstance(action, Click):
            raise ValueError(f"the tiny policy cannot say {action!r}")
        if thought is None and conclusion is not None and conclusion != describe(action):
            thought = conclusion.removeprefix("tap ")  # what a step instruction asks for, as the policy would say it
        x, y = PER_999.quantise(action.point, task.screenshot_size)
        return " ".join([*(thought or "").split(), f"click({x:03.0f},{y:03.0f})"])


_PLACE = re.compile(r"click\(([0-9]{3}),([0-9]{3})\)")


def _line(entry: HistoryEntry) -> str:
    """A past step on one line: its text and its place, each where there is one."""
    said = entry.thought if entry.origin == "model" else entry.conclusion
    if said == describe(entry.action) and isinstance(entry.action, Click):
        said = None  # the description would tell the place again, in another frame
    words = (said or "").split()
    if isinstance(entry.action, Click):
        x, y = PER_999.quantise(entry.action.point, entry.task.screenshot_size)
        return " ".join([*words, f"click({x:03.0f},{y:03.0f})"])
    return " ".join(words or describe(entry.action).split())

"""What a user writes first: an adapter, a run and a reward. `make types` checks it against the installed package."""

from __future__ import annotations

from collections.abc import Sequence

import guieval
from guieval import (
    ABCModel,
    Action,
    ActionSpace,
    Click,
    HistoryEntry,
    ImageRef,
    Message,
    ModelInput,
    ParsedResponse,
    ParseError,
    Point,
    StepTaskModel,
)
from guieval.frames import PER_1000
from guieval.reports.opened import OpenedOnlineRun


class Centre(ABCModel):
    """A model that answers with a place, such as ``500 500``."""

    action_space = ActionSpace(types=frozenset({"CLICK"}))
    fixed_frame = PER_1000

    def prepare_input(self, task: StepTaskModel, history: Sequence[HistoryEntry]) -> ModelInput:
        image = ImageRef(task)
        return ModelInput(messages=(Message("user", (image, task.instruction)),))

    def parse_response(self, task: StepTaskModel, text: str) -> ParsedResponse:
        try:
            x, y = (float(word) for word in text.split())
        except ValueError:
            raise ParseError(f"expected two numbers, got {text!r}") from None
        action: Action = Click(point=Point(x, y))
        return ParsedResponse(action)


def evaluate(directory: str) -> int:
    """Steps of a run that is already there, judged under its own protocol."""
    run = guieval.open_run(directory)
    return 0 if isinstance(run, OpenedOnlineRun) else len(run.steps())

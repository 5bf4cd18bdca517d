"""Two agents that follow a script: one always taps the middle of the screen, the other taps a place the task's words decide."""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence

from guieval.actions import Action, ActionSpace, Click, Point, Scroll, Stop, action_from_json
from guieval.errors import ParseError
from guieval.frames import PER_1000
from guieval.history import HistoryEntry
from guieval.models import ABCModel, ModelInput, ParsedResponse, Request, chat
from guieval.steps import StepTaskModel
from tests.json_values import read_json


class Scripted(ABCModel):
    """Answers in JSON; ``scripted-middle`` and ``scripted-hash`` differ in :meth:`respond` by their checkpoint's name."""

    action_space = ActionSpace()
    fixed_frame = PER_1000

    def prepare_input(self, task: StepTaskModel, history: Sequence[HistoryEntry]) -> ModelInput:
        asked = json.dumps({"goal": task.instruction, "past": len(history)})
        return chat(asked, self.image(task))

    def parse_response(self, task: StepTaskModel, text: str) -> ParsedResponse:
        try:
            return ParsedResponse(action_from_json(text))
        except ValueError as error:
            raise ParseError(f"no action in {text!r:.40}") from error

    def render(self, task: StepTaskModel, action: Action, thought: str | None = None, conclusion: str | None = None) -> str:
        return action.model_dump_json()

    def respond(self, request: Request) -> str:
        asked = read_json(request.input.text)
        action: Action = Click(point=Point(500.0, 500.0))
        if self.config.name == "scripted-hash":
            number = zlib.crc32(f"{asked['goal']}|{asked['past']}".encode())
            choices = (
                Click(point=Point(number % 1001, number // 1001 % 1001)),
                Scroll(point=Point(500, 500), direction="up"),
                Stop(),
            )
            action = choices[min(2, number // 1002001 % 5)]
        return action.model_dump_json()

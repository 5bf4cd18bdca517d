"""An agent that knows the answers, follows a distractor on 6 steps of 10, and a neutral box on 2 of these."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

from guieval.actions import ActionSpace, Click, Point, action_from_json
from guieval.frames import PER_999
from guieval.history import HistoryEntry
from guieval.models import ABCModel, ModelInput, ParsedResponse, Request, chat
from guieval.steps import StepTaskModel


def follows(episode: str, step: int, *, neutral: bool) -> bool:
    return zlib.crc32(f"{episode} {step}".encode()) % 10 < (2 if neutral else 6)


class Lured(ABCModel):
    action_space = ActionSpace()
    fixed_frame = PER_999

    def prepare_input(self, task: StepTaskModel, history: Sequence[HistoryEntry]) -> ModelInput:
        action, how = task.action, task.perturbation
        neutral = how is not None and how.variant.endswith("neutral")
        if how is not None and len(how.lure) and follows(task.episode_id, task.step_index, neutral=neutral):
            left, top, right, bottom = how.lure[0]
            action = Click(point=Point((left + right) / 2, (top + bottom) / 2))
        return chat(action.model_dump_json(), self.image(task))

    def parse_response(self, task: StepTaskModel, text: str) -> ParsedResponse:
        return ParsedResponse(action_from_json(text))

    def respond(self, request: Request) -> str:
        return request.input.text

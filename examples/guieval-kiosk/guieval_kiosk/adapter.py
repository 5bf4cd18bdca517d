"""``kiosk_agent``: one call a reply, ``touch(x=312, y=440)`` or ``done()``, with points in pixels of the screenshot."""

from collections.abc import Sequence

from guieval import ABCModel, Action, ActionSpace, HistoryEntry, ModelInput, ParsedResponse
from guieval import StepTaskModel as Step
from guieval.frames import PIXELS
from guieval.models import chat, fill
from guieval.models.parsing import CallTable, call_text, first_call
from guieval.models.parsing.call_tables import FINISH, XY, tap

PROMPT = """You stand in front of a ticket machine. Task: {instruction}
So far: {history}
Reply with touch(x=..., y=...) in pixels, or with done()."""


class KioskAgent(ABCModel):
    """Touches and stops; it has no other actions."""

    action_space = ActionSpace(frozenset({"CLICK", "STOP"}), buttons=frozenset(), statuses=frozenset({"finish"}))
    fixed_frame = PIXELS
    table = CallTable(touch=tap(*XY), done=FINISH)

    def prepare_input(self, task: Step, history: Sequence[HistoryEntry]) -> ModelInput:
        past = [self.render(entry.task, entry.action) for entry in history if entry.action in self.action_space]
        return chat(fill(PROMPT, instruction=task.instruction, history=", ".join(past) or "nothing"), self.image(task))

    def parse_response(self, task: Step, text: str) -> ParsedResponse:
        call = first_call(text, self.table)
        return ParsedResponse(self.read_call(task, call.name, call.arguments))

    def write(self, task: Step, action: Action, thought: str | None, conclusion: str | None) -> str:
        return call_text(*self.write_call(task, action))

"""``kiosk_agent``: one call a reply, ``touch(x=312, y=440)`` or ``done()``, with points in pixels of the screenshot."""

from collections.abc import Sequence

from guieval import ABCModel, Action, ActionSpace, Click, HistoryEntry, ImageRef, Message, ModelInput, ParsedResponse, Stop
from guieval import StepTaskModel as Step
from guieval.errors import ParseError
from guieval.frames import PIXELS, Frame
from guieval.models import fill
from guieval.parsing import decoded, first_call

PROMPT = """You stand in front of a ticket machine. Task: {instruction}
So far: {history}
Reply with touch(x=..., y=...) in pixels, or with done()."""


class KioskAgent(ABCModel):
    """Touches and stops; it has no other actions."""

    action_space = ActionSpace(frozenset({"CLICK", "STOP"}), buttons=frozenset(), statuses=frozenset({"finish"}))

    def frame(self, task: Step) -> Frame:
        return PIXELS

    def prepare_input(self, task: Step, history: Sequence[HistoryEntry]) -> ModelInput:
        past = [self.render(entry.task, entry.action) for entry in history if entry.action in self.action_space]
        text = fill(PROMPT, instruction=task.instruction, history=", ".join(past) or "nothing")
        return ModelInput((Message("user", (text, ImageRef(task))),))

    def parse_response(self, task: Step, text: str) -> ParsedResponse:
        call = first_call(text, ("touch", "done"))
        if call.name == "done":
            return ParsedResponse(Stop())
        if {"x", "y"} - set(call.arguments):
            raise ParseError(f"expected touch(x=..., y=...), got {call.text!r:.80}")
        point = (call.arguments["x"], call.arguments["y"])
        return ParsedResponse(Click(point=decoded(point, self.frame(task), task.screenshot_size)))

    def render(self, task: Step, action: Action, thought: str | None = None, conclusion: str | None = None) -> str:
        if action not in self.action_space:
            raise ValueError(f"this family has no call for {action.type}")
        if isinstance(action, Click):
            x, y = self.frame(task).quantise(action.point, task.screenshot_size)
            return f"touch(x={x}, y={y})"
        return "done()"

"""Two agents and a judge whose every answer follows from the prompt, so that a pinned run can be resumed to the same figures.

An adapter file, as ``--adapter`` takes it. The manifests of the pinned runs hold its SHA-256: after any change of it, a comment
included, no pinned run of these agents can be resumed, and all folders have to be made anew.

The agents know the right action (a step's reference, the phone's solver, or the recorded expert of a web page) and err by dice
that are thrown with the prompt: near the target, in the text, in the type, in a form that cannot be read, in an action that no
benchmark has; ``hasty`` also fails with an exception. It errs more than ``careful``, and all err less after steps of their own.
"""

import json
import random
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from guieval.actions import (
    Action,
    ActionSpace,
    Click,
    LongPress,
    Open,
    Point,
    Press,
    Scroll,
    Stop,
    Type,
    Unsupported,
    Wait,
    action_from_json,
)
from guieval.engines import parse_request_id
from guieval.errors import ParseError
from guieval.frames import PER_1000, Frame
from guieval.history import HistoryEntry
from guieval.models import ABCModel, ImageRef, Message, ModelInput, ParsedResponse, Request
from guieval.playground.phone import generate_episode
from guieval.steps import StepTaskModel

ACCURACY = {"careful": 0.75, "hasty": 0.45}
"""How often a name's agent is right with the reference's past; the judges are right as often as ``careful`` is."""
GAIN = 0.2
"""What a past of its own adds."""


class Agent(ABCModel):
    """Answers with a line ``Thought:`` and a line ``Action:`` with an action as JSON."""

    action_space = ActionSpace()
    fixes_thought = True

    def frame(self, task: StepTaskModel) -> Frame:
        return PER_1000

    def prepare_input(self, task: StepTaskModel, history: Sequence[HistoryEntry]) -> ModelInput:
        past = [{"own": entry.origin == "model", "action": json.loads(entry.action.model_dump_json())} for entry in history]
        asked = json.dumps({"goal": task.instruction, "step": task.step_index, "past": past})
        return ModelInput((Message("user", (asked, ImageRef(task))),))

    def prepare_fixed_thought(self, task: StepTaskModel, history: Sequence[HistoryEntry], thought: str) -> ModelInput:
        messages = self.prepare_input(task, history).messages
        return ModelInput((*messages, Message("assistant", (f"Thought: {thought}\nAction: ",))), prefill=True)

    def parse_response(self, task: StepTaskModel, text: str) -> ParsedResponse:
        thought, _, action = text.rpartition("Action: ")
        try:
            return ParsedResponse(action_from_json(action), thought.removeprefix("Thought: ").strip() or None)
        except ValueError as error:
            raise ParseError(f"no action in {text!r:.40}") from error

    def render(self, task: StepTaskModel, action: Action, thought: str | None = None, conclusion: str | None = None) -> str:
        return f"Thought: {thought or ''}\nAction: {action.model_dump_json()}"

    def respond(self, request: Request) -> str:
        text, task = request.input.text, request.task
        if "Next Action Hint" in text:
            return f"<think>This leads to part {task.step_index + 1} of the task.</think>"
        _, sample = parse_request_id(request.request_id)
        dice = random.Random(f"{self.config.name}|{task.episode_id}|{request.sampling.get('seed')}|{sample}|{text}")
        past: list[dict[str, Any]] = json.loads(request.input.messages[0].parts[0])["past"]  # type: ignore[arg-type]
        own = sum(entry["own"] for entry in past) / len(past) if past else 0.0
        right = known(task, past)
        action: Action | None
        if dice.random() < ACCURACY.get(self.config.name, ACCURACY["careful"]) + GAIN * own:
            thought, action = f"Part {task.step_index + 1} is to {right.type.lower()}.", shaken(right, dice)
        else:
            thought, action = "I am not sure, so I try this.", slip(self.config.name, right, dice)
        if action is None:
            return "I do not know what to do on this screen."
        reply = action.model_dump_json()
        return reply if request.input.prefill else f"Thought: {thought}\nAction: {reply}"


def known(task: StepTaskModel, past: Sequence[dict[str, Any]]) -> Action:
    """The right action; where a device is acted on, that of the solver or expert after as many steps other than a ``WAIT``."""
    if task.episode_id.startswith("s0-"):
        script: list[Action] = [step.action for step in generate_episode(0, int(task.episode_id[3:])).steps]
    elif task.episode_id in pages():
        script = pages()[task.episode_id]
    else:
        return task.action
    done: int = sum(entry["action"]["type"] != "WAIT" for entry in past)
    acted: list[Action] = [action for action in script if action.type != "WAIT"]
    return acted[min(done, len(acted) - 1)]


@cache
def pages() -> dict[str, list[Action]]:
    """What the expert did on each web page, by the page's name."""
    file = Path(__file__).with_name("expert.json")
    recorded = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    return {name: [action_from_json(action) for action in actions] for name, actions in recorded.items()}


def shaken(right: Action, dice: random.Random) -> Action:
    """The same action by a finger that is not quite steady."""
    match right:
        case Click() | LongPress():
            return right.model_copy(update={"point": moved(right.point, dice, 4.0)})
        case _:
            return right


def slip(name: str, right: Action, dice: random.Random) -> Action | None:
    """An answer that is mostly wrong; ``None`` for one without an action. ``hasty`` may also raise ``RuntimeError``."""
    match dice.randrange(14):
        case 0 if name == "hasty":
            raise RuntimeError("the agent has fallen asleep")
        case 1:
            return None
        case 2:
            return Unsupported(name="zoom", arguments={"by": 2})
        case 3:
            return Press(button="RECENT")
        case 4 | 5 | 6:
            others: list[Action] = [Press(button="BACK"), Wait(), Scroll(point=Point(500.0, 500.0), direction="up"), Stop()]
            return dice.choice(others)
        case _:
            return missed(right, dice)


def missed(right: Action, dice: random.Random) -> Action:
    """The right type with another target, near or far."""
    match right:
        case Click() | LongPress():
            return right.model_copy(update={"point": moved(right.point, dice, dice.choice([40.0, 120.0, 400.0]))})
        case Type():
            return Type(text=dice.choice([right.text[:-1], right.text.lower(), f"{right.text} please", "tea"]))
        case Open():
            return Open(app=dice.choice([right.app.upper(), "Files"]))
        case Scroll():
            return right.model_copy(update={"direction": dice.choice(["up", "down", "left"])})
        case Press():
            return Press(button=dice.choice(["HOME", "ENTER"]))
        case Stop():
            return Stop(status="impossible" if right.status == "finish" else "finish")
        case _:
            return Click(point=Point(500.0, 500.0))


def moved(point: Point, dice: random.Random, deviation: float) -> Point:
    """A point beside another one."""
    x, y = (round(min(1000.0, max(0.0, dice.gauss(at, deviation))), 1) for at in point)
    return Point(x, y)

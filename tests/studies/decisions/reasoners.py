"""Scripted policies that think of an action and execute it, or another; judges that execute what they were made to think."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from random import Random
from typing import TypeAlias

from guieval.actions import Action, Click, Point, Press, Wait, action_from_json
from guieval.data.benchmark import ABCBenchmark
from guieval.models import ABCModel
from guieval.playground.mock_server import MockServer, MockSettings
from guieval.playground.mock_server.answers import PolicyResponse
from guieval.playground.mock_server.app import Tag
from guieval.registry import load_model
from guieval.steps import StepKey, StepTaskModel

_INTENT = re.compile(r"\{.*\}")
Plan: TypeAlias = Callable[[StepTaskModel], tuple[Action | None, Action | None]]
"""What is thought of and what is done at a step; ``None`` for no thought, and for no action."""
GARBAGE = "I would rather not say."


def thought_for(action: Action) -> str:
    """A thought that tells what is meant, to people and to a scripted judge."""
    return f"The next part of the task is on this screen, so I do this: {action.model_dump_json()}"


def intent_of(text: str) -> Action:
    """The action that a thought tells of."""
    found = _INTENT.search(text)
    assert found is not None, text
    return action_from_json(json.loads(found.group()))


def begun_turn(body: bytes) -> str:
    """The assistant's unfinished turn of a request that has one."""
    values = json.loads(body)
    assert values["continue_final_message"] is True and values["add_generation_prompt"] is False
    last = values["messages"][-1]
    assert last["role"] == "assistant"
    content = last["content"]
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


def continued(model: ABCModel, task: StepTaskModel, action: Action, begun: str) -> str:
    """What the model adds to a begun turn: its reply without what stands there already."""
    reply = model.render(task, action)
    overlap = next(size for size in range(len(reply), -1, -1) if begun.endswith(reply[:size]))
    return reply[overlap:]


def elsewhere(action: Action) -> Action:
    """An action that a judge takes for another decision: far away, or of another type."""
    if isinstance(action, Click):
        return Click(point=Point((action.point.x + 500) % 1000, (action.point.y + 500) % 1000))
    return Wait() if action.type != "WAIT" else Press(button="HOME")


def shaken(action: Action, source: Random, spread: float) -> Action:
    """A click a little beside, whole thousandths; anything else as it is."""
    if not isinstance(action, Click):
        return action
    x, y = (min(max(value + source.uniform(-spread, spread), 0.0), 1000.0) for value in action.point)
    return Click(point=Point(round(x), round(y)))


def reasoner(name: str, benchmark: ABCBenchmark, plan: Plan) -> MockServer:
    """A server that thinks and executes according to ``plan``."""
    model = load_model(name)
    tasks = {task.key: task for episode in benchmark for task in episode.steps}

    def answer(tag: Tag, body: bytes) -> PolicyResponse:
        assert tag.key is not None
        task = tasks[tag.key]
        intent, action = plan(task)
        if action is None:
            return PolicyResponse(f"<thinking>\n{'' if intent is None else thought_for(intent)}\n</thinking>\n{GARBAGE}")
        return PolicyResponse(model.render(task, action, None if intent is None else thought_for(intent)))

    return MockServer(MockSettings(served_models=(name,)), answers=answer)


def judge(name: str, benchmark: ABCBenchmark, faithful: float, *, silent: float = 0.0) -> MockServer:
    """A server that does what it is made to think with probability ``faithful``, else another thing; ``silent``: nothing."""
    model = load_model(name)
    tasks: dict[StepKey, StepTaskModel] = {task.key: task for episode in benchmark for task in episode.steps}

    def answer(tag: Tag, body: bytes) -> PolicyResponse:
        assert tag.key is not None
        begun = begun_turn(body)
        source = Random(f"{name} {tag.name}")
        intent = intent_of(begun)
        if source.random() < silent:
            return PolicyResponse(GARBAGE)
        action = shaken(intent, source, 15.0) if source.random() < faithful else elsewhere(intent)
        if action not in model.action_space:
            return PolicyResponse(GARBAGE)
        return PolicyResponse(continued(model, tasks[tag.key], action, begun))

    return MockServer(MockSettings(served_models=(name,)), answers=answer)

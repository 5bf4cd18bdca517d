"""Short words for the tests of protocols: steps, actions by their numbers, and how a named protocol judges one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from guieval.actions import Action, Click, Point, Scroll
from guieval.evaluation import ActionEvaluator
from guieval.steps import StepOutcome, StepTaskModel
from tests import made_runs

MIDDLE = Point(500, 500)


def step(
    action: Action, elements: Sequence[Sequence[float]] = (), *, dataset: str = "androidcontrol", **more: Any
) -> StepTaskModel:
    """A step with the fields that a rule reads; the rest has defaults."""
    return made_runs.step(action, dataset=dataset, elements=elements, **more)


def click(x: float, y: float) -> Click:
    return Click(point=Point(x, y))


def scroll(direction: Any, at: Point = MIDDLE) -> Scroll:
    return Scroll(point=at, direction=direction)


def judged(protocol: str, task: StepTaskModel, action: Action) -> StepOutcome:
    return ActionEvaluator(protocol).evaluate(task, action)


def matches(protocol: str, task: StepTaskModel, action: Action) -> tuple[bool, bool]:
    outcome = judged(protocol, task, action)
    return outcome.type_match, outcome.exact_match


def right(protocol: str, task: StepTaskModel, action: Action) -> bool:
    return judged(protocol, task, action).exact_match

"""Reads a reply and scores it: the model's mistakes are kept apart from an adapter's bugs.

A run, a second reading of its journal and a predictions file all go through :func:`read_reply`, so that they agree. What
comes out of it can be written to a journal and is read back equal; how the model was queried does not matter here.
"""

from __future__ import annotations

import math
from typing import Any, Literal

from guieval.actions import Action, Answer, DeviceAction, Hotkey, Open, Type, Unsupported
from guieval.errors import ParseError, in_short
from guieval.evaluation import ActionEvaluator
from guieval.models import ABCModel
from guieval.steps import Sample, StepError, StepOutcome, StepTaskModel, whole_text

DEEPEST = 100
"""Levels of nesting kept of an unsupported call's arguments; JSON readers give up at about 200 for the whole record."""


def read_reply(
    model: ABCModel,
    evaluator: ActionEvaluator,
    task: StepTaskModel,
    text: str,
    *,
    reasoning: str | None = None,
    **answered: Any,
) -> Sample:
    """The sample that a reply makes: parsed by ``model``, scored by ``evaluator``. Raises nothing.

    ``answered`` are further fields of :class:`Sample` (usage, timing). A reply without an action is the model's mistake; any
    other exception is the adapter's bug, which is not scored against the model: the reply is kept, to be read again.
    """
    answered |= {"raw_response": whole_text(text), "reasoning": None if reasoning is None else whole_text(reasoning)}
    try:
        try:
            parsed = model.parse_response(task, answered["raw_response"])
        except ParseError as error:
            problem = StepError(stage="parse", message=whole_text(str(error)))
            return Sample(**answered, error=problem, outcome=evaluator.evaluate(task, None))
        action = storable(parsed.action)
        thought, conclusion = (part if part is None else whole_text(part) for part in (parsed.thought, parsed.conclusion))
        thought = thought or answered["reasoning"]
        batch = tuple(map(storable, parsed.batch))
        outcome = evaluator.evaluate(task, action)
        return Sample(**answered, action=action, batch=batch, thought=thought, conclusion=conclusion, outcome=outcome)
    except Exception as error:  # an adapter may be anyone's code
        return failed_sample("parse", f"{type(error).__name__}: {error}", **answered)


def failed_sample(
    stage: Literal["screenshot", "prepare", "generate", "parse", "environment"], message: str, **answered: Any
) -> Sample:
    """The sample of a step that could not be measured, and why."""
    message = in_short(whole_text(message))
    outcome = StepOutcome(verdict="infrastructure_failure", reason=message)
    return Sample(**answered, error=StepError(stage=stage, message=message), outcome=outcome)


def storable(action: Action) -> Action:
    """The action, changed only where JSON could not give it back: half surrogate pairs, NaN, deep nesting, foreign objects."""
    match action:
        case Type():
            return action.model_copy(update={"text": whole_text(action.text)})
        case Open():
            return action.model_copy(update={"app": whole_text(action.app)})
        case Unsupported():
            plain = {"name": whole_text(action.name), "arguments": _plain(action.arguments, DEEPEST)}
            return action.model_copy(update=plain | {"device": _storable_device(action.device)})
    return action


def _storable_device(action: DeviceAction | None) -> DeviceAction | None:
    match action:
        case Hotkey():
            return Hotkey(keys=tuple(map(whole_text, action.keys)))
        case Answer():
            return Answer(text=whole_text(action.text))
    return action


def _plain(value: Any, levels: int) -> Any:
    match value:
        case None | bool():
            return value
        case str():
            return whole_text(value)
        case int() if abs(value) < 10**300:
            return value
        case float():
            return value if math.isfinite(value) else None
        case dict() if levels:
            return {whole_text(str(key)): _plain(item, levels - 1) for key, item in value.items()}
        case list() | tuple() if levels:
            return [_plain(item, levels - 1) for item in value]
    return "..."

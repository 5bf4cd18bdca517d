"""Reads a response and scores it: the model's mistakes are kept apart from the server's failures and an adapter's bugs.

A run, a second reading of its journal, a predictions file and a reward all go through :func:`read_response`, so that they
agree. What comes out of it can be written to a journal and is read back equal; how the model was queried does not matter.
"""

from __future__ import annotations

import math
from typing import Any, Literal

from guieval.actions import Action, Answer, Ask, DeviceAction, Hotkey, Open, Type, Unsupported
from guieval.errors import ParseError, in_short, whole_text
from guieval.evaluation import ActionEvaluator
from guieval.models import ABCModel, Response
from guieval.models.faults import fault_of
from guieval.steps import Sample, Stage, StepError, StepOutcome, StepTaskModel

DEEPEST = 100
"""Levels of nesting kept of an unsupported call's arguments; JSON readers give up at about 200 for the whole record."""


def read_response(
    model: ABCModel, evaluator: ActionEvaluator, task: StepTaskModel, response: Response | str, *, seconds: float | None = None
) -> Sample:
    """The sample that a response makes: parsed by ``model``, scored by ``evaluator``. Raises nothing.

    ``seconds`` is how long it took. A response without an action is the model's mistake. One that the server broke off says
    nothing about the model, and any other exception than :class:`ParseError` is the adapter's bug: neither is scored, and the
    text is kept, to be read again.
    """
    response = Response.of(response)
    answered: dict[str, Any] = {
        "raw_response": response.written,
        "reasoning": response.reasoning,
        "usage": response.usage,
        "other_usage": response.other_usage,
        "finish_reason": response.finish_reason,
        "seconds": seconds,
        "attempts": response.attempts,
        "logprob": response.logprob,
        "in_reasoning": response.in_reasoning,
        "key_removed": response.key_removed,
    }
    if response.broken_off:
        return failed_sample("generate", f"the server broke the response off ({response.finish_reason})", **answered)
    try:
        try:
            parsed = model.parse_response(task, response.readable)
        except ParseError as error:
            problem = StepError(stage="parse", message=_why_unread(response, whole_text(str(error))))
            return Sample(**answered, error=problem, outcome=evaluator.evaluate(task, None))
        action = storable(parsed.action)
        thought, conclusion = (part if part is None else whole_text(part) for part in (parsed.thought, parsed.conclusion))
        thought = thought or (None if response.in_reasoning else response.reasoning)
        read: dict[str, Any] = {"batch": tuple(map(storable, parsed.batch)), "stage": parsed.stage}
        outcome = evaluator.evaluate(task, action)
        return Sample(**answered, **read, action=action, thought=thought, conclusion=conclusion, outcome=outcome)
    except Exception as error:  # an adapter may be anyone's code
        return failed_adapter(model, "parse_response", error, "parse", **answered)


def _why_unread(response: Response, problem: str) -> str:
    """Why a response has no action, if its text does not tell."""
    if response.ended == "filter":
        return f"the server's filter withheld the response ({response.finish_reason}): {problem}"
    if response.written.strip() or not (response.reasoning or "").strip():
        return problem
    if response.ended == "length":
        return f"the limit of tokens ended the response within its reasoning: {problem}"
    return f"the response is empty but for its reasoning, and in that {problem}"


def failed_adapter(
    model: ABCModel, method: str, error: Exception, stage: Literal["prepare", "parse"], about: str = "", **answered: Any
) -> Sample:
    """The sample of a step at which a method of the adapter failed: its fault, or at ``stage`` what it refused."""
    fault = fault_of(model, error, method)
    if fault is None:
        return failed_sample(stage, f"{about}{type(error).__name__}: {error}", **answered)
    return failed_sample("adapter", fault, **answered)


def failed_sample(stage: Stage, message: str, **answered: Any) -> Sample:
    """The sample of a step that could not be measured, and why."""
    message = in_short(whole_text(message))
    outcome = StepOutcome(verdict="infrastructure_failure", reason=message)
    return Sample(**answered, error=StepError(stage=stage, message=message), outcome=outcome)


def storable(action: Action) -> Action:
    """The action, changed only if JSON could not give it back: half surrogate pairs, NaN, deep nesting, foreign objects."""
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
        case Answer() | Ask():
            return type(action)(text=whole_text(action.text))
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

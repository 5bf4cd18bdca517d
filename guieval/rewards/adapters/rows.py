"""Functions shared by all adapters: they read the step, the response's text and the scorer's name from a framework's row."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import Any

from pydantic import ValidationError

from guieval.errors import UsageError, first_problem
from guieval.registry import load_model
from guieval.rewards.response import ResponseScorer, ScoredResponse
from guieval.rewards.shapes import weighed
from guieval.steps import StepTaskModel

TASK = "task"
"""The name of the column, or of the key, with the step."""


def task_of(value: Any) -> StepTaskModel:
    """The step in a column: its JSON text (the same text is read once), the parsed object, or the record itself.

    Raises :class:`UsageError` that names the field for anything else.
    """
    if isinstance(value, StepTaskModel):
        return value
    if value is None:
        raise UsageError(f"a row has no {TASK!r} (or ground truth) with its step, the text of StepTaskModel.model_dump_json()")
    try:
        return _read(value) if isinstance(value, str) else StepTaskModel.model_validate(value)
    except ValidationError as error:
        problem = first_problem(error)
        raise UsageError(
            f"the {TASK!r} of a row must be the text of StepTaskModel.model_dump_json(), got {value!r:.80} "
            f"(field {problem.field or '(whole value)'}: {problem.message})"
        ) from None


@lru_cache(maxsize=4096)
def _read(text: str) -> StepTaskModel:
    return StepTaskModel.model_validate_json(text)


def column(columns: Mapping[str, Any], count: int) -> list[StepTaskModel]:
    """The steps of a batch's ``task`` column. Raises :class:`UsageError` if there is none, or one of another length."""
    values = columns.get(TASK)
    if values is None:
        raise UsageError(f"the data has no column {TASK!r} with the step of each row; its columns are: {', '.join(columns)}")
    if isinstance(values, str | Mapping) or not isinstance(values, Collection) or len(values) != count:
        raise UsageError(f"the column {TASK!r} must hold one step for each of the {count} completions")
    return [task_of(each) for each in values]


def metrics(scored: ScoredResponse) -> dict[str, float]:
    """The logged metrics of a response: every part, unweighted, and whether it matched exactly."""
    return {**scored.reward.parts, "exact_match": float(scored.reward.outcome.exact_match)}


@lru_cache(maxsize=16)
def _kept(model: str, reward: str, protocol: str | None, weights: tuple[tuple[str, float], ...]) -> ResponseScorer:
    return ResponseScorer(load_model(model), weighed(reward, protocol, dict(weights)))


def named_scorer(
    model: str = "qwen2.5-vl-7b-ui-s1",
    reward: str = "ui-s1",
    protocol: str | None = None,
    weights: Mapping[str, float] | None = None,
) -> ResponseScorer:
    """As :func:`guieval.rewards.open_scorer`, cached by name, for functions that are called once per response."""
    given = dict(weights or {})
    try:
        return _kept(model, reward, protocol, tuple(sorted(given.items())))
    except TypeError:  # an unhashable weight, such as a list: the reward raises the error that explains it
        return ResponseScorer(load_model(model), weighed(reward, protocol, given))

"""Functions shared by all adapters: they read the step, the reply's text and the scorer's name from a framework's row."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import Any

from pydantic import ValidationError

from guieval.errors import UsageError, first_problem
from guieval.registry import load_model
from guieval.rewards.reply import ReplyScorer, ScoredReply
from guieval.rewards.shapes import weighed
from guieval.steps import StepTaskModel

TASK = "task"
"""The name of the column, or of the key, that holds the step."""


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
    """The steps of a batch's ``task`` column. Raises :class:`UsageError` where there is none, or one of another length."""
    values = columns.get(TASK)
    if values is None:
        raise UsageError(f"the data has no column {TASK!r} with the step of each row; its columns are: {', '.join(columns)}")
    if isinstance(values, str | Mapping) or not isinstance(values, Collection) or len(values) != count:
        raise UsageError(f"the column {TASK!r} must hold one step for each of the {count} completions")
    return [task_of(each) for each in values]


def text_of(completion: Any) -> str:
    """A completion's text: a string, or the assistant's messages of a chat (texts in content blocks are joined)."""
    if isinstance(completion, str):
        return completion
    if completion is None:
        return ""
    if isinstance(completion, Mapping):
        content = completion.get("content")
        if content is None:
            content = completion.get("text")
        return text_of(content)
    if isinstance(completion, Sequence):
        spoken = [each for each in completion if not isinstance(each, Mapping) or each.get("role", "assistant") == "assistant"]
        return "".join(text_of(each) for each in spoken)
    content = getattr(completion, "content", None)  # a message as an object
    if content is None or content is completion:
        raise UsageError(f"a completion must be a text or a list of messages, got {completion!r:.80}")
    return text_of(content)


def figures(scored: ScoredReply) -> dict[str, float]:
    """The logged figures of a reply: every part, unweighted, and whether it matched exactly."""
    return {**scored.reward.parts, "exact_match": float(scored.reward.outcome.exact_match)}


@lru_cache(maxsize=16)
def _kept(model: str, reward: str, protocol: str | None, weights: tuple[tuple[str, float], ...]) -> ReplyScorer:
    return ReplyScorer(load_model(model), weighed(reward, protocol, dict(weights)))


def named_scorer(
    model: str = "qwen2.5-vl-7b-ui-s1",
    reward: str = "ui-s1",
    protocol: str | None = None,
    weights: Mapping[str, float] | None = None,
) -> ReplyScorer:
    """As :func:`guieval.rewards.open_scorer`, cached by name, for functions that are called once per reply."""
    given = dict(weights or {})
    try:
        return _kept(model, reward, protocol, tuple(sorted(given.items())))
    except TypeError:  # an unhashable weight, such as a list: the reward raises the error that explains it
        return ReplyScorer(load_model(model), weighed(reward, protocol, given))

"""Signs of a gamed reward in the responses of a policy: the patterns that :mod:`guieval.rewards.probes` writes on purpose.

A sign alone proves nothing: the reference may type the instruction. A share that grows in training does, so
:mod:`guieval.training.reward_watch` logs the shares and warns.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from guieval.actions import Open, Type
from guieval.models.scored_response import read_response
from guieval.rewards.response import ResponseScorer, ScoredResponse
from guieval.steps import StepTaskModel

_END_OF_PART = re.compile(r"[)\]}>\n]")
_MOST_CUTS = 64
_TAG = re.compile(r"<[^<>]{0,40}>")


@dataclass(frozen=True)
class Sign:
    """A property of a response that ``holds`` tests."""

    name: str
    summary: str
    holds: Callable[[ResponseScorer, StepTaskModel, ScoredResponse], bool]


def _several_answers(scorer: ResponseScorer, task: StepTaskModel, scored: ScoredResponse) -> bool:
    """Whether the response can be cut in two parts that both hold an action; tried at the ends of brackets, tags and lines."""
    text = scored.sample.raw_response or ""
    if scored.sample.action is None or scored.sample.batch:  # some families write several actions per response by design
        return False

    def has_action(part: str) -> bool:
        return read_response(scorer.model, scorer.reward.evaluator, task, part).action is not None

    cuts = [found.end() for found in _END_OF_PART.finditer(text, 0, len(text) - 1)][:_MOST_CUTS]
    first = next((cut for cut in cuts if has_action(text[:cut])), None)
    return first is not None and any(has_action(text[cut:]) for cut in cuts if cut >= first)


def _empty_text(scorer: ResponseScorer, task: StepTaskModel, scored: ScoredResponse) -> bool:
    match scored.sample.action:
        case Type(text=text) | Open(app=text):
            return not text.strip()
    return False


def _copied_instruction(scorer: ResponseScorer, task: StepTaskModel, scored: ScoredResponse) -> bool:
    """Whether the instruction is typed, or is the whole response."""
    match scored.sample.action:
        case Type(text=text):
            copied = text
        case _:
            copied = _TAG.sub(" ", scored.sample.raw_response or "")
    return _words(copied) == _words(task.instruction)


def _words(text: str) -> list[str]:
    return text.casefold().split()


SIGNS: tuple[Sign, ...] = (
    Sign(
        "malformed",
        "a response without the format that the reward asks for",
        lambda scorer, task, scored: not scored.reward.parts["format"],
    ),
    Sign("several-answers", "a response with several answers", _several_answers),
    Sign("empty-text", "typing or opening nothing", _empty_text),
    Sign("copied-instruction", "the instruction as the answer", _copied_instruction),
)
"""The signs that are counted. The length of a response is logged as a number of words."""


def words(scored: ScoredResponse) -> int:
    """The number of words of a response."""
    return len((scored.sample.raw_response or "").split())

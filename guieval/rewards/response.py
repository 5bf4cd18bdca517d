"""Rewards a response: the model's adapter parses it, the evaluator scores it, and the reward weighs the outcome.

Responses are parsed by :func:`guieval.models.scored_response.read_response`, as in ``guieval run``, and the reward is computed
from the outcome that it returns, so evaluation and reward cannot read a response differently.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

from guieval.actions import Box
from guieval.errors import UsageError
from guieval.models import ABCModel, Response
from guieval.models.scored_response import read_response
from guieval.registry import load_model
from guieval.rewards.formats import FormatRule
from guieval.rewards.overlong import Overlong
from guieval.rewards.shapes import get_reward
from guieval.rewards.step import ABCReward, RawResponse, RewardParts
from guieval.steps import Sample, StepTaskModel

_NUMBER = r"\s*(-?\d+(?:\.\d+)?)\s*"
_FOUR = re.compile(rf"[\[(]{_NUMBER},{_NUMBER}(?:,|[\])]\s*,?\s*[\[(]){_NUMBER},{_NUMBER}[\])]")
_NAMED = re.compile(r"bbox_2d[\"']?\s*:\s*\Z")


@dataclass(frozen=True)
class ScoredResponse:
    """A response as the journal of a run stores it, and its reward."""

    sample: Sample
    reward: RewardParts

    @property
    def measured(self) -> bool:
        """Whether the response could be judged. If the adapter itself failed on it, it earns 0 in every part."""
        return self.sample.outcome.verdict != "infrastructure_failure"


class ResponseScorer:
    """Scores raw responses: ``model`` reads them, ``reward`` judges and weighs, ``format`` decides what is well formed.

    ``format`` defaults to the reward's own. ``overlong`` punishes long responses. Scoring is pure and thread-safe.
    """

    def __init__(
        self, model: ABCModel, reward: ABCReward, format: FormatRule | None = None, overlong: Overlong | None = None
    ) -> None:
        self.model = model
        self.reward = reward
        self.format = reward.form if format is None else format
        self.overlong = overlong

    def score(self, task: StepTaskModel, response: Any, *, tokens: int | None = None) -> ScoredResponse:
        """Read the model's response to ``task`` and reward it; ``tokens`` is its length.

        ``response`` is anything that :meth:`guieval.models.Response.of` reads: a text, or the messages of a training framework.
        A punishment for its length is included in the total and is the part ``overlong``. Raises :class:`UsageError` for a
        ``task`` that is no step, a ``response`` that is none of these, and nothing for what a model may write.
        """
        if not isinstance(task, StepTaskModel):
            shown = f"{task!r}"[:60]
            raise UsageError(f"the task is {shown} ({type(task).__name__}); expected a StepTaskModel, a step of an episode")
        try:
            scored = self._scored(task, Response.of(response))
        except ValueError as error:
            raise UsageError(f"a completion cannot be read: {error}") from None
        if self.overlong is None or tokens is None or not scored.measured:
            return scored
        punished = self.overlong.of(tokens)
        reward = scored.reward
        return replace(
            scored, reward=replace(reward, total=reward.total + punished, parts={**reward.parts, "overlong": punished})
        )

    __call__ = score

    def _scored(self, task: StepTaskModel, response: Response) -> ScoredResponse:
        sample = read_response(self.model, self.reward.evaluator, task, response)
        if sample.outcome.verdict == "infrastructure_failure":
            return ScoredResponse(sample, self.reward.grade(task, None, sample.outcome, well_formed=False))
        box = predicted_box(self.model, task, response.readable) if self.reward.reads_boxes else None
        well_formed = self.format.holds(response.in_full, sample)
        raw = (
            RawResponse(response.in_full, self.model.frame(task).extent(task.screenshot_size))
            if self.reward.reads_text
            else None
        )
        graded = self.reward.grade(task, sample.action, sample.outcome, well_formed=well_formed, box=box, raw=raw)
        return ScoredResponse(sample, graded)


def predicted_box(model: ABCModel, task: StepTaskModel, text: str) -> Box | None:
    """The box that a response gives, in thousandths of the screen: its last ``[x1, y1, x2, y2]`` or ``(x1, y1), (x2, y2)``.

    The numbers are in the model's own frame, those of a ``bbox_2d`` in the one of its places. ``None`` if there is none, or
    if it is outside the screen or its corners are reversed.
    """
    matches = list(_FOUR.finditer(text))
    if not matches:
        return None
    x1, y1, x2, y2 = (float(each) for each in matches[-1].groups())
    named = _NAMED.search(text, 0, matches[-1].start())
    frame = model.frame(task) if named is None else model.place_frame(task)
    try:
        near, far = frame.decode(x1, y1, task.screenshot_size), frame.decode(x2, y2, task.screenshot_size)
    except ValueError:
        return None
    return Box(*near, *far) if near.x <= far.x and near.y <= far.y else None


def open_scorer(
    model: str = "qwen2.5-vl-7b-ui-s1", reward: str = "ui-s1", *, protocol: str | None = None, **weights: float
) -> ResponseScorer:
    """A scorer by registered names: a checkpoint (`guieval models`), a reward and a protocol (default: the reward's own).

    Raises :class:`guieval.errors.UsageError` with the nearest name for an unknown one.
    """
    return ResponseScorer(load_model(model), get_reward(reward, protocol=protocol, **weights))

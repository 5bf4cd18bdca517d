"""Scores a raw reply: the model's adapter parses it, the evaluator judges it, and the reward weighs the result.

Replies are parsed by :func:`guieval.models.scored_reply.read_reply`, as in ``guieval run``, and the reward is computed from the
outcome that it returns, so evaluation and reward cannot interpret a reply differently.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from guieval.actions import Box
from guieval.models import ABCModel
from guieval.models.scored_reply import read_reply
from guieval.registry import load_model
from guieval.rewards.formats import FormatRule
from guieval.rewards.overlong import Overlong
from guieval.rewards.shapes import get_reward
from guieval.rewards.step import ABCReward, RewardParts
from guieval.steps import Sample, StepTaskModel

_NUMBER = r"\s*(-?\d+(?:\.\d+)?)\s*"
_FOUR = re.compile(rf"[\[(]{_NUMBER},{_NUMBER}(?:,|[\])]\s*,?\s*[\[(]){_NUMBER},{_NUMBER}[\])]")
_NAMED = re.compile(r"bbox_2d[\"']?\s*:\s*\Z")


@dataclass(frozen=True)
class ScoredReply:
    """A reply as the journal of a run stores it, and its reward."""

    sample: Sample
    reward: RewardParts

    @property
    def measured(self) -> bool:
        """Whether the reply could be judged. If the adapter itself failed on it, it earns 0 in every part."""
        return self.sample.outcome.verdict != "infrastructure_failure"


class ReplyScorer:
    """Scores raw replies: ``model`` reads them, ``reward`` judges and weighs, ``format`` decides what is well formed.

    ``format`` defaults to the reward's own. ``overlong`` punishes long replies. Scoring is pure and thread-safe.
    """

    def __init__(
        self, model: ABCModel, reward: ABCReward, format: FormatRule | None = None, overlong: Overlong | None = None
    ) -> None:
        self.model = model
        self.reward = reward
        self.format = reward.form if format is None else format
        self.overlong = overlong

    def score(self, task: StepTaskModel, text: str, *, tokens: int | None = None) -> ScoredReply:
        """Read ``text`` as the model's reply to ``task`` and reward it; ``tokens`` is its length. Raises nothing.

        A punishment for its length is included in the total and is the part ``overlong``.
        """
        scored = self._scored(task, text)
        if self.overlong is None or tokens is None or not scored.measured:
            return scored
        punished = self.overlong.of(tokens)
        reward = scored.reward
        return replace(
            scored, reward=replace(reward, total=reward.total + punished, parts={**reward.parts, "overlong": punished})
        )

    def _scored(self, task: StepTaskModel, text: str) -> ScoredReply:
        sample = read_reply(self.model, self.reward.evaluator, task, text)
        if sample.outcome.verdict == "infrastructure_failure":
            return ScoredReply(sample, self.reward.grade(task, None, sample.outcome, well_formed=False))
        text = sample.raw_response or ""
        box = predicted_box(self.model, task, text) if self.reward.reads_boxes else None
        well_formed = self.format.holds(text, sample)
        return ScoredReply(sample, self.reward.grade(task, sample.action, sample.outcome, well_formed=well_formed, box=box))


def predicted_box(model: ABCModel, task: StepTaskModel, text: str) -> Box | None:
    """The box that a reply gives, in thousandths of the screen: its last ``[x1, y1, x2, y2]`` or ``(x1, y1), (x2, y2)``.

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
) -> ReplyScorer:
    """A scorer by registered names: a checkpoint (`guieval models`), a reward and a protocol (default: the reward's own).

    Raises :class:`guieval.errors.UsageError` with the nearest name for an unknown one.
    """
    return ReplyScorer(load_model(model), get_reward(reward, protocol=protocol, **weights))

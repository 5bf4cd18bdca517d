"""GRPO on single steps with reference history: UI-R1's and HyperTrack's offline RL."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from statistics import fmean, pstdev, stdev
from typing import Any

from accelerate.utils import gather_object

from guieval.rewards.adapters.rows import metrics
from guieval.rewards.response import ResponseScorer, ScoredResponse
from guieval.training.data.examples import Example
from guieval.training.trainers.answers import SampledResponse
from guieval.training.trainers.groups import GroupTrainer, TaskGroup

EPSILON = 1e-4
"""Added to the standard deviation that rewards are divided by, as in TRL."""


class StepGRPOTrainer(GroupTrainer):
    """Each group is one step, answered several times and rewarded by ``scorer``.

    ``example`` gives the step of a number. A response on which the adapter itself failed has no reward and is not trained on.
    """

    def __init__(self, *, example: Callable[[int], Example], scorer: ResponseScorer, **named: Any) -> None:
        self._example = example
        self._scorer = scorer
        super().__init__(**named)

    def _groups(self, indices: Sequence[int], first: int) -> list[TaskGroup]:
        examples = [self._example(index) for index in indices]
        model = self._prompts.model
        answers = self._answers([model.prepare_input(example.task, example.history) for example in examples])
        scored = [
            self._scorer.score(example.task, answer.text, tokens=len(answer.row.completion))
            for example, answer in zip(examples, answers, strict=True)
        ]
        rewards: list[float | None] = gather_object([each.reward.total if each.measured else None for each in scored])
        size, eta = self.num_generations, 0.0 if self._sampling is None else self._sampling.eta
        worth = group_advantages(rewards, size, self.scale_rewards)
        self._log(scored, answers, rewards)
        if self.log_completions:
            replies = [(example.task.key, answer.text) for example, answer in zip(examples, answers, strict=True)]
            self._log_replies(replies, gather_object([each.reward.total for each in scored]), worth)
        groups = []
        for start in range(0, len(rewards), size):
            measured = [reward for reward in rewards[start : start + size] if reward is not None]
            here = range(max(start, first), min(start + size, first + len(answers)))
            rows = tuple(
                replace(answers[place - first].row, advantage=worth[place])
                if rewards[place] is not None
                else replace(answers[place - first].row, counts=False)
                for place in here
            )
            groups.append(TaskGroup(len(measured) > 1 and pstdev(measured) > eta, rows))
        return groups

    def _log(
        self, scored: Sequence[ScoredResponse], answers: Sequence[SampledResponse], rewards: Sequence[float | None]
    ) -> None:
        size = self.num_generations
        spreads = [deviation(rewards[start : start + size]) for start in range(0, len(rewards), size)]
        logged: defaultdict[str, list[float]] = defaultdict(list)
        for each in scored:
            if each.measured:
                logged["reward"].append(each.reward.total)
                for part, value in metrics(each).items():
                    logged[f"{self._scorer.reward.name.replace('-', '_')}/{part}"].append(value)
        logged["reward_std"] = spreads
        logged["frac_reward_zero_std"] = [float(not spread) for spread in spreads]
        logged["completions/mean_length"] = [float(len(answer.row.completion)) for answer in answers]
        self._tally(logged)


def group_advantages(rewards: Sequence[float | None], size: int, scale: str) -> list[float]:
    """Each reward minus the mean of its group, the consecutive ``size`` rewards of one task; 0 for one that is missing.

    ``scale`` is TRL's ``scale_rewards``: the difference is divided by the standard deviation of the ``group``, of the whole
    ``batch``, or (``none``) not at all.
    """
    whole = deviation(rewards)
    worth: list[float] = []
    for start in range(0, len(rewards), size):
        group = rewards[start : start + size]
        mean = fmean(measured) if (measured := [reward for reward in group if reward is not None]) else 0.0
        divisor = {"none": 1.0, "batch": whole + EPSILON, "group": deviation(group) + EPSILON}[scale]
        worth += [0.0 if reward is None else (reward - mean) / divisor for reward in group]
    return worth


def deviation(rewards: Sequence[float | None]) -> float:
    """The sample standard deviation of the rewards that are there."""
    measured = [reward for reward in rewards if reward is not None]
    return stdev(measured) if len(measured) > 1 else 0.0

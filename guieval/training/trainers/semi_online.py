"""UI-S1's semi-online RL (arXiv 2509.11543, section 3): whole rollouts along reference trajectories in TRL's GRPOTrainer.

Rollouts, patches and advantages are those of :mod:`guieval.rewards`. Every step of a rollout is a row with its own prompt (with
the rollout's own history) and its own advantage. All rollouts of a batch advance together, one step at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

from accelerate.utils import gather_object

from guieval.history.modes import PatchPolicy
from guieval.models.patch_thoughts import on_policy_input, read_thought
from guieval.rewards.advantages import AdvantageSettings, Trajectory, advantages, keep_group
from guieval.rewards.response import ResponseScorer
from guieval.rewards.rollout import RolloutStep, SemiOnlineRollout
from guieval.steps import Episode, StepTaskModel
from guieval.training.trainers.groups import GroupTrainer, TaskGroup
from guieval.training.trainers.rows import CompletedPrompt


class SemiOnlineTrainer(GroupTrainer):
    """Each group is one episode, rolled out several times.

    ``episode`` gives the episode of a number and the indices of its steps that count. ``thoughts`` gives the thoughts of
    off-policy patches, of several steps at once. ``policy`` decides what follows a mismatch, ``settings`` how rewards become
    advantages; a group is kept if the spread of its advantages is above the sampling's eta.
    """

    def __init__(
        self,
        *,
        episode: Callable[[int], tuple[Episode, Sequence[int]]],
        scorer: ResponseScorer,
        policy: PatchPolicy,
        settings: AdvantageSettings,
        thoughts: Callable[[Sequence[StepTaskModel]], Sequence[str | None]] | None = None,
        **named: Any,
    ) -> None:
        self._episode = episode
        self._scorer = scorer
        self._policy = policy
        self._settings = settings
        self._thoughts = thoughts
        super().__init__(**named)

    def _groups(self, indices: Sequence[int], first: int) -> list[TaskGroup]:
        rollouts = [
            SemiOnlineRollout(episode, self._policy, counted=counted) for episode, counted in map(self._episode, indices)
        ]
        self._roll_out(rollouts)
        size = self.num_generations
        light = [((first + place) // size, place, rollout) for place, rollout in enumerate(rollouts)]
        everywhere: list[Trajectory] = gather_object([Trajectory.of(uid, rollout.steps) for uid, _, rollout in light])
        worth = advantages(everywhere, self._settings)
        self._log(rollouts)
        if self.log_completions:
            steps = [step for rollout in rollouts for step in rollout.steps]
            replies = [(step.task.key, step.sample.raw_response or "") for step in steps]
            self._log_replies(replies, gather_object([step.reward for step in steps]), chain.from_iterable(worth))
        groups = []
        for start in range(0, len(everywhere), size):
            members = everywhere[start : start + size]
            here = range(max(start, first), min(start + size, first + len(rollouts)))
            rows = [
                _worth(step, value)
                for place in here
                for step, value in zip(rollouts[place - first].steps, worth[place], strict=True)
            ]
            eta = 0.0 if self._sampling is None else self._sampling.eta
            groups.append(TaskGroup(keep_group(members, eta, self._settings), tuple(rows)))
        return groups

    def _roll_out(self, rollouts: Sequence[SemiOnlineRollout]) -> None:
        while True:
            waiting = [rollout for rollout in rollouts if rollout.state == "ask"]
            patched = [rollout for rollout in rollouts if rollout.state == "patch"]
            if not self._any(len(waiting) + len(patched)):
                return
            prompts = [self._prompts.model.prepare_input(rollout.task, rollout.history) for rollout in waiting]
            for rollout, answer in zip(waiting, self._answers(prompts), strict=True):
                scored = self._scorer.score(rollout.task, answer.text, tokens=len(answer.row.completion))
                rollout.tell(scored.sample, reward=scored.reward.total, payload=answer.row)
            self._patch([rollout for rollout in rollouts if rollout.state == "patch"])

    def _patch(self, waiting: Sequence[SemiOnlineRollout]) -> None:
        if self._policy.method == "on-policy":
            if not self._any(len(waiting)):
                return
            model = self._prompts.model
            prompts = [on_policy_input(model, rollout.task, rollout.history) for rollout in waiting]
            for rollout, answer in zip(waiting, self._answers(prompts), strict=True):
                rollout.patch(read_thought(answer.text, model=model, task=rollout.task))
            return
        thoughts = [None] * len(waiting) if self._thoughts is None else self._thoughts([each.task for each in waiting])
        for rollout, thought in zip(waiting, thoughts, strict=True):
            rollout.patch(thought)

    def _log(self, rollouts: Sequence[SemiOnlineRollout]) -> None:
        steps = [step for rollout in rollouts for step in rollout.steps]
        lengths = [float(len(step.payload.completion)) for step in steps]
        self._tally(
            {
                "reward": [step.reward for step in steps],
                "semi_online/type_match": [float(step.sample.outcome.type_match) for step in steps],
                "semi_online/exact_match": [float(step.matched) for step in steps],
                "semi_online/success": [float(rollout.succeeded) for rollout in rollouts],
                "semi_online/steps": [float(len(rollout.steps)) for rollout in rollouts],
                "semi_online/patches": [float(rollout.patches_used) for rollout in rollouts],
                "completions/mean_length": lengths,
            }
        )


def _worth(step: RolloutStep, advantage: float) -> CompletedPrompt:
    row: CompletedPrompt = step.payload
    failed = step.sample.outcome.verdict == "infrastructure_failure"
    return replace(row, advantage=advantage, counts=row.counts and not failed)

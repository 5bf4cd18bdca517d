"""GRPO on single steps with reference history: UI-R1's and HyperTrack's offline RL."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import pstdev
from typing import Any

from accelerate.utils import gather_object

from guieval.rewards.adapters.trl import reward_function
from guieval.rewards.reply import ReplyScorer
from guieval.training.data.examples import Example, PromptBuilder
from guieval.training.trainers.groups import Group, GroupTrainer
from guieval.training.trainers.rows import unpacked


class StepGRPOTrainer(GroupTrainer):
    """Each group is one step, answered several times; the reward is the scorer's, through its adapter for TRL.

    ``example`` gives the step of a number. Generation, advantages, KL and logs are TRL's own.
    """

    def __init__(self, *, example: Callable[[int], Example], prompts: PromptBuilder, scorer: ReplyScorer, **named: Any) -> None:
        self._example = example
        self._prompts = prompts
        self._rewards: list[float | None] = []
        rewarded = reward_function(scorer)

        def reward(**columns: Any) -> list[float | None]:
            self._rewards = rewarded(**columns)
            return self._rewards

        reward.__name__ = rewarded.__name__
        super().__init__(reward_funcs=[reward], **named)

    def _groups(self, indices: Sequence[int], first: int) -> list[Group]:
        examples = [self._example(index) for index in indices]
        inputs = [
            {"prompt": self._prompts.messages(example.task, example.history), "task": example.task.model_dump_json()}
            for example in examples
        ]
        rows = unpacked(super(GroupTrainer, self)._generate_and_score_completions(inputs))
        rewards = gather_object(list(self._rewards))
        size, eta = self._rollouts_each(), 0.0 if self._sampling is None else self._sampling.eta
        groups = []
        for start in range(0, len(rewards), size):
            measured = [reward for reward in rewards[start : start + size] if reward is not None]
            here = range(max(start, first), min(start + size, first + len(rows)))
            kept = len(measured) > 1 and pstdev(measured) > eta
            groups.append(Group(kept, tuple(rows[place - first] for place in here)))
        return groups

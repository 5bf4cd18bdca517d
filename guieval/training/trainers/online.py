"""Online RL: whole rollouts in an environment, rewarded by its judge, in TRL's GRPOTrainer.

Every step of a rollout is a row with its own prompt (with the rollout's own history) and its own advantage: the sum of UI-S1's
episode level and step level (:mod:`guieval.rewards.advantages`); rewards are the judge's and returns go to the end of the
rollout. Rollouts of a group begin from the same state. Those of a batch advance together, one step at a time.
"""

from __future__ import annotations

import os
import shutil
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from hashlib import blake2b
from itertools import chain
from pathlib import Path
from typing import Any

from accelerate.utils import gather_object

from guieval.evaluation import ActionEvaluator, get_protocol
from guieval.models.scored_response import read_response
from guieval.online.tasks import PROTOCOL, EnvironmentTasks
from guieval.rewards.advantages import AdvantageSettings, Trajectory, advantages, keep_group
from guieval.steps import OnlineTask
from guieval.training.acting import OnlineRollout, Stage
from guieval.training.data.environment_tasks import SCREENS
from guieval.training.settings import JudgeReward
from guieval.training.trainers.groups import CHECKPOINT, Batch, GroupTrainer, TaskGroup
from guieval.training.trainers.grpo import deviation
from guieval.training.trainers.rows import CompletedPrompt


class OnlineTrainer(GroupTrainer):
    """Each group is one task, begun several times from one seed.

    ``task`` gives the environment and the record of a number. At most ``at_once`` rollouts of this process act at once, on
    the devices of ``stage``. ``settings`` decide how rewards become advantages; a group is kept if the spread of its advantages
    is above the sampling's eta. A rollout that could not be judged has no reward and is not trained on.
    """

    def __init__(
        self,
        *,
        task: Callable[[int], tuple[EnvironmentTasks, OnlineTask]],
        reward: JudgeReward,
        settings: AdvantageSettings,
        stage: Stage,
        at_once: int,
        **named: Any,
    ) -> None:
        self._task = task
        self._reward = reward
        self._settings = settings
        self._stage = stage
        self._at_once = at_once
        self._draw = 0
        self._evaluator = ActionEvaluator(get_protocol(PROTOCOL))
        super().__init__(**named)

    def _groups(self, indices: Sequence[int], first: int) -> list[TaskGroup]:
        size = self.num_generations
        seeds = [self._seed((first + place) // size) for place in range(len(indices))]
        rollouts = [OnlineRollout(*self._task(index), seed) for index, seed in zip(indices, seeds, strict=True)]
        self._draw += 1
        self._roll_out(rollouts)
        groups_of = [(first + place) // size for place in range(len(rollouts))]
        light = [self._trajectory(group, rollout) for group, rollout in zip(groups_of, rollouts, strict=True)]
        everywhere: list[Trajectory | None] = gather_object(light)
        worth = iter(advantages([each for each in everywhere if each is not None], self._settings))
        values = [[] if each is None else next(worth) for each in everywhere]
        self._log(rollouts, everywhere)
        if self.log_completions:
            judged = [rollout for rollout in rollouts if rollout.outcome is not None]
            replies = [(each.task.key, sample.raw_response or "") for each in judged for sample in each.samples]
            rewards = [reward for each in everywhere if each is not None for reward in each.rewards]
            self._log_replies(replies, rewards, chain.from_iterable(values))
        eta = 0.0 if self._sampling is None else self._sampling.eta
        groups = []
        for start in range(0, len(everywhere), size):
            members = [each for each in everywhere[start : start + size] if each is not None]
            here = range(max(start, first), min(start + size, first + len(rollouts)))
            rows: list[CompletedPrompt] = [
                replace(row, advantage=value)
                for place in here
                for row, value in zip(rollouts[place - first].payloads if values[place] else [], values[place], strict=True)
            ]
            groups.append(TaskGroup(len(members) > 1 and keep_group(members, eta, self._settings), tuple(rows)))
        return groups

    def _trajectory(self, group: int, rollout: OnlineRollout) -> Trajectory | None:
        """The rewards of a rollout's steps; ``None`` if it could not be judged."""
        if rollout.outcome is None:
            return None
        readable = [sample.action is not None for sample in rollout.samples]
        rewards = self._reward.of_steps(rollout.outcome, readable, rollout.progress)
        return Trajectory(group, tuple(range(len(rewards))), tuple(rewards), (True,) * len(rewards))

    def _seed(self, group: int) -> int:
        """The seed of a group's environments: the same on all processes, and after a resume."""
        name = "/".join(map(str, (self.args.seed, *self._generated, self._draw, group)))
        return int.from_bytes(blake2b(name.encode(), digest_size=4).digest()) >> 1

    def _roll_out(self, rollouts: Sequence[OnlineRollout]) -> None:
        waiting, model = deque(rollouts), self._prompts.model
        active: list[OnlineRollout] = []
        while True:
            self._stage.advance(active)
            active = [rollout for rollout in active if not rollout.over]
            while waiting and len(active) < self._at_once:
                new = [waiting.popleft() for _ in range(min(len(waiting), self._at_once - len(active)))]
                self._stage.advance(new)
                active += [rollout for rollout in new if not rollout.over]
            if not self._any(len(active)):
                return
            shown = [(rollout, rollout.shown) for rollout in active if rollout.shown is not None]
            answers = self._answers([model.prepare_input(step, rollout.attempt.history) for rollout, step in shown])
            for (rollout, step), answer in zip(shown, answers, strict=True):
                rollout.tell(read_response(model, self._evaluator, step, answer.text), answer.row)

    def _log(self, rollouts: Sequence[OnlineRollout], everywhere: Sequence[Trajectory | None]) -> None:
        rewards = [None if each is None else sum(each.rewards) for each in everywhere]
        size = self.num_generations
        logged: defaultdict[str, list[float]] = defaultdict(list)
        for rollout in rollouts:
            logged["online/environment_failures"].append(float(rollout.outcome is None))
            logged["completions/mean_length"] += [float(len(row.completion)) for row in rollout.payloads]
            if (outcome := rollout.outcome) is not None:
                logged["reward"].append(self._reward.of(outcome))
                logged["online/success"].append(float(outcome.score.success))
                logged["online/progress"].append(outcome.score.progress)
                logged["online/side_effects"].append(float(bool(outcome.score.side_effects)))
                logged["online/false_completion"].append(float(outcome.ended == "false completion"))
                logged["online/unreadable"].append(outcome.unparseable / max(1, outcome.steps or 0))
                logged["online/steps"].append(float(outcome.steps or 0))
        spreads = [deviation(rewards[start : start + size]) for start in range(0, len(rewards), size)]
        logged["reward_std"] = spreads
        logged["frac_reward_zero_std"] = [float(not spread) for spread in spreads]
        self._tally(logged)

    # Screenshots: rows name those of one generation batch, which a checkpoint within it must hold too

    def _generate_batch(self, inputs: Sequence[dict[str, Any]]) -> Batch:
        self.accelerator.wait_for_everyone()
        if self.accelerator.is_main_process:
            shutil.rmtree(self._stage.screens, ignore_errors=True)
        self.accelerator.wait_for_everyone()
        self._pictures.forget()  # the screenshots of new rollouts are others
        self._draw = 0
        return super()._generate_batch(inputs)

    def _save_checkpoint(self, model: Any, trial: Any) -> None:
        super()._save_checkpoint(model, trial)
        folder = Path(self._get_output_dir(trial=trial)) / f"{CHECKPOINT}-{self.state.global_step}"
        if self._step % self._every and self.accelerator.is_main_process and folder.is_dir():
            shutil.copytree(self._stage.screens, folder / SCREENS, copy_function=_linked, dirs_exist_ok=True)

    def _go_on(self, folder: Path) -> None:
        if self.accelerator.is_main_process and (folder / SCREENS).is_dir():
            shutil.copytree(folder / SCREENS, self._stage.screens, copy_function=_linked, dirs_exist_ok=True)
        self.accelerator.wait_for_everyone()
        super()._go_on(folder)


def _linked(source: str, target: str) -> None:
    """The same file under another name, or a copy if the file system has no links."""
    Path(target).unlink(missing_ok=True)
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)

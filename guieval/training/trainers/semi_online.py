"""UI-S1's semi-online RL (arXiv 2509.11543, section 3): whole rollouts along reference trajectories in TRL's GRPOTrainer.

Rollouts, patches and advantages are those of :mod:`guieval.rewards`. Every step of a rollout is a row with its own prompt (with
the rollout's own history) and its own advantage. All rollouts of a batch advance together, one step at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from accelerate.utils import gather_object
from torch import Tensor
from trl.models.utils import disable_gradient_checkpointing
from trl.trainer.utils import use_adapter

from guieval.errors import UsageError
from guieval.history.modes import PatchPolicy
from guieval.models import ModelInput
from guieval.models.patch_thoughts import on_policy_input, read_thought
from guieval.rewards.advantages import AdvantageSettings, Trajectory, advantages, keep_group
from guieval.rewards.reply import ReplyScorer
from guieval.rewards.rollout import RolloutStep, SemiOnlineRollout
from guieval.steps import Episode, StepTaskModel
from guieval.training.data.examples import PromptBuilder
from guieval.training.trainers.groups import Group, GroupTrainer
from guieval.training.trainers.rows import TYPES, Row, images_by_row


class _Answer(NamedTuple):
    row: Row
    text: str


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
        prompts: PromptBuilder,
        scorer: ReplyScorer,
        policy: PatchPolicy,
        settings: AdvantageSettings,
        thoughts: Callable[[Sequence[StepTaskModel]], Sequence[str | None]] | None = None,
        **named: Any,
    ) -> None:
        self._episode = episode
        self._prompts = prompts
        self._scorer = scorer
        self._policy = policy
        self._settings = settings
        self._thoughts = thoughts
        super().__init__(reward_funcs=[_rewarded_by_the_rollout], **named)

    def _groups(self, indices: Sequence[int], first: int) -> list[Group]:
        rollouts = [
            SemiOnlineRollout(episode, self._policy, counted=counted) for episode, counted in map(self._episode, indices)
        ]
        self._roll_out(rollouts)
        size = self._rollouts_each()
        light = [((first + place) // size, place, rollout) for place, rollout in enumerate(rollouts)]
        everywhere: list[Trajectory] = gather_object([Trajectory.of(uid, rollout.steps) for uid, _, rollout in light])
        worth = advantages(everywhere, self._settings)
        self._log(rollouts)
        if self.log_completions:
            self._log_completions(rollouts, [value for values in worth for value in values])
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
            groups.append(Group(keep_group(members, eta, self._settings), tuple(rows)))
        return groups

    def _roll_out(self, rollouts: Sequence[SemiOnlineRollout]) -> None:
        while True:
            waiting = [rollout for rollout in rollouts if rollout.state == "ask"]
            patched = [rollout for rollout in rollouts if rollout.state == "patch"]
            if not self._any(len(waiting) + len(patched)):
                return
            prompts = [self._prompts.model.prepare_input(rollout.task, rollout.history) for rollout in waiting]
            for rollout, answer in zip(waiting, self._answers(prompts, rollouts), strict=True):
                scored = self._scorer.score(rollout.task, answer.text, tokens=len(answer.row.completion))
                rollout.tell(scored.sample, reward=scored.reward.total, payload=answer.row)
            self._patch([rollout for rollout in rollouts if rollout.state == "patch"], rollouts)

    def _patch(self, waiting: Sequence[SemiOnlineRollout], rollouts: Sequence[SemiOnlineRollout]) -> None:
        if self._policy.method == "on-policy":
            if not self._any(len(waiting)):
                return
            model = self._prompts.model
            prompts = [on_policy_input(model, rollout.task, rollout.history) for rollout in waiting]
            for rollout, answer in zip(waiting, self._answers(prompts, rollouts), strict=True):
                rollout.patch(read_thought(answer.text, model=model, task=rollout.task))
            return
        thoughts = [None] * len(waiting) if self._thoughts is None else self._thoughts([each.task for each in waiting])
        for rollout, thought in zip(waiting, thoughts, strict=True):
            rollout.patch(thought)

    def _any(self, count: int) -> bool:
        """Whether any process has work left; all must generate equally often."""
        return bool(self.accelerator.gather(torch.tensor([count], device=self.accelerator.device)).sum() > 0)

    def _answers(self, prompts: Sequence[ModelInput], rollouts: Sequence[SemiOnlineRollout]) -> list[_Answer]:
        """The policy's sampled answers, one per prompt; idle prompts fill up to the number of the other processes."""
        count = len(prompts)
        most = int(self.accelerator.gather(torch.tensor([count], device=self.accelerator.device)).max())
        if not most:
            return []
        messages = [self._prompts.of(prepared) for prepared in prompts]
        if most > count:
            first = rollouts[0].episode.steps[0]
            messages += [self._prompts.messages(first, ())] * (most - count)
        prompt_ids, images, fields = self._tokenize_prompts(messages)
        completion_ids, _ = self._generate_single_turn(prompt_ids, images, fields, 1)
        texts = self.processing_class.batch_decode(completion_ids, skip_special_tokens=True)
        shown = [0] * len(messages) if images is None else [len(row or ()) for row in images]
        rows = _rows(prompt_ids, completion_ids, shown, fields)
        return [_Answer(self._unless_cut(row), text) for row, text in zip(rows[:count], texts[:count], strict=True)]

    def _unless_cut(self, row: Row) -> Row:
        """With ``mask_truncated_completions``, a truncated completion only fills the batch."""
        ends = [*self.eos_token_ids, self._tokenizer.pad_token_id]
        cut = self.mask_truncated_completions and (not len(row.completion) or int(row.completion[-1]) not in ends)
        return row.filler() if cut else row

    def _batch(self, rows: list[Row], seen: Sequence[Group], mode: str) -> dict[str, Any]:
        batch = super()._batch(rows, seen, mode)
        if "pixel_values" in batch:
            batch["pixel_values"] = batch["pixel_values"].to(self.model.dtype)
        # TRL's condition: old log-probabilities are needed only for rows that are used after the weights have changed
        changed = self.args.gradient_accumulation_steps % (self.args.steps_per_generation * self.num_iterations) != 0
        with torch.no_grad(), disable_gradient_checkpointing(self.model, self.args.gradient_checkpointing_kwargs):
            if changed:
                batch["old_per_token_logps"] = self._logps(self.model, batch)
            if self.beta:
                batch["ref_per_token_logps"] = self._reference_logps(batch)
        return batch

    def _reference_logps(self, batch: Mapping[str, Any]) -> Tensor:
        if self.ref_model is not None:
            return self._logps(self.ref_model, batch)
        model = self.accelerator.unwrap_model(self.model)
        with use_adapter(model, adapter_name="ref" if "ref" in model.peft_config else None):
            return self._logps(self.model, batch)

    def _logps(self, model: Any, batch: Mapping[str, Any]) -> Tensor:
        """(rows, longest completion) log-probabilities of the completions' tokens."""
        images = {name: batch[name] for name in ("pixel_values", "image_grid_thw", "num_images", *TYPES) if name in batch}
        logps: Tensor = self._get_per_token_logps_and_entropies(
            model,
            torch.cat([batch["prompt_ids"], batch["completion_ids"]], dim=1),
            torch.cat([batch["prompt_mask"], batch["completion_mask"]], dim=1),
            batch["completion_ids"].size(1),
            batch_size=self.args.per_device_train_batch_size,
            **images,
        )[0]
        return logps

    def _log(self, rollouts: Sequence[SemiOnlineRollout]) -> None:
        steps = [step for rollout in rollouts for step in rollout.steps]
        lengths = [float(len(step.payload.completion)) for step in steps]
        figures = {
            "reward": [step.reward for step in steps],
            "semi_online/type_match": [float(step.sample.outcome.type_match) for step in steps],
            "semi_online/exact_match": [float(step.matched) for step in steps],
            "semi_online/success": [float(rollout.succeeded) for rollout in rollouts],
            "semi_online/steps": [float(len(rollout.steps)) for rollout in rollouts],
            "semi_online/patches": [float(rollout.patches_used) for rollout in rollouts],
            "completions/mean_length": lengths,
        }
        log = self._metrics["train" if self.model.training else "eval"]
        for name, values in figures.items():
            total = torch.tensor([sum(values), len(values)], dtype=torch.float64, device=self.accelerator.device)
            added, count = self.accelerator.gather(total).view(-1, 2).sum(0).tolist()
            log[name].append(added / count)

    def _log_completions(self, rollouts: Sequence[SemiOnlineRollout], worth: Sequence[float]) -> None:
        """Add the steps of all processes to TRL's table of completions; ``worth`` are their advantages."""
        steps = [step for rollout in rollouts for step in rollout.steps]
        self._logs["prompt"].extend(gather_object([[{"role": "user", "content": str(step.task.key)}] for step in steps]))
        replies = [[{"role": "assistant", "content": step.sample.raw_response or ""}] for step in steps]
        self._logs["completion"].extend(gather_object(replies))
        self._logs["rewards"]["reward"].extend(gather_object([step.reward for step in steps]))
        self._logs["advantages"].extend(worth)


def _rewarded_by_the_rollout(**columns: Any) -> list[float | None]:
    """A reward function for TRL, which requires one; rollouts are rewarded step by step."""
    raise UsageError("semi-online rollouts are rewarded step by step")


def _worth(step: RolloutStep, advantage: float) -> Row:
    row: Row = step.payload
    if step.sample.outcome.verdict == "infrastructure_failure":
        return row.filler()
    return replace(row, advantage=advantage) if row.counts else row


def _rows(
    prompts: Sequence[Sequence[int]], completions: Sequence[Sequence[int]], shown: Sequence[int], fields: Mapping[str, Any]
) -> list[Row]:
    """The generated rows; ``shown`` are the images per prompt."""
    grids = fields.get("image_grid_thw")
    if any(shown) and grids is None:
        raise UsageError("only models of the Qwen-VL kind (image_grid_thw) can be trained semi-online with TRL")
    images: list[tuple[Tensor | None, Tensor | None]] = [(None, None)] * len(shown)
    if any(shown):
        images = images_by_row(torch.as_tensor(fields["pixel_values"]), torch.as_tensor(grids), shown)
    return [
        Row(
            torch.tensor(list(prompt)),
            torch.tensor(list(completions[number]), dtype=torch.long),
            pixels=images[number][0],
            grid=images[number][1],
            types={name: torch.tensor(list(fields[name][number])) for name in TYPES if name in fields},
        )
        for number, prompt in enumerate(prompts)
    ]

"""verl's trainers with UI-S1's advantages: one per step, from all rollouts of its task.

verl's estimators use only a session's last output and copy its advantage to the other steps. So verl's stage is run, including
its correction for stale rollouts, and the advantages that it wrote are then replaced.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
import transfer_queue as tq
from omegaconf import DictConfig, open_dict
from tensordict import TensorDict
from verl.trainer.ppo.v1 import (
    PPOTrainer,
    PPOTrainerColocateAsync,
    PPOTrainerSeparateAsync,
    PPOTrainerSync,
    register_trainer,
)

from guieval.errors import UsageError
from guieval.training.reward_watch import RewardWatch, Sum
from guieval.training.verl.records import RowRecord, logged, row_advantages
from guieval.training.verl.sampler import AsyncSpreadReplayBuffer, SpreadReplayBuffer, read_record
from guieval.training.verl.settings import GROUP, read_settings

WATCHED = "watch.jsonl"
"""The file of the checks of the reward, in verl's folder of checkpoints (``trainer.default_local_dir``)."""


class GuiSemiOnline(PPOTrainer):
    """The additions of the three trainers to verl's trainer of mode ``mode``.

    Raises :class:`UsageError` for settings of verl that contradict the method.
    """

    mode: str

    def __init__(self, config: DictConfig) -> None:
        self._settings = read_settings(config)
        self._advantages = self._settings.advantages
        self._watch: RewardWatch | None = None
        self._watched: list[Mapping[str, Sum]] = []
        check_config(config)
        with open_dict(config):
            config.trainer.v1.trainer_mode = self.mode  # verl compares it with its own words
            if self._settings.dynamic_sampling is not None:
                config.data.gen_batch_size = 1  # further groups are drawn one by one
        super().__init__(config)

    def _build_replay_buffer(self) -> Any:
        sampling = self._settings.dynamic_sampling
        if sampling is None:
            return super()._build_replay_buffer()
        given, size = self.config.trainer.v1.sampler, self.config.data.train_batch_size
        common = {
            "sampling": sampling,
            "settings": self._advantages,
            "trainer_mode": self.trainer_mode,
            "trainer_config": self.config.trainer.v1.get(self.trainer_mode, {}),
            "max_off_policy_threshold": given.max_off_policy_threshold,
            "max_off_policy_strategy": given.max_off_policy_strategy,
            "sampler_kwargs": given.sampler_kwargs,
            "refill_fn": self._add_prompts_to_generate,
        }
        if self.mode != "sync":
            return AsyncSpreadReplayBuffer(batch_size=size // self.parameter_sync_step, **common)
        return SpreadReplayBuffer(
            train_batch_size=size,
            max_inflight_gen_batches=self.config.algorithm.filter_groups.max_inflight_gen_batches,
            sync_refill_failed_groups=bool(given.get("sync_refill_failed_groups", False)),
            **common,
        )

    def _compute_advantage(self, batch: Any, metrics: dict[str, Any]) -> Any:
        """verl's stage, then the advantages of equation 12, the same for all tokens of a response; 0 in filler rows."""
        filler = [bool(tag.get("is_padding", False)) for tag in batch.tags]
        batch = super()._compute_advantage(batch, metrics)
        fields = ["response_mask", "extra_fields"]
        data = tq.kv_batch_get(keys=batch.keys, partition_id=batch.partition_id, select_fields=fields)
        records = [None if none else read_record(value) for none, value in zip(filler, data["extra_fields"], strict=True)]
        worth = row_advantages(records, self._advantages)
        counted = [record for record in records if record is not None]
        metrics.update(logged(counted) | self._checked(counted))
        tokens = torch.nested.as_nested_tensor(
            [value * mask.to(torch.float32) for value, mask in zip(worth, data["response_mask"].unbind(), strict=True)],
            layout=torch.jagged,
        )
        written = TensorDict({"advantages": tokens, "returns": tokens.clone()}, batch_size=len(batch.keys))
        return tq.kv_batch_put(keys=batch.keys, partition_id=batch.partition_id, fields=written)

    def _checked(self, records: Sequence[RowRecord]) -> dict[str, float]:
        """The metrics of a check of the reward, if one is due; metrics and warnings are also written to :data:`WATCHED`."""
        settings = self._settings.reward_watch
        records = [record for record in records if record.success is None]  # a judge is not watched
        if settings is None or not records:
            return {}
        file = Path(self.config.trainer.default_local_dir) / WATCHED
        if self._watch is None:
            longest = self.config.actor_rollout_ref.rollout.response_length
            scorer = self._settings.reward.open_scorer(self._settings.open_adapter(), longest)
            self._watch = RewardWatch(settings, scorer, {record.protocol: record.protocol for record in records})
            self._watch.remember(file, self.global_steps - 1)
        self._watched += [{name: Sum(*value) for name, value in record.watched.items()} for record in records]
        if self.global_steps % settings.every or self.local_trigger_step + 1 < self.parameter_sync_step:
            return {}  # a separate trainer has several updates per step
        found, warned = self._watch.check(self.global_steps, self._watched)
        self._watched = []
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("a", encoding="utf-8") as stream:
            lines: list[dict[str, Any]] = [{**found}, *({"warning": sentence} for sentence in warned)]
            stream.writelines(json.dumps({"step": self.global_steps, **line}) + "\n" for line in lines)
        for sentence in warned:
            print(f"warning: step {self.global_steps}: {sentence}", file=sys.stderr)
        return found

    def _get_required_batch_multiple(self, dp_size: int) -> int:
        """Rows are filled up to a multiple of this; with ``mini_batches`` far fewer are needed."""
        if self._settings.mini_batches is None:
            return int(super()._get_required_batch_multiple(dp_size))
        return math.lcm(self.config.actor_rollout_ref.rollout.n, dp_size) * self._settings.mini_batches

    def _update_actor(self, batch: Any, metrics: dict[str, Any]) -> Any:
        if self._settings.mini_batches is None:
            return super()._update_actor(batch, metrics)
        actor, rollouts = self.config.actor_rollout_ref.actor, self.config.actor_rollout_ref.rollout.n
        before = actor.ppo_mini_batch_size
        actor.ppo_mini_batch_size = len(batch.keys) // (rollouts * self._settings.mini_batches)  # verl counts it in prompts
        try:
            return super()._update_actor(batch, metrics)
        finally:
            actor.ppo_mini_batch_size = before


@register_trainer(GROUP)
class GuiSemiOnlineTrainer(GuiSemiOnline, PPOTrainerSync):
    """``trainer.v1.trainer_mode: guieval``: rollouts and updates of the weights take turns."""

    mode = "sync"


@register_trainer(f"{GROUP}_colocate_async")
class GuiColocateAsyncTrainer(GuiSemiOnline, PPOTrainerColocateAsync):
    """``trainer.v1.trainer_mode: guieval_colocate_async``: on the same GPUs, but unfinished rollouts go on with new weights."""

    mode = "colocate_async"


@register_trainer(f"{GROUP}_separate_async")
class GuiSeparateAsyncTrainer(GuiSemiOnline, PPOTrainerSeparateAsync):
    """``trainer.v1.trainer_mode: guieval_separate_async``: rollouts run on GPUs of their own while the weights are updated."""

    mode = "separate_async"


TRAINERS = (GROUP, f"{GROUP}_colocate_async", f"{GROUP}_separate_async")
"""Values of ``trainer.v1.trainer_mode`` that are guieval's."""


def check_config(config: DictConfig) -> None:
    """:class:`UsageError` for settings of verl that contradict the method."""
    if config.algorithm.adv_estimator != "grpo":
        raise UsageError(
            f"algorithm.adv_estimator is {config.algorithm.adv_estimator!r}: semi-online RL has no critic, use grpo"
        )
    if config.algorithm.use_kl_in_reward:
        raise UsageError(
            "algorithm.use_kl_in_reward would change rewards that are already computed: use actor.use_kl_loss instead"
        )
    if config.algorithm.filter_groups.enable:
        raise UsageError("algorithm.filter_groups.enable is verl's own filter of groups: use guieval.dynamic_sampling instead")
    custom = config.trainer.v1.sampler.get("custom_sampler")
    if custom is not None and custom.get("path"):
        raise UsageError("trainer.v1.sampler.custom_sampler is not used by this trainer: use guieval.dynamic_sampling instead")

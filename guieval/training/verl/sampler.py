"""verl's replay buffers with UI-S1's dynamic sampling: groups whose rollouts hardly differ are replaced, up to a limit.

verl's own filter drops a group if one number is exactly the same for all its rollouts, without a limit on draws. Here a group
is kept if the spread of its advantages is above eta (UI-S1, section 3.4). At most ``most_draws`` batches are drawn for one;
then groups are kept whatever their spread.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from statistics import fmean
from typing import Any

import transfer_queue as tq
from verl.trainer.ppo.v1.replay_buffer import ReplayBuffer, ReplayBufferAsync

from guieval.rewards.advantages import AdvantageSettings
from guieval.training.settings import DynamicSampling
from guieval.training.verl.records import RowRecord, group_is_kept, trajectories
from guieval.training.verl.settings import GROUP


class _Spreads:
    """Which finished groups of a buffer differ enough, judged once each."""

    def __init__(self, sampling: DynamicSampling, settings: AdvantageSettings) -> None:
        self._sampling, self._settings = sampling, settings
        self._kept: dict[str, bool] = {}
        self._level: dict[str, float] = {}

    def judge(self, buffer: Any, partition_id: str) -> None:
        """Judge the finished groups that are not yet judged, by the records of their rows."""
        uids = buffer.finished_keys[partition_id] - self._kept.keys()
        keys = [key for key in buffer.partitions[partition_id] if key.split("_")[0] in uids]
        if not keys:
            return
        stored = tq.kv_batch_get(keys=keys, partition_id=partition_id, select_fields=["extra_fields"])
        groups: dict[str, list[RowRecord]] = {}
        for key, value in zip(keys, stored["extra_fields"], strict=True):
            record = read_record(value)
            if record is not None:
                groups.setdefault(key.split("_")[0], []).append(record)
        for uid, records in groups.items():
            self._kept[uid] = group_is_kept(records, self._sampling.eta, self._settings)
            self._level[uid] = round(fmean(sum(rollout.rewards) for rollout, _ in trajectories(records)), 1)

    def unfit(self, uids: set[str], most: int) -> tuple[set[str], Counter[float]]:
        """At most ``most`` of the groups that do not differ enough, and their mean returns."""
        dropped = sorted(uid for uid in uids if not self._kept.get(uid, True))[: max(0, most)]
        return set(dropped), Counter(self._level[uid] for uid in dropped)

    def metrics(self, batch: Any, drawn: int) -> dict[str, float]:
        uids = {key.split("_")[0] for key in batch.keys}
        share = sum(self._kept.get(uid, True) for uid in uids) / max(1, len(uids))
        return {"training/filter_groups/groups_drawn": drawn, "training/filter_groups/kept_share": share}

    def forget_all_but(self, uids: set[str]) -> None:
        """Drop what is known of groups that are no longer in the buffer."""
        self._kept = {uid: kept for uid, kept in self._kept.items() if uid in uids}
        self._level = {uid: level for uid, level in self._level.items() if uid in uids}


class SpreadReplayBuffer(ReplayBuffer):
    """Synchronous sampling of whole groups. ``train_batch_size`` and the other named arguments are verl's.

    A group without any step, since every rollout failed, is left to verl.
    """

    def __init__(
        self,
        *,
        sampling: DynamicSampling,
        settings: AdvantageSettings,
        train_batch_size: int,
        refill_fn: Callable[[int], Any],
        **named: Any,
    ) -> None:
        self._most_draws = sampling.most_draws
        self._spreads = _Spreads(sampling, settings)
        self._submit = refill_fn
        self._drawn = train_batch_size
        super().__init__(
            refill_fn=self._refill, filter_groups_metric=GROUP, train_batch_size=train_batch_size, gen_batch_size=1, **named
        )

    def sample(self, global_steps: int, partition_id: str, batch_size: int) -> tuple[Any, dict[str, Any]]:
        """A batch of ``batch_size`` groups, and metrics on the sampling."""
        self._drawn = self.train_batch_size
        batch, metrics = super().sample(global_steps=global_steps, partition_id=partition_id, batch_size=batch_size)
        if partition_id != "val":
            metrics.update(self._spreads.metrics(batch, self._drawn))
            self._spreads.forget_all_but(set())
        return batch, metrics

    @property
    def _left(self) -> int:
        """Number of groups that may still be drawn for this batch."""
        return int(max(0, self._most_draws * self.train_batch_size - self._drawn))

    def _alive(self, partition_id: str) -> int:
        """Number of groups in progress or finished, and not dropped."""
        states = (self.pending_keys, self.running_keys, self.finished_keys, self.failure_keys)
        return sum(len(keys[partition_id]) for keys in states)

    def _refill(self, count: int) -> None:
        """Draw groups within the limit (verl requests twice as many as were dropped), but enough for a full batch."""
        count = min(count, max(self._left, self.train_batch_size - self._alive("train")))
        if count > 0:
            self._drawn += count
            self._submit(count)

    def _dapo_filtered_keys(self, partition_id: str) -> tuple[set[str], Counter[float]]:
        """Finished groups that do not differ enough and can still be replaced, and their mean returns."""
        if partition_id == "val":
            return set(), Counter()
        self._spreads.judge(self, partition_id)
        spare = self._alive(partition_id) + self._left - self.train_batch_size
        return self._spreads.unfit(self.finished_keys[partition_id], spare)


class AsyncSpreadReplayBuffer(ReplayBufferAsync):
    """Sampling of whole groups while others are generated. Named arguments other than ``sampling`` and ``settings`` are verl's.

    verl replaces each dropped group by one that later batches may use. For a batch, at most ``most_draws - 1`` times its size
    are dropped for their spread; stale and failed groups are dropped by verl's own rules, and do not count.
    """

    def __init__(self, *, sampling: DynamicSampling, settings: AdvantageSettings, batch_size: int, **named: Any) -> None:
        self._most_draws = sampling.most_draws
        self._spreads = _Spreads(sampling, settings)
        self._wanted, self._dropped = batch_size, 0
        super().__init__(filter_groups_metric=GROUP, **named)

    def sample(self, global_steps: int, partition_id: str, batch_size: int) -> tuple[Any, dict[str, Any]]:
        if partition_id != "val":
            self._wanted = batch_size
        batch, metrics = super().sample(global_steps=global_steps, partition_id=partition_id, batch_size=batch_size)
        if partition_id != "val":
            metrics.update(self._spreads.metrics(batch, batch_size + self._dropped))
            self._dropped = 0
        return batch, metrics

    def _dapo_filtered_keys(self, partition_id: str) -> tuple[set[str], Counter[float]]:
        """Finished groups that do not differ enough and can still be replaced, and their mean returns."""
        if partition_id == "val":
            return set(), Counter()
        self._spreads.forget_all_but(self.finished_keys[partition_id])
        self._spreads.judge(self, partition_id)
        left = (self._most_draws - 1) * self._wanted - self._dropped
        return self._spreads.unfit(self.finished_keys[partition_id], left)

    def _evict_terminal_groups(self, global_steps: int, partition_id: str, eviction_reasons: Any) -> Any:
        """verl's removal of stale, unfit and failed groups; counts the unfit ones."""
        removed = super()._evict_terminal_groups(global_steps, partition_id, eviction_reasons)
        self._dropped += removed[2]
        return removed


def read_record(extra_fields: Any) -> RowRecord | None:
    """The record in a row's extra fields from verl's store; ``None`` without one."""
    fields = getattr(extra_fields, "data", extra_fields)
    return RowRecord(**fields[GROUP]) if GROUP in fields else None

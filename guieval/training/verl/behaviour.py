"""Behaviours of verl that the plug-in relies on beyond its public interfaces, tested on tiny inputs before a training starts.

verl's own methods run here on objects without workers, servers and model, over a store in memory: some milliseconds in all.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import torch
import verl.trainer.ppo.v1.replay_buffer
import verl.trainer.ppo.v1.trainer_base
from omegaconf import OmegaConf
from tensordict import TensorDict
from transfer_queue import KVBatchMeta
from verl.experimental.agent_loop.agent_loop import AgentLoopBase
from verl.trainer.ppo.v1.replay_buffer import ReplayBuffer, ReplayBufferAsync
from verl.trainer.ppo.v1.trainer_sync import PPOTrainerSync
from verl.utils.tokenizer.continuous_token import ContinuousTokenBuilder

from guieval.training.guard import Behaviour

ROLLOUTS, MINI_BATCH = 2, 3
_MODULES = (verl.trainer.ppo.v1.replay_buffer, verl.trainer.ppo.v1.trainer_base)


class _Loop(AgentLoopBase):  # type: ignore[misc]  # verl has no types
    """verl's base class without tokenizer and configuration."""

    def __init__(self) -> None:
        self.continuous_token_builder = ContinuousTokenBuilder.__new__(ContinuousTokenBuilder)
        self.processor, self.mm_processor_kwargs = None, {"max_pixels": 7}

    async def run(self, sampling_params: Any, **row: Any) -> Any:
        raise NotImplementedError


def _merges_replies() -> bool:
    async def merged() -> Any:
        loop = _Loop()
        loop.loop = asyncio.get_running_loop()
        return await loop.ct_merge_assistant_token([1, 2, 3], [7, 8], [], [], assistant_logprobs=[-0.5, -0.25])

    result, mask, logprobs = asyncio.run(merged())
    return (list(result.token_ids), mask, logprobs) == ([1, 2, 3, 7, 8], [1, 1], [-0.5, -0.25])


def _passes_image_arguments() -> bool:
    return bool(_Loop()._get_mm_processor_kwargs() == {"max_pixels": 7})


def _refuses_images() -> bool:
    loop = _Loop()
    loop._assert_mm_supported(False)
    try:
        loop._assert_mm_supported(True)
    except ValueError:
        return True
    return False


class _Store:
    """The methods of a TransferQueue that verl calls, in memory; a group is finished as soon as it is requested."""

    def __init__(self) -> None:
        self.tags: dict[str, dict[str, Any]] = {}
        self.written: dict[str, Any] = {}
        self.read: dict[str, Any] = {}
        self.requested: list[int] = []
        self._looked = 0

    def request(self, count: int) -> None:
        """Add finished groups of :data:`ROLLOUTS` rollouts of one step."""
        for number in range(sum(self.requested), sum(self.requested) + count):
            self.tags[f"task{number}"] = {"is_prompt": True, "status": "finished", "global_steps": 1}
            self.tags |= {f"task{number}_{session}_0": {"status": "success"} for session in range(ROLLOUTS)}
        self.requested.append(count)

    def kv_list(self, partition_id: str | None = None) -> dict[str, dict[str, Any]]:
        self._looked += 1
        if self._looked > 20:
            raise TimeoutError("no batch after 20 looks at the store")
        return {"train": dict(self.tags)}

    def kv_clear(self, keys: Sequence[str], partition_id: str) -> None:
        for key in keys:
            self.tags.pop(key, None)

    def kv_batch_get(self, keys: Sequence[str], partition_id: str, select_fields: Sequence[str]) -> Any:
        found = {name: value for name, value in self.read.items() if name in select_fields}
        return TensorDict(found, batch_size=len(keys))

    def kv_batch_put(self, keys: Sequence[str], partition_id: str, tags: Any = None, fields: Any = None) -> Any:
        self.written = {"keys": list(keys), "tags": tags, "fields": fields}
        return KVBatchMeta(keys=list(keys), tags=tags or [{} for _ in keys], partition_id=partition_id)


@contextmanager
def _stored(store: _Store) -> Iterator[None]:
    """verl's modules use ``store`` in place of the TransferQueue."""
    before = [module.tq for module in _MODULES]
    try:
        for module in _MODULES:
            module.tq = store
        yield
    finally:
        for module, queue in zip(_MODULES, before, strict=True):
            module.tq = queue


class _First:
    """Finds the first group unfit, as our buffers find groups that do not differ, and notes verl's sets of groups."""

    seen: dict[str, set[str]]

    def _dapo_filtered_keys(self: Any, partition_id: str) -> tuple[set[str], Counter[float]]:
        self.seen = {
            "finished": set(self.finished_keys[partition_id]),
            "others": self.pending_keys[partition_id] | self.running_keys[partition_id] | self.failure_keys[partition_id],
            "rows": set(self.partitions[partition_id]),
        }
        dropped = {"task0"} & self.finished_keys[partition_id]
        return dropped, Counter(dict.fromkeys([1.0], len(dropped)))


class _DropsTheFirst(_First, ReplayBuffer):  # type: ignore[misc]  # verl has no types
    pass


class _DropsTheFirstAsync(_First, ReplayBufferAsync):  # type: ignore[misc]
    removed: tuple[set[str], int, int] = (set(), 0, 0)

    def _evict_terminal_groups(self, global_steps: int, partition_id: str, eviction_reasons: Any) -> Any:
        removed = super()._evict_terminal_groups(global_steps, partition_id, eviction_reasons)
        if removed[0]:
            self.removed = removed[:3]
        return removed


def _replaced(kind: Any, requested: list[int], **named: Any) -> Any:
    """The buffer that gave a batch of two groups without the first, after such requests; ``None`` if it gave another one."""
    store = _Store()
    buffer = kind(
        trainer_mode="sync",
        trainer_config={},
        max_off_policy_threshold=1,
        max_off_policy_strategy="drop",
        sampler_kwargs={},
        poll_interval=0.0,
        refill_fn=store.request,
        filter_groups_metric="guieval",
        **named,
    )
    store.request(2)
    with _stored(store):
        batch, metrics = buffer.sample(global_steps=1, partition_id="train", batch_size=2)
    groups = {key.split("_")[0] for key in batch.keys}
    as_expected = (
        store.requested == requested
        and len(groups) == 2
        and "task0" not in groups
        and all(len(key.split("_")) == 3 for key in batch.keys)
        and metrics["training/filter_groups/evicted_samples"] == 1
    )
    return buffer if as_expected else None


def _replaces_dropped_groups() -> bool:
    return _replaced(_DropsTheFirst, [2, 2], train_batch_size=2, gen_batch_size=1) is not None  # two for the one dropped


def _replaces_one_by_one() -> bool:
    buffer = _replaced(_DropsTheFirstAsync, [2, 1])
    return buffer is not None and buffer.removed == ({"task0"}, 0, 1)


def _sorts_groups_by_status() -> bool:
    store = _Store()
    store.request(1)
    buffer = _DropsTheFirst("sync", {}, 1, "drop", {}, refill_fn=store.request, filter_groups_metric="x", gen_batch_size=1)
    with _stored(store):
        buffer._sync_metadata_from_transfer_queue()
        buffer._dapo_filtered_keys("train")
    return bool(buffer.seen == {"finished": {"task0"}, "others": set(), "rows": {"task0_0_0", "task0_1_0"}})


def _trainer(**attributes: Any) -> Any:
    """verl's synchronous trainer without what its ``__init__`` opens."""
    config = {
        "trainer": {"critic_warmup": 0},
        "data": {"train_batch_size": 2, "gen_batch_size": 1},
        "actor_rollout_ref": {
            "actor": {
                "ppo_mini_batch_size": MINI_BATCH,
                "ppo_epochs": 1,
                "calculate_entropy": False,
                "entropy_coeff": 0,
                "data_loader_seed": 1,
                "shuffle": False,
            },
            "rollout": {"n": ROLLOUTS, "temperature": 1.0},
        },
        "algorithm": {"adv_estimator": "grpo", "use_kl_in_reward": False, "gamma": 1.0, "lam": 1.0},
    }
    trainer = PPOTrainerSync.__new__(PPOTrainerSync)
    for name, value in {
        "config": OmegaConf.create(config),
        "trainer_mode": "sync",
        "use_critic": False,
        "global_steps": 1,
        **attributes,
    }.items():
        setattr(trainer, name, value)
    return trainer


def _fills_up_mini_batches() -> bool:
    return bool(_trainer()._get_required_batch_multiple(4) == 12)  # lcm of 4 processes and 3 x 2 rows


def _counts_mini_batches_in_prompts() -> bool:
    received: dict[str, Any] = {}

    def update_actor(batch: Any) -> Any:
        received.update(batch.extra_info)
        return {"metrics": {"mfu": [0.0]}}

    trainer = _trainer(actor_rollout_wg=SimpleNamespace(update_actor=update_actor))
    batch = trainer._update_actor(KVBatchMeta(keys=["a_0_0"], tags=[{}], partition_id="train"), {})
    return bool(batch.keys == ["a_0_0"] and received["mini_batch_size"] == MINI_BATCH * ROLLOUTS)


def _requests_single_prompts() -> bool:
    store = _Store()
    sent: list[Any] = []
    rows = [{"raw_prompt": [f"prompt {number}"], "index": torch.tensor([number])} for number in range(4)]
    manager = SimpleNamespace(generate_sequences=sent.append)
    trainer = _trainer(train_dataloader_it=iter(rows), train_dataloader=rows, agent_loop_manager=manager)
    with _stored(store):
        trainer._add_prompts_to_generate(3)
    return (
        len(sent) == 1
        and len(sent[0]) == 3
        and store.written["fields"] is None  # rows are not stored in the mode "sync"
        and [tag["status"] for tag in store.written["tags"]] == ["pending"] * 3
    )


def _writes_advantages() -> bool:
    store = _Store()
    masks = [torch.tensor([1, 1]), torch.tensor([1])]
    scores = [torch.tensor([0.0, 1.0]), torch.tensor([0.0])]
    store.read = {
        "response_mask": torch.nested.as_nested_tensor(masks, layout=torch.jagged),
        "rm_scores": torch.nested.as_nested_tensor(scores, layout=torch.jagged),
        "uid": torch.tensor([5, 5]),
    }
    batch = KVBatchMeta(keys=["5_0_0", "5_1_0"], tags=[{}, {"is_padding": True}], partition_id="train")
    with _stored(store):
        result = _trainer()._compute_advantage(batch, {})
    fields = store.written["fields"]
    rows = [value.tolist() for value in fields["advantages"].unbind()]
    return (
        result.keys == batch.keys
        and {"advantages", "returns"} <= set(fields.keys())
        and [len(row) for row in rows] == [2, 1]
        and rows[0][0] == rows[0][1] > 0 > rows[1][0]
    )


def _of(name: str, does: str, holds: Callable[[], bool]) -> Behaviour:
    return Behaviour(name, does, holds)


BEHAVIOURS = (
    _of("AgentLoopBase.ct_merge_assistant_token", "appends a reply to its prompt with mask 1", _merges_replies),
    _of("AgentLoopBase._get_mm_processor_kwargs", "returns data.mm_processor_kwargs", _passes_image_arguments),
    _of("AgentLoopBase._assert_mm_supported", "refuses images where there is no processor", _refuses_images),
    _of("ReplayBuffer", "keeps groups in finished_keys and rows in partitions", _sorts_groups_by_status),
    _of("ReplayBuffer.sample", "replaces the groups of _dapo_filtered_keys by refill_fn", _replaces_dropped_groups),
    _of("ReplayBufferAsync.sample", "replaces each group of _dapo_filtered_keys by one", _replaces_one_by_one),
    _of("PPOTrainerSync._get_required_batch_multiple", "fills up to whole mini-batches", _fills_up_mini_batches),
    _of("PPOTrainerSync._update_actor", "counts ppo_mini_batch_size in prompts", _counts_mini_batches_in_prompts),
    _of("PPOTrainerSync._add_prompts_to_generate", "requests single prompts in the mode 'sync'", _requests_single_prompts),
    _of("PPOTrainerSync._compute_advantage", "writes one advantage for all tokens of a reply", _writes_advantages),
)

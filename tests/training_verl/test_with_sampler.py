"""Dynamic sampling in verl's own sampling loop, over a store in memory: what is drawn, dropped and kept, and that it ends."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

import pytest
import transfer_queue as tq

from guieval.rewards.advantages import AdvantageSettings
from guieval.training.settings import DynamicSampling
from guieval.training.verl.records import RowRecord
from guieval.training.verl.sampler import AsyncSpreadReplayBuffer, SpreadReplayBuffer

BATCH = 4
FLAT, NEAR, WIDE = (0.5, 0.5), (0.5, 0.6), (1.0, 0.5)
"""Rewards of a group's two rollouts of one step."""


class Store:
    """What verl's buffer asks of a TransferQueue; groups are done as they are drawn, with ``dice`` one by one in any order."""

    def __init__(self, groups: Callable[[int], Sequence[float]]) -> None:
        self.groups = groups
        self.dice: random.Random | None = None
        self.asked: list[int] = []
        self.tags: dict[str, dict[str, Any]] = {}
        self.fields: dict[str, dict[str, Any]] = {}
        self.count = 0

    def draw(self, count: int) -> None:
        self.asked.append(count)
        for _ in range(count):
            uid, rewards = f"task{self.count}", self.groups(self.count)
            self.count += 1
            status = "finished" if self.dice is None else "running"
            self.tags[uid] = {"is_prompt": True, "status": status, "global_steps": 1}
            for session, reward in enumerate(rewards):
                key = f"{uid}_{session}_0"
                record = RowRecord(uid, session, 0, reward, reward == 1.0, False, True, True)
                self.tags[key] = {"status": "success"}
                self.fields[key] = {"guieval": asdict(record)}

    def kv_list(self, partition_id: str | None = None) -> dict[str, dict[str, Any]]:
        running = [uid for uid, tag in self.tags.items() if tag["status"] == "running"]
        if running and self.dice is not None:
            self.tags[self.dice.choice(running)]["status"] = "finished"
        return {partition: {key: dict(tag) for key, tag in self.tags.items()} for partition in ("train", "val")}

    def kv_batch_get(self, keys: Sequence[str], partition_id: str, select_fields: Sequence[str]) -> dict[str, list[Any]]:
        assert list(select_fields) == ["extra_fields"]
        return {"extra_fields": [self.fields[key] for key in keys]}

    def kv_clear(self, keys: Sequence[str], partition_id: str) -> None:
        for key in keys:
            self.tags.pop(key, None)
            self.fields.pop(key, None)


Made = tuple[Store, Any]


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Made]:
    """A buffer of a kind over a store in which some groups are drawn already."""

    def make(kind: Any, drawn: int, own: dict[str, Any], groups: Callable[[int], Sequence[float]], **sampling: Any) -> Made:
        store = Store(groups)
        for name in ("kv_list", "kv_batch_get", "kv_clear"):
            monkeypatch.setattr(tq, name, getattr(store, name))
        buffer = kind(
            sampling=DynamicSampling(**{"eta": 0.3, "most_draws": 3, **sampling}),
            settings=AdvantageSettings(normalise="mean"),
            refill_fn=store.draw,
            trainer_config={},
            max_off_policy_strategy="drop",
            sampler_kwargs={},
            poll_interval=0.0,
            **own,
        )
        store.draw(drawn)
        return store, buffer

    return make


@pytest.fixture
def make(made: Callable[..., Made]) -> Callable[..., Made]:
    own = {"train_batch_size": BATCH, "trainer_mode": "sync", "max_off_policy_threshold": 1}
    return partial(made, SpreadReplayBuffer, BATCH, own)


@pytest.fixture
def make_async(made: Callable[..., Made]) -> Callable[..., Made]:
    """A second batch is in progress already, as an asynchronous trainer begins."""
    own = {"batch_size": BATCH, "trainer_mode": "colocate_async", "max_off_policy_threshold": 2}
    return partial(made, AsyncSpreadReplayBuffer, 2 * BATCH, own)


def sampled(buffer: SpreadReplayBuffer, partition: str = "train") -> tuple[set[str], dict[str, Any]]:
    batch, metrics = buffer.sample(global_steps=1, partition_id=partition, batch_size=BATCH)
    return {key.split("_")[0] for key in batch.keys}, metrics


def test_groups_are_taken_if_they_differ_by_more_than_eta_and_replaced_if_not(make: Any) -> None:
    store, buffer = make(lambda number: WIDE)
    uids, metrics = sampled(buffer)
    assert uids == {"task0", "task1", "task2", "task3"} and store.asked == [BATCH]
    assert metrics["training/filter_groups/groups_drawn"] == BATCH and metrics["training/filter_groups/kept_share"] == 1.0
    _, buffer = make(lambda number: FLAT if number in (1, 4) else WIDE)
    uids, metrics = sampled(buffer)
    assert len(uids) == BATCH and not uids & {"task1", "task4"}
    assert metrics["training/filter_groups/evicted_samples"] == 2
    assert metrics["training/filter_groups/kept_share"] == 1.0
    _, buffer = make(lambda number: NEAR if number == 0 else WIDE)  # advantages +-0.1; verl's own filter would keep it
    assert "task0" not in sampled(buffer)[0]
    _, buffer = make(lambda number: NEAR if number == 0 else WIDE, eta=0.05)
    assert "task0" in sampled(buffer)[0]


@pytest.mark.parametrize("most_draws", [1, 2, 5])
def test_a_policy_that_never_differs_ends_at_the_cap(make: Any, most_draws: int) -> None:
    store, buffer = make(lambda number: FLAT, most_draws=most_draws)
    uids, metrics = sampled(buffer)
    assert len(uids) == BATCH and store.count == most_draws * BATCH == metrics["training/filter_groups/groups_drawn"]
    assert metrics["training/filter_groups/kept_share"] == 0.0
    # what was dropped is reported by its score, in the form of verl's own table
    if most_draws > 1:
        assert metrics["_dapo_filtered_reward_counts"] == {1.0 * sum(FLAT) / 2: (most_draws - 1) * BATCH}


@pytest.mark.parametrize("seed", range(40))
def test_whatever_comes_first_the_batch_is_full_and_as_good_as_was_drawn(make: Any, seed: int) -> None:
    dice = random.Random(seed)
    share, most_draws = dice.choice([0.0, 0.2, 0.5, 0.9]), dice.randint(1, 5)
    wide = [dice.random() < share for _ in range(most_draws * BATCH)]
    store, buffer = make(lambda number: WIDE if wide[number] else FLAT, most_draws=most_draws)
    store.dice = dice
    for uid in range(BATCH):
        store.tags[f"task{uid}"]["status"] = "running"
    uids, metrics = sampled(buffer)
    assert len(uids) == BATCH and store.count <= most_draws * BATCH
    good = sum(wide[int(uid.removeprefix("task"))] for uid in uids)
    assert good == min(BATCH, sum(wide[: store.count]))
    assert metrics["training/filter_groups/kept_share"] == good / BATCH


def test_the_cap_is_of_each_batch(make: Any) -> None:
    store, buffer = make(lambda number: FLAT if number < 12 else WIDE, most_draws=3)
    sampled(buffer)
    assert store.count == 12
    store.draw(BATCH)
    uids, metrics = sampled(buffer)
    assert metrics["training/filter_groups/groups_drawn"] == BATCH and metrics["training/filter_groups/kept_share"] == 1.0
    assert uids == {"task12", "task13", "task14", "task15"}


@pytest.mark.parametrize(("kind", "drawn"), [("make", BATCH), ("make_async", 2 * BATCH)])
def test_validation_is_not_filtered(kind: str, drawn: int, request: pytest.FixtureRequest) -> None:
    store, buffer = request.getfixturevalue(kind)(lambda number: FLAT)
    uids, metrics = sampled(buffer, "val")
    assert len(uids) == BATCH and store.asked == [drawn] and metrics == {}


def test_a_group_without_a_step_is_replaced_even_at_the_cap(make: Any) -> None:
    """verl can be set to replace groups whose every rollout failed; the cap must not leave the batch short then."""
    store, buffer = make(lambda number: WIDE, most_draws=1)
    buffer.sync_refill_failed_groups = True
    store.tags["task2"]["status"] = "failure"
    store.kv_clear(["task2_0_0", "task2_1_0"], "train")
    uids, _ = sampled(buffer)
    assert len(uids) == BATCH and "task2" not in uids


def test_asynchronous_groups_that_do_not_differ_are_replaced_one_by_one(make_async: Any) -> None:
    store, buffer = make_async(lambda number: FLAT if number in (1, 4, 8) else WIDE)
    uids, metrics = sampled(buffer)
    assert len(uids) == BATCH and not uids & {"task1", "task4", "task8"}
    assert store.asked == [2 * BATCH, 2, 1]  # task8 took the place of one of the first two
    assert metrics["training/filter_groups/groups_drawn"] == BATCH + 3
    assert metrics["training/filter_groups/kept_share"] == 1.0
    assert sum("_" not in uid for uid in store.tags) == BATCH  # the rest waits for the next batch, nothing is discarded


@pytest.mark.parametrize("most_draws", [1, 2, 5])
def test_an_asynchronous_policy_that_never_differs_ends_at_the_cap_of_each_batch(make_async: Any, most_draws: int) -> None:
    store, buffer = make_async(lambda number: FLAT, most_draws=most_draws)
    for batch in range(1, 3):
        uids, metrics = sampled(buffer)
        assert len(uids) == BATCH
        assert metrics["training/filter_groups/groups_drawn"] == most_draws * BATCH
        assert metrics["training/filter_groups/kept_share"] == 0.0
        assert store.count == (2 + batch * (most_draws - 1)) * BATCH
        store.draw(BATCH)
        store.count -= BATCH  # the trainer's own next batch


def test_stale_groups_are_replaced_by_verl_and_counting_drops_none(make_async: Any) -> None:
    store, buffer = make_async(lambda number: WIDE)
    store.tags["task0"]["global_steps"] = -1
    uids, metrics = sampled(buffer)
    assert "task0" not in uids and len(uids) == BATCH and store.asked == [2 * BATCH, 1]
    assert metrics["training/off_policy/evicted_samples"] == 1
    assert metrics["training/filter_groups/groups_drawn"] == BATCH
    # a separate trainer asks for the number to decide whether its GPUs should generate
    store, buffer = make_async(lambda number: FLAT if number < 3 else WIDE)
    assert buffer.get_sampleable_count(1, "train") == 2 * BATCH - 3
    assert store.asked == [2 * BATCH] and sum("_" not in uid for uid in store.tags) == 2 * BATCH

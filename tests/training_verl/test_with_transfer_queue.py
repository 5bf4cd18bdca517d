"""A training step with verl's own workers, store, sampling and advantages; only the answers and the update are made up."""

from __future__ import annotations

import json
import logging
import os
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import fmean
from types import SimpleNamespace
from typing import Any

import pytest
import ray
import torch
import transfer_queue as tq
from omegaconf import OmegaConf
from tensordict import TensorDict
from verl.trainer.ppo.v1 import AgentLoopManagerTQ

from guieval.rewards.advantages import Trajectory, advantages
from guieval.training.data.environment_tasks import open_tasks
from guieval.training.data.examples import TrainingData
from guieval.training.settings import Source
from guieval.training.verl.records import RowRecord, row_advantages
from guieval.training.verl.rows import write_rows, write_tasks
from guieval.training.verl.settings import read_settings
from guieval.training.verl.trainer import GuiColocateAsyncTrainer, GuiSemiOnline, GuiSemiOnlineTrainer
from tests.conftest import REPOSITORY
from tests.training_verl.conftest import Compose, read_rows
from tests.training_verl.scripted_server import Chance, HalfRight
from tests.training_verl.test_with_online_loop import EVERY_STEP, SEED, right

ROLLOUTS, BATCH, MINI_BATCHES, MOST_DRAWS = 3, 2, 2, 20
SETTINGS = (
    "guieval.reward.protocol=ac-curated-bbox",
    "guieval.reward_watch.every=1",
    f"guieval.mini_batches={MINI_BATCHES}",
    f"guieval.dynamic_sampling.most_draws={MOST_DRAWS}",
    f"data.train_batch_size={BATCH}",
    "data.dataloader_num_workers=0",
    "data.seed=1",
    f"actor_rollout_ref.rollout.n={ROLLOUTS}",
    f"actor_rollout_ref.actor.ppo_mini_batch_size={BATCH}",
    "actor_rollout_ref.rollout.agent.num_workers=1",
    "transfer_queue.enable=true",
    "transfer_queue.backend.SimpleStorage.num_data_storage_units=1",
)


class NotedUpdate:
    """Stands in for the workers that hold the weights: two data-parallel ranks, and what they received."""

    _dispatch_info = {"actor": [0, 1]}  # noqa: RUF012  # verl's own name and form

    def __init__(self) -> None:
        self.result: dict[str, Any] = {}

    def update_actor(self, batch: Any) -> Any:
        self.result = dict(batch.extra_info)
        return {"metrics": {"mfu": [0.0], "loss": [0.0]}}


@pytest.fixture(scope="module")
def running(compose: Compose) -> Iterator[None]:
    """Ray and verl's store."""
    config = compose("ui-s1-1x8", *SETTINGS)
    environment = OmegaConf.to_container(config.ray_kwargs.ray_init.runtime_env.env_vars)
    assert isinstance(environment, dict)
    environment |= {"PYTHONPATH": str(REPOSITORY), "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    ray.init(
        "local",  # a cluster of its own, also where another one runs
        num_cpus=2,
        include_dashboard=False,
        logging_level=logging.ERROR,
        log_to_driver=False,
        runtime_env={"env_vars": environment},
        object_store_memory=100 * 2**20,
        _temp_dir=os.environ.get("RAY_TMPDIR"),
    )
    tq.init(config.transfer_queue)
    yield
    tq.close()
    ray.shutdown()


@contextmanager
def opened(kind: type[GuiSemiOnline], config: Any, server: Any) -> Iterator[GuiSemiOnline]:
    """The trainer up to the workers that hold the weights, with one of verl's workers for rollouts."""
    made: Any = kind(config)
    made._init_tokenizer()
    made._init_dataloader()
    made.agent_loop_manager = AgentLoopManagerTQ.create(config=config, llm_client=server, reward_loop_worker_handles=None)
    made.actor_rollout_wg = NotedUpdate()
    made.replay_buffer.poll_interval = 0.2
    made.reward_loop_manager = SimpleNamespace(reward_loop_worker_handles=[])  # there is nothing left for it to score
    made.global_steps = 1
    yield made
    for worker in made.agent_loop_manager.agent_loop_workers:
        ray.kill(worker)
    for partition, items in (tq.kv_list() or {}).items():
        if items:
            tq.kv_clear(keys=list(items), partition_id=partition)


def compared(trainer: Any, batch: Any, metrics: dict[str, Any], *fields: str) -> tuple[Any, Any]:
    """The batch with advantages, as if the weights were still those that sampled it, and fields of its rows."""
    found = tq.kv_batch_get(keys=batch.keys, partition_id="train", select_fields=["rollout_log_probs"])
    old = TensorDict({"old_log_probs": found["rollout_log_probs"]}, batch_size=len(batch.keys))
    batch = trainer._compute_advantage(tq.kv_batch_put(keys=batch.keys, partition_id="train", fields=old), metrics)
    return batch, tq.kv_batch_get(keys=batch.keys, partition_id="train", select_fields=list(fields))


@pytest.fixture(scope="module", params=[GuiSemiOnlineTrainer, GuiColocateAsyncTrainer], ids=lambda kind: kind.mode)
def trainer(
    request: pytest.FixtureRequest,
    running: None,
    compose: Compose,
    policy: Path,
    data: TrainingData,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[GuiSemiOnline]:
    validation = tmp_path_factory.mktemp("validation")
    write_rows(data, validation, validation=True)
    checkpoints = f"trainer.default_local_dir={tmp_path_factory.mktemp('checkpoints')}"
    config = compose("ui-s1-1x8", *SETTINGS, f"data.val_files={validation / 'rows.jsonl'}", checkpoints)
    episodes = [data.episode(number) for number in range(4)]
    never = [episodes[0].steps[0].instruction, episodes[1].steps[0].instruction]
    with opened(request.param, config, HalfRight(policy, episodes, never=never)) as made:
        yield made


def test_a_step_from_rows_to_advantages(trainer: GuiSemiOnline, data: TrainingData) -> None:
    assert trainer.trainer_mode == trainer.mode  # verl's own word for it
    metrics: dict[str, Any] = {}
    trainer.prepare_step()
    batch, drawn = trainer.replay_buffer.sample(global_steps=1, partition_id="train", batch_size=BATCH)
    # dynamic sampling: two of the four tasks never differ, so others were drawn in their place, within the cap
    assert BATCH <= drawn["training/filter_groups/groups_drawn"] <= MOST_DRAWS * BATCH
    assert drawn["training/filter_groups/kept_share"] == 1.0
    asked = len(batch.keys)
    _every_screenshot_has_its_tokens(trainer, batch)
    batch = trainer._balance_batch(batch, metrics)
    assert len(batch.keys) % (ROLLOUTS * MINI_BATCHES * 2) == 0 and len(batch.keys) > asked
    fields = ("advantages", "returns", "response_mask", "rm_scores", "extra_fields")
    batch, found = compared(trainer, batch, metrics, *fields)
    sessions: defaultdict[tuple[str, int], list[tuple[RowRecord, torch.Tensor]]] = defaultdict(list)
    for tag, fields_, tokens, mask in zip(
        batch.tags, found["extra_fields"], found["advantages"].unbind(), found["response_mask"].unbind(), strict=True
    ):
        assert tokens.shape == mask.shape
        if tag.get("is_padding"):
            assert not tokens.any()
            continue
        record = RowRecord(**getattr(fields_, "data", fields_)["guieval"])
        sessions[record.uid, record.session].append((record, tokens))
    assert sum(map(len, sessions.values())) == asked
    assert Counter(uid for uid, _ in sessions) == dict.fromkeys({uid for uid, _ in sessions}, ROLLOUTS)
    rollouts = []
    for (uid, _), steps in sessions.items():
        steps.sort(key=lambda step: step[0].step)
        records = [record for record, _ in steps]
        indices, rewards, matched = zip(*((each.step, each.reward, each.matched) for each in records), strict=True)
        rollouts.append(Trajectory(uid, indices, rewards, matched))
    for (_, steps), expected in zip(sessions.items(), advantages(rollouts), strict=True):
        for (_, tokens), value in zip(steps, expected, strict=True):
            assert tokens.tolist() == pytest.approx([value] * len(tokens), abs=1e-6)
    assert any(tokens.any() for steps in sessions.values() for _, tokens in steps)
    found_records = [record for steps in sessions.values() for record, _ in steps]
    assert metrics["guieval/exact_match"] == pytest.approx(sum(record.matched for record in found_records) / asked)
    _reward_is_watched(trainer, found_records, metrics)
    trainer._update_actor(batch, metrics)
    assert trainer.actor_rollout_wg.result["mini_batch_size"] * MINI_BATCHES == len(batch.keys)
    assert trainer.config.actor_rollout_ref.actor.ppo_mini_batch_size == BATCH
    timing: defaultdict[str, float] = defaultdict(lambda: 1.0)
    timing["step"] = 1.0
    trainer.resource_pool_manager = SimpleNamespace(get_n_gpus=lambda: 1)
    trainer._compute_metrics(batch, metrics, timing, global_steps=1, epoch=0)
    assert metrics["training/num_turns/max"] <= 2 * max(len(data.episode(number)) for number in range(4))
    tq.kv_clear(keys=batch.keys, partition_id="train")
    assert OmegaConf.select(trainer.config, "trainer.v1.trainer_mode") == trainer.mode


def _reward_is_watched(trainer: GuiSemiOnline, records: list[RowRecord], metrics: dict[str, Any]) -> None:
    """Reward beside the benchmark's exact match, in verl's figures and in the file from which a resumed training continues."""
    assert metrics["watch/reward"] == pytest.approx(fmean(record.reward for record in records))
    assert 0.0 < metrics["watch/exact_match"] < 1.0 and metrics["watch/malformed"] == 0.0 < metrics["watch/blind_policy"]
    lines = (Path(trainer.config.trainer.default_local_dir) / "watch.jsonl").read_text(encoding="utf-8").splitlines()
    first = json.loads(lines[0])
    assert first == {"step": 1, **{name: value for name, value in metrics.items() if name.startswith("watch/")}}


def _every_screenshot_has_its_tokens(trainer: GuiSemiOnline, batch: Any) -> None:
    """What is trained on shows the screenshots in the size that the prompt was written for, which was sent to the server."""
    found = tq.kv_batch_get(keys=batch.keys, partition_id="train", select_fields=["input_ids", "multi_modal_inputs"])
    place = trainer.tokenizer.convert_tokens_to_ids("<|image_pad|>")
    shown = set()
    for tokens, inputs in zip(found["input_ids"].unbind(), found["multi_modal_inputs"], strict=True):
        grids = getattr(inputs, "data", inputs)["image_grid_thw"]
        assert int((tokens == place).sum()) == int(grids.prod(-1).sum()) // 4
        shown.add(len(grids))
    assert shown <= {1, 2} and 1 in shown  # history screenshots are trimmed


def test_validation_gives_sop(trainer: GuiSemiOnline, data: TrainingData) -> None:
    figures = {name: value for name, value in trainer._validate().items() if "guieval/demo-icons" in name}
    by_kind = {kind: [value for name, value in figures.items() if f"/{kind}/mean" in name] for kind in ("progress", "success")}
    for values in by_kind.values():
        assert len(values) == 1 and 0 <= values[0] <= 0.5  # two of the four tasks are never solved
    patches = [value for name, value in figures.items() if "/patches/mean" in name]
    assert patches == [0.0]


def test_a_step_of_online_rl(running: None, compose: Compose, policy: Path, tmp_path: Path) -> None:
    """Rollouts in an environment, in verl's worker process, rewarded by the judge."""
    options = {"episodes": 2, "seed": SEED, "split": "train"}
    tasks = open_tasks(Source(bench="demo-icons", bench_options=options), tmp_path, 0)
    write_tasks(tasks, tmp_path / "rows", options=options)
    replies = {row["prompt"][0]["content"]: right(row, 0) for row in read_rows(tmp_path / "rows")}
    judged = ("guieval.model=qwen2.5-vl-7b-ui-s1", *EVERY_STEP, f"data.train_files={tmp_path / 'rows' / 'rows.jsonl'}")
    shared = [each for each in SETTINGS if not each.startswith(("guieval.reward", "actor_rollout_ref.rollout.n="))]
    config = compose("online-1x8", *shared, *judged, "actor_rollout_ref.rollout.n=6")
    with opened(GuiSemiOnlineTrainer, config, Chance(policy, replies)) as made:
        made.prepare_step()
        batch, _ = made.replay_buffer.sample(global_steps=1, partition_id="train", batch_size=BATCH)
        metrics: dict[str, Any] = {}
        batch = made._balance_batch(batch, metrics)
        batch, found = compared(made, batch, metrics, "advantages", "extra_fields")
    records, values = [], []
    for tag, fields, tokens in zip(batch.tags, found["extra_fields"], found["advantages"].unbind(), strict=True):
        if not tag.get("is_padding"):
            records.append(RowRecord(**getattr(fields, "data", fields)["guieval"]))
            values.append(float(tokens[0]))
    assert len({(record.uid, record.session) for record in records}) == 12
    assert values == pytest.approx(row_advantages(records, read_settings(config).advantages), abs=1e-5) and any(values)
    progress = {(record.uid, record.session): record.progress for record in records}
    assert metrics["guieval/progress"] == pytest.approx(fmean(progress.values()))
    assert 0.0 < metrics["guieval/progress"] < 1.0 and "watch/reward" not in metrics

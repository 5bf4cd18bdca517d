"""Online RL in the icons demo: what is rewarded is what an online run counts, and any number of processes agrees."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from guieval.errors import UsageError
from guieval.playground.environments.icons import IconsEnvironment
from guieval.training.building import Parts, _at_once
from guieval.training.session import train
from tests.command_line import CommandLine

from .conftest import Configured, launched, log

TASKS = 4


def test_rollouts_are_those_of_an_online_run(configured: Configured) -> None:
    """Greedy ones of all tasks come to the figures of the evaluation of the same weights on the same tasks."""
    config = configured(
        "online",
        bench_options={"episodes": TASKS},
        evaluation={"every": 5, "bench_options": {"episodes": TASKS}},
        dynamic_sampling=None,
        trainer={"max_steps": 1, "num_generations": 2, "per_device_train_batch_size": 2 * TASKS, "top_k": 1},
    )
    train(config)
    start, trained = [line for line in log(config) if "eval/success" in line or "reward" in line]
    assert trained["online/success"] == pytest.approx(start["eval/success"])
    assert trained["online/progress"] == pytest.approx(start["eval/progress"])
    assert trained["online/steps"] == pytest.approx(start["eval/steps"])
    assert trained["reward"] == pytest.approx(start["eval/success"]) and trained["reward_std"] == 0
    assert 0 < start["eval/progress"] < 1


def test_every_step_of_a_rollout_has_its_advantage(configured: Configured) -> None:
    config = configured("online", reward={"progress": 1.0, "every_step": True}, dynamic_sampling=None)
    parts = Parts(config)
    trainer = parts.trainer()
    try:
        groups = trainer._groups([0] * 4 + [1] * 4, 0)
    finally:
        parts.stage.close()
    for group in groups:
        worth = [row.advantage for row in group.rows]
        assert group.kept == (len(set(worth)) > 1)
        assert group.rows and all(map(math.isfinite, worth))
        assert all(row.pictures[0].root == parts.stage.screens for row in group.rows)
    assert any(group.kept for group in groups)


def test_a_group_begins_from_one_seed_and_another_draw_from_others(configured: Configured) -> None:
    parts = Parts(configured("online"))
    trainer = parts.trainer()
    first = [trainer._seed(group) for group in (0, 0, 1)]
    trainer._draw += 1
    assert first[0] == first[1] and len({*first, trainer._seed(0)}) == 3
    assert all(0 <= seed < 2**31 for seed in first)
    parts.stage.close()


def test_two_processes_agree(configured: Configured) -> None:
    config = configured("online", trainer={"max_steps": 1, "per_device_train_batch_size": 4})
    done = launched(config, processes=2)
    assert done.returncode == 0, done.stderr[:6000]
    (line,) = [line for line in log(config) if "reward" in line]
    assert 0 < line["online/progress"] < 1 and line["online/environment_failures"] == 0


def test_screenshots_of_used_rows_are_removed(configured: Configured) -> None:
    config = configured("online", trainer={"max_steps": 2, "save_steps": 1})
    parts = Parts(config)
    trainer = parts.trainer()
    try:
        trainer.train()
    finally:
        parts.stage.close()
    out = Path(config.out)
    last = len(list((out / "screens").iterdir()))
    assert 0 < last <= 4 * 4 * 8  # of the last batch alone
    assert len(trainer._pictures._kept) <= last + 1  # and the blank one
    assert not list((out / "checkpoints").glob("*/screens"))  # no batch was in use when they were written


def test_what_a_plan_lacks(configured: Configured, monkeypatch: pytest.MonkeyPatch, guieval: CommandLine) -> None:
    monkeypatch.setattr(IconsEnvironment, "most_devices", 1)
    config = configured("online")
    assert _at_once(Parts(config), config, 1) == 1  # type: ignore[arg-type]  # it is of kind online
    with pytest.raises(UsageError, match=r"Demo \(icons\) opens at most 1 at a time, and there are 2 processes: start 1"):
        _at_once(Parts(config), config, 2)  # type: ignore[arg-type]
    command = ["train", "plan", "--config", "tiny-online", "--processes", "1"]
    assert "the length of a prompt is not known: --set max_prompt_length=N" in guieval.sentence(*command)
    printed = guieval(*command, "--set", "max_prompt_length=400").out
    assert "8 tasks x 8 = 64 rollouts" in printed and "8 tasks, 1 optimiser step" in printed

"""Trainings killed at moments that nobody chose, again and again: weights, log and evaluations of an undisturbed one."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from tests.training.conftest import Configured, by_torchrun, written
from tests.training.test_resume import result

KILLS = int(os.environ.get("GUIEVAL_KILLS", "3"))
"""How often a training is killed; 20 in ``make kills``."""


@pytest.mark.parametrize("kind", ["sft", "grpo"])
def test_kills_at_any_moment_lose_and_double_nothing(kind: str, configured: Configured, tmp_path: Path) -> None:
    """Every moment is an operation on a file of the training: its start, a log line, a save, the end."""
    steps = 6
    configs = {
        name: configured(
            kind,
            out=str(tmp_path / name),
            evaluation={"every": 3, "bench_options": {"split": "test"}, "limit": 3},
            trainer={"max_steps": steps, "save_steps": 1},
            **({"reward_watch": {"every": 3}} if kind == "grpo" else {}),
        )
        for name in ("whole", "killed")
    }

    def tried(name: str, moments: list[int]) -> list[int]:
        config = configs[name]
        words = ["-m", "tests.training.kills", config.out, ",".join(map(str, moments)), "train", kind, "--config"]
        done = by_torchrun([*words, written(config)], 1)
        assert done.returncode == 0, done.stdout + done.stderr
        return [int(number) for number in done.stdout.splitlines()[-1].split()]

    (most,) = tried("whole", [])
    # a resumed training has fewer moments than a whole one: those of two of its steps at most, and it gets on
    draw = random.Random(kind)
    killed, resumed = tried("killed", [draw.randrange(most // 2)] + [draw.randrange(most // 3) for _ in range(KILLS - 1)])
    print(f"{kind}: {killed} kills, {resumed} of them of a resumed training, of {most} moments in all")
    whole, left = (result(config) for config in configs.values())
    assert killed >= 2
    assert [row["step"] for row in left[1] if "loss" in row] == [*range(1, steps + 1)]
    assert [row["step"] for row in left[2]] == [0, 3, 6]
    assert left[1] == whole[1] and left[2] == whole[2]
    assert left[0] == whole[0]

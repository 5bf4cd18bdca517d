"""What the tests of training share: the shipped half-trained policy, drawn screens, and small trainings of it."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import pytest
import yaml

from guieval.data.shipped import config_folder
from guieval.registry import load_benchmark
from guieval.training.config import TrainingConfig, parse_config
from tests.conftest import REPOSITORY

Configured: TypeAlias = Callable[..., TrainingConfig]
Done: TypeAlias = "subprocess.CompletedProcess[str]"

EPISODES = 40
NEED_TRL = ["answers", "behaviour", "kept_rows", "lockstep", "lora", "online", "planning", "processes", "rows", "speed"]
NEED_TRL += ["study", "tiny_policy_training", "trainers", "transformers_engine", "trl_rewards"]
collect_ignore = [] if importlib.util.find_spec("trl") else [f"test_{name}.py" for name in NEED_TRL]
"""Without TRL the other part is tried alone: `make test-train` has it."""


@pytest.fixture(scope="session", autouse=True)
def _one_thread() -> None:
    """A tiny model is no faster on several cores, and other tests may run beside it."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    try:
        import torch
    except ImportError:
        return
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def policy() -> Path:
    """The folder of the shipped policy; ``$GUIEVAL_TINY_POLICY`` names another one to try."""
    folder = Path(os.environ.get("GUIEVAL_TINY_POLICY") or config_folder() / "checkpoints" / "tiny-policy")
    if not (folder / "model.safetensors").is_file():
        pytest.skip(f"no policy in {folder}")
    return folder


@pytest.fixture(scope="session")
def screens(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the drawn screens that the trainings look at."""
    folder = tmp_path_factory.mktemp("icons")
    for split in ("train", "test"):
        for _ in load_benchmark("demo-icons", folder, split=split, episodes=EPISODES):
            pass
    return folder


def small_training(kind: str, policy: Path, screens: Path, **given: Any) -> TrainingConfig:
    """A small training of a kind, with other settings over its own; groups are merged."""
    values: dict[str, Any] = {
        "kind": kind,
        "model": "tiny-policy",
        "model_path": str(policy),
        "bench": "demo-icons",
        "bench_options": {"split": "train", "episodes": EPISODES},
        "data": str(screens),
        "trainer": {"max_steps": 2, "per_device_train_batch_size": 8, "gradient_accumulation_steps": 1, "save_steps": 2},
    }
    if kind != "sft":
        values["trainer"] |= {"num_generations": 4, "max_completion_length": 32, "learning_rate": 2e-5}
        values["reward"] = {"name": "ui-s1-lenient"}  # the tiny policy writes no thoughts
    if kind == "online":
        del values["data"], values["reward"]
    for name, value in given.items():
        values[name] = {**values.get(name, {}), **value} if isinstance(value, dict) else value
    values["trainer"] = {name: value for name, value in values["trainer"].items() if value is not None}
    return parse_config({name: value for name, value in values.items() if value is not None})


@pytest.fixture
def configured(policy: Path, screens: Path, tmp_path: Path) -> Configured:
    pytest.importorskip("trl")
    return lambda kind, **given: small_training(kind, policy, screens, **{"out": str(tmp_path / "out"), **given})


def in_training(config: TrainingConfig) -> Any:
    """The trainer of a configuration, about to take its first step."""
    from guieval.training.building import TrainerParts

    trainer = TrainerParts(config).trainer()
    trainer.model.train()
    trainer.current_gradient_accumulation_steps = config.trainer["gradient_accumulation_steps"]
    return trainer


def json_lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def log(config: TrainingConfig) -> list[dict[str, Any]]:
    return json_lines(Path(config.out) / "log.jsonl")


def evaluations(config: TrainingConfig) -> list[dict[str, Any]]:
    return json_lines(Path(config.out) / "evaluations.jsonl")


def written(config: TrainingConfig) -> str:
    """The configuration as a file beside its folder."""
    file = Path(config.out).with_suffix(".yaml")
    file.write_text(yaml.safe_dump(config.model_dump(mode="json", exclude_unset=True)), encoding="utf-8")
    return str(file)


def by_torchrun(words: Sequence[str], processes: int, **environment: str) -> Done:
    """A program in processes of its own, by torchrun if there are several."""
    torchrun = ["-m", "torch.distributed.run", "--nproc_per_node", str(processes), "--standalone"]
    command = [sys.executable, *(torchrun if processes > 1 else []), *words]
    own = {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "PYTHONPATH": str(REPOSITORY)}
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, **own, **environment}, timeout=1800)


def launched(config: TrainingConfig, *options: str, faults: str = "", processes: int = 1, **environment: str) -> Done:
    """``guieval train`` in processes of its own, with the ``faults`` of faults.py."""
    script = [str(Path(__file__).with_name("faults.py")), *faults.split(), "guieval"]
    words = [*script, "train", config.kind, "--config", written(config), *options]
    return by_torchrun(words, processes, **environment)

"""What the tests of training share: the shipped half-trained policy, drawn screens, and small trainings of it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import pytest
import yaml

from guieval.registry import config_folder, load_benchmark
from guieval.training.config import TrainingConfig, parse_config

Configured: TypeAlias = Callable[..., TrainingConfig]
Done: TypeAlias = "subprocess.CompletedProcess[str]"

EPISODES = 40


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


@pytest.fixture
def configured(policy: Path, screens: Path, tmp_path: Path) -> Configured:
    """A small training of a kind, with other settings over its own; groups are merged."""

    def make(kind: str, **given: Any) -> TrainingConfig:
        values: dict[str, Any] = {
            "kind": kind,
            "model": "tiny-policy",
            "model_path": str(policy),
            "bench": "demo-icons",
            "bench_options": {"split": "train", "episodes": EPISODES},
            "data": str(screens),
            "out": str(tmp_path / "out"),
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

    return make


def launched(
    config: TrainingConfig, *options: str, faults: str = "", processes: int = 1, environment: Mapping[str, str] | None = None
) -> Done:
    """``guieval train`` in processes of its own, by torchrun if there are several, with the ``faults`` of faults.py."""
    file = Path(config.out).with_suffix(".yaml")
    file.write_text(yaml.safe_dump(config.model_dump(mode="json", exclude_unset=True)), encoding="utf-8")
    torchrun = ["-m", "torch.distributed.run", "--nproc_per_node", str(processes), "--standalone"]
    script = [str(Path(__file__).with_name("faults.py")), *faults.split(), "guieval"]
    command = [sys.executable, *(torchrun if processes > 1 else []), *script, "train", config.kind, "--config", str(file)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", **(environment or {})}
    return subprocess.run([*command, *options], capture_output=True, text=True, env=environment, timeout=600)

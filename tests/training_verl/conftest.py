"""What the tests with real verl share: the tiny policy's folder, rows of drawn screens, configurations, rollouts."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from guieval.data.selection import Choice, select
from guieval.registry import load_benchmark
from guieval.training.data.examples import TrainingData
from guieval.training.verl.rows import write_rows
from tests.training_verl.scripted_server import ScriptedServer

HERE = Path(__file__).parent
collect_ignore_glob = [] if importlib.util.find_spec("verl") else ["test_with_*.py"]
"""Without verl the torch-free part alone is tried: `make test-verl` has it."""

os.environ.update(HF_HUB_OFFLINE="1", RAY_USAGE_STATS_ENABLED="0", RAY_DISABLE_DOCKER_CPU_WARNING="1")

Compose = Callable[..., Any]
Roll = Callable[..., tuple[Any, ScriptedServer]]


def read_rows(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "rows.jsonl").read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> TrainingData:
    """Four episodes of drawn icons, screenshots drawn."""
    benchmark = load_benchmark("demo-icons", str(tmp_path_factory.mktemp("icons")), episodes=4, seed=3, split="train")
    found = TrainingData(benchmark, select(benchmark, Choice()))
    for number in range(len(found.refs)):
        found.episode(number)
    return found


@pytest.fixture(scope="session")
def rows(data: TrainingData, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rows of whole episodes."""
    folder = tmp_path_factory.mktemp("rows")
    assert write_rows(data, folder) == 4
    return folder


@pytest.fixture(scope="session")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an untrained tiny policy: verl reads its configuration, its tokenizer and its processor."""
    import torch

    from guieval.playground.tiny_policy.building import build_policy

    folder = tmp_path_factory.mktemp("policy")
    build_policy(0).save(folder, torch.bfloat16)
    return folder


@pytest.fixture(scope="session")
def compose(rows: Path, policy: Path) -> Compose:
    """A shipped configuration with overrides, as verl's entry point composes it."""
    from hydra import compose as composed
    from hydra import initialize_config_dir
    from omegaconf import OmegaConf

    from guieval.training.verl.__main__ import config_folder

    def make(name: str, *overrides: str) -> Any:
        files = [f"data.{kind}_files={rows / 'rows.jsonl'}" for kind in ("train", "val")]
        with initialize_config_dir(str(config_folder()), version_base=None):
            config = composed(name, overrides=[*files, f"actor_rollout_ref.model.path={policy}", *overrides])
        OmegaConf.resolve(config)
        return config

    return make


@pytest.fixture(scope="session")
def tokenizer(policy: Path) -> Any:
    from verl.utils.tokenizer import hf_tokenizer

    return hf_tokenizer(str(policy))


@pytest.fixture(scope="session")
def roll(compose: Compose, policy: Path, tokenizer: Any) -> Roll:
    """Rolls a row out under a shipped configuration: the outputs of its session or sessions, and the server that answered."""
    from verl.experimental.agent_loop.agent_loop import DictConfigWrap
    from verl.utils.dataset.rl_dataset import RLHFDataset
    from verl.utils.tokenizer import hf_processor

    from guieval.training.verl.loop import GuiLoop

    def make(
        name: str, settings: Sequence[str], say: Callable[[int, str], str], row: Any, *, sessions: int = 1, kind: Any = GuiLoop
    ) -> tuple[Any, ScriptedServer]:
        config, server = compose(name, *settings), ScriptedServer(tokenizer, say)

        async def run(session: int) -> Any:
            loop = kind(
                trainer_config=DictConfigWrap(config),
                server_manager=server,
                tokenizer=tokenizer,
                processor=hf_processor(str(policy)),
                dataset_cls=RLHFDataset,
                data_config=DictConfigWrap(config.data),
                hf_model_type="qwen3_vl",
            )
            return await loop.run({"temperature": 1.0}, uid="task", session_id=session, **row)

        async def together() -> Any:
            return await asyncio.gather(*(run(2 + number) for number in range(sessions)))

        outputs = asyncio.run(together())
        return (outputs[0] if sessions == 1 else outputs), server

    return make

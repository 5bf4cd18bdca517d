"""What the tests of cluster runs share: scripted runs, and records without what differs from run to run."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from guieval.journal import METRICS, Records
from guieval.models import ModelConfig
from guieval.registry import load_benchmark
from guieval.running.config import RunConfig
from guieval.running.progress import Progress
from guieval.running.runner import Runner
from guieval.steps import Episode, StepRecord
from tests.scripted import ListBenchmark, ScriptedEngine, ScriptedModel, runner_of

MODEL = "qwen2.5-vl-7b"
OPTIONS = {"episodes": 24, "seed": 5}


@pytest.fixture(scope="package")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which every screen of the demo benchmark is drawn already."""
    folder = tmp_path_factory.mktemp("demo")
    for _ in load_benchmark("demo", folder, **OPTIONS):
        pass
    return folder


def open_scripted(
    directory: Path,
    episodes: Sequence[Episode],
    engine: ScriptedEngine,
    mode: str = "offline",
    on_progress: Callable[[Progress], None] = lambda progress: None,
) -> Runner:
    config = RunConfig(model="scripted", bench="scripted", mode=mode)
    model = ScriptedModel(ModelConfig(name="scripted", adapter="scripted"))
    return runner_of(config, directory, ListBenchmark(episodes), model, engine, 4, on_progress)


def timeless(record: StepRecord) -> str:
    samples = [sample.model_copy(update={"seconds": None, "attempts": 1}) for sample in record.samples]
    return record.model_copy(update={"samples": tuple(samples)}).model_dump_json()


def final(directory: Path) -> dict[str, str]:
    """The last finished record of each step as text, without its timing."""
    return {str(record.task.key): timeless(record) for record in Records(directory) if record.finished}


def figures(directory: Path) -> dict[str, Any]:
    """The stored figures, but for those that are times."""
    summary: dict[str, Any] = json.loads((directory / METRICS).read_text())["summary"]
    summary.pop("diagnostics")
    return summary

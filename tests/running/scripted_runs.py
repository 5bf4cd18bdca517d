"""The real runner over a scripted benchmark, model and engine."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from guieval.data.benchmark import ABCBenchmark
from guieval.models import ABCModel, Engine, ModelConfig
from guieval.running.config import RunConfig
from guieval.running.runner import Runner
from guieval.steps import Episode
from tests.scripted import ListBenchmark, ScriptedModel, runner_of


def scripted_runner(
    directory: Path,
    episodes: Sequence[Episode] | ABCBenchmark,
    engine: Engine,
    /,
    *,
    model: ABCModel | None = None,
    concurrency: Any = 4,
    settings: dict[str, Any] | None = None,
    **more: Any,
) -> Runner:
    """``settings`` are those of the configuration, ``more`` what :func:`tests.scripted.runner_of` takes."""
    config = RunConfig(model="scripted", bench="scripted", **(settings or {}))
    benchmark = episodes if isinstance(episodes, ABCBenchmark) else ListBenchmark(episodes)
    model = model or ScriptedModel(ModelConfig(name="scripted", adapter="scripted"))
    return runner_of(config, directory, benchmark, model, engine, concurrency, **more)

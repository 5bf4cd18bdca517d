"""The real runner over a scripted benchmark, model and engine, and what such engines answer."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from guieval.data.benchmark import ABCBenchmark
from guieval.errors import FatalEngineError
from guieval.journal import STEPS
from guieval.models import ABCModel, Engine, ModelConfig, Request
from guieval.running.runner.runner import Runner
from guieval.settings import RunConfig
from guieval.steps import Episode
from tests.scripted import ListBenchmark, Policy, ScriptedEngine, ScriptedModel, reply_with, runner_of


def right(request: Request) -> str:
    return reply_with(request.task.action, f"thought {request.task.key}")


def failing(error: Exception, when: Callable[[Request], bool], policy: Policy = right) -> Policy:
    """A policy that raises this error in place of some answers."""

    def answer(request: Request) -> str:
        if when(request):
            raise error
        return policy(request)

    return answer


def dying(answers: int) -> ScriptedEngine:
    """It answers so many requests and then none."""
    count = itertools.count()
    return ScriptedEngine(failing(FatalEngineError("it died"), lambda request: next(count) >= answers))


def lines_of(directory: Path) -> list[bytes]:
    """The lines of a run's journal."""
    return (directory / STEPS).read_bytes().splitlines(keepends=True)


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

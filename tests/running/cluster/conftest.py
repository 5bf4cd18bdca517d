"""What the tests of cluster runs share: scripted runs, and a benchmark whose screens are drawn."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from guieval.registry import load_benchmark
from guieval.running.cluster import Worker
from guieval.running.progress import Progress
from guieval.running.runner import Runner
from guieval.steps import Episode
from tests.running.scripted_runs import scripted_runner
from tests.scripted import ScriptedEngine

MODEL = "qwen2.5-vl-7b"
OPTIONS = {"episodes": 24, "seed": 5}


@pytest.fixture(scope="package")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which every screen of the demo benchmark is drawn already."""
    folder = tmp_path_factory.mktemp("demo")
    for _ in load_benchmark("demo", folder, **OPTIONS):
        pass
    return folder


@pytest.fixture
def worker() -> Iterator[Worker]:
    """A worker changes its working directory, as it has a process of its own."""
    here = os.getcwd()
    yield Worker("0000")
    os.chdir(here)


def open_scripted(
    directory: Path,
    episodes: Sequence[Episode],
    engine: ScriptedEngine,
    mode: str = "offline",
    on_progress: Callable[[Progress], None] = lambda progress: None,
) -> Runner:
    return scripted_runner(directory, episodes, engine, settings={"mode": mode}, on_progress=on_progress)

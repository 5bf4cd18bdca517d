"""What the tests of cluster runs share: a benchmark whose screens are drawn, and a worker."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from guieval.cluster.worker import Worker
from guieval.registry import load_benchmark

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

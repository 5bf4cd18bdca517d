"""One drawn benchmark and one undisturbed run of it, for all tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from guieval.registry import load_benchmark
from tests.faults.program import OPTIONS, Program
from tests.running.records import figures


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Program:
    benchmark = load_benchmark("demo", tmp_path_factory.mktemp("demo"), **OPTIONS)
    for _ in benchmark:  # draws the screens
        pass
    made = Program(benchmark, tmp_path_factory.mktemp("clean") / "run")
    with made.server(log=made.clean.parent / "requests") as server:
        made.run(server.base_url, made.clean)
    assert figures(made.clean)["complete"]
    return made


@pytest.fixture(autouse=True)
def ended(request: pytest.FixtureRequest) -> Iterator[None]:
    """No program outlives its test."""
    yield
    if "program" in request.fixturenames:
        request.getfixturevalue("program").running.close()

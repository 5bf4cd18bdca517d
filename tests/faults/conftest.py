"""One drawn benchmark and one undisturbed run of it, for all tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from guieval.registry import load_benchmark
from tests.faults.program import OPTIONS, Program
from tests.running.records import figures
from tests.waiting import PATIENCE


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
def patient_probes(monkeypatch: pytest.MonkeyPatch) -> None:
    """No server of these tests leaves a probe without an answer, but on a busy machine it may come late."""
    monkeypatch.setattr("guieval.engines.http.chat_completions._CHECK_TIMEOUT", PATIENCE)


@pytest.fixture(autouse=True)
def ended(request: pytest.FixtureRequest) -> Iterator[None]:
    """No program outlives its test."""
    yield
    if "program" in request.fixturenames:
        request.getfixturevalue("program").running.close()

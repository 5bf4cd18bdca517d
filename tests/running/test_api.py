"""guieval.run: what the command does, from plain code and inside of a running event loop, without a word on any stream."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import guieval
from guieval.errors import FatalEngineError, UsageError
from guieval.journal import RunFolder
from guieval.playground.mock_server import MockServer, MockSettings
from guieval.reports.opened import open_run
from guieval.running.api import RunResult
from tests.cli.demo_runs import MODEL, OPTIONS, command, reference
from tests.command_line import CommandLine
from tests.kernels import html_of
from tests.running.records import figures


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demo")


@pytest.fixture(scope="module")
def server(data: Path) -> Iterator[MockServer]:
    with reference(data, accuracy=0.7) as server:
        yield server


def ran(server: MockServer, data: Path, **settings: Any) -> RunResult:
    return guieval.run(model=MODEL, bench="demo", data=data, bench_options=OPTIONS, base_urls=server.base_url, **settings)


def resumed_run(directory: Path, server: MockServer, **settings: Any) -> RunResult:
    return guieval.run(resume=directory, base_url=server.base_url, **settings)


def test_it_is_what_the_command_does(tmp_path: Path, data: Path, server: MockServer, guieval: CommandLine) -> None:
    result = ran(server, data, mode=["offline", "sop"], out=tmp_path / "api")
    assert result.complete and [run.mode for run in result] == ["offline", "sop"] and result.directory == tmp_path / "api"
    guieval(*command(server, data, tmp_path / "cli", "--mode", "offline", "--mode", "sop"))
    for mode in ("offline", "sop"):
        assert result[mode].directory == tmp_path / "api" / mode
        assert figures(tmp_path / "api" / mode) == figures(tmp_path / "cli" / mode)
        opened, given = open_run(tmp_path / "api" / mode).metrics(), result.metrics(mode)
        assert type(opened) is type(given) and (opened, opened.steps) == (given, given.steps)
    with pytest.raises(KeyError, match="no run in mode 'soeval'; there are offline, sop"):
        _ = result["soeval"]
    with pytest.raises(UsageError, match="there are 2 runs: name the mode, one of offline, sop"):
        result.metrics()
    page = html_of(result)
    assert page.count("<tr>") == 3 and f"{100 * (result['sop'].summary.metrics['exact match'].value or 0):.2f} %" in page


def test_it_works_inside_of_a_running_event_loop_and_resumes(
    tmp_path: Path, data: Path, server: MockServer, monkeypatch: pytest.MonkeyPatch, guieval: CommandLine
) -> None:
    async def cell() -> RunResult:
        return ran(server, data, out=tmp_path / "run", limit=2, name="first", tag=["a", "b"])

    result = asyncio.run(cell())
    assert result.complete and len(result) == 1 and result.directory == tmp_path / "run"
    steps = list(RunFolder(tmp_path / "run").records)
    asked = server.stats()["requests"]

    async def again() -> RunResult:
        return resumed_run(tmp_path / "run", server, note="done")

    monkeypatch.setenv("GUIEVAL_TEMPERATURE", "0.9")  # for new runs
    resumed = asyncio.run(again())
    (listed,) = json.loads(guieval("runs", tmp_path, "--tag", "b", "--json").out)["runs"]
    assert (listed["title"], listed["tags"], listed["note"]) == ("first", ["a", "b"], "done")
    assert "with tag c; tags: a, b" in guieval("runs", tmp_path, "--tag", "c").out
    assert server.stats()["requests"] == asked and list(RunFolder(tmp_path / "run").records) == steps
    assert resumed.metrics() == result.metrics()


def test_settings_lie_over_a_configuration(tmp_path: Path, data: Path, server: MockServer) -> None:
    config = guieval.RunConfig(model=MODEL, bench="demo", data=str(data), bench_options=OPTIONS, base_urls=(server.base_url,))
    result = guieval.run(config, out=tmp_path / "run", limit=1)
    assert result.runs[0].config == config.having(limit=1)
    file = tmp_path / "run.yaml"
    file.write_text(f"model: {MODEL}\nbench: demo\nlimit: 1\nbase_urls: [{server.base_url}]\n")
    again = guieval.run(file, out=tmp_path / "again", data=data, bench_options=OPTIONS)
    assert again.metrics()["exact match"] == result.metrics()["exact match"]


def test_a_shipped_configuration_is_given_by_name(tmp_path: Path, data: Path) -> None:
    result = guieval.run("demo", out=tmp_path / "run", data=data, mode="offline", limit=1)
    assert result.runs[0].config.model.name == "ocr-baseline" and result.complete


def test_a_finished_run_with_a_damaged_line_has_nothing_to_repeat(tmp_path: Path, data: Path, server: MockServer) -> None:
    ran(server, data, out=tmp_path / "run", limit=1)
    with (tmp_path / "run" / "steps.jsonl").open("a") as journal:
        journal.write("garbage\n")
    result = guieval.run(resume=tmp_path / "run", base_urls=server.base_url)
    (warning,) = result.runs[0].outcome.progress.warnings
    assert warning.endswith("no step is missing") and "held no record" in warning


def test_mistakes_and_dead_servers_are_raised(tmp_path: Path, data: Path, server: MockServer) -> None:
    with pytest.raises(UsageError, match="unknown setting 'modell'"):
        guieval.run(modell=MODEL)  # type: ignore[call-arg]  # type checkers find it too
    with pytest.raises(UsageError, match="leave out 'out'"):
        guieval.run(resume=tmp_path, out=tmp_path)
    nobody = "http://127.0.0.1:9/v1"
    with pytest.raises(FatalEngineError):
        more: dict[str, Any] = {"limit": 1, "patience": 0, "max_attempts": 1, "out": tmp_path / "run"}
        guieval.run(model=MODEL, bench="demo", data=data, base_urls=nobody, **more)


def test_warnings_are_logged(
    tmp_path: Path, data: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    refusing = MockServer(MockSettings(model=MODEL, policy="fixed", reply="I cannot", served_models=(MODEL,)))
    with refusing as server, caplog.at_level(logging.WARNING, logger="guieval"):
        result = ran(server, data, out=tmp_path / "run")
    assert result.runs[0].unread and "could not be read as an action" in caplog.text
    assert capfd.readouterr() == ("", "")


def test_a_bar_shows_the_steps(tmp_path: Path, data: Path, server: MockServer, capfd: pytest.CaptureFixture[str]) -> None:
    result = ran(server, data, out=tmp_path / "run", progress=True)
    steps = sum(map(len, result.runs[0].outcome.run.plan.values()))
    assert f"{steps}/{steps}" in capfd.readouterr().err

"""A run over several servers, with and without adaptive concurrency: what the end tells of each server."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path

import pytest

from guieval.journal import METRICS, Records
from guieval.testing.mock_server import MockServer, MockSettings
from tests.command_line import CommandLine

MODEL = "qwen3-vl-8b-instruct"
SMALL = ("--set", "bench_options.episodes=8", "--set", "bench_options.seed=4", "--quiet")


@pytest.mark.parametrize("concurrency", ["8", "auto"])
def test_every_server_has_its_figures(tmp_path: Path, guieval: CommandLine, concurrency: str) -> None:
    settings = MockSettings(model=MODEL, policy="centre", latency=0.01, served_models=(MODEL,))
    failing = settings.model_copy(update={"error_rate": 0.2, "seed": 2})
    with ExitStack() as stack:
        servers = [stack.enter_context(MockServer(each)) for each in (settings, failing)]
        urls = [server.base_url for server in servers]
        where: list[str | Path] = [word for url in urls for word in ("--base-url", url)]
        command = ("run", "--model", MODEL, "--bench", "demo", "--data", tmp_path / "demo", "--out", tmp_path / "run")
        done = guieval(*command, *where, "--concurrency", concurrency, *SMALL)
        served = [server.stats()["served"] for server in servers]
        failed = [server.stats()["failed"] for server in servers]
    assert done.code == 0, done
    steps = len(list(Records(tmp_path / "run")))
    figures = json.loads((tmp_path / "run" / METRICS).read_text())["servers"]
    assert [figure["name"] for figure in figures] == urls
    assert [figure["answered"] for figure in figures] == served and sum(served) == steps
    assert [figure["failed"] for figure in figures] == failed and failed[1] > 0
    assert sum(figure["retries"] for figure in figures) == sum(failed)
    assert [figure["prompt_tokens"] for figure in figures] == [3000 * count for count in served]
    assert all(0 < figure["busy"] <= 1 and 0 < figure["seconds_mean"] < 10 for figure in figures)
    for url, figure in zip(urls, figures, strict=True):
        line = f"server:   offline: {url}: {figure['requests']:,} requests, {figure['answered']:,} answered"
        assert line in done.out


def test_one_server_is_not_distinguished(tmp_path: Path, guieval: CommandLine) -> None:
    with MockServer(MockSettings(model=MODEL, policy="centre", served_models=(MODEL,))) as server:
        command = ("run", "--model", MODEL, "--bench", "demo", "--data", tmp_path / "demo", "--base-url", server.base_url)
        done = guieval(*command, "--out", tmp_path / "run", *SMALL)
    assert done.code == 0 and "server:" not in done.out
    (figure,) = json.loads((tmp_path / "run" / METRICS).read_text())["servers"]
    assert figure["answered"] == len(list(Records(tmp_path / "run")))


def test_a_concurrency_that_is_none_is_one_sentence(guieval: CommandLine) -> None:
    message = guieval.sentence(
        "run", "--model", MODEL, "--bench", "demo", "--base-url", "http://127.0.0.1:9", "--concurrency", "all"
    )
    assert "'concurrency' is 'all': expected a number from 1 to 4096, or auto" in message

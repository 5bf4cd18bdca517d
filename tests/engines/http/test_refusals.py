"""Servers that refuse everything for one reason: the run ends with that answer, and where a request is answered it goes on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from guieval.engines.http.refusals import IN_A_ROW, Refusals
from guieval.journal import RunFolder
from guieval.playground.mock_server import MockServer, MockSettings
from tests.command_line import CommandLine

MODEL = "qwen3-vl-8b-instruct"
CONCURRENCY = 4


@pytest.mark.ci
@pytest.mark.parametrize("status", [400, 422])
def test_a_server_that_refuses_everything_ends_the_run(tmp_path: Path, guieval: CommandLine, status: int) -> None:
    with MockServer(MockSettings(model=MODEL, policy="centre", error_rate=1.0, error_status=status)) as server:
        where = ("--data", tmp_path / "demo", "--out", tmp_path / "run", "--base-url", server.base_url)
        few = ("--set", "bench_options.episodes=12", "--set", "bench_options.seed=4", "--concurrency", str(CONCURRENCY))
        done = guieval("run", "--model", MODEL, "--bench", "demo", *where, *few)
        asked = server.stats()["requests"]
    assert done.code == 2 and IN_A_ROW <= asked <= IN_A_ROW + 3 * CONCURRENCY
    message = done.err.splitlines()[-1]
    assert f"(status {status})" in message and "no more are sent" in message and "guieval run --resume" in message, message
    assert not any(record.finished for record in RunFolder(tmp_path / "run").records)
    with MockServer(MockSettings(model=MODEL, policy="centre")) as server:
        again = guieval("run", "--resume", tmp_path / "run", "--base-url", server.base_url)
    assert again.code == 0, again
    verdicts = json.loads((tmp_path / "run" / "metrics.json").read_text())["summary"]["verdicts"]
    assert verdicts["infrastructure_failure"] == verdicts["not_run"] == 0


def refused(refusals: Refusals, number: int, message: str = "too long") -> bool:
    last = refusals.refused(number, 400, message)
    refusals.over(number)
    return last


def test_it_takes_enough_refusals_of_one_kind() -> None:
    refusals = Refusals()
    ends = [refused(refusals, refusals.begun(), f"prompt of {length} tokens") for length in range(IN_A_ROW)]
    assert ends == [False] * (IN_A_ROW - 1) + [True]
    mixed = Refusals()
    assert not any(refused(mixed, mixed.begun(), message) for _ in range(IN_A_ROW) for message in ("too long", "no image"))


def test_requests_under_way_are_waited_for() -> None:
    refusals = Refusals()
    slow, slower = refusals.begun(), refusals.begun()
    assert not any(refused(refusals, refusals.begun()) for _ in range(3 * IN_A_ROW))
    assert not refused(refusals, slow)
    assert refused(refusals, slower)
    answered = Refusals()
    slow = answered.begun()
    assert not any(refused(answered, answered.begun()) for _ in range(IN_A_ROW))
    answered.answered()
    answered.over(slow)
    assert not any(refused(answered, answered.begun()) for _ in range(IN_A_ROW))

"""A run of the real program against the mock server, killed and resumed."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from guieval.journal import STEPS, RunFolder
from guieval.playground.mock_server import MockServer, MockSettings
from guieval.registry import load_benchmark
from tests.command_line import CommandLine
from tests.programs import started
from tests.running.records import figures, final
from tests.waiting import until

MODEL = "qwen2.5-vl-7b"
KILLS = int(os.environ.get("GUIEVAL_KILLS", "3"))
"""Moments at which the run is killed; ``make kills`` takes 100, in every mode."""
MANY = KILLS > 10
OPTIONS = {"episodes": KILLS if MANY else 12, "seed": 5}


def command(data: Path, url: str, directory: Path, *more: str) -> list[str]:
    options = [item for name, value in OPTIONS.items() for item in ("--set", f"bench_options.{name}={value}")]
    start = ["run", "--quiet", "--base-url", url]
    if "--resume" in more:
        return [*start, *more]
    return [*start, "--model", MODEL, "--bench", "demo", "--data", str(data), "--out", str(directory), *options, *more]


@pytest.mark.parametrize("mode", ["offline", "soeval", "sop"] if MANY else ["soeval"])
def test_kills_lose_and_double_nothing(tmp_path: Path, mode: str, guieval: CommandLine) -> None:
    """Half of the kills come when the journal has grown, the others when an answer has been sent that it may not hold yet."""
    fixed = {"model": MODEL, "policy": "reference", "accuracy": 0.7, "seed": 3, "served_models": (MODEL,)}
    settings = MockSettings.model_validate({**fixed, "concurrency": 3 if MANY else 8})
    data = tmp_path / "demo"
    with MockServer(settings, benchmark=load_benchmark("demo", data, **OPTIONS)) as server:
        clean, killed = tmp_path / "clean", tmp_path / "killed"
        assert guieval(*command(data, server.base_url, clean, "--mode", mode)).code == 0
        server.app.settings = settings.model_copy(update={"latency": 0.15})
        draw = random.Random(11)
        words = command(data, server.base_url, killed, "--mode", mode)

        def lines() -> int:
            return (killed / STEPS).read_bytes().count(b"\n") if (killed / STEPS).exists() else 0

        def served() -> int:
            return int(server.stats()["served"])

        def reached(count: Callable[[], int], grown: int) -> bool:
            return count() >= grown

        for _ in range(KILLS):
            count = draw.choice((lines, served))
            grown = count() + draw.randint(1, 2 if MANY else 8)
            with started([sys.executable, "-m", "guieval", *words], stdout=subprocess.DEVNULL) as process:
                until(partial(reached, count, grown), "the moment", every=0.002, running=process)
            assert process.returncode == -signal.SIGKILL, "the run ended before it was killed: make it longer"
            words = command(data, server.base_url, killed, "--resume", str(killed))
        server.app.settings = settings
        assert guieval(*words).code == 0
    keys = Counter(str(record.task.key) for record in RunFolder(killed).records)
    assert set(keys.values()) == {1}, "a finished step was asked again"
    assert final(killed) == final(clean)
    assert figures(killed) == figures(clean)

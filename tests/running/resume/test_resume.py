"""Runs of the real program against the mock server, killed and resumed."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from guieval.journal import METRICS, STEPS, Records
from guieval.registry import load_benchmark
from guieval.testing.mock_server import MockServer, MockSettings

MODEL = "qwen2.5-vl-7b"
KILLS = int(os.environ.get("GUIEVAL_KILLS", "6"))
"""Moments at which the run is killed; ``make kills`` takes 100, in every mode."""
MANY = KILLS > 10
OPTIONS = {"episodes": KILLS if MANY else 30, "seed": 5}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which every screen of the demo benchmark is drawn already."""
    folder = tmp_path_factory.mktemp("demo")
    for _ in load_benchmark("demo", folder, **OPTIONS):
        pass
    return folder


def command(data: Path, url: str, directory: Path, *more: str) -> list[str]:
    options = [item for name, value in OPTIONS.items() for item in ("--set", f"bench_options.{name}={value}")]
    start = [sys.executable, "-m", "guieval", "run", "--quiet", "--base-url", url]
    if "--resume" in more:
        return [*start, *more]
    return [*start, "--model", MODEL, "--bench", "demo", "--data", str(data), "--out", str(directory), *options, *more]


def final(directory: Path) -> dict[str, str]:
    """The last finished record of each step as text, without its timing."""
    records = {}
    for record in Records(directory):
        if record.finished:
            samples = [sample.model_copy(update={"seconds": None, "attempts": 1}) for sample in record.samples]
            records[str(record.task.key)] = record.model_copy(update={"samples": tuple(samples)}).model_dump_json()
    return records


@pytest.mark.parametrize("mode", ["offline", "soeval", "sop"] if MANY else ["soeval"])
def test_kills_lose_and_double_nothing(tmp_path: Path, data: Path, mode: str) -> None:
    settings = MockSettings(
        model=MODEL,
        policy="reference",
        accuracy=0.7,
        latency=0.15,
        concurrency=3 if MANY else 8,
        seed=3,
        served_models=(MODEL,),
    )
    with MockServer(settings, benchmark=load_benchmark("demo", data, **OPTIONS)) as server:
        clean, killed = tmp_path / "clean", tmp_path / "killed"
        subprocess.run(command(data, server.base_url, clean, "--mode", mode), check=True, capture_output=True)
        draw = random.Random(11)
        process = subprocess.Popen(command(data, server.base_url, killed, "--mode", mode), stdout=subprocess.DEVNULL)
        lines: list[bytes] = []
        for _ in range(KILLS):
            grown = len(lines) + draw.randint(1, 2 if MANY else 8)
            deadline = time.monotonic() + 60
            while process.poll() is None and time.monotonic() < deadline:
                lines = (killed / STEPS).read_bytes().splitlines() if (killed / STEPS).exists() else []
                if len(lines) >= grown:
                    break
                time.sleep(0.002)
            time.sleep(draw.random() * 0.05)
            process.send_signal(signal.SIGKILL)
            assert process.wait() == -signal.SIGKILL, "the run ended before it was killed: make it longer"
            process = subprocess.Popen(
                command(data, server.base_url, killed, "--resume", str(killed)), stdout=subprocess.DEVNULL
            )
        assert process.wait(timeout=120) == 0
    keys = Counter(str(record.task.key) for record in Records(killed))
    assert set(keys.values()) == {1}, "a finished step was asked again"
    assert final(killed) == final(clean)
    metrics = [json.loads((directory / METRICS).read_text())["summary"] for directory in (clean, killed)]
    for each in metrics:
        each.pop("diagnostics")
    assert metrics[0] == metrics[1]


def test_ctrl_c_stops_in_order_and_prints_how_to_resume(tmp_path: Path, data: Path) -> None:
    settings = MockSettings(model=MODEL, policy="centre", latency=0.3, concurrency=4, served_models=(MODEL,))
    with MockServer(settings) as server:
        directory = tmp_path / "run"
        process = subprocess.Popen(
            command(data, server.base_url, directory), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ
        )
        while not (directory / STEPS).exists() or not (directory / STEPS).stat().st_size:
            assert process.poll() is None
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert f"guieval run --resume {directory}" in out and "Traceback" not in err
    assert len(list(Records(directory))) > 0 and json.loads((directory / METRICS).read_text())["summary"]["complete"] is False

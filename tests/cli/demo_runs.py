"""Runs of the demo benchmark as they are typed, and the server that they ask."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from guieval.playground.mock_server import MockServer, MockSettings
from guieval.registry import load_benchmark

MODEL = "ui-tars-7b"
OPTIONS = {"episodes": 5, "seed": 4}
SMALL = ("--set", "bench_options.episodes=5", "--set", "bench_options.seed=4")
BASELINE = ("run", "--model", "ocr-baseline", "--bench", "demo")
SERVED = ("run", "--model", MODEL, "--bench", "demo", "--base-url", "http://127.0.0.1:9/v1")


def reference(data: Path, accuracy: float = 0.5) -> MockServer:
    """A server that is right at this share of the steps."""
    settings = MockSettings(model=MODEL, policy="reference", accuracy=accuracy, served_models=(MODEL,))
    return MockServer(settings, benchmark=load_benchmark("demo", data, **OPTIONS))


def centre(**settings: Any) -> MockServer:
    """A server that clicks in the middle of every screen."""
    return MockServer(MockSettings(model=MODEL, policy="centre", served_models=(MODEL,), **settings))


def command(server: MockServer, data: Path, out: Path, *more: str | Path) -> tuple[str | Path, ...]:
    """The words of a run."""
    where = ("--data", data, "--base-url", server.base_url, "--out", out)
    return ("run", "--model", MODEL, "--bench", "demo", *where, *SMALL, *more)

"""`guieval audit-engine` with real vLLM: two servers of one checkpoint, of which the second shrinks its pictures."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from guieval.engines.vllm.command import VLLMSettings, served_name
from guieval.engines.vllm.server import VLLMServer
from guieval.registry import load_model

from .conftest import ARGUMENTS

MODEL = "qwen2.5-vl-7b"
SHRUNK = {**ARGUMENTS, "mm-processor-kwargs": {"min_pixels": 3136, "max_pixels": 602_112}}


@pytest.fixture
def audit(tmp_path: Path) -> Callable[..., tuple[int, dict[str, Any]]]:
    """The exit code, and what is printed as JSON."""

    def command(server: VLLMServer, *more: str | Path) -> tuple[int, dict[str, Any]]:
        where = ("--base-url", server.base_url, "--served-model", served_name(server.model, server.settings))
        small = (
            "--set",
            "bench_options.episodes=45",
            "--set",
            "options.max_pixels=1003520",
            "--set",
            "sampling.max_tokens=16",
            "--set",
            f"data={tmp_path}",
        )
        words = [sys.executable, "-m", "guieval", "audit-engine", MODEL, *where, *small, "--json", *map(str, more)]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        assert done.stdout, done.stderr
        return done.returncode, json.loads(done.stdout)

    return command


def sentences(audited: dict[str, Any], verdict: str) -> dict[str, str]:
    return {each["about"]: each["sentence"] for each in audited["findings"] if each["verdict"] == verdict}


def test_a_server_with_another_limit_is_found_by_its_counts_and_by_the_fingerprint(
    server: VLLMServer, tiny: Path, tmp_path: Path, audit: Callable[..., tuple[int, dict[str, Any]]]
) -> None:
    kept = tmp_path / "kept.json"
    code, first = audit(server, "--save", kept)
    assert (code, sentences(first, "fault")) == (0, {}) and "tokens" in sentences(first, "fine")
    code, again = audit(server, "--against", kept)
    assert (code, sentences(again, "fault")) == (0, {}) and {"tokens", "fingerprint"} <= sentences(again, "fine").keys()
    settings = VLLMSettings.of({**SHRUNK, "model": str(tiny)}, start_timeout=300.0, media=tmp_path)
    with VLLMServer(load_model(MODEL).config, settings, tmp_path / "vllm.log") as other:
        code, found = audit(other, "--against", kept)
    faults = sentences(found, "fault")
    assert code == 1 and faults.keys() == {"tokens", "fingerprint"}
    low, high = found["resize"]["most"]
    assert low <= 602_112 < high and "shrinks larger pictures to at most" in faults["tokens"]
    assert "prompt tokens differ on" in faults["fingerprint"]

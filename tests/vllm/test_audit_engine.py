"""`guieval dev audit-engine` with real vLLM: two servers of one checkpoint, of which the second shrinks its pictures."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from guieval.engines.vllm.command import VLLMSettings, served_name
from guieval.engines.vllm.server import VLLMServer
from guieval.registry import load_model

from .conftest import ARGUMENTS

MODEL = "qwen2.5-vl-7b"
SMALL = {"bench_options.episodes": 45, "options.max_pixels": 1_003_520, "sampling.max_tokens": 16}
SHRUNK = {**ARGUMENTS, "mm-processor-kwargs": {"min_pixels": 3136, "max_pixels": 602_112}}


def audited(server: VLLMServer, folder: Path, *more: str | Path) -> tuple[int, dict[str, Any], dict[str, str]]:
    """The exit code, what is printed as JSON, and the verdict of each finding."""
    where = ["--base-url", server.base_url, "--served-model", served_name(server.model, server.settings)]
    settings = [word for name, value in {**SMALL, "data": folder}.items() for word in ("--set", f"{name}={value}")]
    words = [sys.executable, "-m", "guieval", "dev", "audit-engine", MODEL, *where, *settings, "--json", *map(str, more)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.stdout, done.stderr
    values = json.loads(done.stdout)
    return done.returncode, values, {each["about"]: each["verdict"] for each in values["findings"]}


def test_another_limit_is_found_by_counts_and_by_the_fingerprint(server: VLLMServer, tiny: Path, tmp_path: Path) -> None:
    kept = tmp_path / "kept.json"
    unknown = {"clicks": "unknown"}  # of random weights
    code, _, verdicts = audited(server, tmp_path, "--save", kept)
    assert (code, verdicts) == (0, {"tokens": "fine", **unknown, "fingerprint": "unknown"})
    code, _, verdicts = audited(server, tmp_path, "--against", kept)
    assert (code, verdicts) == (0, {"tokens": "fine", **unknown, "fingerprint": "fine"})
    settings = VLLMSettings.of({**SHRUNK, "model": str(tiny)}, start_timeout=300.0, media=tmp_path)
    with VLLMServer(load_model(MODEL).config, settings, tmp_path / "vllm.log") as other:
        code, found, verdicts = audited(other, tmp_path, "--against", kept)
    assert (code, verdicts) == (1, {"tokens": "fault", **unknown, "fingerprint": "fault"})
    assert found["resize"]["most"][0] <= 602_112 < found["resize"]["most"][1]

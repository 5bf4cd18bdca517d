"""Defaults of settings: which source counts, what is said of it, and a seed that would decide nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from guieval.errors import UsageError
from guieval.running.defaults import FILE, new_config
from guieval.running.keywords import RunSettings
from guieval.settings import BY_OPTION, GROUPS, SETTINGS
from guieval.settings.sampling import OPTIONS
from tests.rows import every_row

NAMES = {"model": "m", "bench": "b"}


def test_the_nearer_source_counts_and_what_is_taken_is_announced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)
    FILE.write_text("server: {timeout: 7, patience: 8, max_attempts: 2}\nsampling: {top_p: 0.5, top_k: 3}\n")
    (file := tmp_path / "run.yaml").write_text("patience: 9\n")
    for given in ("BASE_URL=http://e/v1", "TIMEOUT=6", "TEMPERATURE=0.3", "LIMIT=", "CONCURENCY=4", "CHROMIUM=/"):
        monkeypatch.setenv(*f"GUIEVAL_{given}".split("="))
    config = new_config(file, ["sampling.top_p=0.9"], {**NAMES, "max_attempts": 4, "max_tokens": 5}, fallback={"samples": 3})
    server = config.server
    assert (server.base_urls, server.timeout, server.patience, server.max_attempts) == (("http://e/v1",), 6.0, 9.0, 4)
    assert config.sampling.request == {"temperature": 0.3, "top_p": 0.9, "top_k": 3, "max_tokens": 5}
    unknown, taken = caplog.messages
    assert unknown == "GUIEVAL_CONCURENCY is not used: no setting is called 'concurency' (did you mean 'concurrency'?)"
    assert set(taken.removeprefix("settings: ").split(", ")) == {
        *("timeout from GUIEVAL_TIMEOUT", "base_url from GUIEVAL_BASE_URL"),
        *("sampling.top_k from guieval.yaml", "sampling.temperature from GUIEVAL_TEMPERATURE"),
    }


@every_row(
    ("file", "variables", "flags", "message"),
    [
        ("tmeout: 4", {}, {}, r"'guieval\.yaml' in this folder: unknown setting 'tmeout' \(did you mean 'timeout'"),
        ("timeout: 4", {"TIMEOUT": "x"}, {}, r"'timeout' is 'x': .*\(timeout from GUIEVAL_TIMEOUT\)"),
        ("vllm: {extra_headers: {a: b}}\nbench_options: {api_key: sk}", {}, {}, "is a secret"),
        ("", {}, {"seed": 4}, "--seed 4 draws the episodes of --limit N, .* is --sampling-seed 4"),
        ("", {}, {"base_ulr": "x"}, r"unknown setting 'base_ulr' \(did you mean 'base_urls'"),
    ],
)
def test_a_mistake_says_where_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, variables: dict[str, str], flags: dict[str, Any], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    FILE.write_text(file or "limit: null")
    for name, value in variables.items():
        monkeypatch.setenv(f"GUIEVAL_{name}", value)
    with pytest.raises(UsageError, match=message):
        new_config(None, [], {**NAMES, **flags})


def test_python_takes_the_settings_by_the_names_of_the_command_line() -> None:
    assert RunSettings.__annotations__.keys() == {*SETTINGS, *BY_OPTION, *OPTIONS, *GROUPS} - {"mode", "repeat"}

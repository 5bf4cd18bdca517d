"""A run folder is data: reading or resuming one executes nothing from it, and sends no key where its user never sent one."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from guieval.errors import UsageError
from guieval.journal import STEPS
from guieval.playground.mock_server import MockServer, MockSettings
from guieval.registry import load_benchmark
from guieval.running.config import parse
from guieval.running.resume.trust import reaches, remember, resumed
from tests.command_line import CommandLine
from tests.rows import every_row

KEY = "sk-verysecretkeyoftheuser123456"


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine on which its user has begun no run yet."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "other-state"))


@pytest.fixture
def finished(tmp_path: Path, guieval: CommandLine, mock: MockServer) -> Path:
    """A small run, made and begun by somebody."""
    done = guieval(
        *("run", "--model", "qwen3-vl-8b-instruct", "--bench", "demo", "--data", tmp_path / "demo", "--limit", "1"),
        *("--base-url", mock.base_url, "--out", tmp_path / "run", "--quiet"),
    )
    assert done.code == 0, done
    return tmp_path / "run"


@pytest.fixture
def mock(tmp_path: Path) -> Iterator[MockServer]:
    name = "qwen3-vl-8b-instruct"
    settings = MockSettings(model=name, policy="reference", served_models=(name,), keep=100)
    with MockServer(settings, benchmark=load_benchmark("demo", tmp_path / "demo")) as server:
        yield server


def rewrite(run: Path, *keys: str, value: Any) -> None:
    manifest = json.loads((run / "manifest.json").read_text())
    inner = manifest
    for key in keys[:-1]:
        inner = inner[key]
    inner[keys[-1]] = value
    (run / "manifest.json").write_text(json.dumps(manifest))


COMMANDS = (
    *(("score",), ("score", "--reparse"), ("report", "--no-images"), ("dev", "audit"), ("leaderboard",), ("compare",)),
    *(("study", "decisions"), ("study", "consistency"), ("plot", "horizon", "--out", "horizon.svg"), ("run", "--resume")),
)


@pytest.mark.parametrize("command", COMMANDS)
def test_no_command_runs_the_adapter_that_a_folder_names(
    tmp_path: Path, guieval: CommandLine, finished: Path, command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    hostile = tmp_path / "hostile.py"
    hostile.write_text(f"open({str(tmp_path / 'executed')!r}, 'w').close()\n")
    monkeypatch.chdir(tmp_path)
    rewrite(finished, "model", "adapter", value=str(hostile))
    rewrite(finished, "config", "model", "adapter", value=str(hostile))
    runs = (finished, finished) if command[0] == "compare" else (finished,)
    done = guieval(*command, *runs)
    assert not (tmp_path / "executed").exists()
    assert "Traceback" not in done.err
    if command in (("score", "--reparse"), ("dev", "audit"), ("run", "--resume")):
        assert done.code == 2 and f"--adapter {hostile}" in done.err
        assert "guieval runs no code that only a run folder names" in done.err


def test_a_named_adapter_is_used_and_compared(tmp_path: Path, guieval: CommandLine, mock: MockServer) -> None:
    from guieval.conformance.commands.new_adapter import adapter_source

    file = tmp_path / "mine.py"
    file.write_text(adapter_source("mine"))
    done = guieval(
        *("run", "--model", "my-model", "--adapter", file, "--bench", "demo", "--data", tmp_path / "demo", "--limit", "1"),
        *("--base-url", mock.base_url, "--served-model", "qwen3-vl-8b-instruct", "--out", tmp_path / "own", "--quiet"),
    )
    assert "run:" in done.out, done
    assert guieval("score", "--reparse", "--adapter", file, tmp_path / "own").code == 0
    assert guieval("score", "--adapter", file, tmp_path / "own").code == 2
    journal = tmp_path / "own" / STEPS
    journal.write_bytes(b"".join(journal.read_bytes().splitlines(keepends=True)[:-1]))
    (hint,) = (line for line in guieval("score", tmp_path / "own").out.splitlines() if line.startswith("resume:"))
    assert shlex.split(hint)[1:] == ["guieval", "run", "--resume", str(tmp_path / "own"), "--adapter", str(file)]
    assert guieval(*shlex.split(hint)[2:], "--quiet").code == done.code, "a step is lost, and the command in the hint runs it"
    moved = tmp_path / "elsewhere.py"
    moved.write_text(file.read_text())
    resume = ("run", "--resume", tmp_path / "own", "--quiet", "--adapter", moved)
    assert guieval(*resume).code == done.code, "the same content in another place is the same adapter"
    moved.write_text(file.read_text() + "\n# another\n")
    assert "the adapter file, whose content has changed" in guieval.sentence(*resume)


@pytest.mark.parametrize("name", ["command", "python"])
def test_no_program_that_a_folder_names_is_started(tmp_path: Path, guieval: CommandLine, finished: Path, name: str) -> None:
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {tmp_path / 'executed'}\n")
    program.chmod(0o755)
    rewrite(finished, "config", "server", "engine", value="vllm")
    rewrite(finished, "config", "server", "base_urls", value=[])
    rewrite(finished, "config", "server", "vllm", value={name: str(program)})
    for more in ((), ("--trust-run",)):
        message = guieval.sentence("run", "--resume", finished, *more)
        assert f"start vLLM with {name}" in message and f"--set vllm.{name}={program}" in message
    assert not (tmp_path / "executed").exists()


@pytest.mark.usefixtures("elsewhere")
def test_a_key_goes_to_no_server_that_only_a_folder_names(
    guieval: CommandLine, finished: Path, mock: MockServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "third-machine"))
    monkeypatch.setenv("AWS_SECRET", KEY)
    asked = mock.requests
    rewrite(finished, "config", "server", "api_key_env", value="AWS_SECRET")
    (finished / "steps.jsonl").write_text("")  # there is something to ask
    message = guieval.sentence("run", "--resume", finished)
    assert f"ask the server {mock.base_url!r} with the key in AWS_SECRET" in message and "--trust-run" in message
    # the server named by the user, the variable by the folder: still not the user's decision
    message = guieval.sentence("run", "--resume", finished, "--base-url", mock.base_url)
    assert "AWS_SECRET" in message
    assert mock.requests == asked, "something was sent"
    assert KEY not in message
    done = guieval("run", "--resume", finished, "--quiet", "--base-url", mock.base_url, "--api-key-env", "OPENAI_API_KEY")
    assert done.code == 0 and len(mock.requests) > len(asked)


@pytest.mark.usefixtures("elsewhere")
def test_its_user_may_confirm_it(guieval: CommandLine, finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (finished / "steps.jsonl").write_text("")
    assert guieval("run", "--resume", finished, "--quiet").code == 0, "begun on this machine"
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "third-machine"))
    (finished / "steps.jsonl").write_text("")
    assert guieval("run", "--resume", finished, "--quiet").code == 2
    assert guieval("run", "--resume", finished, "--quiet", "--trust-run").code == 0
    (finished / "steps.jsonl").write_text("")
    assert guieval("run", "--resume", finished, "--quiet").code == 0, "confirmed once"


OPENENV = {"mode": "online", "bench": "openenv"}


@pytest.mark.usefixtures("elsewhere")
@every_row(
    ("setting", "named"),
    [
        ({"base_urls": ["http://h:1/v1"]}, {"base_urls": ["http://h:1/v1"]}),
        ({"base_urls": ["http://h:1/v1"], "insecure_tls": "I accept unverified certificates"}, None),
        ({"base_urls": ["http://h:1/v1"], "proxy": "http://evil:3128"}, None),
        ({"engine": "anthropic", "base_urls": ["http://h:1"]}, {"base_urls": ["http://h:1"]}),
        ({"engine": "anthropic", "api_key_env": "HOME"}, {"api_key_env": "HOME"}),
        ({"engine": "gemini", "proxy": "http://evil:3128"}, {"proxy": "http://evil:3128"}),
        ({"model": "gpt-6.2-sol-computer", "insecure_tls": "I accept unverified certificates"}, None),
        ({"patch_base_urls": ["http://h:1/v1"], "patch_api_key_env": "HOME"}, None),
        ({"grounder_base_urls": ["http://h:1/v1"]}, {"grounder_base_urls": ["http://h:1/v1"]}),
        ({"cluster": "ray", "cluster_address": "evil:6379"}, {"cluster_address": "evil:6379"}),
        ({"track": ["mlflow"], "tracking": {"uri": "http://evil"}}, None),
        ({"engine": "vllm", "vllm": {"max-model-len": 5}}, {"vllm": {"max_model_len": 5}}),
        ({"engine": "transformers", "model_path": "weights"}, {"model_path": "weights"}),
        ({**OPENENV, "bench_options": {"url": "ws://h:1", "seeds": 2}}, {"bench_options": {"url": "ws://h:1"}}),
        ({"mode": "online", "bench": "miniwob", "allow_network": True}, {"allow_network": True}),
        ({"mode": "online", "bench": "osworld", "bench_options": {"path_to_vm": "vm", "max_steps": 3}}, None),
    ],
)
def test_every_reach_has_to_be_the_users(setting: dict[str, Any], named: dict[str, Any] | None, tmp_path: Path) -> None:
    base = {"model": "m", "bench": "demo", **setting}
    with pytest.raises(UsageError, match="--trust-run"):
        resumed(base, None, [], {}, trust=False, folder=tmp_path)
    assert resumed(base, None, [], {}, trust=True, folder=tmp_path) == parse(base)
    if named is not None:
        resumed(base, None, [], named, trust=False, folder=tmp_path)
    remember([parse(base)])
    assert resumed(base, None, [], {}, trust=False, folder=tmp_path) == parse(base)


@pytest.mark.usefixtures("elsewhere")
def test_a_hosted_models_own_address_and_key_need_no_confirmation(tmp_path: Path) -> None:
    base = {"model": "claude-sonnet-5-computer", "bench": "demo", "api_key_env": "ANTHROPIC_API_KEY"}
    assert resumed(base, None, [], {}, trust=False, folder=tmp_path) == parse(base)
    moved = {"base_urls": ["http://h:2"]}
    assert resumed(base, None, [], moved, trust=False, folder=tmp_path) == parse({**base, **moved})


def test_code_is_remembered_by_no_machine(tmp_path: Path) -> None:
    config = parse({"model": "m", "bench": "demo", "adapter": "x.py", "engine": "vllm", "vllm": {"middleware": "os.system"}})
    assert all(each.code for each in reaches(config))
    remember([config])
    with pytest.raises(UsageError, match="runs no code"):
        resumed(config.model_dump(mode="json"), None, [], {"adapter": "x.py"}, trust=True, folder=tmp_path)

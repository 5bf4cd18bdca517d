"""Patched runs as they are typed, against servers: who is asked for a thought, and what comes of the runs afterwards."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from guieval.journal import METRICS, RunFolder
from guieval.models.patch_thoughts import HINT, thought_prompt
from guieval.playground.mock_server import MockServer, MockSettings
from guieval.registry import load_benchmark
from guieval.steps import StepRecord
from tests.command_line import CommandLine
from tests.outage import outage

MODEL = "ui-s1-7b"
OPTIONS = {"episodes": 6, "seed": 5}
THOUGHT = "The auxiliary model says why."


def policy(data: Path) -> MockServer:
    settings = MockSettings(model=MODEL, policy="reference", accuracy=0.7, seed=3, served_models=(MODEL,), keep=200)
    return MockServer(settings, benchmark=load_benchmark("demo", data, **OPTIONS))


def auxiliary(**more: Any) -> MockServer:
    reply = f"<think>\n{THOUGHT}\n</think>"
    return MockServer(MockSettings(policy="fixed", reply=reply, served_models=("aux",), check_model=True, keep=200, **more))


def arguments(data: Path, server: MockServer, directory: Path, *more: str) -> list[str | Path]:
    options = [item for name, value in OPTIONS.items() for item in ("--set", f"bench_options.{name}={value}")]
    start: list[str | Path] = ["run", "--quiet", "--model", MODEL, "--bench", "demo", "--data", data, "--mode", "sop"]
    return [*start, "--out", directory, "--base-url", server.base_url, *options, *more]


def patched(directory: Path) -> list[StepRecord]:
    return [record for record in RunFolder(directory).records if record.patch is not None]


def text_of(body: bytes) -> str:
    """All text of a chat request."""
    texts = []
    for message in json.loads(body)["messages"]:
        parts = message["content"]
        texts += [parts] if isinstance(parts, str) else [part["text"] for part in parts if part["type"] == "text"]
    return "\n".join(texts)


def test_an_auxiliary_model_that_is_away_for_a_while_costs_no_step(tmp_path: Path, demo: Path, guieval: CommandLine) -> None:
    patch = ("--patch", "off-policy", "--patch-budget", "unlimited", "--patch-model", "aux", "--max-attempts", "1")
    with policy(demo) as server, outage(lambda port: auxiliary(port=port, latency=0.05), after=2) as aux:
        done = guieval(*arguments(demo, server, tmp_path / "run", *patch, "--patch-base-url", aux, "--concurrency", "2"))
    assert done.code == 0, done
    assert all(record.finished for record in RunFolder(tmp_path / "run").records)
    assert sum(record.patch.thought is not None for record in patched(tmp_path / "run") if record.patch is not None) > 2


def test_off_policy_thoughts_come_from_the_auxiliary_model(tmp_path: Path, demo: Path, guieval: CommandLine) -> None:
    run = tmp_path / "run"
    with policy(demo) as server, auxiliary() as other:
        more = ("--patch", "off-policy", "--patch-budget", "unlimited", "--patch-model", "aux")
        done = guieval(*arguments(demo, server, run, *more, "--patch-base-url", other.base_url))
        assert done.code == 0 and "sop+off-policy:unlimited" in done.out.replace("\n", ""), done
        seen = [text_of(request.body) for request in other.requests]
        own = [text_of(request.body) for request in server.requests]
    (setup,) = RunFolder(run).manifest.patch_setups
    assert setup.model == "aux" and setup.engines[0].models == ("aux",)
    assert "patches by aux: guieval's mock server" in " ".join(done.out.split())
    found = patched(run)
    thought = [record for record in found if record.patch is not None and record.patch.thought is not None]
    assert thought and len(seen) == len(thought)
    assert {record.patch.thought for record in thought if record.patch is not None} == {THOUGHT}
    assert all(text.startswith(thought_prompt()[:40]) and HINT.partition("{")[0].strip() in text for text in seen)
    assert not any(thought_prompt()[:40] in text for text in own)
    assert any(THOUGHT in text for text in own)  # the policy sees the thought of an earlier step as its own
    later = [record for record in RunFolder(run).records if record.task.key[2] == thought[0].task.key[2]]
    assert len(later) == later[0].task.episode_length


def test_on_policy_asks_the_same_server_and_goes_on_where_it_was(tmp_path: Path, demo: Path, guieval: CommandLine) -> None:
    run = tmp_path / "run"
    with policy(demo) as server:
        assert guieval(*arguments(demo, server, run, "--patch", "on-policy", "--patch-budget", "2")).code == 0
        asked = [text_of(request.body) for request in server.requests]
        steps = list(RunFolder(run).records)
        thoughts = sum(thought_prompt()[:40] in text for text in asked)
        assert thoughts == sum(each.patch is not None and each.patch.usage is not None for each in steps) > 0
        assert len(asked) == len(steps) + thoughts
        assert guieval("run", "--quiet", "--resume", run).code == 0 and list(RunFolder(run).records) == steps
        sentence = guieval.sentence("run", "--resume", run, "--patch-budget", "1")
    assert "patch_budget (was 2, now 1)" in sentence


def test_what_was_patched_can_be_scored_compared_shown_and_replayed(tmp_path: Path, demo: Path, guieval: CommandLine) -> None:
    one, two, again = tmp_path / "one", tmp_path / "two", tmp_path / "again"
    with policy(demo) as server:
        assert guieval(*arguments(demo, server, one, "--patch", "thought-free")).code == 0
        assert guieval(*arguments(demo, server, two)).code == 0
        replay = arguments(demo, server, again, "--patch", "thought-free", "--engine", "replay", "--replay", str(one))
        assert guieval(*replay).code == 0
    stored = json.loads((one / METRICS).read_text())["summary"]
    assert guieval("score", one).code == 0 and json.loads((one / METRICS).read_text())["summary"] == stored
    assert guieval("score", one, "--protocol", "all").code == 0
    assert "do not reach the same steps" in guieval("compare", one, two).err
    assert guieval("compare", one, again).code == 0
    assert guieval("report", one, "--no-images").code == 0
    assert {record.task.key for record in patched(again)} == {record.task.key for record in patched(one)} != set()
    board = guieval("leaderboard", one, two)
    assert board.code == 0 and "| sop+thought-free:1 |" in board.out and "| sop |" in board.out


def test_mistakes_are_reported_before_anything_is_written(tmp_path: Path, demo: Path, guieval: CommandLine) -> None:
    with policy(demo) as server:
        for more, printed in (
            (("--patch", "thought-fre"), "did you mean 'thought-free'"),
            (("--patch", "thought-free", "--patch-budget", "-1"), "expected a whole number from 0, or unlimited"),
            (("--patch", "thought-free", "--patch-budget", "many"), "expected a whole number from 0, or unlimited"),
            (("--patch-budget", "1"), "add --patch thought-free"),
            (("--patch", "off-policy"), "add --patch-base-url URL"),
            (("--patch", "thought-free", "--mode", "soeval"), "--patch is for --mode sop"),
            (("--patch", "on-policy", "--engine", "replay", "--replay", "x"), "engine 'replay' cannot"),
        ):
            assert printed in guieval.sentence(*arguments(demo, server, tmp_path / "run", *more))
    assert not (tmp_path / "run").exists()

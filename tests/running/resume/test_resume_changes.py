"""A resume against another model, data, prompt or sampling is refused; where its user accepts it, every table says so."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from guieval.journal import STEPS, RunFolder
from guieval.playground.mock_server import MockServer, MockSettings
from guieval.registry import load_benchmark
from tests.command_line import CommandLine, Done

MODEL = "qwen3-vl-8b-instruct"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Two episodes of two steps in our own format."""
    folder = tmp_path / "data"
    folder.mkdir()
    lines = []
    for episode in ("a", "b"):
        steps = []
        for index, action in enumerate(({"type": "CLICK", "point": [50, 60]}, {"type": "STOP"})):
            name = f"{episode}{index}.png"
            Image.new("RGB", (100, 200), (index * 40, 20, 60)).save(folder / name)
            steps.append({"screenshot": name, "action": action, "targets": [[40, 40, 60, 80]] if index == 0 else []})
        lines.append({"episode_id": episode, "instruction": f"open {episode}", "frame": "pixels", "steps": steps})
    write(folder, lines)
    return folder


def write(folder: Path, lines: list[dict[str, Any]]) -> None:
    (folder / "episodes.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def lines_of(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "episodes.jsonl").read_text().splitlines()]


@pytest.fixture
def server(data: Path) -> Iterator[MockServer]:
    settings = MockSettings(model=MODEL, policy="reference", served_models=(MODEL,))
    with MockServer(settings, benchmark=load_benchmark("episodes", data)) as running:
        yield running


@pytest.fixture
def run(tmp_path: Path, data: Path, server: MockServer, guieval: CommandLine) -> Path:
    """A run whose last two answers are lost."""
    directory = tmp_path / "run"
    done = guieval(
        *("run", "--model", MODEL, "--bench", "episodes", "--data", data, "--base-url", server.base_url, "--quiet"),
        *("--out", directory, "--concurrency", "1"),
    )
    assert done.code == 0, done
    journal = directory / STEPS
    journal.write_bytes(b"".join(journal.read_bytes().splitlines(keepends=True)[:2]))
    return directory


def resume(guieval: CommandLine, run: Path, *more: str) -> Done:
    return guieval("run", "--resume", run, "--quiet", *more)


def test_nothing_changed_is_resumed(guieval: CommandLine, run: Path) -> None:
    done = resume(guieval, run)
    assert done.code == 0 and "mixed" not in done.out
    assert "changes" not in RunFolder(run).manifest.to_json()
    assert RunFolder(run).manifest.answered_as == ["mock"]
    for record in RunFolder(run).records:
        assert record.models == ("mock",) and record.screen is not None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        *(("instruction", "instruction was 'open a', is 'close a'"), ("label", "action was"), ("box", "targets was")),
        ("screenshot", "1 screenshots of answered steps have changed since, the first is 'a0.png'"),
        ("same-size", "1 screenshots of answered steps have changed since, the first is 'a0.png'"),
        *(("sampling", "sampling.temperature (was None, now 0.7)"), ("prompt", "prompts fingerprint")),
    ],
)
def test_a_change_is_refused_with_what_differs_or_marked(
    guieval: CommandLine, run: Path, data: Path, change: str, message: str, tmp_path: Path
) -> None:
    more: list[str] = []
    lines = lines_of(data)
    first = lines[0]["steps"][0]
    if change == "instruction":
        lines[0]["instruction"] = "close a"
    elif change == "label":
        first["action"]["point"] = [51, 61]
    elif change == "box":
        first["targets"] = [[40, 40, 60, 81]]
    elif change == "screenshot":
        Image.effect_noise((100, 200), 90).convert("RGB").save(data / "a0.png")
    elif change == "same-size":
        whole = bytearray((data / "a0.png").read_bytes())
        Image.new("RGB", (100, 200), (1, 20, 60)).save(data / "a0.png")
        assert len((data / "a0.png").read_bytes()) == len(whole), "choose another colour"
    elif change == "sampling":
        more = ["--set", "sampling.temperature=0.7"]
    else:
        manifest = RunFolder(run).manifest.to_json()
        manifest["prompts"]["fingerprint"] = "another"
        (run / "manifest.json").write_text(json.dumps(manifest))
    write(data, lines)
    refused = resume(guieval, run, *more)
    assert refused.code == 2 and message in refused.err and "--accept-changes" in refused.err, refused
    assert len(list(RunFolder(run).records)) == 2 and "changes" not in RunFolder(run).manifest.to_json()
    done = resume(guieval, run, *more, "--accept-changes")
    assert done.code == 0 and f"{MODEL} (mixed)" in done.out, done
    for name, *words in (("score",), ("leaderboard",), ("compare", run), ("score", "--protocol", "all"), ("runs",)):
        shown = guieval(name, tmp_path if name == "runs" else run, *words)
        assert "mixed" in " ".join((shown.out + shown.err).split()), (name, words)
    assert resume(guieval, run, *more).code == 0, "accepted once"
    (entry,) = RunFolder(run).manifest.to_json()["changes"]
    assert entry["what"]


def test_what_a_run_is_over_is_never_accepted(guieval: CommandLine, run: Path) -> None:
    for more in (["--set", "samples=2"], ["--protocol", "ui-s1-sop"], ["--limit", "1"]):
        done = resume(guieval, run, *more, "--accept-changes")
        assert done.code == 2 and "cannot be resumed" in done.err and "--accept-changes continues" not in done.err, done


def test_replies_that_name_another_model_are_noticed(guieval: CommandLine, run: Path) -> None:
    """The server lists the model under its name, but its answers name another: a gateway that was updated, say."""
    manifest = RunFolder(run).manifest.to_json()
    del manifest["setups"][0]["answered_as"]
    manifest["reply_models"] = ["another-model-2024"]  # as earlier versions wrote it
    (run / "manifest.json").write_text(json.dumps(manifest))
    refused = resume(guieval, run)
    assert refused.code == 2 and "was 'another-model-2024', now 'mock'" in refused.err
    assert len(list(RunFolder(run).records)) == 2
    done = resume(guieval, run, "--accept-changes")
    assert done.code == 0 and f"{MODEL} (mixed)" in done.out

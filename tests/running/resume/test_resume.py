"""Resuming: a real run that is killed, what is left of a run, and what other models, data, prompts and sampling need."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from guieval.errors import FatalEngineError, UsageError
from guieval.journal import STEPS, RunFolder
from guieval.metrics.kinds import of_steps
from guieval.models import Request
from guieval.playground.mock_server import MockServer, MockSettings
from guieval.registry import load_benchmark
from guieval.running.runner.runner import Runner
from tests.command_line import CommandLine, Done
from tests.programs import started
from tests.rows import every_row
from tests.running.records import figures, final
from tests.running.scripted_runs import dying, right, scripted_runner
from tests.scripted import ACTIONS, ScriptedEngine, make_episode, reply_with, run_scripted
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


EPISODES = [make_episode(str(number), ACTIONS[: 1 + number % 4]) for number in range(8)]
LEFT = sum(map(len, EPISODES))


def wrong(request: Request) -> str:
    return reply_with(ACTIONS[1] if request.task.action == ACTIONS[0] else ACTIONS[0])


def made(directory: Path, mode: str, engine: ScriptedEngine | None = None) -> tuple[Runner, list[str]]:
    """A run, and what gets an entry each time its engine is made ready."""
    ready: list[str] = []

    async def before() -> None:
        ready.append("now")

    engine = engine or ScriptedEngine(right)
    return scripted_runner(directory, EPISODES, engine, concurrency=2, settings={"mode": mode}, prepare=before), ready


@every_row("mode", ["offline", "soeval", "sop"])
@every_row("answer", [right, wrong], ids=["right", "wrong"])
def test_a_finished_run_needs_nobody_ready(tmp_path: Path, mode: str, answer: object) -> None:
    """In ``sop`` an episode that ended at a mismatch is finished as well."""
    assert callable(answer)
    run_scripted(tmp_path / "run", EPISODES, ScriptedEngine(answer), mode=mode)
    run, ready = made(tmp_path / "run", mode)
    assert not run.left()
    outcome = run.execute(resume=True)
    assert ready == [] and outcome.summary().complete


@pytest.mark.parametrize("mode", ["offline", "soeval", "sop"])
def test_what_an_error_interrupted_is_reported_and_left(tmp_path: Path, mode: str) -> None:
    run, _ = made(tmp_path / "run", mode, dying(LEFT - 1))
    with pytest.raises(FatalEngineError, match="it died; every answer before is kept"):
        run.execute(resume=False)
    result = run.broken_off
    assert result is not None and not (result.interrupted or result.gave_up)
    summary = of_steps(result.summary())
    assert summary.exact_match.count > 0 and not summary.complete
    again, ready = made(tmp_path / "run", mode)
    assert again.left()
    outcome = again.execute(resume=True)
    assert ready == ["now"] and again.broken_off is None and outcome.summary().complete
    assert not again.left()


def test_a_run_that_came_to_nothing_was_not_broken_off(tmp_path: Path) -> None:
    run, _ = made(tmp_path / "run", "offline", dying(0))
    with pytest.raises(FatalEngineError, match=r"^it died$"):
        run.execute(resume=False)
    assert run.broken_off is None


def test_what_is_left_of_no_run_is_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="has no run"):
        made(tmp_path / "none", "offline")[0].left()


CHANGED = "qwen3-vl-8b-instruct"


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
    settings = MockSettings(model=CHANGED, policy="reference", served_models=(CHANGED,))
    with MockServer(settings, benchmark=load_benchmark("episodes", data)) as running:
        yield running


@pytest.fixture
def run(tmp_path: Path, data: Path, server: MockServer, guieval: CommandLine) -> Path:
    """A run whose last two answers are lost."""
    directory = tmp_path / "run"
    done = guieval(
        *("run", "--model", CHANGED, "--bench", "episodes", "--data", data, "--base-url", server.base_url, "--quiet"),
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
    assert done.code == 0 and f"{CHANGED} (mixed)" in done.out, done
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
    assert done.code == 0 and f"{CHANGED} (mixed)" in done.out

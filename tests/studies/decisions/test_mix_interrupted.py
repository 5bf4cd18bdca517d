"""A mixing sweep that is stopped, loses its server, or has nothing to mix: the message names the cause and how to continue."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from guieval.actions import Stop, Wait
from guieval.models import ModelConfig
from guieval.playground.mock_server import MockServer, MockSettings
from guieval.registry import load_benchmark
from guieval.settings import RunConfig
from guieval.studies.mix_sweep.sweep import OUTCOMES
from tests.command_line import CommandLine
from tests.programs import signalled, started
from tests.scripted import ListBenchmark, ScriptedEngine, ScriptedModel, make_episode, reply_with, runner_of
from tests.waiting import PATIENCE

MODEL = "ui-s1-7b"
OPTIONS = {"episodes": 2, "seed": 5}


@contextmanager
def begun(tmp_path: Path, guieval: CommandLine) -> Iterator[list[str]]:
    """The options of a sweep over a run that a server has answered, which is there meanwhile."""
    settings = MockSettings(model=MODEL, policy="reference", accuracy=0.5, seed=3, served_models=(MODEL,))
    options = [item for name, value in OPTIONS.items() for item in ("--set", f"bench_options.{name}={value}")]
    arguments = ["--model", MODEL, "--bench", "demo", "--data", str(tmp_path / "demo"), *options, "--quiet"]
    with MockServer(settings, benchmark=load_benchmark("demo", tmp_path / "demo", **OPTIONS)) as server:
        arguments += ["--base-url", server.base_url]
        done = guieval("run", "--out", tmp_path / "run", *arguments)
        assert done.code == 0, done
        yield [*arguments, "--artifacts", str(tmp_path / "run")]


def test_sigterm_between_two_settings_is_as_ctrl_c(tmp_path: Path, guieval: CommandLine) -> None:
    with begun(tmp_path, guieval) as arguments:
        # all 500 settings have the same prompts: after the first, a run has almost no requests
        sweep = [*arguments, "--out", str(tmp_path / "sweep"), "--pair", "0:0", "--means", "500"]
        words = [*signalled(signal.SIGTERM, OUTCOMES, 4), "study", "mix", *sweep]  # as the third of them is stored
        with started(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130, (process.returncode, out, err)
    assert "resume:   guieval study mix --resume" in out and "left:" in out and "stationary" in out


def test_a_run_gives_sigterm_back_to_whom_it_was(tmp_path: Path) -> None:
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        model = ScriptedModel(ModelConfig(name="scripted", adapter="scripted"))
        engine = ScriptedEngine(lambda request: reply_with(request.task.action))
        benchmark = ListBenchmark([make_episode("a", [Wait(), Stop()])])
        run = runner_of(RunConfig(model="scripted", bench="scripted"), tmp_path, benchmark, model, engine, 4)
        run.execute(resume=False)
        assert signal.getsignal(signal.SIGTERM) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGTERM, before)


def test_a_sweep_without_its_server_prints_how_to_resume(tmp_path: Path, guieval: CommandLine) -> None:
    sweep = tmp_path / "sweep"
    with begun(tmp_path, guieval) as arguments:
        place = arguments.index("--base-url") + 1
        nowhere = [*arguments[:place], "http://127.0.0.1:9/v1", *arguments[place + 1 :], "--set", "max_attempts=1"]
        away = guieval("study", "mix", *nowhere, "--out", sweep, "--pair", "0:1", "--means", "2")
        assert away.code == 2 and "could not be reached" in away.err
        assert "left:     2 of 2 settings" in away.out and f"guieval study mix --resume {sweep}" in away.out
        done = guieval("study", "mix", "--resume", sweep, "--base-url", arguments[place], "--quiet")
        assert done.code == 0 and "left:" not in done.out, done


def test_a_sweep_takes_no_folder_that_holds_a_run(tmp_path: Path, guieval: CommandLine) -> None:
    with begun(tmp_path, guieval) as arguments:
        before = {file.name: file.read_bytes() for file in (tmp_path / "run").iterdir()}
        refused = guieval.sentence("study", "mix", *arguments, "--out", tmp_path / "run")
    assert "has a run, and a sweep needs a folder of its own" in refused
    assert {file.name: file.read_bytes() for file in (tmp_path / "run").iterdir()} == before


def test_a_sweep_over_first_steps_alone_states_that_there_is_nothing_to_mix(tmp_path: Path, guieval: CommandLine) -> None:
    refs = load_benchmark("demo", tmp_path / "demo", **OPTIONS).index()
    (tmp_path / "first.txt").write_text("".join(f"{ref.key.episode_id}#0\n" for ref in refs))
    given = ("--out", tmp_path / "sweep", "--episodes", tmp_path / "first.txt", "--means", "1", "--plot", tmp_path / "no.png")
    with begun(tmp_path, guieval) as arguments:
        done = guieval("study", "mix", *arguments, *given)
    assert done.code == 0 and "none of the steps has a past" in done.out and "regime" not in done.out, done
    assert (tmp_path / "sweep" / "mixing.csv").exists() and not (tmp_path / "no.png").exists()

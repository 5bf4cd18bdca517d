"""A stranger at the command line: odd values, wrong places, closed streams, and runs stopped halfway."""

from __future__ import annotations

import functools
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from guieval.cli.running.perform import perform
from guieval.journal import EPISODES, MANIFEST, METRICS, STEPS, RunFolder
from guieval.playground.mock_server import MockServer
from guieval.settings import RunConfig
from tests.cli.demo_runs import BASELINE, MODEL, SERVED, SMALL, centre, command
from tests.command_line import CommandLine
from tests.json_values import read_json
from tests.outage import hold
from tests.programs import started
from tests.rows import every_row
from tests.waiting import PATIENCE, until

LONG = "a" * 300
TWICE = "\r\n".join(['{"episode_id": "s0-0000", "step_index": 0, "action": null}'] * 2)
ANDROIDCONTROL = ("run", "--model", MODEL, "--bench", "androidcontrol")


@every_row(
    ("arguments", "message"),
    [
        (("--nope",), "No such option: --nope"),
        (("run", "extra"), "unexpected extra argument"),
        (("run", "--limt", "3"), "--limit"),
        (("run", "--limit", "abc"), "'--limit': expected a whole number, got 'abc'"),
        (("study", "rollout", *BASELINE[1:], "--seed", "3"), "there is no --limit; the rounds' seeds are --seeds A,B"),
        (("run", "--limit"), "'--limit' requires an argument"),
        (("run", "--resume"), "'--resume' requires an argument"),
        ((*BASELINE, "--out", ""), "'--out': a path must not be empty"),
        ((*BASELINE, "--data", ""), "'--data': a path must not be empty"),
        (("run", "--resume", " "), "'--resume': a path must not be empty"),
        (("score", ""), "a path must not be empty"),
        (("run", "--model", "", "--adapter", "ui_tars", "--bench", "demo"), "'model' is ''"),
        (("run", "--model", "x", "--adapter", "", "--bench", "demo"), "'adapter' is ''"),
        ((*BASELINE, "--protocol", ""), "'protocol' is ''"),
        ((*BASELINE, "--mode", ""), "'mode' is ''"),
        ((*BASELINE, "--limit", "-1"), "'limit' is -1"),
        ((*BASELINE, "--timeout", "inf"), "finite"),
        ((*BASELINE, "--workers", "3"), "--workers 3 needs a cluster"),
        ((*BASELINE, "--cluster-address", "local"), "--cluster-address local needs a cluster"),
        ((*BASELINE, "--set", "bench_options.episodes=abc"), "is 'abc'; expected a whole number"),
        ((*BASELINE, "--set", "bench_options.episods=3"), "did you mean 'episodes'"),
        ((*BASELINE, "--set", "bench_options.name=3"), "'name' is not an option"),
        ((*BASELINE, "--set", "sampling.temperature=.nan"), "finite numbers"),
        ((*BASELINE, "--out", LONG), "File name too long"),
        ((*BASELINE, "--data", LONG, "--out", "{tmp}/x"), "File name too long"),
        (("run", "--resume", LONG), "File name too long"),
        (("score", LONG), "File name too long"),
        (("run", "--config", "{tmp}"), "Is a directory"),
        (("score", "{tmp}"), "is not a run directory"),
        (("data", "import", "{tmp}", "--format", "kairos", "--out", "{tmp}/x/run"), "a folder, and the format 'kairos' is of"),
        (("score", __file__), "is a file, not a run: `guieval data import"),
        (("data", "import", __file__, "--out", "{tmp}/x/run"), "line 1: is not JSON"),
        ((*SERVED, "--api-key-env", "sk-secret-0123456789"), "not a key"),
        (SERVED[:-2], "add --base-url URL"),
        ((*SERVED, "--data", "{tmp}/demo", "--out", "{tmp}/run", "--max-attempts", "1", *SMALL), "127.0.0.1:9"),
        ((*SERVED, "--model", "ui-tars-7"), "--model is given 2 times, the last as 'ui-tars-7', and takes one value"),
        (("dev", "check", "ui-tars-7"), "did you mean 'ui-tars-7b'?"),
        (("run", "--model", MODEL, "--bench", "android-control"), "did you mean 'androidcontrol'?"),
        ((*BASELINE, "--mode", "so-eval"), "did you mean 'soeval'?"),
        ((*BASELINE, "--protocol", "ui-s1-so", "--limit", "1"), "did you mean 'ui-s1-sop'?"),
        ((*BASELINE, "--set", "sampling_=1"), "did you mean 'sampling'?"),
        (("protocols", "ui-s1-so"), "did you mean 'ui-s1-sop'?"),
        (("models", "qwen2.5vl-7b"), "did you mean 'qwen2.5-vl-7b'?"),
        (("models", "--task", "desktp"), "unknown task 'desktp' (did you mean 'desktop'?)"),
        (("models", "holo2", "--size", "6b"), "with 'holo2' in its name has the size '6b'; sizes: 4b, 8b, 30b-a3b"),
        (("run", "--model", "x", "--adapter", "ui_tar", "--bench", "demo"), "unknown adapter 'ui_tar'"),
        (("run", "--bench", "demo"), "'model' is required (--model)"),
        (ANDROIDCONTROL, "needs its data folder: add --data DIR"),
        ((*ANDROIDCONTROL, "--data", "{tmp}/none"), "does not exist"),
        ((*ANDROIDCONTROL, "--data", "{tmp}"), "{tmp}"),
        (("run", "--model", "qwen2.5-vl-7b", "--bench", "demo", "--thinking"), "no thinking switch"),
        (("run", "--resume", "{tmp}/none"), "nothing to resume"),
        (("score", "{tmp}/none"), "does not exist"),
        (("run", "--config", "{tmp}/none.yaml"), "cannot be read"),
        ((*BASELINE, "--concurrency", "0"), "concurrency"),
        ((*SERVED, "--concurrency", "all"), "'concurrency' is 'all': expected a number from 1 to 4096, or auto"),
        (("run", *SERVED[1:5], "--base-url", "http://user:secret@h/v1"), "must not hold a user"),
        (("run", *SERVED[1:5], "--base-url", "http://h/v1?key=secret"), "must not hold a key in its query"),
    ],
)
def test_a_mistake_is_one_sentence(
    guieval: CommandLine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    sentence = guieval.sentence(*(argument.replace("{tmp}", str(tmp_path)) for argument in arguments))
    assert message.replace("{tmp}", str(tmp_path)) in sentence and "secret" not in sentence
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and b"secret" in path.read_bytes()]


@every_row(
    ("line", "message"),
    [
        ('{"episode_id": "s0-0000", "step_index": 0}', "either an action"),
        ('{"episode_id": "s0-0000", "step_index": 0, "action": null, "response": "x"}', "either an action"),
        ('{"episode_id": "s0-0000", "step_index": 0, "action": null, "acton": 1}', "field acton"),
        ('{"episode_id": "s0-0000", "step_index": 99, "action": null}', "does not have"),
        ('{"episode_id": "no such episode", "step_index": 0, "action": null}', "does not have"),
        ('{"episode_id": "s0-0000"}', "line 1, field step_index"),
        (TWICE, "is answered twice"),
        ('{"episode_id": "s0-0000", "step_index": 0, "response": "x"}', "add --model"),
        ('{"episode_id": "s0-0000", "step_index": 0, "action": {"type": "CLICK", "point": [1e999, 0]}}', "line 1"),
    ],
)
def test_an_odd_prediction_is_one_sentence(guieval: CommandLine, tmp_path: Path, demo: Path, line: str, message: str) -> None:
    file = tmp_path / "predictions.jsonl"
    file.write_bytes(b"\xef\xbb\xbf" + line.encode() + b"\r\n\r\n")
    assert message in guieval.sentence("data", "import", file, "--bench", "demo", "--data", demo, "--out", tmp_path / "run")


@pytest.fixture(scope="module")
def server() -> Iterator[MockServer]:
    with centre(latency=0.05) as running:
        yield running


def program(server: MockServer, demo: Path, out: Path, *more: str) -> list[str]:
    """The command of a run in a process of its own."""
    return [sys.executable, "-m", "guieval", *map(str, command(server, demo, out, *more))]


@pytest.mark.ci
@pytest.mark.parametrize("closed", [">&- 2>&-", "| true", "2>&1 >/dev/null | true"])
def test_nobody_reading_the_output_does_not_stop_a_run(server: MockServer, demo: Path, tmp_path: Path, closed: str) -> None:
    words = " ".join(program(server, demo, tmp_path / "run"))
    done = subprocess.run(["bash", "-c", f"{words} {closed}"], capture_output=True, text=True)
    assert "Traceback" not in done.stderr and "Exception" not in done.stderr, done.stderr
    assert read_json((tmp_path / "run" / METRICS).read_text())["state"] == "finished"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_unwritable_output_is_one_sentence_after_the_figures_are_stored(server: MockServer, demo: Path, tmp_path: Path) -> None:
    words = program(server, demo, tmp_path / "run", "--quiet")
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    with open("/dev/full", "w") as full:
        done = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, text=True, env=buffered)
    assert (done.returncode, done.stderr) == (1, "guieval: the operating system reports: No space left on device\n")
    assert (tmp_path / "run" / METRICS).exists()


@pytest.mark.ci
def test_several_modes_stopped_in_the_first_are_all_resumed(demo: Path, tmp_path: Path, guieval: CommandLine) -> None:
    run = tmp_path / "a run"
    with centre() as slow:
        hold(slow, after=4)
        modes = [item for mode in ("sop", "offline", "soeval") for item in ("--mode", mode)]
        words = program(slow, demo, run, "--concurrency", "2", *modes)
        with started(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            journal = run / "sop" / STEPS
            until(lambda: journal.exists() and journal.stat().st_size, "a step", running=process)
            process.send_signal(signal.SIGTERM)
            out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130 and "Traceback" not in err
    assert f"guieval run --resume '{run}'" in out and f"not begun: 2 of 3 runs, the first {run / 'offline'}" in out
    with centre() as quick:
        only = guieval("run", "--resume", run, "--mode", "soeval", "--base-url", quick.base_url, "--quiet")
        assert only.code == 0 and (run / "soeval" / METRICS).exists() and not (run / "offline" / METRICS).exists()
        rest = guieval("run", "--resume", run, "--base-url", quick.base_url, "--quiet", "--concurrency", "1")
    assert rest.code == 0, rest
    for mode in ("offline", "soeval", "sop"):
        assert read_json((run / mode / METRICS).read_text())["state"] == "finished"
    wrong = guieval.sentence("run", "--resume", run / "sop", "--mode", "sop", "--mode", "offline")
    assert "has no run in mode 'offline', only in sop" in wrong


def test_sigterm_outside_any_run_is_as_ctrl_c(demo: Path, server: MockServer, tmp_path: Path) -> None:
    config = RunConfig(model=MODEL, bench="demo", data=str(demo), base_urls=(server.base_url,))
    with pytest.raises(KeyboardInterrupt):
        stop = functools.partial(signal.raise_signal, signal.SIGTERM)
        perform([(config, tmp_path / "run")], fresh=True, quiet=True, first=stop, show=print)
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


def test_a_mode_that_fails_costs_no_finished_one(demo: Path, server: MockServer, tmp_path: Path, guieval: CommandLine) -> None:
    run = tmp_path / "run"
    words = command(server, demo, run, "--mode", "offline", "--mode", "sop", "--quiet")
    assert guieval(*words).code == 0
    for file in (run / "offline" / METRICS, run / "sop" / METRICS, run / "sop" / EPISODES):
        file.unlink()
    (run / "sop" / EPISODES).mkdir()  # nothing can be written there
    failed = guieval("run", "--resume", run, "--quiet")
    assert failed.code == 1 and len(failed.err.splitlines()) == 1 and "cannot write" in failed.err
    assert "demo offline" in failed.out and (run / "offline" / METRICS).exists()
    assert "already has a run" in guieval(*words).err


def test_moved_data_and_a_lost_manifest(demo: Path, server: MockServer, tmp_path: Path, guieval: CommandLine) -> None:
    run, moved = tmp_path / "run", tmp_path / "moved"
    assert guieval(*command(server, demo, run, "--quiet")).code == 0
    lines = (run / STEPS).read_bytes().splitlines(keepends=True)
    (run / STEPS).write_bytes(b"".join(lines[:-3]))
    assert guieval("run", "--resume", run, "--data", moved, "--quiet").code == 0
    assert len(list(RunFolder(run).records)) == len(lines)
    before = (run / STEPS).read_bytes()
    commands = [("score", run), ("run", "--resume", run), command(server, demo, run, "--mode", "sop")]
    (run / MANIFEST).write_text((run / MANIFEST).read_text()[:300])
    for arguments in commands:
        guieval.sentence(*arguments)
    (run / MANIFEST).unlink()
    for arguments in commands:
        sentence = guieval.sentence(*arguments)
        assert "manifest" in sentence or "has no run" in sentence
    assert (run / STEPS).read_bytes() == before

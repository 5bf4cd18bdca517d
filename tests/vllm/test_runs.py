"""`guieval run` with real vLLM: three engines, equal journals; a server that is killed, and a run that goes on after it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import psutil
import pytest

from guieval.data.benchmark import ABCBenchmark
from guieval.engines.vllm.command import served_name
from guieval.engines.vllm.server import VLLMServer
from guieval.journal import METRICS, RunFolder
from guieval.steps import StepRecord
from tests.programs import started
from tests.waiting import until

from .conftest import ARGUMENTS, MODEL, OPTIONS

MODES = ("offline", "soeval")
LONG = 600.0
"""Seconds in which vLLM has started and answered on the slowest machine."""


def command(screens: Path, tiny: Path | None, out: Path, *more: str) -> list[str]:
    settings = {
        **{f"bench_options.{name}": value for name, value in OPTIONS.items()},
        **({f"vllm.{name}": json.dumps(value) for name, value in ARGUMENTS.items()} if tiny is not None else {}),
        **({"model_path": tiny} if tiny is not None else {}),
        "sampling.max_tokens": 20,
    }
    start = [sys.executable, "-m", "guieval", "run", "--quiet", "--model", MODEL, "--bench", "demo", "--data", str(screens)]
    return [
        *start,
        "--out",
        str(out),
        *(word for name, value in settings.items() for word in ("--set", f"{name}={value}")),
        *more,
    ]


def answered(directory: Path) -> dict[str, Any]:
    """What must be equal in every run: each step's answer, its counts and how it was judged, without times."""
    records = list(RunFolder(directory).records)
    assert all(record.finished for record in records)
    assert set(Counter(str(record.task.key) for record in records).values()) == {1}, "a step was asked twice"
    return {str(record.task.key): plain(record) for record in records}


def plain(record: StepRecord) -> dict[str, Any]:
    """A record without times, and without the model's name in the answer: only a server states that."""
    return record.model_dump(mode="json", exclude={"models": True, "samples": {"__all__": {"seconds", "attempts"}}})


@pytest.fixture(scope="module")
def clean(screens: Path, server: VLLMServer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run over the session's server, in two modes."""
    out = tmp_path_factory.mktemp("clean") / "run"
    where = ("--base-url", server.base_url, "--served-model", served_name(server.model, server.settings))
    modes = [word for mode in MODES for word in ("--mode", mode)]
    run_unreadable(command(screens, None, out, *where, *modes))
    return out


AT_A_STEP = """
import contextlib, signal
import psutil
from guieval.cli import main
from guieval.journal import Journal

append, appended = Journal.append, 0

def end_servers(number):
    for child in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            if "vllm.entrypoints.openai.api_server" in " ".join(child.cmdline()):
                child.send_signal(number)

def noted(journal, record):
    global appended
    append(journal, record)
    appended += 1
    if appended == {steps}:
        {then}

Journal.append = noted
main()
"""


def at_a_step(steps: int, then: str, words: list[str]) -> list[str]:
    """The same command, which does something itself once it has recorded so many steps: a test that waited for them could come
    when the run is over."""
    return [words[0], "-c", AT_A_STEP.format(steps=steps, then=then), *words[3:]]


def run_unreadable(words: list[str]) -> str:
    """Run guieval to its end and return what it writes to stderr.

    The model's weights are random, so no reply can be read as an action, and guieval reports that with exit code 1.
    """
    ended = subprocess.run(words, capture_output=True, text=True, timeout=LONG)
    printed = ended.stdout + ended.stderr
    assert ended.returncode == 1 and "could be read as an action" in printed and "Traceback" not in printed, printed[-3000:]
    return ended.stderr


@pytest.mark.parametrize(("engine", "modes"), [("vllm-inprocess", MODES), ("transformers", MODES[:1])])
def test_a_run_is_the_same_with_every_engine(
    tmp_path: Path, screens: Path, tiny: Path, clean: Path, benchmark: ABCBenchmark, engine: str, modes: tuple[str, ...]
) -> None:
    out = [tmp_path / "run" / mode for mode in modes] if len(modes) > 1 else [tmp_path / "run"]
    run_unreadable(
        command(screens, tiny, tmp_path / "run", "--engine", engine, *(word for mode in modes for word in ("--mode", mode)))
    )
    for mode, directory in zip(modes, out, strict=True):
        there, here = answered(clean / mode), answered(directory)
        assert len(there) == sum(ref.length for ref in benchmark.index()) and here == there


@pytest.mark.parametrize(("number", "concurrency"), [(signal.SIGKILL, 1), (signal.SIGTERM, 8)])
def test_a_server_that_ends_loses_and_doubles_nothing(
    tmp_path: Path, screens: Path, tiny: Path, clean: Path, server: VLLMServer, number: signal.Signals, concurrency: int
) -> None:
    """The server that guieval started is killed mid-run, or ends in good order and answers requests in flight with what there
    is (status 200, ``abort``), which were the model's mistakes for good; another one goes on with the run."""
    out = tmp_path / "run"
    then = f"end_servers({int(number)})"
    words = at_a_step(3, then, command(screens, tiny, out, "--engine", "vllm", "--concurrency", str(concurrency)))
    with started(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        printed, errors = process.communicate(timeout=LONG)
    assert process.returncode == 1, errors[-3000:]
    assert f"guieval run --resume {out}" in printed and "Traceback" not in errors
    before, whole = answered_so_far(out), answered(clean / "offline")
    assert 3 <= len(before) < len(whole), "the run was over before its server was killed"
    where = ("--engine", "openai", "--base-url", server.base_url, "--concurrency", "8")
    name = served_name(server.model, server.settings)
    resume = [sys.executable, "-m", "guieval", "run", "--quiet", "--resume", str(out), *where, "--served-model", name]
    run_unreadable(resume)
    after = answered_so_far(out)
    assert {key: after[key] for key in before} == before
    assert after == whole
    summaries = [json.loads((run / METRICS).read_text())["summary"] for run in (out, clean / "offline")]
    for summary in summaries:
        for name in ("mean seconds to answer", "prompt tokens", "completion tokens"):
            summary["metrics"].pop(name)
    assert summaries[0] == summaries[1]


def answered_so_far(directory: Path) -> dict[str, Any]:
    """Finished steps only, none of them twice: one whose server went away may have left a record of that."""
    finished = [record for record in RunFolder(directory).records if record.finished]
    assert set(Counter(str(record.task.key) for record in finished).values()) == {1}, "a step was asked twice"
    return {str(record.task.key): plain(record) for record in finished}


def test_no_process_outlives_a_killed_run(tmp_path: Path, screens: Path, tiny: Path) -> None:
    """Killed with -9 while its model works in this process, guieval leaves none of vLLM's processes running."""
    given = command(screens, tiny, tmp_path / "run", "--engine", "vllm-inprocess", "--concurrency", "1")
    words = at_a_step(1, "signal.raise_signal(signal.SIGSTOP)", given)
    with started(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        watched = psutil.Process(process.pid)
        until(lambda: watched.status() == psutil.STATUS_STOPPED, "a step", within=LONG, running=process)
        below = {child.pid for child in watched.children(recursive=True)}
        assert len(below) > 1, "vLLM works in processes of its own"
    until(lambda: not any(map(words_of, below)), "the end of vLLM's processes")


def words_of(pid: int) -> bytes:
    """A process's command line; nothing of one that is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""

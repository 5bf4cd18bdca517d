"""`guieval run` with real vLLM: equal journals of three engines, servers that are killed, and screenshots only named."""

from __future__ import annotations

import asyncio
import json
import logging
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from guieval.data.benchmark import ABCBenchmark
from guieval.data.screenshots import Screenshot
from guieval.engines.http.chat_body import chat_body
from guieval.engines.http.chat_completions import OpenAIEngine
from guieval.engines.vllm.command import served_name
from guieval.engines.vllm.server import VLLMServer
from guieval.journal import METRICS, RunFolder
from guieval.models import ABCModel, Request, Response
from guieval.settings import Server
from tests.programs import started
from tests.waiting import until

from .conftest import ARGUMENTS, MODEL, OPTIONS, MakeRequest, counts, texts

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
    given = [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
    return [*start, "--out", str(out), *given, *more]


def answered(directory: Path, *, whole: bool = True) -> dict[str, Any]:
    """What must be equal in every run: answers, counts and outcomes, without times; of finished steps only if not ``whole``."""
    records = [record for record in RunFolder(directory).records if record.finished or whole]
    assert all(record.finished for record in records)
    assert set(Counter(str(record.task.key) for record in records).values()) == {1}, "a step was asked twice"
    # without times, and without the model's name in the answer: only a server states that
    untold: Any = {"models": True, "samples": {"__all__": {"seconds", "attempts"}}}
    return {str(record.task.key): record.model_dump(mode="json", exclude=untold) for record in records}


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
    """What guieval writes to stderr; the weights are random, so no reply can be read as an action, and its exit code is 1."""
    ended = subprocess.run(words, capture_output=True, text=True, timeout=LONG)
    printed = ended.stdout + ended.stderr
    assert ended.returncode == 1 and "could be read as an action" in printed and "Traceback" not in printed, printed[-3000:]
    return ended.stderr


@pytest.mark.parametrize(("engine", "modes"), [("vllm-inprocess", MODES), ("transformers", MODES[:1])])
def test_a_run_is_the_same_with_every_engine(
    tmp_path: Path, screens: Path, tiny: Path, clean: Path, benchmark: ABCBenchmark, engine: str, modes: tuple[str, ...]
) -> None:
    out = [tmp_path / "run" / mode for mode in modes] if len(modes) > 1 else [tmp_path / "run"]
    chosen = [word for mode in modes for word in ("--mode", mode)]
    run_unreadable(command(screens, tiny, tmp_path / "run", "--engine", engine, *chosen))
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
    before, whole = answered(out, whole=False), answered(clean / "offline")
    assert 3 <= len(before) < len(whole), "the run was over before its server was killed"
    where = ("--engine", "openai", "--base-url", server.base_url, "--concurrency", "8")
    name = served_name(server.model, server.settings)
    resume = [sys.executable, "-m", "guieval", "run", "--quiet", "--resume", str(out), *where, "--served-model", name]
    run_unreadable(resume)
    after = answered(out, whole=False)
    assert {key: after[key] for key in before} == before
    assert after == whole
    summaries = [json.loads((run / METRICS).read_text())["summary"] for run in (out, clean / "offline")]
    for summary in summaries:
        for name in ("mean seconds to answer", "prompt tokens", "completion tokens"):
            summary["metrics"].pop(name)
    assert summaries[0] == summaries[1]


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


class Unsent(Screenshot):
    """A screenshot whose bytes must not be sent."""

    @property
    def base64(self) -> bytes:
        raise AssertionError("the bytes were to be sent")


def unsent(request: Request, *, named: bool) -> Request:
    """The request with screenshots that can be referred to only; not even by their files unless ``named``."""
    images = [Unsent(each.data, each.format, each.size, each.path if named else None) for each in request.images]
    return replace(request, images=tuple(images))


def replies(server: VLLMServer, requests: Sequence[Request], folder: Path | None = None, **settings: Any) -> list[Response]:
    """Asked one after the other; none may need a second try."""

    async def main() -> list[Response]:
        name = served_name(server.model, server.settings)
        given = Server(base_urls=(server.base_url,), served_model=name, max_attempts=1, **settings)
        engine = OpenAIEngine(given, folder=folder)
        try:
            return [await engine.generate(request) for request in requests]
        finally:
            await engine.close()

    return asyncio.run(main())


@pytest.fixture
def asked(make_request: MakeRequest) -> list[Request]:
    """Steps with one, two and three screenshots, in their files' sizes."""
    found = [make_request(0, step, temperature=0, max_tokens=30) for step in (0, 1, 2)]
    assert [len(request.images) for request in found] == [1, 2, 3]
    assert all(image.path is not None for request in found for image in request.images)
    return found


@pytest.fixture
def in_bytes(server: VLLMServer, asked: list[Request]) -> list[Response]:
    return replies(server, asked)


def same(these: Sequence[Response], those: Sequence[Response]) -> bool:
    return texts(these) == texts(those) and [counts(each) for each in these] == [counts(each) for each in those]


def test_files_are_read_by_the_server_and_what_was_sent_once_is_held(
    server: VLLMServer, asked: list[Request], in_bytes: list[Response], screens: Path, caplog: pytest.LogCaptureFixture
) -> None:
    named, again = ([unsent(request, named=each) for request in asked] for each in (True, False))
    with caplog.at_level(logging.WARNING):
        read = replies(server, named, folder=screens)
        held = replies(server, [*asked, *reversed(again)], image_uuids=True)
    assert same(read, in_bytes) and same(held, [*in_bytes, *reversed(in_bytes)]) and not caplog.records
    both = replies(server, [*named, *again], folder=screens, image_uuids=True)
    assert same(both, [*in_bytes, *in_bytes])


def test_a_file_that_the_server_may_not_read_is_sent(
    server: VLLMServer, tmp_path: Path, asked: list[Request], in_bytes: list[Response], caplog: pytest.LogCaptureFixture
) -> None:
    moved = []
    for number, request in enumerate(asked):
        copies = []
        for index, image in enumerate(request.images):
            path = tmp_path / f"{number}-{index}.png"
            path.write_bytes(image.data)
            copies.append(replace(image, path=path))
        moved.append(replace(request, images=tuple(copies)))
    with caplog.at_level(logging.WARNING):
        sent = replies(server, moved, folder=tmp_path)
    assert same(sent, in_bytes)
    assert len(caplog.records) == 1 and "does not read local files" in caplog.text


def test_the_words_for_what_is_held_no_longer(server: VLLMServer, model: ABCModel, asked: list[Request]) -> None:
    """What guieval knows a forgotten image by."""
    body = json.loads(chat_body(asked[0], served_name(server.model, server.settings)))
    for message in body["messages"]:
        for part in message["content"] if isinstance(message["content"], list) else ():
            if part["type"] == "image_url":
                part.update(image_url=None, uuid="never seen")
    answer = httpx.post(f"{server.base_url}/chat/completions", json=body, timeout=60)
    assert answer.status_code == 400 and "Cache miss for image at index 0" in answer.text


def test_a_run_is_the_same_with_references(tmp_path: Path, screens: Path, server: VLLMServer, clean: Path) -> None:
    where = ("--base-url", server.base_url, "--served-model", served_name(server.model, server.settings))
    references = ("--set", "local_images=true", "--set", "image_uuids=true")
    errors = run_unreadable(command(screens, None, tmp_path / "run", *where, *references, "--mode", "soeval"))
    assert "bytes" not in errors, errors[-3000:]
    assert answered(tmp_path / "run") == answered(clean / "soeval")

"""The ``guieval`` command as a process of its own, over one small benchmark, and what its run directories must hold."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

import psutil
import pytest

from guieval.cli import main
from guieval.data.benchmark import ABCBenchmark
from guieval.journal import STEPS, RunFolder
from guieval.playground.mock_server import MockServer, MockSettings
from guieval.steps import StepRecord
from tests.faults.rows import Row
from tests.programs import started
from tests.running.records import figures, final
from tests.waiting import PATIENCE, until

MODEL = "qwen3-vl-8b-instruct"
OPTIONS = {"episodes": 6, "seed": 8}


@dataclass(frozen=True)
class Program:
    """``guieval run`` over ``benchmark``, whose screens are drawn already; ``clean`` is a run that nothing disturbed.

    ``served`` is the name by which requests ask for ``model``, and ``variable`` holds the key; ``running`` are the processes
    that the test at hand has started.
    """

    benchmark: ABCBenchmark
    clean: Path
    model: str = MODEL
    served: str = MODEL
    variable: str = "OPENAI_API_KEY"
    running: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)

    @property
    def requests(self) -> list[int]:
        """The bytes of every request of the clean run, in order of size."""
        lines = (self.clean.parent / "requests").read_text(encoding="utf-8").splitlines()
        return sorted(json.loads(line)["bytes"] for line in lines)

    def server(self, **settings: Any) -> MockServer:
        """A server that answers every step the same way each time, with whatever faults are set."""
        fixed = {"model": self.model, "policy": "reference", "accuracy": 0.7, "served_models": (self.served,)}
        return MockServer(MockSettings.model_validate({**fixed, **settings}), benchmark=self.benchmark)

    def command(self, url: str, directory: Path, *options: str, resume: bool = False, mode: str = "soeval") -> list[str]:
        """The arguments of a run, or of its resume."""
        command = ["run", "--quiet", "--base-url", url]
        if resume:
            return [*command, "--resume", str(directory), *options]
        command += ["--model", self.model, "--bench", "demo", "--data", str(self.benchmark.root), "--out", str(directory)]
        command += [item for name, value in OPTIONS.items() for item in ("--set", f"bench_options.{name}={value}")]
        concurrency = () if "--concurrency" in options else ("--concurrency", "8")
        return [*command, "--mode", mode, *concurrency, *options]

    def start(
        self,
        url: str,
        directory: Path,
        *options: str,
        env: Mapping[str, str] | None = None,
        before: Callable[[], None] | None = None,
        **more: Any,
    ) -> subprocess.Popen[str]:
        """Start a run in a process of its own, in which ``before`` is called first; ``more`` as :meth:`command` takes it."""
        process = started(
            [sys.executable, "-m", "guieval", *self.command(url, directory, *options, **more)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=_environment(env),
            cwd=directory.parent,  # where nothing else is, so that a stray file would be found
            preexec_fn=before,
        )
        return self.running.enter_context(process)

    def end(self, process: subprocess.Popen[str], code: int = 0) -> str:
        """Wait for a program that was started; what it printed. It must end with that exit code and without a traceback."""
        text, _ = process.communicate(timeout=PATIENCE)
        assert "Traceback" not in text, text
        assert process.returncode == code, text
        return text

    def run(
        self, url: str, directory: Path, *options: str, code: int = 0, env: Mapping[str, str] | None = None, **more: Any
    ) -> str:
        """As :meth:`start` and :meth:`end`, but in this process, which is faster."""
        return guieval(*self.command(url, directory, *options, **more), folder=directory.parent, code=code, env=env)

    def tried(self, row: Row, directory: Path, **more: Any) -> dict[str, int]:
        """A run against the server of a row, which prints what the row says; what the server counted."""
        with self.server(**row.server) as server:
            row.check_seen(self.run(server.base_url, directory, *row.options, code=row.code, **more))
            return server.stats()

    def check_resumed(self, directory: Path, *options: str, **more: Any) -> None:
        """A resume against a healthy server ends as :meth:`check_whole` says."""
        with self.server(**more.pop("server", {})) as healthy:
            self.run(healthy.base_url, directory, *options, resume=True, **more)
        self.check_whole(directory)

    def check_whole(self, directory: Path, *, once: bool = True) -> None:
        """The run is complete, says what the clean run says, figures included, and holds every step once (if ``once``)."""
        doubled = [
            key
            for key, times in Counter(_key(record) for record in RunFolder(directory).records if record.finished).items()
            if times > 1
        ]
        assert not (once and doubled), f"these steps were finished twice: {doubled}"
        assert final(directory) == final(self.clean)
        assert figures(directory) == figures(self.clean)

    def check_honest(self, directory: Path) -> int:
        """What was answered is as in the clean run, the rest is counted apart from it; how many steps failed."""
        answered, clean = final(directory), final(self.clean)
        assert answered.items() <= clean.items()
        failed = {_key(record) for record in RunFolder(directory).records if not record.finished} - answered.keys()
        for record in RunFolder(directory).records:
            assert record.finished or record.sample.outcome.verdict == "infrastructure_failure"
        summary = figures(directory)
        verdicts, exact = summary["verdicts"], summary["metrics"]["exact match"]
        assert verdicts["infrastructure_failure"] == len(failed)
        assert sum(verdicts[kind] for kind in ("right", "wrong", "unparseable", "unsupported")) == len(answered)
        assert exact["n"] == verdicts["planned"] == len(clean)
        assert summary["complete"] is (answered.keys() == clean.keys())
        return len(failed)


def guieval(*arguments: str, folder: Path, code: int = 0, env: Mapping[str, str] | None = None) -> str:
    """Call the ``guieval`` command in this process, with ``folder`` as the current one; what it printed on both streams."""
    output = io.StringIO()
    with (
        patch.object(sys, "argv", ["guieval", *arguments]),
        patch.dict(os.environ, _environment(env), clear=True),
        contextlib.chdir(folder),
        contextlib.redirect_stdout(output),
        contextlib.redirect_stderr(output),
        pytest.raises(SystemExit) as ended,
    ):
        main()
    assert ended.value.code == code, output.getvalue()
    return output.getvalue()


def _environment(more: Mapping[str, str] | None) -> dict[str, str]:
    """This process's environment without keys and certificates, and wide enough a terminal that no line is broken."""
    kept = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY") and name != "SSL_CERT_FILE"}
    return {**kept, "COLUMNS": "250", **(more or {})}


def tries_again(directory: Path) -> int:
    """How many tries the journal's requests took beyond the first."""
    return sum(record.sample.attempts - 1 for record in RunFolder(directory).records)


def most_memory(process: subprocess.Popen[str]) -> int:
    """The most memory in bytes that a running program has held; on other systems than Linux, what it holds now."""
    if sys.platform != "linux":
        return psutil.Process(process.pid).memory_info().rss
    status = Path(f"/proc/{process.pid}/status").read_text(encoding="utf-8")
    (kilobytes,) = re.findall(r"VmHWM:\s*(\d+) kB", status)
    return int(kilobytes) * 1024


def journal_lines(directory: Path) -> int:
    """Whole lines in the journal so far."""
    path = directory / STEPS
    return path.read_bytes().count(b"\n") if path.exists() else 0


def wait_for_lines(process: subprocess.Popen[str], directory: Path, count: int) -> None:
    """Wait until a running program has written so many records."""
    until(lambda: journal_lines(directory) >= count, f"{count} records", every=0.005, running=process)


def _key(record: StepRecord) -> str:
    return str(record.task.key)

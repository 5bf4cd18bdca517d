"""``guieval run --mode online`` as a process of its own, with an agent that acts by a script, and the processes below it."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from guieval.online.trajectory import TRAJECTORIES
from tests.online.test_runs import requests, write_agent
from tests.programs import guard
from tests.waiting import PATIENCE, until


@dataclass(frozen=True)
class Acting:
    """An online run with the agent in the file ``agent``; ``options`` are those of the command."""

    agent: Path
    options: tuple[str, ...]

    @classmethod
    def made(cls, folder: Path, scripts: Mapping[str, Sequence[str]], *options: str) -> Acting:
        """A run whose agent gives the replies of ``scripts``, by task."""
        return cls(write_agent(folder, scripts), options)

    def command(self, out: Path, *options: str, resume: bool = False) -> list[str]:
        """The arguments of the run, or of its resume."""
        command = ["run", "--quiet", "--adapter", str(self.agent), *options]
        if resume:
            return [*command, "--resume", str(out), "--trust-run"]
        return [*command, "--model", "scripted", "--engine", "local", "--mode", "online", "--out", str(out), *self.options]

    def start(
        self, out: Path, *options: str, resume: bool = False, before: Callable[[], None] | None = None
    ) -> subprocess.Popen[str]:
        """Start the run, or its resume; ``before`` is called in the process first."""
        command = [sys.executable, "-m", "guieval", *self.command(out, *options, resume=resume)]
        guard()
        return subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, "COLUMNS": "250"},
            preexec_fn=before,
        )

    def end(self, process: subprocess.Popen[str], code: int = 0) -> str:
        """Wait for a run; what it printed. It must end with that exit code and without a traceback."""
        try:
            text, _ = process.communicate(timeout=PATIENCE)
        finally:
            process.kill()
        assert "Traceback" not in text, text
        assert process.returncode == code, text
        return text

    def run(self, out: Path, *options: str, resume: bool = False) -> str:
        """Start a run and wait for it."""
        return self.end(self.start(out, *options, resume=resume))

    @contextlib.contextmanager
    def held(self, after: int) -> Iterator[None]:
        """In this block the agent gives so many replies, or one more for each device: no run ends, however late one looks."""
        file = self.agent.with_suffix(".held")
        file.with_suffix(".written").write_text(str(self.asked() + after))
        file.with_suffix(".written").replace(file)
        try:
            yield
        finally:
            file.unlink()

    def asked(self) -> int:
        """How many replies the agent has given."""
        return len(requests(self.agent))


def steps_recorded(out: Path) -> int:
    """Whole lines in the trajectories so far."""
    path = out / TRAJECTORIES
    return path.read_bytes().count(b"\n") if path.exists() else 0


def wait_for_steps(process: subprocess.Popen[str], out: Path, count: int) -> None:
    """Wait until a running program has recorded so many steps."""
    until(lambda: steps_recorded(out) >= count, f"{count} steps of the run", every=0.002, running=process)


def below(process: subprocess.Popen[str]) -> list[psutil.Process]:
    """All processes that a program has started."""
    return psutil.Process(process.pid).children(recursive=True)


def running(word: str, processes: Iterable[psutil.Process]) -> list[psutil.Process]:
    """Those whose command line has a word; one that ends while it is looked at is none of them."""
    found = []
    for each in processes:
        with contextlib.suppress(psutil.Error):
            found += [each] if word in " ".join(each.cmdline()) else []
    return found


def browsers(process: subprocess.Popen[str]) -> list[psutil.Process]:
    """Those of a browser."""
    found = running("chrom", below(process))
    assert found, "no browser is open"
    return found


def signal_all(processes: Sequence[psutil.Process], number: signal.Signals) -> None:
    """Send a signal to processes, some of which may have ended."""
    for each in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            each.send_signal(number)


def left_of(processes: Sequence[psutil.Process]) -> list[psutil.Process]:
    """Those that do not end."""
    _, alive = psutil.wait_procs(processes, timeout=PATIENCE)
    return [each for each in alive if not ended(each)]


def ended(process: psutil.Process) -> bool:
    """Whether a process has ended, waited for or not."""
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True

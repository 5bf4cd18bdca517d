"""The tools that start runs: each in a process of its own, which goes on when the assistant and its server have ended.

A run takes hours and costs money, and must not end with a conversation. The process is ``guieval run``, so what it refuses, it
refuses in the command's own words. A model chooses among names; the data, the server that is asked and all further settings are
those that the user gave to ``guieval dev mcp``.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from guieval.assistants.reading import Json, RunName
from guieval.assistants.run_folder import AllowedRuns
from guieval.cli.running.runs import run_values
from guieval.data.files import read_text
from guieval.errors import UsageError, known_name
from guieval.evaluation import list_protocols
from guieval.journal import new_directory
from guieval.registry import benchmark_class, list_benchmarks
from guieval.reports.past_runs import past_run, run_directories

RecordedMode: TypeAlias = Literal["offline", "soeval", "sop", "sop-retry"]
BEGINS_WITHIN = 120.0
"""Seconds until a run has either a folder or a reason why it has none; a server of a large model may take longer to load."""
LAST_LINES = 5


@dataclass(frozen=True)
class GivenToRuns:
    """What the user gave for every run: the folder of the benchmarks' data, the servers, and a file of settings."""

    data: Path | None = None
    base_urls: tuple[str, ...] = ()
    config: str | None = None

    def words(self, bench: str) -> list[str]:
        """The options of ``guieval run``. The data of a benchmark are in the subfolder of its name, or else in the folder."""
        words = [word for url in self.base_urls for word in ("--base-url", url)]
        words += [] if self.config is None else ["--config", self.config]
        if self.data is None or not benchmark_class(bench).needs_data:
            return words
        return [*words, "--data", str(self.data / bench if (self.data / bench).is_dir() else self.data)]


@dataclass
class StartingTools:
    """The tools, with the processes that they have started."""

    runs: AllowedRuns
    given: GivenToRuns
    _started: dict[Path, subprocess.Popen[bytes]] = field(default_factory=dict)

    def every(self) -> tuple[Callable[..., Json], ...]:
        return self.start_run, self.run_status, self.stop_run

    def start_run(
        self,
        model: Annotated[
            str, Field(description="A checkpoint from list_models, or ORG/NAME of a fine-tune of a known family.")
        ],
        bench: Annotated[str, Field(description="A benchmark from list_benchmarks; 'demo' needs no data.")],
        mode: Annotated[
            RecordedMode, Field(description="offline: each step with the reference's history; soeval, sop: its own.")
        ],
        limit: Annotated[int | None, Field(ge=1, description="Draw at most so many episodes. Begin with 5.")] = None,
        protocol: Annotated[str | None, Field(description="Scoring protocol; default: the benchmark's.")] = None,
        seed: Annotated[int, Field(ge=0, description="Seed of the episodes that limit draws.")] = 0,
        name: Annotated[
            str | None, Field(description="A new folder's name for the run; default: from model, benchmark and time.")
        ] = None,
        dry_run: Annotated[bool, Field(description="Only say which requests, tokens and cost to expect.")] = False,
    ) -> Json:
        """Evaluate a model on recorded episodes, in the background; run_status says how far it is.

        It sends every step to the model, which takes time and may cost money: begin with dry_run, then a small limit. The run
        goes on if this server ends.
        """
        words = ["--bench", known_name("benchmark", bench, list_benchmarks()), "--mode", mode]
        words += ["--model", _model(model)]
        if protocol is not None:
            words += ["--protocol", known_name("protocol", protocol, list_protocols())]
        words += [*([] if limit is None else ["--limit", str(limit), "--seed", str(seed)]), *self.given.words(bench)]
        if dry_run:
            return {"forecast": _forecast([*words, "--dry-run"])}
        out = self.runs.inside(name or new_directory(model, bench, mode).name)
        if out.exists():
            raise UsageError(f"the folder {str(out)!r} exists already: give another name")
        out.parent.mkdir(parents=True, exist_ok=True)
        self._begin([*words, "--out", str(out)], out)
        return self.run_status(str(out))

    def run_status(self, run: RunName) -> Json:
        """Say how far a run is: its state, metrics so far with n and missing steps, and the last lines of its output."""
        path = self.runs.inside(run)
        process, log = self._started.get(path), _log_of(path)
        if process is None:
            path = self.runs.existing(run)
        found = [run_values(past_run(each, each.relative_to(self.runs.folder).as_posix())) for each in run_directories(path)]
        exit_code = None if process is None else process.poll()
        return {"runs": found, "exit_code": exit_code, "output": _last(log, LAST_LINES) if log.exists() else []}

    def stop_run(self, run: RunName) -> Json:
        """Stop a run that start_run started: what was answered is kept, and `guieval run --resume` goes on with it."""
        path = self.runs.inside(run)
        process = self._started.get(path)
        if process is None or process.poll() is not None:
            raise UsageError(f"no run that this server started is under way in {str(path)!r}")
        process.send_signal(signal.SIGINT)
        process.wait()
        return self.run_status(run)

    def _begin(self, words: list[str], out: Path) -> None:
        """Start a run, and wait until it has a folder or has ended; :class:`UsageError` with its sentence if it refuses."""
        log = _log_of(out)
        with log.open("wb") as output:
            command = [sys.executable, "-m", "guieval", "run", *words]
            none = subprocess.DEVNULL
            process = subprocess.Popen(command, stdin=none, stdout=output, stderr=subprocess.STDOUT, start_new_session=True)
        self._started[out] = process
        until = time.monotonic() + BEGINS_WITHIN
        while process.poll() is None and not any(run_directories(out)) and time.monotonic() < until:
            time.sleep(0.1)
        if process.poll() is not None and not any(run_directories(out)):
            sentence = " ".join(_last(log, LAST_LINES)).rpartition("guieval: ")[2]
            log.unlink()
            del self._started[out]
            raise UsageError(sentence or f"the run ended with code {process.returncode} before it began")


def _model(name: str) -> str:
    """The name of a model; :class:`UsageError` for a path, since it could be any on the disk."""
    if name.startswith((".", "/", "~", "-")) or name.count("/") > 1 or Path(name).exists():
        raise UsageError(f"the model {name!r} is a path: expected a name from list_models, or ORG/NAME")
    return name


def _forecast(words: list[str]) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "guieval", "run", *words], stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    if done.returncode:
        raise UsageError(done.stderr.strip().rpartition("guieval: ")[2] or f"the forecast ended with code {done.returncode}")
    return done.stdout


def _log_of(out: Path) -> Path:
    """What a run prints, next to its folder, which only the run itself writes to."""
    return out.with_name(f"{out.name}.log")


def _last(log: Path, lines: int) -> list[str]:
    return [line for line in read_text(log).replace("\r", "\n").splitlines() if line.strip()][-lines:]

"""One worker: runs shards, one after the other, with an engine of its own.

The class is plain Python; :mod:`guieval.cluster.driver` makes a Ray actor of it. Its methods are called from several
threads: :meth:`Worker.begin` and :meth:`Worker.work` one at a time, and :meth:`Worker.stop` meanwhile.
"""

from __future__ import annotations

import os
import platform
import tempfile
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from guieval.cluster.merging import discard_shard
from guieval.data.files import open_file
from guieval.data.shipped import __version__
from guieval.engines import EndpointStats, ReportsSetup
from guieval.errors import AdapterFault, DataError, GuievalError
from guieval.journal import STEPS, Journal
from guieval.journal.directory import SHARDS
from guieval.journal.run_files import Manifest
from guieval.journal.setup import Setup
from guieval.running.config import parse
from guieval.running.engine_choice import open_server
from guieval.running.progress.counts import RunProgress
from guieval.running.resolve import resolve
from guieval.running.resolved import ResolvedRun
from guieval.running.resume.identity import manifest_of, refuse_unlike
from guieval.running.runner.runner import Runner
from guieval.settings import RunConfig
from guieval.steps import EpisodeKey, StepRecord

if TYPE_CHECKING:
    from guieval.engines.vllm.server import VLLMServer

MOST_BYTES = 4 * 1024 * 1024
"""Of a shard, at most this is sent at once, unless one line is longer."""

How: TypeAlias = Literal["done", "stopped", "failed", "gave-up", "bad-data", "fault"]


@dataclass(frozen=True)
class Ended:
    """How a worker's work ended, and why, in one sentence.

    ``stopped``: :meth:`Worker.stop` was called. ``gave-up``: its requests are not answered any more. ``bad-data``: an episode
    cannot be loaded, which no other worker could either. ``fault``: step after step has the same fault of the adapter.
    """

    how: How
    why: str = ""


@dataclass(frozen=True)
class News:
    """What a worker reports of its shard several times a second.

    ``data``: whole lines, the next ones of its journal from the first on. ``in_flight`` is how many steps are in flight,
    ``servers`` their statistics in this shard, ``setup`` who answers, and how, ``patch_setup`` who writes the thoughts of
    patches, ``wait`` which servers are away and waited for. ``ended`` is in the last report alone.
    """

    data: bytes = b""
    in_flight: int = 0
    servers: tuple[EndpointStats, ...] = ()
    setup: Setup | None = None
    patch_setup: Setup | None = None
    wait: str | None = None
    ended: Ended | None = None


class Worker:
    """Runs shards of any run that it has begun. ``name`` is unlike that of any other worker."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._one_at_a_time = threading.Lock()
        self._server: VLLMServer | None = None
        self._served: RunConfig | None = None
        self._run: ResolvedRun | None = None
        self._place = Path()
        self._shards: list[Path] = []
        self._guard = threading.Lock()
        """Held while what follows changes: the shard at work, and the turns up to which shards are to end."""
        self._runner: Runner | None = None
        self._progress = RunProgress(0)
        self._asks = False
        self._finished = self._stopped = 0

    def begin(
        self, version: str, config: Mapping[str, Any], manifest: Mapping[str, Any], directory: str, cwd: str
    ) -> tuple[str, Ended | None]:
        """Get ready for shards of a run, with a running server if it needs one: the machine's name, and what prevents it.

        ``config`` and ``manifest`` are the run's, ``version`` is that of guieval which the driver has; ``directory`` is the run
        directory and ``cwd`` the driver's working directory, both absolute, and the same on machines that share the disk.
        """
        machine = platform.node()
        if version != __version__:
            return machine, Ended("failed", f"it has guieval {__version__}, but {version} is required")
        with self._one_at_a_time:
            try:
                self._begin(parse(config, kept=config), Manifest.of(manifest), Path(directory), cwd)
            except GuievalError as error:
                return machine, _end_by(error)
        return machine, None

    def _begin(self, config: RunConfig, manifest: Manifest, directory: Path, cwd: str) -> None:
        with suppress(OSError):  # without it, relative paths of the configuration are reported as missing
            os.chdir(cwd)
        if self._served is not None and self._served != config.having(mode=""):
            self.close()
        self._place = directory / SHARDS
        if self._server is None:
            self._server = open_server(config, directory / f"vllm-{self.name}.log")
        run = resolve(config, self._server)
        refuse_unlike(manifest, Manifest.of(manifest_of(run)), directory)
        run.screenshots.skip()  # the driver has looked at them
        if self._server is not None and self._served is None:
            self._server.start()
            self._served = config.having(mode="")
        self._run = run

    def work(
        self, turn: int, name: str, keys: Sequence[EpisodeKey], known: Iterable[StepRecord], patience: float = 0.2
    ) -> Iterator[News]:
        """Run the episodes ``keys`` in a shard called ``name``, which begins with the records ``known``, and report on it.

        ``turn`` grows with every call. Between two reports are at least ``patience`` seconds, but for the last ones.
        """
        with self._one_at_a_time, ThreadPoolExecutor(1, thread_name_prefix="shard") as thread:
            with self._guard:
                self._runner, self._progress, self._asks = None, RunProgress(0), False
            folder = self._folder(name)
            end = thread.submit(self._end_of, turn, folder, keys, known)
            sent = 0
            over = False
            while not over:
                over = end.done()  # before the journal is read, so that everything is in it
                while data := _lines(folder, sent):
                    sent += len(data)
                    yield self._news(data)
                if not over:
                    yield self._news(b"")
                    wait([end], patience)
            yield replace(self._news(b""), in_flight=0, wait=None, ended=end.result())

    def _folder(self, name: str) -> Path:
        """The shard's folder: in the run directory if that can be written from here, else in one for temporary files."""
        folder = self._place / name
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError:
            folder = Path(tempfile.mkdtemp(prefix="guieval-")) / name
        self._shards.append(folder)
        return folder

    def _end_of(self, turn: int, folder: Path, keys: Sequence[EpisodeKey], known: Iterable[StepRecord]) -> Ended:
        begun = self._run
        assert begun is not None, "a worker begins a run before it works"
        try:
            run = resolve(begun.config, self._server, like=begun)
            refs = {ref.key: ref for ref in run.selection.refs}
            part = replace(run.selection, refs=[refs[key] for key in keys], plan={key: run.plan[key] for key in keys})
            run = replace(run, selection=part)

            def halt(progress: RunProgress) -> str | None:
                return "no more is to be begun" if turn <= self._finished else None

            runner = Runner(run, folder, on_progress=self._see, halt=halt)
            with self._guard:
                self._runner = runner
                if turn <= self._stopped:
                    return Ended("stopped")
            runner.begin()
            with Journal(folder) as journal:
                for record in known:
                    journal.append(record)
            outcome = runner.execute(resume=True)
        except GuievalError as error:
            return Ended("stopped") if turn <= self._stopped else _end_by(error, self._progress.fault)
        if outcome.gave_up:
            example = next((failures.example for failures in outcome.progress.by_stage.values()), "nobody answers")
            return Ended("gave-up", f"too many requests in a row were not answered, first: {example}")
        return Ended("stopped" if outcome.interrupted or outcome.progress.halted else "done")

    def _see(self, progress: RunProgress) -> None:
        """The runner calls this first when its engine is ready."""
        self._progress, self._asks = progress, True

    def _news(self, data: bytes) -> News:
        runner = self._runner
        if runner is None:
            return News(data)
        run = runner.run
        setup, patches = (engine.setup() if isinstance(engine, ReportsSetup) else None for engine in (run.engine, run.thoughts))
        return News(data, self._progress.in_flight, tuple(run.endpoints), setup, patches, run.waiting)

    def stop(self, turn: int, *, at_once: bool) -> None:
        """Begin no further step of the shard of this turn, and end once those in flight are answered, or ``at_once``."""
        with self._guard:
            self._finished = max(self._finished, turn)
            if at_once or not self._asks:  # without a request in flight, an engine that is waited for may take minutes
                self._stopped = max(self._stopped, turn)
                if self._runner is not None:
                    self._runner.stop()

    def discard(self) -> None:
        """Remove the shards, whose records are all merged."""
        for folder in self._shards:
            discard_shard(folder)
            with suppress(OSError):  # a run directory that was made here for nothing but shards
                folder.parent.parent.rmdir()
        self._shards.clear()

    def close(self) -> None:
        """Take down the server, if this worker started one."""
        server, self._server, self._served = self._server, None, None
        if server is not None:
            server.stop()


def _lines(folder: Path, start: int) -> bytes:
    """The whole lines of a shard's journal from byte ``start`` on, not too many at once."""
    try:
        with open_file(folder / STEPS) as stream:
            stream.seek(start)
            data = stream.read(MOST_BYTES)
            if b"\n" not in data and len(data) == MOST_BYTES:
                data += stream.readline()
    except OSError:
        return b""
    return data[: data.rfind(b"\n") + 1]


def _end_by(error: GuievalError, fault: str | None = None) -> Ended:
    """The end by an error, without the advice on how to resume the shard, which users cannot do."""
    cause = error.__cause__
    why = str(cause if isinstance(cause, GuievalError) else error)
    if isinstance(error, AdapterFault):
        return Ended("fault", fault or why)
    return Ended("bad-data" if isinstance(error, DataError) else "failed", why)

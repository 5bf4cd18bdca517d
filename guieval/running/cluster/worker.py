"""One worker: runs the episodes it is given, with an engine of its own, into a journal of its own.

The class is plain Python; :mod:`guieval.running.cluster.driver` makes a Ray actor of it. Its methods are called from several
threads: one :meth:`Worker.work` at a time, and :meth:`Worker.read`, :meth:`Worker.give` and :meth:`Worker.stop` beside it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import platform
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from guieval.data.benchmark import EpisodeRef
from guieval.data.files import open_file
from guieval.data.selection import Selection
from guieval.data.shipped import __version__
from guieval.engines import EndpointStats, ReportsSetup
from guieval.errors import AdapterFault, DataError, GuievalError
from guieval.journal import STEPS, Journal, RunFolder, is_run
from guieval.journal.lines import read_line
from guieval.journal.run_files import Manifest
from guieval.journal.setup import Setup
from guieval.running.cluster.merging import SHARDS, discard_shard, has_records
from guieval.running.config import parse
from guieval.running.engine_choice import open_server
from guieval.running.progress.counts import Progress
from guieval.running.resolve import resolve
from guieval.running.resolved import ResolvedRun
from guieval.running.resume.identity import manifest_of, refuse_unlike
from guieval.running.runner.runner import Runner
from guieval.settings import RunConfig

if TYPE_CHECKING:
    from guieval.engines.vllm.server import VLLMServer

MOST_BYTES = 4 * 1024 * 1024
"""Of a shard, at most this is read at once, unless one line is longer."""
FEW = 2
"""A worker that holds fewer episodes that it has not begun wants more, so that it need not wait for them."""
MOST_AT_ONCE = 8
"""Episodes given out at once: enough that asking costs nothing, few enough that a slow worker holds back little."""
_POLL = 0.02

How: TypeAlias = Literal["done", "stopped", "failed", "gave-up", "bad-data", "fault"]


@dataclass(frozen=True)
class Job:
    """The settings that all workers of a run share: plain values, which can be sent to any machine.

    ``config`` and ``manifest`` are the run's; ``directory`` is its directory and ``cwd`` the driver's working directory, both
    as absolute paths, which lead to the same files on every machine that shares the disk.
    """

    config: Mapping[str, Any]
    manifest: Mapping[str, Any]
    directory: str
    cwd: str
    session: str


@dataclass(frozen=True)
class Ended:
    """How a worker's work ended, and why, in one sentence.

    ``stopped``: :meth:`Worker.stop` was called. ``gave-up``: its requests are not answered any more. ``bad-data``: an episode
    cannot be loaded, which no other worker could either. ``fault``: step after step has the same fault of the adapter.
    """

    how: How
    why: str = ""


@dataclass(frozen=True)
class Reading:
    """The content of a shard from byte ``start`` on, in whole lines, and whether the worker should be given more episodes.

    It should not before its engine is ready: one that starts slowly, or never, would hold up what others could do.
    ``in_flight`` is how many steps are in flight, ``servers`` their statistics in this turn, ``setup`` who
    answers, and how, ``wait`` which of them are away and waited for, ``patch_setup`` who writes the thoughts of patches.
    """

    start: int
    data: bytes
    wants: bool
    in_flight: int = 0
    servers: tuple[EndpointStats, ...] = ()
    setup: Setup | None = None
    wait: str | None = None
    patch_setup: Setup | None = None


def dealt_first(selection: Selection) -> list[EpisodeRef]:
    """The chosen episodes with the most steps that count first, equal ones in the benchmark's order.

    Every machine derives the same list from the same data, so an episode's position in it is its name among them.
    """
    return sorted(selection.refs, key=lambda ref: -len(selection.plan[ref.key]))


class HandOut:
    """Gives out positions in ascending order, each once, to ``workers`` that come back for more."""

    def __init__(self, positions: Iterable[int], workers: int) -> None:
        self._left = sorted(positions)
        self._next = 0
        self._workers = max(1, workers)

    @property
    def left(self) -> int:
        return len(self._left) - self._next

    def take(self) -> list[int]:
        """The next few, fewer towards the end; none when there are no more."""
        count = max(1, min(MOST_AT_ONCE, self.left // (4 * self._workers)))
        given = self._left[self._next : self._next + count]
        self._next += len(given)
        return given


class _Claims:
    """The episodes that a worker takes: those ``dealt`` to it, and those that it claims while it runs.

    ``refs`` are in the order in which all workers are given episodes. ``claim`` returns positions in it, none at the end.
    """

    def __init__(self, refs: Sequence[EpisodeRef], dealt: Sequence[int], claim: Callable[[], Sequence[int]]) -> None:
        self._positions = {ref.key: position for position, ref in enumerate(refs)}
        self._mine = set(dealt)
        self._claim = claim
        self._reached = -1
        self._all_given = False

    def takes(self, ref: EpisodeRef) -> bool:
        """Whether an episode is this worker's; claims more where its position is after all that was claimed."""
        position = self._positions[ref.key]
        if position not in self._mine and position > self._reached and not self._all_given:
            given = self._claim()
            self._mine.update(given)
            self._all_given = not given
            self._reached = max(given, default=self._reached)
        return position in self._mine


class Worker:
    """Runs episodes of any run it is given, one :meth:`work` after another. ``name`` is unlike that of any other worker."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._shard: Path | None = None
        self._server: VLLMServer | None = None
        self._served: RunConfig | None = None
        self._turn = 0
        self._stopped_turn = 0
        self._finishing_turn = 0
        self._run: ResolvedRun | None = None
        self._runner: Runner | None = None
        self._progress = Progress(0)
        self._at_work = threading.Lock()
        self._ready = False
        self._news = threading.Condition()
        self._deliveries: dict[tuple[int, int], tuple[Sequence[int], bool]] = {}
        self._received = 0
        self._given: list[int] = []
        self._all_given = False

    def hello(self) -> tuple[str, str]:
        """The name of the machine, and the version of guieval that it has."""
        return platform.node(), __version__

    def work(self, job: Job, dealt: Sequence[int], known: bytes, *, turn: int = 1) -> Ended:
        """Run the episodes at the positions ``dealt``, and those that :meth:`give` gives, until it says there are no more.

        ``known`` are journal lines of what was answered of ``dealt`` before. What is answered is in the shard at once. Work
        that was stopped but has not ended yet, because its engine is just starting, is waited for. ``turn`` grows with every
        call.
        """
        with self._at_work:
            if self._shard is not None and self._shard.name != self._shard_name(job):
                self._shard = None  # of a run before, which a reader of this one must not take for its own
            with self._news:
                self._run, self._runner, self._progress = None, None, Progress(0)
                self._turn, self._received, self._given, self._all_given = turn, 0, [], False
                self._receive()
            return self._work_in_order(job, dealt, known)

    def _work_in_order(self, job: Job, dealt: Sequence[int], known: bytes) -> Ended:
        try:
            return self._work(job, dealt, known)
        except DataError as error:
            return Ended("bad-data", _cause_of(error))
        except AdapterFault as error:
            return Ended("fault", self._progress.fault or _cause_of(error))
        except GuievalError as error:
            return Ended("stopped") if self._stopped else Ended("failed", _cause_of(error))
        finally:
            self._ready = False
            if self._shard is not None and not has_records(self._shard):  # the driver may have looked for such shards before
                self.discard()

    def give(self, positions: Sequence[int], *, number: int, last: bool, turn: int = 1) -> None:
        """Run these episodes too, whose positions are after all given before; none follow when they are the ``last``.

        ``number`` counts from 0 in every ``turn``: calls may overtake each other, and each waits for those before it.
        """
        with self._news:
            if turn >= self._turn:
                self._deliveries[turn, number] = (positions, last)
            self._receive()
            self._news.notify_all()

    def _receive(self) -> None:
        """Take in what was given in this turn, as far as nothing before it is on its way still."""
        while (delivery := self._deliveries.pop((self._turn, self._received), None)) is not None:
            positions, self._all_given = delivery
            self._given += positions
            self._received += 1

    def _claim(self) -> list[int]:
        """Episodes to begin now; waits until some are given, and is empty when there are no more.

        Nothing else of the run moves meanwhile, so the driver sees to it that some are given before they are needed.
        """
        with self._news:
            self._news.wait_for(lambda: self._given or self._all_given or self._stopped or self._finishing)
            given, self._given = self._given, []
            return [] if self._finishing else given

    def _work(self, job: Job, dealt: Sequence[int], known: bytes) -> Ended:
        with contextlib.suppress(OSError):  # without it, relative paths of the configuration are reported as missing
            os.chdir(job.cwd)
        with self._news:
            if self._stopped:
                return Ended("stopped")
            shard = self._folder(job)
        config = parse(job.config, kept=job.config)
        if self._served is not None and self._served != config.having(mode=""):
            self.close()
        if self._server is None:
            self._server = open_server(config, shard / "vllm.log")
        run = resolve(config, self._server)
        refuse_unlike(Manifest.of(job.manifest), Manifest.of(manifest_of(run)), Path(job.directory))
        run.screenshots.skip()  # the driver has looked at them
        refs = dealt_first(run.selection)
        run = dataclasses.replace(run, selection=dataclasses.replace(run.selection, refs=refs))
        if self._server is not None and self._served is None:
            self._server.start()
            self._served = config.having(mode="")
        claims = _Claims(refs, dealt, self._claim)
        runner = Runner(run, shard, on_progress=self._see, halt=self._ends, takes=claims.takes)
        with self._news:
            if self._stopped:
                return Ended("stopped")
            if not is_run(shard):
                runner.begin()
        _write_down(shard, known)
        self._run, self._runner = run, runner
        if self._stopped:
            return Ended("stopped")
        outcome = runner.execute(resume=True)
        if outcome.gave_up:
            example = next((failures.example for failures in outcome.failures.values()), "nobody answers")
            return Ended("gave-up", f"too many requests in a row were not answered, first: {example}")
        return Ended("stopped" if outcome.interrupted or outcome.halted else "done")

    def _see(self, progress: Progress) -> None:
        """The runner calls this first when its engine is ready."""
        self._progress = progress
        self._ready = True

    def _ends(self, progress: Progress) -> str | None:
        return "no more is to be begun" if self._finishing else None

    def _shard_name(self, job: Job) -> str:
        return f"{job.session}-{self.name}"

    def _folder(self, job: Job) -> Path:
        """The shard's folder: in the run directory where that can be written from here, else in one for temporary files."""
        name = self._shard_name(job)
        if self._shard is not None:
            return self._shard
        shard = Path(job.directory) / SHARDS / name
        try:
            shard.mkdir(parents=True, exist_ok=True)
        except OSError:
            shard = Path(tempfile.mkdtemp(prefix="guieval-")) / name
            shard.mkdir()
        self._shard = shard
        return shard

    def read(self, start: int, patience: float, *, turn: int = 1) -> Reading:
        """The content of the shard from byte ``start`` on; ``patience`` seconds later where there is no hurry to give more.

        Nothing before the work of ``turn`` has begun, since the shard is that of a turn before.
        """
        deadline = time.monotonic() + patience
        while time.monotonic() < deadline and not (self._turn == turn and self._wants):
            time.sleep(_POLL)
        if self._turn != turn:
            return Reading(start, b"", False)
        run = self._run
        if run is None:
            return Reading(start, self._lines(start), self._wants, self._progress.in_flight)
        setup, patches = (engine.setup() if isinstance(engine, ReportsSetup) else None for engine in (run.engine, run.thoughts))
        in_flight, servers = self._progress.in_flight, tuple(run.endpoints)
        return Reading(start, self._lines(start), self._wants, in_flight, servers, setup, run.waiting, patches)

    @property
    def _wants(self) -> bool:
        return self._ready and not self._all_given and len(self._given) < FEW

    def _lines(self, start: int) -> bytes:
        if self._shard is None:
            return b""
        try:
            with open_file(self._shard / STEPS) as stream:
                stream.seek(start)
                data = stream.read(MOST_BYTES)
                if b"\n" not in data and len(data) == MOST_BYTES:
                    data += stream.readline()
        except OSError:
            return b""
        return data[: data.rfind(b"\n") + 1]

    @property
    def _stopped(self) -> bool:
        return self._turn <= self._stopped_turn

    @property
    def _finishing(self) -> bool:
        return self._turn <= self._finishing_turn

    def finish(self, turn: int = 1) -> int | None:
        """Begin no further step of this turn, and end its work once those in flight are answered; how many those are.

        ``None`` where none was begun, and the work is stopped instead.
        """
        with self._news:
            self._finishing_turn = turn
            self._news.notify_all()
        if not self._ready:  # no request was sent yet, and an engine may take minutes to start
            self.stop(turn)
            return None
        return self._progress.in_flight

    def stop(self, turn: int = 1) -> None:
        """End the work of this turn in order, with everything answered in the shard, or end it as soon as it begins.

        When it returns, the shard either exists or will not be made, so that the driver can remove it.
        """
        with self._news:
            self._stopped_turn = turn
            self._news.notify_all()
        if self._runner is not None and self._stopped:
            self._runner.stop()

    def discard(self) -> None:
        """Remove the shard, whose records are all merged."""
        if self._shard is not None:
            discard_shard(self._shard)
            with contextlib.suppress(OSError):  # a run directory that was made here for nothing but shards
                self._shard.parent.parent.rmdir()
            self._shard = None

    def close(self) -> None:
        """Take down the server, if this worker started one."""
        server, self._server, self._served = self._server, None, None
        if server is not None:
            server.stop()


def _write_down(shard: Path, known: bytes) -> None:
    """Put what was answered before into the shard, as if this worker had answered it."""
    if not known:
        return
    here = {record.model_dump_json() for record in RunFolder(shard).records}
    with Journal(shard) as journal:
        for line in known.splitlines():
            record = read_line(line)
            if record.model_dump_json() not in here:
                journal.append(record)


def _cause_of(error: GuievalError) -> str:
    """The error, without the advice on how to resume the shard, which users cannot do."""
    cause = error.__cause__
    return str(cause if isinstance(cause, GuievalError) else error)

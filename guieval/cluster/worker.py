"""One worker: runs the episodes it is given, with an engine of its own, into a journal of its own.

The class is plain Python; :mod:`guieval.cluster.driver` makes a Ray actor of it. Its methods are called from several threads:
one :meth:`Worker.work` at a time, and :meth:`Worker.read`, :meth:`Worker.give` and :meth:`Worker.stop` beside it.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import os
import platform
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from guieval import __version__
from guieval.benchmark import EpisodeRef
from guieval.cluster.hand_out import dealt_first
from guieval.cluster.merging import SHARDS, discard_shard
from guieval.config import parse
from guieval.engines import EndpointStats, TellsStats
from guieval.errors import DataError, GuievalError
from guieval.identity import refuse_unlike
from guieval.journal import STEPS, Journal, Records, is_run
from guieval.opening import open_run, open_server
from guieval.runner import Progress, Run
from guieval.scheduler import ActiveEpisode
from guieval.steps import StepRecord

if TYPE_CHECKING:
    from guieval.engines.vllm_server import VLLMServer

MOST_BYTES = 4 * 1024 * 1024
"""Of a shard, at most this is read at once, unless one line is longer."""
FEW = 2
"""A worker that holds fewer episodes that it has not begun wants more, so that it need not wait for them."""
_POLL = 0.02

How: TypeAlias = Literal["done", "stopped", "failed", "gave-up", "bad-data"]


@dataclass(frozen=True)
class Job:
    """What all workers of a run are told alike. Plain values, so that it travels to any machine.

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
    cannot be loaded, which no other worker could either.
    """

    how: How
    why: str = ""


@dataclass(frozen=True)
class Reading:
    """What a shard holds from byte ``start`` on, in whole lines, and whether the worker should be given more episodes.

    It should not before its engine is ready, lest one that starts slowly, or never, hold up what others could do.
    ``in_flight`` is how many steps are asked now, ``servers`` how those that are asked fared in this turn.
    """

    start: int
    data: bytes
    wants: bool
    in_flight: int = 0
    servers: tuple[EndpointStats, ...] = ()


@dataclass
class _Part(Run):
    """A run over the episodes that are claimed while it runs: all are listed, in the order in which they are given out."""

    dealt: frozenset[int] = frozenset()
    claim: Callable[[], Sequence[int]] = tuple
    _positions: dict[Any, int] = field(init=False, repr=False, default_factory=dict)
    _claimed: set[int] = field(init=False, repr=False, default_factory=set)
    _reached: int = field(init=False, repr=False, default=-1)
    _all_given: bool = field(init=False, repr=False, default=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        refs = dealt_first(self.selection)
        self.selection = dataclasses.replace(self.selection, refs=refs)
        self._positions = {ref.key: position for position, ref in enumerate(refs)}

    def _activate(self, ref: EpisodeRef, *more: Any) -> ActiveEpisode | None:
        return super()._activate(ref, *more) if self._is_mine(self._positions[ref.key]) else None

    def _is_mine(self, position: int) -> bool:
        if position in self.dealt:
            return True
        if position > self._reached and not self._all_given:  # beyond all that was claimed: time to claim more
            given = self.claim()
            self._claimed.update(given)
            self._all_given = not given
            self._reached = max(given, default=self._reached)
        return position in self._claimed


class Worker:
    """Runs episodes of any run it is given, one :meth:`work` after another. ``name`` is unlike that of any other worker."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._shard: Path | None = None
        self._server: VLLMServer | None = None
        self._served: Mapping[str, Any] | None = None
        self._main: tuple[asyncio.AbstractEventLoop, asyncio.Task[Any] | None] | None = None
        self._turn = 0
        self._stopped_turn = 0
        self._finishing_turn = 0
        self._run: Run | None = None
        self._progress = Progress(0)
        self._at_work = threading.Lock()
        self._ready = False
        self._news = threading.Condition()
        self._gifts: dict[tuple[int, int], tuple[Sequence[int], bool]] = {}
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
                self._run, self._progress = None, Progress(0)
                self._turn, self._received, self._given, self._all_given = turn, 0, [], False
                self._receive()
            return self._work_in_order(job, dealt, known)

    def _work_in_order(self, job: Job, dealt: Sequence[int], known: bytes) -> Ended:
        try:
            return self._work(job, dealt, known)
        except asyncio.CancelledError:
            return Ended("stopped")
        except DataError as error:
            return Ended("bad-data", _told(error))
        except GuievalError as error:
            return Ended("stopped") if self._stopped else Ended("failed", _told(error))
        finally:
            self._ready = False

    def give(self, positions: Sequence[int], *, number: int, last: bool, turn: int = 1) -> None:
        """Have these episodes run too, which lie behind all given before; none follow when they are the ``last``.

        ``number`` counts from 0 in every ``turn``: calls may overtake each other, and each waits for those before it.
        """
        with self._news:
            if turn >= self._turn:
                self._gifts[turn, number] = (positions, last)
            self._receive()
            self._news.notify_all()

    def _receive(self) -> None:
        """Take in what was given in this turn, as far as nothing before it is on its way still."""
        while (gift := self._gifts.pop((self._turn, self._received), None)) is not None:
            positions, self._all_given = gift
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
        with contextlib.suppress(OSError):  # without it, relative paths of the configuration are told to be missing
            os.chdir(job.cwd)
        shard = self._folder(job)
        config = parse(job.config)
        if self._served is not None and self._served != {**job.config, "mode": ""}:
            self.close()
        if self._server is None:
            self._server = open_server(config, shard / "vllm.log")
        run = _part_of(open_run(config, shard, self._server), frozenset(dealt), self._claim)
        refuse_unlike(job.manifest, run.manifest(), Path(job.directory))
        if self._server is not None and self._served is None:
            self._server.start()
            self._served = {**job.config, "mode": ""}
        if not is_run(shard):
            run.begin()
        _write_down(shard, known)
        run.before = self._watched(run)
        run.halt = lambda progress: "no more is to be begun" if self._finishing else None
        run.on_progress = self._see
        self._run = run
        try:
            outcome = run.execute(resume=True)
        finally:
            self._main = None
        if outcome.gave_up:
            example = next((each.example for each in outcome.failures.values()), "nobody answers")
            return Ended("gave-up", f"too many requests in a row were not answered, the first because {example}")
        return Ended("stopped" if outcome.interrupted or outcome.halted else "done")

    def _see(self, progress: Progress) -> None:
        self._progress = progress

    def _watched(self, run: Run) -> Callable[[], Any]:
        inner = run.before

        async def before() -> None:
            self._main = (asyncio.get_running_loop(), asyncio.current_task())
            if self._stopped:
                raise asyncio.CancelledError
            if inner is not None:
                await inner()
            self._ready = True

        return before

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
        """What the shard holds from byte ``start`` on; ``patience`` seconds later where there is no hurry to give more.

        Nothing before the work of ``turn`` has begun, since the shard is that of a turn before.
        """
        deadline = time.monotonic() + patience
        while time.monotonic() < deadline and not (self._turn == turn and self._wants):
            time.sleep(_POLL)
        if self._turn != turn:
            return Reading(start, b"", False)
        engine = self._run.engine if self._run is not None else None
        servers = tuple(engine.stats()) if isinstance(engine, TellsStats) else ()
        return Reading(start, self._lines(start), self._wants, self._progress.in_flight, servers)

    @property
    def _wants(self) -> bool:
        return self._ready and not self._all_given and len(self._given) < FEW

    def _lines(self, start: int) -> bytes:
        if self._shard is None:
            return b""
        try:
            with (self._shard / STEPS).open("rb") as stream:
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

    def finish(self, turn: int = 1) -> int:
        """Begin no further step of this turn, and end its work once those in flight are answered; how many those are."""
        with self._news:
            self._finishing_turn = turn
            self._news.notify_all()
        if not self._ready:  # nothing was asked yet, and an engine may take minutes to start
            self.stop(turn)
        return self._progress.in_flight

    def stop(self, turn: int = 1) -> None:
        """End the work of this turn in order, with everything answered in the shard, or end it as soon as it begins."""
        with self._news:
            self._stopped_turn = turn
            self._news.notify_all()
        if self._main is not None and self._stopped:
            loop, task = self._main
            if task is not None:
                with contextlib.suppress(RuntimeError):  # the loop is closed: it ended by itself
                    loop.call_soon_threadsafe(task.cancel)

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


def _part_of(run: Run, dealt: frozenset[int], claim: Callable[[], Sequence[int]]) -> _Part:
    given = {each.name: getattr(run, each.name) for each in dataclasses.fields(run) if each.init}
    return _Part(**given, dealt=dealt, claim=claim)


def _write_down(shard: Path, known: bytes) -> None:
    """Put what was answered before into the shard, as if this worker had answered it."""
    if not known:
        return
    here = {record.model_dump_json() for record in Records(shard)}
    with Journal(shard) as journal:
        for line in known.splitlines():
            record = StepRecord.model_validate_json(line)
            if record.model_dump_json() not in here:
                journal.append(record)


def _told(error: GuievalError) -> str:
    """What happened, without the advice on how to go on with the shard, which is not for users to go on with."""
    cause = error.__cause__
    return str(cause if isinstance(cause, GuievalError) else error)

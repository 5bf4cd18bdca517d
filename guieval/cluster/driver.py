"""The driver of a run on many machines: starts workers, gives them shards, merges their records, replaces lost workers.

Only the driver writes the run directory. It is sent every shard's journal as it grows, and reads the rest of it from the disk
if a worker is lost and its shard can be seen. What a lost worker had not finished becomes new shards for the others.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

from guieval.cluster.connection import connect, gpus_of_one, import_ray
from guieval.cluster.merging import Merger, discard_shard, divided, shard_folders
from guieval.cluster.server_numbers import named_for_all, over_all
from guieval.cluster.worker import Ended, News, Worker
from guieval.data.benchmark import EpisodeRef
from guieval.data.shipped import __version__
from guieval.engines import EndpointStats
from guieval.engines.concurrency import Slots
from guieval.engines.stop_signals import on_stop_signals
from guieval.errors import AdapterFault, DataError, EngineError, UsageError
from guieval.journal import Journal, RunFolder
from guieval.journal.directory import SHARDS
from guieval.journal.lines import read_line
from guieval.running.outcome import RunOutcome
from guieval.running.progress.counts import Load, RunProgress
from guieval.running.resolved import ResolvedRun
from guieval.running.resume.changes import open_journal
from guieval.running.resume.identity import manifest_of
from guieval.running.resume.setups import SessionSetups
from guieval.running.runner.answer_watch import AnswerWatch
from guieval.settings import RunConfig
from guieval.steps import StepRecord

STOP_SECONDS = 10.0
"""How long workers may take to stop in order, before they are ended; what they answered is in their shards all the same."""
WAIT_SECONDS = 30.0
"""Seconds without a worker after which a message names what the run waits for."""
MOST_SHARDS = 8
"""The most shards for each worker at the start: several, so that fast workers run more of them than slow ones."""
EPISODES_PER_SLOT = 4
"""Episodes that a shard has for each request slot, if there are several for each worker: slots are idle at a shard's end."""
_READS_PER_SECOND = 500
"""Reports that the driver takes in from its workers, which bounds how often each sends one."""


@dataclass
class _HeldWorker:
    number: int
    actor: Any
    urls: tuple[str, ...] = ()
    machine: str = ""
    state: Literal["starting", "idle", "working", "gone"] = "starting"
    pending: Any = None
    """What Ray gives next: the end of a start, or the reports on a shard."""
    turn: int = 0
    refs: list[EpisodeRef] = field(default_factory=list)
    """The episodes of its shard."""
    folder: Path = Path()
    known: int = 0
    """How many records the shard began with, and ``read`` how many lines of it were read."""
    read: int = 0
    news: News = field(default_factory=News)
    earlier_servers: list[EndpointStats] = field(default_factory=list)
    """Statistics of servers in its shards before."""

    @property
    def title(self) -> str:
        return f"worker {self.number}" + (f" on {self.machine}" if self.machine else "")

    @property
    def servers(self) -> list[EndpointStats]:
        return [*self.earlier_servers, *(named_for_all(stats, self.machine) for stats in self.news.servers)]


class RayCluster:
    """Workers on a Ray cluster, for one run or several after another. A context manager.

    ``config`` says where the cluster is, how many workers there are to be and what one needs. Entering raises
    :class:`UsageError` when Ray is missing, no cluster is found, or it is too small.
    """

    def __init__(self, config: RunConfig) -> None:
        self._config = config
        self._members: list[_HeldWorker] = []
        self._session: _Session | None = None
        self._connected_here = False
        self._ray: Any = None
        self.broken_off: RunOutcome | None = None
        """What the run came to that the error ended which :meth:`execute` raised."""

    def __enter__(self) -> RayCluster:
        self._ray = import_ray(alone=self._config.cluster.cluster_address == "local")
        self._connected_here = connect(self._ray, self._config.cluster.cluster_address)
        try:
            self._start()
        except BaseException:
            self._leave()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        closing = [member.actor.close.remote() for member in self._members if member.state in ("idle", "working")]
        with contextlib.suppress(Exception):  # whatever cannot end in order any more is ended
            self._ray.wait(closing, num_returns=max(1, len(closing)), timeout=2 * STOP_SECONDS)
        for member in self._members:
            with contextlib.suppress(Exception):
                self._ray.kill(member.actor)
        self._leave()

    def execute(
        self,
        run: ResolvedRun,
        directory: Path,
        *,
        on_progress: Callable[[RunProgress], None] = lambda progress: None,
        halt: Callable[[RunProgress], str | None] = lambda progress: None,
    ) -> RunOutcome:
        """Do what is left of a run that was begun in ``directory``, to the end, to Ctrl-C, or until no worker is left.

        The callbacks are those of :class:`guieval.running.runner.Runner`. Shards of a killed driver are merged before
        (:func:`guieval.cluster.absorb_shards`).

        Raises :class:`UsageError` (unlike resume), :class:`guieval.errors.JournalError` (the directory is held or full),
        :class:`DataError` (an episode cannot be loaded), :class:`AdapterFault`, and :class:`EngineError` when no worker could
        do anything at all.
        """
        self.broken_off = None
        with open_journal(run, directory, resume=True) as journal:
            session = self._session = _Session(self._ray, self._members, run, journal, on_progress, halt)
            with on_stop_signals(session.interrupt):
                session.drive()
        session.discard_shards()
        outcome = session.outcome()
        if (error := session.error) is not None:
            nothing = isinstance(error, EngineError)
            self.broken_off = None if nothing else outcome
            again = f"guieval run --resume {directory}{' --accept-changes' * isinstance(error, AdapterFault)}"
            kept = "every answer before is kept, and " * (not nothing)
            raise type(error)(f"{error}; {kept}`{again}` continues from there")
        return outcome

    def stop(self) -> None:
        """Stop the run at work in order, as Ctrl-C does; may be called from any thread."""
        if self._session is not None:
            self._session.interrupt()

    def _leave(self) -> None:
        if self._connected_here:
            self._ray.shutdown()

    def _start(self) -> None:
        has = self._ray.cluster_resources()
        nodes = sum(node["Alive"] and node["Resources"].get("CPU", 0) >= 1 for node in self._ray.nodes())
        gpus = gpus_of_one(self._config) if has.get("GPU", 0) else 0
        room = {"CPUs": int(has.get("CPU", 0)), **({"GPUs": int(has["GPU"] // gpus)} if gpus else {})}
        count = self._config.cluster.workers or (room["GPUs"] if gpus else nodes)
        for name, fit in room.items():
            if count > fit or not fit:
                raise UsageError(
                    f"{max(1, count)} workers do not fit into this Ray cluster: its {name} suffice for {fit}; "
                    "lower --workers, or add machines"
                )
        urls = self._config.server.base_urls
        make = self._ray.remote(Worker).options(num_cpus=1, num_gpus=gpus, max_concurrency=8, scheduling_strategy="SPREAD")
        for number in range(count):
            own = urls[number::count] if len(urls) > count else urls[number % len(urls) :][:1] if urls else ()
            self._members.append(_HeldWorker(number, make.remote(f"{number:04d}"), own))


class _Session:
    def __init__(
        self,
        ray: Any,
        members: list[_HeldWorker],
        run: ResolvedRun,
        journal: Journal,
        on_progress: Callable[[RunProgress], None],
        halt: Callable[[RunProgress], str | None],
    ) -> None:
        self._ray = ray
        self._run = run
        self._directory = journal.directory
        self._on_progress = on_progress
        self._halt = halt
        self._setups = SessionSetups(run, journal)
        self._setups.confirm()
        self._merger = Merger(run, journal)
        self._watch = AnswerWatch(run.model, journal)
        self._interrupted = self._ending = False
        self._bad_data: str | None = None
        self._fault: str | None = None
        self._progress = self._merger.progress
        self._progress.load = self._load
        if (damage := self._merger.answered.damage) is not None:
            self._progress.warnings.append(damage)
        # unlike every other session's, so that a worker of a session that was killed cannot write into a shard of this one
        self._name = f"{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(3)}"
        self._members = [member for member in members if member.state != "gone"]
        left = self._merger.left(run.selection.refs)
        workers = max(1, len(self._members))
        fit = len(left) // (EPISODES_PER_SLOT * Slots(run.answering.concurrency).most * workers)
        self._queue = divided(left, run.plan, workers * max(1, min(MOST_SHARDS, fit)))
        """The shards that no worker has."""
        self._started = time.monotonic()
        self._waiting_shown = False
        manifest = manifest_of(run)
        for member in self._members:
            member.state, member.earlier_servers, member.news = "starting", [], News()
            config = run.config.having(base_urls=member.urls) if member.urls else run.config
            what = __version__, config.model_dump(mode="json"), manifest
            member.pending = member.actor.begin.remote(*what, str(self._directory.resolve()), os.getcwd())

    def interrupt(self) -> None:
        """Stop in order, as soon as the driver sees it."""
        self._interrupted = True

    def drive(self) -> None:
        """Give out shards and take in records, until no shard or no worker is left."""
        self._on_progress(self._progress)
        try:
            while not self._interrupted and self._bad_data is None and self._goes_on():
                if self._progress.halted is None and (why := self._progress.fault or self._fault or self._halt(self._progress)):
                    self._progress.halted = why
                    self._stop(at_once=False)  # the answers to the steps in flight are paid for
                self._tick()
        finally:
            self._stop_all()
        if not self._interrupted:
            self._progress.warnings += self._watch.close()

    @property
    def error(self) -> DataError | AdapterFault | EngineError | None:
        """The error that stopped the run; :class:`EngineError` if there is no record, and no worker."""
        if self._bad_data is not None:
            return DataError(self._bad_data)
        if (fault := self._progress.fault or self._fault) is not None:
            return AdapterFault(f"the adapter is at fault: {fault}")
        if self._left_alone and not self._interrupted and not len(self._merger.answered.ledger):
            return EngineError(f"no worker could start: {(self._progress.warnings or ['all are lost'])[-1]}")
        return None

    def outcome(self) -> RunOutcome:
        return RunOutcome(
            self._run,
            self._directory,
            self._merger.answered.ledger,
            replace(self._progress, load=Load),  # which would keep the session
            interrupted=self._interrupted,
            gave_up=self._left_alone and not self._interrupted,
            endpoints=self._servers(),
        )

    def discard_shards(self) -> None:
        """Remove the shards, all merged, once the journal is on the disk."""
        discarding = [member.actor.discard.remote() for member in self._members if member.state == "idle"]
        with contextlib.suppress(Exception):
            self._ray.wait(discarding, num_returns=max(1, len(discarding)), timeout=STOP_SECONDS)
        for folder in shard_folders(self._directory):
            discard_shard(folder)

    @property
    def _left_alone(self) -> bool:
        return bool(self._queue) and all(member.state == "gone" for member in self._members)

    @property
    def _working(self) -> list[_HeldWorker]:
        return [member for member in self._members if member.state == "working"]

    def _servers(self) -> list[EndpointStats]:
        return over_all(stats for member in self._members for stats in member.servers)

    def _load(self) -> Load:
        """Which episodes a worker has begun only it knows, so none count as ready."""
        waits = [member.news.wait for member in self._working if member.news.wait is not None]
        return Load(0, sum(map(len, self._queue)), self._servers(), next(iter(waits), None))

    def _goes_on(self) -> bool:
        if self._queue and self._progress.halted is None:
            return any(member.state != "gone" for member in self._members)
        return bool(self._working)

    def _tick(self) -> None:
        for member in self._members:
            if member.state == "idle" and self._queue and self._progress.halted is None and not self._ending:
                self._put_to_work(member)
        waiting = {member.pending: member for member in self._members if member.pending is not None}
        ready, _ = self._ray.wait(list(waiting), num_returns=1, timeout=0.5)
        if ready:
            ready, _ = self._ray.wait(list(waiting), num_returns=len(waiting), timeout=0)
        for pending in ready:
            self._take_in(waiting[pending])
        self._progress.in_flight = sum(member.news.in_flight for member in self._working)
        self._show_waiting()

    def _take_in(self, member: _HeldWorker) -> None:
        exceptions = self._ray.exceptions
        starting = member.state == "starting"
        try:
            given = self._ray.get(member.pending if starting else next(member.pending))
        except exceptions.RayTaskError as error:  # a plug-in may raise anything
            cause = error.cause
            self._lose(member, f"failed: {type(cause).__name__}: {' '.join(str(cause).split())[:300]}")
        except exceptions.RayError as error:  # its process or its machine is gone, or does not answer
            why = str(error).split("\n")[-1].strip() if starting else ""  # the last line is what its constructor raised
            self._lose(member, f"cannot start: {why}" if why else "is lost")
        else:
            if starting:
                member.machine, ended = given
                self._end(member, ended or Ended("done"))
            else:
                self._read(member, given)

    def _put_to_work(self, member: _HeldWorker) -> None:
        member.refs = self._queue.pop(0)
        known = self._merger.begin(member.refs)
        member.turn += 1
        member.earlier_servers, member.news = over_all(member.servers), News()
        member.known, member.read, member.state = len(known), 0, "working"
        name = f"{self._name}-{member.number:04d}-{member.turn}"
        member.folder = self._directory / SHARDS / name
        work = member.actor.work.options(num_returns="streaming")
        patience = max(0.2, len(self._members) / _READS_PER_SECOND)
        member.pending = work.remote(member.turn, name, [ref.key for ref in member.refs], known, patience)

    def _read(self, member: _HeldWorker, news: News) -> None:
        resumed = self._progress.resumed > 0
        if news.setup is not None and news.setup != member.news.setup:
            self._progress.warnings += self._setups.note(news.setup, resumed=resumed)
        if news.patch_setup is not None and news.patch_setup != member.news.patch_setup:
            self._progress.warnings += self._setups.note_patches(news.patch_setup, resumed=resumed)
        member.news = replace(news, data=b"")
        lines = news.data.splitlines()
        self._take(map(read_line, lines[max(0, member.known - member.read) :]))
        member.read += len(lines)
        if news.ended is not None:
            self._end(member, news.ended)

    def _take(self, added: Iterable[StepRecord]) -> None:
        for record in added:
            self._merger.add(record)
            self._progress.warnings += self._setups.note_replies(record, resumed=False)
            self._progress.warnings += self._watch.add(record)
        self._on_progress(self._progress)

    def _end(self, member: _HeldWorker, ended: Ended) -> None:
        if ended.how in ("failed", "gave-up"):
            self._lose(member, f"stopped: {ended.why}")
            return
        member.state, member.pending, member.refs = "idle", None, []
        if ended.how == "bad-data":
            self._bad_data = ended.why
        elif ended.how == "fault":
            self._fault = ended.why

    def _lose(self, member: _HeldWorker, why: str) -> None:
        """Go on without a worker: keep what it answered, and make shards for others of the rest of what it had."""
        working, member.state, member.pending = member.state == "working", "gone", None
        with contextlib.suppress(Exception):
            self._ray.kill(member.actor)
        if working:
            self._take(islice(RunFolder(member.folder).records, max(member.known, member.read), None))
        again = self._merger.left(member.refs)
        others = sum(other.state != "gone" for other in self._members)
        self._queue += divided(again, self._run.plan, max(1, others))
        rest = f"; {len(again):,} episodes go to the other {others}" if again and others and not self._ending else ""
        self._progress.warnings.append(f"{member.title} {why}{rest}")
        self._on_progress(self._progress)

    def _stop(self, *, at_once: bool) -> None:
        for member in self._working:
            member.actor.stop.remote(member.turn, at_once=at_once)

    def _stop_all(self) -> None:
        """Let every worker at work stop, and merge what it has."""
        self._ending = True
        self._stop(at_once=True)
        deadline = time.monotonic() + STOP_SECONDS
        while self._working and time.monotonic() < deadline:
            self._tick()
        for member in self._working:  # its shard stays if it cannot be seen
            self._lose(member, "does not stop")
        self._progress.in_flight = 0

    def _show_waiting(self) -> None:
        late = time.monotonic() - self._started > WAIT_SECONDS
        if late and not self._waiting_shown and all(member.state == "starting" for member in self._members):
            self._waiting_shown = True
            self._progress.warnings.append(f"no worker has started after {WAIT_SECONDS:.0f} s; `ray status` shows what is free")
            self._on_progress(self._progress)

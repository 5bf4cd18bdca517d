"""The driver of a run on many machines: starts workers, gives out episodes, merges their records, handles lost workers.

Only the driver writes the run directory. It reads every worker's shard through Ray as it grows, and from the disk where a
worker is lost and its shard can be seen. What a lost worker had not finished is dealt to others as soon as one is free.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
import os
import secrets
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

from guieval.data.benchmark import EpisodeRef
from guieval.data.shipped import __version__
from guieval.engines import EndpointStats
from guieval.errors import AdapterFault, DataError, EngineError, UsageError
from guieval.journal import Journal, RunFolder
from guieval.journal.run_files import Manifest
from guieval.journal.setup import Setup
from guieval.running.cluster.connection import connect, gpus_of_one, import_ray
from guieval.running.cluster.merging import SHARDS, Merger, Shard, discard_shard, empty_shards, shard_folders
from guieval.running.cluster.server_numbers import named_for_all, over_all
from guieval.running.cluster.worker import Ended, HandOut, Job, Reading, Worker, dealt_first
from guieval.running.outcome import RunOutcome
from guieval.running.progress.counts import Load, Progress
from guieval.running.resolved import ResolvedRun
from guieval.running.resume.changes import accepted_changes, reference_types, with_changes
from guieval.running.resume.identity import manifest_of
from guieval.running.resume.setups import SessionSetups
from guieval.running.runner.answer_watch import AnswerWatch
from guieval.running.stop_signals import on_stop_signals
from guieval.settings import RunConfig
from guieval.steps import StepRecord

STOP_SECONDS = 10.0
"""How long workers may take to stop in order, before they are ended; what they answered is in their shards all the same."""
WAIT_SECONDS = 30.0
"""Seconds without a worker after which a message names what the run waits for."""
_READS_PER_SECOND = 500
"""Answers that the driver takes in from its workers, which bounds how often each is polled."""

State = Literal["starting", "working", "idle", "gone"]


@dataclass
class _Member:
    number: int
    name: str
    actor: Any
    urls: tuple[str, ...] = ()
    machine: str = ""
    state: State = "starting"
    turn: int = 0
    greeting: Any = None
    working: Any = None
    reading: Any = None
    held: list[int] = field(default_factory=list)
    deliveries: int = 0
    all_given: bool = False
    shard: Shard = field(default_factory=dict)
    read: int = 0
    has_shard: bool = False
    in_flight: int = 0
    wait: str | None = None
    servers: tuple[EndpointStats, ...] = ()
    """As they fared in this turn, and in ``earlier_servers`` in those before."""
    earlier_servers: list[EndpointStats] = field(default_factory=list)

    @property
    def title(self) -> str:
        return f"worker {self.number}" + (f" on {self.machine}" if self.machine else "")


class Cluster:
    """Workers on a Ray cluster, for one run or several after another. A context manager.

    ``config`` says where the cluster is, how many workers there are to be and what one needs. Entering raises
    :class:`UsageError` when Ray is missing, no cluster is found, or it is too small.
    """

    def __init__(self, config: RunConfig) -> None:
        self._config = config
        self._members: list[_Member] = []
        self._session: _Session | None = None
        self._connected_here = False
        self._ray: Any = None
        self.broken_off: RunOutcome | None = None
        """What the run came to that the error ended which :meth:`execute` raised."""

    def __enter__(self) -> Cluster:
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
        on_progress: Callable[[Progress], None] = lambda progress: None,
        halt: Callable[[Progress], str | None] = lambda progress: None,
    ) -> RunOutcome:
        """Do what is left of a run that was begun in ``directory``, to the end, to Ctrl-C, or until no worker is left.

        The callbacks are those of :class:`guieval.running.runner.Runner`.

        Raises :class:`UsageError` (unlike resume), :class:`guieval.errors.JournalError` (the directory is held or full),
        :class:`DataError` (an episode cannot be loaded), :class:`AdapterFault`, and :class:`EngineError` when no worker could
        do anything at all.
        """
        self.broken_off = None
        manifest = manifest_of(run)
        changes = accepted_changes(run, directory, manifest)
        with Journal(directory) as journal:
            if changes:
                journal.amend(with_changes(RunFolder(directory).manifest, Manifest.of(manifest), changes))
            journal.start(None, run.plan, run.selection.refs, reference_types(run, directory))
            setups = SessionSetups(run, journal)
            setups.confirm()
            session = _Session(self._ray, self._members, run, journal, manifest, setups, on_progress, halt)
            self._session = session
            with on_stop_signals(session.interrupt):
                session.drive()
        session.discard_shards()
        outcome = session.outcome()
        if session.fault is not None:
            self.broken_off = outcome
            kept = f"every answer before is kept, and {_resume(directory, ' --accept-changes')}"
            raise AdapterFault(f"the adapter is at fault: {session.fault}; {kept}")
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
        make = self._ray.remote(Worker)
        for number in range(count):
            name = f"{number:04d}"
            actor = make.options(num_cpus=1, num_gpus=gpus, max_concurrency=8, scheduling_strategy="SPREAD").remote(name)
            own = urls[number::count] if len(urls) > count else urls[number % len(urls) :][:1] if urls else ()
            self._members.append(_Member(number, name, actor, own, greeting=actor.hello.remote()))


class _Session:
    def __init__(
        self,
        ray: Any,
        members: list[_Member],
        run: ResolvedRun,
        journal: Journal,
        manifest: dict[str, Any],
        setups: SessionSetups,
        on_progress: Callable[[Progress], None],
        halt: Callable[[Progress], str | None],
    ) -> None:
        self._ray = ray
        self._members = members
        self._run = run
        self._directory = journal.directory
        self._setups = setups
        self._on_progress = on_progress
        self._halt = halt
        self._known: list[Setup] = []
        """Set-ups of workers."""
        self._merger = Merger(run, journal)
        self._watch = AnswerWatch(run.model, journal.directory)
        self._interrupted = False
        self._bad_data: str | None = None
        self.fault: str | None = None
        """The fault of the adapter that stopped the run."""
        self._started = time.monotonic()
        self._waiting_shown = False
        self._merged: list[Path] = []
        # unlike every other session's, so that a worker of a session that was killed cannot write into a shard of this one
        name = f"{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(3)}"
        self._job = Job(run.config.model_dump(mode="json"), manifest, str(self._directory.resolve()), os.getcwd(), name)
        self._progress = self._merger.progress
        if self._merger.damaged:
            self._progress.warnings.append(
                f"{len(self._merger.damaged):,} lines of the journal in {str(self._directory)!r} held no record, the first is "
                f"line {self._merger.damaged[0]}; their steps run again unless they are recorded elsewhere in it"
            )
        for folder in shard_folders(self._directory):  # of a session that was killed
            self._take(self._merger.add_folder(folder))
            self._merged.append(folder)
        self._progress.resumed = self._progress.done
        self._refs: list[EpisodeRef] = dealt_first(run.selection)
        open_ones = self._unfinished(range(len(self._refs)))
        self._leftovers = [position for position in open_ones if self._merger.begun(self._refs[position].key)]
        self._fresh = HandOut({*open_ones} - {*self._leftovers}, len(members))
        for member in members:
            member.shard, member.read, member.held, member.has_shard = {}, 0, [], False
            member.in_flight, member.servers, member.earlier_servers = 0, (), []
        self._progress.load = self._load

    def interrupt(self) -> None:
        """Stop in order, as soon as the driver sees it."""
        self._interrupted = True

    def drive(self) -> None:
        """Give out episodes and take in records, until no episode or no worker is left."""
        self._on_progress(self._progress)
        try:
            while not self._interrupted and self._bad_data is None and self._goes_on():
                self._progress.halted = self._progress.fault or self.fault or self._halt(self._progress)
                if self._progress.halted is not None:
                    self._finish_all()
                    break
                self._tick()
        finally:
            self._stop_all()
        self.fault = self._progress.fault or self.fault
        if self._bad_data is not None:
            raise DataError(f"{self._bad_data}; every answer before is kept, and {_resume(self._directory)}")
        if self._left_alone and not len(self._merger.ledger):
            raise EngineError(f"no worker could start: {self._progress.warnings[-1]}; then {_resume(self._directory)}")

    def outcome(self) -> RunOutcome:
        return RunOutcome.of(
            self._run,
            self._directory,
            self._merger.ledger,
            self._progress,
            interrupted=self._interrupted,
            gave_up=self._left_alone and not self._interrupted,
            endpoints=self._servers(),
        )

    def discard_shards(self) -> None:
        """Remove the shards that are merged, once the journal is on the disk."""
        discarding = [member.actor.discard.remote() for member in self._members if member.state == "idle" and member.has_shard]
        with contextlib.suppress(Exception):
            self._ray.wait(discarding, num_returns=max(1, len(discarding)), timeout=STOP_SECONDS)
        for folder in [*self._merged, *empty_shards(self._directory)]:
            discard_shard(folder)

    @property
    def _left_alone(self) -> bool:
        return all(member.state == "gone" for member in self._members) and bool(self._unfinished(range(len(self._refs))))

    def _unfinished(self, positions: Iterable[int]) -> list[int]:
        """Those of the positions whose episodes are not over."""
        return [position for position in positions if self._merger.unfinished([self._refs[position].key])]

    def _servers(self) -> list[EndpointStats]:
        return over_all(stats for member in self._members for stats in (*member.earlier_servers, *member.servers))

    def _load(self) -> Load:
        """Which episodes a worker has begun only it knows, so none count as ready."""
        waits = [member.wait for member in self._members if member.state == "working" and member.wait is not None]
        return Load(0, self._fresh.left + len(self._leftovers), self._servers(), next(iter(waits), None))

    def _goes_on(self) -> bool:
        if self._leftovers or self._fresh.left:
            return any(member.state != "gone" for member in self._members)
        # a worker may hold nothing that is left, while its engine is still starting
        return any(member.state == "working" and self._unfinished(member.held) for member in self._members)

    def _tick(self) -> None:
        for member in self._members:
            if member.state == "idle" and (self._leftovers or self._fresh.left) and self._progress.halted is None:
                self._put_to_work(member)
        waiting: dict[Any, tuple[_Member, str]] = {}
        for member in self._members:
            for kind in ("greeting", "reading", "working"):
                reference = getattr(member, kind)
                if reference is not None and member.state != "gone":
                    waiting[reference] = (member, kind)
        ready, _ = self._ray.wait(list(waiting), num_returns=1, timeout=0.5)
        if ready:
            ready, _ = self._ray.wait(list(waiting), num_returns=len(waiting), timeout=0)
        for reference in ready:
            member, kind = waiting[reference]
            if member.state != "gone":
                self._take_in(member, kind, reference)
        self._progress.in_flight = sum(member.in_flight for member in self._members)
        self._show_waiting()

    def _take_in(self, member: _Member, kind: str, reference: Any) -> None:
        exceptions = self._ray.exceptions
        try:
            value = self._ray.get(reference)
            if kind == "greeting":
                self._greeted(member, *value)
            elif kind == "reading":
                self._merge(member, value)
                self._give(member, value)
                self._read_on(member)
            else:
                self._ended(member, value)
        except exceptions.RayTaskError as error:  # a plug-in may raise anything
            cause = error.cause
            self._lose(member, f"failed: {type(cause).__name__}: {' '.join(str(cause).split())[:300]}")
        except exceptions.RayError as error:  # its process or its machine is gone, or does not answer
            why = (
                str(error).split("\n")[-1].strip() if kind == "greeting" else ""
            )  # there the last line is what its constructor raised
            self._lose(member, f"cannot start: {why}" if why else "is lost")

    def _greeted(self, member: _Member, machine: str, version: str) -> None:
        member.greeting, member.machine = None, machine
        if version != __version__:
            self._lose(member, f"has guieval {version}, but {__version__} is required")
            return
        member.state = "idle"

    def _put_to_work(self, member: _Member) -> None:
        takers = sum(other.state in ("starting", "idle") for other in self._members)
        share = math.ceil(len(self._leftovers) / max(1, takers))
        dealt, self._leftovers = self._leftovers[:share], self._leftovers[share:]
        known = b"".join(self._merger.known_lines(self._refs[position].key) for position in dealt)
        job = self._job
        if member.urls:
            own = self._run.config.having(base_urls=member.urls)
            job = dataclasses.replace(job, config=own.model_dump(mode="json"))
        member.turn += 1
        member.earlier_servers, member.servers, member.in_flight = over_all([*member.earlier_servers, *member.servers]), (), 0
        member.working = member.actor.work.remote(job, dealt, known, turn=member.turn)
        member.state, member.has_shard, member.held, member.all_given = "working", True, dealt, False
        member.deliveries = 0
        self._read_on(member)

    def _give(self, member: _Member, reading: Reading) -> None:
        if member.state != "working" or member.all_given or not reading.wants or self._progress.halted is not None:
            return
        given = self._fresh.take()
        member.held += given
        member.all_given = not self._fresh.left
        member.actor.give.remote(given, number=member.deliveries, last=member.all_given, turn=member.turn)
        member.deliveries += 1

    def _read_on(self, member: _Member) -> None:
        patience = max(0.2, len(self._members) / _READS_PER_SECOND)
        working = member.state == "working"
        member.reading = member.actor.read.remote(member.read, patience, turn=member.turn) if working else None

    def _merge(self, member: _Member, reading: Reading) -> None:
        if reading.servers:
            member.servers = tuple(named_for_all(stats, member.machine) for stats in reading.servers)
        if reading.setup is not None and reading.setup not in self._known:
            self._known.append(reading.setup)
            self._progress.warnings += self._setups.note(reading.setup, resumed=self._progress.resumed > 0)
        if reading.patch_setup is not None and reading.patch_setup not in self._known:
            self._known.append(reading.patch_setup)
            self._progress.warnings += self._setups.note_patches(reading.patch_setup, resumed=self._progress.resumed > 0)
        member.in_flight = reading.in_flight if member.state == "working" else 0
        member.wait = reading.wait
        if reading.data and reading.start == member.read:  # else asked before the worker ended, and read since
            self._take(self._merger.add(reading.data, member.shard))
            member.read += len(reading.data)

    def _take(self, added: Iterable[StepRecord]) -> None:
        for record in added:
            self._progress.warnings += self._setups.note_replies(record, resumed=False)
            self._progress.warnings += self._watch.add(record)
        self._on_progress(self._progress)

    def _ended(self, member: _Member, ended: Ended) -> None:
        self._drain(member)
        member.working = member.reading = None
        member.in_flight = 0
        if ended.how == "done":
            member.state, member.held = "idle", []
        elif ended.how == "bad-data":
            member.state, self._bad_data = "idle", ended.why
        elif ended.how in ("stopped", "fault"):
            member.state, self.fault = "idle", self.fault or ended.why or None
        else:
            self._lose(member, f"stopped: {ended.why}")

    def _drain(self, member: _Member) -> None:
        while True:
            reading = self._ray.get(member.actor.read.remote(member.read, 0.0, turn=member.turn), timeout=STOP_SECONDS)
            if not reading.data:
                return
            self._merge(member, reading)

    def _lose(self, member: _Member, why: str) -> None:
        """Go on without a worker: keep what it answered, and give the rest of what it held to others."""
        member.state, member.greeting, member.working, member.reading = "gone", None, None, None
        member.in_flight = 0
        with contextlib.suppress(Exception):
            self._ray.kill(member.actor)
        if member.has_shard:
            folder = self._directory / SHARDS / f"{self._job.session}-{member.name}"
            self._take(self._merger.add_folder(folder, start=member.read, shard=member.shard))
            self._merged.append(folder)
        again = self._unfinished(member.held)
        self._leftovers = sorted([*self._leftovers, *again])  # positions ascend from the longest episode
        others = sum(other.state != "gone" for other in self._members)
        rest = f"; {len(again):,} episodes go to the other {others}" if again and others else ""
        self._progress.warnings.append(f"{member.title} {why}{rest}")
        self._on_progress(self._progress)

    def _finish_all(self) -> None:
        """Begin no further step, and take in the answers to those in flight, which are paid for."""
        working = [member for member in self._members if member.state == "working"]
        asked = [member.actor.finish.remote(member.turn) for member in working]
        self._ray.wait(asked, num_returns=max(1, len(asked)), timeout=STOP_SECONDS)
        finishing = []
        for member, reference in zip(working, asked, strict=True):
            try:
                in_flight = self._ray.get(reference, timeout=0)
            except self._ray.exceptions.RayError:  # it is gone, or nearly: what it has is merged all the same
                in_flight = None
            if in_flight is not None:
                finishing.append(member)
            member.in_flight = in_flight or 0
        self._on_progress(self._progress)
        # until each has ended: one that had nothing in flight may have been about to begin a step
        while not self._interrupted and any(member.state == "working" for member in finishing):
            self._tick()

    def _stop_all(self) -> None:
        """Let every worker at work stop, and merge what it has; one that is still starting is there for the next run."""
        working = [member for member in self._members if member.state == "working"]
        deadline = time.monotonic() + STOP_SECONDS
        stopping = [member.actor.stop.remote(member.turn) for member in working]
        self._ray.wait(stopping, num_returns=max(1, len(stopping)), timeout=STOP_SECONDS)
        for member in working:
            try:
                self._ray.get(member.working, timeout=max(0.1, deadline - time.monotonic()))
                self._drain(member)
                member.state = "idle"
            except Exception:  # whatever it is that does not stop
                if self._unfinished(member.held):  # its shard stays, and a resume merges it
                    member.state = "gone"
                else:  # it has nothing that the journal lacks, and removes its shard itself if that has no records
                    member.state, member.greeting = "starting", member.actor.hello.remote()
                    self._merged.append(self._directory / SHARDS / f"{self._job.session}-{member.name}")
            member.working = member.reading = None
            member.in_flight = 0
        self._progress.in_flight = 0

    def _show_waiting(self) -> None:
        late = time.monotonic() - self._started > WAIT_SECONDS
        if late and not self._waiting_shown and all(member.state == "starting" for member in self._members):
            self._waiting_shown = True
            self._progress.warnings.append(f"no worker has started after {WAIT_SECONDS:.0f} s; `ray status` shows what is free")
            self._on_progress(self._progress)


def _resume(directory: Path, more: str = "") -> str:
    return f"`guieval run --resume {directory}{more}` continues from there"

"""Executes resolved runs one after the other: their servers or cluster, what is reported of them, and their stored metrics.

:func:`guieval.run` and the commands that run models all go through here.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple, Protocol, Self

from guieval.data.overlays import describe_overlay
from guieval.engines.stop_signals import signals_as_interrupt
from guieval.engines.vllm.server import VLLMServer
from guieval.errors import GuievalError
from guieval.journal import is_run
from guieval.journal.directory import SHARDS
from guieval.metrics import Summary
from guieval.metrics.of_run import Metrics, in_words
from guieval.running.costs import RunCost
from guieval.running.engine_choice import open_server
from guieval.running.kinds import RunKind, kind_of
from guieval.running.outcome import RunOutcome
from guieval.running.progress.display import Display
from guieval.running.resolve import resolve
from guieval.running.resolved import ResolvedRun
from guieval.running.resume.trust import remember
from guieval.running.runner.runner import Runner
from guieval.running.telemetry import Telemetry
from guieval.settings import RunConfig
from guieval.wings import offered

_LOG = logging.getLogger(__name__)


class AnyCluster(Protocol):
    """A run on several machines (:mod:`guieval.cluster`), with the methods of a :class:`Runner`."""

    broken_off: RunOutcome | None

    def __enter__(self) -> Self: ...

    def __exit__(self, *exception: Any) -> None: ...

    def execute(self, run: ResolvedRun, directory: Path, **callbacks: Any) -> RunOutcome: ...

    def stop(self) -> None: ...


class Job(NamedTuple):
    """A run, and the directory that it is done in."""

    run: ResolvedRun
    directory: Path


class Result(NamedTuple):
    """The result of one run: how it ended, its metrics, what it spent if it asks a model, and remarks on its trackers."""

    config: RunConfig
    outcome: RunOutcome
    summary: Summary
    spent: RunCost | None
    notes: list[str]

    def __repr__(self) -> str:
        """Which run this is, how far it came, and its first metric."""
        name, first = next(iter(self.summary.all_metrics.items()))
        return f"Result({str(self.directory)!r}, {self.mode}, {self.summary.state}: {name} {in_words(first)})"

    @property
    def kind(self) -> RunKind:
        return kind_of(self.config)

    @property
    def directory(self) -> Path:
        """The folder in which the journal and the manifest are."""
        return self.outcome.directory

    @property
    def mode(self) -> str:
        """The mode, with what tells it from the plain one."""
        return self.summary.mode

    def metrics(self) -> Metrics:
        """The metrics by name, as ``guieval.open_run`` gives them."""
        run, overlay = self.outcome.run, self.outcome.run.overlay
        added = () if overlay is None else (describe_overlay(overlay.file, overlay.sha256, overlay.steps),)
        label = "\n".join(filter(None, (self.mode, run.selection.title, run.protocol.name, run.foreign)))
        warnings = tuple(self.outcome.progress.warnings)
        return Metrics(run.protocol.name, run.selection.text, self.summary, warnings, added, label)

    @property
    def unread(self) -> bool:
        """Whether there are responses, and none of them could be read."""
        verdicts = self.summary.verdicts
        return bool(verdicts.unparseable) and not (verdicts.right or verdicts.wrong or verdicts.unsupported)

    @property
    def complete(self) -> bool:
        """Whether every step, with every sample, was answered."""
        # a further sample of a step may have failed though its first, which the summary is about, did not
        return self.summary.complete and not self.outcome.progress.by_stage


def repeated(results: Sequence[Result]) -> list[list[Result]]:
    """The results in groups: repeats together, any other run by itself."""
    groups: dict[Path, list[Result]] = {}
    for result in results:
        of_repeats = result.config.sampling.repeat is not None
        groups.setdefault(result.directory.parent if of_repeats else result.directory, []).append(result)
    return list(groups.values())


def resolve_jobs(configs: Sequence[tuple[RunConfig, Path]], *, root: Path, accept_changes: bool = False) -> list[Job]:
    """Resolve all runs before any work is done, so that a wrong name is found at once; :func:`asked_once` of them.

    ``root`` has all directories.
    """
    servers = open_servers([config for config, _ in configs], root / "vllm.log")
    jobs: list[Job] = []
    for (config, directory), server in zip(configs, servers, strict=True):
        like = jobs[0].run if jobs else None
        jobs.append(Job(resolve(config, server, like=like, accept_changes=accept_changes), directory))
    return asked_once(jobs)


def asked_once(jobs: Sequence[Job]) -> list[Job]:
    """The jobs without those that would send the requests of another one, which a sentence in the log names.

    Episodes of one step have no past, so modes over steps that differ in their history alone are one; a run that was begun is
    kept.
    """
    kept: list[Job] = []
    left_out: dict[str, dict[str, list[str]]] = {}
    for job in jobs:
        same = next((other for other in kept if _same_requests(job.run, other.run)), None)
        if same is None or is_run(job.directory):
            kept.append(job)
        else:
            modes = left_out.setdefault(job.run.benchmark.name, {}).setdefault(same.run.mode.label, [])
            modes += [job.run.mode.label] * (job.run.mode.label not in modes)
    for benchmark, by_mode in left_out.items():
        for mode, others in by_mode.items():
            _LOG.warning(
                "the episodes of %s have one step, so %s would send the requests of mode %s: they are sent once, in mode %s",
                benchmark,
                " and ".join(others),
                mode,
                mode,
            )
    return kept


def _same_requests(one: ResolvedRun, other: ResolvedRun) -> bool:
    alike = kind_of(one.config) is kind_of(other.config) and one.config.having(mode="") == other.config.having(mode="")
    return alike and one.mode != other.mode and all(ref.length == 1 for ref in one.selection.refs)


def open_servers(configs: Sequence[RunConfig], log: Path) -> list[VLLMServer | None]:
    """The server each run needs, ``None`` if it needs none; runs that differ in their mode alone share one.

    Raises :class:`guieval.errors.UsageError` when one could not be started. Nothing is started here.
    """
    made: list[tuple[RunConfig, VLLMServer | None]] = []
    servers: list[VLLMServer | None] = []
    for config in configs:
        alike = config.having(mode="")
        shared = next((server for other, server in made if other == alike), None)
        if shared is None:
            shared = open_server(config, log)
            made.append((alike, shared))
        servers.append(shared)
    return servers


class Executor:
    """Does one run after the other with the servers, or on the cluster, that they need. A context manager.

    ``config`` is the first run's. One server runs at a time, since the next one will need the GPUs of this one.
    Entering raises :class:`guieval.errors.UsageError` if the cluster cannot be used.
    """

    def __init__(self, config: RunConfig, display: Display, telemetry: Telemetry) -> None:
        self._display, self._telemetry = display, telemetry
        self._server: VLLMServer | None = None
        self._cluster: AnyCluster | None = offered("running", "cluster")(config) if config.cluster.kind == "ray" else None
        self._open = ExitStack()
        self._running: Runner | None = None
        self._stop_asked = threading.Event()

    def __enter__(self) -> Executor:
        with ExitStack() as stack:
            # a run stops in order by itself; this is for the times before, between and after runs
            stack.enter_context(signals_as_interrupt())
            stack.callback(self._end_server)
            if self._cluster is not None:
                stack.enter_context(self._cluster)
            self._open = stack.pop_all()
        return self

    def __exit__(self, *exception: object) -> None:
        self._open.close()

    def execute(self, job: Job) -> Iterator[Result]:
        """Do what is left of a run that was begun; its result.

        Raises what the run raises, after the result if the run had come to something.
        """
        run, directory = job
        if (directory / SHARDS).is_dir():  # of a cluster run that was killed
            offered("running", "shards")(run, directory)
        if self._cluster is None and run.server is not None and Runner(run, directory).left():  # else loaded for nothing
            self.use(run.server)
        working: Runner | AnyCluster | None = self._cluster
        try:
            with self._telemetry.following(run, directory) as callbacks:
                if self._cluster is not None:
                    outcome = self._cluster.execute(run, directory, on_progress=callbacks.on_progress, halt=callbacks.halt)
                else:
                    runner = Runner(run, directory, on_progress=callbacks.on_progress, halt=callbacks.halt)
                    self._running = working = runner
                    if self._stop_asked.is_set():
                        runner.stop()
                    outcome = runner.execute(resume=True)
        except GuievalError:
            if working is not None and working.broken_off is not None:
                yield self._result(working.broken_off)
            raise
        finally:
            self._running = None
        yield self._result(outcome)

    def use(self, server: VLLMServer) -> None:
        """Start ``server``, and end another one first; raises what :class:`VLLMServer` raises when it starts.

        One that has died since it was last used is started again.
        """
        if server is self._server and server.alive:
            return
        self._end_server()
        with self._display.starting(f"vLLM with {server.model.name}") as waited:
            server.on_wait = waited
            server.start()
        self._server = server

    def _end_server(self) -> None:
        server, self._server = self._server, None
        if server is None:
            return
        where, pid, kept = server.base_url, server.pid, server.settings.reuse and server.alive
        server.stop()
        if kept:
            self._display.note(f"server:   {where} is left running; `kill {pid}` ends it, {str(server.log)!r} is its log")

    def check(self) -> None:
        """Raise :class:`guieval.engines.vllm.server.ServerFailure` if the server in use is gone."""
        if self._server is not None:
            self._server.check_alive()

    def stop(self) -> None:
        """Stop the run in order, as Ctrl-C does, and begin no other; may be called from any thread."""
        self._stop_asked.set()
        for working in (self._cluster, self._running):
            if working is not None:
                working.stop()

    def _result(self, outcome: RunOutcome) -> Result:
        return Result(outcome.run.config, outcome, *self._telemetry.close(outcome))


def execute(
    jobs: Sequence[Job],
    *,
    fresh: bool,
    display: Display,
    first: Callable[[], None] = lambda: None,
    opened: Callable[[Executor], None] = lambda executor: None,
) -> Iterator[Result]:
    """Do runs one after the other; the result of each as it ends, until one was interrupted, gave up or halted.

    Directories that hold no run yet are begun all together, and must hold none if the runs are ``fresh``; ``first`` is
    called just before. Raises what ends a run, after the result of what was answered before.
    """
    telemetry = Telemetry([run for run, _ in jobs], display)
    with Executor(jobs[0].run.config, display, telemetry) as executor:
        opened(executor)
        remember([run.config for run, _ in jobs])
        first()  # only now: if there is no cluster, there is to be no directory either
        for run, directory in jobs:
            if fresh or not is_run(directory):
                Runner(run, directory).begin()  # all first here too: a resume must know of the runs that were not reached
        for job in jobs:
            for result in executor.execute(job):
                yield result
            if result.outcome.interrupted:
                return
            if not result.summary.complete:
                executor.check()
            if result.outcome.gave_up or result.outcome.progress.halted:
                return

"""Runs a model over a benchmark: asynchronous, no barrier, one journal line as soon as a step is answered.

One step's way: history from memory -> ``prepare_input`` -> screenshots read and resized in threads -> ``generate`` -> parsed
and scored (:mod:`guieval.replies`) -> journal -> the episode's next step becomes ready. Every failure of a step is named by
its stage and stored on its record; failures of the run itself (the journal cannot be written, the server does not know the
model) end it with the journal intact.

Where several samples of a step are asked for, each is a request of its own: so each has a seed of its own, is retried by
itself, and is as long as it is, which one request with ``n`` allows none of; a server with a prefix cache computes the prompt
once either way. What an episode remembers (SOEval, equations 4 and 5, knows one answer to a step), whether it goes on, and
every step metric are of the first sample. A step is done when all its samples are answered; a resume asks for all of them
again.
"""

from __future__ import annotations

import asyncio
import os
import platform
import signal
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from guieval import __version__
from guieval.asking import Asker
from guieval.audit import FrameWatch
from guieval.benchmark import ABCBenchmark, EpisodeRef
from guieval.config import RunConfig
from guieval.engines import EndpointStats, TellsStats
from guieval.engines.concurrency import AdaptiveConcurrency
from guieval.errors import DataError, EngineError, FatalEngineError, GuievalError, UsageError
from guieval.evaluation import ActionEvaluator, Protocol, get_protocol
from guieval.history import DrawnPast, recalled, reference_entry, reference_history
from guieval.identity import digest, refuse_unlike
from guieval.images import ImageLoader
from guieval.journal import SCHEMA, Journal, Records, has_records, is_run, journal_file, plan_rows, read_manifest
from guieval.metrics import RunTally
from guieval.models import ABCModel, Engine
from guieval.modes import Mode, get_mode
from guieval.patching import thought_fingerprint
from guieval.prompts import example_requests, fixed_thought_form
from guieval.run_settings import patch_policy, sample_parameters
from guieval.scheduler import ActiveEpisode, Scheduler
from guieval.selection import Choice, Selection, select
from guieval.steps import Episode, EpisodeKey, Plan, StepRecord, Verdict
from guieval.telemetry.costs import Tokens
from guieval.thoughts import FixedThoughts
from guieval.workers import Gate, Workers

GIVE_UP_AFTER = 100
"""Requests that may fail in a row, all tries of each, before a run stops: whoever answers is gone, and a resume is cheaper."""
WINDOW_PER_SLOT = 4
"""Episodes kept loaded per request slot: enough that the longest unfinished one is nearly always among them."""


@dataclass
class Failures:
    """How many steps failed at one stage, and the first one's message."""

    count: int
    example: str


@dataclass(frozen=True)
class Load:
    """What a run has before it at one moment: episodes with a step that could start, episodes not begun, and its servers."""

    ready: int = 0
    waiting: int = 0
    endpoints: Sequence[EndpointStats] = ()


@dataclass
class Progress:
    """Where a run stands, given to the caller's ``on_progress`` after every step."""

    total: int
    done: int = 0
    exact: int = 0
    failures: int = 0
    in_a_row: int = 0
    resumed: int = 0
    by_stage: dict[str, Failures] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    """What the user should know before the end: the answers are not what they seem."""
    verdicts: Counter[Verdict] = field(default_factory=Counter)
    """How the done steps ended, those of earlier sessions too."""
    tokens: Tokens = field(default_factory=Tokens)
    """What every answer in the journal took, those of earlier sessions too."""
    in_flight: int = 0
    shrinks: bool = False
    """Whether ``total`` may still fall, because episodes end at their first mismatch."""
    last_failure: tuple[str, str] | None = None
    """Stage and message of the last step that failed."""
    halted: str | None = None
    """Why no further step is begun."""
    load: Callable[[], Load] = Load
    """Tells what lies before the run now; may be called from another thread."""

    def count(self, record: StepRecord) -> None:
        """Take in one more record."""
        self.done += 1
        self.exact += record.sample.outcome.exact_match
        self.verdicts[record.sample.outcome.verdict] += 1
        self.tokens.add(record)
        if record.finished:
            self.in_a_row = 0
            return
        self.failures += 1
        error = next(sample.error for sample in record.samples if sample.outcome.verdict == "infrastructure_failure")
        self.in_a_row += error is not None and error.stage == "generate"
        if error is not None:
            self.last_failure = (error.stage, error.message)
            self.by_stage.setdefault(error.stage, Failures(0, error.message)).count += 1


@dataclass(frozen=True)
class RunOutcome:
    """How a run ended, and what failed in this session, by stage.

    ``interrupted``: the user stopped it. ``gave_up``: too many requests in a row were not answered. ``halted`` says why it
    began no further step, where it did not. ``tokens`` are those of every answer in the journal,
    ``endpoints`` the servers as they fared in this session.
    """

    directory: Path
    tally: RunTally
    selection: Selection
    protocol: str
    interrupted: bool
    gave_up: bool
    failures: Mapping[str, Failures]
    overlay: Mapping[str, Any] | None = None
    warnings: tuple[str, ...] = ()
    halted: str | None = None
    tokens: Tokens = field(default_factory=Tokens)
    endpoints: Sequence[EndpointStats] = ()

    @property
    def plan(self) -> Plan:
        """The steps that count of every episode."""
        return self.selection.plan


@dataclass(frozen=True)
class _Done:
    """A finished step of an earlier session: where its record lies, how it ended, and whether it matched."""

    offset: int
    exact: bool
    verdict: Verdict


@dataclass
class Run:
    """One model, one benchmark, one mode, one directory. :meth:`execute` may be called once.

    ``concurrency`` bounds the requests in flight; an adaptive one must be told by the engine how they fare.
    """

    config: RunConfig
    directory: Path
    benchmark: ABCBenchmark
    model: ABCModel
    engine: Engine
    concurrency: int | AdaptiveConcurrency
    on_progress: Callable[[Progress], None] = lambda progress: None
    before: Callable[[], Awaitable[object]] | None = None
    """Awaited before the first step, e.g. to find out the name of the served model; its failure ends the run."""
    give_up_after: int | None = GIVE_UP_AFTER
    halt: Callable[[Progress], str | None] = lambda progress: None
    """Asked before each step; once it gives a reason, no further step is begun, and those in flight are waited for."""
    overlay: Mapping[str, Any] | None = None
    """What the manifest says of the overlay that the benchmark wears, its ``sha256`` being part of the run's identity."""
    thoughts: Engine | None = None
    """Who writes the thoughts of off-policy patches."""
    fixed: FixedThoughts | None = None
    """The thoughts that the model is made to think; steps without one are left out. To be set before anything is asked."""
    mixture: DrawnPast | None = None
    """What a mixed history holds; the setting ``mix`` needs it. To be set before anything is asked."""
    broken_off: RunOutcome | None = field(init=False, default=None)
    """What the run had come to when :meth:`execute` raised an error that no further step could survive."""
    mode: Mode = field(init=False)
    protocol: Protocol = field(init=False)

    def __post_init__(self) -> None:
        self.mode = get_mode(self.config.mode).patched(patch_policy(self.config))
        if self.config.mix:
            self.mode = self.mode.mixed()
        if self.config.fixed_thoughts is not None:
            self.mode = self.mode.with_fixed_thoughts()
        self.protocol = get_protocol(self.config.protocol or self.benchmark.protocol)
        self._evaluator = ActionEvaluator(self.protocol)
        self.model.engine = self.engine
        self._watch = FrameWatch(self.model)
        self._sampling = sample_parameters(self.config, self.model.config)
        self._patched: Counter[EpisodeKey] = Counter()

    def execute(self, *, resume: bool) -> RunOutcome:
        """Run to the end, to the user's Ctrl-C, or to an error that no further step could survive.

        Raises :class:`UsageError` (unlike resume, empty plan), :class:`guieval.errors.JournalError` (the directory is held
        or full) and :class:`FatalEngineError` (wrong key, unknown model). What was answered before is in the journal.
        """
        with self._journal(resume=resume) as journal:
            tally, done, damaged, tokens = self._earlier()
            resumed = sum(len(steps) for steps in done.values())
            progress = Progress(sum(map(len, self._plan.values())), done=resumed, resumed=resumed, tokens=tokens)
            progress.shrinks = self.mode.stop == "first-mismatch"
            progress.verdicts.update(step.verdict for steps in done.values() for step in steps.values())
            progress.exact = sum(step.exact for steps in done.values() for step in steps.values())
            if damaged:
                lines = "1 line" if len(damaged) == 1 else f"{len(damaged):,} lines"
                progress.warnings.append(
                    f"{lines} of {str(journal_file(self.directory))!r} held no record, the first is line {damaged[0]}; "
                    "what was lost is asked anew"
                )
            try:
                stopped = asyncio.run(self._drive(journal, tally, done, progress))
            except (DataError, FatalEngineError) as error:
                if not resumed and not journal.appended:
                    raise
                self.broken_off = self._outcome(tally, progress)
                kept = f"{error}; every answer before is kept, and `guieval run --resume {self.directory}` goes on from there"
                raise type(error)(kept) from error
        return self._outcome(tally, progress, stopped=stopped)

    def left(self) -> bool:
        """Whether :meth:`execute` with ``resume`` would ask for any step; reads the journal, and changes nothing.

        Raises :class:`UsageError` where that would: there is no run, or it is another one.
        """
        self._check(self.manifest(), resume=True)
        _, done, _, _ = self._earlier()
        return self._has_work(done)

    def _outcome(self, tally: RunTally, progress: Progress, *, stopped: bool = False) -> RunOutcome:
        gave_up = self._gives_up(progress)
        return RunOutcome(
            self.directory,
            tally,
            self.selection,
            self.protocol.name,
            stopped and not gave_up,
            gave_up,
            progress.by_stage,
            self.overlay,
            tuple(progress.warnings),
            progress.halted,
            progress.tokens,
            self._endpoints(),
        )

    def begin(self) -> None:
        """Write down what the run will do, and nothing more, so that :meth:`execute` with ``resume`` may come at any time."""
        with self._journal(resume=False):
            pass

    @cached_property
    def selection(self) -> Selection:
        """What is to be run; :class:`UsageError` when the configuration asks for what the benchmark cannot give."""
        with _blaming(f"benchmark {self.benchmark.name!r} cannot be listed"):
            chosen = select(self.benchmark, Choice.of(self.config))
        return chosen if self.fixed is None else self.fixed.among(chosen)

    @property
    def _plan(self) -> Plan:
        return self.selection.plan

    @contextmanager
    def _journal(self, *, resume: bool) -> Iterator[Journal]:
        """The directory's one writer, once the directory is known to be fit for this run."""
        manifest = self.manifest()
        self._check(manifest, resume=resume)
        with Journal(self.directory, compact=self.config.compact) as journal:
            self._check(manifest, resume=resume)  # again: another process may have been quicker
            journal.start(None if resume else manifest, self._plan, self.selection.refs)
            yield journal

    def _check(self, manifest: Mapping[str, Any], *, resume: bool) -> None:
        where = str(self.directory)
        if is_run(self.directory):
            if not resume:
                raise UsageError(
                    f"{where!r} already holds a run; `guieval run --resume {where}` goes on with it, or give another --out"
                )
            refuse_unlike(read_manifest(self.directory), manifest, self.directory)
        elif resume:
            raise UsageError(f"there is nothing to resume: {where!r} holds no run")
        elif has_records(self.directory):
            raise UsageError(f"{where!r} holds records but no manifest that says of what run; give another --out")

    def manifest(self) -> dict[str, Any]:
        """What identifies this run, and what it ran with."""
        plan = self._plan
        worn = {} if self.overlay is None else {"overlay": dict(self.overlay)}
        if self.fixed is not None:
            worn["fixed_thoughts"] = {**self.fixed.to_json(), "form": digest(fixed_thought_form(self.model))}
        return {
            "schema": SCHEMA,
            "guieval": __version__,
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
            "python": platform.python_version(),
            "platform": platform.platform(),
            "config": self.config.model_dump(mode="json"),
            "model": self.model.config.model_dump(mode="json"),
            "benchmark": {
                "name": self.benchmark.name,
                "episodes": len(plan),
                "steps": sum(map(len, plan.values())),
                "fingerprint": digest(plan_rows(plan)),
            },
            "selection": self.selection.to_json(),
            **worn,
            **({"mixing": self._mixture.to_json()} if self.mode.history == "mixed" else {}),
            "prompts": {
                "fingerprint": digest(example_requests(self.model)),
                **({"thought": digest(thought_fingerprint())} if self.mode.patch.asks else {}),
            },
            "protocol": {"name": self.protocol.name, "fingerprint": digest(self.protocol.judgement())},
            "mode": self.mode.to_json(),
            "action_spaces": {"model": self.model.action_space.to_json(), "benchmark": self.benchmark.action_space.to_json()},
        }

    def _earlier(self) -> tuple[RunTally, dict[EpisodeKey, dict[int, _Done]], list[int], Tokens]:
        """What earlier sessions left in the journal: the records, the steps they finish, which lines hold none, and tokens."""
        records = Records(self.directory)
        tally = RunTally(self.mode, self.model.action_space, self.benchmark.action_space)
        done: dict[EpisodeKey, dict[int, _Done]] = {}
        tokens = Tokens()
        for offset, record in records.with_offsets():
            tally.add(record)
            tokens.add(record)
            task = record.task
            if record.finished and task.step_index in self._plan.get(task.episode_key, ()):
                outcome = record.sample.outcome
                done.setdefault(task.episode_key, {})[task.step_index] = _Done(offset, outcome.exact_match, outcome.verdict)
        return tally, done, records.damaged, tokens

    async def _drive(
        self,
        journal: Journal,
        tally: RunTally,
        done: Mapping[EpisodeKey, Mapping[int, _Done]],
        progress: Progress,
    ) -> bool:
        """Answer everything that is left; whether it was stopped before the end."""
        records = Records(self.directory)
        gate = Gate(self.concurrency)
        scheduler = Scheduler(
            self.selection.refs,
            lambda ref: self._activate(ref, done.get(ref.key, {}), records, progress),
            sequential=self.mode.sequential,
            window=WINDOW_PER_SLOT * gate.most,
            count=lambda ref: len(self._plan[ref.key]),
        )
        threads = ThreadPoolExecutor(min(4, (os.cpu_count() or 1) + 1), thread_name_prefix="images")
        asker = self._asker(threads, gate)
        changed = asyncio.Event()
        workers = Workers()
        driver = asyncio.current_task()
        stopped = False

        def stop() -> None:
            nonlocal stopped
            if not stopped and driver is not None:
                driver.cancel()
            stopped = True

        async def work() -> None:
            while not stopped and not scheduler.exhausted and not self._halted(progress):
                if workers.dismisses(gate.limit):
                    break
                taken = scheduler.take()
                if taken is None:
                    if scheduler.exhausted:  # what was waiting turned out to be done already
                        break
                    changed.clear()
                    await changed.wait()
                    continue
                active, index = taken
                progress.in_flight += 1
                record = await self._answer(asker, active.episode, index)
                progress.in_flight -= 1
                journal.append(record)
                tally.add(record)
                self._look(record, progress)
                self._settle(scheduler, active, record, progress)
                self.on_progress(progress)
                if self._gives_up(progress):
                    stop()
                changed.set()
                if not scheduler.exhausted and progress.halted is None:
                    workers.fill(gate.limit, work)
                await asyncio.sleep(0)  # an engine may answer without ever waiting; a signal must get through even so
            changed.set()

        progress.load = lambda: Load(scheduler.ready, scheduler.waiting, self._endpoints())
        restore = _on_signals(asyncio.get_running_loop(), stop)
        try:
            if self._has_work(done):
                await self._ready()
            self.on_progress(progress)
            workers.fill(gate.limit, work)
            await workers.done()
        except asyncio.CancelledError:
            if not stopped:
                raise
        finally:
            restore()
            await workers.cancel()
            await self.engine.close()
            if self.thoughts is not None:
                await self.thoughts.close()
            threads.shutdown(wait=False, cancel_futures=True)
        return stopped

    def _asker(self, threads: ThreadPoolExecutor, gate: Gate) -> Asker:
        root = self.benchmark.root
        return Asker(
            model=self.model,
            engine=self.engine,
            evaluator=self._evaluator,
            mode=self.mode,
            sampling=self._sampling,
            images=ImageLoader(root, threads, form=self.engine.images),
            gate=gate,
            thoughts=self.thoughts,
            thought_images=None if self.thoughts is None else ImageLoader(root, threads, form=self.thoughts.images),
            fixed=self.fixed,
        )

    def _look(self, record: StepRecord, progress: Progress) -> None:
        """Tell once when the answers so far fit another coordinate frame far better than the adapter's."""
        warning = self._watch.add(record.task, record.sample)
        if warning is not None:
            progress.warnings.append(f"{warning}: guieval audit {self.directory}")

    def _gives_up(self, progress: Progress) -> bool:
        return self.give_up_after is not None and progress.in_a_row >= self.give_up_after

    def _halted(self, progress: Progress) -> bool:
        progress.halted = progress.halted or self.halt(progress)
        return progress.halted is not None

    def _endpoints(self) -> Sequence[EndpointStats]:
        return self.engine.stats() if isinstance(self.engine, TellsStats) else ()

    async def _ready(self) -> None:
        if self.before is not None:
            try:
                await self.before()
            except FatalEngineError:
                raise
            except EngineError as error:
                raise FatalEngineError(str(error), attempts=error.attempts) from None

    def _settle(self, scheduler: Scheduler, active: ActiveEpisode, record: StepRecord, progress: Progress) -> None:
        """Let an answered step have its consequences: what its episode remembers, and whether it goes on."""
        go_on = self._goes_on(record)
        if not go_on:
            progress.total -= len(active.pending)
        elif self.mode.sequential:
            self._remember(active.episode, record)
            self._patched[active.ref.key] += record.patch is not None
        if scheduler.finished(active, go_on=go_on):
            self.model.memory.forget(active.ref.key)
            self._patched.pop(active.ref.key, None)
        progress.count(record)

    def _activate(
        self, ref: EpisodeRef, done: Mapping[int, _Done], records: Records, progress: Progress
    ) -> ActiveEpisode | None:
        counted = self._plan[ref.key]
        kept = self._kept(ref, done)
        redone = [step for index, step in done.items() if index not in kept]
        progress.done -= len(redone)
        progress.resumed -= len(redone)
        progress.exact -= sum(step.exact for step in redone)
        progress.verdicts.subtract(step.verdict for step in redone)
        if self._is_over(ref, kept):
            progress.total -= len(counted) - len(kept)
            return None
        with _blaming(f"episode {ref.key} cannot be loaded"):
            try:
                episode = self.benchmark.load(ref)
            except DataError as error:
                raise DataError(f"{error}; a new run with --skip-damaged leaves such episodes out") from error
            if [ref.key, ref.length] != [episode.key, len(episode)]:
                raise DataError(
                    f"episode {ref.key} of {ref.length} steps is in the index of {self.benchmark.name!r}, "
                    f"but what it loads is {episode.key} of {len(episode)}"
                )
        if self.mode.sequential:
            for step in kept.values():
                self._remember(episode, records.at(step.offset))
            self._patched[ref.key] = sum(not step.exact for step in kept.values())
        return ActiveEpisode(ref, episode, [index for index in counted if index not in kept])

    def _kept(self, ref: EpisodeRef, done: Mapping[int, _Done]) -> dict[int, _Done]:
        """Of an episode's finished steps those that need not be redone."""
        return _unbroken(done, self._plan[ref.key]) if self.mode.sequential else dict(done)

    def _is_over(self, ref: EpisodeRef, kept: Mapping[int, _Done]) -> bool:
        ended = sum(not step.exact for step in kept.values()) > self.mode.mismatches
        return ended or len(kept) == len(self._plan[ref.key])

    def _has_work(self, done: Mapping[EpisodeKey, Mapping[int, _Done]]) -> bool:
        return not all(self._is_over(ref, self._kept(ref, done.get(ref.key, {}))) for ref in self.selection.refs)

    def _remember(self, episode: Episode, record: StepRecord) -> None:
        """Let later steps see this one, and the reference's side of steps before it that do not count and so were not asked."""
        index = record.task.step_index
        self._catch_up(episode, index)
        self.model.memory.remember(recalled(self.mode.history, episode.steps[index], record))

    def _catch_up(self, episode: Episode, index: int) -> None:
        known = len(self.model.memory.history(episode.key))
        for task in episode.steps[known:index]:
            self.model.memory.remember(reference_entry(task))

    def _goes_on(self, record: StepRecord) -> bool:
        """Whether the episode's next step may run.

        In a sequential mode a step that was never answered suspends its episode: going on with a made-up past would give
        the later steps a history that the resumed run would not give them.
        """
        if not self.mode.sequential:
            return True
        if not record.finished:
            return False
        return self.mode.stop == "never" or record.sample.outcome.exact_match or record.patch is not None

    async def _answer(self, asker: Asker, episode: Episode, index: int) -> StepRecord:
        task = episode.steps[index]
        if self.mode.sequential:
            self._catch_up(episode, index)
            past = self.model.memory.history(task.episode_key)
        elif self.mode.history == "mixed":
            past = self._mixture.history(episode.steps[:index])
        else:
            past = reference_history(episode.steps[:index])
        last = index == self._plan[task.episode_key][-1]
        return await asker.answer(task, past, patched=self._patched[task.episode_key], last=last)

    @property
    def _mixture(self) -> DrawnPast:
        if self.mixture is None:
            raise UsageError("a mixed history needs the answers to mix in: add --set mix_artifacts=RUN")
        return self.mixture


@contextmanager
def _blaming(what: str) -> Iterator[None]:
    """Turn whatever a loader raises against its contract into the :class:`DataError` it should have raised."""
    try:
        yield
    except GuievalError:
        raise
    except Exception as error:  # a loader may be anyone's code
        raise DataError(f"{what}: {type(error).__name__}: {error}") from error


def _unbroken(done: Mapping[int, _Done], counted: Iterable[int]) -> dict[int, _Done]:
    """The counted steps from an episode's first on whose answer came after the one to the step before.

    Behind a gap, or an answer that was given anew, the past was another one: those steps are to be redone.
    """
    kept: dict[int, _Done] = {}
    end = -1
    for index in counted:
        if index not in done or done[index].offset < end:
            break
        kept[index] = done[index]
        end = done[index].offset
    return kept


def _on_signals(loop: asyncio.AbstractEventLoop, stop: Callable[[], None]) -> Callable[[], None]:
    """Let Ctrl-C and SIGTERM stop the run in order; outside the main thread signals stay the caller's."""
    signals = (signal.SIGINT, signal.SIGTERM)
    on_sigterm = signal.getsignal(signal.SIGTERM)
    try:
        for number in signals:
            loop.add_signal_handler(number, stop)
    except (ValueError, RuntimeError):
        return lambda: None

    def restore() -> None:
        for number in signals:
            loop.remove_signal_handler(number)
        if on_sigterm is not None:  # the loop leaves the default behind, whatever the caller had
            signal.signal(signal.SIGTERM, on_sigterm)

    return restore

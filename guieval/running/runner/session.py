"""One session of a run: runs every step that is left, until all are answered, the user stops it, or a fatal error occurs."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace

from guieval.data.benchmark import EpisodeRef
from guieval.engines import Discovers, ReportsSetup
from guieval.engines.concurrency import Slots
from guieval.errors import AdapterFault, EngineError, FatalEngineError, JournalError
from guieval.journal import Journal
from guieval.journal.setup import Setup
from guieval.models import ABCModel, Engine, Request
from guieval.models.composition import Composition
from guieval.running.kinds import kind_of
from guieval.running.outcome import RunOutcome
from guieval.running.progress.counts import Load, RunProgress
from guieval.running.resolved import ResolvedRun
from guieval.running.resume.answered import EarlierRecords
from guieval.running.resume.setups import SessionSetups
from guieval.running.runner.answer_watch import AnswerWatch
from guieval.running.runner.image_cache import ImageLoader
from guieval.running.runner.scheduler import ActiveEpisode, Scheduler
from guieval.running.runner.stages import STAGES, Stages
from guieval.running.runner.step import Asker
from guieval.secrets import Redaction
from guieval.settings import key_variables
from guieval.steps import Record, StepKey, StepRecord

WINDOW_PER_SLOT = 4
"""Episodes kept loaded per request slot: enough that the longest unfinished one is nearly always among them."""


class Session:
    """The state of a run while it is executed. :meth:`drive` may be called once; see :class:`Runner` for the callbacks."""

    def __init__(
        self,
        run: ResolvedRun,
        journal: Journal,
        setups: SessionSetups,
        answered: EarlierRecords,
        progress: RunProgress,
        *,
        on_progress: Callable[[RunProgress], None],
        halt: Callable[[RunProgress], str | None],
    ) -> None:
        self._run = run
        self._journal = journal
        self._setups = setups
        self._patch_setup: Setup | None = None
        self._both = Setup(), Setup(), Setup()
        """The set-ups of a composition's planner and grounder, and what they come to."""
        self._first: StepKey | None = None
        """The step or task that is queried first, whose request the set-up describes."""
        self._first_noted = False
        self._answered = answered
        self._progress = progress
        self._on_progress = on_progress
        self._halt = halt
        self._watch = AnswerWatch(run.model, journal)
        self._slots = Slots(run.answering.concurrency)
        self._scheduler = Scheduler(
            run.selection.refs,
            self._activate,
            sequential=run.mode.sequential,
            window=WINDOW_PER_SLOT * self._slots.most,
            count=lambda ref: len(run.plan[ref.key]),
        )
        self._threads = ThreadPoolExecutor(min(4, (os.cpu_count() or 1) + 1), thread_name_prefix="images")
        self._asking = kind_of(run.config).asking(run, journal.directory, self._make_asker(), self._look)
        self._steps = asyncio.TaskGroup()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._driver: asyncio.Task[None] | None = None
        self._stop_asked = False
        self._stopped = False
        progress.load = lambda: Load(self._scheduler.ready, self._scheduler.waiting, run.endpoints, run.waiting)

    async def drive(self) -> None:
        """Answer everything that is left, or stop before the end."""
        self._loop, self._driver = asyncio.get_running_loop(), asyncio.current_task()
        self._journal.on_failure(self.stop_soon)
        try:
            if self._stop_asked:
                self._stop()
            if self._answered.has_work():
                await self._prepare()
            self._on_progress(self._progress)
            async with self._steps:
                self._begin_steps()
                await asyncio.sleep(0)  # a stop that was asked for before is raised here
        except BaseExceptionGroup as failures:  # of the steps that were under way; the first is what ended the run
            raise failures.exceptions[0] from None
        except asyncio.CancelledError:
            if not self._stopped:
                raise
        else:
            if warnings := self._watch.close():
                self._progress.warnings += warnings
                self._on_progress(self._progress)
        finally:
            self._journal.on_failure(lambda: None)
            for engine in filter(None, (self._run.engine, self._run.answering.grounder, self._run.thoughts)):
                await engine.close()
            self._threads.shutdown(wait=False, cancel_futures=True)
            self._asking.close()
        self._journal.check()
        if self._progress.fault is not None:
            raise AdapterFault(f"the adapter is at fault: {self._progress.fault}")

    def stop_soon(self) -> None:
        """Stop in order; may be called from any thread and from a signal handler, also before :meth:`drive`."""
        self._stop_asked = True
        if self._loop is not None:
            with suppress(RuntimeError):  # the loop is closed: the session has ended by itself
                self._loop.call_soon_threadsafe(self._stop)

    def outcome(self) -> RunOutcome:
        return RunOutcome(
            self._run,
            self._journal.directory,
            self._answered.ledger,
            replace(self._progress, load=Load),  # which would keep the session
            interrupted=(self._stopped or self._stop_asked) and not self._gives_up,
            gave_up=self._gives_up,
            endpoints=self._run.endpoints,
        )

    def _stop(self) -> None:
        if not self._stopped and self._driver is not None:
            self._driver.cancel()
        self._stopped = True

    async def _prepare(self) -> None:
        if self._run.answering.prepare is not None:
            try:
                await self._run.answering.prepare()
            except FatalEngineError:
                raise
            except EngineError as error:
                raise FatalEngineError(str(error), attempts=error.attempts) from None
        if isinstance(self._run.thoughts, Discovers):
            await self._run.thoughts.discover()
        self._note_setup()

    def _note_setup(self) -> None:
        engine = self._run.engine
        if isinstance(engine, ReportsSetup) and (setup := engine.setup()) is not None:
            grounder = self._run.answering.grounder
            other = grounder.setup() if isinstance(grounder, ReportsSetup) else None
            if other is not None and (setup, other) != self._both[:2]:
                self._both = setup, other, setup.joined(other)
            setup = setup if other is None else self._both[2]
            self._progress.warnings += self._setups.note(setup, resumed=self._progress.resumed > 0)
        thoughts = self._run.thoughts
        if isinstance(thoughts, ReportsSetup) and (setup := thoughts.setup()) not in (None, self._patch_setup):
            self._patch_setup = setup
            self._progress.warnings += self._setups.note_patches(setup, resumed=self._progress.resumed > 0)

    def _note_request(self, request: Request) -> None:
        """Take the first request of the first step, or of the first task, into the set-up: the same one, whoever answers."""
        task, first = request.task, self._first
        if self._first_noted or first is None or not isinstance(self._run.engine, ReportsSetup):
            return
        if kind_of(self._run.config).belongs(task.key, first):
            self._first_noted = True
            self._run.engine.note(request)
            self._note_setup()

    def _begin_steps(self) -> None:
        """Begin steps until as many are under way as there are slots, or none is ready."""
        while self._progress.in_flight < self._wanted and not self._stopped:
            if self._scheduler.exhausted or self._halted() or (taken := self._scheduler.take()) is None:
                return
            self._progress.in_flight += 1
            self._steps.create_task(self._step(*taken))

    async def _step(self, active: ActiveEpisode, index: int) -> None:
        key = StepKey(*active.ref.key, index)
        self._first = self._first or key
        record = await self._asking.answer(active.loaded, index, self._answered.samples(key))
        self._progress.in_flight -= 1
        self._take_in(active, record)
        self._begin_steps()

    def _take_in(self, active: ActiveEpisode, record: Record) -> None:
        self._note_setup()
        self._progress.warnings += self._setups.note_replies(record, resumed=self._progress.resumed > 0)
        self._journal.append(record)
        self._answered.ledger.take(record)
        go_on = self._asking.goes_on(active.loaded, record)
        if not go_on:
            self._progress.total -= len(active.pending)
        if self._scheduler.finished(active, go_on=go_on):
            self._asking.forget(active.ref.key)
        self._progress.count(record)
        self._on_progress(self._progress)
        if self._gives_up:
            self._stop()

    def _look(self, record: StepRecord) -> None:
        self._progress.warnings += self._watch.add(record)

    def _give_up_step(self, record: Record) -> None:
        """Record what was paid for a step that is not answered any more; its tokens are counted already."""
        with suppress(JournalError):  # which may be what ends the run
            self._journal.append(record)
            self._answered.ledger.take(record)

    def _activate(self, ref: EpisodeRef) -> ActiveEpisode | None:
        """Load an episode whose turn has come; ``None`` if nothing of it is left."""
        run, counted = self._run, self._run.plan[ref.key]
        kept = self._answered.kept(ref)
        self._answered.take_back(ref, kept, self._progress)
        if self._answered.is_over(ref, kept):
            self._progress.total -= len(counted) - len(kept)
            return None
        loaded = self._asking.load(ref)
        if run.mode.sequential:
            self._asking.resume(loaded, self._answered.records(kept))
            self._answered.drop_samples(ref.key, kept)
        return ActiveEpisode(ref, loaded, [index for index in counted if index not in kept])

    @property
    def _wanted(self) -> int:
        """How many steps to work on at once; one under a budget, until a response has shown what they cost."""
        unknown = self._run.config.tracking.budget is not None and not self._progress.tokens.answers
        return 1 if unknown else self._slots.limit

    @property
    def _gives_up(self) -> bool:
        most = self._run.answering.give_up_after
        return most is not None and self._progress.in_a_row >= most

    def _halted(self) -> bool:
        self._progress.halted = self._progress.halted or self._progress.fault or self._halt(self._progress)
        return self._progress.halted is not None

    def _make_asker(self) -> Asker:
        run = self._run
        root = kind_of(run.config).screens(run.benchmark, self._journal.directory)

        def images(engine: Engine, model: ABCModel = run.model) -> ImageLoader:
            encoding = model.config.scaffold.encoding
            return ImageLoader(root, self._threads, form=engine.images, check=run.config.data.decode_check, encoding=encoding)

        stages = None
        if isinstance(run.model, Composition) and run.config.server.replay is None:
            stages = Stages(run.model, run.engine, run.answering.grounder, images, self._journal.directory / STAGES)
        return Asker(
            model=run.model,
            engine=run.engine,
            evaluator=run.evaluator,
            mode=run.mode,
            sampling=run.sampling,
            images=images(run.engine),
            slots=self._slots,
            thoughts=run.thoughts,
            thought_images=None if run.thoughts is None else images(run.thoughts),
            fixed=run.fixed,
            tokens=self._progress.tokens,
            halted=lambda: self._progress.halted if self._halted() else None,
            lost=self._give_up_step,
            note=self._note_request,
            redaction=Redaction.of_variables(*key_variables(run.config)),
            stages=stages,
        )

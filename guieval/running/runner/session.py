"""One session of a run: runs every step that is left, until all are answered, the user stops it, or a fatal error occurs."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from guieval.data.benchmark import EpisodeRef
from guieval.engines import ReportsServers
from guieval.errors import EngineError, FatalEngineError, JournalError
from guieval.journal import Journal
from guieval.models import Engine
from guieval.running.outcome import RunOutcome
from guieval.running.progress.counts import Load, Progress
from guieval.running.resolved import ResolvedRun
from guieval.running.resume.answered import Answered
from guieval.running.resume.served import ServedModels
from guieval.running.runner.answer_watch import AnswerWatch
from guieval.running.runner.image_cache import ImageLoader
from guieval.running.runner.scheduler import ActiveEpisode, Scheduler
from guieval.running.runner.step import Asker
from guieval.running.runner.task_pool import Gate, Workers
from guieval.secrets import Redaction
from guieval.steps import Record, StepKey, StepRecord

WINDOW_PER_SLOT = 4
"""Episodes kept loaded per request slot: enough that the longest unfinished one is nearly always among them."""


class Session:
    """The state of a run while it is executed. :meth:`drive` may be called once; see :class:`Runner` for the callbacks."""

    def __init__(
        self,
        run: ResolvedRun,
        journal: Journal,
        served: ServedModels,
        answered: Answered,
        progress: Progress,
        *,
        on_progress: Callable[[Progress], None],
        halt: Callable[[Progress], str | None],
        takes: Callable[[EpisodeRef], bool],
    ) -> None:
        self._run = run
        self._journal = journal
        self._served = served
        self._answered = answered
        self._progress = progress
        self._on_progress = on_progress
        self._halt = halt
        self._takes = takes
        self._watch = AnswerWatch(run.model, journal.directory)
        self._gate = Gate(run.answering.concurrency)
        self._scheduler = Scheduler(
            run.selection.refs,
            self._activate,
            sequential=run.mode.sequential,
            window=WINDOW_PER_SLOT * self._gate.most,
            count=lambda ref: len(run.plan[ref.key]),
        )
        self._threads = ThreadPoolExecutor(min(4, (os.cpu_count() or 1) + 1), thread_name_prefix="images")
        self._asking = run.kind.asking(run, journal.directory, self._make_asker(), self._look)
        self._workers = Workers()
        self._changed = asyncio.Event()
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
            self._workers.fill(self._wanted, self._work)
            await self._workers.done()
        except asyncio.CancelledError:
            if not self._stopped:
                raise
        else:
            if warnings := self._watch.close():
                self._progress.warnings += warnings
                self._on_progress(self._progress)
        finally:
            self._journal.on_failure(lambda: None)
            await self._workers.cancel()
            await self._run.engine.close()
            if self._run.thoughts is not None:
                await self._run.thoughts.close()
            self._threads.shutdown(wait=False, cancel_futures=True)
            self._asking.close()
        self._journal.check()

    def stop_soon(self) -> None:
        """Stop in order; may be called from any thread and from a signal handler, also before :meth:`drive`."""
        self._stop_asked = True
        if self._loop is not None:
            with suppress(RuntimeError):  # the loop is closed: the session has ended by itself
                self._loop.call_soon_threadsafe(self._stop)

    def outcome(self) -> RunOutcome:
        """The outcome of the run so far."""
        return RunOutcome.of(
            self._run,
            self._journal.directory,
            self._answered.ledger,
            self._progress,
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
        engine = self._run.engine
        if isinstance(engine, ReportsServers) and (served := engine.served()) is not None:
            self._warn(self._served.note_served(served, resumed=self._progress.resumed > 0))

    async def _work(self) -> None:
        while not self._stopped and not self._scheduler.exhausted and not self._halted():
            if self._workers.dismisses(self._wanted):
                break
            taken = self._scheduler.take()
            if taken is None:
                if self._scheduler.exhausted:  # what was waiting turned out to be done already
                    break
                self._changed.clear()
                await self._changed.wait()
                continue
            active, index = taken
            self._progress.in_flight += 1
            earlier = self._answered.samples(StepKey(*active.ref.key, index))
            record = await self._asking.answer(active.loaded, index, earlier)
            self._progress.in_flight -= 1
            self._take_in(active, record)
            self._changed.set()
            if not self._scheduler.exhausted and self._progress.halted is None:
                self._workers.fill(self._wanted, self._work)
            await asyncio.sleep(0)  # an engine may answer without ever waiting; a signal must get through even so
        self._changed.set()

    def _take_in(self, active: ActiveEpisode, record: Record) -> None:
        self._warn(self._served.note_replies(record, resumed=self._progress.resumed > 0))
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
        """Load an episode whose turn has come; ``None`` where nothing of it is left, or where it is left to others."""
        if not self._takes(ref):
            return None
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
        return 1 if unknown else self._gate.limit

    @property
    def _gives_up(self) -> bool:
        most = self._run.answering.give_up_after
        return most is not None and self._progress.in_a_row >= most

    def _halted(self) -> bool:
        self._progress.halted = self._progress.halted or self._halt(self._progress)
        return self._progress.halted is not None

    def _warn(self, warning: str | None) -> None:
        if warning is not None:
            self._progress.warnings.append(warning)

    def _make_asker(self) -> Asker:
        run = self._run
        root = run.kind.screens(run.benchmark, self._journal.directory)

        def images(engine: Engine) -> ImageLoader:
            return ImageLoader(root, self._threads, form=engine.images, check=run.config.data.decode_check)

        return Asker(
            model=run.model,
            engine=run.engine,
            evaluator=run.evaluator,
            mode=run.mode,
            sampling=run.sampling,
            images=images(run.engine),
            gate=self._gate,
            thoughts=run.thoughts,
            thought_images=None if run.thoughts is None else images(run.thoughts),
            fixed=run.fixed,
            tokens=self._progress.tokens,
            halted=lambda: self._progress.halted if self._halted() else None,
            lost=self._give_up_step,
            redaction=Redaction.of_variables(run.config.server.api_key_env, run.config.history.patch_api_key_env),
        )

"""One session of a run: runs every step that is left, until all are answered, the user stops it, or a fatal error occurs."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from guieval.data.benchmark import EpisodeRef
from guieval.engines import ReportsSetup
from guieval.engines.concurrency import Slots
from guieval.errors import AdapterFault, DataError, EngineError, FatalEngineError, JournalError
from guieval.history import HistoryEntry, recalled, reference_entry, reference_history
from guieval.journal import Journal
from guieval.models import Engine, Request
from guieval.online.tasks import EnvironmentTasks
from guieval.online.trajectory import Trajectories, TrajectoryStep
from guieval.running.outcome import RunOutcome
from guieval.running.progress.counts import Load, Progress
from guieval.running.resolve import ResolvedRun, load_episode
from guieval.running.resume.answered import Answered
from guieval.running.resume.setups import SessionSetups
from guieval.running.runner.actor import Actor
from guieval.running.runner.answer_watch import AnswerWatch
from guieval.running.runner.image_cache import ImageLoader
from guieval.running.runner.scheduler import ActiveEpisode, Scheduler
from guieval.running.runner.step import Asker
from guieval.secrets import Redaction
from guieval.steps import Episode, EpisodeKey, StepKey, StepRecord

WINDOW_PER_SLOT = 4
"""Episodes kept loaded per request slot: enough that the longest unfinished one is nearly always among them."""


class Past:
    """The past of every episode, as the run's mode shows it. In sequential modes it keeps what was answered."""

    def __init__(self, run: ResolvedRun) -> None:
        self._mode = run.mode
        self._mixture = run.mixture
        self._entries: dict[EpisodeKey, list[HistoryEntry]] = {}

    def before(self, episode: Episode, index: int) -> Sequence[HistoryEntry]:
        """The history of the step at ``index``, oldest first."""
        if self._mode.sequential:
            self._catch_up(episode, index)
            return tuple(self._entries[episode.key])
        if self._mixture is not None:
            return self._mixture.history(episode.steps[:index])
        return reference_history(episode.steps[:index])

    def remember(self, episode: Episode, record: StepRecord) -> None:
        """Let later steps see this one, and the references of steps before it that do not count and so were not asked."""
        index = record.task.step_index
        self._catch_up(episode, index)
        self._entries[episode.key].append(recalled(self._mode.history, episode.steps[index], record))

    def forget(self, key: EpisodeKey) -> None:
        """Free what is kept of an episode that is over."""
        self._entries.pop(key, None)

    def _catch_up(self, episode: Episode, index: int) -> None:
        entries = self._entries.setdefault(episode.key, [])
        entries += map(reference_entry, episode.steps[len(entries) : index])


class Session:
    """The state of a run while it is executed. :meth:`drive` may be called once; see :class:`Runner` for the callbacks."""

    def __init__(
        self,
        run: ResolvedRun,
        journal: Journal,
        setups: SessionSetups,
        answered: Answered,
        progress: Progress,
        *,
        on_progress: Callable[[Progress], None],
        halt: Callable[[Progress], str | None],
        takes: Callable[[EpisodeRef], bool],
    ) -> None:
        self._run = run
        self._journal = journal
        self._setups = setups
        self._first: StepKey | None = None
        """The step or task that is queried first, whose request the set-up describes."""
        self._first_noted = False
        self._answered = answered
        self._progress = progress
        self._on_progress = on_progress
        self._halt = halt
        self._takes = takes
        self._past = Past(run)
        self._patched: Counter[EpisodeKey] = Counter()
        self._watch = AnswerWatch(run.model, journal.directory)
        self._slots = Slots(run.answering.concurrency)
        self._scheduler = Scheduler(
            run.selection.refs,
            self._activate,
            sequential=run.mode.sequential,
            window=WINDOW_PER_SLOT * self._slots.most,
            count=lambda ref: len(run.plan[ref.key]),
        )
        self._threads = ThreadPoolExecutor(min(4, (os.cpu_count() or 1) + 1), thread_name_prefix="images")
        online = isinstance(run.benchmark, EnvironmentTasks)
        self._trajectories = Trajectories(journal.directory, self._count_earlier) if online else None
        self._asker = self._make_asker()
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
            await self._run.engine.close()
            if self._run.thoughts is not None:
                await self._run.thoughts.close()
            self._threads.shutdown(wait=False, cancel_futures=True)
            if self._trajectories is not None:
                self._trajectories.close()
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
        self._note_setup()

    def _note_setup(self) -> None:
        engine = self._run.engine
        if isinstance(engine, ReportsSetup) and (setup := engine.setup()) is not None:
            self._progress.warnings += self._setups.note(setup, resumed=self._progress.resumed > 0)

    def _note_request(self, request: Request) -> None:
        """Take the first request of the first step, or of the first task, into the set-up: the same one, whoever answers."""
        task, first = request.task, self._first
        if self._first_noted or first is None or not isinstance(self._run.engine, ReportsSetup):
            return
        if task.key == first or (self._trajectories is not None and task.key[:3] == first[:3]):
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
        record = await self._ask(active.episode, index)
        self._progress.in_flight -= 1
        self._take_in(active, record)
        self._begin_steps()

    async def _ask(self, episode: Episode, index: int) -> StepRecord:
        task = episode.steps[index]
        self._first = self._first or task.key
        return await self._asker.answer(
            task,
            self._past.before(episode, index),
            patched=self._patched[task.episode_key],
            last=index == self._run.plan[task.episode_key][-1],
            earlier=self._answered.samples(task.key),
        )

    def _take_in(self, active: ActiveEpisode, record: StepRecord) -> None:
        self._note_setup()
        self._progress.warnings += self._setups.note_replies(record, resumed=self._progress.resumed > 0)
        self._journal.append(record)
        self._answered.ledger.take(record)
        self._progress.warnings += self._watch.add(record)
        go_on = self._goes_on(record)
        if not go_on:
            self._progress.total -= len(active.pending)
        elif self._run.mode.sequential:
            self._past.remember(active.episode, record)
            self._patched[active.ref.key] += record.patch is not None
        if self._scheduler.finished(active, go_on=go_on):
            self._past.forget(active.ref.key)
            self._patched.pop(active.ref.key, None)
        self._progress.count(record)
        self._on_progress(self._progress)
        if self._gives_up:
            self._stop()

    def _give_up_step(self, record: StepRecord) -> None:
        """Record what was paid for a step that is not answered any more; its tokens are counted already."""
        with suppress(JournalError):  # which may be what ends the run
            self._journal.append(record)
            self._answered.ledger.take(record)

    def _count_earlier(self, step: TrajectoryStep) -> None:
        self._progress.tokens.count(step.usage)
        for usage in step.other_usage:
            self._progress.tokens.count_other(usage)

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
        try:
            episode = load_episode(run.benchmark, ref)
        except DataError as error:
            raise DataError(f"{error}; a new run with --skip-damaged leaves such episodes out") from error
        if [ref.key, ref.length] != [episode.key, len(episode)]:
            raise DataError(
                f"episode {ref.key} of {ref.length} steps is in the index of {run.benchmark.name!r}, "
                f"but what it loads is {episode.key} of {len(episode)}"
            )
        if run.mode.sequential:
            for record in self._answered.records(kept):
                self._past.remember(episode, record)
            self._patched[ref.key] = sum(not step.exact for step in kept.values())
            self._answered.drop_samples(episode, kept)
        return ActiveEpisode(ref, episode, [index for index in counted if index not in kept])

    def _goes_on(self, record: StepRecord) -> bool:
        """Whether the episode's next step may run.

        In a sequential mode a step that was never answered suspends its episode: going on with a made-up past would give
        the later steps a history that the resumed run would not give them.
        """
        if not self._run.mode.sequential:
            return True
        if not record.finished:
            return False
        return self._run.mode.stop == "never" or record.sample.outcome.exact_match or record.patch is not None

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

    def _make_asker(self) -> Asker | Actor:
        run, trajectories = self._run, self._trajectories
        root = run.benchmark.root if trajectories is None else trajectories.directory

        def images(engine: Engine) -> ImageLoader:
            encoding = run.model.config.scaffold.encoding
            return ImageLoader(root, self._threads, form=engine.images, check=run.config.data.decode_check, encoding=encoding)

        asker = Asker(
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
            redaction=Redaction.of_variables(run.config.server.api_key_env, run.config.history.patch_api_key_env),
        )
        if trajectories is None:
            return asker
        assert isinstance(run.benchmark, EnvironmentTasks)
        most = run.benchmark.environment.most_devices
        devices = asyncio.Semaphore(min(run.config.online.environments, most or run.config.online.environments))
        return Actor(run.benchmark, asker, trajectories, devices, run.config.online.environment_timeout, run.config.data.seed)

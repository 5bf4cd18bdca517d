"""Does tasks in an environment: observe, ask the model, act, until the task ends; then the environment judges.

Every step is recorded before its action is carried out. An attempt whose environment fails, or whose process was killed, is
continued if that is possible: in a deterministic environment the recorded actions are repeated, and the model is
queried only for further steps. Elsewhere the task is begun again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from guieval.data.benchmark import EpisodeRef
from guieval.errors import EnvironmentFailure
from guieval.models.scaffold import Success
from guieval.online import ABCDevice, Observation
from guieval.online.attempt import Attempt, LoopRule, carried_out, closed, screen_name, within
from guieval.online.tasks import EnvironmentTasks
from guieval.online.trajectory import Trajectories, TrajectoryStep, reply_of
from guieval.running.runner.asking import Asking
from guieval.running.runner.step import Asker
from guieval.steps import OnlineTask, Repetition, Sample, Score, StepError, StepRecord, TaskRecord

_Result = TypeVar("_Result")


class _Diverged(Exception):
    """The environment does not show what it showed before the same actions."""


class Actor(Asking[OnlineTask, TaskRecord]):
    """Does the tasks of an environment with a model.

    ``asker`` asks for single steps, and ``seen`` is called with the record of each. ``devices`` is the most devices that
    are open. Every call of the environment has ``timeout`` seconds. Repetition k of a task has the seed ``seed`` + k and the
    request parameters of sample k; its tokens and seconds are those of every attempt.
    """

    def __init__(
        self,
        tasks: EnvironmentTasks,
        asker: Asker,
        directory: Path,
        seen: Callable[[StepRecord], None],
        *,
        devices: int,
        timeout: float,
        seed: int,
    ) -> None:
        self.tasks = tasks
        self.asker = asker
        self.trajectories = Trajectories(directory, self._count)
        self._seen = seen
        self._devices = asyncio.Semaphore(devices)
        self._timeout = timeout
        self._seed = seed

    def load(self, ref: EpisodeRef) -> OnlineTask:
        return self.tasks.load(ref)

    async def answer(self, loaded: OnlineTask, index: int, earlier: Mapping[int, Repetition]) -> TaskRecord:
        """The record of a task: the outcome of each repetition that is not among ``earlier``."""
        models: dict[str, None] = {}
        every = range(len(self.asker.sampling))
        numbers = [number for number in every if number not in earlier]
        playing = [asyncio.create_task(self._repetition(loaded, number, models)) for number in numbers]
        try:
            new = dict(zip(numbers, await asyncio.gather(*playing), strict=True))
        finally:
            for each in playing:
                each.cancel()
            await asyncio.gather(*playing, return_exceptions=True)  # their devices are closed by then
        samples = tuple(earlier[number] if number in earlier else new[number] for number in every)
        return self._record(loaded, samples, earlier=tuple(sorted(earlier)), models=tuple(models))

    def close(self) -> None:
        self.trajectories.close()

    def _count(self, step: TrajectoryStep) -> None:
        self.asker.tokens.count(step.usage)
        for usage in step.other_usage:
            self.asker.tokens.count_other(usage)

    def _record(self, task: OnlineTask, samples: Sequence[Repetition], **more: Any) -> TaskRecord:
        return TaskRecord(environment=self.tasks.environment.version, task=task, samples=tuple(samples), **more)

    async def _repetition(self, task: OnlineTask, number: int, models: dict[str, None]) -> Repetition:
        key, failure = task.episode_key, ""
        attempt = self.trajectories.last_attempt(key, number)
        most = self.asker.model.config.scaffold.retries.task
        for _ in range(most):
            recorded = self.trajectories.steps(key, number)
            if recorded and recorded[0].attempt < attempt:
                recorded = []
            if recorded and not self.tasks.environment.deterministic:
                attempt, recorded = attempt + 1, []
            try:
                found = await self._attempt(task, number, attempt, recorded, models)
            except EnvironmentFailure as error:
                failure = str(error)
            except _Diverged:
                attempt += 1
                failure = "the environment did not repeat what it showed before the same actions"
            else:
                found = found.model_copy(update=self.trajectories.spent(key, number))
                if found.answered:
                    self.trajectories.forget(key, number)
                return found
        given_up = StepError(stage="environment", message=f"{failure} ({most} attempts)")
        return Repetition(error=given_up, **self.trajectories.spent(key, number))

    async def _attempt(
        self, task: OnlineTask, number: int, attempt: int, recorded: Sequence[TrajectoryStep], models: dict[str, None]
    ) -> Repetition:
        async with self._devices:
            device = await self._within(self.tasks.environment.open(), "to start")
            try:
                return await self._play(device, task, number, attempt, recorded, models)
            finally:
                await closed(device)  # its answer is known, or its failure on its way

    async def _play(
        self,
        device: ABCDevice,
        task: OnlineTask,
        number: int,
        attempt: int,
        recorded: Sequence[TrajectoryStep],
        models: dict[str, None],
    ) -> Repetition:
        def lost(record: StepRecord) -> None:
            self.asker.lost(self._record(task, [_without_outcome(record.sample)]))

        asker = replace(self.asker, sampling=self.asker.sampling[number : number + 1], lost=lost)
        observation = await self._within(device.reset(self.tasks.named(task), self._seed + number), "to begin a task")
        played = self._begun(task)
        while not played.steps or not played.over(observation):
            shown = played.shown(observation, await self._stored(observation))
            if played.steps < len(recorded):
                step = recorded[played.steps]
                if (step.screenshot, step.goal) != (shown.screenshot, observation.goal):
                    raise _Diverged
            else:
                record = await asker.answer(shown, played.history, patched=0, last=False)
                models.update(dict.fromkeys(record.models))
                self._seen(record)
                if not record.sample.answered:  # what was done so far is recorded, and a resume goes on from there
                    return _without_outcome(record.sample)
                executed = bool(carried_out(record.sample)) and not played.replaced(record.sample)
                step = TrajectoryStep(
                    key=task.episode_key,
                    sample=number,
                    attempt=attempt,
                    index=shown.step_index,
                    goal=observation.goal,
                    screenshot=shown.screenshot,
                    size=shown.screenshot_size,
                    text=observation.text,
                    executed=executed,
                    **reply_of(record.sample),
                )
                await asyncio.to_thread(self.trajectories.append, step)
            if carried := played.answered(shown, step):
                observation = await self._within(device.step(carried), "to carry out an action")
        score = await self._within(device.score(), "to judge")
        screenshot = await self._stored(observation)
        return Repetition(outcome=played.outcome(score, observation, attempt=attempt, screenshot=screenshot))

    def _begun(self, task: OnlineTask) -> Attempt:
        scaffold = self.asker.model.config.scaffold
        ending, success = scaffold.ending, scaffold.success
        loop = None if ending.loop is None else LoopRule(ending.loop.equal, ending.loop.effect)
        counted = {} if success is None else {"counted": partial(_counted, success)}
        unparseable = self.tasks.named(task).unparseable or ending.unparseable
        return Attempt(task, unparseable=unparseable, loop=loop, typed=scaffold.typing.typed, **counted)

    async def _stored(self, observation: Observation) -> str:
        return await asyncio.to_thread(self.trajectories.keep, observation.screenshot, screen_name(observation.screenshot))

    async def _within(self, call: Awaitable[_Result], what: str) -> _Result:
        return await within(self._timeout, call, what)


def _counted(rule: Success, score: Score, stopped: bool) -> Score:
    success = score.progress > rule.above and not score.side_effects and (stopped or not rule.needs_stop)
    own = score.reason or ("success" if score.success else "no success")
    stop = "and a stop of the model's" if rule.needs_stop else "with or without a stop"
    reason = f"the scaffold's rule: a score above {rule.above:g}, {stop}; the environment: {own}"
    return score.model_copy(update={"success": success, "reason": reason})


def _without_outcome(sample: Sample) -> Repetition:
    """A repetition that ended at a step without an answer."""
    return Repetition(error=sample.error, usage=sample.usage, other_usage=sample.other_usage)

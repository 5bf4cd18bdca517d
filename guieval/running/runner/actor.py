"""Does tasks in an environment: observe, ask the model, act, until the task ends; then the environment judges.

Every step is recorded before its action is carried out. An attempt whose environment fails, or whose process was killed, is
continued where that is possible: in a deterministic environment the recorded actions are repeated, and the model is
queried only for further steps. Elsewhere the task is begun again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from guieval.errors import EnvironmentFailure
from guieval.history import HistoryEntry
from guieval.models.scored_response import failed_sample
from guieval.online import ABCDevice, Observation
from guieval.online.attempt import MOST_ATTEMPTS, MOST_UNPARSEABLE, Attempt, LoopRule, carried_out, closed, screen_name, within
from guieval.online.tasks import EnvironmentTasks
from guieval.online.trajectory import Outcome, Trajectories, TrajectoryStep, outcome_action
from guieval.running.runner.step import Asker
from guieval.steps import Sample, StepError, StepRecord, StepTaskModel

_Result = TypeVar("_Result")


class _Diverged(Exception):
    """The environment does not show what it showed before the same actions."""


@dataclass(frozen=True)
class Actor:
    """Does the tasks of an environment with a model; stands in the place of :class:`Asker` in an online run.

    ``asker`` asks for single steps. ``devices`` limits how many devices are open. Every call of the environment has
    ``timeout`` seconds. Repetition k of a task has the seed ``seed`` + k and the request parameters of sample k; its tokens and
    seconds are those of every attempt.
    """

    tasks: EnvironmentTasks
    asker: Asker
    trajectories: Trajectories
    devices: asyncio.Semaphore
    timeout: float
    seed: int

    async def answer(
        self,
        task: StepTaskModel,
        past: Sequence[HistoryEntry],
        *,
        patched: int,
        last: bool,
        earlier: Mapping[int, Sample] | None = None,
    ) -> StepRecord:
        """The record of a task: the outcome of each repetition that is not among ``earlier``."""
        earlier = earlier or {}
        models: dict[str, None] = {}
        numbers = [number for number in range(len(self.asker.sampling)) if number not in earlier]
        playing = [asyncio.create_task(self._repetition(task, number, models)) for number in numbers]
        try:
            new = dict(zip(numbers, await asyncio.gather(*playing), strict=True))
        finally:
            for each in playing:
                each.cancel()
            await asyncio.gather(*playing, return_exceptions=True)  # their devices are closed by then
        samples = tuple(earlier[number] if number in earlier else new[number] for number in range(len(self.asker.sampling)))
        return StepRecord(task=task, samples=samples, earlier=tuple(sorted(earlier)), models=tuple(models))

    async def _repetition(self, task: StepTaskModel, number: int, models: dict[str, None]) -> Sample:
        key, failure = task.episode_key, ""
        attempt = self.trajectories.last_attempt(key, number)
        most = self.asker.model.config.scaffold.retries.task or MOST_ATTEMPTS
        for _ in range(most):
            recorded = self.trajectories.steps(key, number)
            if recorded and recorded[0].attempt < attempt:
                recorded = []
            if recorded and not self.tasks.environment.deterministic:
                attempt, recorded = attempt + 1, []
            try:
                sample = await self._attempt(task, number, attempt, recorded, models)
            except EnvironmentFailure as error:
                failure = str(error)
            except _Diverged:
                attempt += 1
                failure = "the environment did not repeat what it showed before the same actions"
            else:
                sample = sample.model_copy(update=self.trajectories.spent(key, number))
                if sample.answered:
                    self.trajectories.forget(key, number)
                return sample
        spent = self.trajectories.spent(key, number)
        return failed_sample("environment", f"{failure} ({most} attempts)", **spent)

    async def _attempt(
        self, task: StepTaskModel, number: int, attempt: int, recorded: Sequence[TrajectoryStep], models: dict[str, None]
    ) -> Sample:
        async with self.devices:
            device = await self._within(self.tasks.environment.open(), "to start")
            try:
                return await self._play(device, task, number, attempt, recorded, models)
            finally:
                await closed(device)  # its answer is known, or its failure on its way

    async def _play(
        self,
        device: ABCDevice,
        task: StepTaskModel,
        number: int,
        attempt: int,
        recorded: Sequence[TrajectoryStep],
        models: dict[str, None],
    ) -> Sample:
        environment_task = self.tasks.named(task)
        most = self.tasks.steps(environment_task)

        def lost(record: StepRecord) -> None:
            self.asker.lost(StepRecord(task=task, samples=record.samples))

        asker = replace(self.asker, sampling=self.asker.sampling[number : number + 1], lost=lost)
        observation = await self._within(device.reset(environment_task, self.seed + number), "to begin a task")
        played = self._begun(task, most)
        while not played.steps or not played.over(observation):
            shown = played.shown(observation, await self._stored(observation))
            if played.steps < len(recorded):
                step = recorded[played.steps]
                if (step.screenshot, step.goal) != (shown.screenshot, observation.goal):
                    raise _Diverged
            else:
                record = await asker.answer(shown, played.history, patched=0, last=False)
                models.update(dict.fromkeys(record.models))
                if not record.sample.answered:  # what was done so far is recorded, and a resume goes on from there
                    return record.sample
                executed = bool(carried_out(record.sample)) and not played.replaced(record.sample)
                step = _step(task, shown, record.sample, number, attempt, observation, executed=executed)
                await asyncio.to_thread(self.trajectories.append, step)
            if carried := played.answered(shown, step):
                observation = await self._within(device.step(carried), "to carry out an action")
        score = await self._within(device.score(), "to judge")
        screenshot = await self._stored(observation)
        return self._judged(task, played, played.outcome(score, observation, attempt=attempt, screenshot=screenshot))

    def _begun(self, task: StepTaskModel, most: int) -> Attempt:
        ending = self.asker.model.config.scaffold.ending
        loop = None if ending.loop is None else LoopRule(ending.loop.equal, ending.loop.effect)
        return Attempt(task, most, unparseable=ending.unparseable or MOST_UNPARSEABLE, loop=loop)

    def _judged(self, task: StepTaskModel, played: Attempt, outcome: Outcome) -> Sample:
        unread = outcome.ended == "unparseable"
        action = None if unread else outcome_action(outcome.score.success)
        return Sample(
            raw_response=outcome.model_dump_json(),
            action=action,
            error=StepError(stage="parse", message=f"{played.most_unparseable} replies in a row held no action")
            if unread
            else None,
            outcome=self.asker.evaluator.evaluate(task, action),
        )

    async def _stored(self, observation: Observation) -> str:
        return await asyncio.to_thread(self.trajectories.keep, observation.screenshot, screen_name(observation.screenshot))

    async def _within(self, call: Awaitable[_Result], what: str) -> _Result:
        return await within(self.timeout, call, what)


def _step(
    task: StepTaskModel,
    shown: StepTaskModel,
    sample: Sample,
    number: int,
    attempt: int,
    observation: Observation,
    *,
    executed: bool,
) -> TrajectoryStep:
    return TrajectoryStep(
        key=task.episode_key,
        sample=number,
        attempt=attempt,
        index=shown.step_index,
        goal=observation.goal,
        screenshot=shown.screenshot,
        size=shown.screenshot_size,
        text=observation.text,
        raw_response=sample.raw_response or "",
        reasoning=sample.reasoning,
        thought=sample.thought,
        conclusion=sample.conclusion,
        action=sample.action,
        batch=sample.batch,
        executed=executed,
        error=sample.error,
        usage=sample.usage,
        other_usage=sample.other_usage,
        key_removed=sample.key_removed,
        finish_reason=sample.finish_reason,
        seconds=sample.seconds,
    )

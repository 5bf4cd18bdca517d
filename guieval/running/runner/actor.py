"""Does tasks in an environment: observe, ask the model, act, until the task ends; then the environment judges.

Every step is recorded before its action is carried out. An attempt whose environment fails, or whose process was killed, is
continued where that is possible: in a deterministic environment the recorded actions are repeated, and the model is
queried only for further steps. Elsewhere the task is begun again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import takewhile
from typing import TypeVar

from guieval.actions import Action, ExecutableAction, Stop, StopStatus, Unsupported, executable
from guieval.errors import EnvironmentFailure, GuievalError
from guieval.history import HistoryEntry
from guieval.models.scored_reply import failed_sample
from guieval.online import ABCDevice, Observation, Score
from guieval.online.tasks import EnvironmentTasks
from guieval.online.trajectory import Ended, Outcome, Trajectories, TrajectoryStep, outcome_action
from guieval.running.runner.step import Asker
from guieval.steps import Sample, StepError, StepRecord, StepTaskModel

MOST_ATTEMPTS = 3
"""Attempts at a task in one session, if its environment fails."""
MOST_UNPARSEABLE = 3
"""Replies in a row without an action that end a task."""
CLOSE_SECONDS = 15.0
UNKNOWN = Unsupported(name="unknown")
"""The reference action of a step online: there is none."""

_Result = TypeVar("_Result")


class _Diverged(Exception):
    """The environment does not show what it showed before the same actions."""


@dataclass
class _Played:
    """An attempt so far."""

    steps: int = 0
    unparseable: int = 0
    in_a_row: int = 0
    unsupported: int = 0
    stopped: StopStatus | None = None
    screenshot: str | None = None

    def add(self, step: TrajectoryStep) -> None:
        self.steps += 1
        self.in_a_row = self.in_a_row + 1 if step.action is None else 0
        self.unparseable += step.action is None
        self.unsupported += step.action is not None and not step.executed
        for action in step.actions:
            if isinstance(action, Stop):
                self.stopped = action.status

    def ended(self, score: Score, observation: Observation) -> Ended:
        if score.success:
            return "success"
        if self.in_a_row >= MOST_UNPARSEABLE:
            return "unparseable"
        if self.stopped is not None:
            return "false completion" if self.stopped == "finish" else "wrong stop"
        return "failed" if observation.over else "step limit"


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
        for _ in range(MOST_ATTEMPTS):
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
        return failed_sample("environment", f"{failure} ({MOST_ATTEMPTS} attempts)", **spent)

    async def _attempt(
        self, task: StepTaskModel, number: int, attempt: int, recorded: Sequence[TrajectoryStep], models: dict[str, None]
    ) -> Sample:
        async with self.devices:
            device = await self._within(self.tasks.environment.open(), "to start")
            try:
                return await self._play(device, task, number, attempt, recorded, models)
            finally:
                with suppress(Exception):  # whatever state the device is in; its answer is known, or its failure on its way
                    await asyncio.wait_for(asyncio.shield(device.close()), CLOSE_SECONDS)

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
        asker = replace(self.asker, sampling=self.asker.sampling[number : number + 1])
        observation = await self._within(device.reset(environment_task, self.seed + number), "to begin a task")
        played, history = _Played(), list[HistoryEntry]()
        while played.steps < most:
            shown = await self._shown(task, observation, played.steps, most)
            played.screenshot = shown.screenshot
            if played.steps < len(recorded):
                step = recorded[played.steps]
                if (step.screenshot, step.goal) != (shown.screenshot, observation.goal):
                    raise _Diverged
            else:
                record = await asker.answer(shown, history, patched=0, last=False)
                models.update(dict.fromkeys(record.models))
                if not record.sample.answered:  # what was done so far is recorded, and a resume goes on from there
                    return record.sample
                step = _step(task, shown, record.sample, number, attempt, observation)
                await asyncio.to_thread(self.trajectories.append, step)
            played.add(step)
            if step.executed and step.action is not None:
                history.append(HistoryEntry(shown, step.action, step.thought, step.conclusion, step.raw_response, "model"))
                observation = await self._within(device.step(_executable(step.actions)), "to carry out an action")
            if played.stopped is not None or observation.over or played.in_a_row >= MOST_UNPARSEABLE:
                break
        score = await self._within(device.score(), "to judge")
        played.screenshot = await self._stored(observation)
        return self._judged(task, played, attempt, observation, score)

    def _judged(self, task: StepTaskModel, played: _Played, attempt: int, observation: Observation, score: Score) -> Sample:
        ended = played.ended(score, observation)
        outcome = Outcome(
            ended=ended,
            score=score,
            steps=played.steps,
            attempt=attempt,
            stopped=played.stopped,
            unparseable=played.unparseable,
            unsupported=played.unsupported,
            screenshot=played.screenshot,
        )
        unread = ended == "unparseable"
        action = None if unread else outcome_action(score.success)
        return Sample(
            raw_response=outcome.model_dump_json(),
            action=action,
            error=StepError(stage="parse", message=f"{MOST_UNPARSEABLE} replies in a row held no action") if unread else None,
            outcome=self.asker.evaluator.evaluate(task, action),
        )

    async def _shown(self, task: StepTaskModel, observation: Observation, index: int, most: int) -> StepTaskModel:
        """The step as an adapter takes it."""
        return StepTaskModel(
            benchmark=task.benchmark,
            dataset=task.dataset,
            subset=task.subset,
            episode_id=task.episode_id,
            step_index=index,
            episode_length=most,
            instruction=observation.goal,
            screenshot=await self._stored(observation),
            screenshot_size=observation.size,
            action=UNKNOWN,
            groups=task.groups,
            extras={} if observation.text is None else {"screen_text": observation.text},
        )

    async def _stored(self, observation: Observation) -> str:
        kind = "png" if observation.screenshot.startswith(b"\x89PNG") else "jpg"
        name = f"{sha256(observation.screenshot).hexdigest()[:32]}.{kind}"
        return await asyncio.to_thread(self.trajectories.keep, observation.screenshot, name)

    async def _within(self, call: Awaitable[_Result], what: str) -> _Result:
        """Wait for the environment. Raises :class:`EnvironmentFailure` if it fails or takes too long."""
        try:
            return await asyncio.wait_for(call, self.timeout)
        except TimeoutError:
            raise EnvironmentFailure(f"the environment took longer than {self.timeout:g} s {what}") from None
        except GuievalError:
            raise
        except Exception as error:  # an environment may be anyone's code
            raise EnvironmentFailure(f"the environment failed {what}: {type(error).__name__}: {error}") from error


def _executable(actions: Sequence[Action]) -> list[ExecutableAction]:
    """What of a reply's actions a device can carry out, up to the first one that it cannot."""
    carried = [executable(action) for action in actions]
    return list(takewhile(lambda action: action is not None, carried))  # type: ignore[arg-type]  # none of them is None


def _step(
    task: StepTaskModel, shown: StepTaskModel, sample: Sample, number: int, attempt: int, observation: Observation
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
        executed=bool(_executable(sample.batch or (() if sample.action is None else (sample.action,)))),
        error=sample.error,
        usage=sample.usage,
        finish_reason=sample.finish_reason,
        seconds=sample.seconds,
    )

"""Rollouts in environments for online RL: many at once, each with its own device, advanced until the model is to answer.

The rules are those of mode ``online`` (:class:`guieval.online.attempt.Attempt`). Without torch: the trainer asks the model.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from guieval.actions import ExecutableAction
from guieval.errors import EnvironmentFailure
from guieval.online import ABCDevice, ABCEnvironment, Observation
from guieval.online.attempt import MOST_ATTEMPTS, Attempt, closed, screen_name, within
from guieval.online.tasks import EnvironmentTasks
from guieval.steps import OnlineTask, Outcome, Sample, StepTaskModel


class OnlineRollout:
    """One rollout of a task; ``seed`` is the environment's. It is begun again if its environment fails.

    ``shown`` is the step to be answered. At the end ``outcome`` is set, or ``failure``: the environment failed in every
    attempt, or a response could not be read because of a bug in the adapter. ``payloads`` are the driver's, one per answer of
    the attempt that counts, and ``progress`` is the judge's after each of its steps, if it is asked so often.
    """

    def __init__(self, tasks: EnvironmentTasks, task: OnlineTask, seed: int) -> None:
        self.tasks = tasks
        self.task = task
        self.seed = seed
        self.outcome: Outcome | None = None
        self.failure: str | None = None
        self._attempts = 0
        self.begin()

    def begin(self) -> None:
        self.attempt = Attempt(self.task)
        self.samples: list[Sample] = []
        self.progress: list[float] = []
        self.payloads: list[Any] = []
        self.shown: StepTaskModel | None = None
        self.device: ABCDevice | None = None
        self.observation: Observation | None = None
        self.carried: list[ExecutableAction] = []

    def tell(self, sample: Sample, payload: Any = None) -> None:
        """Take the response to :attr:`shown`."""
        assert self.shown is not None
        self.samples.append(sample)
        self.payloads.append(payload)
        if sample.answered:
            self.carried = self.attempt.answered(self.shown, sample)
        else:
            self.failure = sample.outcome.reason
        self.shown = None

    def failed(self, error: EnvironmentFailure) -> None:
        """Begin again, or give up."""
        self._attempts += 1
        self.begin()
        if self._attempts >= MOST_ATTEMPTS:
            self.failure = str(error)

    def cut(self) -> None:
        """End the attempt after the steps so far (at least one), without an answer to :attr:`shown`; the judge is asked now."""
        self.attempt.most = self.attempt.steps
        self.shown, self.carried = None, []

    @property
    def over(self) -> bool:
        """Whether there is nothing more to do."""
        return self.outcome is not None or self.failure is not None


class Devices:
    """Devices of environments for rollouts, which are used again for further ones.

    ``seconds`` bounds every call of an environment. With ``every_step`` the judge is asked after every step.
    """

    def __init__(self, seconds: float, *, every_step: bool = False) -> None:
        self._seconds = seconds
        self._every_step = every_step
        self._free: dict[ABCEnvironment, list[ABCDevice]] = {}  # one kind of environment may be open with other options
        self._used: set[ABCDevice] = set()

    async def advance(self, rollout: OnlineRollout, screens: Path) -> None:
        """Act until the rollout is over or has a step to be answered, with its screenshot in the folder ``screens``."""
        while not rollout.over and rollout.shown is None:
            try:
                await self._next(rollout, screens)
            except EnvironmentFailure as error:
                await self.drop(rollout)
                rollout.failed(error)
        if rollout.over and rollout.device is not None:
            self._used.discard(rollout.device)
            self._free.setdefault(rollout.tasks.environment, []).append(rollout.device)
            rollout.device = None

    async def drop(self, rollout: OnlineRollout) -> None:
        """Close the device of a rollout that does not go on, if it has one."""
        if (device := rollout.device) is not None:
            rollout.device = None
            self._used.discard(device)
            await closed(device)

    async def close(self) -> None:
        """Close all devices; may be called more than once."""
        devices = [*self._used, *(device for free in self._free.values() for device in free)]
        self._used, self._free = set(), {}
        await asyncio.gather(*map(closed, devices))

    async def _next(self, rollout: OnlineRollout, screens: Path) -> None:
        """Begin the task, or carry out the last response; then show the next step, or let the environment judge."""
        attempt = rollout.attempt
        if rollout.device is None or rollout.observation is None:
            rollout.device = await self._device(rollout)
            named = rollout.tasks.named(rollout.task)
            rollout.observation = await within(self._seconds, rollout.device.reset(named, rollout.seed), "to begin a task")
        else:
            if rollout.carried:
                carried = rollout.device.step(rollout.carried)
                rollout.observation = await within(self._seconds, carried, "to carry out an action")
            over = attempt.over(rollout.observation)
            if over or self._every_step:
                score = await within(self._seconds, rollout.device.score(), "to judge")
                rollout.progress.append(score.progress)
                if over:
                    rollout.outcome = attempt.outcome(score, rollout.observation)
                    return
        rollout.shown = attempt.shown(rollout.observation, _kept(rollout.observation.screenshot, screens))

    async def _device(self, rollout: OnlineRollout) -> ABCDevice:
        environment = rollout.tasks.environment
        free = self._free.get(environment)
        device = free.pop() if free else await within(self._seconds, environment.open(), "to start")
        self._used.add(device)
        return device


class Stage:
    """:class:`Devices` for many rollouts at once, with an event loop of its own. Screenshots are written to ``screens``."""

    def __init__(self, screens: Path, seconds: float, *, every_step: bool = False) -> None:
        self.screens = screens
        self._devices = Devices(seconds, every_step=every_step)
        self._runner = asyncio.Runner()
        self._closed = False

    def advance(self, rollouts: Sequence[OnlineRollout]) -> None:
        """Act until each rollout is over or has a step to be answered."""
        self._runner.run(self._advance(rollouts))

    def close(self) -> None:
        """Close all devices; may be called more than once."""
        if not self._closed:
            self._closed = True
            self._runner.run(self._devices.close())
            self._runner.close()

    async def _advance(self, rollouts: Sequence[OnlineRollout]) -> None:
        self.screens.mkdir(parents=True, exist_ok=True)
        await asyncio.gather(*(self._devices.advance(rollout, self.screens) for rollout in rollouts))


def _kept(screenshot: bytes, screens: Path) -> str:
    file = screens / screen_name(screenshot)
    if not file.exists():
        file.write_bytes(screenshot)
    return file.name

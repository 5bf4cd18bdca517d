"""One device of an environment, opened for a piece of work; a device that a test spoils; and every action that devices get."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import pytest

from guieval import actions
from guieval.actions import (
    Answer,
    Ask,
    DeviceAction,
    DoubleClick,
    Drag,
    ExecutableAction,
    Hotkey,
    Hover,
    Point,
    RightClick,
    Scroll,
)
from guieval.errors import EnvironmentFailure, UsageError
from guieval.online import ABCDevice, ABCEnvironment, EnvironmentTask, Observation, Score

Result = TypeVar("Result")
SOMEWHERE, BUTTONS_TOO = Point(1, 1), actions.ActionSpace(buttons=frozenset(actions.BUTTONS))
DEVICE_ACTIONS: tuple[DeviceAction, ...] = (
    *(DoubleClick(point=SOMEWHERE), RightClick(point=SOMEWHERE), Hover(point=SOMEWHERE)),
    *(Drag(start=Point(0, 0), end=Point(1000, 1000)), Drag(end=SOMEWHERE)),
    *(Hotkey(keys=("ctrl", "c")), Hotkey(keys=("ctrl", "'); import os; ('")), Answer(text="7 o'clock"), Ask(text="Which?")),
)
EVERY: tuple[ExecutableAction, ...] = (
    *(action for each in BUTTONS_TOO.examples if (action := actions.executable(each)) is not None),
    *(*DEVICE_ACTIONS, Scroll(point=Point(500, 500), direction="up", distance=250)),
)
"""Every type and button, and the forms that are translated in another way."""


def on(environment: ABCEnvironment, work: Callable[[ABCDevice], Awaitable[Result]]) -> Result:
    """What ``work`` comes to on a device, which is closed after it."""

    async def opened() -> Result:
        device = await environment.open()
        try:
            return await work(device)
        finally:
            await device.close()

    return asyncio.run(opened())


def played(
    environment: ABCEnvironment, task: EnvironmentTask, *steps: Sequence[ExecutableAction], seed: int = 0
) -> tuple[list[Observation], Score]:
    """What a device shows when the task begins and after each step, and its score at the end."""

    async def play(device: ABCDevice) -> tuple[list[Observation], Score]:
        seen = [await device.reset(task, seed)]
        seen += [await device.step(actions) for actions in steps]
        return seen, await device.score()

    return on(environment, play)


def failure(environment: ABCEnvironment, task: EnvironmentTask, *actions: ExecutableAction) -> tuple[str, str]:
    """Which call failed, and how, of beginning the task, carrying out the actions and asking for the score."""
    call = "reset"

    async def play(device: ABCDevice) -> None:
        nonlocal call
        await device.reset(task, 0)
        call = "step"
        if actions:
            await device.step(actions)
        call = "score"
        await device.score()

    with pytest.raises(EnvironmentFailure) as failed:
        on(environment, play)
    return call, str(failed.value)


class Wrapped(ABCDevice):
    """A device, one of whose answers a subclass spoils."""

    def __init__(self, device: ABCDevice) -> None:
        self.device = device

    async def reset(self, task: EnvironmentTask, seed: int) -> Observation:
        return await self.device.reset(task, seed)

    async def step(self, actions: Sequence[ExecutableAction]) -> Observation:
        return await self.device.step(actions)

    async def score(self) -> Score:
        return await self.device.score()

    async def close(self) -> None:
        await self.device.close()


def require_chromium(*packages: str) -> None:
    """Skip the test, or the module that is being imported, where Playwright, another package or Chromium is missing."""
    for package in ("playwright.async_api", *packages):
        pytest.importorskip(package, reason=f"{package.partition('.')[0]} is not installed")
    from guieval.connectors.pages.browser import find_chromium

    try:
        find_chromium("")
    except UsageError as error:
        pytest.skip(str(error), allow_module_level=True)

"""The conformance suite of environments: what every environment promises the runner, tried on a few of its tasks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any

from guieval.actions import Click, Point, Stop, Wait
from guieval.conformance.finding import Violation, run_check
from guieval.data.screenshots import picture
from guieval.online.contract import ABCDevice, ABCEnvironment, EnvironmentTask, Observation
from guieval.steps import Score

TASKS = 3
"""How many tasks are begun: the first, the middle and the last one."""
SECONDS = 120.0
"""The most time for one check."""


def check_environment(environment: ABCEnvironment) -> list[Violation]:
    """The broken promises of an environment; starts devices and does a few steps on them."""
    checks: dict[str, Callable[[ABCEnvironment], Coroutine[Any, Any, None]]] = {
        "tasks": _tasks,
        "observations": partial(_on_tasks, _observations),
        "repeated resets": partial(_on_tasks, _resets),
        "stop": partial(_on_tasks, _stop),
        "two devices": _two_devices,
        "close": _close,
    }
    return [
        finding
        for title, check in checks.items()
        for finding in run_check(environment.name, title, partial(_broken, check), environment)
    ]


class _Broken(Exception):
    """A promise that does not hold, in one sentence."""


def _hold(condition: object, message: str) -> None:
    if not condition:
        raise _Broken(message)


def _broken(check: Callable[[ABCEnvironment], Coroutine[Any, Any, None]], environment: ABCEnvironment) -> list[str]:
    try:
        asyncio.run(asyncio.wait_for(check(environment), SECONDS))
    except _Broken as broken:
        return [str(broken)]
    except TimeoutError:
        return [f"no end within {SECONDS:g} s"]
    return []


async def _on_tasks(
    check: Callable[[ABCEnvironment, ABCDevice, EnvironmentTask], Coroutine[Any, Any, None]], environment: ABCEnvironment
) -> None:
    device = await environment.open()
    try:
        for task in _some(environment.tasks()):
            await check(environment, device, task)
    finally:
        await device.close()


def _some(tasks: Sequence[EnvironmentTask]) -> list[EnvironmentTask]:
    return [tasks[place] for place in sorted({0, len(tasks) // 2, len(tasks) - 1})][:TASKS]


async def _tasks(environment: ABCEnvironment) -> None:
    tasks = environment.tasks()
    _hold(tasks, "there is no task")
    keys = [environment.key(task) for task in tasks]
    repeated = next((key for key in keys if keys.count(key) > 1), None) if len(set(keys)) < len(keys) else None
    _hold(repeated is None, f"task {repeated} is listed twice")
    short = next((task for task in tasks if task.max_steps < 1), None)
    _hold(short is None, f"task {short.id if short else ''} allows no step")
    _hold(list(environment.tasks()) == list(tasks), "a second call of tasks() gives other tasks")
    version = environment.version
    _hold(isinstance(version, str) and version, f"version is {version!r}, not a text")
    identity = dict(environment.identity())
    _hold(all(isinstance(each, str) and each for each in identity.values()), f"identity is {identity!r}, not of texts")


async def _observations(environment: ABCEnvironment, device: ABCDevice, task: EnvironmentTask) -> None:
    _seen(await device.reset(task, 0), task)
    _seen(await device.step([Wait()]), task)
    _seen(await device.step([Click(point=Point(500.0, 500.0)), Wait()]), task)
    score = await device.score()
    _hold(isinstance(score, Score), f"task {task.id}: score() gives {type(score).__name__}, not a Score")
    _hold(not score.success or score.progress == 1, f"task {task.id}: a success has progress {score.progress:g}, not 1")
    _hold(await device.score() == score, f"task {task.id}: a second call of score() differs")


def _seen(observation: Observation, task: EnvironmentTask) -> None:
    _hold(observation.goal.strip(), f"task {task.id}: the goal is empty")
    _hold(not task.goal or observation.goal == task.goal, f"task {task.id}: the goal is not the listed one")
    shown = picture(observation.screenshot)
    _hold(shown.size == tuple(observation.size), f"task {task.id}: size is {observation.size}, the screenshot's {shown.size}")


async def _resets(environment: ABCEnvironment, device: ABCDevice, task: EnvironmentTask) -> None:
    first = [await device.reset(task, 1), await device.step([Wait()])]
    again = [await device.reset(task, 1), await device.step([Wait()])]
    _hold(again[0].goal == first[0].goal, f"task {task.id}: the same seed gives another goal")
    if environment.deterministic:
        _hold(again == first, f"task {task.id}: the environment is declared deterministic, and shows something else")


async def _stop(environment: ABCEnvironment, device: ABCDevice, task: EnvironmentTask) -> None:
    await device.reset(task, 0)
    await device.step([Stop()])
    await device.score()
    _seen(await device.reset(task, 0), task)


async def _two_devices(environment: ABCEnvironment) -> None:
    if environment.most_devices == 1:
        return
    first, last = environment.tasks()[0], environment.tasks()[-1]
    one, other = await asyncio.gather(environment.open(), environment.open())
    try:
        alone, _ = await asyncio.gather(one.reset(first, 0), other.reset(last, 0))
        await other.step([Click(point=Point(500.0, 500.0))])
        after = await one.step([])
        _hold(after.goal == alone.goal, "a step on one device changes the task of another")
        _hold(not environment.deterministic or after == alone, "a step on one device changes the screen of another")
    finally:
        await asyncio.gather(one.close(), other.close())


async def _close(environment: ABCEnvironment) -> None:
    unused = await environment.open()
    await unused.close()
    await unused.close()
    device = await environment.open()
    try:
        _seen(await device.reset(environment.tasks()[0], 0), environment.tasks()[0])
    finally:
        await device.close()

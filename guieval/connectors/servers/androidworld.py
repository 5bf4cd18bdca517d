"""AndroidWorld: tasks in the apps of an Android emulator, by the HTTP server of its repository.

Source: google-research/android_world at d9c569f: ``server/android_server.py`` (the requests),
``android_world/env/json_action.py`` and ``actuation.py`` (the actions), ``android_world/suite_utils.py`` (a task is a success
only if the agent has ended it); Rawles et al., "AndroidWorld", ICLR 2025, arXiv 2405.14573.
"""

from __future__ import annotations

from asyncio import sleep
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, cached_property
from http import HTTPStatus
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from guieval import actions as act
from guieval.connectors.servers.pixels import pixel
from guieval.connectors.servers.server_device import ServedEnvironment, ServerDevice
from guieval.connectors.servers.service import DeviceServers, Service, look_up
from guieval.connectors.servers.virtual_machine import lacks_machine, lacks_servers
from guieval.data.files import read_text
from guieval.data.plugin_options import at_least, seconds
from guieval.errors import EnvironmentFailure, UsageError, nearest
from guieval.online.contract import ABCDevice, EnvironmentTask, Observation
from guieval.steps import SEVERAL, Score

NAME = "the AndroidWorld server"
EXAMPLE = "http://127.0.0.1:5000"
START = "start it with `docker run --privileged -p 5000:5000 android_world:latest`"
SWIPE_MILLISECONDS, DRAG_MILLISECONDS = 500, 4000
"""As in its ``actuation.py``."""
OWN_WAIT, LONGEST_WAIT = 1.0, 60.0
"""The seconds that its server waits for the action to wait, and the most that are waited in all."""


class TaskType(NamedTuple):
    """What AndroidWorld says about a type of task, and its server does not."""

    complexity: float
    difficulty: str
    tags: tuple[str, ...]

    @property
    def budget(self) -> int:
        """The most steps, as in its ``_allocate_step_budget``."""
        return int(10 * self.complexity)


@cache
def task_types() -> dict[str, TaskType]:
    """The 116 types of ``androidworld_tasks.txt``, which names its source, by name."""
    lines = read_text(Path(__file__).with_name("androidworld_tasks.txt")).splitlines()
    rows = (line.split() for line in lines if not line.startswith("#"))
    return {name: TaskType(float(complexity), difficulty, tuple(tags)) for name, complexity, difficulty, *tags in rows}


class StatedType(BaseModel):
    """What the server of ``androidworld_container.py`` states of a type of task."""

    complexity: float = Field(gt=0, le=1000)
    apps: tuple[str, ...]


async def stated(service: Service) -> Mapping[str, StatedType]:
    """By type of task, from a server of ``androidworld_container.py``; empty for AndroidWorld's plain one."""
    status, content = await service.ask("GET", "/suite/tasks")
    if status == HTTPStatus.NOT_FOUND:
        return {}
    try:
        return TypeAdapter(dict[str, StatedType]).validate_python(content if status < HTTPStatus.BAD_REQUEST else None)
    except ValidationError:
        raise service.wrong("/suite/tasks", content, "complexity and apps of each type of task") from None


class AndroidWorld(ServedEnvironment):
    """The task types of the servers at ``url`` (several, separated by commas, serve a device each).

    A seed chooses one of a type's instances: its number modulo theirs. With ``combinations`` above 0, the suite is drawn again:
    so many instances of each type of ``family``, from ``suite_seed``; otherwise it is as the server drew it. A task may take
    AndroidWorld's own number of steps (:func:`task_types`), or ``max_steps`` if that is given. If the server is that of
    ``androidworld_container.py``, scrolls begin at their place, and drags are carried out.
    Before the server waits for the screen to stand still, ``settle`` seconds pass after a reset and ``wait`` after actions.
    """

    name = "androidworld"
    title = "AndroidWorld"
    source = "its own server: https://github.com/google-research/android_world"
    licence = "Apache-2.0"
    waits = MappingProxyType({"after_reset": "settle", "after_action": "wait"})

    def __init__(
        self,
        *,
        url: str = "",
        max_steps: int | None = None,
        combinations: int = 0,
        suite_seed: int = 42,
        family: str = "android_world",
        settle: float = 0.0,
        wait: float = 0.0,
    ) -> None:
        at_least(1, max_steps=1 if max_steps is None else max_steps)
        at_least(0, combinations=combinations)
        seconds(60, settle=settle, wait=wait)
        self.servers = DeviceServers(url, self.name, EXAMPLE)
        self.settle, self.wait = settle, wait
        self.max_steps, self.combinations = max_steps, combinations
        self.suite_seed, self.family = suite_seed, family

    @classmethod
    def lacks(cls, options: Mapping[str, Any]) -> Iterator[str]:
        yield from lacks_machine("android_world:latest", "build it in a checkout with docker build -t android_world:latest .")
        yield from lacks_servers(DeviceServers(options.get("url") or EXAMPLE, cls.name, EXAMPLE).addresses, START)

    @classmethod
    def published_tasks(cls, options: Mapping[str, Any]) -> int | None:
        return len(task_types()) if options.get("family", "android_world") == "android_world" else None

    @property
    def version(self) -> str:
        suite = f"{self.family}-{self.combinations}x-seed{self.suite_seed}" if self.combinations else "server-suite"
        return f"androidworld-{suite}-{len(self._types)}types{'-gestures' if self._details else ''}"

    def tasks(self) -> Sequence[EnvironmentTask]:
        return tuple(self._task(name, task_types().get(name)) for name in self._types)

    def _task(self, name: str, known: TaskType | None) -> EnvironmentTask:
        stated = self._details.get(name)
        if known is None and stated is not None:
            known = TaskType(stated.complexity, "", ())
        if known is None and self.max_steps is None:
            raise UsageError(
                f"the step budget of AndroidWorld's task {name!r} is not known{nearest(name, task_types())}; "
                "give one for all tasks: --set bench_options.max_steps=30"
            )
        if known is None:  # of another family
            return EnvironmentTask(name, self.max_steps or 0)
        groups = {"difficulty": known.difficulty, "tags": SEVERAL.join(known.tags or ("untagged",))} if known.difficulty else {}
        if stated is not None:
            groups["apps"] = SEVERAL.join(stated.apps)
        steps = known.budget if self.max_steps is None else self.max_steps
        return EnvironmentTask(name, steps, groups=groups, complexity=known.complexity)

    @property
    def _types(self) -> list[str]:
        return self._suite[0]

    @property
    def _details(self) -> Mapping[str, StatedType]:
        return self._suite[1]

    @cached_property
    def _suite(self) -> tuple[list[str], Mapping[str, StatedType]]:
        return look_up(NAME, self.servers.addresses[0], self._listed, START)

    async def _listed(self, service: Service) -> tuple[list[str], Mapping[str, StatedType]]:
        await self.draw(service)
        content = await service.get("/suite/task_list", max_index=-1)
        types = content.get("task_list") if isinstance(content, dict) else None
        if not isinstance(types, list) or not types or not all(isinstance(kind, str) for kind in types):
            raise service.wrong("/suite/task_list", content, "a list of task types")
        return types, await stated(service)

    async def draw(self, service: Service) -> None:
        """Have a server draw its suite, if that is asked for."""
        if self.combinations:
            suite: dict[str, str | int] = {
                "n_task_combinations": self.combinations,
                "seed": self.suite_seed,
                "task_family": self.family,
            }
            await service.get("/suite/reinitialize", **suite)

    async def open(self) -> ABCDevice:
        return await _Emulator(self).started()


class AndroidScreen(ServerDevice):
    """The emulator of one of ``servers``; ``settle`` seconds pass after a reset and ``wait`` after actions."""

    def __init__(self, servers: DeviceServers, settle: float, wait: float) -> None:
        super().__init__(NAME, servers)
        self._settle, self._wait = settle, wait
        self._stopped = self._gestures = False

    async def start(self) -> None:
        await self.service.get("/health")
        self._gestures = bool(await stated(self.service))

    async def home(self) -> None:
        """Begin anew at the home screen; apps keep what is in them."""
        self._stopped = False
        await self.service.post("/reset", go_home="true")

    async def step(self, actions: Sequence[act.ExecutableAction]) -> Observation:
        if self.seen is None:
            raise RuntimeError("reset has not been called")
        for action in actions:
            if isinstance(action, act.Stop):
                self._stopped = True
                break
            if self._gestures and (body := gesture(action, self.seen.size)) is not None:
                await self.service.post("/gesture", body=body)
            elif (body := android_action(action, self.seen.size)) is not None:
                await self.service.post("/execute_action", body=body)
            if isinstance(action, act.Wait):
                await sleep(max(0.0, min(action.duration / 1000, LONGEST_WAIT) - OWN_WAIT))
        return await self.observe(self.seen.goal, self._wait) if actions else self.seen

    async def observe(self, goal: str, after: float | None = None) -> Observation:
        """The screen ``after`` so many seconds, by default those after a reset."""
        await sleep(self._settle if after is None else after)
        pixels = await self.service.screenshot("/screenshot", "pixels", wait_to_stabilize="true")
        return await self.observed(goal, pixels)


class _Emulator(AndroidScreen):
    """An emulator whose server begins and judges AndroidWorld's tasks."""

    def __init__(self, environment: AndroidWorld) -> None:
        super().__init__(environment.servers, environment.settle, environment.wait)
        self._environment = environment
        self._task: dict[str, str | int] | None = None

    async def start(self) -> None:
        await super().start()
        await self._environment.draw(self.service)

    async def reset(self, task: EnvironmentTask, seed: int) -> Observation:
        await self.tear_down()
        length = (await self._fields("/suite/task_length", task_type=task.id)).get("length")
        if not isinstance(length, int) or length < 1:
            raise EnvironmentFailure(f"{NAME} has {length!r} instances of task {task.id!r}; expected at least 1")
        self._task = {"task_type": task.id, "task_idx": seed % length}
        await self.home()
        try:
            await self.service.post("/task/initialize", **self._task)
        except EnvironmentFailure:  # as after a run that was killed: the task has begun already
            await self.service.post("/task/tear_down", **self._task)
            await self.service.post("/task/initialize", **self._task)
        return await self.observe(str((await self._fields("/task/goal", **self._task)).get("goal") or ""))

    async def score(self) -> Score:
        assert self._task is not None
        content = await self._fields("/task/score", **self._task)
        value = self.score_in("/task/score", content)
        reason = f"AndroidWorld's score is {value:g}"
        if value == 1 and not self._stopped:
            reason += ", but the agent has not ended the task"
        return Score(success=value == 1 and self._stopped, progress=float(value), reason=reason, needs_stop=True)

    async def tear_down(self) -> None:
        task, self._task, self.seen = self._task, None, None
        if task is not None:
            await self.service.post("/task/tear_down", **task)

    async def _fields(self, path: str, **params: str | int) -> dict[str, Any]:
        content = await self.service.get(path, **params)
        if not isinstance(content, dict):
            raise self.service.wrong(path, content, "an object")
        return content


def gesture(action: act.ExecutableAction, size: tuple[int, int]) -> dict[str, Any] | None:
    """The body of ``/gesture`` for a scroll or a drag on a screen of ``size`` in pixels; ``None`` for other actions."""
    if isinstance(action, act.Scroll):
        kind, (start, end) = "swipe", act.scroll_path(action)
    elif isinstance(action, act.Drag) and isinstance(action.start, act.Point):
        kind, start, end = "drag", action.start, action.end
    else:
        return None
    time = SWIPE_MILLISECONDS if kind == "swipe" else DRAG_MILLISECONDS
    return {"kind": kind, "start": pixel(start, size), "end": pixel(end, size), "milliseconds": time}


def android_action(action: act.ExecutableAction, size: tuple[int, int]) -> dict[str, Any] | None:
    """AndroidWorld's JSON of an action on a screen of ``size`` in pixels; ``None`` for one that it does not have.

    Its scroll begins in the middle of the screen and names the direction in which the view moves, opposite to the finger's. It
    presses ENTER after typing.
    """
    match action:
        case act.Click() | act.DoubleClick() | act.LongPress():
            kind = {"CLICK": "click", "DOUBLE_CLICK": "double_tap", "LONG_PRESS": "long_press"}[action.type]
            x, y = pixel(action.point, size)
            return {"action_type": kind, "x": x, "y": y}
        case act.Scroll():
            return {"action_type": "scroll", "direction": act.OPPOSITE[action.direction]}
        case act.Type():
            return {"action_type": "input_text", "text": action.text}
        case act.Open():
            return {"action_type": "open_app", "app_name": action.app}
        case act.Press(button="BACK" | "HOME" | "ENTER" as button):
            return {"action_type": "keyboard_enter" if button == "ENTER" else f"navigate_{button.lower()}"}
        case act.Wait():
            return {"action_type": "wait"}
        case act.Answer():
            return {"action_type": "answer", "text": action.text}
    return None

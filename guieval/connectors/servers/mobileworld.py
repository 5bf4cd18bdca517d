"""MobileWorld: tasks across the apps of an Android emulator, by the HTTP server of its containers.

Source: Tongyi-MAI/MobileWorld at 6a4dec2, below ``src/mobile_world``: ``core/server.py`` (the requests),
``runtime/utils/models.py`` (the actions) and ``core/runner.py`` (the order of requests, that an answer ends a task, and that a
score above 0.99 is a success). As there, agents without tools are not given the tasks that need tools of an MCP server.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import cached_property
from types import MappingProxyType
from typing import Any

from guieval import actions as act
from guieval.connectors.servers.androidworld import android_action
from guieval.connectors.servers.pixels import pixel
from guieval.connectors.servers.server_device import ServedEnvironment, ServerDevice
from guieval.connectors.servers.service import DeviceServers, Service, look_up
from guieval.data.plugin_options import at_least, seconds
from guieval.online.contract import ABCDevice, EnvironmentTask, Observation
from guieval.steps import SEVERAL, Score

NAME = "the MobileWorld server"
EXAMPLE = "http://127.0.0.1:6800"
START = "start it with `uv run mw env run`"
TOOLS = "agent-mcp"
"""The tag of tasks that need tools."""
USER = "agent-user-interaction"
"""The tag of tasks that cannot be done without a question to the user, whom the server simulates."""


class MobileWorld(ServedEnvironment):
    """The tasks of the servers at ``url`` (several, separated by commas, serve a device each).

    ``device`` is the name of the emulator, ``wait`` the seconds between an action and the next screenshot. A task is a success
    with a score above 0.99. The seed changes nothing. The answer to a question to the user follows the goal from then on.
    """

    name = "mobileworld"
    title = "MobileWorld"
    source = "its own server: https://github.com/Tongyi-MAI/MobileWorld"
    licence = "Apache-2.0"
    waits = MappingProxyType({"after_action": "wait"})

    def __init__(self, *, url: str = "", max_steps: int = 50, device: str = "emulator-5554", wait: float = 1.0) -> None:
        at_least(1, max_steps=max_steps)
        seconds(60, wait=wait)
        self.servers = DeviceServers(url, self.name, EXAMPLE)
        self.max_steps, self.device, self.wait = max_steps, device, wait

    @property
    def version(self) -> str:
        return f"mobileworld-{len(self._listed)}tasks-wait{self.wait:g}"

    def tasks(self) -> Sequence[EnvironmentTask]:
        return self._listed

    @cached_property
    def _listed(self) -> tuple[EnvironmentTask, ...]:
        return look_up(NAME, self.servers.addresses[0], self._list, START)

    async def _list(self, service: Service) -> tuple[EnvironmentTask, ...]:
        content = await service.get("/task/list")
        try:
            named = [(str(task["name"]), sorted(map(str, task["tags"])), sorted(map(str, task["apps"]))) for task in content]
        except (TypeError, KeyError):
            raise service.wrong("/task/list", content, "a list of tasks with name, tags and apps") from None
        if not named:
            raise service.wrong("/task/list", content, "at least one task")
        return tuple(
            EnvironmentTask(
                name,
                self.max_steps,
                groups={
                    "tags": SEVERAL.join(tags),
                    "apps": SEVERAL.join(apps),
                    "user": "has to be asked" if USER in tags else "not needed",
                },
            )
            for name, tags, apps in named
            if TOOLS not in tags
        )

    async def open(self) -> ABCDevice:
        return await _MobileWorldEmulator(self).started()


class _MobileWorldEmulator(ServerDevice):
    def __init__(self, environment: MobileWorld) -> None:
        super().__init__(NAME, environment.servers)
        self._environment = environment
        self._task = self._goal = ""
        self._over = False

    async def start(self) -> None:
        await self.service.post("/init", body={"device": self._environment.device})

    async def reset(self, task: EnvironmentTask, seed: int) -> Observation:
        await self.tear_down()
        goal = await self.service.get("/task/goal", task_name=task.id)
        if not isinstance(goal, str) or not goal:
            raise self.service.wrong("/task/goal", goal, "a text")
        self._task, self._goal, self._over = task.id, goal, False
        await self.service.post("/task/init", body=self._request())
        return await self._observe()

    async def step(self, actions: Sequence[act.ExecutableAction]) -> Observation:
        if self.seen is None:
            raise RuntimeError("reset has not been called")
        for action in actions:
            if isinstance(action, act.Stop) or self._over:
                break
            if (body := mobile_action(action, self.seen.size)) is not None:
                done = await self.service.post("/step", body={"device": self._environment.device, "action": body})
                if isinstance(action, act.Ask):
                    self._goal += f"\nYou asked the user: {action.text}\nThe user answered: {self._said(done)}"
            self._over = isinstance(action, act.Answer)
        return await self._observe() if actions else self.seen

    async def score(self) -> Score:
        status, content = await self.service.ask("GET", "/task/eval", body=self._request())
        value = self.score_in("/task/eval", content, right=status < 400)
        reason = content.get("reason") or f"MobileWorld's score is {value:g}"
        return Score.of_reward(float(value), success=value > 0.99, reason=str(reason))

    def _said(self, content: Any) -> str:
        """The user's answer in the server's to a question."""
        said = content.get("result") if isinstance(content, dict) else None
        if not isinstance(said, str):
            raise self.service.wrong("/step", content, "the user's answer")
        return said

    def _request(self) -> dict[str, str]:
        return {"task_name": self._task, "req_device": self._environment.device}

    async def tear_down(self) -> None:
        if self._task:
            body = self._request()
            self._task, self.seen = "", None
            await self.service.post("/task/tear_down", body=body)

    async def _observe(self) -> Observation:
        await asyncio.sleep(self._environment.wait)
        device = self._environment.device
        value = await self.service.screenshot("/screenshot", "b64_png", device=device, return_b64="true")
        return await self.observed(self._goal, value, over=self._over)


def mobile_action(action: act.ExecutableAction, size: tuple[int, int]) -> dict[str, Any] | None:
    """MobileWorld's JSON of an action on a screen of ``size`` in pixels; ``None`` for one that it does not have.

    It is AndroidWorld's but for swipes, which begin at their point and go where the finger goes.
    """
    match action:
        case act.Scroll(distance=None):
            x, y = pixel(action.point, size)
            return {"action_type": "swipe", "x": x, "y": y, "direction": action.direction}
        case act.Scroll():
            return _drag(*act.scroll_path(action), size)
        case act.Drag(start=act.Point() as start):
            return _drag(start, action.end, size)
        case act.Ask():
            return {"action_type": "ask_user", "text": action.text}
    return android_action(action, size)


def _drag(start: act.Point, end: act.Point, size: tuple[int, int]) -> dict[str, Any]:
    (x1, y1), (x2, y2) = pixel(start, size), pixel(end, size)
    return {"action_type": "drag", "start_x": x1, "start_y": y1, "end_x": x2, "end_y": y2}

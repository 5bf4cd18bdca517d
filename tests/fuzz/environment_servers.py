"""What servers of environments answer: a task goes on, or the attempt ends in a sentence."""

from __future__ import annotations

import asyncio
import base64
import io
import json
from pathlib import Path
from random import Random
from typing import Any, ClassVar

import numpy as np
from aiohttp import web
from PIL import Image

from guieval.actions import Click, Point
from guieval.connectors.servers.androidworld import AndroidWorld
from guieval.connectors.servers.mobileworld import MobileWorld
from guieval.connectors.servers.openenv import OpenEnv
from guieval.errors import EnvironmentFailure, UsageError
from guieval.online import ABCEnvironment
from guieval.online.attempt import closed
from tests.online.in_thread import InThread

from . import mutations
from .engine import Target, sentence

_PIXELS = np.arange(8 * 5 * 3, dtype=np.uint8).reshape(8, 5, 3)
_STREAM = io.BytesIO()
Image.fromarray(_PIXELS).save(_STREAM, "PNG")
_BASE64 = base64.b64encode(_STREAM.getvalue()).decode()
_SEEN = {"observation": {"goal": "do it", "screenshot": _PIXELS.tolist()}, "reward": 0.0, "done": False, "metadata": {}}
_ANSWERS: dict[str, dict[str, Any]] = {
    "androidworld": {
        "/health": {"status": "success"},
        "/suite/task_list": {"task_list": ["One", "Two"]},
        "/suite/task_length": {"length": 2},
        "/task/goal": {"goal": "do it"},
        "/task/score": {"score": 1.0},
        "/screenshot": {"pixels": _PIXELS.tolist()},
    },
    "mobileworld": {
        "/task/list": [{"name": "One", "tags": ["a"], "apps": ["Mail"]}],
        "/task/goal": "do it",
        "/task/eval": {"score": 1.0, "reason": "done"},
        "/screenshot": {"b64_png": _BASE64},
    },
    "openenv": {
        "/schema": {"action": {"properties": {"type": {}}}},
        "/metadata": {"name": "e", "version": "1"},
        "/list_environments": ["e"],
        "/e/splits": [{"name": "all", "type": "train"}],
        "/e/tasks": {"tasks": [{"id": "a", "goal": "g", "max_steps": 3, "groups": {"x": "y"}}]},
        "observation": {"type": "observation", "data": _SEEN},
        "state": {"type": "state", "data": {"score": {"success": True, "progress": 1.0, "reason": "done"}}},
    },
}
_KINDS: tuple[type[AndroidWorld | MobileWorld | OpenEnv], ...] = (AndroidWorld, MobileWorld, OpenEnv)
_STATUSES = (200, 200, 200, 200, 201, 204, 301, 307, 404, 500)


class EnvironmentServers(Target):
    name: ClassVar[str] = "environment-servers"

    def __init__(self, folder: Path, real: Path | None) -> None:
        self._answers: dict[str, bytes] = {}
        self._status: dict[str, int] = {}
        app = web.Application()
        app.router.add_get("/ws", self._socket)
        app.router.add_route("*", "/{path:.*}", self._answer)
        self._server = InThread(app)
        self._server.__enter__()

    def close(self) -> None:
        self._server.__exit__(None, None, None)

    def check(self, dice: Random) -> None:
        kind = dice.choice(_KINDS)
        self._answers = {path: json.dumps(answer).encode() for path, answer in _ANSWERS[kind.name].items()}
        self._status = {}
        for path in dice.sample(sorted(self._answers), dice.choice((1, 1, 2))):
            if dice.random() < 0.7:
                changed = mutations.value(dice, _ANSWERS[kind.name][path])
                self._answers[path] = mutations.written(dice, changed, lines=False)
            else:
                self._answers[path] = mutations.data(dice, self._answers[path])
            self._status[path] = dice.choice(_STATUSES)
        try:
            asyncio.run(self._play(kind(url=self._server.address, max_steps=3)))
        except (EnvironmentFailure, UsageError) as error:
            sentence(error)

    async def _play(self, environment: ABCEnvironment) -> None:
        tasks = environment.tasks()
        if not tasks:
            return
        if isinstance(environment, MobileWorld):
            environment.wait = 0.0
        device = await environment.open()
        try:
            seen = await device.reset(tasks[0], 1)
            if not seen.over:
                await device.step([Click(point=Point(500, 500))])
            await device.score()
        finally:
            await closed(device)

    async def _answer(self, request: web.Request) -> web.Response:
        body = self._answers.get(request.path, b"{}" if not request.path.startswith("/e") else b"[]")
        status = self._status.get(request.path, 200)
        headers = {"Location": "http://127.0.0.1:9/"} if 300 <= status < 400 else {}
        return web.Response(status=status, body=None if status == 204 else body, headers=headers)

    async def _socket(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        async for message in socket:
            kind = json.loads(message.data)["type"]
            if kind == "close":
                break
            answer = self._answers["state" if kind == "state" else "observation"]
            await socket.send_str(answer.decode("utf-8", "replace"))
        return socket

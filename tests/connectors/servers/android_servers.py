"""Small servers with the published interfaces of AndroidWorld and MobileWorld, and a screen that counts actions behind them.

A task is done when the last action was a click in the right half of the screen, or the answer "right", and half done when it
was another click.
"""

from __future__ import annotations

import asyncio
import base64
import io
from collections.abc import Callable
from typing import Any

import numpy as np
from aiohttp import web
from PIL import Image

SIZE = (36, 80)
FIELDS = {
    **{kind: {"x", "y"} for kind in ("click", "double_tap", "long_press")},
    **{"scroll": {"direction"}, "swipe": {"direction"}, "input_text": {"text"}, "open_app": {"app_name"}, "answer": {"text"}},
    **{kind: set() for kind in ("navigate_back", "navigate_home", "keyboard_enter", "wait")},
}


class Emulator:
    """What both servers have in common. ``failures`` are calls, by path, that break the server's answers."""

    def __init__(self) -> None:
        self.actions: list[dict[str, Any]] = []
        self.calls: list[str] = []
        self.running: set[Any] = set()
        self.failures: dict[str, Callable[[], Any]] = {}

    @web.middleware
    async def notice(self, request: web.Request, handler: Any) -> Any:
        self.calls.append(request.path)
        if request.path in self.failures:
            broken = self.failures[request.path]()
            if asyncio.iscoroutine(broken):
                broken = await broken
            if broken == "hang up":
                assert request.transport is not None
                request.transport.abort()
                return web.Response()
            if broken is not None:
                return broken
        try:
            return await handler(request)
        except (KeyError, IndexError, RuntimeError, ValueError, AssertionError):
            return web.Response(status=500, text="Internal Server Error")

    def serving(self, get: dict[str, Any], post: dict[str, Any]) -> web.Application:
        app = web.Application(middlewares=[self.notice])
        app.add_routes([web.get(path, handler) for path, handler in get.items()])
        app.add_routes([web.post(path, handler) for path, handler in post.items()])
        return app

    def image(self) -> Image.Image:
        return Image.new("RGB", SIZE, (len(self.actions) % 256, 0, 200))

    def done(self) -> float:
        last = self.actions[-1] if self.actions else {}
        if last.get("action_type") == "answer":
            return float(last["text"] == "right")
        return 0.0 if last.get("action_type") != "click" else 1.0 if last["x"] >= SIZE[0] / 2 else 0.5

    def take(self, action: dict[str, Any], extra: dict[str, set[str]]) -> None:
        kind = action["action_type"]
        given = {name for name, value in action.items() if value is not None} - {"action_type"}
        assert given == {**FIELDS, **extra}[kind], action
        assert 0 <= action.get("x", 0) < SIZE[0] and 0 <= action.get("y", 0) < SIZE[1]
        self.actions.append(action)


class AndroidWorldServer(Emulator):
    """``/suite`` has two task types; an instance that has begun cannot begin again before its end.

    With ``gestures`` it has the requests of ``androidworld_container.py`` too, and a third type, of another family.
    """

    def __init__(self, *families: str, gestures: bool = False) -> None:
        super().__init__()
        self.gestures = gestures
        self.families = families or ("android_world",)
        self.suite = {"OpenAppTaskEval": 2, "SystemBrightnessMax": 1} | ({"ClickButton": 1} if gestures else {})
        self.seed = 42

    def app(self) -> web.Application:
        suite = {"task_list": self.task_list, "task_length": self.task_length, "reinitialize": self.reinitialize}
        get = {"/health": self.right, "/screenshot": self.screenshot, "/task/score": self.score, "/task/goal": self.goal}
        post = {"/task/initialize": self.initialize, "/task/tear_down": self.tear_down, "/execute_action": self.execute}
        if self.gestures:
            get["/suite/tasks"], post["/gesture"] = self.tasks, self.gesture
        return self.serving({f"/suite/{name}": each for name, each in suite.items()} | get, post | {"/reset": self.reset})

    def instance(self, request: web.Request) -> tuple[str, int]:
        kind, number = request.query["task_type"], int(request.query["task_idx"])
        assert number < self.suite[kind]
        return kind, number

    async def right(self, _: web.Request) -> web.Response:
        return web.json_response({"status": "success"})

    async def reset(self, request: web.Request) -> web.Response:
        assert request.query["go_home"] == "true"
        self.actions.clear()
        return await self.right(request)

    async def screenshot(self, request: web.Request) -> web.Response:
        assert request.query["wait_to_stabilize"] in ("true", "false")
        return web.json_response({"pixels": np.asarray(self.image()).tolist()})

    async def execute(self, request: web.Request) -> web.Response:
        self.take(await request.json(), {})
        return await self.right(request)

    async def tasks(self, _: web.Request) -> web.Response:
        return web.json_response({name: {"complexity": 1.2, "apps": ["settings"]} for name in self.suite})

    async def gesture(self, request: web.Request) -> web.Response:
        self.actions.append({"action_type": "gesture", **await request.json()})
        return await self.right(request)

    async def task_list(self, request: web.Request) -> web.Response:
        assert request.query["max_index"] == "-1"
        return web.json_response({"task_list": list(self.suite)})

    async def task_length(self, request: web.Request) -> web.Response:
        return web.json_response({"length": self.suite[request.query["task_type"]]})

    async def reinitialize(self, request: web.Request) -> web.Response:
        if request.query["task_family"] not in self.families:
            return web.json_response({"detail": f"Invalid task family: {request.query['task_family']}"}, status=400)
        self.seed = int(request.query["seed"])
        self.suite = dict.fromkeys(self.suite, int(request.query["n_task_combinations"]))
        return await self.right(request)

    async def initialize(self, request: web.Request) -> web.Response:
        if self.instance(request) in self.running:
            raise RuntimeError("initialize_task() is already called.")
        self.running.add(self.instance(request))
        return await self.right(request)

    async def tear_down(self, request: web.Request) -> web.Response:
        self.running.discard(self.instance(request))
        return await self.right(request)

    async def score(self, request: web.Request) -> web.Response:
        assert self.instance(request) in self.running
        return web.json_response({"score": self.done()})

    async def goal(self, request: web.Request) -> web.Response:
        kind, number = self.instance(request)
        return web.json_response({"goal": f"{kind} {number} of seed {self.seed}"})


class MobileWorldServer(Emulator):
    """One device, ``emulator-5554``; three tasks, one of which needs tools."""

    TASKS = (
        {"name": "SetAlarm", "tags": ["lang-en"], "apps": ["Clock"]},
        {"name": "SearchPapers", "tags": ["agent-mcp", "lang-en"], "apps": ["MCP-arXiv"]},
        {"name": "AskWhen", "tags": ["agent-user-interaction", "lang-en"], "apps": ["Clock", "Calendar"]},
    )

    def app(self) -> web.Application:
        get = {"/task/list": self.task_list, "/task/goal": self.goal, "/task/eval": self.evaluate}
        post = {"/init": self.init, "/step": self.step, "/task/init": self.task_init, "/task/tear_down": self.tear_down}
        return self.serving(get | {"/screenshot": self.screenshot}, post)

    async def init(self, request: web.Request) -> web.Response:
        assert (await request.json())["device"] == "emulator-5554"
        return web.json_response({"device": "emulator-5554", "viewport_size": SIZE})

    async def screenshot(self, request: web.Request) -> web.Response:
        assert request.query["device"] == "emulator-5554" and request.query["return_b64"] == "true"
        stream = io.BytesIO()
        self.image().save(stream, "PNG")
        return web.json_response({"path": "/tmp/1.png", "b64_png": base64.b64encode(stream.getvalue()).decode()})

    async def step(self, request: web.Request) -> web.Response:
        asked = await request.json()
        assert asked["device"] == "emulator-5554" and self.running
        drag = {"start_x", "start_y", "end_x", "end_y"}
        self.take(asked["action"], {"swipe": {"x", "y", "direction"}, "drag": drag, "ask_user": {"text"}})
        result = "At seven." if asked["action"]["action_type"] == "ask_user" else "OK"
        return web.json_response({"device": asked["device"], "action": asked["action"], "result": result})

    async def task_list(self, _: web.Request) -> web.Response:
        return web.json_response(self.TASKS)

    async def goal(self, request: web.Request) -> web.Response:
        return web.json_response(f"Do {self.known(request.query['task_name'])}.")

    async def task_init(self, request: web.Request) -> web.Response:
        self.actions.clear()
        self.running = {self.known(await self.task(request))}
        return web.json_response("OK")

    async def evaluate(self, request: web.Request) -> web.Response:
        assert self.running == {await self.task(request)}
        return web.json_response({"score": self.done(), "reason": "the last click decides"})

    async def tear_down(self, request: web.Request) -> web.Response:
        self.running.discard(self.known(await self.task(request)))
        return web.json_response("OK")

    async def task(self, request: web.Request) -> str:
        asked = await request.json()
        assert asked["req_device"] == "emulator-5554"
        return str(asked["task_name"])

    def known(self, name: str) -> str:
        return next(task["name"] for task in self.TASKS if task["name"] == name)

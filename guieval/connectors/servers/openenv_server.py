"""Serves an environment to clients of OpenEnv, so that trainers can train in it: a session with its own device per connection.

The endpoints are those of the Python package openenv 0.10.0 (``openenv/core/env_server/http_server.py``): the WebSocket
``/ws``; ``/health``, ``/metadata`` and ``/schema``; and the Task API, by which a client finds the tasks. Its stateless
``/reset`` and ``/step`` over HTTP are left out: there an episode ends with its first request.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from guieval.connectors.servers.openenv_session import (
    ACTION,
    SPLIT,
    EnvironmentSession,
    ServedObservation,
    ServedState,
    error_answer,
    task_name,
)
from guieval.data.loopback import LOOPBACK_HOST
from guieval.errors import UsageError
from guieval.online.contract import ABCEnvironment, EnvironmentTask

if TYPE_CHECKING:
    from aiohttp import web
    from aiohttp.typedefs import Handler

MOST_BYTES = 1 << 20
"""The most bytes of a client's message."""
HEARTBEAT_SECONDS = 600.0
"""How often a silent client is asked whether it is there; a trainer may be busy for minutes."""
WAITING = 16
"""The most messages of a client that wait for their answers."""


def serve(
    environment: ABCEnvironment, *, host: str, port: int, sessions: int, timeout: float, say: Callable[[str], None]
) -> None:
    """Serve until interrupted; ``say`` gets the address first.

    At most ``sessions`` clients at once; ``timeout`` is the most seconds for an action. Raises :class:`UsageError` if the
    port is taken.
    """
    from aiohttp import web

    only_here = host in ("localhost", "::1") or host.startswith("127.")
    app = EnvironmentServer(environment, sessions=sessions, timeout=timeout, only_here=only_here).app()
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family)
    except (OSError, OverflowError) as error:
        raise UsageError(f"cannot listen on {host}:{port}: {getattr(error, 'strerror', None) or error}") from None
    shown = f"[{host}]" if ":" in host else host
    say(f"{environment.name} ({len(environment.tasks()):,} tasks) at ws://{shown}:{listener.getsockname()[1]}/ws")
    web.run_app(app, sock=listener, print=None, access_log=None, shutdown_timeout=5)


class EnvironmentServer:
    """The application for ``environment``; with ``only_here``, it is asked under the names of loopback alone."""

    def __init__(
        self, environment: ABCEnvironment, *, sessions: int = 8, timeout: float = 120.0, only_here: bool = True
    ) -> None:
        self.only_here = only_here
        self.environment = environment
        self.tasks = tuple(environment.tasks())
        if not self.tasks:
            raise UsageError(f"environment {environment.name!r} has no task")
        self.sessions = min(sessions, environment.most_devices or sessions)
        self.timeout = timeout
        self._sockets: set[web.WebSocketResponse] = set()

    def app(self) -> web.Application:
        """The application, for aiohttp's runners."""
        from aiohttp import web

        @web.middleware
        async def checked(request: web.Request, handler: Handler) -> web.StreamResponse:
            self._check_origin(request)
            return await handler(request)

        app = web.Application(client_max_size=MOST_BYTES, middlewares=[checked])
        about = {
            "/health": {"status": "healthy"},
            "/metadata": self._metadata(),
            "/schema": self._schema(),
            "/list_environments": [self.environment.name],
            f"/{self.environment.name}/splits": [{"name": SPLIT, "type": "train"}],
        }
        for path, content in about.items():
            app.router.add_get(path, _always(content))
        app.router.add_post(f"/{self.environment.name}/{{what}}", self._task_request)
        app.router.add_get("/ws", self._connection)
        app.on_shutdown.append(self._hang_up)
        return app

    def _metadata(self) -> dict[str, Any]:
        environment = self.environment
        return {
            "name": environment.name,
            "description": f"{environment.title}, served by guieval: {len(self.tasks):,} tasks, screenshots, unified actions",
            "readme_content": None,
            "version": environment.version,
            "author": None,
            "documentation_url": None,
        }

    @staticmethod
    def _schema() -> dict[str, Any]:
        return {
            "action": ACTION.json_schema(),
            "observation": ServedObservation.model_json_schema(),
            "state": ServedState.model_json_schema(),
        }

    async def _task_request(self, request: web.Request) -> web.Response:
        """The Task API: ``tasks``, ``num_tasks``, ``task`` and ``task_range`` of the split."""
        from aiohttp import web

        what = request.match_info["what"]
        try:
            asked = await request.json()
            split = asked["split"]
            first, last = asked.get("start"), asked.get("stop")
            listed = [self._task(index) for index in range(len(self.tasks))[slice(first, last)]]
            number = asked["index"] if what == "task" else 0
            one = self._task(range(len(self.tasks))[number])
        except (ValueError, KeyError, TypeError, AttributeError, IndexError):
            return web.json_response({"detail": "the request is not a split with a valid index, start or stop"}, status=400)
        if split != SPLIT:
            return web.json_response({"detail": f"unknown split {split!r:.80}; expected {SPLIT!r}"}, status=400)
        answers: dict[str, dict[str, Any]] = {
            "tasks": {"tasks": listed, "env_name": self.environment.name},
            "num_tasks": {"num_tasks": len(self.tasks)},
            "task": {"task": one},
            "task_range": {"tasks": listed},
        }
        if what not in answers:
            raise web.HTTPNotFound
        return web.json_response(answers[what])

    def _task(self, index: int) -> dict[str, Any]:
        task: EnvironmentTask = self.tasks[index]
        return {
            "id": task_name(task),
            "index": index,
            "split": SPLIT,
            "goal": task.goal,
            "max_steps": task.max_steps,
            "groups": dict(task.groups),
        }

    def _check_origin(self, request: web.Request) -> None:
        """Refuse a name that was bound to this machine, and pages of other sites.

        A server that listens beyond loopback is asked under whatever name its machine has.
        """
        from aiohttp import web

        if self.only_here and not LOOPBACK_HOST.fullmatch(request.host):
            raise web.HTTPForbidden(text=f"this server answers as 127.0.0.1 or localhost, not as {request.host[:100]!r}")
        origin = request.headers.get("Origin")
        if origin is not None and urlsplit(origin).netloc != request.host:
            raise web.HTTPForbidden(text="pages of other sites are refused")

    async def _connection(self, request: web.Request) -> web.WebSocketResponse:
        """A session. Messages are read while one is carried out, so that pings and a lost client are noticed at once."""
        from aiohttp import WSMsgType, web

        client = web.WebSocketResponse(heartbeat=HEARTBEAT_SECONDS, max_msg_size=MOST_BYTES)
        await client.prepare(request)
        if len(self._sockets) >= self.sessions:
            await client.send_json(error_answer("CAPACITY_REACHED", f"all {self.sessions} sessions are in use"))
            await client.close()
            return client
        self._sockets.add(client)
        session = EnvironmentSession(self.environment, self.tasks, self.timeout)
        messages: asyncio.Queue[str | bytes] = asyncio.Queue(WAITING)
        worker = asyncio.create_task(_work(client, session, messages))
        try:
            async for message in client:
                if message.type in (WSMsgType.TEXT, WSMsgType.BINARY):
                    await messages.put(message.data)
        finally:
            worker.cancel()
            await asyncio.gather(worker, return_exceptions=True)
            await session.close()
            self._sockets.discard(client)
        return client

    async def _hang_up(self, _: web.Application) -> None:
        for client in tuple(self._sockets):
            await client.close(code=1001, message=b"the server stops")


async def _work(client: web.WebSocketResponse, session: EnvironmentSession, messages: asyncio.Queue[str | bytes]) -> None:
    """Answer the messages of a client until it closes the session or is gone."""
    with suppress(ConnectionError):
        while (answer := await session.answer(await messages.get())) is not None:
            await client.send_json(answer)
        await client.close()


def _always(content: Any) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def answer(_: web.Request) -> web.Response:
        from aiohttp import web

        return web.json_response(content)

    return answer

"""Requests, asking an engine, and what stands at the other end: a mock server with a fixed answer, or one of a few lines."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, ParamSpec

from guieval.actions import Click, Point
from guieval.data.screenshots import Screenshot
from guieval.engines import request_id
from guieval.engines.concurrency import AdaptiveConcurrency
from guieval.engines.http.chat_completions import OpenAIEngine
from guieval.models import Engine, ImageRef, Message, ModelInput, Part, Request, Response
from guieval.playground.mock_server import MockServer, MockSettings
from guieval.settings import Server
from guieval.steps import StepTaskModel
from tests.waiting import PATIENCE

ANSWER = '{"choices": [{"message": {"content": "the answer"}}], "data": [{"id": "m"}]}'
Given = ParamSpec("Given")
Handle = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def make_task(episode: str = "e0", step: int = 0, **changes: Any) -> StepTaskModel:
    fields: dict[str, Any] = {
        **{"benchmark": "bench", "dataset": "data", "subset": "sub", "episode_id": episode, "step_index": step},
        **{"episode_length": max(10, step + 1), "instruction": "open the settings", "action": Click(point=Point(100.0, 200.0))},
        **{"screenshot": "shot.png", "screenshot_size": (1080, 2400)},
    }
    return StepTaskModel.model_validate({**fields, **changes})


def make_request(
    *texts: str,
    images: Sequence[Screenshot] = (),
    sample: int = 0,
    name: str | None = None,
    sampling: dict[str, Any] | None = None,
    extra: dict[str, Any] | None = None,
    prefill: str | None = None,
    task: StepTaskModel | None = None,
) -> Request:
    task = task or make_task()
    parts: tuple[Part, ...] = (*texts, *(ImageRef(task) for _ in images))
    messages = [Message("system", ("You are an agent.",)), Message("user", parts)]
    if prefill is not None:
        messages.append(Message("assistant", (prefill,)))
    made = ModelInput(tuple(messages), prefill=prefill is not None, extra=extra or {})
    return Request(made, tuple(images), sampling or {}, request_id(task.key, sample) if name is None else name, task)


def in_a_loop(case: Callable[Given, Coroutine[Any, Any, None]]) -> Callable[Given, None]:
    """A test that is a coroutine, run to its end in an event loop of its own."""

    @functools.wraps(case)
    def test(*arguments: Given.args, **fixtures: Given.kwargs) -> None:
        asyncio.run(asyncio.wait_for(case(*arguments, **fixtures), PATIENCE))

    return test


class Sleeps:
    """Notes how long an engine would have waited, and does not wait."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)


def engine_for(
    *urls: str,
    sleep: Callable[[float], Awaitable[object]] | None = None,
    pace: AdaptiveConcurrency | None = None,
    folder: Path | None = None,
    **changes: Any,
) -> OpenAIEngine:
    """Without a ``sleep`` of the test's the waits between tries are not waited for."""
    fields: dict[str, Any] = {"base_urls": urls, "served_model": "m", "timeout": 20.0}
    return OpenAIEngine(Server(**{**fields, **changes}), sleep=sleep or Sleeps(), pace=pace, folder=folder)


async def asked(engine: Engine, *requests: Request) -> list[Response]:
    try:
        return list(await asyncio.gather(*(engine.generate(request) for request in requests)))
    finally:
        await engine.close()


def ask_all(engine: Engine, *requests: Request) -> list[Response]:
    """The replies to requests that are sent at once, by an engine that is closed after them."""
    return asyncio.run(asked(engine, *requests))


def ask(engine: Engine, request: Request) -> Response:
    return ask_all(engine, request)[0]


@contextmanager
def mock(**changes: Any) -> Iterator[MockServer]:
    fields: dict[str, Any] = {"policy": "fixed", "reply": "the answer", "keep": 10_000}
    with MockServer(MockSettings.model_validate({**fields, **changes})) as server:
        yield server


@asynccontextmanager
async def listening(handle: Handle, port: int = 0, tls: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    """The port at which ``handle`` gets each connection."""
    server = await asyncio.start_server(handle, "127.0.0.1", port, ssl=tls)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        await server.wait_closed()


class Clock:
    """A clock that only pauses move."""

    now = 0.0

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.now += seconds


class Small:
    """A server of a few lines. ``answer`` gives the status line and headers for a path, or ``None`` to drop the connection."""

    def __init__(self, answer: Callable[[str], str | None], port: int = 0) -> None:
        self.answer = answer
        self.port = port
        self.paths: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[Small]:
        async with listening(self._serve, self.port) as self.port:
            yield self

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            path = (await reader.readuntil(b"\r\n\r\n")).split(b" ")[1].decode()
            self.paths.append(path)
            head = self.answer(path)
            if head is not None:
                writer.write(f"HTTP/1.1 {head}\r\ncontent-length: {len(ANSWER)}\r\nconnection: close\r\n\r\n{ANSWER}".encode())
                await writer.drain()
            writer.close()

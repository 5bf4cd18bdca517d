"""Servers of environments that send more, other things or elsewhere than they were asked."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from aiohttp import web

from guieval.connectors.servers.androidworld import AndroidWorld
from guieval.connectors.servers.openenv import OpenEnv
from guieval.connectors.servers.service import Service
from guieval.engines.http.chat_answers import MAX_REPLY_BYTES
from guieval.errors import EnvironmentFailure, UsageError
from guieval.online import ABCDevice
from tests.online.devices import on
from tests.online.in_thread import InThread
from tests.rows import every_row
from tests.waiting import PATIENCE

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def app(handler: Handler) -> web.Application:
    made = web.Application()
    made.router.add_route("*", "/{path:.*}", handler)
    return made


async def asked(address: str, question: Callable[[Service], Awaitable[Any]]) -> Any:
    service = Service("the server", address)
    try:
        return await question(service)
    finally:
        await service.close()


@every_row("status", [301, 302, 303, 307, 308])
def test_a_server_leads_to_no_other_address(status: int) -> None:
    reached: list[str] = []

    async def other(request: web.Request) -> web.Response:
        reached.append(request.path)
        return web.json_response({"task_list": ["SECRET"]})

    async def elsewhere(request: web.Request) -> web.Response:
        return web.Response(status=status, headers={"Location": f"{inside.address}/internal"})

    sentence = rf"redirects /suite/task_list elsewhere \(status {status}\)"
    with InThread(app(other)) as inside, InThread(app(elsewhere)) as server:
        with pytest.raises(UsageError, match=sentence):
            AndroidWorld(url=server.address).tasks()
        for question in (
            lambda service: service.post("/execute_action", body={"action_type": "wait"}),
            lambda service: service.screenshot("/screenshot", "pixels"),
            lambda service: service.websocket("/ws"),
        ):
            with pytest.raises(EnvironmentFailure, match="redirects"):
                asyncio.run(asked(server.address, question))
    assert reached == []


@every_row("encoding", ["gzip", "deflate", "br", "GZIP", "gzip, gzip"])
def test_a_compressed_answer_is_refused_unread(encoding: str) -> None:
    async def packed(_: web.Request) -> web.Response:
        body = gzip.compress(b'{"pixels":[' + b"[]," * 500_000 + b"[]]}")
        return web.Response(body=body, headers={"Content-Encoding": encoding})

    with InThread(app(packed)) as server, pytest.raises(EnvironmentFailure, match=f"compressed as '{encoding.lower()}'"):
        asyncio.run(asked(server.address, lambda service: service.screenshot("/screenshot", "pixels")))


def test_an_answer_may_be_as_large_as_what_was_asked_for() -> None:
    long = "QUJD" * (MAX_REPLY_BYTES // 4)

    async def large(_: web.Request) -> web.Response:
        return web.json_response({"pixels": long})

    with InThread(app(large)) as server:
        with pytest.raises(EnvironmentFailure, match=f"answers /task/goal with more than {MAX_REPLY_BYTES:,} bytes"):
            asyncio.run(asked(server.address, lambda service: service.get("/task/goal")))
        assert asyncio.run(asked(server.address, lambda service: service.screenshot("/screenshot", "pixels"))) == long


def test_a_screenshot_of_millions_of_lists_is_a_sentence() -> None:
    async def bomb(_: web.Request) -> web.Response:
        return web.Response(body=b'{"pixels":[' + b"[]," * 1_000_000 + b"[]]}")

    with InThread(app(bomb)) as server, pytest.raises(EnvironmentFailure, match=r"answers /screenshot with JSON that has more"):
        asyncio.run(asked(server.address, lambda service: service.screenshot("/screenshot", "pixels")))


def openenv(socket: Callable[[web.WebSocketResponse], Awaitable[None]]) -> web.Application:
    async def handler(request: web.Request) -> web.StreamResponse:
        if request.path != "/ws":
            return web.json_response({"action": {"properties": {"type": {}}}} if request.path == "/schema" else {})
        client = web.WebSocketResponse()
        await client.prepare(request)
        await socket(client)
        return client

    return app(handler)


def test_a_flood_of_messages_ends_the_session_at_the_second() -> None:
    async def flood(client: web.WebSocketResponse) -> None:
        try:
            while True:  # until the client is gone
                await client.send_str("x" * 1_000_000)
        except ConnectionError:
            gone.set()

    gone = asyncio.Event()  # set and awaited in the server's loop and read here
    refused: list[str] = []

    async def busy(device: ABCDevice) -> None:
        for _ in range(int(PATIENCE / 0.05)):
            if gone.is_set():
                break
            await asyncio.sleep(0.05)
        with pytest.raises(EnvironmentFailure) as failure:
            await device.reset(environment.tasks()[0], 0)
        refused.append(str(failure.value))

    with InThread(openenv(flood)) as server:
        environment = OpenEnv(url=server.address, seeds=1)
        environment.tasks()
        on(environment, busy)
    assert gone.is_set() and "expected a message of OpenEnv's protocol" in refused[0]


def test_an_answer_that_was_not_asked_for_is_not_taken_for_the_next_one() -> None:
    shown = {"type": "observation", "data": {"observation": {}, "reward": 1.0, "done": True}}

    async def twice(client: web.WebSocketResponse) -> None:
        async for message in client:
            if json.loads(message.data)["type"] == "close":
                break
            await client.send_json({"type": "state", "data": {}})
            await client.send_json(shown)

    async def judge(device: ABCDevice) -> None:
        assert not (await device.score()).success
        with pytest.raises(EnvironmentFailure):
            await device.score()
        with pytest.raises(EnvironmentFailure):
            await device.reset(environment.tasks()[0], 0)

    with InThread(openenv(twice)) as server:
        environment = OpenEnv(url=server.address, seeds=1)
        on(environment, judge)

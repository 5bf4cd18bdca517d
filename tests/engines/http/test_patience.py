"""Waiting for servers that are away: which failures are waited out and which count, and that nobody is asked meanwhile."""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from guieval.engines.concurrency import AdaptiveConcurrency
from guieval.engines.http.chat_completions import OpenAIEngine
from guieval.engines.http.connections import Connections
from guieval.engines.http.patience import Patience
from guieval.engines.http.routing import RoutedServer, Router
from guieval.errors import EngineError, FatalEngineError, ServersAway
from guieval.models import Response
from tests.engines.asking import Clock, Small, engine_for, in_a_loop, make_request, make_task
from tests.outage import reserved_port
from tests.rows import every_row
from tests.waiting import PATIENCE, auntil


def well(path: str) -> str:
    return "200 OK"


def engine_at(*urls: str, **changes: Any) -> OpenAIEngine:
    return engine_for(*urls, **{"sleep": asyncio.sleep, "backoff": 0.05, "patience": 30.0, **changes})


@pytest.fixture
def port() -> Iterator[int]:
    with reserved_port() as port:
        yield port


async def waits(engine: OpenAIEngine) -> str:
    """What the engine says once it waits."""
    return await auntil(engine.waiting, "a wait") or ""


@in_a_loop
async def test_all_requests_wait_for_one_probe_at_a_time(port: int) -> None:
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)
        await asyncio.sleep(0.001)

    server = Small(well, port)
    async with server.serving():
        engine = engine_at(server.url, max_attempts=1, sleep=sleep)
        assert (await engine.generate(make_request("x"))).attempts == 1
    asking = [asyncio.create_task(engine.generate(make_request("x", name=f"r{number}"))) for number in range(40)]
    assert re.fullmatch(rf"waiting for {server.url} for \d+ s of 30 s", await waits(engine))
    loading, before = Small(lambda path: "503 Loading", server.port), len(pauses)
    async with loading.serving():
        await auntil(lambda: len(loading.paths) >= 3 and len(pauses) >= 8, "more probes")
        assert set(loading.paths) == {"/health"}, "no request goes out"
        assert len(loading.paths) <= len(pauses) - before + 1 and not any(each.done() for each in asking)
    async with server.serving():
        replies = await asyncio.gather(*asking)
        await engine.close()
    assert {(reply.text, reply.attempts) for reply in replies} == {("the answer", 1)}
    assert engine.waiting() is None
    assert pauses[:5] == [0.1, 0.2, 0.4, 0.8, 1.6] and set(pauses[5:]) == {2.0}


@in_a_loop
async def test_a_name_that_is_not_resolved_for_a_while_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    resolve = socket.getaddrinfo
    broken = False

    def getaddrinfo(*arguments: Any, **more: Any) -> Any:
        if broken:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return resolve(*arguments, **more)

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    async with Small(well).serving() as server:
        engine = engine_at(server.url.replace("127.0.0.1", "localhost"), max_attempts=1)
        await engine.generate(make_request("x"))
        broken = True
        asking = asyncio.create_task(engine.generate(make_request("y")))
        await waits(engine)
        broken = False
        assert (await asking).attempts == 1
        await engine.close()


@every_row("head", ["500 Internal Server Error", "502 Bad Gateway", "503 Busy", None])
@in_a_loop
async def test_a_server_that_is_there_is_asked_no_more_often_than_allowed(head: str | None) -> None:
    """It fails every request, and answers every probe: each try counts."""
    refuses = False
    async with Small(lambda path: head if refuses and path.endswith("completions") else "200 OK").serving() as server:
        engine = engine_at(server.url, max_attempts=3)
        await engine.generate(make_request("x"))
        refuses = True
        with pytest.raises(EngineError, match="no usable answer after 3 tries") as caught:
            await engine.generate(make_request("y"))
        assert not isinstance(caught.value, FatalEngineError) and caught.value.attempts == 3
        assert server.paths.count("/v1/chat/completions") == 4
        await engine.close()


@in_a_loop
async def test_a_request_that_takes_the_server_down_each_time_is_given_up() -> None:
    """The server drops it, is away for the next probe, and back for the one after that."""
    deadly = False
    probes = 0

    def answer(path: str) -> str | None:
        nonlocal probes
        if path.endswith("completions"):
            return None if deadly else "200 OK"
        probes += path == "/health"
        return "503 Loading" if probes % 2 and path == "/health" else "200 OK"

    async with Small(answer).serving() as server:
        engine = engine_at(server.url, max_attempts=2)
        await engine.generate(make_request("x"))
        deadly = True
        with pytest.raises(EngineError, match="the server went away at all 3 attempts") as caught:
            await engine.generate(make_request("y"))
        assert not isinstance(caught.value, FatalEngineError), "the others go on"
        assert server.paths.count("/v1/chat/completions") == 4
        await engine.close()


@in_a_loop
async def test_an_answer_between_outages_restarts_the_patience_and_a_probe_does_not(caplog: pytest.LogCaptureFixture) -> None:
    clock, back = Clock(), 0.0
    server = RoutedServer(Connections("http://a/v1", trust_env=False, verify_tls=True))

    async def is_there(server: RoutedServer) -> bool:
        return clock.now >= back

    router = Router([server], is_there, backoff=0.1, max_backoff=1.0, clock=clock)
    patience = Patience(router, is_there, 4.0, sleep=clock.sleep, clock=clock)
    patience.answered(server, by_gateway=False)
    for _ in range(2):
        back = clock.now + 3.0
        assert await patience.outlasts(server, "it is away")
        patience.answered(server, by_gateway=False)
    began = clock.now
    back = began + 3.0
    assert await patience.outlasts(server, "it is away") and clock.now > began
    patience.answered(server, by_gateway=True)
    back = clock.now + 3.0
    with pytest.raises(ServersAway, match=r"no answer from http://a/v1 for 4 s, and the run waits for 4 s at most .*: it is"):
        await patience.outlasts(server, "it is away")
    assert clock.now == pytest.approx(began + 4.0)
    assert [record.message for record in caplog.records if "back" in record.message] == ["http://a/v1 is back after 3 s"] * 3


@in_a_loop
async def test_discovery_waits_for_a_server_that_an_earlier_run_of_the_command_asked(port: int) -> None:
    server = Small(well, port)
    async with server.serving():
        await engine_at(server.url).generate(make_request("x"))
    later = engine_at(server.url, served_model=None, max_attempts=1)
    asking = asyncio.create_task(later.discover())
    await waits(later)
    async with server.serving():
        assert await asking == "m"
    await later.close()


@in_a_loop
async def test_a_url_that_never_answered_is_not_waited_for(port: int) -> None:
    url = f"http://127.0.0.1:{port}/v1"
    with pytest.raises(EngineError, match="could not be reached"):
        await engine_at(url, served_model=None, max_attempts=2).discover()
    message = f"after 2 tries; at last {url}/chat/completions could not be reached"
    with pytest.raises(FatalEngineError, match=message) as caught:
        await engine_at(url, max_attempts=2).generate(make_request("x"))
    assert caught.value.attempts == 2


@in_a_loop
async def test_one_of_several_servers_that_is_away_at_the_start_is_done_without(port: int) -> None:
    away = f"http://127.0.0.1:{port}/v1"
    async with Small(well).serving() as server:
        engine = engine_at(away, server.url, served_model=None, max_attempts=1)
        assert await engine.discover() == "m"
        assert (await engine.generate(make_request("x"))).attempts == 1
        await engine.close()


@in_a_loop
async def test_servers_that_do_not_list_their_models_hold_up_none_that_does(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Nothing answers at the first, the second takes connections and says nothing, and the third loads its model."""
    monkeypatch.setattr("guieval.engines.http.chat_completions._CHECK_TIMEOUT", 1.0)
    with reserved_port() as nobody, socket.create_server(("127.0.0.1", 0)) as silent:
        away, mute = (f"http://127.0.0.1:{port}/v1" for port in (nobody, silent.getsockname()[1]))
        loading = Small(lambda path: "503 Loading")
        async with loading.serving(), Small(well).serving() as server:
            engine = engine_at(away, mute, loading.url, server.url, served_model=None, timeout=2 * PATIENCE)
            assert await engine.discover() == "m"
            asking = (engine.generate(make_request("x", name=f"r{number}")) for number in range(8))
            assert {reply.attempts for reply in await asyncio.gather(*asking)} == {1}
            loading.answer = well
            loading.paths.clear()
            number = 0
            while "/v1/chat/completions" not in loading.paths:  # or the whole takes longer than a test may
                number += 1
                await engine.generate(make_request("x", task=make_task(f"e{number}")))
            await engine.close()
    for url, why in ((away, "could not be reached"), (mute, "did not answer within 1 s"), (loading.url, "status 503")):
        (warning,) = (each.message for each in caplog.records if each.message.startswith(url))
        assert why in warning and warning.endswith("; the other servers go on, and this one is used once it answers")


@in_a_loop
async def test_an_outage_is_no_sign_of_too_much_at_once(port: int) -> None:
    """A gateway's 503 during an outage does not lower an adaptive concurrency; the same of a server that is there does."""

    server = Small(well, port)
    pace = AdaptiveConcurrency(start=32)
    async with server.serving():
        engine = engine_at(server.url, pace=pace)
        await engine.generate(make_request("x"))
    async with Small(lambda path: "503 No upstream", server.port).serving():
        asking = [asyncio.create_task(engine.generate(make_request("y", name=f"r{number}"))) for number in range(8)]
        await waits(engine)
    async with server.serving():
        replies: list[Response] = await asyncio.gather(*asking)
        assert {reply.attempts for reply in replies} == {1} and pace.value == 32
        first = True

        def busy_once(path: str) -> str:
            nonlocal first
            if first and path.endswith("completions"):
                first = False
                return "503 Busy"
            return "200 OK"

        server.answer = busy_once
        assert (await engine.generate(make_request("z"))).attempts == 2
        assert pace.value < 32
        await engine.close()


@in_a_loop
async def test_closing_the_engine_ends_a_wait(port: int) -> None:
    before = asyncio.all_tasks()
    async with Small(well, port).serving() as server:
        engine = engine_at(server.url)
        await engine.generate(make_request("x"))
    asking = asyncio.create_task(engine.generate(make_request("y")))
    await waits(engine)
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)
    await engine.close()
    assert engine.waiting() is None
    assert asyncio.all_tasks() == before

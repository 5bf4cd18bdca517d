"""Waiting for servers that are away: which failures are waited out and which count, and that nobody is asked meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
import re
import socket
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import pytest

from guieval.engines.concurrency import AdaptiveConcurrency
from guieval.engines.http.chat_completions import OpenAIEngine, OpenAISettings
from guieval.errors import EngineError, FatalEngineError, ServersAway
from guieval.models import Reply, Request
from guieval.steps import StepTaskModel
from guieval.testing.mock_server import MockServer, MockSettings

MakeRequest = Callable[..., Request]
MakeTask = Callable[..., StepTaskModel]
Behaviour = Callable[[str], str | None]
ANSWER = '{"choices": [{"message": {"content": "the answer"}}], "data": [{"id": "m"}]}'


@pytest.fixture(autouse=True)
def no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


class Small:
    """A server of a few lines. ``answer`` gives the status line and headers for a path, or ``None`` to drop the connection."""

    def __init__(self, answer: Behaviour, port: int = 0) -> None:
        self.answer = answer
        self.port = port
        self.paths: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[Small]:
        listener = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.port = listener.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            listener.close()
            await listener.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            path = (await reader.readuntil(b"\r\n\r\n")).split(b" ")[1].decode()
            self.paths.append(path)
            head = self.answer(path)
            if head is not None:
                writer.write(f"HTTP/1.1 {head}\r\ncontent-length: {len(ANSWER)}\r\nconnection: close\r\n\r\n{ANSWER}".encode())
                await writer.drain()
            writer.close()


def well(path: str) -> str:
    return "200 OK"


def engine_at(*urls: str, **changes: Any) -> OpenAIEngine:
    fields: dict[str, Any] = {"base_urls": urls, "model": "m", "timeout": 20.0, "backoff": 0.05, "patience": 30.0}
    pace = changes.pop("pace", None)
    return OpenAIEngine(OpenAISettings.model_validate({**fields, **changes}), pace=pace)


def run(main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(asyncio.wait_for(main(), 60))


def test_all_requests_wait_for_one_probe_at_a_time(make_request: MakeRequest) -> None:
    async def main() -> None:
        server = Small(well)
        engine = engine_at("http://127.0.0.1:1/v1")
        async with server.serving():
            engine = engine_at(server.url, max_attempts=1)
            assert (await engine.generate(make_request("x"))).attempts == 1
        asking = [asyncio.create_task(engine.generate(make_request("x", name=f"r{number}"))) for number in range(40)]
        until = time.monotonic() + 30
        while engine.waiting() is None:
            assert time.monotonic() < until
            await asyncio.sleep(0.01)
        sentence = engine.waiting()
        assert sentence is not None and re.fullmatch(rf"waiting for {server.url} for \d s of 30 s", sentence)
        loading = Small(lambda path: "503 Loading", server.port)
        async with loading.serving():
            await asyncio.sleep(1.0)
            assert loading.paths and set(loading.paths) == {"/health"}, "no request goes out"
            assert len(loading.paths) <= 6 and not any(each.done() for each in asking)
        async with server.serving():
            replies = await asyncio.gather(*asking)
            await engine.close()
        assert {(reply.text, reply.attempts) for reply in replies} == {("the answer", 1)}
        assert engine.waiting() is None

    run(main)


def test_a_name_that_is_not_resolved_for_a_while_is_waited_for(
    make_request: MakeRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    resolve = socket.getaddrinfo
    broken = False

    def getaddrinfo(*arguments: Any, **more: Any) -> Any:
        if broken:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return resolve(*arguments, **more)

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)

    async def main() -> None:
        nonlocal broken
        async with Small(well).serving() as server:
            engine = engine_at(server.url.replace("127.0.0.1", "localhost"), max_attempts=1)
            await engine.generate(make_request("x"))
            broken = True
            asking = asyncio.create_task(engine.generate(make_request("y")))
            await asyncio.sleep(0.5)
            assert engine.waiting() is not None
            broken = False
            assert (await asking).attempts == 1
            await engine.close()

    run(main)


@pytest.mark.parametrize("head", ["500 Internal Server Error", "502 Bad Gateway", "503 Busy", None])
def test_a_server_that_is_there_is_asked_no_more_often_than_allowed(head: str | None, make_request: MakeRequest) -> None:
    """It fails every request, and answers every probe: each try counts."""

    async def main() -> None:
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

    run(main)


def test_a_request_that_takes_the_server_down_each_time_is_given_up(make_request: MakeRequest) -> None:
    """The server drops it, is away for the next probe, and back for the one after that."""
    deadly = False

    async def main() -> None:
        nonlocal deadly
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

    run(main)


def test_an_answer_between_two_outages_restarts_the_patience_and_a_probe_does_not(make_request: MakeRequest) -> None:
    async def main() -> None:
        server = Small(well)
        async with server.serving():
            engine = engine_at(server.url, max_attempts=1, patience=1.5)
            await engine.generate(make_request("x"))
        for _ in range(2):
            asking = asyncio.create_task(engine.generate(make_request("y")))
            await asyncio.sleep(1.0)
            async with server.serving():
                assert (await asking).attempts == 1
        began = time.monotonic()
        server.answer = lambda path: "502 Bad Gateway" if path.endswith("completions") else "200 OK"
        lost = asyncio.create_task(engine.generate(make_request("z")))
        with pytest.raises(ServersAway, match=rf"no answer from {server.url} for [12] s, and the run waits for 1.5 s at most"):
            await lost
        assert 1.4 < time.monotonic() - began < 10
        await engine.close()

    run(main)


def test_discovery_waits_for_a_server_that_an_earlier_run_of_the_command_asked(make_request: MakeRequest) -> None:
    async def main() -> None:
        server = Small(well)
        async with server.serving():
            await engine_at(server.url).generate(make_request("x"))
        later = engine_at(server.url, model=None, max_attempts=1)
        asking = asyncio.create_task(later.discover())
        await asyncio.sleep(0.5)
        assert later.waiting() is not None
        async with server.serving():
            assert await asking == "m"
        await later.close()

    run(main)


def test_a_url_that_never_answered_is_not_waited_for(make_request: MakeRequest) -> None:
    async def main() -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            url = f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
        with pytest.raises(EngineError, match="could not be reached"):
            await engine_at(url, model=None, max_attempts=2).discover()
        with pytest.raises(FatalEngineError, match=r"no usable answer after 2 tries; at last .* could not be reached"):
            await engine_at(url, max_attempts=2).generate(make_request("x"))

    run(main)


def test_one_of_several_servers_that_is_away_at_the_start_is_done_without(make_request: MakeRequest) -> None:
    async def main() -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            away = f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
        async with Small(well).serving() as server:
            engine = engine_at(away, server.url, model=None, max_attempts=1)
            assert await engine.discover() == "m"
            assert (await engine.generate(make_request("x"))).attempts == 1
            await engine.close()

    run(main)


def test_servers_that_do_not_list_their_models_hold_up_none_that_does(
    make_request: MakeRequest, make_task: MakeTask, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Nothing answers at the first, the second takes connections and says nothing, and the third loads its model."""
    monkeypatch.setattr("guieval.engines.http.chat_completions._CHECK_TIMEOUT", 0.5)

    async def main() -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener, socket.create_server(("127.0.0.1", 0)) as silent:
            away, mute = (f"http://127.0.0.1:{each.getsockname()[1]}/v1" for each in (listener, silent))
            listener.close()
            loading = Small(lambda path: "503 Loading")
            async with loading.serving(), Small(well).serving() as server:
                engine = engine_at(away, mute, loading.url, server.url, model=None, timeout=60.0)
                began = time.monotonic()
                assert await engine.discover() == "m"
                asking = (engine.generate(make_request("x", name=f"r{number}")) for number in range(8))
                assert {reply.attempts for reply in await asyncio.gather(*asking)} == {1}
                assert time.monotonic() - began < 10
                loading.answer = well
                loading.paths.clear()
                for number in range(600):
                    await engine.generate(make_request("x", task=make_task(f"e{number}")))
                    if "/v1/chat/completions" in loading.paths:
                        break
                    await asyncio.sleep(0.05)
                else:
                    pytest.fail("the server that is loaded is never asked")
                await engine.close()
        for url, why in ((away, "could not be reached"), (mute, "did not answer within 0.5 s"), (loading.url, "status 503")):
            (warning,) = (each.message for each in caplog.records if each.message.startswith(url))
            assert why in warning and warning.endswith("; the other servers go on, and this one is used once it answers")

    run(main)


def test_an_outage_is_no_sign_of_too_much_at_once(make_request: MakeRequest) -> None:
    """A gateway's 503 during an outage does not lower an adaptive concurrency; the same of a server that is there does."""

    async def main() -> None:
        pace = AdaptiveConcurrency(start=32)
        server = Small(well)
        async with server.serving():
            engine = engine_at(server.url, pace=pace)
            await engine.generate(make_request("x"))
        async with Small(lambda path: "503 No upstream", server.port).serving():
            asking = [asyncio.create_task(engine.generate(make_request("y", name=f"r{number}"))) for number in range(8)]
            await asyncio.sleep(0.5)
            assert engine.waiting() is not None
        async with server.serving():
            replies: list[Reply] = await asyncio.gather(*asking)
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

    run(main)


def test_closing_the_engine_ends_a_wait(make_request: MakeRequest) -> None:
    async def main() -> None:
        before = asyncio.all_tasks()
        with MockServer(MockSettings(policy="fixed", reply="the answer")) as server:
            engine = engine_at(server.base_url)
            await engine.generate(make_request("x"))
        asking = asyncio.create_task(engine.generate(make_request("y")))
        await asyncio.sleep(0.5)
        assert engine.waiting() is not None
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
        await engine.close()
        assert engine.waiting() is None
        assert asyncio.all_tasks() == before

    run(main)

"""An answer is taken for the request that it belongs to, whatever else a server sends on the connection."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import Callable

import pytest

from guieval.engines.http.connections import Connections
from tests.engines.asking import engine_for, in_a_loop, listening, make_request

REQUESTS = 8


def answer_to(name: str, *, padding: int = 0, chunked: bool = False, named: bool = False) -> bytes:
    """An HTTP response whose text is the request's name, without the part that differs between tries."""
    body = {"choices": [{"message": {"content": name.rpartition("~")[0]}}], "padding": "x" * padding}
    if named:
        body = {"id": f"chatcmpl-{name}", **body}  # as vLLM does
    data = json.dumps(body).encode()
    if chunked:
        return b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n" % (len(data), data)
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(data) + data


@in_a_loop
async def check(
    respond: Callable[[str, asyncio.StreamWriter], object],
    *,
    over: int | None = None,
    attempts: int = 1,
    tls: ssl.SSLContext | None = None,
    late: Callable[[str], bytes] = lambda name: b"",
) -> None:
    """Each of some requests, one after the other, gets its own answer, ``over`` so many connections and with so many attempts.

    What ``late`` makes of a request's name is sent after its answer was read.
    """
    connections = 0
    last: list[asyncio.StreamWriter] = []

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        last[:] = [writer]
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                fields = dict(line.lower().split(": ", 1) for line in head.decode().split("\r\n")[1:] if line)
                await reader.readexactly(int(fields["content-length"]))
                respond(fields["x-request-id"], writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async with listening(handle, tls=tls) as port:
        url = f"{'http' if tls is None else 'https'}://127.0.0.1:{port}/v1"
        engine = engine_for(url, timeout=10.0, insecure_tls="I accept unverified certificates")
        for number in range(REQUESTS):
            name = f"request-{number}"
            reply = await engine.generate(make_request("hello", name=name))
            assert (reply.text, reply.attempts) == (name, attempts if number else 1)
            if more := late(name):
                last[0].write(more)
                for _ in range(9):  # it is there at once, and read in the next turn of the event loop
                    await asyncio.sleep(0)
        await engine.close()
    assert connections == over or over is None


@in_a_loop
async def test_an_answer_is_read_to_its_limit_and_no_further() -> None:
    async def respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n" + bytes(8 << 20))
        writer.close()

    async with listening(respond) as port:
        url = f"http://127.0.0.1:{port}"
        connections = Connections(url, trust_env=False, verify_tls=True)
        answer = await connections.exchange("GET", url, {}, None, 1000)
        await connections.close()
    assert 1000 < len(answer.data) < 1 << 20


READ = 65_536  # what httpcore reads at once
EXACT = READ - len(answer_to("request-0~", padding=10_000)) + 10_000


@pytest.fixture(params=[False, True], ids=["http", "https"])
def tls(request: pytest.FixtureRequest) -> ssl.SSLContext | None:
    if not request.param:
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(request.getfixturevalue("certificate"))
    return context


@pytest.mark.parametrize("padding", [0, 40_000, EXACT, 300_000])
@pytest.mark.parametrize("keep", [None, 5, 30])
def test_bytes_after_an_answer_are_not_the_next_one(padding: int, tls: ssl.SSLContext | None, keep: int | None) -> None:
    """Sent with the answer, whole or in part; of sizes that stay in different buffers."""

    def respond(name: str, writer: asyncio.StreamWriter) -> None:
        whole = answer_to(name, padding=padding, chunked=padding == 40_000)
        writer.write(whole + whole[:keep])

    check(respond, over=REQUESTS, tls=tls)


def test_bytes_that_come_while_a_connection_is_idle_are_not_the_next_answer() -> None:
    check(lambda name, writer: writer.write(answer_to(name)), over=REQUESTS, late=answer_to)


def test_an_answer_that_names_another_request_is_not_taken() -> None:
    """The second answer comes when the next request has been sent; vLLM's answers name their request."""
    late: dict[asyncio.StreamWriter, bytes] = {}

    def respond(name: str, writer: asyncio.StreamWriter) -> None:
        writer.write(late.pop(writer, b"") + answer_to(name, named=True))
        late[writer] = answer_to(name, named=True)

    check(respond, attempts=2)


@pytest.mark.parametrize("padding", [0, EXACT, 300_000])
@pytest.mark.parametrize("chunked", [False, True])
def test_a_connection_without_anything_left_is_used_again(padding: int, chunked: bool, tls: ssl.SSLContext | None) -> None:
    def respond(name: str, writer: asyncio.StreamWriter) -> None:
        writer.write(answer_to(name, padding=padding, chunked=chunked, named=True))

    check(respond, over=1, tls=tls)

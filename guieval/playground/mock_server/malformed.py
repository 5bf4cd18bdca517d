"""Answers of the mock server that are damaged, hostile or never end."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
import zlib
from functools import cache

from guieval.playground.mock_server.answers import Exchange, PolicyResponse, as_json, body_of, completion_body
from guieval.playground.mock_server.native import damaged_body


async def send_malformed(exchange: Exchange, kind: str, answer: PolicyResponse) -> None:
    """Send ``answer`` damaged in the way that ``kind`` names (``MALFORMED`` and ``HOSTILE`` of the settings)."""
    if exchange.api is not None and (damaged := damaged_body(exchange.api, kind, answer.text, exchange.body)) is not None:
        await exchange.answer(200, damaged)
        return
    whole = body_of(exchange, answer)
    match kind:
        case "reset":
            await exchange.begin((b"content-type", b"application/json"), (b"content-length", str(len(whole)).encode()))
            await exchange.send(whole[: len(whole) // 2], more=True)
            if exchange.transport is not None:
                _reset(exchange.transport)
        case "drip":
            await _drip(exchange, whole)
        case "gzip":
            await exchange.answer(200, _compressed(whole), [(b"content-encoding", b"gzip")])
        case "gzip-bomb":
            await exchange.answer(200, _bomb(), [(b"content-encoding", b"gzip")])
        case "flood":
            await exchange.answer(200, whole + b" " * _FLOOD)
        case "twice":
            await _send_twice(exchange, whole)
        case "absurd-numbers":
            await exchange.answer(200, _with_absurd_numbers(whole))
        case "cut-json":
            await exchange.answer(200, whole[:150])
        case "html":
            await exchange.answer(200, b"<html><body><h1>Bad gateway</h1></body></html>", kind=b"text/html")
        case "null-content":  # reasoning alone, which ends before the call
            reasoning = answer.text[: len(answer.text) // 2]
            await exchange.answer(200, completion_body(PolicyResponse(reasoning, reasoning), content=None))
        case "empty-choices":
            await exchange.answer(200, as_json({"id": "mock", "object": "chat.completion", "choices": []}))
        case _:
            await exchange.answer(200, completion_body(PolicyResponse(answer.text[: len(answer.text) // 2])))


_FLOOD = 9 * 1024 * 1024
_DRIP = 0.05
_DRIPS = 200


async def _drip(exchange: Exchange, body: bytes) -> None:
    """Send a whole answer without its end, then a blank from time to time, so that a read timeout never expires."""
    await exchange.begin((b"content-type", b"application/json"))
    left = asyncio.ensure_future(exchange.disconnected())
    try:
        for number in range(_DRIPS):
            await exchange.send(b" " if number else body, more=True)
            await asyncio.wait((left,), timeout=_DRIP)
            if left.done():
                return
        await exchange.send(b"")
    finally:
        left.cancel()


def _reset(transport: asyncio.Transport) -> None:
    """Close a connection with a reset, like a machine that crashed."""
    connection = transport.get_extra_info("socket")
    if connection is not None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    transport.abort()


_CORK: int = getattr(socket, "TCP_CORK", 4)
"""Holds back what is written; on macOS it is TCP_NOPUSH, which Python does not name."""


async def _send_twice(exchange: Exchange, body: bytes) -> None:
    transport = exchange.transport
    connection = None if transport is None else transport.get_extra_info("socket")
    if transport is None or connection is None:
        raise RuntimeError("an answer can be sent twice over a connection only")
    connection.setsockopt(socket.IPPROTO_TCP, _CORK, 1)
    await exchange.answer(200, body)
    transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    connection.setsockopt(socket.IPPROTO_TCP, _CORK, 0)


def _with_absurd_numbers(body: bytes) -> bytes:
    values = json.loads(body)
    values["usage"] = {"prompt_tokens": -(2**62), "completion_tokens": 2**64 - 1}
    values["choices"][0]["logprobs"] = {"content": [{"token": "a", "logprob": value} for value in (1e308, 1e308, 10**400)]}
    return as_json(values)


@cache
def _bomb() -> bytes:
    return _compressed(bytes(256 * 1024 * 1024))


def _compressed(data: bytes) -> bytes:
    stream = zlib.compressobj(9, wbits=31)
    return stream.compress(data) + stream.flush()

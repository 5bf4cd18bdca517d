"""A request at the mock server, and the bodies of its answers."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any, NamedTuple, TypeAlias

from guieval.models.response import Call, calls_in
from guieval.playground.mock_server.native import KEY_HEADERS, TOKENS_IN, TOKENS_OUT, answer_body, api_of

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]
_TOOLS = re.compile(rb'"tools"\s*:\s*\[\s*\{')
"""A request that offers functions: no text in a JSON body contains this, since its quotes are escaped there."""


class PolicyResponse(NamedTuple):
    """The answer of a policy: ``logprob`` is that of each of its tokens; ``None`` for a server that says none."""

    text: str
    reasoning: str | None = None
    prompt_tokens: int = TOKENS_IN
    logprob: float | None = None


class Exchange:
    """A request with its body, and the ways to answer it."""

    def __init__(self, scope: Scope, receive: Receive, send: Send, body: bytes) -> None:
        self.headers: dict[bytes, bytes] = dict(scope["headers"])
        self.path: str = scope["path"].rstrip("/")
        self.api = api_of(self.path)
        self.key = next((self.headers[name] for name in KEY_HEADERS if name in self.headers), b"")
        self.body = body
        self.transport: asyncio.Transport | None = scope.get("transport")
        self._receive = receive
        self._send = send

    async def answer(
        self, status: int, body: bytes, headers: Iterable[tuple[bytes, bytes]] = (), kind: bytes = b"application/json"
    ) -> None:
        await self.begin((b"content-type", kind), (b"content-length", str(len(body)).encode()), *headers, status=status)
        await self.send(body)

    async def begin(self, *headers: tuple[bytes, bytes], status: int = 200) -> None:
        await self._send({"type": "http.response.start", "status": status, "headers": list(headers)})

    async def send(self, body: bytes, *, more: bool = False) -> None:
        await self._send({"type": "http.response.body", "body": body, "more_body": more})

    async def disconnected(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass


_SAME = object()


def _tool_call(number: int, call: Call) -> dict[str, Any]:
    arguments = call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments, ensure_ascii=False)
    return {"id": f"call_{number}", "type": "function", "function": {"name": call.name, "arguments": arguments}}


def completion_body(
    answer: PolicyResponse, content: object = _SAME, *, calls: bool = False, fingerprint: str | None = None
) -> bytes:
    """A chat completion. ``calls``: the client offered functions, so calls in the text are sent in the protocol's format."""
    message: dict[str, Any] = {"role": "assistant", "content": answer.text if content is _SAME else content}
    text, made = calls_in(answer.text) if calls else (answer.text, ())
    if made:
        message |= {"content": text or None, "tool_calls": [_tool_call(number, call) for number, call in enumerate(made)]}
    if answer.reasoning is not None:
        message["reasoning_content"] = answer.reasoning
    choice: dict[str, Any] = {"index": 0, "message": message, "finish_reason": "tool_calls" if made else "stop"}
    if answer.logprob is not None:
        choice["logprobs"] = {"content": [{"token": word, "logprob": answer.logprob} for word in answer.text.split()]}
    usage = {"prompt_tokens": answer.prompt_tokens, "completion_tokens": TOKENS_OUT}
    usage["total_tokens"] = answer.prompt_tokens + TOKENS_OUT
    named = {"id": "mock", "object": "chat.completion", "model": "mock", "system_fingerprint": fingerprint}
    return as_json({**named, "choices": [choice], "usage": usage})


def body_of(exchange: Exchange, answer: PolicyResponse, looks: int = 0, fingerprint: str | None = None) -> bytes:
    """The body of ``answer`` in the format of the request's API."""
    if exchange.api is not None:
        return answer_body(exchange.api, answer.text, exchange.body, looks)
    calls = "<tool_call>" in answer.text and bool(_TOOLS.search(exchange.body))
    return completion_body(answer, calls=calls, fingerprint=fingerprint)


def error_of(message: str) -> bytes:
    """The body of an error of chat completions."""
    return as_json({"error": {"message": message, "type": "mock_error"}})


def as_json(value: object) -> bytes:
    """A body of JSON."""
    return json.dumps(value).encode()

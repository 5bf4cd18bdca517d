"""What a server answers, over a real connection: a reply that can be stored, or an error of one sentence."""

from __future__ import annotations

import asyncio
import gzip
import json
from pathlib import Path
from random import Random
from typing import Any, ClassVar

from guieval.engines import request_id
from guieval.engines.http.chat_completions import OpenAIEngine
from guieval.errors import EngineError, UsageError
from guieval.evaluation import ActionEvaluator
from guieval.models import Message, ModelConfig, ModelInput, Request, Response
from guieval.models.scored_response import read_response
from guieval.registry import adapter_class
from guieval.settings import Server

from . import mutations
from .engine import QUICK, TASKS, Target, at_once, sentence, stored

_CALL = {"id": "c", "type": "function", "function": {"name": "mobile_use", "arguments": '{"action": "wait", "time": 2}'}}
_MESSAGES: tuple[dict[str, Any], ...] = (
    {"role": "assistant", "content": "Thought: I see it.\nAction: click(start_box='(1,2)')"},
    {"role": "assistant", "content": [{"type": "text", "text": "Action: wait()"}], "reasoning_content": "I wait."},
    {"role": "assistant", "content": None, "tool_calls": [_CALL, _CALL]},
    {"role": "assistant", "content": None, "refusal": "I cannot help with that.", "reasoning": "no"},
)
_TOKENS = {"content": [{"token": "a", "logprob": -0.25, "bytes": [97], "top_logprobs": []}, {"token": "b", "logprob": -1e-6}]}
_LIST = {"object": "list", "data": [{"id": "m", "object": "model", "root": "org/m"}, {"id": "n"}]}
_ERROR = {"object": "error", "message": "This model's maximum context length is 4096 tokens", "code": 400}
_WAITS = ("5", "-1", "1e308", "Thu, 01 Jan 9999 00:00:00 GMT", "\xff", "Mon, 99 Foo 2024 25:61:61 +9999")
_HEADERS = (
    *(f"Retry-After: {wait}" for wait in _WAITS),
    *("Date: never", "Content-Encoding: gzip", "Content-Encoding: br", "Content-Type: text/html", "Connection: close"),
    *("Set-Cookie: " + "a" * 5000, "X-A: \x1b[2J", "Location: http://127.0.0.1:1/", "Transfer-Encoding: chunked"),
    *("Content-Length: 99999999999999999999", "Content-Length: -1", "Broken header", ": empty"),
)


class ServerAnswers(Target):
    name: ClassVar[str] = "server-answers"

    def __init__(self, folder: Path, real: Path | None) -> None:
        self._loop = asyncio.new_event_loop()
        self._answer = b""
        self._model = adapter_class("ui_tars")(ModelConfig(name="ui_tars", adapter="ui_tars"))
        self._judge = ActionEvaluator("guievalkit")
        self._server = self._loop.run_until_complete(asyncio.start_server(self._serve, "127.0.0.1", 0))
        self._port = self._server.sockets[0].getsockname()[1]

    def close(self) -> None:
        self._server.close()
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        self._loop.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            length = next((int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")), 0)
            await reader.readexactly(length)
            writer.write(self._answer)
            await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    def check(self, dice: Random) -> None:
        listed = dice.random() < 0.2
        self._answer = _http(dice, _body(dice, listed=listed))
        task = TASKS[0]
        request = Request(ModelInput((Message("user", ("Do it.",)),)), (), {}, request_id(task.key, 0), task)
        try:
            reply = self._loop.run_until_complete(self._asked(request, discover=listed))
        except (EngineError, UsageError) as error:
            sentence(error)
            return
        if reply is None:
            return
        stored(task, read_response(self._model, self._judge, task, reply), compact=dice.random() < 0.5)

    async def _asked(self, request: Request, *, discover: bool) -> Response | None:
        where = (f"http://127.0.0.1:{self._port}/v1",)
        engine = OpenAIEngine(Server(base_urls=where, served_model=None if discover else "m", **QUICK), sleep=at_once)
        try:
            if discover:
                await engine.discover()
                return None
            return await engine.generate(request)
        finally:
            await engine.close()


def _body(dice: Random, *, listed: bool) -> bytes:
    choice = {"index": 0, "message": dice.choice(_MESSAGES), "finish_reason": "stop", "logprobs": dice.choice((None, _TOKENS))}
    usage = {"prompt_tokens": 1200, "completion_tokens": 20, "total_tokens": 1220}
    whole: Any = {"id": "chatcmpl-1", "object": "chat.completion", "model": "m", "choices": [choice], "usage": usage}
    whole = _LIST if listed else _ERROR if dice.random() < 0.1 else whole
    unchanged = dice.random() < 0.2
    body = json.dumps(whole).encode() if unchanged else mutations.written(dice, mutations.value(dice, whole), lines=False)
    return mutations.data(dice, body) if dice.random() < 0.3 else body


def _http(dice: Random, body: bytes) -> bytes:
    """An answer with the body, rightly or wrongly framed."""
    status = dice.choice((200, 200, 200, 200, 200, 200, 200, 201, 204, 302, 400, 401, 404, 413, 429, 500, 503, 999))
    headers = [header.encode("latin-1") for header in dice.sample(_HEADERS, dice.choice((0, 0, 0, 1, 2)))]
    if b"Content-Encoding: gzip" in headers and dice.random() < 0.8:
        body = gzip.compress(body, 1)
    length = len(body) + dice.choice((0, 0, 0, 0, 0, 0, -1, 1, 5))
    head = [b"HTTP/1.1 %d Said" % status, b"Content-Length: %d" % max(0, length), *headers]
    answer = b"\r\n".join(head) + b"\r\n\r\n" + body
    return mutations.data(dice, answer) if dice.random() < 0.1 else answer

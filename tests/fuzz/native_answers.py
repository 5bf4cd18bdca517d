"""What a hosted model answers by its native API: whatever the model wrote is scored and can be carried out.

Of most cases only what the model wrote is damaged: its words, the names of its calls and their arguments. These may end
neither the request nor the step. In the others the whole answer is, which may also be refused in a sentence.
"""

from __future__ import annotations

import asyncio
import io
import json
from pathlib import Path
from random import Random
from typing import Any, ClassVar, Literal, NamedTuple

from PIL import Image

from guieval.conformance import example_actions, example_step
from guieval.data.screenshots import Screenshot
from guieval.engines import request_id
from guieval.engines.apis.hosted import HostedEngine
from guieval.errors import EngineError, UsageError
from guieval.evaluation import ActionEvaluator
from guieval.models import ABCModel, ModelConfig, Request
from guieval.models.response import Call, Response, calls_in
from guieval.models.scored_response import read_response
from guieval.playground.mock_server.native import answer_body
from guieval.registry import adapter_class
from guieval.running.engine_choice import native_api
from guieval.settings import Server

from . import mutations
from .engine import QUICK, TASKS, Target, Wrong, at_once, carried_out, sentence, stored

SIZE = TASKS[0].screenshot_size
_APIS: dict[str, tuple[str, Literal["responses", "messages", "generateContent"]]] = {
    "openai_computer": ("openai-responses", "responses"),
    "anthropic_computer": ("anthropic", "messages"),
    "gemini_computer": ("gemini", "generateContent"),
}
_LOOKS = (
    Call("zoom", {"region": [10, 20, 300, 400]}),
    Call("computer", {"action": "zoom", "region": [10, 20, 300, 400]}),
    Call("scroll", {"x": 5, "y": 6, "scroll_x": 0, "scroll_y": 300, "keys": None}),
    Call("scroll", {"coordinate": [5, 6], "scroll_direction": "down", "scroll_amount": 3}),
    Call("drag", {"path": [{"x": 1, "y": 2}, {"x": 30, "y": 400}]}),
    Call("drag_and_drop", {"x": 10, "y": 20, "destination_x": 500, "destination_y": 600}),
    Call("keypress", {"keys": ["CTRL", "c"]}),
    Call("cursor_position", {}),
)


class _Way(NamedTuple):
    model: ABCModel
    engine: HostedEngine
    api: Literal["responses", "messages", "generateContent"]
    request: Request
    fields: bytes
    material: list[Response]


class NativeAnswers(Target):
    name: ClassVar[str] = "native-answers"

    def __init__(self, folder: Path, real: Path | None) -> None:
        self._loop = asyncio.new_event_loop()
        self._server = self._loop.run_until_complete(asyncio.start_server(self._serve, "127.0.0.1", 0))
        self._port = self._server.sockets[0].getsockname()[1]
        self._answers: list[bytes] = []
        self._judge = ActionEvaluator("guievalkit")
        file = io.BytesIO()
        Image.new("RGB", (54, 120), "white").save(file, "PNG")
        self._screenshot = Screenshot(file.getvalue(), "png", (54, 120))
        self._ways = [self._way(adapter) for adapter in _APIS]

    def close(self) -> None:
        for way in self._ways:
            self._loop.run_until_complete(way.engine.close())
        self._server.close()
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        self._loop.close()

    def check(self, dice: Random) -> None:
        way = dice.choice(self._ways)
        whole = dice.random() < 0.2
        self._answers = [self._body(dice, way, whole) for _ in range(4)]
        try:
            response = self._loop.run_until_complete(way.engine.generate(way.request))
        except (EngineError, UsageError) as error:
            sentence(error)
            if not whole:
                raise Wrong(f"{way.model.config.name}: what the model wrote ended its request: {error}") from error
            return
        sample = read_response(way.model, self._judge, way.request.task, response)
        if not sample.answered and not response.broken_off:
            raise Wrong(f"{way.model.config.name}: {sample.error}")
        stored(way.request.task, sample, compact=dice.random() < 0.5)
        carried_out(sample)

    def _way(self, adapter: str) -> _Way:
        kind, api = _APIS[adapter]
        model = adapter_class(adapter)(ModelConfig(name=adapter, adapter=adapter))
        where = (f"http://127.0.0.1:{self._port}/v1",)
        settings = Server(base_urls=where, served_model="m", api_key_env=native_api(kind).key_env, **QUICK)
        task = example_step(TASKS[0].action)
        request = Request(model.prepare_input(task, []), (self._screenshot,), {}, request_id(task.key, 0), task)
        words = [model.render(task, action, "I see it.", "Tap it.") for action in example_actions(model.action_space)]
        material = [Response(said, calls=calls) for said, calls in map(calls_in, words)]
        material += [Response("I look.", calls=(look,)) for look in _LOOKS]
        fields = json.dumps({"model": "m", "tools": request.input.extra.get("tools", [])}).encode()
        return _Way(model, HostedEngine(native_api(kind), settings, sleep=at_once), api, request, fields, material)

    def _body(self, dice: Random, way: _Way, whole: bool) -> bytes:
        response = dice.choice(way.material)
        calls = tuple(_damaged(dice, call) for call in response.calls) * dice.choice((1, 1, 1, 2))
        text = mutations.text(dice, response.text) if dice.random() < 0.3 else response.text
        if not whole:
            text = Response(text, calls=tuple(Call(call.name, call.arguments) for call in calls)).written
        try:
            body = answer_body(way.api, text, way.fields, 0)
        except (ValueError, RecursionError, UnicodeEncodeError):  # no server could write that
            return answer_body(way.api, response.written, way.fields, 0)
        if not whole:
            return body
        return mutations.written(dice, mutations.value(dice, json.loads(body)), lines=False)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                lines = head.lower().split(b"\r\n")
                await reader.readexactly(next((int(line[15:]) for line in lines if line.startswith(b"content-length:")), 0))
                body = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body))
                writer.write(body)
                await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


def _damaged(dice: Random, call: Call) -> Call:
    arguments: Any = mutations.value(dice, call.arguments) if dice.random() < 0.8 else call.arguments
    name = mutations.text(dice, call.name) if dice.random() < 0.1 else call.name
    return Call(name, arguments if isinstance(arguments, dict) else {"value": arguments})

"""What an answer that cannot be used has cost: it stays on the bill of its request, and a request is paid only so often."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from guieval.engines.usage_reports import usage_in
from guieval.errors import EngineError, Halted
from guieval.models import Bill
from guieval.steps import Usage
from tests.engines.asking import engine_for, listening, make_request
from tests.rows import every_row

PAID = Usage(prompt_tokens=700, completion_tokens=30)
REPORT = {"prompt_tokens": 700, "completion_tokens": 30}


def body(finish: str = "stop", **changes: Any) -> bytes:
    choice = {"message": {"content": "the answer"}, "finish_reason": finish}
    return json.dumps({"choices": [choice], "usage": REPORT, **changes}).encode()


def http(status: str, data: bytes, *, missing: int = 0) -> bytes:
    return f"HTTP/1.1 {status}\r\ncontent-length: {len(data) + missing}\r\nconnection: close\r\n\r\n".encode() + data


UNUSED = [
    ("no choices", http("200 OK", body(choices=[]))),
    ("no message", http("200 OK", body(choices=[{"index": 0}]))),
    ("a content that is a number", http("200 OK", body(choices=[{"message": {"content": 5}}]))),
    ("broken off by the server", http("200 OK", body("abort"))),
    ("cut off after the usage", http("200 OK", body()[:-1])),
    ("less than was announced", http("200 OK", body(), missing=9)),
    ("an error with a usage", http("500 Oops", json.dumps({"error": {"message": "crashed"}, "usage": REPORT}).encode())),
]


async def _ask(answers: list[bytes], bill: Bill, **changes: Any) -> tuple[Any, int]:
    received = 0

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal received
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        if not head.startswith("POST"):  # a probe: the server is there
            writer.write(http("200 OK", b"{}"))
        else:
            writer.write(answers[min(received, len(answers) - 1)])
            received += 1
        await writer.drain()
        writer.close()

    async with listening(handle) as port:
        engine = engine_for(f"http://127.0.0.1:{port}/v1", **changes)
        request = make_request("Click.")
        object.__setattr__(request, "bill", bill)
        try:
            return await engine.generate(request), received
        except EngineError as error:
            return error, received
        finally:
            await engine.close()


@every_row("what, unused", UNUSED)
def test_an_answer_that_cannot_be_used_is_on_the_bill(what: str, unused: bytes) -> None:
    counted: list[Usage] = []
    bill = Bill(counted.append)
    reply, _ = asyncio.run(_ask([unused, http("200 OK", body())], bill))
    assert reply.text == "the answer" and reply.usage == PAID, what
    assert bill.others == counted == [PAID], "apart from the tokens of the answer that counted"


@every_row("what, unused", UNUSED)
def test_a_request_is_paid_only_as_often_as_it_may_be_tried(what: str, unused: bytes) -> None:
    bill = Bill()
    error, received = asyncio.run(_ask([unused], bill, max_attempts=3))
    assert isinstance(error, EngineError) and (received, bill.others) == (3, [PAID] * 3), what


def test_a_step_that_was_paid_for_is_not_asked_again_when_the_budget_is_used_up() -> None:
    bill = Bill(halted=lambda: "the budget is used up")
    error, received = asyncio.run(_ask([UNUSED[0][1]], bill))
    assert isinstance(error, Halted) and received == 1 and "the budget is used up" in str(error)
    unpaid = http("503 Busy", b'{"error": {"message": "overloaded"}}')
    reply, received = asyncio.run(_ask([unpaid, http("200 OK", body())], Bill(halted=bill.halted)))
    assert reply.text == "the answer" and received == 2, "one that cost nothing is tried again all the same"


@pytest.mark.parametrize(
    ("data", "usage"),
    [
        (b'{"usage": {"input_tokens": 5, "cache_read_input_tokens": 10, "output_tokens": 2}}', (15, 2)),
        (b'{"usageMetadata": {"promptTokenCount": 5, "candidatesTokenCount": 2, "thoughtsTokenCount": 3}}', (5, 5)),
        (b'{"content": "it says \\"usage\\": {\\"prompt_tokens\\": 9}", "choi', None),
        (b'{"usage": {"prompt_tokens": -5, "completion_tokens": "x"}}', None),
        (b'{"usage": {"prompt_tokens": 5}, "usage', (5, None)),
        (b"[" * 100_000, None),
        (b"\xff\xfe<html>", None),
        (b'{"usage": null}', None),
    ],
)
def test_the_usage_in_whatever_came_back(data: bytes, usage: tuple[int | None, int | None] | None) -> None:
    expected = None if usage is None else Usage(prompt_tokens=usage[0], completion_tokens=usage[1])
    assert usage_in(data) == expected

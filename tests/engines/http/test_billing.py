"""What an answer that cannot be used has cost: it stays on the bill of its request, and a request is paid only so often."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from guieval.engines.usage_reports import usage_in
from guieval.errors import EngineError, Halted
from guieval.models import Bill
from guieval.steps import Usage
from tests.engines.asking import make_request
from tests.engines.http.raw_answers import ask_raw, response
from tests.rows import every_row

PAID = Usage(prompt_tokens=700, completion_tokens=30)
REPORT = {"prompt_tokens": 700, "completion_tokens": 30}


def body(finish: str = "stop", **changes: Any) -> bytes:
    choice = {"message": {"content": "the answer"}, "finish_reason": finish}
    return json.dumps({"choices": [choice], "usage": REPORT, **changes}).encode()


GOOD = response(body())
UNUSED = [
    ("no choices", response(body(choices=[]))),
    ("no message", response(body(choices=[{"index": 0}]))),
    ("a content that is a number", response(body(choices=[{"message": {"content": 5}}]))),
    ("broken off by the server", response(body("abort"))),
    ("cut off after the usage", response(body()[:-1])),
    ("less than was announced", response(body(), length=len(body()) + 9)),
    ("an error with a usage", response(json.dumps({"error": {"message": "crashed"}, "usage": REPORT}).encode(), "500 Oops")),
]


@every_row("what, unused", UNUSED)
def test_an_answer_that_cannot_be_used_is_on_the_bill(what: str, unused: bytes) -> None:
    counted: list[Usage] = []
    request = replace(make_request("Click."), bill=Bill(counted.append))
    reply = ask_raw([unused, GOOD], request)
    assert reply.text == "the answer" and reply.usage == PAID, what
    assert request.bill.others == counted == [PAID], "apart from the tokens of the answer that counted"


@every_row("what, unused", UNUSED)
def test_a_request_is_paid_only_as_often_as_it_may_be_tried(what: str, unused: bytes) -> None:
    request = make_request("Click.")
    with pytest.raises(EngineError) as caught:
        ask_raw([unused], request, max_attempts=3)
    assert (caught.value.attempts, request.bill.others) == (3, [PAID] * 3), what


def test_a_step_that_was_paid_for_is_not_asked_again_when_the_budget_is_used_up() -> None:
    request = replace(make_request("Click."), bill=Bill(halted=lambda: "the budget is used up"))
    with pytest.raises(Halted, match="the budget is used up"):
        ask_raw([UNUSED[0][1]], request)
    assert request.bill.others == [PAID]
    unpaid = response(b'{"error": {"message": "overloaded"}}', "503 Busy")
    reply = ask_raw([unpaid, GOOD], replace(request, bill=Bill(halted=request.bill.halted)))
    assert reply.text == "the answer" and reply.attempts == 2, "one that cost nothing is tried again all the same"


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

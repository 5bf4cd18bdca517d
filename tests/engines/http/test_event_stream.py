"""Answers that are streamed, requested so or not: the same response as one that is sent at once, or one that was broken off."""

from __future__ import annotations

import json
from typing import Any

import pytest

from guieval.engines.http.chat_answers import TryAgain, response_in
from guieval.engines.http.chat_body import ChatBody
from guieval.errors import EngineError
from guieval.models import Response
from guieval.models.response import Call
from guieval.steps import Usage
from tests.engines.asking import ask_all, engine_for, make_request, mock
from tests.engines.http.raw_answers import ask_raw, response
from tests.rows import every_row

USAGE = {"prompt_tokens": 7, "completion_tokens": 3}
KNOWN = Usage(prompt_tokens=7, completion_tokens=3)


def delta(finish: str | None = None, **changes: Any) -> dict[str, Any]:
    return {"model": "m", "choices": [{"index": 0, "delta": changes, "finish_reason": finish}], "usage": None}


def stream(*chunks: Any, done: bool = True, end: str = "\n") -> bytes:
    events = [chunk if isinstance(chunk, str) else f"data: {json.dumps(chunk)}" for chunk in chunks]
    return "".join(event + 2 * end for event in [*events, *["data: [DONE]"] * done]).encode()


def piece(index: int | None, arguments: str = "", **more: Any) -> dict[str, Any]:
    function = {"arguments": arguments, **{key: more[key] for key in ("name",) if key in more}}
    return {
        "function": function,
        **{key: more[key] for key in ("id",) if key in more},
        **({} if index is None else {"index": index}),
    }


COUNTED = {"choices": [], "usage": USAGE}
CALLS = (Call("click", {"x": 1}, "a"), Call("type", {"text": "é"}, "b"))
CALLED = Response("", None, None, "tool_calls", model="m", calls=CALLS)
SAID = Response("the answer", None, KNOWN, "stop", model="m")
END = delta("stop", content="the answer")
HALVES = (delta(content="the "), delta("stop", content="answer"), COUNTED)
MESSAGE = {"model": "m", "choices": [{"message": {"content": "the answer"}, "finish_reason": "stop"}]}
WHOLE = [
    ("texts", stream(delta(role="assistant", content=""), *HALVES), SAID),
    ("CR LF", stream(*HALVES, end="\r\n"), SAID),
    ("comments", stream(": ping", END, "event: x\nid: 1", COUNTED), SAID),
    ("no [DONE]", stream(END, COUNTED, done=False), SAID),
    ("a BOM, no space", b"\xef\xbb\xbf" + stream(END, COUNTED).replace(b"data: ", b"data:"), SAID),
    ("a message", stream(MESSAGE, COUNTED), SAID),
    ("parts", stream(delta("stop", content=[{"type": "text", "text": "the "}, "answer"]), COUNTED), SAID),
    ("other choices", stream(END, {"choices": [{"index": 1, "delta": {"content": "no"}}]}, COUNTED), SAID),
    (
        "reasoning",
        stream(delta(reasoning_content="I "), delta(reasoning_content="think"), delta("stop", content="x")),
        Response("x", "I think", None, "stop", model="m"),
    ),
    (
        "calls by index",
        stream(
            delta(tool_calls=[piece(0, name="click", id="a"), piece(1, name="type", id="b")]),
            *(delta(tool_calls=[each]) for each in (piece(1, '{"text": '), piece(0, '{"x": 1}'))),
            delta("tool_calls", tool_calls=[piece(1, '"é"}')]),
        ),
        CALLED,
    ),
    (
        "calls by id",
        stream(
            *(delta(tool_calls=[each]) for each in (piece(None, '{"x"', name="click", id="a"), piece(None, ": 1}"))),
            delta("tool_calls", tool_calls=[piece(None, '{"text": "é"}', name="type", id="b")]),
        ),
        CALLED,
    ),
    (
        "the older function call",
        stream(
            delta(function_call={"name": "click", "arguments": '{"x"'}),
            delta("function_call", function_call={"arguments": ":1}"}),
        ),
        Response("", None, None, "function_call", model="m", calls=(Call("click", {"x": 1}),)),
    ),
    ("nothing said", stream(delta("stop")), Response("", None, None, "stop", model="m")),
]


@every_row("what, body, expected", WHOLE)
def test_a_stream_is_the_response_that_it_adds_up_to(what: str, body: bytes, expected: Response) -> None:
    assert response_in(body) == expected, what


@every_row(
    "body, why",
    [
        (stream(delta(content="the "), done=False), "ended before"),
        (stream(delta(content="the "), COUNTED, done=False), "ended before"),
        (stream(delta(content="the "), {"error": {"message": "out of memory"}}), "out of memory"),
        (stream(delta(content="the "))[:-40], "not JSON"),
        (stream("data: 5"), "JSON int"),
        (stream(), "no choices"),
        (b": ping\n\n", "ended before"),
        (stream("data: " + "[" * 100_000), "not JSON"),
    ],
)
def test_a_stream_that_was_broken_off_is_tried_again(body: bytes, why: str) -> None:
    with pytest.raises(TryAgain, match=why):
        response_in(body)
    reply = ask_raw([response(body), response(WHOLE[0][1])], make_request())
    assert (reply.text, reply.attempts) == ("the answer", 2), "and a stream is read that nobody requested"


def test_what_a_stream_that_was_broken_off_has_cost_is_on_the_bill() -> None:
    request = make_request()
    ask_raw([response(stream(delta(content="the "), COUNTED, done=False)), response(WHOLE[0][1])], request)
    assert request.bill.others == [KNOWN]


def test_a_stream_is_requested_with_its_usage() -> None:
    with mock() as server:
        ask_all(engine_for(server.base_url, stream=True), make_request())
        (request,) = server.requests
    body = json.loads(request.body)
    assert (body["stream"], body["stream_options"]) == (True, {"include_usage": True})
    assert request.headers["accept"] == "text/event-stream"
    assert b"stream" not in ChatBody(make_request(), "m").written([])


def test_a_server_that_only_streams_is_named_with_the_setting() -> None:
    message = "This model only supports stream mode, please enable the stream parameter to access the model."
    body = response(json.dumps({"error": {"message": message}}).encode(), status="400 Bad Request")
    with pytest.raises(EngineError, match="--set stream=true"):
        ask_raw([body], make_request())


@every_row("size", [1, 7, 64])
def test_garbage_in_a_stream_is_a_response_or_is_tried_again(size: int) -> None:
    whole = WHOLE[9][1]
    for start in range(0, len(whole), size):
        for damaged in (whole[:start], whole[:start] + b"\x00" + whole[start + size :], whole[start:]):
            try:
                assert isinstance(response_in(damaged), Response)
            except TryAgain:
                continue

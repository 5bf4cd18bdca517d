"""Function calls as text: what the engine makes of a message's calls, and the mock server's way back."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guieval.data.screenshots import Screenshot
from guieval.engines.http.chat_body import chat_body
from guieval.errors import UsageError
from guieval.models import Request, Response
from guieval.models.response import calls_in
from tests.engines.asking import ask, engine_for, make_request, mock
from tests.rows import every_row

TOOLS = [{"type": "function", "function": {"name": "click", "parameters": {"type": "object", "properties": {}}}}]
CLICK = '<tool_call>\n{"name": "click", "arguments": {"x": 1}}\n</tool_call>'


X = '"x": 1'


def call(name: Any, arguments: Any) -> dict[str, Any]:
    return {"id": "call_0", "type": "function", "function": {"name": name, "arguments": arguments}}


@every_row(
    ("content", "calls", "text"),
    [
        ("", [call("click", '{"x": 1}')], CLICK),
        ("I click.", [call("click", '{"x": 1}')], f"I click.\n{CLICK}"),
        ("", [call("click", '{"x":\n1}'), call("wait", "{}")], f"{CLICK}\n{CLICK.replace('click', 'wait').replace(X, '')}"),
        ("", [call("click", {"x": 1})], CLICK),
        *(("", [call("click", empty)], CLICK.replace(X, "")) for empty in ("", None)),
        ("", [call("click", '{"x": 12')], '<tool_call>\n{"name": "click", "arguments": "{\\"x\\": 12"}\n</tool_call>'),
        ("", [call("click", "[1]")], '<tool_call>\n{"name": "click", "arguments": "[1]"}\n</tool_call>'),
        ("", [call("喂", '{"t": "é"}')], '<tool_call>\n{"name": "喂", "arguments": {"t": "é"}}\n</tool_call>'),
        *(("words", odd, "words") for odd in ([], None, "no list", [3, {"function": 4}, call(5, "{}"), {"type": "custom"}])),
    ],
)
def test_calls_become_text(content: str, calls: object, text: str) -> None:
    assert Response.of({"content": content, "tool_calls": calls}).written == text


values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


@given(
    calls=st.lists(
        st.tuples(st.text(min_size=1, max_size=9), st.dictionaries(st.text(max_size=9), values, max_size=3)), max_size=3
    )
)
def test_the_way_there_and_back(calls: list[tuple[str, dict[str, Any]]]) -> None:
    """Whatever the arguments hold, the tags and line breaks included."""
    sent = [call(name, json.dumps(arguments)) for name, arguments in calls]
    words, found = calls_in(Response.of({"content": "I see.", "tool_calls": sent}).written)
    assert words == "I see."
    assert [(each.name, each.arguments) for each in found] == calls


@every_row(
    "text",
    [
        *["words", "<tool_call>", f"{CLICK}\nThat is it.", "<tool_call>\n" * 20_000],
        *(f"<tool_call>\n{odd}\n</tool_call>" for odd in ("words", "[1]", "{}", '{"name": 5, "arguments": {}}')),
    ],
)
def test_what_is_no_call_stays_words(text: str) -> None:
    assert calls_in(text) == (text, ())


def asked(**changes: Any) -> dict[str, Any]:
    request: Request = make_request("look", images=[Screenshot(b"abc", "png", (1, 1))], **changes)
    body: dict[str, Any] = json.loads(chat_body(request, "m"))
    return body


def test_functions_are_request_fields_and_detail_goes_with_the_image() -> None:
    body = asked(extra={"tools": tuple(TOOLS), "tool_choice": "required", "image_detail": "high"})
    assert (body["tools"], body["tool_choice"]) == (TOOLS, "required")
    assert "image_detail" not in body
    assert body["messages"][1]["content"][1]["image_url"] == {"url": "data:image/png;base64,YWJj", "detail": "high"}
    assert asked()["messages"][1]["content"][1]["image_url"] == {"url": "data:image/png;base64,YWJj"}


def test_an_unknown_detail_is_refused() -> None:
    with pytest.raises(UsageError, match="image_detail is 'fine', not one of low, high, auto"):
        asked(sampling={"image_detail": "fine"})


@every_row(
    ("reply", "offered", "reason"),
    [
        *[(f"I click.\n{CLICK}", True, "tool_calls"), (f"I click.\n{CLICK}", False, "stop")],
        ("<tool_call> {", True, "stop"),  # no call
    ],
)
def test_the_mock_server_calls_functions_where_they_are_offered(reply: str, offered: bool, reason: str) -> None:
    """To the engine both look the same; a message that talks about the field is not an offer."""
    request = make_request('"tools": [{', extra={"tools": TOOLS} if offered else {})
    with mock(reply=reply) as server:
        sentence = ask(engine_for(server.base_url), request)
    assert (sentence.written, sentence.finish_reason) == (reply, reason)

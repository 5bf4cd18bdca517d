"""Chat answers, tool calls in them, what they bill, and JSON that is bounded."""

from __future__ import annotations

import json
import tempfile
import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from guieval.data.screenshots import Screenshot
from guieval.engines.http import bounded_json
from guieval.engines.http.bounded_json import MOST_VALUES, TooLarge, read_json, read_with_pictures
from guieval.engines.http.chat_answers import TryAgain, response_in
from guieval.engines.http.chat_body import chat_body
from guieval.engines.usage_reports import usage_in
from guieval.errors import EngineError, Halted, UsageError
from guieval.evaluation import ActionEvaluator
from guieval.history.modes import get_mode
from guieval.journal import STEPS, Journal, RunFolder
from guieval.models import Bill, Request, Response
from guieval.models.response import calls_in
from guieval.models.scored_response import read_response
from guieval.registry import load_model
from guieval.running.costs import Price, Tokens
from guieval.steps import MOST_TOKENS, Sample, StepOutcome, StepRecord, Usage
from tests.engines.asking import ask, engine_for, make_request, mock
from tests.engines.http.raw_answers import ask_raw, response
from tests.metrics.made_columns import made_ledger, whole
from tests.rows import every_row
from tests.scripted import ACTIONS, make_episode

MODEL = load_model("qwen3-vl-8b-instruct")
TASK = make_episode("e", ACTIONS).steps[0]
PRICE = Price(models=("m",), currency="EUR", input=2.0, output=8.0, source="made up", as_of="2026-11-21")

odd_numbers = st.one_of(
    st.integers(),
    st.sampled_from([2**63 - 1, 2**64 - 1, -1, 10**400, -(10**400), 10**4299, 1e308, -1e308, 1e-320]),
    st.floats(),
)
odd_texts = st.text(st.characters(), max_size=20)  # half surrogate pairs among them
odd = st.recursive(
    st.one_of(st.none(), st.booleans(), odd_numbers, odd_texts),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(odd_texts, inner, max_size=3)),
    max_leaves=6,
)
arguments = st.fixed_dictionaries(
    {"action": st.one_of(st.sampled_from(["click", "type", "swipe", "wait", "key"]), odd)},
    optional={"coordinate": st.one_of(st.lists(odd_numbers, min_size=2, max_size=2), odd), "text": odd, "time": odd, "x": odd},
)
calls = st.lists(
    st.fixed_dictionaries(
        {
            "function": st.fixed_dictionaries(
                {"name": st.one_of(st.just("mobile_use"), odd), "arguments": st.one_of(odd, arguments.map(json.dumps))}
            )
        }
    ),
    max_size=2,
)
messages = st.fixed_dictionaries(
    {}, optional={"content": odd, "reasoning_content": odd, "refusal": odd, "tool_calls": st.one_of(odd, calls)}
)
logprobs = st.fixed_dictionaries({"content": st.lists(st.fixed_dictionaries({"logprob": odd_numbers}), max_size=4)})
choices = st.fixed_dictionaries({"message": messages}, optional={"finish_reason": odd, "logprobs": st.one_of(odd, logprobs)})
usages = st.fixed_dictionaries({}, optional={"prompt_tokens": odd, "completion_tokens": odd})
answers = st.fixed_dictionaries({"choices": st.lists(choices, min_size=1, max_size=1)}, optional={"usage": usages})


def answer(**more: Any) -> dict[str, Any]:
    return {"choices": [{"message": {"content": "x"}}], **more}


@given(answers, st.booleans())
@example(answer(usage={"prompt_tokens": 5, "completion_tokens": 2**64 - 1}), False)
@example(answer(usage={"prompt_tokens": -(2**70), "completion_tokens": -5}), True)
@example({"choices": [{"message": {"content": "x"}, "logprobs": {"content": [{"logprob": 1e308}] * 2}}]}, False)
@example({"choices": [{"message": {"content": "x"}, "logprobs": {"content": [{"logprob": 10**400}]}}]}, False)
@example({"choices": [{"message": {"content": "x"}, "finish_reason": "\ud800"}]}, True)
@settings(max_examples=300, deadline=None)
def test_a_record_of_any_answer_is_read_back_equal_counted_and_costs_something(body: dict[str, Any], compact: bool) -> None:
    try:
        response = response_in(json.dumps(body).encode())
    except TryAgain:
        return
    sample = read_response(MODEL, ActionEvaluator("guievalkit"), TASK, response)
    record = StepRecord(task=TASK, samples=(sample,))
    with tempfile.TemporaryDirectory() as folder:
        with Journal(Path(folder), compact=compact) as journal:
            journal.append(record)
        records = RunFolder(Path(folder)).records
        assert list(records) == [record] and not records.damaged
    ledger = made_ledger({TASK.episode_key: range(4)}, get_mode("offline"))
    ledger.take(record)
    whole(ledger)
    tokens = Tokens()
    tokens.add(record)
    assert (PRICE.cost(tokens) or 0.0) >= 0.0


def test_an_answer_with_a_number_that_python_does_not_read_is_an_answer_all_the_same() -> None:
    digits = "9" * 5000
    body = f'{{"choices": [{{"message": {{"content": "x"}}}}], "usage": {{"prompt_tokens": 3, "completion_tokens": {digits}}}}}'
    reply = response_in(body.encode())
    assert reply.text == "x" and reply.usage is not None and reply.usage.completion_tokens is None


@every_row("count", [-1, MOST_TOKENS + 1, 2**64 - 1, True, 1.5, "many", None])
def test_an_absurd_count_is_unknown(count: Any) -> None:
    assert Usage(prompt_tokens=count, completion_tokens=MOST_TOKENS) == Usage(completion_tokens=MOST_TOKENS)


def test_a_journal_of_an_older_version_with_absurd_numbers_is_read_with_them_unknown(tmp_path: Path) -> None:
    good = Usage(prompt_tokens=7, completion_tokens=6)
    sample = Sample(raw_response="x", outcome=StepOutcome(verdict="wrong"), usage=good, logprob=-0.5)
    with Journal(tmp_path) as journal:
        journal.append(StepRecord(task=TASK, samples=(sample,)))
    values = json.loads((tmp_path / STEPS).read_text(encoding="utf-8"))
    del values["crc32"]
    line = json.dumps(values, separators=(",", ":")) + "\n"
    for count in (str(2**64 - 1), "-1", "1e400", "9" * 400):
        for logprob in ("1e308", "-1e400", "9" * 400):
            written = line.replace('"completion_tokens":6', f'"completion_tokens":{count}').replace("-0.5", logprob)
            assert written != line
            (tmp_path / STEPS).write_text(written, encoding="utf-8")
            records = RunFolder(tmp_path).records
            read = list(records)
            assert not records.damaged
            assert [record.sample.usage for record in read] == [Usage(prompt_tokens=7)]
            assert [record.sample.logprob for record in read] == [None]
            ledger = made_ledger({TASK.episode_key: range(1)}, get_mode("offline"))
            ledger.take(read[0])
            assert whole(ledger).metrics["completion tokens"].value is None


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


@pytest.mark.ci
@every_row("shape", [(1, 1, 3), (2, 3, 3), (5, 7, 4), (40, 300, 3), (3, 200_000, 3)])
def test_rows_of_pixels_become_an_array_of_the_same_colours(shape: tuple[int, int, int]) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)
    others = {"text": 'a [[[1,2,3]]] and a \\" mark', "empty": [], "deep": {"x": [1, 2, [3]]}}
    for separators in ((",", ":"), (", ", ": ")):
        text = json.dumps({**others, "pixels": pixels.tolist(), "after": others}, separators=separators).encode()
        read = read_with_pictures(text)
        found = read.pop("pixels")
        assert found.dtype == np.uint8 and np.array_equal(found, pixels)
        assert read == {**others, "after": others}


@every_row(
    "text",
    [
        *(b"[[[1,2],[3]]]", b"[[[256,2,3]]]", b"[[[1000,2,3]]]", b"[[[1,2,3],[1,2]]]", b"[[[]]]", b"[[[1.5,2,3]]]"),
        *(b"[[[-1,2,3]]]", b"[[[1,2,3]],[[1,2,3],[1,2,3]]]", b"[[[1e1,2,3]]]", b'[[["a",2,3]]]', b'{"a":"[[[1,2,3]]]"}'),
        *(b'"\\\\"', b'["\\\\\\"", "\\\\"]', b'{"picture 0": 0}', b"[[]]", b"null", b"[[[null]]]"),
    ],
)
def test_what_is_no_picture_is_read_as_json_reads_it(text: bytes) -> None:
    assert read_with_pictures(text) == read_json(text) == json.loads(text)


@every_row("text", [b"", b"{", b'"', b"[[[", b"[[[1,,3]]]", b"[[[1 2,3]]]", b'{"a":"\\', b"[" * 100_000, b"\xff"])
def test_what_is_no_json_is_a_value_error(text: bytes) -> None:
    for read in (read_json, read_with_pictures):
        with pytest.raises(ValueError):
            read(text)


def test_a_long_text_stays_a_text_and_a_long_integer_is_infinite() -> None:
    long = "QUJD" * 1_000_000
    assert read_with_pictures(json.dumps({"shot": long, "goal": "g"}).encode()) == {"shot": long, "goal": "g"}
    assert read_json(b'{"tokens": 1' + b"0" * 5000 + b"}") == {"tokens": float("inf")}


@pytest.mark.ci
@every_row(
    "text",
    [
        b'{"pixels":[' + b"[]," * 2_700_000 + b"[]]}",
        b"[" + b"[[[1]]]," * 1_000_000 + b"1]",
        b"[" + b'"",' * 2_700_000 + b"1]",
        b'["' + b'\\",' * 2_000_000 + b'"' + b",[]" * 400_000 + b"]",
        b"[" + b"{}," * MOST_VALUES + b"1]",
    ],
    ids=["empty lists", "small pictures", "empty texts", "behind a text of marks", "objects"],
)
def test_a_bomb_of_values_is_refused_before_any_of_them_is_made(text: bytes) -> None:
    for read in (read_json, read_with_pictures):
        tracemalloc.start()
        try:
            with pytest.raises(TooLarge, match="has more than"):
                read(text)
            assert tracemalloc.get_traced_memory()[1] < 4 * len(text)
        finally:
            tracemalloc.stop()


def test_commas_in_a_text_are_no_values() -> None:
    text = json.dumps({"content": 'a, [b], {"c"}\\' * 300_000}).encode()
    assert read_json(text) == read_with_pictures(text) == json.loads(text)


def test_a_response_of_too_many_values_is_asked_for_again() -> None:
    with pytest.raises(TryAgain, match=f"the answer has more than {MOST_VALUES:,} values"):
        response_in(b'{"choices":[' + b"{}," * MOST_VALUES + b"{}]}")


def test_what_is_large_beside_the_pictures_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded_json, "MOST_BESIDE", 1 << 20)
    given: dict[str, Any] = {"text": "ä" * (1 << 20)}
    with pytest.raises(TooLarge, match="more than 1 MiB without its pictures"):
        read_with_pictures(json.dumps(given, ensure_ascii=False).encode())

"""The HTTP engine against the mock server: what it sends, when it asks again, how it fails, and what it never tells."""

from __future__ import annotations

import asyncio
import base64
import gzip
import hashlib
import json
import logging
import math
import random
import re
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guieval.data.screenshots import Screenshot, read_screenshot
from guieval.engines import request_id
from guieval.engines.concurrency import AdaptiveConcurrency
from guieval.engines.http.chat_answers import MAX_REPLY_BYTES, asked_wait
from guieval.engines.http.chat_body import chat_body
from guieval.engines.http.chat_completions import OpenAIEngine
from guieval.errors import EngineError, FatalEngineError, UsageError
from guieval.models import ImageRef, Message, ModelInput, Request, Response
from guieval.playground.mock_server import MockServer
from guieval.secrets import Redaction
from guieval.steps import Usage
from tests.engines.asking import Sleeps, ask, asked, engine_for, listening, make_request, mock
from tests.engines.http.raw_answers import ask_raw, completion, response
from tests.outage import reserved_port
from tests.rows import every_row
from tests.waiting import auntil, past_hangs

KEY = "sk-very-secret-0123456789"


def ask_past_hangs(engine: OpenAIEngine, request: Request, server: MockServer) -> Response:
    """As :func:`ask`, without a wait for the time limit of tries that hang at ``server``."""
    return past_hangs(asked(engine, request), lambda: server.stats()["hung"], engine.settings.timeout)[0]


# What is sent


def test_a_screenshot_arrives_byte_for_byte(tmp_path: Path) -> None:
    from PIL import Image

    pixels = random.Random(3).randbytes(300 * 200 * 3)
    Image.frombytes("RGB", (300, 200), pixels).save(tmp_path / "shot.png")
    Image.frombytes("RGB", (300, 200), pixels).save(tmp_path / "shot.jpg")
    shots = [read_screenshot(tmp_path, name, (300, 200)) for name in ("shot.png", "shot.jpg")]
    with mock() as server:
        ask(engine_for(server.base_url), make_request("look", images=shots))
        (seen,) = server.requests
    parts = json.loads(seen.body)["messages"][1]["content"]
    assert parts[0] == {"type": "text", "text": "look"}
    for part, kind, name in zip(parts[1:], ("png", "jpeg"), ("shot.png", "shot.jpg"), strict=True):
        head, _, text = part["image_url"]["url"].partition(",")
        assert head == f"data:image/{kind};base64"
        assert hashlib.sha256(base64.b64decode(text)).digest() == hashlib.sha256((tmp_path / name).read_bytes()).digest()


nasty = st.text(st.characters()) | st.sampled_from(['"', "\\", '"}}]', "data:image/png;base64,", "{0}", "\x00", "\ud83d"])
message_parts = st.lists(nasty | st.binary(max_size=40), max_size=5)


@given(contents=st.lists(message_parts, min_size=1, max_size=4), model=nasty)
def test_the_body_is_json_that_states_what_was_meant(contents: list[list[str | bytes]], model: str) -> None:
    """A message is a list of texts (str) and images (bytes); json.loads is the judge of what was written."""
    template = make_request()
    reference = ImageRef(template.task)
    messages = tuple(
        Message("user", tuple(each if isinstance(each, str) else reference for each in parts)) for parts in contents
    )
    images = tuple(Screenshot(part, "png", (1, 1)) for parts in contents for part in parts if isinstance(part, bytes))
    body = json.loads(chat_body(Request(ModelInput(messages), images, {"temperature": 0.5}, "id", template.task), model))
    assert body["model"] == model
    assert body["temperature"] == 0.5
    for message, parts in zip(body["messages"], contents, strict=True):
        if all(isinstance(part, str) for part in parts):
            assert message == {"role": "user", "content": "".join(str(part) for part in parts)}
            continue
        assert len(message["content"]) == len(parts)
        for sent, part in zip(message["content"], parts, strict=True):
            if isinstance(part, str):
                assert sent == {"type": "text", "text": part}
            else:
                url = "data:image/png;base64," + base64.b64encode(part).decode()
                assert sent == {"type": "image_url", "image_url": {"url": url}}


def test_sampling_and_extra_are_top_level_fields() -> None:
    request = make_request(
        sampling={"temperature": 0, "extra_body": {"top_k": 20}, "chat_template_kwargs": {"a": 1, "b": 1}},
        extra={"chat_template_kwargs": {"b": 2}, "stop": ["</s>"]},
    )
    body = json.loads(chat_body(request, "m"))
    del body["messages"]
    assert body == {"model": "m", "temperature": 0, "top_k": 20, "chat_template_kwargs": {"a": 1, "b": 2}, "stop": ["</s>"]}


def test_a_prefilled_turn_is_continued() -> None:
    body = json.loads(chat_body(make_request("hi", prefill="Thought: "), "m"))
    assert body["messages"][-1] == {"role": "assistant", "content": "Thought: "}
    assert (body["continue_final_message"], body["add_generation_prompt"]) == (True, False)
    assert "continue_final_message" not in json.loads(chat_body(make_request("hi"), "m"))


@every_row("sampling", [{"stream": True}, {"n": 4}, {"messages": []}, {"temperature": float("nan")}, {"a": {1}}])
def test_parameters_that_cannot_be_sent_stop_the_run_before_a_request(sampling: dict[str, Any]) -> None:
    with mock() as server:
        with pytest.raises(FatalEngineError, match="cannot be"):
            ask(engine_for(server.base_url), make_request(sampling=sampling))
        assert server.stats()["requests"] == 0


@pytest.mark.parametrize(("shown", "given_"), [(1, 0), (0, 1), (1, 2)])
def test_images_must_be_those_the_messages_show(shown: int, given_: int) -> None:
    shot = Screenshot(b"x", "png", (1, 1))
    request = make_request("hi", images=[shot] * shown)
    request = Request(request.input, (shot,) * given_, {}, "id", request.task)
    with pytest.raises(ValueError, match="images"):
        chat_body(request, "m")


def test_the_request_id_is_sent_header_safe_and_new_for_every_try() -> None:
    with mock(first_faults=("500",)) as server:
        ask(engine_for(server.base_url), make_request(name="步骤\r\nX-Evil: 1"))
        names = [seen.headers["x-request-id"] for seen in server.requests]
        assert all("x-evil" not in seen.headers for seen in server.requests)
    assert len(set(names)) == 2
    assert {name.partition("~")[0] for name in names} == {"%E6%AD%A5%E9%AA%A4%0D%0AX-Evil:%201"}


def test_the_whole_reply_is_read() -> None:
    with mock() as server:
        reply = ask(engine_for(server.base_url), make_request())
    assert reply == Response("the answer", None, Usage(prompt_tokens=3000, completion_tokens=60), "stop", 1, model="mock")


# When it asks again


@every_row("status", [408, 409, 429, 500, 502, 503, 504, 529])
def test_passing_refusals_are_tried_again(status: int) -> None:
    sleeps = Sleeps()
    with mock(first_faults=(str(status), str(status))) as server:
        reply = ask(engine_for(server.base_url, sleep=sleeps), make_request())
        bodies = {seen.body for seen in server.requests}
    assert (reply.text, reply.attempts, len(sleeps.seconds)) == ("the answer", 3, 2)
    assert len(bodies) == 1


@every_row(
    ("kind", "tries", "fatal", "words"),
    [
        *[("500", 3, False, "status 500"), ("cut-json", 3, False, "not JSON"), ("html", 3, False, "markup")],
        ("empty-choices", 3, False, "no choices"),
        *((status, 1, False, f"status {status}.: the mock server fails") for status in ("400", "413", "422")),
        *[("401", 1, True, "OPENAI_API_KEY is not set"), ("403", 1, True, "OPENAI_API_KEY")],
        *[("404", 1, True, "no model 'm'"), ("405", 1, True, "no model 'm'")],
        *[("302", 1, True, r"redirects elsewhere .status 302"), ("402", 1, True, "demands payment .status 402")],
    ],
)
def test_a_lasting_fault_states_what_it_is(kind: str, tries: int, fatal: bool, words: str) -> None:
    with mock(first_faults=(kind,) * 9) as server:
        with pytest.raises(EngineError, match=words) as caught:
            ask(engine_for(server.base_url, max_attempts=3), make_request())
        assert server.stats()["requests"] == caught.value.attempts == tries
    assert isinstance(caught.value, FatalEngineError) is fatal


def test_waits_double_up_to_their_limit() -> None:
    limits = [1.0, 2.0, 4.0, 5.0, 5.0]
    waits = []
    with mock(first_faults=("500",) * 9) as server:
        for episode in range(20):
            sleeps = Sleeps()
            engine = engine_for(server.base_url, sleep=sleeps, backoff=1.0, max_backoff=5.0, max_attempts=6)
            with pytest.raises(EngineError):
                ask(engine, make_request(name=f"r{episode}"))
            waits.append(sleeps.seconds)
    for limit, column in zip(limits, zip(*waits, strict=True), strict=True):
        assert 0.0 <= min(column) < limit / 2 < max(column) <= limit  # full jitter: fails by chance once in 2**19


@every_row(
    ("header", "least", "most"),
    [
        ("7", 7.0, 8.0),
        *((now, 0.0, 1.0) for now in ("0", "-5", "Sat, 01 Jan 2000 00:00:00 GMT", "Mon, 01 Jan 0001 00:00:00 +2359")),
        *((late, 60.0, 61.0) for late in ("9999", "Fri, 31 Dec 2100 23:59:59 GMT", "Fri, 31 Dec 9999 23:59:59 -2359")),
        *((none, 0.0, 3.0) for none in ("soon", "nan", "9" * 500, "Fri, 31 Dec 99999 23:59:59 GMT")),
        ("Mon, 01 Jan 2000 00:00:00 +99999999999999999", 0.0, 3.0),
    ],
)
@every_row("status", ["429", "503"])
def test_retry_after_is_honoured(status: str, header: str, least: float, most: float) -> None:
    sleeps = Sleeps()
    with mock(first_faults=(status,), retry_after=header) as server:
        ask(engine_for(server.base_url, sleep=sleeps, backoff=3.0), make_request())
    assert least <= sum(sleeps.seconds) <= most


def test_a_wait_in_milliseconds_comes_first() -> None:
    assert asked_wait({"retry-after-ms": "1500", "retry-after": "60"}) == 1.5
    assert asked_wait({"retry-after-ms": "soon", "retry-after": "60"}) == 60.0
    assert asked_wait({}) is None


def test_a_hang_ends_at_the_time_limit_and_leaves_no_process() -> None:
    async def main(server: MockServer) -> EngineError:
        engine = engine_for(server.base_url, timeout=20.0, max_attempts=2)
        with pytest.raises(EngineError, match=r"did not answer within 20 s") as caught:
            await engine.generate(make_request())
        await auntil(lambda: server.stats()["in_flight"] == 0, "the end of the connections")
        await engine.close()
        return caught.value

    with mock(first_faults=("hang",) * 9) as server:
        assert past_hangs(main(server), lambda: server.stats()["hung"], 20.0).attempts == 2
        assert server.stats()["hung"] == 2


def test_a_cancelled_request_is_dropped_at_the_server() -> None:
    async def main(server: MockServer) -> None:
        engine = engine_for(server.base_url)
        task = asyncio.create_task(engine.generate(make_request()))
        await auntil(lambda: server.stats()["hung"], "the request")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await auntil(lambda: server.stats()["in_flight"] == 0, "the end of the connection")
        assert (await engine.generate(make_request())).text == "the answer"
        await engine.close()

    with mock(first_faults=("hang",)) as server:
        asyncio.run(main(server))


# Odd answers, from a server that sends whatever bytes the test gives it


GOOD = completion({"content": "good"})


@every_row(
    "bad",
    [
        *map(response, [b"", b"[]", b"null", b'"text"', b"\xff\xfe\x00", b"[" * 200_000, b"x" * (8 * 1024 * 1024 + 1)]),
        *map(response, [b'{"choices": 3}', b'{"choices": [null]}', b'{"choices": [{}]}', b'{"error": {"message": "busy"}}']),
        *[completion(None), completion({"content": 3}), response(GOOD, length=5000)],
        *[b"", b"HTTP/1.1 200 OK\r\nContent-Le", b"not http at all\r\n\r\n"],
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\nabcd",
    ],
    ids=lambda bad: repr(bad[:60])[2:40],
)
def test_every_damaged_answer_is_tried_again(bad: bytes) -> None:
    reply = ask_raw([bad, GOOD], make_request())
    assert (reply.text, reply.attempts) == ("good", 2)
    with pytest.raises(EngineError) as caught:
        ask_raw([bad], make_request(), max_attempts=2)
    assert len(str(caught.value)) < 400


def packed(body: bytes, encoding: str = "gzip", keep: int | None = None) -> bytes:
    """A 200 answer whose body is compressed, and cut after ``keep`` bytes."""
    data = (gzip.compress(body) if encoding.startswith("gzip") else zlib.compress(body))[:keep]
    return b"HTTP/1.1 200 OK\r\nContent-Encoding: %s\r\nContent-Length: %d\r\n\r\n" % (encoding.encode(), len(data)) + data


WORDS = json.dumps({"choices": [{"message": {"content": "good"}}]}).encode()


@pytest.mark.parametrize("encoding", ["gzip", "GZIP", "deflate"])
def test_an_answer_compressed_unasked_is_read(encoding: str) -> None:
    reply = ask_raw([packed(WORDS, encoding.lower()).replace(b": gzip", f": {encoding}".encode())], make_request())
    assert (reply.text, reply.attempts) == ("good", 1)


@every_row(
    ("bad", "sentence"),
    [
        (packed(gzip.compress(WORDS), "gzip, gzip"), "compressed as 'gzip, gzip', though no compression was requested"),
        (packed(WORDS, "br"), "compressed as 'br'"),
        (packed(WORDS, keep=20), "sent an answer that was cut off"),
        (packed(b" " * (8 * 1024 * 1024) + b"{}"), "sent more than 8 MiB"),
    ],
    ids=["twice", "brotli", "cut", "bomb"],
)
def test_what_is_not_unpacked_is_tried_again(bad: bytes, sentence: str) -> None:
    assert ask_raw([bad, GOOD], make_request()).attempts == 2
    with pytest.raises(EngineError, match=sentence):
        ask_raw([bad], make_request(), max_attempts=1)
    with pytest.raises(FatalEngineError, match="status 401"):
        ask_raw([bad.replace(b"200 OK", b"401 No")], make_request())


CALL = {"type": "function", "function": {"name": "click", "arguments": '{"x": 1}'}}
CALLED = '<tool_call>\n{"name": "click", "arguments": {"x": 1}}\n</tool_call>'


def test_a_date_to_wait_for_is_read_by_the_servers_clock() -> None:
    """Whatever our clock shows: the server's is ten years behind it, and asks for seven seconds."""
    dates = b"Date: Fri, 01 Jan 2016 23:59:58 GMT\r\nRetry-After: Sat, 02 Jan 2016 00:00:05 GMT\r\n"
    busy = response(b"", "429 Busy").replace(b"\r\n", b"\r\n" + dates, 1)
    sleeps = Sleeps()
    ask_raw([busy, GOOD], make_request(), sleep=sleeps)
    assert 7.0 <= sleeps.seconds[0] <= 8.0


@every_row(
    ("message", "text", "reasoning"),
    [
        ({"content": None, "reasoning_content": "hm"}, "", "hm"),
        ({"content": None, "reasoning": "hm"}, "", "hm"),
        ({"content": "a", "reasoning_content": None, "reasoning": "hm"}, "a", "hm"),
        ({"content": None}, "", None),
        ({"role": "assistant"}, "", None),
        ({"content": "a", "reasoning": {"odd": 1}}, "a", None),
        ({"content": None, "tool_calls": [CALL]}, CALLED, None),
        ({"content": "I click.", "tool_calls": [CALL]}, f"I click.\n{CALLED}", None),
        ({"content": None, "refusal": "I cannot help with that."}, "I cannot help with that.", None),
        ({"content": "yes", "refusal": "no"}, "yes", None),
        ({"content": None, "refusal": None, "tool_calls": None}, "", None),
        ({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}, 3]}, "ab", None),
        ({"content": "cut \ud83d"}, "cut \ufffd", None),
        ({"content": "whole \ud83d\ude00"}, "whole 😀", None),
    ],
)
def test_unusual_messages_are_read(message: dict[str, Any], text: str, reasoning: str | None) -> None:
    reply = ask_raw([completion(message)], make_request())
    assert (reply.written, reply.reasoning, reply.attempts) == (text, reasoning, 1)


@every_row("usage", [None, 3, [], {"prompt_tokens": "many", "completion_tokens": True}])
def test_odd_usage_does_no_harm(usage: Any) -> None:
    assert ask_raw([completion({"content": "a"}, usage=usage)], make_request()).usage in (None, Usage())


def logprobs(*values: Any) -> dict[str, Any]:
    return {"content": [{"token": "a", "logprob": value} for value in values]}


@every_row(
    ("logprobs", "mean"),
    [
        (logprobs(-0.25, -1.0, 0), -1.25 / 3),
        (logprobs(math.log(0.5), math.log(0.125)), math.log(0.25)),  # the geometric mean's logarithm: sqrt(1/2 * 1/8) = 1/4
        (logprobs(0), 0.0),
        # a mean of some of them would not be any reply's, and the sum of two may be beyond a float
        *((logprobs(-1.0, odd), None) for odd in (None, -math.inf, math.nan, 10**400)),
        *[(logprobs(1e308, 1e308), None), (logprobs(2.0), None), (logprobs(), None)],
        *[(None, None), ([], None), ({"content": None}, None)],
        *(({"content": [{"logprob": -1.0}, odd]}, None) for odd in (None, {"token": "b"})),
    ],
)
def test_the_mean_log_probability_is_kept(logprobs: Any, mean: float | None) -> None:
    body = {"choices": [{"message": {"content": "a"}, "finish_reason": "stop", "logprobs": logprobs}]}
    reply = ask_raw([response(json.dumps(body).encode())], make_request())
    assert reply.logprob == (mean if mean is None else pytest.approx(mean))


@every_row(
    ("body", "sentence"),
    [
        *((body, "too long") for body in (b'{"error": {"message": "too long"}}', b'{"error": "too long"}')),
        (b'{"message": "too\\n long", "code": 400}', "too long"),
        (b'{"detail": [{"loc": ["body"]}]}', "body"),
        (b"plain words", "plain words"),
        (b'{"error": {"message": "' + b"long " * 100 + b'"}}', "long long"),
    ],
)
def test_a_refusal_repeats_what_the_server_stated(body: bytes, sentence: str) -> None:
    with pytest.raises(EngineError, match=sentence) as caught:
        ask_raw([response(body, "400 Bad Request")], make_request())
    assert len(str(caught.value)) < 300


# The key


@pytest.mark.parametrize("fault", ["400", "401", "404", "429", "500"])
def test_the_key_is_sent_but_never_shown(fault: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY + "\n")
    with mock(first_faults=(fault,) * 9, echo_key=True) as server, caplog.at_level(logging.DEBUG):
        engine = engine_for(server.base_url)
        with pytest.raises(EngineError, match=r"Bearer \[API key\]") as caught:
            ask(engine, make_request())
        assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
    chain: BaseException | None = caught.value
    while chain is not None:
        assert KEY not in f"{chain!r} {chain}"
        chain = chain.__cause__ or chain.__context__
    assert KEY not in f"{engine!r} {engine} {engine.settings!r}"
    assert KEY not in caplog.text


def test_no_part_of_the_key_stays_where_a_message_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    for padding in range(150, 201, 5):
        body = b"x" * padding + KEY.encode()
        with pytest.raises(EngineError) as caught:
            ask_raw([response(body, "400 Bad Request")], make_request())
        assert "sk-" not in str(caught.value)


def escaped(text: str) -> str:
    return "".join(f"\\u{ord(each):04x}" for each in text)


def broken(text: str, by: str = "\n") -> str:
    return by.join(text[start : start + 9] for start in range(0, len(text), 9))


@every_row("before", ["", "u", "me", "Bearer ", "user:"])
def test_a_key_inside_of_base64_is_redacted(before: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What stays of it are the characters that also hold bits of what stands around the key: fewer than eight bits of it."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    encoded = base64.b64encode(f"{before}{KEY} and more".encode()).decode()
    for each in [broken(encoded), encoded[::-1], quote(encoded, safe="")]:
        text = ask_raw([completion({"content": each})], make_request()).text
        assert "[API key]" in text and len(text.replace("[API key]", "")) <= len(each) - len(KEY) * 8 // 6 + 1
    head, mark, tail = ask_raw([completion({"content": encoded})], make_request()).text.partition("[API key]")
    assert mark and encoded.startswith(head) and encoded.endswith(tail)
    assert len(head) <= -(-len(before) * 8 // 6) and len(encoded) - len(tail) >= (len(before) + len(KEY)) * 8 // 6


ODD_KEY = 'sk-"proj"/42+~very:secret=='


@every_row("key", [KEY, ODD_KEY])
@every_row(
    "encode",
    [
        *[lambda key: key, lambda key: key[::-1], broken, escaped, lambda key: escaped(key).upper().replace("U", "u")],
        *[lambda key: broken(key, "\r\n   "), lambda key: broken(key, "\\n"), lambda key: key.replace("/", "\\/")],
        *[lambda key: json.dumps(key)[1:-1], lambda key: json.dumps(json.dumps(key))[3:-3]],
        *[lambda key: json.dumps(escaped(key))[1:-1], lambda key: "".join(f"%{ord(each):02x}" for each in key)],
        *[lambda key: quote(key, safe=""), lambda key: quote(quote(key, safe=""), safe="")],
        lambda key: quote(quote(quote(key, safe=""), safe=""), safe=""),
        *[lambda key: key.encode().hex(), lambda key: broken(key.encode().hex().upper())],
        lambda key: quote(key, safe="")[::-1] if "%" not in quote(key, safe="") else key[::-1],
    ],
)
def test_the_key_is_hidden_in_every_form(encode: Callable[[str], str], key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", key)
    text = ask_raw([completion({"content": f"the key\n{encode(key)}|and more"})], make_request()).text
    assert text.removeprefix("the key").strip() == "[API key]|and more"


@given(st.text(max_size=60))
def test_a_text_without_the_key_stays_as_it_is(text: str) -> None:
    assert Redaction([KEY]).message(text) == text


@given(st.text(st.sampled_from("\\n \n%25u0073k-ab"), max_size=40), st.text(st.sampled_from("\\n \n%25u0073k-ab"), max_size=40))
def test_the_key_itself_is_hidden_among_anything(before: str, after: str) -> None:
    assert KEY not in Redaction([KEY]).message(f"{before} {KEY} {after}")


@every_row("before", ["%", "%25", "\\u00", "\\u0", "\ud800", "%ff"])
def test_what_looks_like_the_beginning_of_an_escape_does_not_show_the_key_after_it(before: str) -> None:
    for encoded in (KEY, KEY.encode().hex(), quote(KEY[:-1]) + f"%{ord(KEY[-1]):x}"):
        assert Redaction([KEY]).message(f"{before}{encoded}|") == f"{before}[API key]|"


@every_row("unit", ["%41", "\\u0041", "\\n", "%25", "%", f"{KEY}%41", broken(KEY), KEY[:-1], "s\\", "s "])
def test_the_time_to_hide_the_key_is_no_way_to_hold_a_run_up(unit: str) -> None:
    redaction = Redaction([KEY])
    text = unit * (MAX_REPLY_BYTES // len(unit)) + quote(f"/{KEY}", safe="").replace("a", "%61")
    began = time.process_time()
    hidden = redaction.message(text)
    assert time.process_time() - began < 0.5
    assert hidden.endswith("[API key]")
    assert KEY not in hidden


@every_row("key", ["EMPTY", "x", "anything", "the cart", "token-abc123", "k" * 20, "sk-no-key-required", "cart"])
def test_a_placeholder_key_leaves_responses_alone(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", key)
    text = f"the cart of x is EMPTY, search anything but {key}"
    reply = ask_raw([completion({"content": text, "reasoning_content": text}, model=key)], make_request())
    assert (reply.text, reply.reasoning, reply.model, reply.key_removed) == (text, text, key, False)


def test_a_response_that_held_the_key_is_marked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    call = {"function": {"name": "type", "arguments": {"text": KEY}}}
    for message in ({"content": "x", "reasoning_content": KEY}, {"content": None, "tool_calls": [call]}):
        reply = ask_raw([completion(message)], make_request())
        assert reply.key_removed and KEY not in f"{reply.written}{reply.reasoning}"
    reply = ask_raw([completion({"content": f"your key is {KEY}", "reasoning": KEY})], make_request())
    assert (reply.text, reply.reasoning, reply.key_removed) == ("your key is [API key]", "[API key]", True)
    assert not ask_raw([completion({"content": KEY[:-1]})], make_request()).key_removed


def test_the_key_comes_from_the_variable_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", KEY)
    with mock() as server:
        ask(engine_for(server.base_url), make_request())
        ask(engine_for(server.base_url, api_key_env="MY_KEY"), make_request())
        first, second = server.requests
    assert "authorization" not in first.headers
    assert second.headers["authorization"] == f"Bearer {KEY}"


def test_a_key_that_cannot_stand_in_a_header_is_refused_unseen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "geheim-ü")
    with pytest.raises(UsageError, match="OPENAI_API_KEY") as caught:
        engine_for("http://localhost/v1")
    assert "geheim" not in str(caught.value)


# Where it is sent


class Pace(AdaptiveConcurrency):
    """Notes what it is reports."""

    def __init__(self) -> None:
        super().__init__()
        self.reports: list[str] = []

    def answered(self, seconds: float, in_flight: int) -> None:
        assert 0.0 < seconds < 20.0 and in_flight == 1
        self.reports.append("answered")

    def overloaded(self) -> None:
        self.reports.append("overloaded")


@every_row(
    ("fault", "reports"),
    [
        *((fault, ["answered"]) for fault in ("", "500", "html")),
        *((fault, ["overloaded", "answered"]) for fault in ("429", "503", "hang")),
    ],
)
def test_the_settings_that_lower_the_load_are_named(fault: str, reports: list[str]) -> None:
    pace = Pace()
    with mock(first_faults=(fault,)) as server:
        ask_past_hangs(engine_for(server.base_url, pace=pace), make_request(), server)
    assert pace.reports == reports


@every_row(
    "url",
    [
        *("", "localhost:8000", "ftp://host/v1", "http://", "http://user:pw@host/v1", "http://host/v1?key=pw"),
        *("http://host:99999/v1", "http://host:0/v1", "http://host:-1/v1"),
    ],
)
def test_a_base_url_that_cannot_work_is_refused(url: str) -> None:
    with pytest.raises(UsageError, match="base URL") as caught:
        engine_for(url)
    assert "pw" not in str(caught.value)


@pytest.mark.parametrize(
    ("answer", "error", "sentence"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", FatalEngineError, "does not answer in TLS; if the server speaks http"),
        (b"", EngineError, "could not be reached (it ended the TLS handshake; if the server speaks http"),
    ],
)
def test_https_to_a_server_that_speaks_http_is_a_sentence(answer: bytes, error: type[EngineError], sentence: str) -> None:
    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(answer)
        writer.close()

    async def main() -> str:
        async with listening(handle) as port:
            base = f"127.0.0.1:{port}/v1"
            with pytest.raises(error, match=re.escape(f"{sentence}, its base URL is http://{base}")) as caught:
                await asked(engine_for(f"https://{base}", max_attempts=1), make_request())
        return str(caught.value)

    assert "ConnectError" not in asyncio.run(main())


@contextmanager
def proxied() -> Iterator[tuple[str, list[bytes]]]:
    """A proxy for http, and the first line of each request that came through it."""
    lines: list[bytes] = []

    async def pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            writer.write(data)
        writer.close()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        lines.append(head.split(b"\r\n")[0])
        _, host, port = lines[-1].split(b" ")[1].removesuffix(b"/v1/chat/completions").split(b":")
        there, back = await asyncio.open_connection(host.strip(b"/").decode(), int(port))
        back.write(head.replace(b"http://" + host.strip(b"/") + b":" + port, b"", 1))
        await asyncio.gather(pipe(reader, back), pipe(there, writer), return_exceptions=True)

    loop = asyncio.new_event_loop()
    server = loop.run_until_complete(asyncio.start_server(handle, "127.0.0.1", 0))
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", lines
    loop.call_soon_threadsafe(loop.stop)
    thread.join(10)


@every_row(
    ("settings", "environment", "through"),
    [
        ({"proxy": "PROXY"}, {}, True),
        ({"trust_env": True}, {"HTTP_PROXY": "PROXY"}, True),
        ({"trust_env": True}, {"HTTP_PROXY": "PROXY", "NO_PROXY": "127.0.0.1"}, False),
        ({}, {"HTTP_PROXY": "PROXY"}, False),
    ],
)
def test_a_proxy_is_used_where_the_settings_say_so(
    settings: dict[str, Any], environment: dict[str, str], through: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    with proxied() as (url, lines), mock() as server:
        for name, value in environment.items():
            monkeypatch.setenv(name.lower(), value.replace("PROXY", url))
        given: dict[str, Any] = {name: url if value == "PROXY" else value for name, value in settings.items()}
        engine = engine_for(server.base_url, **given)

        async def two() -> list[Response]:
            return [await engine.generate(make_request()), *await asked(engine, make_request())]

        replies = asyncio.run(two())
        wanted = f"POST {server.base_url}/chat/completions HTTP/1.1".encode()
    assert [reply.text for reply in replies] == ["the answer"] * 2
    assert lines == [wanted] * through, "the second request uses the connection of the first"


@every_row(
    ("proxy", "sentence"),
    [
        *((url, "does not hold the URL of a proxy") for url in ("ftp://pw-host:1", "http://pw-host:99999", "http://pw-host:x")),
        ("http://user:pw@host:1", "must not hold a user or a password"),
    ],
)
def test_a_proxy_that_cannot_be_used_is_a_sentence(proxy: str, sentence: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match=f"the setting 'proxy' {sentence}") as caught:
        engine_for("http://host/v1", proxy=proxy)
    assert "pw" not in str(caught.value)
    monkeypatch.setenv("https_proxy", proxy)
    engine_for("http://host/v1")
    if "user" in proxy:  # there a password may stand
        engine_for("http://host/v1", trust_env=True)
        return
    with pytest.raises(UsageError, match=f"the environment variable HTTPS_PROXY {sentence}") as caught:
        engine_for("http://host/v1", trust_env=True)
    assert "pw" not in str(caught.value)


def test_certificates_that_cannot_be_read_are_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", "/nowhere/ca.pem")
    with pytest.raises(FatalEngineError, match=r"'/nowhere/ca\.pem' \(SSL_CERT_FILE\), cannot be read: No such file"):
        ask(engine_for("https://127.0.0.1:9/v1"), make_request())


def test_a_base_url_may_end_in_a_slash_or_the_whole_path() -> None:
    with mock() as server:
        for url in (server.base_url + "/", server.base_url + "/chat/completions"):
            assert ask(engine_for(url), make_request()).text == "the answer"


# Finding the model


def discover(engine: OpenAIEngine, *candidates: str) -> str:
    async def main() -> str:
        try:
            return await engine.discover(candidates)
        finally:
            await engine.close()

    return asyncio.run(main())


@contextmanager
def serving(*models: Sequence[str]) -> Iterator[OpenAIEngine]:
    """An engine that knows no model, over servers of these."""
    with ExitStack() as stack:
        yield engine_for(*(stack.enter_context(mock(served_models=served)).base_url for served in models), served_model=None)


@every_row(
    ("models", "candidates", "found"),
    [([("only",)], ["other"], "only"), ([("a", "b", "c")], ["x", "c", "b"], "c"), ([("a", "both"), ("both", "b")], [], "both")],
)
def test_the_only_or_the_first_fitting_model_is_taken(models: list[tuple[str, ...]], candidates: list[str], found: str) -> None:
    with serving(*models) as engine:
        assert discover(engine, *candidates) == engine.model == found


@every_row(
    ("models", "candidates", "message"),
    [
        ([("qwen-7b", "b")], ["qwen7b"], r"no 'qwen7b' there \(did you mean 'qwen-7b'\?\): .*serves 'qwen-7b', 'b'"),
        ([("qwen-7b", "b")], [], "must be named"),
        ([("m", "n" * 400, *map(str, range(500)))], [], r"must be named: .*serves 'm', 'n+\.\.\.', '0'"),
        ([("a",), ("b",)], [], r"serves 'a'; .*serves 'b'"),
    ],
)
def test_what_is_served_is_listed_when_nothing_fits(models: list[tuple[str, ...]], candidates: list[str], message: str) -> None:
    with serving(*models) as engine, pytest.raises(UsageError, match=message) as error:
        discover(engine, *candidates)
    assert len(str(error.value)) < 1000


def test_a_model_is_given_or_looked_up_before_a_request_in_whichever_event_loop() -> None:
    with reserved_port() as port:
        assert discover(engine_for(f"http://127.0.0.1:{port}/v1", served_model="mine")) == "mine"
    with mock() as server:
        engine = engine_for(server.base_url, served_model=None)
        with pytest.raises(FatalEngineError, match="the model name is unknown"):
            ask(engine, make_request())
        assert server.stats()["requests"] == 0
        asyncio.run(engine.discover())
        assert ask(engine, make_request()).text == "the answer"


def test_the_mock_recognises_the_step() -> None:
    """The id that the engine sends is one the server can look the step up by."""
    request = make_request()
    assert request.request_id == request_id(request.task.key, 0)
    with mock(hang_at=((request.request_id, 0),)) as server:
        assert ask_past_hangs(engine_for(server.base_url), request, server).attempts == 2

"""Which addresses, answers of refusal and ids of requests an HTTP engine takes and sends."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guieval.engines import parse_request_id, request_id, with_try, without_try
from guieval.engines.http.addresses import base_url
from guieval.engines.http.refusals import IN_A_ROW, Refusals
from guieval.errors import EngineError, FatalEngineError, UsageError
from guieval.journal import RunFolder
from guieval.playground.mock_server import MockServer, MockSettings
from guieval.secrets import Redaction
from guieval.steps import StepKey
from tests.command_line import CommandLine
from tests.engines.asking import Small, ask, engine_for, in_a_loop, make_request, mock
from tests.engines.http.raw_answers import ask_raw, response
from tests.json_values import read_json
from tests.rows import every_row

KEY = "sk-proj-9f8e7d6c5b4a"
VERSION = "?api-version=2024-12-01-preview"


@in_a_loop
async def test_the_query_of_a_base_url_is_carried_to_every_request() -> None:
    async with Small(lambda path: "200 OK").serving() as server:
        engine = engine_for(f"{server.url}/deployments/d{VERSION}", served_model=None)
        assert await engine.discover() == "m"
        assert VERSION not in repr(engine) and VERSION not in str(engine.stats())
        assert (await engine.generate(make_request("Click."))).text == "the answer"
        await engine._is_well(engine._router.servers[0])
        await engine.close()
    at = "/v1/deployments/d"
    assert server.paths[:2] == [f"{at}/models{VERSION}", f"{at}/chat/completions{VERSION}"]
    assert set(server.paths[2:]) == {f"{at}/health{VERSION}", f"{at}/models{VERSION}"}


@every_row(
    "query, accepted",
    [
        ("api-version=2024-10-21", True),
        ("api-version=2024-12-01-preview&deployment=gpt-4.1-mini", True),
        *((query, False) for query in ("key=1", "api-key=a", "sig=abc", "access_token=a", "code=a")),
        *((f"v={key}", False) for key in ("anything", KEY, "0123456789abcdef" * 2, "AbCdEfGhIjKlMnOpQrStUvWxYz")),
    ],
)
def test_a_query_that_may_hold_a_key_is_refused_unseen(query: str, accepted: bool) -> None:
    if accepted:
        assert base_url(f"http://h/v1/?{query}", Redaction(())) == ("http://h/v1", f"?{query}")
        return
    with pytest.raises(UsageError, match="must not hold a key in its query") as caught:
        base_url(f"http://h/v1?{query}", Redaction(["anything"]))
    assert f"={query.partition('=')[2]}" not in str(caught.value)


@every_row(
    "error",
    [
        {"message": "You exceeded your current quota.", "type": "insufficient_quota", "code": "insufficient_quota"},
        {"message": "You exceeded your current quota.", "type": "insufficient_quota", "code": None},
        {"message": "no balance", "type": "exceeded_current_quota_error"},
    ],
)
def test_an_account_that_is_used_up_ends_the_run_at_once(error: dict[str, str]) -> None:
    body = response(json.dumps({"error": error}).encode(), status="429 Too Many Requests")
    with pytest.raises(FatalEngineError, match="the account is used up") as caught:
        ask_raw([body, body], make_request())
    assert caught.value.attempts == 1 and error["message"] in str(caught.value)


def test_a_limit_of_the_rate_does_not_end_the_run() -> None:
    with mock(error_rate=1.0, error_status=429) as server, pytest.raises(EngineError) as caught:
        ask(engine_for(server.base_url, max_attempts=2), make_request())
    assert not isinstance(caught.value, FatalEngineError)


MODEL = "qwen3-vl-8b-instruct"
CONCURRENCY = 4


@pytest.mark.ci
@pytest.mark.parametrize("status", [400, 422])
def test_a_server_that_refuses_everything_ends_the_run(tmp_path: Path, guieval: CommandLine, status: int) -> None:
    with MockServer(MockSettings(model=MODEL, policy="centre", error_rate=1.0, error_status=status)) as server:
        where = ("--data", tmp_path / "demo", "--out", tmp_path / "run", "--base-url", server.base_url)
        few = ("--set", "bench_options.episodes=12", "--set", "bench_options.seed=4", "--concurrency", str(CONCURRENCY))
        done = guieval("run", "--model", MODEL, "--bench", "demo", *where, *few)
        asked = server.stats()["requests"]
    assert done.code == 2 and IN_A_ROW <= asked <= IN_A_ROW + 3 * CONCURRENCY
    message = done.err.splitlines()[-1]
    assert f"(status {status})" in message and "no more are sent" in message and "guieval run --resume" in message, message
    assert not any(record.finished for record in RunFolder(tmp_path / "run").records)
    with MockServer(MockSettings(model=MODEL, policy="centre")) as server:
        again = guieval("run", "--resume", tmp_path / "run", "--base-url", server.base_url)
    assert again.code == 0, again
    verdicts = read_json((tmp_path / "run" / "metrics.json").read_text())["summary"]["verdicts"]
    assert verdicts["infrastructure_failure"] == verdicts["not_run"] == 0


def refused(refusals: Refusals, number: int, message: str = "too long") -> bool:
    last = refusals.refused(number, 400, message)
    refusals.over(number)
    return last


def test_it_takes_enough_refusals_of_one_kind() -> None:
    refusals = Refusals()
    ends = [refused(refusals, refusals.begun(), f"prompt of {length} tokens") for length in range(IN_A_ROW)]
    assert ends == [False] * (IN_A_ROW - 1) + [True]
    mixed = Refusals()
    assert not any(refused(mixed, mixed.begun(), message) for _ in range(IN_A_ROW) for message in ("too long", "no image"))


def test_requests_under_way_are_waited_for() -> None:
    refusals = Refusals()
    slow, slower = refusals.begun(), refusals.begun()
    assert not any(refused(refusals, refusals.begun()) for _ in range(3 * IN_A_ROW))
    assert not refused(refusals, slow)
    assert refused(refusals, slower)
    answered = Refusals()
    slow = answered.begun()
    assert not any(refused(answered, answered.begun()) for _ in range(IN_A_ROW))
    answered.answered()
    answered.over(slow)
    assert not any(refused(answered, answered.begun()) for _ in range(IN_A_ROW))


parts = st.text(st.characters())  # surrogates, separators and control characters included
keys = st.builds(StepKey, parts, parts, parts, st.integers(0, 10**6))


@given(keys, st.integers(0, 100), st.integers(1, 99))
def test_an_id_names_its_step_and_sample_with_or_without_try(key: StepKey, sample: int, attempt: int) -> None:
    name = request_id(key, sample)
    sent = with_try(name, "0123abcd", attempt)
    assert parse_request_id(name) == parse_request_id(sent) == (key, sample)
    assert without_try(sent) == name
    for text in (name, *key[:3]):
        assert all("!" <= character <= "~" for character in with_try(text, "0123abcd", attempt))


def test_the_documented_form_and_tries_and_runs_differ() -> None:
    key = StepKey("aitz", "general", "a|b é", 3)
    assert request_id(key, 1) == "aitz|general|a%7Cb%20%C3%A9|3|1"
    assert parse_request_id(f"{request_id(key, 1)}|zoom") == (key, 1)
    assert len({with_try("a", nonce, attempt) for nonce in ("00000000", "00000001") for attempt in (1, 2)}) == 4


@every_row("text", ["", "probe", "a|b|c|d|e", "a|b|c|1|-1", "a|b|c|1", "a|b|c|1|2|3"])
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a request id"):
        parse_request_id(text)

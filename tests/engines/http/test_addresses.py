"""Addresses with a query, and accounts that are used up."""

from __future__ import annotations

import json

import pytest

from guieval.engines.http.addresses import base_url
from guieval.errors import EngineError, FatalEngineError, UsageError
from guieval.secrets import Redaction
from tests.engines.asking import Small, ask, engine_for, in_a_loop, make_request, mock
from tests.engines.http.raw_answers import ask_raw, response
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

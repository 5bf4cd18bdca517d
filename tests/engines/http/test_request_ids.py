"""Request ids name a step and sample in a header, and are unlike for every try."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guieval.engines import parse_request_id, request_id, with_try, without_try
from guieval.steps import StepKey
from tests.rows import every_row

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

"""JSON of servers: what it may hold is counted before any of it is made, and screenshots come out of it as arrays."""

from __future__ import annotations

import json
import tracemalloc
from typing import Any

import numpy as np
import pytest

from guieval.engines.http import bounded_json
from guieval.engines.http.bounded_json import MOST_VALUES, TooLarge, read_json, read_with_pictures
from guieval.engines.http.chat_answers import TryAgain, response_in
from tests.rows import every_row


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

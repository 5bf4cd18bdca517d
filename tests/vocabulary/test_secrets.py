"""Which key is removed from what."""

from __future__ import annotations

import json

from guieval.secrets import HIDDEN, Redaction, looks_secret
from tests.rows import every_row

SECRET = "sk-proj-9f8e7d6c5b4a"


@every_row(
    "key, secret",
    [
        ("x", False),
        ("EMPTY", False),
        ("anything", False),
        ("lm-studio", False),
        ("not-needed", False),
        ("sk-no-key-required", False),
        ("token-abc123", False),
        ("k" * 40, False),
        ("1234567890123456", False),
        (SECRET, True),
        ("0123456789abcdef0123456789abcdef", True),
        ("AbCdEfGhIjKlMnOpQrStUvWx", True),
        ("YWJjZGVmZ2hpamtsMTIz==", True),
    ],
)
def test_a_key_looks_secret_by_its_length_and_its_classes_of_characters(key: str, secret: bool) -> None:
    assert looks_secret(key) == secret, key
    text = f"I type {key} here"
    assert (Redaction([key]).response(text) != text) == secret, "only such a key changes a response"
    assert Redaction([key]).message(text) == f"I type {HIDDEN} here", "and any key a message"


@every_row(
    "key, text, expected",
    [
        ("x", "longer than the maximum, x", f"longer than the maximum, {HIDDEN}"),
        ("t", "Qwen/Qwen3-VL-8B-Instruct", "Qwen/Qwen3-VL-8B-Instruct"),
        ("anything", "anythings, Anything, anything.", f"anythings, Anything, {HIDDEN}."),
        ("anything", "anything_else anything anything", f"anything_else {HIDDEN} {HIDDEN}"),
        ("anything", "http://h/v1?key=anything&x=1", f"http://h/v1?key={HIDDEN}&x=1"),
        ("anything", "{'Authorization': 'Bearer anything', 'x': 1}", f"{{'Authorization': 'Bearer {HIDDEN}', 'x': 1}}"),
        ("anything", "Illegal header value b'Bearer anything'", f"Illegal header value b'Bearer {HIDDEN}'"),
        ("my-key", '{"message": "bad key my\\u002dkey"}', f'{{"message": "bad key {HIDDEN}"}}'),
        ("a/b", '"bad key a\\/b"', f'"bad key {HIDDEN}"'),
        ("a/b", "bad key a%2Fb or %61%2fb", f"bad key {HIDDEN} or {HIDDEN}"),
        ("a.c", "abc a.c", f"abc {HIDDEN}"),
        ("a+(b", "a+(b aab", f"{HIDDEN} aab"),
        ("abc=", "abc=def, abc=", f"{HIDDEN}def, {HIDDEN}"),
        ("$1", "it costs $1", f"it costs {HIDDEN}"),
        ("key", f"the {HIDDEN} and the key", f"the {HIDDEN} and the {HIDDEN}"),
        (SECRET, f"http://h/v1?key={SECRET}&x=1", f"http://h/v1?key={HIDDEN}&x=1"),
        (SECRET, f"x{SECRET}y", f"x{HIDDEN}y"),
        (SECRET, json.dumps(SECRET).replace("-", "\\u002d"), f'"{HIDDEN}"'),
        ("YWJjZGVmZ2hpamtsMTIz==", "key YWJjZGVmZ2hpamtsMTIz and YWJjZGVmZ2hpamtsMTIz%3D%3D", f"key {HIDDEN} and {HIDDEN}"),
        ("sk-(a+b)*[c]{2}^$|.\\1", "key sk-(a+b)*[c]{2}^$|.\\1!", f"key {HIDDEN}!"),
    ],
)
def test_what_is_removed_from_a_message(key: str, text: str, expected: str) -> None:
    assert Redaction([key]).message(text) == expected


@every_row("first", [True, False])
def test_of_two_keys_the_longer_one_is_removed_first(first: bool) -> None:
    for short, long in [(SECRET, f"{SECRET}-prod"), ("anything", f"anything-{SECRET}"), ("any", "any-thing")]:
        removed = Redaction([short, long] if first else [long, short])
        assert removed.message(f"{long} {short}") == f"{HIDDEN} {HIDDEN}", (short, long)


def test_no_key_changes_nothing() -> None:
    assert Redaction(["", ""]).message("anything \ud800") == "anything \ud800"

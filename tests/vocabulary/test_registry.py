"""Plug-ins by name, entry point and file: what a stranger's may do wrong, wrong values in a sentence, and keys removed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from guieval.errors import Problem, UsageError, first_problem
from guieval.registry import adapter_class, load_benchmark, load_model
from guieval.running.config import parse
from guieval.secrets import HIDDEN, Redaction, looks_secret
from tests.rows import every_row

WHOLE = '''
"""An adapter whose own records need its module to be found."""
from __future__ import annotations

from dataclasses import dataclass

from pydantic import BaseModel

from guieval.actions import ActionSpace
from guieval.models import ABCModel


@dataclass
class Part:
    name: str | None = None


class Reply(BaseModel):
    part: Part


class Mine(ABCModel):
    action_space = ActionSpace()

    def frame(self, task): ...
    def prepare_input(self, task, history): ...
    def parse_response(self, task, text): return Reply.model_validate_json(text)
    def render(self, task, action, thought=None, conclusion=None): ...
'''


def written(folder: Path, text: str) -> str:
    path = folder / "mine.py"
    path.write_text(text)
    return str(path)


def test_a_file_may_use_postponed_annotations_with_dataclasses_and_pydantic(tmp_path: Path) -> None:
    model = load_model("any name", adapter=written(tmp_path, WHOLE))
    assert type(model).__name__ == "Mine"
    assert model.parse_response(None, '{"part": {"name": "x"}}').part.name == "x"  # type: ignore[arg-type, attr-defined]


@every_row(
    ("text", "message"),
    [
        ("import nothing_of_this_name", "cannot be imported: ModuleNotFoundError"),
        ("def f(:", "cannot be imported: SyntaxError"),
        ("import sys; sys.exit(3)", "cannot be imported: SystemExit"),
        ("x = 1", "exactly one public ABCModel subclass, found 0$"),
        (WHOLE.replace("def prepare_input", "def prepare"), "found 0; Mine lacks prepare_input"),
        (WHOLE.replace("def frame", "def farme"), "states no coordinate frame: set fixed_frame of Mine"),
        (WHOLE.replace("    action_space = ActionSpace()\n", ""), "must set action_space"),
        (WHOLE + "\n    def __init__(self, config, *, thinking=None): raise KeyError('x')\n", "cannot be set up: KeyError"),
        (WHOLE + "\n\nclass Other(Mine): ...\n", "found 2"),
    ],
)
def test_a_broken_adapter_file_is_one_sentence(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        load_model("any name", adapter=written(tmp_path, text))


def test_a_path_that_is_no_file_is_reported(tmp_path: Path) -> None:
    (tmp_path / "folder.py").mkdir()
    for path in (tmp_path / "none.py", tmp_path / "folder.py"):
        with pytest.raises(UsageError, match="does not exist"):
            adapter_class(str(path))


def test_an_unknown_option_answers_with_the_nearest_and_a_reserved_one_is_none(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no option 'episods' \(did you mean 'episodes'\?\)"):
        load_benchmark("demo", tmp_path, episods=3)
    for name in ("root", "self"):
        with pytest.raises(UsageError, match=f"no option '{name}'"):
            load_benchmark("demo", tmp_path, **{name: 1})


class Inner(BaseModel):
    size: int = Field(ge=1)


class Outer(BaseModel):
    model_config = ConfigDict(extra="forbid")

    engine: Literal["vllm", "openai"] = "vllm"
    inner: Inner
    name: str = "a"

    @field_validator("name")
    @classmethod
    def _short(cls, value: str) -> str:
        if len(value) > 3:
            raise ValueError("Too long a name")
        return value


def problem(**values: Any) -> Problem:
    with pytest.raises(ValidationError) as caught:
        Outer.model_validate(values)
    return first_problem(caught.value)


def test_the_text_of_our_own_errors_is_left_as_it_is() -> None:
    with pytest.raises(UsageError, match=r"sampling\.API_KEY cannot be given as a setting"):
        parse({"model": "m", "bench": "demo", "sampling": {"API_KEY": "1"}})


@every_row(
    ("values", "expected"),
    [
        ({"inner": {"size": 0}}, Problem(("inner", "size"), "greater_than_equal", "expected 1 or more", 0)),
        ({"inner": {"size": 1}, "name": "abcd"}, Problem(("name",), "value_error", "too long a name", "abcd")),
        (
            {"inner": {"size": 1}, "engine": "vlm"},
            Problem(("engine",), "literal_error", "expected 'vllm' or 'openai' (did you mean 'vllm'?)", "vlm"),
        ),
        ({"inner": {"size": 1}, "engine": 3}, Problem(("engine",), "literal_error", "expected 'vllm' or 'openai'", 3)),
        ({"iner": 1}, Problem(("iner",), "extra_forbidden", "is not known", 1)),  # not that inner is missing
    ],
)
def test_the_problem_to_tell_of(values: dict[str, Any], expected: Problem) -> None:
    assert problem(**values) == expected
    assert problem(**values).field == ".".join(expected.path)


def test_a_sentence_has_an_end() -> None:
    message = str(UsageError(f"unknown protocol {'x' * 100_000!r}; `guieval protocols` lists them"))
    assert len(message) < 1000 and message.startswith("unknown protocol 'xxx") and message.endswith("lists them")
    assert str(UsageError("x" * 1000)) == "x" * 1000


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

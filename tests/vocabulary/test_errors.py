"""What is wrong with a value, as one sentence can say it."""

from __future__ import annotations

from typing import Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from guieval.errors import Problem, UsageError, first_problem
from guieval.running.config import parse
from tests.rows import every_row


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

"""What a setting may be, and the marks by which its field says what else follows from it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from enum import StrEnum, auto
from math import inf
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, BeforeValidator, Field
from pydantic.fields import FieldInfo
from pydantic_core import PydanticCustomError

from guieval.secrets import secret_name
from guieval.settings.sampling import check_sampling


class Mark(StrEnum):
    """What follows from a setting."""

    RUNTIME = auto()
    """It may differ between a run and its resume: where things are and how hard to try, not what is measured."""
    FLAG = auto()
    """It has an option of its own on the command line; ``--set`` sets every one."""
    OUTWARD = auto()
    """A run folder cannot decide it alone, since it starts, imports or sends something."""
    PUBLIC = auto()
    """It stays in the copy of a run that others may have."""


RUNTIME, FLAG, OUTWARD, PUBLIC = Mark
PATH = "path"
"""The annotation of a text that is the path of a file or a folder."""


def setting(default: Any, meaning: str, *marks: Mark, **limits: Any) -> Any:
    """A field with its default (``...``: required), its meaning and its marks; ``limits`` are pydantic's."""
    return Field(default, description=meaning, json_schema_extra={"marks": list(marks)}, **limits)


def marks_of(field: FieldInfo) -> Sequence[Mark]:
    """The marks of a setting's field."""
    extra = field.json_schema_extra
    return extra["marks"] if isinstance(extra, dict) else ()  # type: ignore[return-value]  # as setting() has put them there


MOST_CONCURRENCY = 4096
"""Requests in flight above which a run is surely a mistake."""
NOT_OPTIONS = {
    "self": "--bench names it",
    "root": "--data gives its folder",
    "name": "--bench names it",
    "data": "--data gives its folder",
    "allow_network": "--allow-network allows it",
}
"""Arguments that every loader gets, so that no option of a benchmark can have these names, and how each is given."""


def _plain(values: dict[str, Any]) -> dict[str, Any]:
    """Refuse what a manifest could not give back: dates, binary data, NaN, keys that are not text."""
    try:
        same = json.loads(json.dumps(values, allow_nan=False)) == values
    except (TypeError, ValueError, RecursionError):
        same = False
    if not same:
        raise ValueError("may hold only text, finite numbers, true, false, null, lists and groups of these")
    return values


def _no_secrets(values: dict[str, Any]) -> dict[str, Any]:
    """Refuse a setting that is a secret by its name, unseen: the manifest has all settings, and the journal some."""
    if (name := secret_name(values)) is not None:
        raise PydanticCustomError("secret", "{name}", {"name": name})
    return values


def _no_reserved(values: dict[str, Any]) -> dict[str, Any]:
    if taken := sorted(NOT_OPTIONS.keys() & values.keys()):
        raise ValueError(f"{taken[0]!r} is not an option of a benchmark ({NOT_OPTIONS[taken[0]]})")
    return values


def _one_or_more(value: Any) -> Any:
    return (value,) if isinstance(value, str) else value


def _number_or(word: str, least: int, most: float, expected: str) -> BeforeValidator:
    """Take a whole number from ``least`` to ``most``, as a number or as text, or ``word``."""

    def check(value: Any) -> Any:
        if value is None or value == word:
            return value
        with suppress(ValueError):
            if least <= (number := int(str(value))) <= most:
                return number
        raise ValueError(f"expected {expected}, or {word}")

    return BeforeValidator(check)


Text: TypeAlias = Annotated[str, Field(min_length=1)]
File: TypeAlias = Annotated[str, Field(min_length=1), PATH]
"""A path: an empty one, as an unset shell variable gives it, is refused."""
Variable: TypeAlias = Annotated[str, Field(pattern=r"^[A-Za-z_]\w*$")]
"""The name of an environment variable."""
Texts: TypeAlias = Annotated[tuple[Text, ...], BeforeValidator(_one_or_more)]
MOST_TAGS = 20
Tag: TypeAlias = Annotated[str, Field(min_length=1, max_length=40, pattern=r"^[^\s,]+$")]
"""A label of a run."""
Tags: TypeAlias = Annotated[tuple[Tag, ...], BeforeValidator(_one_or_more), Field(max_length=MOST_TAGS)]
Urls: TypeAlias = Annotated[tuple[str, ...], BeforeValidator(_one_or_more)]
PlainValues: TypeAlias = Annotated[dict[str, Any], AfterValidator(_plain)]
Values: TypeAlias = Annotated[PlainValues, AfterValidator(_no_secrets)]
LoaderOptions: TypeAlias = Annotated[Values, AfterValidator(_no_reserved)]
Parameters: TypeAlias = Annotated[Values, AfterValidator(check_sampling)]
"""Parameters of requests."""
Concurrency: TypeAlias = Annotated[
    int | Literal["auto"] | None, _number_or("auto", 1, MOST_CONCURRENCY, f"a number from 1 to {MOST_CONCURRENCY}")
]
Budget: TypeAlias = Annotated[int | Literal["unlimited"] | None, _number_or("unlimited", 0, inf, "a whole number from 0")]

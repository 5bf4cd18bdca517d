"""The few kinds of failure that cross a module boundary, and what their messages are made with.

A plug-in raises plain errors of these kinds; the runner is the one place that turns them into a stored record.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

if TYPE_CHECKING:
    from pydantic import ValidationError


class GuievalError(Exception):
    """Base of every error this package raises on purpose; its text is one sentence meant for the user."""


class UsageError(GuievalError):
    """The user asked for something that cannot be done: an unknown name, a missing folder, an unlike resume. Exit code 2."""


class DataError(GuievalError):
    """A data file does not hold what its format promises; the message names file, line and field."""


class ScreenshotError(GuievalError):
    """One step's screenshot is missing, unsafe or damaged; fails that step, never the run."""


class ParseError(GuievalError):
    """A model's reply holds no action that its family's format defines; the verdict is *unparseable*."""


class EngineError(GuievalError):
    """The model could not be asked (server, network, time limit); the verdict is *infrastructure failure*.

    ``attempts`` is how often the request was tried.
    """

    def __init__(self, message: str, *, attempts: int = 1) -> None:
        super().__init__(message)
        self.attempts = attempts


class FatalEngineError(EngineError):
    """The model can never be asked as configured (wrong key, unknown model name): the run stops at once."""


class JournalError(GuievalError):
    """The run directory cannot be used: another writer holds it, the disk is full, or a file in it is damaged."""


def nearest(name: str, known: Iterable[str]) -> str:
    """Return `` (did you mean 'x'?)`` for the known name most like ``name``, or an empty string when none is close."""
    from rapidfuzz import fuzz, process

    best = process.extractOne(name, list(known), scorer=fuzz.ratio, processor=str.lower, score_cutoff=55.0)
    return f" (did you mean {best[0]!r}?)" if best else ""


class Problem(NamedTuple):
    """A problem that pydantic found: where, of which of its types, what was expected, and what was there instead."""

    path: tuple[str, ...]
    kind: str
    said: str
    value: Any

    @property
    def field(self) -> str:
        """The path with dots; empty for the whole value."""
        return ".".join(self.path)


def first_problem(error: ValidationError) -> Problem:
    """The problem to tell of: a name that is not known, where there is one (it is why another seems missing), else the first.

    ``said`` begins in lower case, as the rest of a sentence does, and is without pydantic's own "Value error"; where one of
    several words was expected, it ends with the nearest. What an error of our own kind says is left as it is.
    """
    from pydantic_core import core_schema

    errors = error.errors()
    first = next((each for each in errors if each["type"] == "extra_forbidden"), errors[0])
    said = str(first["ctx"]["error"]) if first["type"] in ("value_error", "assertion_error") else first["msg"]
    if first["type"] == "literal_error" and isinstance(first["input"], str):
        said += nearest(first["input"], re.findall(r"'([^']+)'", first["ctx"]["expected"]))
    if first["type"] in get_args(core_schema.ErrorType):
        said = said[:1].lower() + said[1:]
    return Problem(tuple(map(str, first["loc"])), first["type"], said, first["input"])

"""The exceptions that cross a module boundary, and the helpers that write their messages.

A plug-in raises plain errors of these kinds; only the runner turns them into a stored record.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, get_args

if TYPE_CHECKING:
    from pydantic import BaseModel, ValidationError

Name = TypeVar("Name", bound=str)


class GuievalError(Exception):
    """Base of every error that this package raises on purpose; its text is one sentence of at most 1,000 characters."""

    def __init__(self, message: str) -> None:
        super().__init__(message if len(message) <= 1000 else f"{message[:700]} ... {message[-250:]}")


class UsageError(GuievalError):
    """The request cannot be carried out: an unknown name, a missing folder, a resume with other settings. Exit code 2."""


class AdapterFault(UsageError):
    """An adapter's own code is at fault; a run stops when step after step has it, and can be resumed once it is mended."""


class DataError(GuievalError):
    """A data file does not follow its format; the message names file, line and field."""

    def __init__(self, message: str) -> None:
        super().__init__(_shown(message))  # it repeats names and values from the file


def _shown(message: str) -> str:
    """A message on one line, without control characters."""
    if not message.isprintable():
        message = "".join(char if char.isprintable() else repr(char)[1:-1] for char in message[:10_000])
    return message


class ScreenshotError(GuievalError):
    """One step's screenshot is missing, unsafe or damaged; fails that step, never the run."""


class ParseError(GuievalError):
    """A model's response has no action that its family's format defines; the verdict is *unparseable*."""

    def __init__(self, message: str) -> None:
        super().__init__(in_short(message))  # it may repeat the response, which may be megabytes


class IncompleteAction(ParseError):
    """The type of a response's action is known, and one of its arguments is not: it is missing, or a point off the screen.

    Adapters turn it into an :class:`guieval.actions.Unsupported` whose type is known.
    """


class EngineError(GuievalError):
    """The model gave no answer (server, network, time limit); the verdict is *infrastructure failure*.

    ``attempts`` is the number of tries.
    """

    def __init__(self, message: str, *, attempts: int = 1) -> None:
        super().__init__(message)
        self.attempts = attempts


class FatalEngineError(EngineError):
    """No request can succeed with this configuration (wrong key, unknown model name): the run stops at once."""


class ServersAway(FatalEngineError):
    """The servers answered before and are away for longer than the run waits: it stops and can be resumed. Exit code 1."""


class Halted(EngineError):
    """A request that was paid for is not sent again, since the run may send no more (its budget is used up)."""


class NoServer(UsageError):
    """The server of an environment does not answer before a run begins, so its tasks are not known."""


class TrainingStopped(GuievalError):
    """A training of a campaign ended before its weights were written. ``code`` is its exit code."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


class EnvironmentFailure(GuievalError):
    """An environment to act in does not work (no browser, no answer, a crash); the attempt at a task is repeated."""


class JournalError(GuievalError):
    """The run directory cannot be used: another process writes to it, the disk is full, or a file in it is damaged."""


def in_short(message: str) -> str:
    """The message, cut to its beginning and end when it has 300 characters or more."""
    return message if len(message) < 300 else f"{message[:200]} ... {message[-90:]}"


def refuse(given: Mapping[str, object], why: str) -> None:
    """Raise :class:`UsageError`, with the reason, for the first of these options that was given."""
    for name, value in given.items():
        if value is not None and value is not False:
            raise UsageError(f"--{name} {why}")


def nearest(name: str, known: Iterable[str], *, least: float = 55.0) -> str:
    """Return `` (did you mean 'x'?)`` for the known name most like ``name``, or an empty string when none is close.

    ``least`` is the likeness that counts as close, of 100.
    """
    from rapidfuzz import fuzz, process

    best = process.extractOne(name, list(known), scorer=fuzz.ratio, processor=str.lower, score_cutoff=least)
    return f" (did you mean {best[0]!r}?)" if best else ""


def known_name(kind: str, name: str, known: Collection[Name]) -> Name:
    """The name; :class:`UsageError` with the nearest and all of the ``known`` ones, if it is none of them."""
    for each in known:
        if each == name:
            return each
    raise UsageError(f"unknown {kind} {name!r}{nearest(str(name), known)}; known: {', '.join(known)}")


class Problem(NamedTuple):
    """One validation error of pydantic: its path, its type (``kind``), a message, and the value that was given."""

    path: tuple[str, ...]
    kind: str
    message: str
    value: Any

    @property
    def field(self) -> str:
        """The path with dots; empty for the whole value."""
        return ".".join(self.path)

    @property
    def sentence(self) -> str:
        """``message``, with the value if it helps."""
        whole = not self.path and self.kind == "value_error"
        return self.message if whole or self.kind in _WITHOUT_VALUE else f"{self.message} (got {self.value!r:.80})"


BOXES_DIVIDED = "is two fields: targets (boxes where a right click may land) and elements (boxes of what else is on the screen)"
"""The end of a sentence about the field ``boxes``, which meant either of the two in earlier versions."""
_WITHOUT_VALUE = ("missing", "extra_forbidden", "json_invalid", "union_tag_not_found")
_MESSAGES = {
    "missing": "is missing",
    "extra_forbidden": "is not known",
    "json_invalid": "is not JSON ({error})",
    "string_type": "expected text",
    "int_type": "expected a whole number",
    "int_parsing": "expected a whole number",
    "int_from_float": "expected a whole number",
    "float_type": "expected a number",
    "float_parsing": "expected a number",
    "finite_number": "expected a finite number",
    "bool_type": "expected true or false",
    "bool_parsing": "expected true or false",
    "list_type": "expected a list",
    "tuple_type": "expected a list",
    "dict_type": "expected an object",
    "model_type": "expected an object",
    "model_attributes_type": "expected an object",
    "greater_than": "expected more than {gt}",
    "greater_than_equal": "expected {ge} or more",
    "less_than": "expected less than {lt}",
    "less_than_equal": "expected {le} or less",
    "string_too_short": "expected at least {min_length} characters",
    "too_short": "expected at least {min_length} values",
    "too_long": "expected at most {max_length} values",
    "literal_error": "expected {expected}",
    "union_tag_invalid": "expected {expected_tags}",
    "union_tag_not_found": "is missing",
}
"""Our messages for pydantic's error types."""


def first_problem(error: ValidationError, model: type[BaseModel] | None = None) -> Problem:
    """The problem to report: an unknown name if there is one (it explains why another is missing), else the first.

    Its ``message`` continues a sentence, and ends with the nearest word if one of several was expected; the message of a
    ``ValueError`` of ours is kept. With the ``model`` that was validated, an unknown name is reported with the known
    ones, and the path leaves out the tags of unions.
    """
    from pydantic_core import core_schema

    errors = error.errors()
    first = next((entry for entry in errors if entry["type"] == "extra_forbidden"), errors[0])
    kind, value, context = first["type"], first["input"], first.get("ctx", {})
    path, known = _located(model, tuple(map(str, first["loc"])))
    if kind in ("value_error", "assertion_error"):
        message = str(context["error"])
    elif (message := _MESSAGES.get(kind, "")) and context.get("min_length") == 1:
        message = "must not be empty"
    else:
        whole = {name: int(v) if isinstance(v, float) and v.is_integer() else v for name, v in context.items()}
        message = message.format_map(whole) if message else first["msg"]
    if kind.startswith("union_tag"):
        path = (*path, context["discriminator"].strip("'"))
        value = context.get("tag")
    if kind in ("literal_error", "union_tag_invalid") and isinstance(value, str):
        message += nearest(value, re.findall(r"'([^']+)'", message))
    elif kind == "extra_forbidden" and path[-1] == "boxes" and "targets" in known:
        message = BOXES_DIVIDED
    elif kind == "extra_forbidden" and known:
        message += f"{nearest(path[-1], known)}; known: {', '.join(known)}"
    if kind in get_args(core_schema.ErrorType):
        message = message[:1].lower() + message[1:]
    return Problem(path, kind, message, value)


def _located(model: type[BaseModel] | None, path: tuple[str, ...]) -> tuple[tuple[str, ...], list[str]]:
    """The path without the tags of unions, and the known names at the level of its last part."""
    from pydantic import BaseModel

    def models_in(annotation: object) -> list[type[BaseModel]]:
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            return [annotation]
        return [inner for part in get_args(annotation) for inner in models_in(part)]

    models: list[type[BaseModel]] = [] if model is None else [model]
    kept: list[str] = []
    known: list[str] = []
    for part in path:
        if tagged := [m for m in models if "type" in m.model_fields and m.model_fields["type"].default == part]:
            models = tagged
            continue
        kept.append(part)
        known = list(dict.fromkeys(name for m in models for name in m.model_fields))
        if part in known:
            fields = [m.model_fields[part] for m in models if part in m.model_fields]
            models = [inner for field in fields for inner in models_in(field.annotation)]
    return tuple(kept), known


_MOST_READ = 20_000
_KEPT = frozenset("\n\t")


def one_line(text: str, most: int = 200) -> str:
    """The text on one line of at most ``most`` characters, without control characters or marks of text direction."""
    read = text[:_MOST_READ]
    line = " ".join("".join(char if char.isprintable() else " " for char in read).split())
    return line if len(line) <= most and len(read) == len(text) else f"{line[: most - 3]}..."


def harmless(text: str) -> str:
    """The text with U+FFFD in place of every unprintable character; line breaks and tabs are kept.

    Unprintable are the control characters of C0 and C1 (escape sequences begin with one), the marks of text direction, and
    other characters without a glyph. Other kinds of white space become a space.
    """
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() or char in _KEPT else " " if char.isspace() and char >= "\xa0" else "\ufffd" for char in text
    )


def whole_text(text: str) -> str:
    """The text with lone surrogates (an emoji cut in two) replaced, as UTF-8 cannot encode them; adjacent halves are joined."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text

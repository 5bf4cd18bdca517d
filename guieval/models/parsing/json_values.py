"""Reads the first JSON value in a response, and repairs its notation: missing brackets, Python literals, prose around it."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any, NoReturn

from guieval.errors import ParseError, whole_text

MAX_DEPTH = 40
"""Deepest nesting of brackets that is read; no model format needs more than six."""
MAX_REPAIR = 4_000
"""Longest response, in characters, whose punctuation an adapter mends before it is read again."""
MAX_LITERAL, MAX_UNQUOTED = 20_000, 2_000
"""Longest text, in characters, that is read as a Python literal, and how many of them may be outside quotes."""
MAX_SCANNED = 100_000
"""How many characters the search for JSON may spend on unreadable brackets, all of them together."""
MAX_MARKS = 1_000
"""Most brackets and quoted texts of an object whose notation needs tolerance; a model in a loop writes thousands."""
MAX_BITS = 1024
"""Largest whole number, in binary digits: Python refuses to print much longer ones, which a literal like 0xff can hold."""
MAX_BRACKETS = 10
"""How many unreadable bracketed texts in a row (prose in brackets) end the search for JSON."""


def json_value(text: str, *, ends: int = -1) -> Any:
    """The first JSON object or array in ``text``, whatever is around it (prose, code fences, surplus brackets).

    Also reads objects whose closing brackets are missing at the end, unless the text may be cut off inside a value or before
    another one, and Python literals (single quotes, trailing commas, ``True``). All numbers are finite, all keys are strings,
    all text can be written as UTF-8. An unreadable object is never replaced by a readable part of it, or by a later one.

    Brackets can only be found missing if the end of the value is known. ``ends`` is a place at which it may end, such as a
    closing tag: only the text before it is read if the whole cannot be read.
    """
    try:
        return _first_value(text)
    except ParseError:
        if ends < 0:
            raise
        return _first_value(text[:ends])


def _first_value(text: str) -> Any:
    position = scanned = 0
    for _ in range(MAX_BRACKETS):
        opening = _OPENING.search(text, position)
        if opening is None or scanned > MAX_SCANNED:
            break
        start, position = opening.start(), opening.end()
        hopeless = False
        try:
            # up to where JSON goes wrong, brackets and quotes mean the same in every reading; so where Python cannot go on
            # either, no reading can, and what a model in a loop has written needs no second look
            value, end = _JSON.raw_decode(text, start)
            # so few brackets cannot be nested deeper; how deep more of them are is for the other readings to count
            if text.count("{", start, end) + text.count("[", start, end) <= MAX_DEPTH:
                return _checked(value)
        except json.JSONDecodeError as error:
            # at the end of the text only brackets may be missing; a quoted text that is never closed cannot be read
            cut_off = error.pos >= len(error.doc)
            expected = error.msg.startswith("Expecting") and not (cut_off or _PYTHON.match(error.doc, error.pos))
            hopeless = expected or error.msg.startswith("Unterminated")
        except (ValueError, RecursionError):
            pass
        meant = _OBJECT.match(text, start) is not None
        if meant and hopeless:
            break
        scanned += len(text) - start
        for span, closers in _spans(text[start:]):
            position = max(position, start + len(span))
            for read in () if hopeless else (_JSON.decode, _read_literal):
                try:
                    value = read(span + closers)
                except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
                    continue
                return _checked(value)
        if meant:
            break
    raise ParseError(f"the response has no readable JSON object: {text.strip()[:80]!r}")


def named_object(value: Any, key: str) -> tuple[str, dict[str, Any]]:
    """The name that an object has under ``key``, and its other entries; of several objects in a list, the first.

    Raises :class:`ParseError` if there is no object with such a name.
    """
    first = value[0] if isinstance(value, list) and value else value
    if not isinstance(first, dict) or not isinstance(first.get(key), str):
        raise ParseError(f"the response's JSON is not an action: {value!r:.80}")
    return first[key], {name: item for name, item in first.items() if name != key}


_OBJECT = re.compile(r"[\[\s]*\{\s*[\"']")
"""The start of what can only be meant as an object, not as words in brackets."""


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


_JSON = json.JSONDecoder(strict=False, parse_constant=_refuse_constant)
_PYTHON = re.compile(r"[\d'\"(\]},.+\-_#\\\f]|(?<=\d)[xobj]|[bru]{1,2}['\"]|(?:true|false|none|set)\b", re.IGNORECASE)
"""Syntax of Python literals that JSON lacks: other quotes, numbers, words, comments, sets, a comma before a bracket."""


_OPENING = re.compile(r"[{\[]")
_MARKS = {
    quotes: re.compile(
        # alternatives that all begin with a literal are searched for many times faster
        "|".join([*(rf"{q}(?:[^{q}\\]*+(?:\\.[^{q}\\]*+)*{q})?" for q in quotes), *map(re.escape, "{}[]()")]),
        re.DOTALL,
    )
    for quotes in ('"', "\"'")
}
"""Brackets and whole quoted texts, by which quotes count; a quote alone is one that is never closed."""


_CLOSERS = {"{": "}", "[": "]", "(": ")"}


def _spans(text: str) -> Iterator[tuple[str, str]]:
    """The results of :func:`_span` at the start of ``text``: two different texts, if single quotes matter."""
    first = _span(text, '"')
    second = _span(text, "\"'") if "'" in text else None
    yield from (span for span in (first, second if second != first else None) if span is not None)


def _span(text: str, quotes: str) -> tuple[str, str] | None:
    """The bracketed text at the start of ``text`` and the closing brackets it lacks; nothing when it cannot be bracketed."""
    closers: list[str] = []
    for count, match in enumerate(_MARKS[quotes].finditer(text)):
        if count == MAX_MARKS:
            raise ParseError(f"the response's JSON has more than {MAX_MARKS:,} brackets and quoted texts")
        mark = match[0]
        if mark in "{[(":
            closers.append(_CLOSERS[mark])
            if len(closers) > MAX_DEPTH:
                return None
        elif mark in "}])":
            if closers.pop() != mark:
                return None
            if not closers:
                return text[: match.end()], ""
        elif len(mark) == 1:
            return None
    # cut off inside a number, or before the next value, what was meant is unknown
    cut = text[-1:].isdigit() or text.rstrip()[-1:] in ",:."
    return None if cut else (text, "".join(reversed(closers)))


_UNKNOWN_ESCAPE = re.compile(r"\\(?<!\\\\)(?:\\\\)*(?![\\'\"abfnrtvxuUN01234567\n])")
"""Backslashes whose last one does not begin an escape sequence of Python."""
# one that is never closed reaches to the end: it is not looked for again after each of its escaped quotes
_STRING = re.compile(r"'[^'\\]*+(?:\\.[^'\\]*+)*(?:'|\Z)|\"[^\"\\]*+(?:\\.[^\"\\]*+)*(?:\"|\Z)", re.DOTALL)
# the digit is first, so that places without one are passed over quickly; one within a number begins none
_WORD_IN_NUMBER = re.compile(r"\d(?<!\w\d)(?<![\w.]\.\d)[\d.]*+(?!e[-+]?\d|[xob][\da-f]+\b|j\b)[A-Za-z]", re.IGNORECASE)


def _read_literal(text: str) -> Any:
    import ast

    unquoted = _STRING.sub("", text) if len(text) <= MAX_LITERAL else text
    # Python prints "invalid decimal literal" to standard error for what it then refuses
    if len(unquoted) > MAX_UNQUOTED or _WORD_IN_NUMBER.search(unquoted):
        raise ValueError("not a literal of an action")
    # an unknown escape means itself in Python too, but prints a warning to standard error
    return ast.literal_eval(_UNKNOWN_ESCAPE.sub(r"\g<0>\\", text).strip())


def _checked(value: Any) -> Any:
    match value:
        case bool() | None:
            return value
        case int():
            if value.bit_length() > MAX_BITS:
                raise ParseError("the response's JSON has an endless number")
            return value
        case float():
            if not math.isfinite(value):
                raise ParseError(f"the response's JSON has the number {value}")
            return value
        case str():
            return whole_text(value)
        case list() | tuple():
            return [_checked(item) for item in value]
        case dict() if all(isinstance(key, str) for key in value):
            return {whole_text(key): _checked(item) for key, item in value.items()}
    # its type alone: a number of thousands of digits inside it has no repr
    raise ParseError(f"the response's JSON has a value that JSON cannot express ({type(value).__name__})")

"""Reads call expressions, ``name(key='value', ...)``, without ever evaluating them as code."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from guieval.errors import ParseError, whole_text
from guieval.models.parsing.points import is_numbers

MAX_ARGUMENTS, MAX_CALLS = 40, 1_000
"""Most arguments of a call, and most calls of other names that are skipped."""


@dataclass(frozen=True)
class CallExpression:
    """A call expression ``name(key='value', ...)``: values as text, without their quotes and with escapes resolved.

    ``text`` is the call as it was written, and ``end`` where it ends in the text it was read from.
    """

    name: str
    arguments: Mapping[str, str] = field(default_factory=dict)
    text: str = field(default="", compare=False)
    end: int = field(default=0, compare=False)


# bounded and not within a word: a model stuck in a loop writes words of many thousand letters
_NAMED = re.compile(r"(?<!\w)([A-Za-z_]\w{0,40})\(")
_KEY = re.compile(r"[\s,]*([A-Za-z_]\w*)\s*=\s*")
_CLOSE = re.compile(r"[\s,]*[)）]")
_FIRST = re.compile(r"[\s`*-]*([A-Za-z_]\w{0,40})\(")
# what may follow a call: the end, a new line, a mark, another call, or the label of another part of the response
_AFTER_CALL = r"\Z|[\n<#`;*]|(?:,\s*)?[A-Za-z_]\w{0,40}\(\s*(?:[A-Za-z_]\w{0,40}\s*=|\))|(?:Thought|Action)\s{0,9}[:：]"
_AFTER = rf"\s*(?:,\s*[A-Za-z_]\w*\s*=|[)）]\s*(?:{_AFTER_CALL}))"
_AFTER_VALUE = re.compile(_AFTER)
# a group is never possessive here: Python before 3.11.5 matches these wrongly (CPython issue 106052)
_VALUE_MARK = re.compile(r"[()\[\],）]")
_QUOTED = {quote: re.compile(rf"[^{quote}\\]*+(?:\\.[^{quote}\\]*+)*{quote}", re.DOTALL) for quote in "'\""}
"""The rest of a value in quotes, to the first one that is not escaped."""
_QUOTED_WHOLE = {
    quote: re.compile(rf"[^{quote}\\]*+(?:(?:\\.|{quote}(?!{_AFTER}))[^{quote}\\]*+)*{quote}(?={_AFTER})", re.DOTALL)
    for quote in "'\""
}
"""The same to the first one that :data:`_AFTER_VALUE` follows."""
_MARKED_PLACE = re.compile(r"['\"](<point>[^<]{0,99}</point>|<\|box_start\|>[^<]{0,99}<\|box_end\|>)(?=[,)])")
"""A place in quotes of which the second is missing: UI-TARS' desktop client reads it too (UI-TARS-desktop issue 942)."""
_CURLY = {"“": "”", "‘": "’"}
_UNICODE_ESCAPE = re.compile(r"\\u([0-9A-Fa-f]{4})")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "'": "'", '"': '"'}


def first_call(text: str, names: Iterable[str]) -> CallExpression:
    """The first call in ``text`` whose name is among ``names``, in upper or lower case.

    Tolerated: words around the call; either kind of quote, curly ones, or none around numbers; quotes inside a value that are
    not escaped (a value ends at the first quote that the next argument or the end of the call follows); quotes that are all
    escaped, as in a log; a missing or full-width ``)`` at the end; a missing quote after a place between its own marks, or
    before a value. A value, and a call without arguments, whose end is missing is cut off, and an error, as are a key given
    twice and a text that begins with a call of another name: what follows it was meant to come second.
    """
    known = {name.lower(): name for name in names}
    first = _FIRST.match(text)
    unknown = None
    if first is not None and first[1].lower() not in known:
        unknown = first[1]
    else:
        for name, opened in islice(_calls(text), MAX_CALLS):
            if name.lower() in known:
                arguments, end = _arguments(text, opened + 1)
                return CallExpression(known[name.lower()], arguments, text[opened - len(name) : end], end)
            unknown = unknown or name
    if unknown is not None:
        raise ParseError(f"the response calls {unknown!r}, which is not an action of this family")
    raise ParseError("the response has no action")


def _calls(text: str) -> Iterator[tuple[str, int]]:
    """Every name that a ``(`` follows, with the place of that bracket."""
    for found in _NAMED.finditer(text):
        yield found[1], found.end() - 1


def _arguments(text: str, position: int) -> tuple[dict[str, str], int]:
    arguments: dict[str, str] = {}
    unended: set[str] = set()
    while position < len(text):
        close = _CLOSE.match(text, position)
        if close is not None:
            return arguments, close.end()
        key = _KEY.match(text, position)
        if key is None:
            if not text[position:].strip(" \t\r\n,"):
                break
            raise ParseError(f"the response's call cannot be read at {text[position : position + 40]!r}")
        if len(arguments) == MAX_ARGUMENTS:
            raise ParseError(f"the response's call has more than {MAX_ARGUMENTS} arguments")
        if key[1] in arguments:
            raise ParseError(f"the response's call gives {key[1]!r} twice")
        arguments[key[1]], position = _value(text, key.end(), unended)
    if not arguments:
        raise ParseError("the response ends inside a call")
    return arguments, len(text)


def _value(text: str, start: int, unended: set[str]) -> tuple[str, int]:
    """A value and the place after it. ``unended`` collects the quotes that no next argument and no end of the call follows."""
    if text.startswith(("\\'", '\\"'), start):
        end = text.find(text[start : start + 2], start + 2)
        if end < 0:
            raise ParseError("the response ends inside a quoted value")
        return _resolved(text[start + 2 : end]), end + 2
    if (unquoted := _MARKED_PLACE.match(text, start)) is not None:
        return unquoted[1], unquoted.end()
    if text.startswith(("'", '"'), start):
        end = _quoted_end(text, start + 1, text[start], unended)
        return _resolved(text[start + 1 : end]), end + 1
    depth = 0
    for mark in _VALUE_MARK.finditer(text, start):
        if mark[0] in "([":
            depth += 1
        elif depth and mark[0] in ")]）":
            depth -= 1
        elif not depth and mark[0] in ",)）":
            return _unquoted(text[start : mark.start()].strip()), mark.start()
    raise ParseError("the response ends inside a value")


def _unquoted(value: str) -> str:
    """A value without straight quotes around it: without curly ones, or the second of two whose first is missing."""
    if value[:1] in _CURLY:
        if value[-1] != _CURLY[value[0]] or len(value) < 2:
            raise ParseError(f"the quotes of {value[:80]!r} differ")
        return value[1:-1]
    lone = value[-1:] in ("'", '"') and not any(quote in value[:-1] for quote in "'\"")
    return value[:-1] if lone else value


def _quoted_end(text: str, start: int, quote: str, unended: set[str]) -> int:
    first = _QUOTED[quote].match(text, start)
    if first is None:
        raise ParseError("the response ends inside a quoted value")
    end = first.end() - 1
    if _AFTER_VALUE.match(text, first.end()) or is_numbers(text[start:end]):
        return end
    whole = None if quote in unended else _QUOTED_WHOLE[quote].match(text, first.end())
    if whole is None:
        unended.add(quote)
        return end
    return whole.end() - 1


def _resolved(value: str) -> str:
    if "\\" in value:
        # an escaped backslash is meanwhile what the text does not contain, and no escape below can write
        present = set(value)
        mark = next((char for char in map(chr, range(0x10000, 0x110000)) if char not in present), None)
        if mark is None:
            raise ParseError("the response's text contains every character there is")
        value = value.replace("\\\\", mark)
        for letter, meant in _ESCAPES.items():
            value = value.replace("\\" + letter, meant)
        if "\\u" in value:
            value = _UNICODE_ESCAPE.sub(lambda match: chr(int(match[1], 16)), value)
        value = value.replace(mark, "\\")
    # a character beyond the first 65,536 is written as two escapes
    return whole_text(value)


def quoted(value: str) -> str:
    """``value`` in single quotes, escaped so that :func:`first_call` reads it back unchanged."""
    escaped = value.replace("\\", "\\\\").replace("'", "\\'").replace('"', '\\"')
    return "'" + escaped.replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t") + "'"


def call_text(name: str, arguments: Mapping[str, Any]) -> str:
    """A call expression, in which texts are quoted and other values are written as they are."""
    values = (f"{key}={quoted(value) if isinstance(value, str) else value}" for key, value in arguments.items())
    return f"{name}({', '.join(values)})"

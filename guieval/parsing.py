"""Readers of the notations that models' replies share: reasoning tags, JSON objects and call expressions.

Every family writes one of these, more or less well. What is tolerated here is notation only (a fence, a missing bracket, an
unescaped quote); what a call *means* is left to the adapters. Nothing is ever evaluated as code, and every function raises
:class:`guieval.errors.ParseError` and nothing else when it cannot read.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, NoReturn

from guieval.actions import Point
from guieval.errors import ParseError
from guieval.frames import Frame, Size

MAX_DEPTH = 40
"""Deepest nesting of brackets that is read; no model format needs more than six."""
MAX_LITERAL = 20_000
"""Longest text, in characters, that is read as a Python literal."""
MAX_BITS = 1024
"""Largest whole number, in binary digits: Python refuses to write out much longer ones, which a literal like 0xff can hold."""
MAX_BRACKETS = 10
"""How many bracketed texts in a row may turn out unreadable (prose in brackets) before the search for JSON ends."""


def well_formed(text: str) -> str:
    """``text`` with every half of a broken surrogate pair replaced by ``?``, so that it can be written as UTF-8."""
    return text.encode("utf-8", "replace").decode("utf-8")


# --- reasoning ------------------------------------------------------------------------------------------------------

_REASONING_START = re.compile(r"\s*<(?:think\w*|thought)>", re.IGNORECASE)
_REASONING_END = re.compile(r"</(?:think\w*|thought)>", re.IGNORECASE)


def split_reasoning(text: str, answer: str) -> tuple[str | None, str]:
    """The reasoning block in front of the answer, and the rest.

    Reads ``<think>..</think>``, ``<thinking>``, ``<think_xyz>`` and ``<Thought>`` alike, and ``..</think>`` alone, which
    is what a thinking checkpoint writes when its chat template has already opened the block. ``answer`` is the text an
    answer begins with (``<tool_call>``): where it occurs, the block ends at the last end tag in front of its last
    occurrence, so that neither a tag inside an argument nor an answer rehearsed in the reasoning misleads. An unclosed
    block reaches to ``answer``, or takes the whole reply. The reasoning is ``None`` when there is no block.
    """
    ends = list(_REASONING_END.finditer(text))
    last = text.rfind(answer)
    if last >= 0:
        ends = [end for end in ends if end.end() <= last]
    start = _REASONING_START.match(text)
    opened = start.end() if start else 0
    ends = [end for end in ends if end.start() >= opened]
    if ends:
        return text[opened : ends[-1].start()].strip(), text[ends[-1].end() :]
    if start is None:
        return None, text
    cut = last if last >= opened else len(text)
    return text[opened:cut].strip(), text[cut:]


def tagged(text: str, name: str) -> str | None:
    """What stands in the first ``<name>..</name>``, to the end of the text when it is never closed; ``None`` without it."""
    start = text.find(f"<{name}>")
    if start < 0:
        return None
    start += len(name) + 2
    end = text.find(f"</{name}>", start)
    return text[start : end if end >= 0 else len(text)].strip()


# --- JSON -----------------------------------------------------------------------------------------------------------


def json_value(text: str) -> Any:
    """The first JSON object or array in ``text``, whatever stands around it (prose, code fences, surplus brackets).

    Also reads objects whose closing brackets are missing at the end, unless the text may be cut off inside a value or before
    another one, and Python literals (single quotes, trailing commas, ``True``). All numbers are finite, all keys are strings,
    all text can be written as UTF-8. An unreadable object is never replaced by a readable part of it, or by a later one.
    """
    position = 0
    for _ in range(MAX_BRACKETS):
        opening = _OPENING.search(text, position)
        if opening is None:
            break
        start, position = opening.start(), opening.end()
        whole = _whole_json(text, start)
        if whole.found:
            return _plain(whole.value)
        meant = _OBJECT.match(text, start) is not None
        if meant and whole.hopeless:
            break
        for span, closers in _spans(text[start:]):
            position = max(position, start + len(span))
            for read in () if whole.hopeless else (_read_json, _read_literal):
                found, value = read(span + closers)
                if found:
                    return _plain(value)
        if meant:
            break
    raise ParseError(f"the reply holds no readable JSON object: {text.strip()[:80]!r}")


_OBJECT = re.compile(r"[\[\s]*\{\s*[\"']")
"""The start of what can only be meant as an object, not as words in brackets."""


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


_JSON = json.JSONDecoder(strict=False, parse_constant=_refuse_constant)
_PYTHON = re.compile(r"[\d'\"(\]},.+\-_#\\\f]|(?<=\d)[xobj]|[bru]{1,2}['\"]|(?:true|false|none|set)\b", re.IGNORECASE)
"""What a Python literal can have where JSON cannot: other quotes, numbers, words, comments, sets, a comma before a bracket."""


class _Reading(NamedTuple):
    found: bool
    value: Any = None
    hopeless: bool = False
    """Whether no other reading can succeed either."""


def _whole_json(text: str, start: int) -> _Reading:
    """The plain JSON at ``start``, which needs no tolerance.

    Up to the place where JSON goes wrong, brackets and quotes mean the same in every reading; so where Python cannot go on
    either, no reading can, and what a model in a loop has written needs no second look.
    """
    try:
        value, end = _JSON.raw_decode(text, start)
    except json.JSONDecodeError as error:
        return _Reading(False, hopeless=_is_hopeless(error))
    except (ValueError, RecursionError):
        return _Reading(False)
    # so few brackets cannot be nested deeper; how deep more of them are is for the other readings to count
    return _Reading(text.count("{", start, end) + text.count("[", start, end) <= MAX_DEPTH, value)


def _is_hopeless(error: json.JSONDecodeError) -> bool:
    if error.msg.startswith("Expecting"):
        # at the end of the text only brackets may be missing
        return error.pos < len(error.doc) and not _PYTHON.match(error.doc, error.pos)
    # other escapes are read, but a text that is never closed
    return error.msg.startswith("Unterminated")


_OPENING = re.compile(r"[{\[]")
_MARKS = {
    quotes: re.compile("|".join([*(rf"{q}[^{q}\\]*(?:\\.[^{q}\\]*)*{q}" for q in quotes), rf"[{{}}\[\](){quotes}]"]), re.DOTALL)
    for quotes in ('"', "\"'")
}
"""Brackets and whole quoted texts, by which quotes count; a quote alone is one that is never closed."""


_CLOSERS = {"{": "}", "[": "]", "(": ")"}


def _spans(text: str) -> Iterator[tuple[str, str]]:
    """What :func:`_span` finds at the start of ``text``: two different texts, if single quotes matter."""
    first = _span(text, '"')
    if first[0] is not None:
        yield first[0], first[1]
    if "'" in text:
        second = _span(text, "\"'")
        if second[0] is not None and second != first:
            yield second[0], second[1]


def _span(text: str, quotes: str) -> tuple[str | None, str]:
    """The bracketed text at the start of ``text`` and the closing brackets it lacks; no text when it cannot be bracketed."""
    closers: list[str] = []
    for match in _MARKS[quotes].finditer(text):
        mark = match[0]
        if mark in "{[(":
            closers.append(_CLOSERS[mark])
            if len(closers) > MAX_DEPTH:
                return None, ""
        elif mark in "}])":
            if closers.pop() != mark:
                return None, ""
            if not closers:
                return text[: match.end()], ""
        elif len(mark) == 1:
            return None, ""
    # cut off inside a number, or before the next value, what was meant is unknown
    cut = text[-1:].isdigit() or text.rstrip()[-1:] in ",:."
    return (None, "") if cut else (text, "".join(reversed(closers)))


def _read_json(text: str) -> tuple[bool, Any]:
    try:
        return True, _JSON.decode(text)
    except (ValueError, RecursionError):
        return False, None


_BACKSLASH = re.compile(r"\\(.)", re.DOTALL)
_KNOWN_ESCAPES = frozenset("\\'\"abfnrtvxuUN01234567\n")


_STRING = re.compile(r"'(?:\\.|[^'\\])*'|\"(?:\\.|[^\"\\])*\"", re.DOTALL)
# the digit stands first, so that places without one are passed over quickly
_WORD_IN_NUMBER = re.compile(r"\d(?<!\w\d)[\d.]*(?!e[-+]?\d|[xob][\da-f]+\b|j\b)[A-Za-z]", re.IGNORECASE)


def _read_literal(text: str) -> tuple[bool, Any]:
    import ast

    # Python says "invalid decimal literal" on standard error for what it then refuses
    if len(text) > MAX_LITERAL or (_WORD_IN_NUMBER.search(text) and _WORD_IN_NUMBER.search(_STRING.sub("", text))):
        return False, None
    # an unknown escape means itself in Python too, but says so with a warning on standard error
    quiet = _BACKSLASH.sub(lambda match: match[0] if match[1] in _KNOWN_ESCAPES else "\\" + match[0], text)
    try:
        return True, ast.literal_eval(quiet.strip())
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return False, None


def _plain(value: Any) -> Any:
    match value:
        case bool() | None:
            return value
        case int():
            if value.bit_length() > MAX_BITS:
                raise ParseError("the reply's JSON holds an endless number")
            return value
        case float():
            if not math.isfinite(value):
                raise ParseError(f"the reply's JSON holds the number {value}")
            return value
        case str():
            return well_formed(value)
        case list() | tuple():
            return [_plain(item) for item in value]
        case dict() if all(isinstance(key, str) for key in value):
            return {well_formed(key): _plain(item) for key, item in value.items()}
    # its type alone: a number of thousands of digits inside it has no repr
    raise ParseError(f"the reply's JSON holds a value that JSON cannot say ({type(value).__name__})")


# --- calls ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Call:
    """A call expression ``name(key='value', ...)``: values as text, without their quotes and with escapes resolved.

    ``text`` is the call as it was written, and ``end`` the place behind it in the text it was read from.
    """

    name: str
    arguments: Mapping[str, str] = field(default_factory=dict)
    text: str = field(default="", compare=False)
    end: int = field(default=0, compare=False)


# bounded and not within a word: a model stuck in a loop writes words of many thousand letters
_NAME = re.compile(r"(?<!\w)[A-Za-z_]\w{0,40}\Z")
_KEY = re.compile(r"[\s,]*([A-Za-z_]\w*)\s*=\s*")
_CLOSE = re.compile(r"[\s,]*\)")
_FIRST = re.compile(r"[\s`*-]*([A-Za-z_]\w{0,40})\(")
# what may follow a call: the end, a new line, a mark, another call, or the label of another part of the reply
_AFTER_CALL = r"\Z|[\n<#`;*]|(?:,\s*)?[A-Za-z_]\w{0,40}\(\s*(?:[A-Za-z_]\w{0,40}\s*=|\))|(?:Thought|Action)\s{0,9}[:：]"
_AFTER_VALUE = re.compile(rf"\s*(?:,\s*[A-Za-z_]\w*\s*=|\)\s*(?:{_AFTER_CALL}))")
_VALUE_MARK = re.compile(r"[()\[\],]")
_QUOTES = {quote: re.compile(rf"\\.|{quote}", re.DOTALL) for quote in "'\""}
_ENDS = {quote: re.compile(rf"\\.|{quote}(?=\s*[,)])", re.DOTALL) for quote in "'\""}
"""Escapes, and the quotes that :data:`_AFTER_VALUE` may follow."""
_ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|.)", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "'": "'", '"': '"', "\\": "\\"}


def first_call(text: str, names: Iterable[str]) -> Call:
    """The first call in ``text`` whose name is among ``names``, in upper or lower case.

    Tolerated: words around the call; either kind of quote, or none around numbers; quotes inside a value that are not
    escaped (a value ends at the first quote that the next argument or the end of the call follows); quotes that are
    all escaped, as in a log; a missing ``)`` at the end. A value whose end is missing is cut off, and an error, as are a
    key given twice and a text that begins with a call of another name: what follows it was meant to come second.
    """
    known = {name.lower(): name for name in names}
    first = _FIRST.match(text)
    unknown = None
    if first is not None and first[1].lower() not in known:
        unknown = first[1]
    else:
        for name, opened in _calls(text):
            if name.lower() in known:
                arguments, end = _arguments(text, opened + 1)
                return Call(known[name.lower()], arguments, text[opened - len(name) : end], end)
            unknown = unknown or name
    if unknown is not None:
        raise ParseError(f"the reply calls {unknown!r}, which is not an action of this family")
    raise ParseError("the reply holds no action")


def _calls(text: str) -> Iterator[tuple[str, int]]:
    """Every name that a ``(`` follows, with the place of that bracket."""
    opened = text.find("(")
    while opened >= 0:
        if opened and (text[opened - 1].isalnum() or text[opened - 1] == "_"):  # most brackets of prose follow a space
            name = _NAME.search(text[max(0, opened - 42) : opened])
            if name is not None:
                yield name[0], opened
        opened = text.find("(", opened + 1)


def _arguments(text: str, position: int) -> tuple[dict[str, str], int]:
    found: dict[str, str] = {}
    while position < len(text):
        close = _CLOSE.match(text, position)
        if close is not None:
            return found, close.end()
        key = _KEY.match(text, position)
        if key is None:
            if not text[position:].strip(" \t\r\n,"):
                break
            raise ParseError(f"the reply's call cannot be read at {text[position : position + 40]!r}")
        if key[1] in found:
            raise ParseError(f"the reply's call gives {key[1]!r} twice")
        found[key[1]], position = _value(text, key.end())
    return found, len(text)


def _value(text: str, start: int) -> tuple[str, int]:
    if text.startswith(("\\'", '\\"'), start):
        end = text.find(text[start : start + 2], start + 2)
        if end < 0:
            raise ParseError("the reply ends inside a quoted value")
        return _resolved(text[start + 2 : end]), end + 2
    if text.startswith(("'", '"'), start):
        end = _quoted_end(text, start + 1, text[start])
        return _resolved(text[start + 1 : end]), end + 1
    depth = 0
    for mark in _VALUE_MARK.finditer(text, start):
        if mark[0] in "([":
            depth += 1
        elif depth and mark[0] in ")]":
            depth -= 1
        elif not depth and mark[0] in ",)":
            return text[start : mark.start()].strip(), mark.start()
    raise ParseError("the reply ends inside a value")


def _quoted_end(text: str, start: int, quote: str) -> int:
    first = next((mark.start() for mark in _QUOTES[quote].finditer(text, start) if mark[0] == quote), None)
    if first is None:
        raise ParseError("the reply ends inside a quoted value")
    if _AFTER_VALUE.match(text, first + 1) or _is_numbers(text[start:first]):
        return first
    ends = (mark for mark in _ENDS[quote].finditer(text, first + 1) if mark[0] == quote)
    return next((mark.start() for mark in ends if _AFTER_VALUE.match(text, mark.end())), first)


def _resolved(value: str) -> str:
    if "\\\\" in value or "\\u" in value:
        resolved = _ESCAPE.sub(_escaped, value)
    else:  # every backslash begins an escape of its own, in whatever order they are replaced
        resolved = value
        for letter, meant in _ESCAPES.items() if "\\" in value else ():
            resolved = resolved.replace("\\" + letter, meant)
    # a character beyond the first 65,536 is written as two escapes
    return resolved.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _escaped(match: re.Match[str]) -> str:
    return chr(int(match[1][1:], 16)) if len(match[1]) > 1 else _ESCAPES.get(match[1], match[0])


def quoted(value: str) -> str:
    """``value`` in single quotes, escaped so that :func:`first_call` reads it back unchanged."""
    escaped = value.replace("\\", "\\\\").replace("'", "\\'").replace('"', '\\"')
    return "'" + escaped.replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t") + "'"


# --- places ---------------------------------------------------------------------------------------------------------

_POINT_MARKUP = re.compile(r"<\|box_(?:start|end)\|>|<\|im_end\|>|</?(?:point|bbox|box)>|[\[\](),\s（），［］]+")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


def _is_numbers(text: str) -> bool:
    tokens = _POINT_MARKUP.sub(" ", text).split()
    return bool(tokens) and all(_NUMBER.fullmatch(token) for token in tokens)


def numbers(text: str) -> tuple[float, ...]:
    """The numbers in a place as models write it.

    Reads ``(x,y)``, ``[x, y]``, ``x y``, ``[x1, y1, x2, y2]``, ``(x1,y1),(x2,y2)``, each also inside
    ``<|box_start|>..<|box_end|>``, ``<point>..</point>``, ``<bbox>`` or ``<box>``, or with full-width brackets and commas;
    anything else in it is an error.
    """
    tokens = _POINT_MARKUP.sub(" ", text).split()
    if not tokens or not all(_NUMBER.fullmatch(token) for token in tokens):
        raise ParseError(f"{text[:80]!r} is not a point")
    return tuple(float(token) for token in tokens)


def place(value: object) -> tuple[float, float]:
    """A native (x, y): of a pair of numbers, of a box's middle, or of text that :func:`numbers` reads.

    A list inside a list of one is unwrapped (``[[x, y]]``), two pairs count as a box, and a number may be in quotes.
    """
    while isinstance(value, list) and len(value) == 1:
        value = value[0]
    if isinstance(value, str):
        found = numbers(value)
    else:
        items: list[Any] = list(value) if isinstance(value, list | tuple) else [value]
        flat: list[Any] = [part for item in items for part in (item if isinstance(item, list) else [item])]
        flat = [float(part) if isinstance(part, str) and _NUMBER.fullmatch(part.strip()) else part for part in flat]
        if not all(isinstance(part, int | float) and not isinstance(part, bool) for part in flat):
            raise ParseError(f"{value!r:.80} is not a point")
        try:
            found = tuple(float(part) for part in flat)
        except OverflowError:
            raise ParseError(f"{value!r:.80} is not a point: a number is too large") from None
    if len(found) == 2:
        return found[0], found[1]
    if len(found) == 4:
        return (found[0] + found[2]) / 2, (found[1] + found[3]) / 2
    raise ParseError(f"{value!r:.80} is not a point: it holds {len(found)} numbers, not 2 or 4")


def decoded(value: object, frame: Frame, size: Size) -> Point:
    """The unified point that :func:`place` finds in ``value``, read in ``frame`` on a screenshot of ``size``.

    A place outside the screen is an error, not the nearest place inside it: clamping would invent an answer.
    """
    x, y = place(value)
    try:
        return frame.decode(x, y, size)
    except ValueError as error:
        raise ParseError(f"the reply's point {error}") from None

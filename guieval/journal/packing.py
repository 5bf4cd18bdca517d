"""Packs a journal's line: values that follow from others are left out, the samples stand in columns, and all is compressed.

A packed line starts with byte 1 (a plain line with ``{``). Then comes the step's name, uncompressed, so an index needs no
decompression. The only newline is the last byte, so a line cut off by a kill is recognised as in a plain journal. Packing is
lossless: :func:`unpack` returns the values of the line that :func:`pack` was given.

The reader also accepts what earlier versions wrote: they kept equal samples once, stored columns of equal or few values as
tables, and compressed with zlib where that was smaller. Plain columns under bz2 are at most 10 % larger, and need less code.
"""

from __future__ import annotations

import bz2
import json
import math
import zlib
from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

MARK = b"\x01"
_END_OF_NAME = b"\0"
_ESCAPE, _ESCAPED_NEWLINE, _ESCAPED_ESCAPE = b"\x1b", b"\x1bn", b"\x1be"
_CHECKSUM = 4  # bytes
_TEXTS = ("reasoning", "thought", "conclusion")
"""Texts that an adapter usually copies from the reply: of these only the place in the reply is stored."""
_AROUND = 8  # characters before and after a part of a reply, e.g. of a tag
_ROWS = "rows"
"""Key of a table's number of rows."""
_FRACTION = "/"
"""Key of a number stored as a fraction of 1000, [p, q]: coordinates come from whole pixels, and 17 digits take more space."""
_LARGEST_SCREEN, _SHORT = 8192, 9  # pixels; characters up to which a number is stored as it is
_MOST_UNPACKED = 256 << 20
"""The largest JSON of a line, in bytes: a few kilobytes with a right checksum may unpack to gigabytes."""


class Named(NamedTuple):
    """The step of a packed line, (benchmark, subset, episode, index), and whether all its samples have an answer."""

    step: tuple[str, str, str, int]
    finished: bool


def is_packed(line: bytes) -> bool:
    """Whether a journal's line is a packed one."""
    return line.startswith(MARK)


def pack(line: bytes) -> bytes:
    """Turn a line of JSON, as :class:`guieval.steps.StepRecord` writes it, into a packed line with its newline."""
    values = json.loads(line)
    samples = values.pop("samples")
    task = values["task"]
    finished = all(sample["outcome"]["verdict"] != "infrastructure_failure" for sample in samples)
    name = [task["benchmark"], task["subset"], task["episode_id"], task["step_index"], int(finished)]
    head = json.dumps(name, separators=(",", ":")).encode()
    rows = [_cut(sample, task) for sample in samples]
    values["executions"] = {_ROWS: len(rows), **{key: {"each": [row[key] for row in rows]} for key in rows[0]}}
    values["samples"] = {_ROWS: len(rows)}
    values["which"] = None
    values["fractions"] = fractions = b'"/"' not in line
    if fractions:
        values = _with_fractions(values)
    text = json.dumps(values, separators=(",", ":"), ensure_ascii=False).encode()
    body = b"b" + bz2.compress(text)
    checked = zlib.crc32(body, zlib.crc32(head)).to_bytes(_CHECKSUM) + body
    return MARK + head + _END_OF_NAME + _stuffed(checked) + b"\n"


def named(line: bytes) -> Named:
    """Read the name of a packed line. Raises :class:`ValueError` if the line is damaged."""
    head, _ = _checked(line)
    benchmark, subset, episode, index, finished = json.loads(head)
    return Named((benchmark, subset, episode, index), bool(finished))


def _unpacked(body: bytes) -> bytes:
    stream = zlib.decompressobj() if body[:1] == b"z" else bz2.BZ2Decompressor()
    data = stream.decompress(body[1:], _MOST_UNPACKED)
    if not stream.eof:
        raise ValueError("the line is damaged, or unpacks to more than a record can hold")
    return data


def unpack(line: bytes) -> dict[str, Any]:
    """Read the values of the JSON line that was packed. Raises :class:`ValueError` if the line is damaged."""
    _, body = _checked(line)
    try:
        values: dict[str, Any] = json.loads(_unpacked(body))
        if values.pop("fractions"):
            values = _without_fractions(values)
        executions = [_whole(row, values["task"]) for row in _rows(values.pop("executions"))]
        own = _rows(values["samples"])
        which = values.pop("which") or range(len(executions))
        values["samples"] = [{**executions[index], **own[place]} for place, index in enumerate(which)]
    except (zlib.error, OSError, KeyError, IndexError, TypeError) as error:  # the checksum was right by chance
        raise ValueError(f"not a packed record: {error}") from None
    return values


def _checked(line: bytes) -> tuple[bytes, bytes]:
    """Check a packed line's checksum and return its head and body."""
    head, end, rest = line.removeprefix(MARK).removesuffix(b"\n").partition(_END_OF_NAME)
    checked = rest.replace(_ESCAPED_NEWLINE, b"\n").replace(_ESCAPED_ESCAPE, _ESCAPE)
    body = checked[_CHECKSUM:]
    if not end or zlib.crc32(body, zlib.crc32(head)) != int.from_bytes(checked[:_CHECKSUM]):
        raise ValueError("not a packed record: its checksum is wrong")
    return head, body


def _stuffed(data: bytes) -> bytes:
    return data.replace(_ESCAPE, _ESCAPED_ESCAPE).replace(b"\n", _ESCAPED_NEWLINE)


def _rows(table: dict[str, Any]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = [{} for _ in range(table.pop(_ROWS))]
    for key, column in table.items():
        if "all" in column:
            values = [column["all"]] * len(rows)
        elif "each" in column:
            values = column["each"]
        elif "table" in column:
            values = _rows(column["table"])
        else:
            values = [column["different"][index] for index in column["of"]]
        for row, value in zip(rows, values, strict=True):
            row[key] = value
    return rows


def _cut(execution: dict[str, Any], task: Mapping[str, Any]) -> dict[str, Any]:
    """Replace what follows from the rest: texts in the reply by their place, the distance to the reference by ``True``."""
    reply = execution.get("raw_response")
    for key in _TEXTS:
        text = execution.get(key)
        if text and reply and (start := reply.find(text)) >= 0:
            execution[key] = _place(reply, start, start + len(text))
    outcome = execution["outcome"]
    if outcome.get("distance") is not None and outcome["distance"] == _distance(execution["action"], task):
        execution["outcome"] = {**outcome, "distance": True}
    return execution


def _whole(execution: dict[str, Any], task: Mapping[str, Any]) -> dict[str, Any]:
    reply = execution.get("raw_response")
    for key in _TEXTS:
        if isinstance(execution.get(key), list) and reply is not None:
            start, end = _span(reply, *execution[key])
            execution[key] = reply[start:end]
    if execution["outcome"].get("distance") is True:
        execution["outcome"] = {**execution["outcome"], "distance": _distance(execution["action"], task)}
    return execution


def _place(reply: str, start: int, end: int) -> list[int] | list[str]:
    """The text before and after a part of a reply, which most replies of a model share, or else its start and end."""
    around = [reply[max(0, start - _AROUND) : start], reply[end : end + _AROUND]]
    return around if _span(reply, *around) == (start, end) else [start, end]


def _span(reply: str, before: int | str, after: int | str) -> tuple[int, int]:
    if isinstance(before, int) or isinstance(after, int):
        return int(before), int(after)
    start = reply.find(before) + len(before)
    return start, reply.find(after, start) if after else len(reply)


def _distance(action: Mapping[str, Any] | None, task: Mapping[str, Any]) -> float | None:
    """The distance from an action's point to the reference's, by operations that every machine rounds alike."""
    points = [(at or {}).get("point") for at in (action, task["action"])]
    if not all(points):
        return None
    (x, y), (u, v) = points  # type: ignore[misc]
    return math.sqrt((x - u) * (x - u) + (y - v) * (y - v))


def _with_fractions(value: Any) -> Any:
    if isinstance(value, float):
        return _fraction(value)
    if isinstance(value, dict):
        return {key: _with_fractions(item) for key, item in value.items()}
    return [_with_fractions(item) for item in value] if isinstance(value, list) else value


def _without_fractions(value: Any) -> Any:
    if isinstance(value, dict):
        if _FRACTION in value:
            return _number(*value[_FRACTION])
        return {key: _without_fractions(item) for key, item in value.items()}
    return [_without_fractions(item) for item in value] if isinstance(value, list) else value


@lru_cache(maxsize=1 << 16)
def _fraction(value: float) -> float | dict[str, list[int]]:
    """The fraction that gives exactly ``value`` in one of two orders of rounding, or ``value`` if there is none."""
    if len(repr(value)) <= _SHORT:
        return value
    near = (Fraction(value) / 1000).limit_denominator(_LARGEST_SCREEN)
    for parts in ([near.numerator, near.denominator], [near.numerator, near.denominator, 1]):
        if _number(*parts) == value:
            return {_FRACTION: parts}
    return value


def _number(p: int, q: int, order: int = 0) -> float:
    return p / q * 1000.0 if order else p * 1000.0 / q

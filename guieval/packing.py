"""A journal's line made small: a step's samples by columns, each different execution once, compressed.

A packed line starts with byte 1 (a plain one with ``{``), names its step in the clear, so that an index needs no
decompression, and holds no newline but its last byte: what is torn off by a kill is found as in a plain journal. Nothing is
lost: :func:`unpack` gives back the values of the line that :func:`pack` was given.
"""

from __future__ import annotations

import bz2
import json
import math
import zlib
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

MARK = b"\x01"
_END_OF_NAME = b"\0"
_ESCAPE, _ESCAPED_NEWLINE, _ESCAPED_ESCAPE = b"\x1b", b"\x1bn", b"\x1be"
_CHECKSUM = 4  # bytes
_PER_SAMPLE = ("usage", "seconds", "attempts", "logprob")
"""What differs between samples that are the same execution: it is kept for each sample, beside the executions."""
_TEXTS = ("reasoning", "thought", "conclusion")
"""Parts that an adapter mostly cuts out of the reply as they stand there: then only where they stand is kept."""
_AROUND = 8  # characters, e.g. of a tag
_ROWS = "rows"
"""Key of a table that says how many rows its columns have; the arguments of an unsupported action may have the same name."""
_FRACTION = "/"
"""Key of a number kept as a fraction of 1000, [p, q]: coordinates are pixels of some screen, and 17 digits are many."""
_LARGEST_SCREEN, _SHORT = 8192, 9  # pixels; characters of a number that is short enough as it is


class Named(NamedTuple):
    """The step of a packed line, (benchmark, subset, episode, index), and whether all its samples were answered."""

    step: tuple[str, str, str, int]
    finished: bool


def is_packed(line: bytes) -> bool:
    """Whether a journal's line is a packed one."""
    return line.startswith(MARK)


def pack(line: bytes) -> bytes:
    """A line of JSON, as :class:`guieval.steps.StepRecord` writes it, as a packed line with its newline."""
    values = json.loads(line)
    samples = values.pop("samples")
    task = values["task"]
    finished = all(sample["outcome"]["verdict"] != "infrastructure_failure" for sample in samples)
    name = [task["benchmark"], task["subset"], task["episode_id"], task["step_index"], int(finished)]
    head = json.dumps(name, separators=(",", ":")).encode()
    executions: dict[str, int] = {}
    which = []
    for sample in samples:
        apart = {key: value for key, value in sample.items() if key not in _PER_SAMPLE}
        which.append(executions.setdefault(json.dumps(apart), len(executions)))
    values["executions"] = _columns([_cut(json.loads(each), task) for each in executions])
    values["which"] = which if len(executions) < len(which) else None
    values["samples"] = _columns([{key: sample[key] for key in _PER_SAMPLE if key in sample} for sample in samples])
    values["fractions"] = fractions = b'"/"' not in line
    if fractions:
        values = _with_fractions(values)
    text = json.dumps(values, separators=(",", ":"), ensure_ascii=False).encode()
    body = min(b"z" + zlib.compress(text, 9), b"b" + bz2.compress(text), key=len)
    checked = zlib.crc32(body, zlib.crc32(head)).to_bytes(_CHECKSUM) + body
    return MARK + head + _END_OF_NAME + _stuffed(checked) + b"\n"


def named(line: bytes) -> Named:
    """The name of a packed line; :class:`ValueError` when it is damaged."""
    head, _ = _checked(line)
    benchmark, subset, episode, index, finished = json.loads(head)
    return Named((benchmark, subset, episode, index), bool(finished))


def unpack(line: bytes) -> dict[str, Any]:
    """The values of the JSON line that was packed; equal samples share their values. :class:`ValueError` when damaged."""
    _, body = _checked(line)
    try:
        values: dict[str, Any] = json.loads((zlib.decompress if body[:1] == b"z" else bz2.decompress)(body[1:]))
        if values.pop("fractions"):
            values = _without_fractions(values)
        executions = [_whole(each, values["task"]) for each in _rows(values.pop("executions"))]
        own = _rows(values["samples"])
        which = values.pop("which") or range(len(executions))
        values["samples"] = [{**executions[index], **own[place]} for place, index in enumerate(which)]
    except (zlib.error, OSError, KeyError, IndexError, TypeError) as error:  # a checksum that fits by chance
        raise ValueError(f"no packed record: {error}") from None
    return values


def plain(line: bytes) -> bytes:
    """Any line of a journal as JSON; :class:`ValueError` for a packed one that is damaged."""
    return json.dumps(unpack(line)).encode() + b"\n" if is_packed(line) else line


def _checked(line: bytes) -> tuple[bytes, bytes]:
    """Head and body of a packed line whose checksum is right."""
    head, end, rest = line.removeprefix(MARK).removesuffix(b"\n").partition(_END_OF_NAME)
    checked = rest.replace(_ESCAPED_NEWLINE, b"\n").replace(_ESCAPED_ESCAPE, _ESCAPE)
    body = checked[_CHECKSUM:]
    if not end or zlib.crc32(body, zlib.crc32(head)) != int.from_bytes(checked[:_CHECKSUM]):
        raise ValueError("no packed record: its checksum is wrong")
    return head, body


def _stuffed(data: bytes) -> bytes:
    return data.replace(_ESCAPE, _ESCAPED_ESCAPE).replace(b"\n", _ESCAPED_NEWLINE)


def _columns(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Rows of equal keys as columns; one value in all of them is kept once, few different ones as a list and places in it."""
    table: dict[str, Any] = {_ROWS: len(rows)}
    for key in rows[0]:
        values = [row[key] for row in rows]
        different: dict[str, int] = {}
        of = [different.setdefault(json.dumps(value), len(different)) for value in values]
        if len(different) == 1:
            table[key] = {"all": values[0]}
        elif 2 * len(different) <= len(values):
            table[key] = {"different": [json.loads(each) for each in different], "of": of}
        elif _alike(values):
            table[key] = {"table": _columns(values)}
        else:
            table[key] = {"each": values}
    return table


def _alike(values: Sequence[Any]) -> bool:
    """Whether values are dictionaries of the same keys, which can be columns; one of those is how many rows there are."""
    first = values[0]
    if not isinstance(first, dict) or _ROWS in first:
        return False
    return all(isinstance(each, dict) and each.keys() == first.keys() for each in values)


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
    """Without what follows from the rest: texts that stand in the reply become their place, the usual distance ``True``."""
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
    """What stands before and behind a part of a reply, the same in most replies of a model, where that finds it; else where it
    starts and ends."""
    around = [reply[max(0, start - _AROUND) : start], reply[end : end + _AROUND]]
    return around if _span(reply, *around) == (start, end) else [start, end]


def _span(reply: str, before: int | str, behind: int | str) -> tuple[int, int]:
    if isinstance(before, int) or isinstance(behind, int):
        return int(before), int(behind)
    start = reply.find(before) + len(before)
    return start, reply.find(behind, start) if behind else len(reply)


def _distance(action: Mapping[str, Any] | None, task: Mapping[str, Any]) -> float | None:
    """From an action's point to the reference's, by operations that every machine rounds alike."""
    points = [(each or {}).get("point") for each in (action, task["action"])]
    if not all(points):
        return None
    (x, y), (u, v) = points  # type: ignore[misc]
    return math.sqrt((x - u) * (x - u) + (y - v) * (y - v))


def _with_fractions(value: Any) -> Any:
    if isinstance(value, float):
        return _fraction(value)
    if isinstance(value, dict):
        return {key: _with_fractions(each) for key, each in value.items()}
    return [_with_fractions(each) for each in value] if isinstance(value, list) else value


def _without_fractions(value: Any) -> Any:
    if isinstance(value, dict):
        if _FRACTION in value:
            return _number(*value[_FRACTION])
        return {key: _without_fractions(each) for key, each in value.items()}
    return [_without_fractions(each) for each in value] if isinstance(value, list) else value


@lru_cache(maxsize=1 << 16)
def _fraction(value: float) -> float | dict[str, list[int]]:
    """A number as the fraction that gives exactly it, in one of two orders of rounding; as it is where there is none."""
    if len(repr(value)) <= _SHORT:
        return value
    near = (Fraction(value) / 1000).limit_denominator(_LARGEST_SCREEN)
    for parts in ([near.numerator, near.denominator], [near.numerator, near.denominator, 1]):
        if _number(*parts) == value:
            return {_FRACTION: parts}
    return value


def _number(p: int, q: int, order: int = 0) -> float:
    return p / q * 1000.0 if order else p * 1000.0 / q

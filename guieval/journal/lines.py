"""Reads and writes a line of a journal: a record as JSON with a checksum, or packed.

In a plain line the checksum is the last member of the JSON object, ``"crc32"``: eight hexadecimal digits of the CRC-32 of the
line before it. So a line is still one JSON object for other tools, and a damaged or edited line is not used as an answer. Lines
of earlier versions without a checksum are accepted.

A packed line starts with byte 1 (a plain line with ``{``). Then comes the step's name, uncompressed, so an index needs no
decompression, and the compressed JSON. The only newline is the last byte, so a line cut off by a kill is recognised as in a
plain journal. The packed lines of earlier versions are read too (:func:`_earlier_json`).
"""

from __future__ import annotations

import bz2
import json
import lzma
import math
import zlib
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError
from pydantic_core import PydanticSerializationError

from guieval.data.earlier_boxes import divided
from guieval.errors import JournalError, first_problem
from guieval.journal.earlier_tasks import as_task
from guieval.steps import DATASET, Record, StepKey, StepRecord, TaskRecord

_BEFORE, _AFTER = b',"crc32":"', b'"}'
_LENGTH = len(_BEFORE) + 8 + len(_AFTER)

_MARK, _END_OF_NAME, _LZMA = b"\x01", b"\0", b"x"
_ESCAPE, _ESCAPED_NEWLINE, _ESCAPED_ESCAPE = b"\x1b", b"\x1bn", b"\x1be"
_CHECKSUM = 4  # bytes
_OF_TASK = b'{"environment":'
"""How the JSON of a :class:`TaskRecord` begins; that of a step begins with its task."""
_MOST_UNPACKED = 256 << 20
"""The largest JSON of a line, in bytes: a few kilobytes with a right checksum may unpack to gigabytes."""
_MOST_MEMORY = 64 << 20  # bytes for decompression


def write_line(record: Record, *, compact: bool) -> bytes:
    """The line of a record, with its newline; :class:`JournalError` if it could not be read again."""
    try:
        text = _json(record)
        stored = type(record).model_validate_json(text)
    except ValidationError as error:
        problem = first_problem(error)
        why = f"{problem.field or 'the whole record'}: {problem.message}"
    except (TypeError, ValueError, RecursionError) as error:  # a loader's extras may hold anything
        why = str(error)
    else:
        sealed = text[:-1] + _BEFORE + b"%08x" % zlib.crc32(text[:-1]) + _AFTER + b"\n"
        return _packed(text, stored) if compact else sealed
    raise JournalError(f"the record of step {record.task.key} cannot be stored as JSON that can be read again: {why:.200}")


def read_line(line: bytes) -> Any:
    """The record of a step or task in a line; :class:`ValueError` (pydantic's too) if it is none, or its checksum is wrong."""
    text = json_line(line)
    if text.startswith(_OF_TASK):
        return TaskRecord.model_validate_json(text)
    record = StepRecord.model_validate_json(text)
    return as_task(record) if record.task.dataset == DATASET else record


def read_name(line: bytes) -> tuple[StepKey, bool]:
    """The step of a line and whether it is finished; a packed line is not unpacked. Raises as :func:`read_line`."""
    if line.startswith(_MARK):
        benchmark, subset, episode, index, finished = json.loads(_checked(line)[0])
        return StepKey(benchmark, subset, episode, index), bool(finished)
    record = read_line(line)
    return record.task.key, record.finished


def json_line(line: bytes) -> bytes:
    """Any line as JSON without checksum, its boxes divided; :class:`ValueError` for a damaged line of today's forms."""
    return divided(_unpacked(line) if line.startswith(_MARK) else _unsealed(line))


def _json(record: Record) -> bytes:
    try:
        return record.model_dump_json().encode()
    except PydanticSerializationError:  # a lone surrogate, e.g. an emoji cut in two, cannot be encoded
        return json.dumps(record.model_dump(), ensure_ascii=False, allow_nan=False).encode("utf-8", "replace")


def _unsealed(line: bytes) -> bytes:
    text = line.rstrip(b"\r\n")
    body, seal = text[:-_LENGTH], text[-_LENGTH:]
    if not (seal.startswith(_BEFORE) and seal.endswith(_AFTER)):
        return line
    if seal[len(_BEFORE) : -len(_AFTER)] != b"%08x" % zlib.crc32(body):
        raise ValueError("the line was changed since it was written: its checksum is wrong")
    return body + b"}\n"


def _packed(text: bytes, record: Record) -> bytes:
    name = json.dumps([*record.task.key, int(record.finished)], separators=(",", ":")).encode()
    body = _LZMA + lzma.compress(text + b"\n")
    checked = zlib.crc32(body, zlib.crc32(name)).to_bytes(_CHECKSUM) + body
    stuffed = checked.replace(_ESCAPE, _ESCAPED_ESCAPE).replace(b"\n", _ESCAPED_NEWLINE)
    return _MARK + name + _END_OF_NAME + stuffed + b"\n"


def _checked(line: bytes) -> tuple[bytes, bytes]:
    """Check a packed line's checksum and return its name and body."""
    name, end, rest = line.removeprefix(_MARK).removesuffix(b"\n").partition(_END_OF_NAME)
    checked = rest.replace(_ESCAPED_NEWLINE, b"\n").replace(_ESCAPED_ESCAPE, _ESCAPE)
    body = checked[_CHECKSUM:]
    if not end or zlib.crc32(body, zlib.crc32(name)) != int.from_bytes(checked[:_CHECKSUM]):
        raise ValueError("not a packed record: its checksum is wrong")
    return name, body


def _unpacked(line: bytes) -> bytes:
    _, body = _checked(line)
    kind, data = body[:1], body[1:]
    stream: Any = bz2.BZ2Decompressor() if kind == b"b" else zlib.decompressobj()
    if kind == _LZMA:
        stream = lzma.LZMADecompressor(memlimit=_MOST_MEMORY)
    try:
        text: bytes = stream.decompress(data, _MOST_UNPACKED)
        if stream.eof:
            return text if kind == _LZMA else _earlier_json(text)
    except (zlib.error, lzma.LZMAError, OSError, KeyError, IndexError, TypeError) as error:  # the checksum was right by chance
        raise ValueError(f"not a packed record: {error}") from None
    raise ValueError("the line is damaged, or unpacks to more than a record can hold")


def _earlier_json(text: bytes) -> bytes:
    """The JSON of a line packed by an earlier version.

    Its samples stood in columns, equal ones once; thoughts that were part of the response were stored as their place in it, and
    coordinates as fractions of pixels.
    """
    values: dict[str, Any] = json.loads(text)
    if values.pop("fractions"):
        values = _without_fractions(values)
    executions = [_whole(row, values["task"]) for row in _rows(values.pop("executions"))]
    own = _rows(values["samples"])
    which = values.pop("which") or range(len(executions))
    values["samples"] = [{**executions[index], **own[place]} for place, index in enumerate(which)]
    return json.dumps(values).encode() + b"\n"


def _rows(table: dict[str, Any]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = [{} for _ in range(table.pop("rows"))]
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


def _whole(execution: dict[str, Any], task: Mapping[str, Any]) -> dict[str, Any]:
    reply = execution.get("raw_response")
    for key in ("reasoning", "thought", "conclusion"):
        if isinstance(execution.get(key), list) and reply is not None:
            before, after = execution[key]  # the texts around it, or its start and end
            if isinstance(before, str):
                start = reply.find(before) + len(before)
                execution[key] = reply[start : reply.find(after, start) if after else len(reply)]
            else:
                execution[key] = reply[before:after]
    if execution["outcome"].get("distance") is True:
        (x, y), (u, v) = execution["action"]["point"], task["action"]["point"]
        distance = math.sqrt((x - u) * (x - u) + (y - v) * (y - v))  # rounded alike on every machine
        execution["outcome"] = {**execution["outcome"], "distance": distance}
    return execution


def _without_fractions(value: Any) -> Any:
    if isinstance(value, dict):
        if "/" in value:
            p, q, *order = value["/"]
            return p / q * 1000.0 if order else p * 1000.0 / q
        return {key: _without_fractions(item) for key, item in value.items()}
    return [_without_fractions(item) for item in value] if isinstance(value, list) else value

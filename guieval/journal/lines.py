"""Reads and writes a line of a journal: a record as JSON with a checksum, or packed (:mod:`guieval.journal.packing`).

The checksum is the last member of the JSON object, ``"crc32"``: eight hexadecimal digits of the CRC-32 of the line before it.
So a line is still one JSON object for other tools, and a damaged or edited line is not used as an answer. Lines of earlier
versions without a checksum are accepted.
"""

from __future__ import annotations

import json
import zlib

from pydantic import ValidationError
from pydantic_core import PydanticSerializationError

from guieval.errors import JournalError, first_problem
from guieval.journal.packing import is_packed, named, pack, unpack
from guieval.steps import StepKey, StepRecord

_BEFORE, _AFTER = b',"crc32":"', b'"}'
_LENGTH = len(_BEFORE) + 8 + len(_AFTER)


def write_line(record: StepRecord, *, compact: bool) -> bytes:
    """The line of a record, with its newline; :class:`JournalError` if it could not be read again."""
    try:
        text = _json(record)
        line = pack(text) if compact else _sealed(text)
        read_line(line)
    except ValidationError as error:
        problem = first_problem(error)
        why = f"{problem.field or 'the whole record'}: {problem.message}"
    except (TypeError, ValueError, RecursionError) as error:  # a loader's extras may hold anything
        why = str(error)
    else:
        return line
    raise JournalError(f"the record of step {record.task.key} cannot be stored as JSON that can be read again: {why:.200}")


def read_line(line: bytes) -> StepRecord:
    """The record of a line; :class:`ValueError` (pydantic's is one) if it is not a record, or its checksum is wrong."""
    return StepRecord.model_validate(unpack(line)) if is_packed(line) else StepRecord.model_validate_json(_unsealed(line))


def read_name(line: bytes) -> tuple[StepKey, bool]:
    """The step of a line and whether it is finished; a packed line is not unpacked. Raises as :func:`read_line`."""
    if is_packed(line):
        step, finished = named(line)
        return StepKey(*step), finished
    record = read_line(line)
    return record.task.key, record.finished


def json_line(line: bytes) -> bytes:
    """Any line as JSON without checksum; :class:`ValueError` for a damaged line that is packed or has a checksum."""
    return json.dumps(unpack(line)).encode() + b"\n" if is_packed(line) else _unsealed(line)


def _json(record: StepRecord) -> bytes:
    try:
        return record.model_dump_json().encode() + b"\n"
    except PydanticSerializationError:  # a lone surrogate, e.g. an emoji cut in two, cannot be encoded
        return json.dumps(record.model_dump(), ensure_ascii=False, allow_nan=False).encode("utf-8", "replace") + b"\n"


def _sealed(line: bytes) -> bytes:
    text = line.rstrip(b"\n")[:-1]
    return text + _BEFORE + b"%08x" % zlib.crc32(text) + _AFTER + b"\n"


def _unsealed(line: bytes) -> bytes:
    text = line.rstrip(b"\r\n")
    body, seal = text[:-_LENGTH], text[-_LENGTH:]
    if not (seal.startswith(_BEFORE) and seal.endswith(_AFTER)):
        return line
    if seal[len(_BEFORE) : -len(_AFTER)] != b"%08x" % zlib.crc32(body):
        raise ValueError("the line was changed since it was written: its checksum is wrong")
    return body + b"}\n"

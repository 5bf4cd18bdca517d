"""Opens a foreign predictions file as rows, and reads a row's fields so that damage is told by file, place and field.

Three containers are in use: JSON lines, one JSON list, and one JSON object that holds the rows under ``details``. Each may be
packed with gzip. What a field means, and in which frame it is, stays with each format.
"""

from __future__ import annotations

import codecs
import gzip
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError
from pydantic_core import from_json

from guieval.errors import DataError, ParseError, first_problem
from guieval.steps import StepTaskModel

Built = TypeVar("Built")

LONGEST = 400
"""Characters of a sentence about a field that are told."""
DETAILS = "details"
"""Under which key a report that is one JSON object keeps its rows."""


UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


@dataclass(frozen=True)
class Row:
    """One JSON object of a predictions file; ``where`` names it in messages, e.g. ``all.jsonl, line 3``."""

    values: Mapping[str, Any]
    where: str

    def __contains__(self, field: str) -> bool:
        return self.values.get(field) is not None

    def error(self, field: str, problem: str) -> DataError:
        """The error to raise for a field: one sentence naming file, place and field, however long what is quoted in it."""
        short = problem if len(problem) <= LONGEST else f"{problem[:LONGEST]}..."
        return DataError(f"{self.where}, field {field:.80}: {short}")

    def value(self, field: str) -> Any:
        """The field as it is; :class:`DataError` when the row has none."""
        try:
            return self.values[field]
        except KeyError:
            raise self.error(field, "is missing") from None

    def text(self, field: str) -> str:
        """A string, which may be empty."""
        value = self.value(field)
        if not isinstance(value, str):
            raise self.error(field, f"expected a string, got {value!r:.80}")
        return value

    def identity(self, field: str) -> str:
        """An id that is not empty, which some files write as a number."""
        value = self.value(field)
        if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
            raise self.error(field, f"expected an id, got {value!r:.80}")
        return str(value)

    def whole(self, field: str, least: int = 0) -> int:
        """A whole number, no less than ``least``."""
        value = self.value(field)
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise self.error(field, f"expected a whole number from {least}, got {value!r:.80}")
        return value

    def numbers(self, field: str, count: int) -> tuple[float, ...]:
        """Exactly ``count`` numbers, given as a JSON list or as the text of one."""
        value = self._list(field)
        if len(value) != count or not all(map(_is_number, value)):
            raise self.error(field, f"expected a list of {count} numbers, got {self.value(field)!r:.80}")
        return self.build(field, lambda: tuple(map(float, value)))

    def boxes(self, field: str) -> list[list[float]]:
        """Boxes of four numbers each, given as a JSON list or as the text of one; one box alone may stand without its list."""
        value = self._list(field)
        if len(value) == 4 and all(map(_is_number, value)):
            value = [value]
        for box in value:
            if not isinstance(box, list) or len(box) != 4 or not all(map(_is_number, box)):
                raise self.error(field, f"expected boxes of 4 numbers, got {box!r:.80}")
        return self.build(field, lambda: [list(map(float, box)) for box in value])

    def row(self, field: str) -> Row:
        """An object inside this one."""
        return as_row(self.value(field), f"{self.where}, field {field}")

    def build(self, field: str, make: Callable[[], Built]) -> Built:
        """What ``make`` returns; its error (a point off the screen, a number of 400 digits) becomes a :class:`DataError`."""
        try:
            return make()
        except ValidationError as error:
            problem = first_problem(error)
            raise self.error(field, f"{problem.said} (got {problem.value!r:.80})") from None
        except (ValueError, OverflowError, ParseError) as error:
            raise self.error(field, str(error)) from None

    def task(self, **fields: Any) -> StepTaskModel:
        """A step record; :class:`DataError` naming the record's field where a value does not fit."""
        try:
            return StepTaskModel(**fields)
        except ValidationError as error:
            problem = first_problem(error)
            raise self.error(problem.field or "(whole row)", f"{problem.said} (got {problem.value!r:.80})") from None

    def _list(self, field: str) -> list[Any]:
        value = self.value(field)
        if isinstance(value, str):
            try:
                value = from_json(value)
            except ValueError:
                raise self.error(field, f"expected the text of a JSON list, got {value!r:.80}") from None
        if not isinstance(value, list):
            raise self.error(field, f"expected a list, got {value!r:.80}")
        return value


def as_row(value: Any, where: str) -> Row:
    """A parsed JSON value as a row; :class:`DataError` when it is no object."""
    if not isinstance(value, dict):
        raise DataError(f"{where}: expected an object, got {value!r:.80}")
    return Row(value, where)


def open_rows(file: Path) -> Iterator[Row | DataError]:
    """Every row of a UTF-8 file in its order; what is no row comes as the :class:`DataError` to raise or to count.

    JSON lines are read one at a time; a list, or the rows under ``details`` of one object, as a whole. Raises
    :class:`DataError` at once when the file cannot be read, or is one JSON value that holds no rows.
    """
    try:
        with gzip.open(file, "rb") if file.suffix == ".gz" else file.open("rb") as stream:
            first = _first_line(stream)
            if first.startswith(UTF_16):
                raise DataError(f"{file}: is written in UTF-16; expected UTF-8")
            stream.seek(0)
            whole = _whole(first)
            yield from _listed(file, stream.read()) if whole else _lines(file, stream)
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise DataError(f"{file}: is damaged: it cannot be unpacked as gzip") from None
    except OSError as error:
        raise DataError(f"{file}: cannot be read: {error.strerror}") from None


def _first_line(stream: Any) -> bytes:
    for line in stream:
        stripped: bytes = line.removeprefix(b"\xef\xbb\xbf").strip()  # the byte-order mark some editors write
        if stripped:
            return stripped
    return b""


def _whole(first: bytes) -> bool:
    """Whether a file that begins with this line is one JSON value: a list, or an object that goes on or holds the rows."""
    if first.startswith(b"["):
        return True
    if not first.startswith(b"{"):
        return False
    try:
        value = from_json(first)
    except ValueError:
        return first == b"{" or first.startswith(b'{"' + DETAILS.encode()) or not first.endswith(b"}")
    return isinstance(value, dict) and isinstance(value.get(DETAILS), list)


def _lines(file: Path, stream: Any) -> Iterator[Row | DataError]:
    for number, line in enumerate(stream, 1):
        line = line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line
        if not line.strip():
            continue
        where = f"{file}, line {number}"
        try:
            yield as_row(from_json(line), where)
        except ValueError as error:
            yield DataError(f"{where}: is not JSON ({error})")
        except DataError as error:
            yield error


def _listed(file: Path, data: bytes) -> Iterator[Row | DataError]:
    try:
        value = from_json(data.removeprefix(b"\xef\xbb\xbf"))
    except ValueError as error:
        raise DataError(f"{file}: is not JSON ({error})") from None
    field = ""
    if isinstance(value, dict):
        value, field = value.get(DETAILS), f"{DETAILS}."
    if not isinstance(value, list):
        raise DataError(f"{file}: expected JSON lines, a JSON list, or an object with the list {DETAILS!r}")
    for number, item in enumerate(value):
        try:
            yield as_row(item, f"{file}, row {field}{number}")
        except DataError as error:
            yield error


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)

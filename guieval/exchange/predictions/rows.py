"""Opens a foreign predictions file as rows, and reads a row's fields so that errors name file, place and field.

Containers are JSON lines, one JSON list, one JSON object with the rows under ``details`` or ``results``, and tables (CSV,
TSV, Excel's .xlsx), whose cells are texts. All but .xlsx may be packed with gzip. A log of Inspect is a ZIP archive with a file
for each row, and UI-Genie's results are several files (:mod:`.ui_genie_files`). What a field means, and in which frame it is,
stays with each format.
"""

from __future__ import annotations

import codecs
import csv
import io
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO
from xml.etree.ElementTree import ParseError
from zipfile import BadZipFile, ZipFile

from pydantic import ValidationError
from pydantic_core import from_json

from guieval.data import typed_rows as rows
from guieval.data.files import open_file
from guieval.data.text_files import LONGEST_LINE, MARK, lines, open_text, rest
from guieval.errors import DataError, UsageError, first_problem
from guieval.exchange.predictions.ui_genie_files import KEYS as UI_GENIE
from guieval.exchange.predictions.ui_genie_files import step_rows
from guieval.steps import StepTaskModel

KEYS = ("details", "results")
"""Under which of these keys a report that is one JSON object keeps its rows."""
ZIP, SAMPLES = b"PK\x03\x04", "samples/"
"""How a log of Inspect begins, and the folder of its samples."""
_DELIMITERS: Mapping[str, str] = {"csv": ",", "tsv": "\t"}
UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


@dataclass(frozen=True)
class PredictionRow(rows.Row):
    """One JSON object of a predictions file; a field that is null is none."""

    def __contains__(self, field: str) -> bool:
        return self.values.get(field) is not None

    def identity(self, field: str) -> str:
        """An id that is not empty, which some files write as a number."""
        value = self.value(field)
        if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
            raise self.error(field, f"expected an id, got {value!r:.80}")
        return str(value)

    def whole(self, field: str, least: int | None = 0) -> int:
        """A whole number, no less than ``least``."""
        return super().whole(field, least)

    def task(self, **fields: Any) -> StepTaskModel:
        """A step record; :class:`DataError` naming the record's field if a value does not fit."""
        try:
            return StepTaskModel(**fields)
        except ValidationError as error:
            problem = first_problem(error)
            raise self.error(problem.field or "(whole row)", f"{problem.sentence}") from None


def open_rows(file: Path) -> Iterator[PredictionRow | DataError]:
    """Every row of a UTF-8 file in its order; what is not a row is returned as the :class:`DataError` to raise or to count.

    JSON lines are read one at a time; a list, or the rows inside one object, as a whole. Raises
    :class:`DataError` at once when the file cannot be read, or is one JSON value without rows.
    """
    kind = file.name.removesuffix(".gz").rpartition(".")[2].lower()
    if kind == "xlsx":
        yield from _sheet(file)
        return
    try:
        with open_text(file) as stream:
            if kind in _DELIMITERS:
                yield from _table(file, stream, _DELIMITERS[kind])
                return
            first = _first_line(file, stream)
            if first.startswith(UTF_16):
                raise DataError(f"{file}: is written in UTF-16; expected UTF-8")
            stream.seek(0)
            if first.startswith(ZIP):
                yield from _archived(file, stream)
                return
            whole = _whole(first)
            yield from _listed(file, rest(file, stream)) if whole else _lines(file, stream)
    except OSError as error:
        raise DataError(f"{file}: cannot be read: {error.strerror}") from None


def _table(file: Path, stream: BinaryIO, delimiter: str) -> Iterator[PredictionRow | DataError]:
    csv.field_size_limit(LONGEST_LINE)
    try:
        text = io.StringIO(rest(file, stream).removeprefix(MARK).decode(), newline="")
        yield from _cells(file, csv.reader(text, delimiter=delimiter))
    except (csv.Error, UnicodeDecodeError) as error:
        raise DataError(f"{file}: is not a table in UTF-8 ({error})") from None


def _sheet(file: Path) -> Iterator[PredictionRow | DataError]:
    try:
        import openpyxl
    except ImportError:
        raise UsageError(f"to read {file.name!r}, pip install 'guieval[xlsx]', or save it as CSV") from None
    try:
        with open_file(file) as stream:
            book = openpyxl.load_workbook(stream, read_only=True, data_only=True)
            yield from _cells(file, book.worksheets[0].iter_rows(values_only=True))
    except OSError as error:
        raise DataError(f"{file}: cannot be read: {error.strerror or error}") from None
    except (BadZipFile, zlib.error, KeyError, ValueError, IndexError, EOFError, ParseError) as error:
        raise DataError(f"{file}: is a damaged .xlsx file ({error})") from None


def _cells(file: Path, lines: Iterable[Sequence[Any]]) -> Iterator[PredictionRow | DataError]:
    """The rows below the head; an empty cell is null."""
    heads: list[str] | None = None
    for number, cells in enumerate(lines, 1):
        if not any(cell not in (None, "") for cell in cells):
            continue
        if heads is None:
            heads = ["" if cell is None else str(cell).strip() for cell in cells]
            continue
        if len(cells) > len(heads):
            yield DataError(f"{file}, row {number}: has {len(cells)} cells below {len(heads)} heads")
            continue
        yield PredictionRow(
            {head: cell if cell != "" else None for head, cell in zip(heads, cells, strict=False)}, f"{file}, row {number}"
        )


def _first_line(file: Path, stream: BinaryIO) -> bytes:
    for line in lines(file, stream):
        stripped: bytes = line.removeprefix(MARK).strip()  # the byte-order mark some editors write
        if stripped:
            return stripped
    return b""


def _whole(first: bytes) -> bool:
    """Whether a file that begins with this line is one JSON value: a list, or an object that goes on or has the rows."""
    if first.startswith(b"["):
        return True
    if not first.startswith(b"{"):
        return False
    try:
        value = from_json(first)
    except ValueError:
        starts = tuple(f'{{"{key}'.encode() for key in KEYS)
        return first == b"{" or first.startswith(starts) or not first.endswith(b"}")
    return isinstance(value, dict) and any(isinstance(value.get(key), list) for key in KEYS)


def _lines(file: Path, stream: BinaryIO) -> Iterator[PredictionRow | DataError]:
    for number, line in enumerate(lines(file, stream), 1):
        line = line.removeprefix(MARK) if number == 1 else line
        if not line.strip():
            continue
        yield _row(line, f"{file}, line {number}")


def _row(text: bytes, where: str) -> PredictionRow | DataError:
    try:
        return PredictionRow.of(from_json(text), where)
    except ValueError as error:
        return DataError(f"{where}: is not JSON ({error})")
    except DataError as error:
        return error


def _archived(file: Path, stream: BinaryIO) -> Iterator[PredictionRow | DataError]:
    try:
        with ZipFile(stream) as archive:
            for entry in archive.infolist():
                if not (entry.filename.startswith(SAMPLES) and entry.filename.endswith(".json")):
                    continue
                where = f"{file}, {entry.filename}"
                with archive.open(entry) as packed:
                    text = packed.read(LONGEST_LINE + 1)  # whatever size the archive states
                if len(text) > LONGEST_LINE:
                    yield DataError(f"{where}: unpacks to more than {LONGEST_LINE >> 20} MiB")
                    continue
                yield _row(text, where)
    except (BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:  # the last two: unknown, encrypted
        raise DataError(f"{file}: is a damaged ZIP archive ({error})") from None


def _listed(file: Path, data: bytes) -> Iterator[PredictionRow | DataError]:
    try:
        value = from_json(data.removeprefix(MARK))
    except ValueError as error:
        raise DataError(f"{file}: is not JSON ({error})") from None
    field = ""
    if isinstance(value, dict):
        key = next((key for key in KEYS if isinstance(value.get(key), list)), "")
        if not key and not value.keys().isdisjoint(UI_GENIE):
            yield from (PredictionRow(values, where) for values, where in step_rows(file, value))
            return
        value, field = value.get(key), f"{key}."
    if not isinstance(value, list):
        raise DataError(f"{file}: expected JSON lines, a JSON list, or an object with the list {' or '.join(map(repr, KEYS))}")
    for number, item in enumerate(value):
        try:
            yield PredictionRow.of(item, f"{file}, row {field}{number}")
        except DataError as error:
            yield error

"""Records as lines of a file: JSON objects, or a CSV table whose names from outside no spreadsheet runs as a formula."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

from guieval.errors import UsageError, harmless, whole_text

_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
ENDINGS = (".csv", ".jsonl")


def check_ending(file: Path) -> bool:
    """Whether the file's ending is that of CSV; :class:`UsageError` for an ending that is not in :data:`ENDINGS`."""
    if file.suffix.lower() not in ENDINGS:
        raise UsageError(f"{str(file)!r} must end in {' or '.join(ENDINGS)}, got {file.suffix!r}")
    return file.suffix.lower() == ".csv"


def writable(file: Path) -> Path:
    """The file itself, after a check that it can be written: before any work is done that would be lost."""
    if file.is_dir():
        raise UsageError(f"{str(file)!r} is a folder; give the name of the file to write")
    if not file.parent.is_dir():
        raise UsageError(f"there is no folder {str(file.parent)!r} to write {file.name!r} to")
    return file


def apart(file: Path, run: Path, runs: Sequence[object]) -> Path:
    """The file for one of several runs: with the run's name added, if there are several."""
    return file if len(runs) == 1 else file.with_name(f"{file.stem}-{run.name}{file.suffix}")


def write_file(
    file: Path, rows: Iterable[Mapping[str, Any]], names: Sequence[str], *, json_in: Collection[str] = (), end: str = "\n"
) -> int:
    """Write rows in the format that the file's ending names and return their number; see :func:`write_records`.

    Raises :class:`UsageError` for another ending, and if the file cannot be written.
    """
    as_csv = check_ending(file)
    try:
        with file.open("w", encoding="utf-8", newline="", errors="backslashreplace") as stream:
            return write_records(stream, rows, names, as_csv=as_csv, json_in=json_in, end=end)
    except OSError as error:
        raise UsageError(f"{str(file)!r} cannot be written: {error.strerror}") from None


def write_records(
    stream: TextIO,
    rows: Iterable[Mapping[str, Any]],
    names: Sequence[str],
    *,
    as_csv: bool,
    json_in: Collection[str] = (),
    end: str = "\n",
) -> int:
    """Write each row as one line and return the number of rows.

    A CSV table has the columns ``names``. Objects, and all values of the columns in ``json_in``, are JSON texts in it.
    """
    writer = csv.DictWriter(stream, names, restval="", lineterminator=end)
    if as_csv:
        writer.writeheader()
    count = 0
    for row in rows:
        if as_csv:
            writer.writerow({name: _cell(value, as_json=name in json_in) for name, value in row.items()})
        else:
            stream.write(json.dumps(row, ensure_ascii=False) + "\n")
        count += 1
    return count


def csv_text(rows: Iterable[Mapping[str, Any]], names: Sequence[str]) -> str:
    """Rows as a CSV table; see :func:`write_records`."""
    stream = io.StringIO(newline="")
    write_records(stream, rows, names, as_csv=True)
    return whole_text(stream.getvalue())


def _cell(value: Any, *, as_json: bool) -> Any:
    return defused_value(json.dumps(value, ensure_ascii=False) if as_json or isinstance(value, dict) else value)


def defused_value(value: Any) -> Any:
    """A text without terminal commands, and with a leading apostrophe if a spreadsheet would run it as a formula.

    Other values are returned unchanged.
    """
    if not isinstance(value, str):
        return value
    return harmless(f"'{value}" if value.startswith(_FORMULA_STARTS) else value)

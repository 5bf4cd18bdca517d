"""CSV files of numbers that a user keeps, e.g. of models or trainings: their lines by column, and the numbers in these."""

from __future__ import annotations

import csv
import io
from collections.abc import Collection
from pathlib import Path

from guieval.data.files import read_bytes
from guieval.errors import DataError, UsageError, nearest


def read_columns(file: Path, needed: Collection[str] = ()) -> tuple[list[str], list[tuple[int, dict[str, str]]]]:
    """The names of the columns, and the number and the cells of each line after the header.

    Raises :class:`UsageError` for a file that cannot be read or has no ``needed`` column.
    """
    try:
        with io.StringIO(read_bytes(file).decode("utf-8-sig"), newline="") as stream:
            reader = csv.DictReader(stream, restval="")
            names = [name for name in reader.fieldnames or () if name]
            lines = [(reader.line_num, {name: text for name, text in line.items() if name}) for line in reader]
    except OSError as error:
        raise UsageError(f"the CSV file {str(file)!r} cannot be read: {error.strerror}") from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise UsageError(f"{str(file)!r} is not a CSV file in UTF-8: {error}") from None
    for column in needed:
        if column not in names:
            known = ", ".join(names) or "none"
            raise UsageError(f"{str(file)!r} has no column {column!r}{nearest(column, names)}; it has: {known}")
    return names, lines


def number(text: str, file: Path, line: int, column: str) -> float | None:
    """The number in a cell, ``None`` if the cell is empty or "-"; :class:`DataError`, naming the cell, for another text."""
    if text.strip() in ("", "-"):
        return None
    try:
        return float(text.replace(",", ""))
    except ValueError:
        raise DataError(f"{file}, line {line}, column {column}: expected a number, got {text!r:.80}") from None

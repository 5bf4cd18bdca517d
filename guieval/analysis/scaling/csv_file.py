"""Sizes and scores from a CSV file: one line for each trained model, with a column that names the series."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from guieval.errors import DataError, UsageError, nearest


@dataclass(frozen=True)
class ScalingSeries:
    """The points of one series: (n,) sizes in the file's unit and (n,) values; ``x`` and ``y`` are their columns."""

    name: str
    x: str
    y: str
    sizes: tuple[float, ...]
    values: tuple[float, ...]


def read_scaling_table(file: Path, x: str | None = None, y: str | None = None, by: str | None = None) -> list[ScalingSeries]:
    """The series of a CSV file with a header, in the order they first occur; lines without a value are left out.

    ``x`` and ``y`` name the columns (default: the first one, and the next one that is not ``by``), ``by`` the column that
    names the series. Raises :class:`UsageError` for a file that cannot be read or has no such column, :class:`DataError` naming
    line and column for a value that is not a number.
    """
    try:
        with file.open(encoding="utf-8-sig", newline="") as stream:
            reader = csv.DictReader(stream, restval="")
            lines = list(enumerate(reader, 2))
            names = [name for name in reader.fieldnames or () if name]
    except OSError as error:
        raise UsageError(f"the CSV file {str(file)!r} cannot be read: {error.strerror}") from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise UsageError(f"{str(file)!r} is not a CSV file in UTF-8: {error}") from None
    for column in (x, y, by):
        if column is not None and column not in names:
            raise UsageError(f"{str(file)!r} has no column {column!r}{nearest(column, names)}; it has: {', '.join(names)}")
    across = x or next((name for name in names if name not in (y, by)), None)
    up = y or next((name for name in names if name not in (across, by)), None)
    if across is None or up is None:
        raise UsageError(f"{str(file)!r} needs a column of sizes and one of values; it has: {', '.join(names) or 'none'}")
    if across == up:
        raise UsageError(f"the column {up!r} cannot be both the sizes and the values; {str(file)!r} has: {', '.join(names)}")
    found: dict[str, list[tuple[float, float]]] = {}
    for number, line in lines:
        if line[up].strip() in ("", "-"):
            continue
        point = (_number(line[across], file, number, across), _number(line[up], file, number, up))
        found.setdefault(line[by] if by else up, []).append(point)
    if not found:
        raise UsageError(f"{str(file)!r} has no line with a value in column {up!r}")
    return [ScalingSeries(name, across, up, *_columns(points)) for name, points in found.items()]


def _columns(points: Sequence[tuple[float, float]]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    return tuple(size for size, _ in points), tuple(value for _, value in points)


def _number(text: str, file: Path, line: int, column: str) -> float:
    try:
        return float(text.replace(",", ""))
    except ValueError:
        raise DataError(f"{file}, line {line}, column {column}: expected a number, got {text!r:.80}") from None

"""Annotation files of JSON and JSON lines, and the records made of their rows; a damaged label is told by its place."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_core import from_json

from guieval.errors import DataError, first_problem
from guieval.rows import Row
from guieval.steps import Episode, StepTaskModel

__all__ = ["Row", "episode", "parse", "read", "read_list", "step"]


def parse(text: bytes | str, where: str) -> Any:
    """Parse JSON; :class:`DataError` naming the place when it is none."""
    try:
        # some editors write a byte-order mark
        return from_json(text.removeprefix(b"\xef\xbb\xbf" if isinstance(text, bytes) else "\ufeff"))  # type: ignore[arg-type]
    except ValueError as error:
        raise DataError(f"{where}: is not JSON ({error})") from None


def read_list(file: Path) -> list[Any]:
    """A file that holds one JSON list. :class:`DataError` when it cannot be read or holds anything else."""
    value = parse(read(file), str(file))
    if not isinstance(value, list):
        raise DataError(f"{file}: expected a list, got {value!r:.80}")
    return value


def read(file: Path) -> bytes:
    """A file's bytes, unpacked when its name ends in ``.gz``; :class:`DataError` when it cannot be read."""
    import gzip
    import zlib

    try:
        return gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise DataError(f"{file}: is damaged: it cannot be unpacked as gzip") from None
    except OSError as error:
        raise DataError(f"{file}: cannot be read: {error.strerror}") from None


def step(where: str, **fields: Any) -> StepTaskModel:
    """A step record; :class:`DataError` naming the place and the record's field where a value does not fit."""
    try:
        return StepTaskModel(**fields)
    except ValidationError as error:
        raise _told(where, error) from None


def episode(where: str, steps: Sequence[StepTaskModel]) -> Episode:
    """An episode of these steps; :class:`DataError` when they do not belong together."""
    try:
        return Episode(steps=tuple(steps))
    except ValidationError as error:
        raise _told(where, error) from None


def _told(where: str, error: ValidationError) -> DataError:
    problem = first_problem(error)
    return DataError(f"{where}, field {problem.field or '(whole row)'}: {problem.said} (got {problem.value!r:.80})")

"""Reads a file that a user wrote, YAML or JSON, as values or as a record; each problem is one sentence that names the file."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from guieval.data.files import read_bytes, read_text
from guieval.data.yaml_text import read_yaml
from guieval.errors import UsageError, first_problem

_Record = TypeVar("_Record", bound=BaseModel)


def read_values(file: Path, what: str, *, texts: bool = False) -> Any:
    """The values in a YAML file; :class:`UsageError` that calls it ``what``. ``texts``: every scalar as text."""
    try:
        return read_yaml(read_text(file), texts=texts)
    except OSError as error:
        raise UsageError(f"{what} {str(file)!r} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise UsageError(f"{what} {str(file)!r} is not YAML: {error}") from None


def read_record(file: Path, kind: type[_Record], what: str, *, yaml: bool = False) -> _Record:
    """A JSON file, or a ``yaml`` one, as a record; :class:`UsageError` that calls it ``what`` names a wrong field."""
    try:
        return kind.model_validate(read_values(file, what)) if yaml else kind.model_validate_json(read_bytes(file))
    except OSError as error:
        raise UsageError(f"{what} {str(file)!r} cannot be read: {error.strerror}") from None
    except ValidationError as error:
        problem = first_problem(error, kind)
        place = f", field {problem.field}" if problem.field else ""
        raise UsageError(f"{what} {str(file)!r}{place}: {problem.sentence}") from None

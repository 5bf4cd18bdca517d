"""Human labels of reasoning-execution consistency: a CSV file, or one JSON object per line (docs/studies/consistency.md)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from guieval.data.files import read_text
from guieval.errors import DataError, UsageError, nearest
from guieval.steps import StepKey
from guieval.studies.csv_columns import read_columns

_WORDS = {
    **dict.fromkeys(("true", "yes", "1", "consistent"), True),
    **dict.fromkeys(("false", "no", "0", "inconsistent"), False),
}
_DIGITS = 19
"""The limit of a step index in digits."""
_DEFUSED = ("'=", "'+", "'-", "'@", "'\t", "'\r")
_NEEDED = ("episode_id", "step_index", "consistent")


def read_human_labels(file: Path) -> dict[StepKey, bool]:
    """Whether each labelled step is consistent to a human; its benchmark is "" in a file without that column.

    Raises :class:`UsageError` for a file that cannot be read, or has no label, and :class:`DataError` naming the line.
    """
    labels: dict[StepKey, bool] = {}
    try:
        for number, values in _lines(file):
            where = f"{file}, line {number}"
            word = str(values["consistent"] if values["consistent"] is not None else "").strip().lower()
            if not word:
                continue
            if word not in _WORDS:
                raise DataError(f"{where}: 'consistent' is {values['consistent']!r:.80}: expected one of {', '.join(_WORDS)}")
            index = str(values["step_index"]).strip()
            if not (index.isascii() and index.isdigit() and len(index) < _DIGITS):
                raise DataError(f"{where}: 'step_index' is {values['step_index']!r:.80}: expected a whole number from 0")
            if values["episode_id"] in (None, ""):
                raise DataError(f"{where}: has a label, but no 'episode_id'")
            benchmark, subset = (str(values.get(name) or "") for name in ("benchmark", "subset"))
            key = StepKey(benchmark, subset, str(values["episode_id"]), int(index))
            if key in labels:
                raise DataError(f"{where}: step {index} of episode {key.episode_id!r} has a label already")
            labels[key] = _WORDS[word]
    except OSError as error:
        raise UsageError(f"the labels {str(file)!r} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise UsageError(f"the labels {str(file)!r} are not text in UTF-8: {error}") from None
    if not labels:
        raise UsageError(f"the file {str(file)!r} has no label")
    return labels


def _lines(file: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    if file.suffix.lower() == ".csv":
        for number, row in read_columns(file, _NEEDED)[1]:
            yield number, {name: _as_it_was(text) for name, text in row.items()}
        return
    for number, line in enumerate(read_text(file, encoding="utf-8-sig").split("\n"), 1):
        if not line.strip():
            continue
        try:
            values = json.loads(line)
        except (ValueError, RecursionError):
            raise DataError(f"{file}, line {number}: is not JSON; a table's name must end in .csv") from None
        if not isinstance(values, dict):
            raise DataError(f"{file}, line {number}: expected an object with {', '.join(_NEEDED)}")
        for needed in _NEEDED:
            if needed not in values:
                raise DataError(f"{file}, line {number}: has no {needed!r}{nearest(needed, values)}")
        yield number, values


def _as_it_was(value: str) -> str:
    """A cell without the apostrophe that keeps a spreadsheet from running it, as ``--steps FILE.csv`` writes it."""
    return value[1:] if value.startswith(_DEFUSED) else value

"""The steps that protocols judge differently, as a file: JSON lines, or a table for a spreadsheet."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from guieval.actions import Action
from guieval.errors import UsageError
from guieval.matrix import Disagreement
from guieval.reports.spreadsheet import defused_value

SUFFIXES = (".csv", ".jsonl")


def check_suffix(file: Path) -> None:
    """Raise :class:`UsageError` for a file whose name does not say which form it should have."""
    if file.suffix.lower() not in SUFFIXES:
        raise UsageError(f"the file of disagreements {str(file)!r} must end in {' or '.join(SUFFIXES)}, got {file.suffix!r}")


def write_disagreements(file: Path, rows: Iterable[Disagreement], protocols: Sequence[str]) -> int:
    """Write every row, and return how many there were; the file's name says in which form.

    Both forms hold the step's name, reference and prediction as unified actions, and for each of ``protocols`` how the step
    ended and why. Raises :class:`UsageError` for a name of neither form, and when the file cannot be written.
    """
    check_suffix(file)
    try:
        with file.open("w", encoding="utf-8", newline="") as stream:
            written = 0
            table = csv.writer(stream)
            as_table = file.suffix.lower() == ".csv"
            if as_table:
                keys = ("benchmark", "subset", "episode_id", "step_index", "reference", "prediction")
                table.writerow([*keys, *protocols, *(f"{name}: reason" for name in protocols)])
            for row in rows:
                if as_table:
                    said = [json.dumps(_plain(action), ensure_ascii=False) for action in (row.reference, row.prediction)]
                    told = [each[name] for each in (row.verdicts, row.reasons) for name in protocols]
                    table.writerow(map(defused_value, (*row.key, *said, *told)))
                else:
                    values = {
                        **row.key._asdict(),
                        "reference": _plain(row.reference),
                        "prediction": _plain(row.prediction),
                        "verdicts": dict(row.verdicts),
                        "reasons": dict(row.reasons),
                    }
                    stream.write(json.dumps(values, ensure_ascii=False) + "\n")
                written += 1
            return written
    except OSError as error:
        raise UsageError(f"the file of disagreements {str(file)!r} cannot be written: {error.strerror}") from None


def _plain(action: Action | None) -> Any:
    return None if action is None else action.model_dump(mode="json")

"""The steps that protocols judge differently, as a file: JSON lines, or a table for a spreadsheet."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from guieval.errors import UsageError
from guieval.reports.tables.records import check_ending, write_records
from guieval.scoring.matrix import Disagreement
from guieval.steps import StepKey


def write_disagreements(file: Path, rows: Iterable[Disagreement], protocols: Sequence[str]) -> int:
    """Write every row in the form that the file's ending names, and return the number of rows.

    Both forms hold the step's name, reference and prediction as unified actions, and for each of ``protocols`` how the step
    ended and why. Raises :class:`UsageError` for another ending, and when the file cannot be written.
    """
    as_csv = check_ending(file)
    names = [*StepKey._fields, "reference", "prediction", *protocols, *(f"{name}: reason" for name in protocols)]
    values = (_values(row, protocols, flat=as_csv) for row in rows)
    try:
        with file.open("w", encoding="utf-8", newline="") as stream:
            return write_records(stream, values, names, as_csv=as_csv, json_in=("reference", "prediction"), end="\r\n")
    except OSError as error:
        raise UsageError(f"the file of disagreements {str(file)!r} cannot be written: {error.strerror}") from None


def _values(row: Disagreement, protocols: Sequence[str], *, flat: bool) -> dict[str, Any]:
    prediction = row.prediction and row.prediction.model_dump(mode="json")
    step = {**row.key._asdict(), "reference": row.reference.model_dump(mode="json"), "prediction": prediction}
    if not flat:
        return {**step, "verdicts": dict(row.verdicts), "reasons": dict(row.reasons)}
    verdicts = {name: row.verdicts[name] for name in protocols}
    return {**step, **verdicts, **{f"{name}: reason": row.reasons[name] for name in protocols}}

"""What runs recorded and computed, without the times that no two runs share."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from guieval.journal import METRICS, Records
from guieval.steps import StepRecord


def timeless(record: StepRecord) -> StepRecord:
    samples = [sample.model_copy(update={"seconds": None, "attempts": 1}) for sample in record.samples]
    return record.model_copy(update={"samples": tuple(samples)})


def final(directory: Path) -> dict[str, StepRecord]:
    """The last finished record of each step."""
    return {str(record.task.key): timeless(record) for record in Records(directory) if record.finished}


def figures(directory: Path) -> dict[str, Any]:
    """The stored figures."""
    summary: dict[str, Any] = json.loads((directory / METRICS).read_text(encoding="utf-8"))["summary"]
    del summary["diagnostics"]["seconds_mean"]
    return summary

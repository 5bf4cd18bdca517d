"""What runs recorded and computed, without the times that no two runs share."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from guieval.journal import METRICS, RunFolder
from guieval.steps import StepRecord


def timeless(record: StepRecord) -> StepRecord:
    samples, retried = (
        tuple(sample.model_copy(update={"seconds": None, "attempts": 1, "other_usage": ()}) for sample in of)
        for of in (record.samples, record.retried)
    )
    return record.model_copy(update={"samples": samples, "retried": retried})


def final(directory: Path) -> dict[str, StepRecord]:
    """The last finished record of each step."""
    return {str(record.task.key): timeless(record) for record in RunFolder(directory).records if record.finished}


def figures(directory: Path) -> dict[str, Any]:
    """The stored figures, without the tokens of responses that were received and paid for beside the answers."""
    summary: dict[str, Any] = json.loads((directory / METRICS).read_text(encoding="utf-8"))["summary"]
    metrics, verdicts = summary["metrics"], summary["verdicts"]
    summary["complete"] = not verdicts["infrastructure_failure"] + verdicts["not_run"]
    del metrics["mean seconds to answer"]
    for sample in (sample for record in RunFolder(directory).records for sample in record.samples):
        for usage in sample.other_usage:
            metrics["prompt tokens"]["value"] -= usage.prompt_tokens or 0
            metrics["completion tokens"]["value"] -= usage.completion_tokens or 0
    return summary

"""Online runs of earlier versions: the one place that knows how they wrote a task down, as a step whose label is success.

The outcome was JSON in the response of a sample. Their journal, ``steps.jsonl``, is read as records of tasks, and a resume adds
such records to it.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from typing import Any

from pydantic import ValidationError
from pydantic_core import to_json

from guieval.actions import Unsupported
from guieval.data.content_digest import as_json
from guieval.data.earlier_boxes import divided, earlier_json
from guieval.steps import DATASET, OnlineTask, Outcome, Repetition, Sample, StepError, StepRecord, StepTaskModel, TaskRecord

_SUCCESS = Unsupported(name="trajectory outcome", arguments={"success": True})


def as_task(record: StepRecord) -> TaskRecord:
    """The record of a task that an earlier version wrote as that of a step."""
    task, extras = record.task, record.task.extras
    return TaskRecord(
        environment=str(extras.get("environment", "")),
        task=OnlineTask(
            benchmark=task.benchmark,
            subset=task.subset,
            episode_id=task.episode_id,
            instruction=task.instruction,
            max_steps=extras.get("max_steps", 1),
            groups=task.groups,
        ),
        samples=tuple(map(_repetition, record.samples)),
        earlier=record.earlier,
        models=record.models,
    )


def earlier(values: dict[str, Any]) -> Any:
    """The record of a task as JSON values, turned into one of today's if an earlier version wrote it; else as it is."""
    if "environment" in values:
        return values
    return as_task(StepRecord.model_validate_json(divided(to_json(values))))


def _repetition(sample: Sample) -> Repetition:
    paid: dict[str, Any] = {name: getattr(sample, name) for name in ("usage", "other_usage", "seconds", "key_removed")}
    if sample.raw_response is None:
        return Repetition(error=sample.error, **paid)
    try:
        return Repetition(outcome=Outcome.model_validate_json(sample.raw_response), **paid)
    except (ValidationError, ValueError, RecursionError):
        unread = StepError(stage="environment", message="its outcome in the journal cannot be read")
        return Repetition(error=sample.error or unread, **paid)


def digests(tasks: Iterable[OnlineTask], version: str) -> set[str]:
    """SHA-256 over the content of tasks as earlier versions computed it."""
    steps = [
        StepTaskModel(
            benchmark=task.benchmark,
            dataset=DATASET,
            subset=task.subset,
            episode_id=task.episode_id,
            step_index=0,
            episode_length=1,
            instruction=task.instruction,
            screenshot="none",
            screenshot_size=(1, 1),
            action=_SUCCESS,
            groups=task.groups,
            extras={"max_steps": task.max_steps, "environment": version},
        )
        for task in tasks
    ]
    return {sha256(b"".join(form(step) + b"\n" for step in steps)).hexdigest() for form in (as_json, earlier_json)}

"""Tasks that WebArena-Verified's evaluator has judged, one a row, as ``guieval import webarena-verified`` writes them.

A task is a step whose label is success and whose answer is the evaluator's judgement, which no protocol changes. A response
that is no JSON object, which the evaluator fails, is unparseable; a task on which the evaluator itself failed was not measured.
Source: ServiceNow/webarena-verified 1.2.3.
"""

from __future__ import annotations

from guieval.actions import Unsupported
from guieval.scoring.predictions.predicted import Format, Predicted
from guieval.scoring.predictions.rows import Row
from guieval.steps import StepTaskModel

BENCHMARK = "webarena-verified"
STATUSES = ("success", "partial_match", "failure", "error", "missing")


def task_outcome(success: bool) -> Unsupported:
    """The outcome of a task as an answer; the label is ``task_outcome(True)``, and every protocol demands equality."""
    return Unsupported(name="task outcome", arguments={"success": success})


def _read(row: Row) -> Predicted | None:
    status = row.text("status")
    if status not in STATUSES:
        raise row.error("status", f"expected {', '.join(STATUSES[:-1])} or {STATUSES[-1]}, got {status!r:.80}")
    if status == "missing":
        return None
    task = _task(row)
    if status == "error":
        return Predicted(*task.key, failed=row.text("reason") or "the evaluator failed", task=task)
    if status != "success" and row.value("object") is False:
        return Predicted(*task.key, reason="the response is no JSON object", task=task)
    return Predicted(*task.key, task_outcome(status == "success"), task=task)


def _task(row: Row) -> StepTaskModel:
    return row.task(
        benchmark=BENCHMARK,
        dataset="online",
        episode_id=row.identity("task_id"),
        step_index=0,
        episode_length=1,
        instruction=row.text("intent"),
        screenshot="none",
        screenshot_size=(1, 1),
        action=task_outcome(True),
        groups={"sites": ", ".join(map(str, row.items("sites"))), "task type": row.text("task_type")},
        extras={name: row.text(name) for name in ("webarena_verified", "data", "evaluator")},
    )


WEBARENA_VERIFIED = Format(
    BENCHMARK,
    "WebArena-Verified's judgements",
    frozenset({"task_id", "intent", "sites", "task_type", "hard", "status"}),
    lambda rows, steps: _read,
)

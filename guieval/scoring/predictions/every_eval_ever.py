"""Answers in files of Every Eval Ever (``*_samples.jsonl``) whose metadata name a step of a benchmark, as ours do.

Where guieval read the reply, its action is taken, and a reply in which it found none is unparseable. Every other reply is read
by the adapter that the user names. A task in an environment (``agentic``) is a step whose label is success and whose answer is
the outcome.
"""

from __future__ import annotations

from functools import partial

from guieval.actions import action_from_json
from guieval.scoring.predictions.predicted import Format, Predicted
from guieval.scoring.predictions.rows import Row
from guieval.scoring.predictions.webarena_verified import task_outcome

READ_BY = "guieval adapter "
"""How ``extraction_method`` begins where guieval read the reply."""


def _read(row: Row) -> Predicted | None:
    if row.text("interaction_type") == "agentic":
        return _judged(row)
    if row.text("interaction_type") != "single_turn":
        raise row.error("interaction_type", "expected single_turn or agentic; conversations of other kinds are not scored")
    named, output = row.row("metadata"), row.row("output")
    benchmark, subset = (named.text(field) if field in named else "" for field in ("benchmark", "subset"))
    where = (benchmark, subset, named.identity("episode_id"), _whole(named, "step_index"))
    if "error" in row:
        return None
    replies = output.items("raw")
    if not replies or not isinstance(replies[0], str):
        raise output.error("raw", f"expected a list of texts, got {replies!r:.80}")
    for found in row.rows("answer_attribution"):
        if found.text("extraction_method").startswith(READ_BY):
            read = partial(action_from_json, found.text("extracted_value"))
            return Predicted(*where, found.build("extracted_value", read), raw=replies[0])
    if "verdict" in named:
        return Predicted(
            *where, reason=named.text("reason") if "reason" in named else "the reply holds no action", raw=replies[0]
        )
    return Predicted(*where, response=replies[0])


def _judged(row: Row) -> Predicted:
    named, evaluation = row.row("metadata"), row.row("evaluation")
    success = evaluation.value("is_correct")
    if not isinstance(success, bool):
        raise evaluation.error("is_correct", f"expected true or false, got {success!r:.80}")
    if _whole(named, "repetition") > 0:
        raise named.error("repetition", "expected one repetition of a task; `guieval import atif` reads runs with several")
    task = row.task(
        benchmark=f"{named.text('benchmark')} online",
        dataset="online",
        subset=named.text("subset") if "subset" in named else "",
        episode_id=named.identity("episode_id"),
        step_index=0,
        episode_length=1,
        instruction=row.row("input").text("raw"),
        screenshot="none",
        screenshot_size=(1, 1),
        action=task_outcome(True),
    )
    return Predicted(*task.key, task_outcome(success), task=task)


def _whole(named: Row, field: str) -> int:
    text = named.text(field)
    if not text.isdecimal():
        raise named.error(field, f"expected a whole number as text, got {text!r:.80}")
    return int(text)


EVERY_EVAL_EVER = Format(
    "every-eval-ever",
    "Every Eval Ever's *_samples.jsonl, as guieval export-results writes them",
    frozenset({"schema_version", "evaluation_id", "sample_id", "interaction_type"}),
    lambda rows, steps: _read,
)

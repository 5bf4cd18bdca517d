"""Answers in files of Every Eval Ever (``*_samples.jsonl``) whose metadata name a step of a benchmark, as ours do.

If guieval read the response, its action is taken, and a response in which it found none is unparseable. Every other response is
read by the adapter that the user names. Rows of tasks in an environment (``agentic``) are outcomes.
"""

from __future__ import annotations

from functools import partial

from guieval.actions import action_from_json
from guieval.exchange.predictions.predicted import Format, Predicted, PredictedTask
from guieval.exchange.predictions.rows import PredictionRow
from guieval.steps import ENDS, OnlineTask, Outcome, Repetition, Score

READ_BY = "guieval adapter "
"""How ``extraction_method`` begins if guieval read the response."""


def _read(row: PredictionRow) -> Predicted | PredictedTask | None:
    if row.text("interaction_type") == "agentic":
        return _outcome(row)
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
            *where, reason=named.text("reason") if "reason" in named else "the response has no action", raw=replies[0]
        )
    return Predicted(*where, response=replies[0])


def _outcome(row: PredictionRow) -> PredictedTask:
    named, evaluation = row.row("metadata"), row.row("evaluation")
    success = evaluation.value("is_correct")
    if not isinstance(success, bool):
        raise evaluation.error("is_correct", f"expected true or false, got {success!r:.80}")
    progress = named.build("progress", lambda: float(named.text("progress"))) if "progress" in named else float(success)
    ended = named.text("ended") if "ended" in named else "success" if success else "failed"
    if ended not in ENDS:
        raise named.error("ended", f"expected one of {', '.join(ENDS)}, got {ended!r:.80}")
    messages = row.rows("messages") if "messages" in row else []
    steps = sum(message.text("role") == "assistant" for message in messages)
    reason = named.text("reason") if "reason" in named else ""
    score = named.build("progress", lambda: Score(success=success, progress=progress, reason=reason))
    stopped = {"success": "finish", "false completion": "finish", "wrong stop": "impossible"}.get(ended)
    values = {"ended": ended, "score": score, "steps": steps if messages else None, "stopped": stopped}
    task = OnlineTask(
        benchmark=named.text("benchmark"),
        subset=named.text("subset") if "subset" in named else "",
        episode_id=named.identity("episode_id"),
        instruction=row.row("input").text("raw"),
        max_steps=max(1, steps),
    )
    return PredictedTask(task, Repetition(outcome=Outcome.model_validate(values)), _whole(named, "repetition"))


def _whole(named: PredictionRow, field: str) -> int:
    text = named.text(field)
    if not text.isdecimal():
        raise named.error(field, f"expected a whole number as text, got {text!r:.80}")
    return int(text)


EVERY_EVAL_EVER = Format(
    "every-eval-ever",
    "Every Eval Ever's *_samples.jsonl, as guieval data export-results writes them",
    frozenset({"schema_version", "evaluation_id", "sample_id", "interaction_type"}),
    lambda rows, steps: _read,
)

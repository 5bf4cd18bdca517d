"""Answers in a log of Inspect (``.eval``) whose samples name a step of a benchmark in their metadata, as ours do.

If guieval read the response, its action is taken, and a response in which it found none is unparseable. Every other response is
read by the adapter that the user names.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from guieval.actions import action_from_json
from guieval.exchange.predictions.predicted import Format, Predicted
from guieval.exchange.predictions.rows import PredictionRow

SCORE = "exact match"
"""The score of a sample with the action which guieval read."""


def _read(row: PredictionRow) -> Predicted | None:
    named = row.row("metadata")
    if "step_index" not in named:
        raise named.error("step_index", "is missing; `guieval data import` reads online runs from their export in ATIF")
    if row.whole("epoch", 1) > 1:
        raise row.error("epoch", f"expected one answer to each step, got answer {row.whole('epoch')}")
    subset = named.text("subset") if "subset" in named else ""
    where = (named.text("benchmark"), subset, named.identity("episode_id"), named.whole("step_index"))
    if "error" in row:
        return None
    reply = _reply(row)
    score = row.row("scores").row(SCORE) if "scores" in row and SCORE in row.row("scores") else None
    if score is None:
        return Predicted(*where, response=reply)
    if "answer" not in score:
        return Predicted(*where, reason=score.text("explanation") or "the response has no action", raw=reply)
    action = score.build("answer", partial(action_from_json, score.text("answer")))
    return Predicted(*where, action, raw=reply)


def _reply(row: PredictionRow) -> str:
    """The text of the answer; of a message with several parts that of its texts."""
    choices = row.row("output").rows("choices")
    if not choices:
        raise row.error("output", "expected a choice, got none")
    message = choices[0].row("message")
    content = message.value("content")
    if isinstance(content, str):
        return content
    parts: list[Any] = message.items("content")
    return "\n".join(str(part["text"]) for part in parts if isinstance(part, dict) and part.get("type") == "text")


INSPECT = Format(
    "inspect",
    "Inspect's logs (.eval), as guieval data export-results writes them",
    frozenset({"id", "epoch", "input", "messages", "metadata"}),
    lambda rows, steps: _read,
)

"""The metrics that ``guieval score`` prints for one protocol, as an object."""

from __future__ import annotations

from guieval.data.selection import Choice
from guieval.metrics.of_run import Metrics
from guieval.scoring.matrix import JudgedAnswers
from guieval.scoring.score import scored


def score_metrics(answers: JudgedAnswers, choice: Choice | None = None) -> Metrics:
    """The metrics of answers that one protocol judged."""
    found = scored(answers, choice)
    lines = (found.served, found.steps_title, found.protocol, found.foreign, "with overlay" if found.overlays else "")
    label = "\n".join(filter(None, lines))
    return Metrics(found.protocol, found.steps, found.summary, found.warnings, found.overlays, label)

"""Runs judged under protocols they were not made with: in a mode that stops, the run's own protocol decided where."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from guieval.matrix import ALL, JudgedAnswers, judge_run
from guieval.metrics.columns import NOT_REACHED, NOT_RUN


def judged_with_own(directory: Path, protocols: Sequence[str] | None) -> tuple[JudgedAnswers, list[str]]:
    """A run judged under ``protocols`` (``None`` or empty: its own) and its own, with the names of those that were asked for.

    Raises :class:`guieval.errors.UsageError` when there is no run or no such protocol.
    """
    asked = list(dict.fromkeys(protocols or ()))
    answers = judge_run(directory, asked or None)
    if answers.own in answers.protocols:
        return answers, list(answers.protocols)
    # ALL holds the run's own, so here every name was asked for by itself.
    return judge_run(directory, [*asked, answers.own]), [name for name in asked if name != ALL]


def cut_short(answers: JudgedAnswers, names: Sequence[str]) -> Iterator[str]:
    """One sentence for each protocol that would have gone on where the run stopped: its figures are then lower bounds."""
    if answers.stop != "first-mismatch":
        return
    columns = answers.columns()
    stopped = columns.judged[answers.own].end == NOT_REACHED
    for name in names:
        unasked = int(np.count_nonzero(stopped & (columns.judged[name].end == NOT_RUN)))
        if unasked:
            yield (
                f"stopped by {answers.own}: {unasked:,} steps that {name} would have gone on to were never asked and count as "
                f"missing, so its figures are lower bounds; a run with --protocol {name} tells them"
            )

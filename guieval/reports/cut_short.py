"""Steps that are missing from a run: without an answer, or, in a mode that stops, reached under other protocols only."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from guieval.data.doctor.counts import counted
from guieval.journal import RunFolder
from guieval.metrics.columns import FAILED, NOT_REACHED, NOT_RUN, RunColumns
from guieval.scoring.matrix import ALL, JudgedAnswers, judge_run


def judged_with_own(directory: Path, protocols: Sequence[str] | None) -> tuple[JudgedAnswers, list[str]]:
    """A run judged under ``protocols`` (``None`` or empty: its own) and its own, with the names of those requested.

    Raises :class:`guieval.errors.UsageError` for a missing run or an unknown protocol.
    """
    names = list(dict.fromkeys(protocols or ()))
    answers = judge_run(directory, [*names, RunFolder(directory).manifest.protocol.name])
    return answers, names if names and ALL not in names else list(answers.protocols)


def cut_short(answers: JudgedAnswers, names: Sequence[str]) -> Iterator[str]:
    """One sentence for each protocol that would have continued where the run stopped: its metrics are then lower bounds."""
    if answers.answered.mode.stop != "first-mismatch":
        return
    columns = answers.columns()
    own = answers.answered.protocol
    stopped = columns.judged[own].end == NOT_REACHED
    for name in names:
        missing = int(np.count_nonzero(stopped & (columns.judged[name].end == NOT_RUN)))
        if missing:
            yield (
                f"stopped by {own}: {counted(missing, 'step')} that {name} would have reached, never sent and counted as "
                f"missing: its metrics are lower bounds; run with --protocol {name} for its own metrics"
            )


def unanswered(columns: RunColumns, own: str) -> NDArray[np.bool_]:
    """(n,) steps whose request failed or was never made.

    If a run stopped by its ``own`` protocol is judged by another, :func:`cut_short` reports the steps that the other one
    would have reached.
    """
    judged = next(iter(columns.judged.values()))
    if columns.stop != "first-mismatch" or judged.protocol == own:
        return judged.unmeasured
    return np.asarray(judged.end == FAILED)


def unanswered_of(columns: RunColumns, own: str) -> tuple[int, int] | None:
    """How many steps are :func:`unanswered` of how many, of tasks: repetitions without an outcome; ``None`` without any."""
    if columns.ended is None:
        count, of = int(np.count_nonzero(unanswered(columns, own))), len(columns)
    else:
        count, of = int(columns.ended[:, [FAILED, NOT_RUN]].sum()), int(columns.ended.sum())
    return (count, of) if count else None


def incomplete(columns: RunColumns, own: str, directory: Path) -> str | None:
    """A sentence on what is :func:`unanswered_of`; ``None`` without any."""
    if (lost := unanswered_of(columns, own)) is None:
        return None
    of = f"{lost[1]:,} " + ("steps have no response" if columns.ended is None else "repetitions have no outcome")
    imported = RunFolder(directory).manifest.imported is not None
    how = " in what was imported" if imported else f"; `guieval run --resume {directory}` asks again"
    return f"incomplete: {lost[0]:,} of {of}{how}"

"""The summary of recorded answers under one protocol. No model is queried.

Answers under several protocols at once are in :mod:`guieval.scoring.matrix`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from guieval.data.overlays import Overlay
from guieval.data.selection import Choice
from guieval.errors import UsageError
from guieval.evaluation import ActionEvaluator, Protocol
from guieval.journal import METRICS, RunFolder, has_records, write_atomically
from guieval.journal.run_files import RecordedProtocol
from guieval.metrics import RunSummary, Summary, TaskSummary, summary_of, summary_of_repeats
from guieval.metrics.of_run import Metrics
from guieval.scoring.answered import Scorable
from guieval.scoring.matrix.answers import JudgedAnswers, judge_answers
from guieval.scoring.recorded_run import recorded_answers


def scored(answers: JudgedAnswers, choice: Choice | None = None, *, users: bool = True) -> Metrics:
    """The metrics of answers that one protocol judged, over the steps of ``choice``; raises as :attr:`Scorable.select`.

    Their label has the run's mark (:func:`guieval.journal.caveats.mark`), its steps in short, and the protocol with a mark
    if its source does not evaluate such data (:meth:`guieval.evaluation.Protocol.foreign_mark`).
    """
    answered, protocol, part = answers.answered, answers.evaluators[0].protocol, answers.part(choice or Choice())
    foreign, overlay = protocol.foreign_mark(answers.datasets), "with overlay" * bool(answered.overlays)
    label = "\n".join(filter(None, (answered.served, part.title, protocol.name, foreign, overlay)))
    summary = summary_of(answers.columns_of(part), protocol, users=users)
    return Metrics(protocol.name, part.text, summary, tuple(answered.notes(())), answered.overlays, label)


def evaluate_answers(answered: Scorable, protocol: str | Protocol | None = None, *, choice: Choice | None = None) -> Metrics:
    """Score answers under ``protocol``, by its name or one of your own (default: theirs); ``choice`` restricts the steps.

    Raises :class:`guieval.errors.UsageError` for an unknown protocol, and as :attr:`Scorable.select` does.
    """
    return scored(judge_answers(answered, None if protocol is None else [protocol]), choice)


def evaluate_run(
    directory: Path | str,
    protocol: str | Protocol | None = None,
    *,
    reparse: bool = False,
    adapter: str | None = None,
    choice: Choice | None = None,
    overlay: Overlay | None = None,
) -> Metrics:
    """Score a run directory under ``protocol``, by its name or one of your own (default: the one it was run with).

    Arguments and errors as in :func:`guieval.scoring.recorded_run.recorded_answers` and :func:`evaluate_answers`.
    """
    answered = recorded_answers(directory, reparse=reparse, adapter=adapter, overlay=overlay)
    return evaluate_answers(answered, protocol, choice=choice)


def summary_of_runs(directories: Sequence[Path]) -> Summary:
    """The summary of runs that are repeats, under the protocol of the first; those without a record do not count."""
    begun = [each for each in directories if has_records(each)] or directories[:1]
    answers = [recorded_answers(each) for each in begun]
    judged = [judge_answers(each, [answers[0].protocol]) for each in answers]
    return summary_of_repeats([each.columns() for each in judged], judged[0].evaluators[0].protocol)


def store_summary(
    directory: Path, summary: Summary, *, cost: Mapping[str, Any] | None = None, servers: Sequence[Mapping[str, Any]] = ()
) -> None:
    """Write a run's summary to ``metrics.json``, with its protocol, steps and overlay.

    ``cost`` (JSON) is what the run's answers cost; ``servers`` describes how each server did in this session, and those stored
    before are kept if it is empty. The size of the journal is written too, for :func:`stored_summary`.
    """
    folder = RunFolder(directory)
    manifest = folder.manifest.to_json()
    values = {
        **{name: manifest.get(name) for name in ("protocol", "selection", "overlay", "setups")},
        "journal_bytes": folder.journal_bytes,
        "state": summary.state,
        "summary": summary.model_dump(mode="json"),
        **({} if cost is None else {"cost": dict(cost)}),
        **({"servers": kept} if (kept := list(servers) or folder.stored.get("servers")) else {}),
    }
    write_atomically(directory / METRICS, json.dumps(values, indent=2) + "\n")


class _Stored(BaseModel):
    """The fields of ``metrics.json`` that are read."""

    protocol: RecordedProtocol
    journal_bytes: int
    summary: RunSummary | TaskSummary


def stored_summary(folder: RunFolder) -> Summary | None:
    """The summary in ``metrics.json``, without reading the journal; ``None`` if it would be another one now.

    It would be another one if the journal has grown since, if the rules of the run's protocol have changed, or if an earlier
    version wrote it. Raises :class:`guieval.errors.UsageError` if the folder has no run.
    """
    protocol = folder.manifest.protocol
    try:
        stored = _Stored.model_validate(folder.stored)
        fresh = stored.journal_bytes == folder.journal_bytes and stored.protocol == protocol
        now = ActionEvaluator(protocol.name).protocol
        same = protocol.fingerprint in (now.fingerprint, now.earlier_fingerprint)
        return stored.summary if fresh and same else None
    except (ValueError, UsageError):  # there is none, it is of an earlier version, or its protocol is unknown
        return None


def summary_of_run(folder: RunFolder) -> Summary:
    """The run's summary under its own protocol, without metrics of users: stored, or from a journal that has changed."""
    return stored_summary(folder) or scored(judge_answers(recorded_answers(folder.directory)), users=False).summary

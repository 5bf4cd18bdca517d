"""The summary of recorded answers under one protocol. No model is queried.

Answers under several protocols at once are in :mod:`guieval.scoring.matrix`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
from guieval.scoring.answered import Scorable
from guieval.scoring.matrix.answers import JudgedAnswers, judge_answers
from guieval.scoring.recorded_run import recorded_answers


@dataclass(frozen=True)
class Scored:
    """A summary, its protocol, the steps it is over, and what the reader should know of the input.

    ``steps_title`` fits a table's head; ``steps`` describes exactly what is counted; ``overlays`` describe what else was
    accepted; ``served`` is the :func:`guieval.journal.caveats.mark` of the run; ``foreign`` is the protocol's mark where its
    source does not evaluate such data (:meth:`guieval.evaluation.Protocol.foreign_mark`).
    """

    protocol: str
    summary: Summary
    warnings: tuple[str, ...] = ()
    steps_title: str = ""
    steps: str = ""
    overlays: tuple[str, ...] = ()
    served: str = ""
    foreign: str = ""


def scored(answers: JudgedAnswers, choice: Choice | None = None, *, users: bool = True) -> Scored:
    """The summary of answers that one protocol judged, over the steps of ``choice``; raises as :attr:`Scorable.select`."""
    answered, choice, protocol = answers.answered, choice or Choice(), answers.evaluators[0].protocol
    part = answers.part(choice)
    return Scored(
        protocol.name,
        summary_of(answers.columns_of(part), protocol, users=users),
        tuple(answered.notes(())),
        part.title,
        part.text,
        answered.overlays,
        answered.served,
        protocol.foreign_mark(answers.datasets),
    )


def evaluate_answers(answered: Scorable, protocol: str | Protocol | None = None, *, choice: Choice | None = None) -> Scored:
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
) -> Scored:
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
    directory: Path,
    summary: Summary,
    *,
    cost: Mapping[str, Any] | None = None,
    servers: Sequence[Mapping[str, Any]] = (),
) -> None:
    """Write a run's summary to ``metrics.json``, with its protocol, steps and overlay.

    ``cost`` (JSON) is what the run's answers cost; ``servers`` describes how each server did in this session, and those stored
    before are kept where it is empty. The size of the journal is written too, for :func:`stored_summary`.
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
    version wrote it. Raises :class:`guieval.errors.UsageError` if the folder holds no run.
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

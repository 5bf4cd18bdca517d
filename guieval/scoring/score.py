"""The summary of recorded answers, a run's or a file's, under one protocol. No model is queried.

Answers under several protocols at once are in :mod:`guieval.scoring.matrix`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, JsonValue

from guieval.data.files import read_bytes
from guieval.data.overlays import Overlay
from guieval.data.selection import Choice
from guieval.errors import UsageError
from guieval.evaluation import ActionEvaluator, Protocol
from guieval.journal import METRICS, read_manifest, write_atomically
from guieval.journal.directory import journal_file
from guieval.journal.run_files import RecordedProtocol
from guieval.metrics import RunSummary, RunTally
from guieval.scoring.answered import Answered
from guieval.scoring.recorded_run import recorded_answers
from guieval.steps import EpisodeKey, Plan, Sample, StepOutcome, StepRecord, StepTaskModel

MOST_METRICS = 16 * 1024 * 1024
"""The largest ``metrics.json`` that is read, in bytes."""


@dataclass(frozen=True)
class Scored:
    """A summary, its protocol, the steps it is over, and what the reader should know of the input.

    ``steps_title`` fits a table's head; ``steps`` describes exactly what is counted; ``overlays`` describe what else was
    accepted; ``served`` is the :func:`guieval.journal.caveats.mark` of the run; ``foreign`` is the protocol's mark where its
    source does not evaluate such data (:meth:`guieval.evaluation.Protocol.foreign_mark`).
    """

    protocol: str
    summary: RunSummary
    warnings: tuple[str, ...] = ()
    steps_title: str = ""
    steps: str = ""
    overlays: tuple[str, ...] = ()
    served: str = ""
    foreign: str = ""


class Scorer:
    """Takes answers one by one and summarises them under ``protocol`` (default: their own).

    Raises :class:`guieval.errors.UsageError` for an unknown protocol.
    """

    def __init__(self, answered: Answered, protocol: str | Protocol | None = None) -> None:
        self.evaluator = ActionEvaluator(answered.protocol if protocol is None else protocol)
        self._answered = answered
        self._seen: dict[EpisodeKey, dict[int, str]] = {}
        self._datasets: dict[str, None] = {}
        types = self._seen if answered.types is None else answered.types
        self._tally = RunTally(answered.mode, *answered.spaces, types)

    def add(self, task: StepTaskModel, samples: tuple[Sample, ...]) -> StepOutcome | None:
        """Take in a step with its samples and return the outcome of the first one, ``None`` where there is none."""
        self._see(task)
        if not samples:
            return None
        first, unkept = samples[0], self._answered.unkept
        if unkept is not None and task.key in unkept.steps:
            outcome = unkept.outcome(self.evaluator.protocol.name)
        else:
            outcome = self.evaluator.evaluate(task, first.action) if first.answered else first.outcome
        self._tally.add(StepRecord.model_construct(task=task, samples=samples), outcome)
        return outcome

    def scored(self, choice: Choice | None = None) -> Scored:
        """The summary over the steps of ``choice``; raises as :attr:`Answered.select`."""
        answered, choice = self._answered, choice or Choice()
        selection = answered.select(choice)
        for ref in selection.refs:  # what was not answered has a reference all the same
            for task in answered.unanswered(ref):
                self._see(task)
        warnings, within = answered.notes(()), answered.plan
        if answered.count is not None:
            warnings.append(f"{answered.count} predictions for {sum(map(len, selection.plan.values()))} steps")
            if (
                not choice.narrows
            ):  # of a choice the user knows that it leaves predictions out; of the default split perhaps not
                within = selection.plan
        return Scored(
            self.evaluator.protocol.name,
            self._tally.summary(selection.plan, within, answered.left_out),
            tuple(warnings),
            selection.title,
            selection.text,
            answered.overlays,
            answered.served,
            self.evaluator.protocol.foreign_mark(self._datasets),
        )

    def _see(self, task: StepTaskModel) -> None:
        self._datasets[task.dataset] = None
        if self._answered.types is None:
            self._seen.setdefault(task.episode_key, {})[task.step_index] = task.action.type


def evaluate_answers(answered: Answered, protocol: str | Protocol | None = None, *, choice: Choice | None = None) -> Scored:
    """Score answers under ``protocol``, by its name or one of your own (default: theirs); ``choice`` restricts the steps.

    Raises :class:`guieval.errors.UsageError` for an unknown protocol, and as :attr:`Answered.select` does.
    """
    scorer = Scorer(answered, protocol)
    for task, samples in answered.answers(scorer.evaluator):
        scorer.add(task, samples)
    return scorer.scored(choice)


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


def store_summary(
    directory: Path,
    tally: RunTally,
    plan: Plan,
    *,
    cost: Mapping[str, Any] | None = None,
    servers: Sequence[Mapping[str, Any]] = (),
) -> RunSummary:
    """Compute a run's summary and write it to ``metrics.json``, with its protocol, steps and overlay.

    ``cost`` (JSON) is what the run's answers cost; ``servers`` describes how each server did in this session, and those stored
    before are kept where it is empty. The size of the journal is written too, for :func:`stored_summary`.
    """
    summary = tally.summary(plan)
    manifest = read_manifest(directory).to_json()
    values = {
        **{name: manifest.get(name) for name in ("protocol", "selection", "overlay", "served")},
        "journal_bytes": journal_file(directory).stat().st_size,
        "summary": summary.model_dump(mode="json"),
        **({} if cost is None else {"cost": dict(cost)}),
        **({"servers": list(kept)} if (kept := servers or _stored_servers(directory)) else {}),
    }
    write_atomically(directory / METRICS, json.dumps(values, indent=2) + "\n")
    return summary


class _StoredServers(BaseModel):
    """How the servers did in the last session that asked any."""

    servers: list[dict[str, JsonValue]] = []


def _stored_servers(directory: Path) -> list[dict[str, JsonValue]]:
    try:
        return _StoredServers.model_validate_json(_read_metrics(directory)).servers
    except (OSError, ValueError):
        return []


def _read_metrics(directory: Path) -> bytes:
    """``metrics.json``; :class:`OSError` where there is none, or one too large to be ours."""
    path = directory / METRICS
    if path.stat().st_size > MOST_METRICS:
        raise OSError(f"{str(path)!r} has more than {MOST_METRICS:,} bytes")
    return read_bytes(path)


class _Stored(BaseModel):
    """The fields of ``metrics.json`` that are read."""

    protocol: RecordedProtocol
    journal_bytes: int
    summary: RunSummary


def stored_summary(directory: Path) -> RunSummary | None:
    """The summary in ``metrics.json``, without reading the journal; ``None`` if it would be another one now.

    It would be another one if the journal has grown since, or if the rules of the run's protocol have changed.
    Raises :class:`guieval.errors.UsageError` if the folder holds no run.
    """
    protocol = read_manifest(directory).protocol
    try:
        stored = _Stored.model_validate_json(_read_metrics(directory))
        fresh = stored.journal_bytes == journal_file(directory).stat().st_size and stored.protocol == protocol
        now = ActionEvaluator(protocol.name).protocol
        same = protocol.fingerprint in (now.fingerprint, now.earlier_fingerprint)
        return stored.summary if fresh and same else None
    except (OSError, ValueError, UsageError):  # there is none, it is of an earlier version, or its protocol is unknown
        return None

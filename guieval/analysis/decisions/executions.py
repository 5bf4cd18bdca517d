"""A model's executions at each step, over many samples: every distinct one with its count.

An execution is one answer's action (section 5.1 of the GUIEvalKit paper). Read from a run of one or more samples a step, or
from a rollout directory, whose rounds are runs with seeds of their own: their samples are pooled, step by step.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from guieval.actions import Action, Unsupported
from guieval.errors import UsageError
from guieval.evaluation import ActionEvaluator
from guieval.journal import ROLLOUT, Records, RunFolder
from guieval.journal.run_files import RolloutFile, read_file
from guieval.journal.run_folders import is_rollout, rounds_of
from guieval.steps import EpisodeKey, StepKey, StepRecord, StepTaskModel


@dataclass(frozen=True, eq=False)
class StepExecutions:
    """The executions of one step.

    ``actions`` are the k different ones in the order they were first drawn, coordinates in [0, 1000]; ``None`` is a
    reply without an action, and an action outside the model's space is kept as it is. ``counts`` (k,): how often each
    was drawn; ``exact`` (k,): whether it is an exact match. ``failed`` counts the requests without an answer; they are not
    executions, so k may be 0.
    """

    task: StepTaskModel
    actions: tuple[Action | None, ...]
    counts: NDArray[np.int64]
    exact: NDArray[np.bool_]
    failed: int = 0

    @property
    def n(self) -> int:
        """How many executions were measured, those without an action among them."""
        return int(self.counts.sum())

    @property
    def unparseable(self) -> int:
        """How many measured executions hold no action."""
        return int(self.counts[[action is None for action in self.actions]].sum())

    @property
    def unsupported(self) -> int:
        """How many measured executions are an action outside the unified space."""
        return int(self.counts[[isinstance(action, Unsupported) for action in self.actions]].sum())


def read_executions(
    directory: Path, *, protocol: str | None = None, unasked: list[StepKey] | None = None
) -> Iterator[StepExecutions]:
    """The executions of every step with a record, in the order of the plan, judged under ``protocol`` (default: the run's).

    In a mode that stops, a round's record after the mismatch that ended its episode is skipped, as in every metric. ``unasked``
    collects, while the executions are read, the planned steps that have no record although their episode went on. Memory is
    that of one step, and a few bytes for each recorded one. If a round has several records of a step, the last one with every
    sample answered counts, else the last. Raises :class:`UsageError` where there is no run, no such
    protocol, or the rounds are over different steps.
    """
    runs = rounds_of(directory)
    evaluator = ActionEvaluator(RunFolder(runs[0]).manifest.protocol.name if protocol is None else protocol)
    plan = RunFolder(runs[0]).plan
    for each in runs[1:]:
        if RunFolder(each).plan != plan:
            raise UsageError(
                f"the rounds {str(runs[0])!r} and {str(each)!r} are over different steps, so they cannot be pooled"
            )
    rounds = [_Round(run) for run in runs]

    def read() -> Iterator[StepExecutions]:
        for key, indices in plan.items():
            mismatches = dict.fromkeys(rounds, 0)
            for index in indices:
                going = [part for part in rounds if mismatches[part] <= part.allowed]
                records = {part: record for part in going if (record := part.record(key, index)) is not None}
                for part, record in records.items():
                    mismatches[part] += part.allowed < math.inf and _missed(record, evaluator)
                if records:
                    yield pooled(list(records.values()), evaluator)
                elif going and unasked is not None:
                    unasked.append(StepKey(*key, index))

    return read()


class _Round:
    """A run's records, and the number of mismatches up to which its episodes continue."""

    def __init__(self, directory: Path) -> None:
        self._records = RunFolder(directory).records
        self._places = record_places(self._records)
        self.allowed = RunFolder(directory).manifest.mode.mismatches

    def record(self, key: EpisodeKey, index: int) -> StepRecord | None:
        offset = self._places.get(key, {}).get(index)
        return None if offset is None else self._records.at(offset)


def _missed(record: StepRecord, evaluator: ActionEvaluator) -> bool:
    """Whether the first sample, which decides how an episode continues, is a measured mismatch."""
    first = record.sample
    return first.outcome.verdict != "infrastructure_failure" and not evaluator.evaluate(record.task, first.action).exact_match


def gaps(directory: Path) -> list[str]:
    """One sentence for each part of a run's, or rollout's, plan without records; metrics are over the rest."""
    found = []
    runs = rounds_of(directory)
    if is_rollout(directory):
        named = len(read_file(directory / ROLLOUT, RolloutFile).rounds)
        if named > len(runs):
            found.append(f"{named - len(runs)} of {named} rounds of {str(directory)!r} have not begun")
    for run in runs:
        records = RunFolder(run).records
        planned = sum(map(len, RunFolder(run).plan.values()))
        missing = planned - sum(map(len, record_places(records).values()))
        if missing:
            found.append(f"{str(run)!r} holds no record of {missing:,} of {planned:,} planned steps")
        if records.damaged:
            lines = "1 line" if len(records.damaged) == 1 else f"{len(records.damaged):,} lines"
            found.append(f"{lines} of {str(records.path)!r} hold no record, the first is line {records.damaged[0]}")
    return found


def pooled(records: Sequence[StepRecord], evaluator: ActionEvaluator) -> StepExecutions:
    """The samples of one step's records (one or more rounds) as executions, judged by ``evaluator``."""
    task = records[0].task
    actions: dict[Hashable, Action | None] = {}
    counts: Counter[Hashable] = Counter()
    failed = 0
    for record in records:
        for sample in record.samples:
            if sample.outcome.verdict == "infrastructure_failure":
                failed += 1
            else:
                name = _identity(sample.action)
                actions.setdefault(name, sample.action)
                counts[name] += 1
    return StepExecutions(
        task,
        tuple(actions.values()),
        np.array([counts[name] for name in actions], dtype=np.int64),
        np.array([evaluator.evaluate(task, action).exact_match for action in actions.values()], dtype=np.bool_),
        failed,
    )


def _identity(action: Action | None) -> Hashable:
    """A key that equal executions share; an action outside the space may have unhashable arguments."""
    return action.model_dump_json() if isinstance(action, Unsupported) else action


def record_places(records: Records) -> dict[EpisodeKey, dict[int, int]]:
    """The offset of the record that counts of each step, by episode and step: the last finished one, else the last."""
    places: dict[EpisodeKey, dict[int, int]] = {}
    finished: set[StepKey] = set()
    for offset, (key, is_finished) in records.outline():
        if is_finished:
            finished.add(key)
        elif key in finished:
            continue  # a later failure does not replace an answer
        places.setdefault(EpisodeKey(*key[:3]), {})[key.step_index] = offset
    return places

"""A model's executions at each step, over many samples: every distinct one with its count.

An execution is one answer's action (section 5.1 of the GUIEvalKit paper). Read from a run of one or more samples a step, or
from a rollout directory, whose rounds are runs with seeds of their own: their samples are pooled, step by step.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from guieval.actions import Action, Unsupported
from guieval.evaluation import ActionEvaluator
from guieval.journal import ROLLOUT, RunFolder
from guieval.journal.run_files import RolloutFile, read_file
from guieval.journal.run_folders import is_rollout, open_folder
from guieval.metrics import Ledger
from guieval.metrics.columns import Judged
from guieval.steps import EpisodeKey, StepKey, StepRecord, StepTaskModel


@dataclass(frozen=True, eq=False)
class StepExecutions:
    """The executions of one step.

    ``actions`` are the k different ones in the order they were first drawn, coordinates in [0, 1000]; ``None`` is a
    response without an action, and an action outside the model's space is kept as it is. ``counts`` (k,): how often each
    was drawn. ``right`` of the executions are exact matches. ``failed`` counts the requests without an answer; they are not
    executions, so k may be 0.
    """

    task: StepTaskModel
    actions: tuple[Action | None, ...]
    counts: NDArray[np.int64]
    right: int = 0
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
    that of one episode, and a few bytes for each recorded step. If a round has several records of a step, the last one with
    every sample answered counts, else the last. Raises :class:`UsageError` if there is no run, no such protocol, or the
    rounds are over different steps.
    """
    run = open_folder(directory)
    evaluator = ActionEvaluator(run.protocol if protocol is None else protocol)
    rounds = [RunFolder(part.directory).check() for part in (run, *run.further)]

    def read() -> Iterator[StepExecutions]:
        for key, indices in run.plan.items():
            episode = [_judged(part, key, evaluator) for part in rounds]
            for row, index in enumerate(indices):
                going = [(records.get(index), columns) for records, columns in episode if columns.reached[row]]
                held = [(record, columns) for record, columns in going if record is not None]
                if held:
                    right = sum(int(columns.exact_samples[row]) for _, columns in held)
                    yield pooled([record for record, _ in held], right)
                elif going and unasked is not None:
                    unasked.append(StepKey(*key, index))

    return read()


def _judged(run: RunFolder, key: EpisodeKey, evaluator: ActionEvaluator) -> tuple[dict[int, StepRecord], Judged]:
    """The records of a planned episode by step, and how its steps are judged."""
    records = run.read(key)
    spaces = run.manifest.action_spaces
    ledger = Ledger({key: run.plan[key]}, [evaluator], (spaces.model.space, spaces.benchmark.space), run.manifest.mode)
    for record in records.values():
        ledger.add(record.task, record.samples)
    return records, ledger.columns().judged[evaluator.protocol.name]


def gaps(directory: Path) -> list[str]:
    """One sentence for each part of a run's, or rollout's, plan without records; metrics are over the rest."""
    found = []
    run = open_folder(directory)
    parts = (run, *run.further)
    if is_rollout(directory):
        named = len(read_file(directory / ROLLOUT, RolloutFile).rounds)
        if named > len(parts):
            found.append(f"{named - len(parts)} of {named} rounds of {str(directory)!r} have not begun")
    for part in parts:
        planned, records = sum(map(len, part.plan.values())), part.records
        missing = planned - sum(map(len, part.offsets.values()))
        if missing:
            found.append(f"{str(part.directory)!r} has no record of {missing:,} of {planned:,} planned steps")
        if records.damaged:
            lines = "1 line" if len(records.damaged) == 1 else f"{len(records.damaged):,} lines"
            found.append(f"{lines} of {str(records.path)!r} hold no record, the first is line {records.damaged[0]}")
    return found


def pooled(records: Sequence[StepRecord], right: int = 0) -> StepExecutions:
    """The samples of one step's records (one or more rounds) as executions, ``right`` of which are exact matches."""
    actions: dict[Hashable, Action | None] = {}
    counts: Counter[Hashable] = Counter()
    failed = 0
    for record in records:
        for sample in record.samples:
            if sample.answered:
                name = _identity(sample.action)
                actions.setdefault(name, sample.action)
                counts[name] += 1
            else:
                failed += 1
    drawn = np.array([counts[name] for name in actions], dtype=np.int64)
    return StepExecutions(records[0].task, tuple(actions.values()), drawn, right, failed)


def _identity(action: Action | None) -> Hashable:
    """A key that equal executions share; an action outside the space may have unhashable arguments."""
    return action.model_dump_json() if isinstance(action, Unsupported) else action

"""What a model did at each step, over many samples: every different execution once, with how often it was drawn.

An execution is one answer's action (section 5.1 of the GUIEvalKit paper). Read from a run of one or more samples a step, or
from a rollout directory, whose rounds are runs with seeds of their own: their samples are pooled, step by step.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from guieval.actions import Action, Unsupported
from guieval.errors import UsageError
from guieval.evaluation import ActionEvaluator
from guieval.journal import Records, is_run, read_manifest, read_planned
from guieval.steps import StepKey, StepRecord, StepTaskModel

ROLLOUT = "rollout.json"
"""The file that makes a folder a rollout directory; it lists the rounds below it."""


@dataclass(frozen=True, eq=False)
class StepExecutions:
    """The executions of one step.

    ``actions`` are the k different ones in the order they were first drawn, coordinates in [0, 1000]; ``None`` stands for
    replies that held no action, and an action outside the model's space is kept as it is. ``counts`` (k,) says how often each
    was drawn and ``exact`` (k,) whether it is an exact match. ``failed`` counts the requests that nobody answered; they are
    no executions, so k may be 0.
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


def is_rollout(directory: Path) -> bool:
    """Whether a folder holds the rounds of a rollout."""
    return (directory / ROLLOUT).is_file()


def rounds_of(directory: Path) -> list[Path]:
    """The runs that ``directory`` stands for: itself, or the rounds of a rollout that have begun, in their order.

    Raises :class:`UsageError` where there is neither, or the list of rounds is damaged.
    """
    if not is_rollout(directory):
        read_manifest(directory)
        return [directory]
    path = directory / ROLLOUT
    try:
        named = [str(each["directory"]) for each in json.loads(path.read_text(encoding="utf-8"))["rounds"]]
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise UsageError(f"{str(path)!r} cannot be read: {error}") from None
    if begun := [directory / name for name in named if is_run(directory / name)]:
        return begun
    raise UsageError(f"no round of the rollout {str(directory)!r} has begun")


def read_executions(directory: Path, *, protocol: str | None = None) -> Iterator[StepExecutions]:
    """The executions of every step that was asked, in the order of the plan, judged under ``protocol`` (default: the run's).

    Memory is that of one step, and a few bytes for each recorded one. Of a step that was asked more than once, in one round,
    the last record with every sample answered counts, else the last. Raises :class:`UsageError` where there is no run, no such
    protocol, or the rounds are over different steps.
    """
    runs = rounds_of(directory)
    evaluator = ActionEvaluator(read_manifest(runs[0])["protocol"]["name"] if protocol is None else protocol)
    plan = read_planned(runs[0]).plan
    for each in runs[1:]:
        if read_planned(each).plan != plan:
            raise UsageError(
                f"the rounds {str(runs[0])!r} and {str(each)!r} are over different steps, so they cannot be pooled"
            )
    journals = [(records := Records(each), _places(records)) for each in runs]

    def read() -> Iterator[StepExecutions]:
        for key, indices in plan.items():
            for index in indices:
                step = StepKey(*key, index)
                found = [records.at(places[step]) for records, places in journals if step in places]
                if found:
                    yield pooled(found, evaluator)

    return read()


def gaps(directory: Path) -> list[str]:
    """What a run, or a rollout, has set out to do and holds no record of, a sentence each; its figures are of the rest."""
    found = []
    runs = rounds_of(directory)
    if is_rollout(directory):
        named = len(json.loads((directory / ROLLOUT).read_text(encoding="utf-8"))["rounds"])
        if named > len(runs):
            found.append(f"{named - len(runs)} of {named} rounds of {str(directory)!r} have not begun")
    for each in runs:
        records = Records(each)
        planned = sum(map(len, read_planned(each).plan.values()))
        missing = planned - len(_places(records))
        if missing:
            found.append(f"{str(each)!r} holds no record of {missing:,} of {planned:,} planned steps")
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
    """What two equal executions share; the arguments of an action outside the space may be anything that JSON holds."""
    return action.model_dump_json() if isinstance(action, Unsupported) else action


def _places(records: Records) -> dict[StepKey, int]:
    """Where the record that counts of each step lies."""
    places: dict[StepKey, int] = {}
    answered: set[StepKey] = set()
    for offset, (key, finished) in records.outline():
        if finished:
            answered.add(key)
        elif key in answered:
            continue  # an answer is there already, and a later failure does not undo it
        places[key] = offset
    return places

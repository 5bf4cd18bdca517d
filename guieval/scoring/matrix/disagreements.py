"""Where protocols differ: the same answer is an exact match under some of them and none under others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from guieval.actions import Action
from guieval.metrics.columns import ENDS, NOT_REACHED, End, RunColumns
from guieval.scoring.matrix.answers import JudgedAnswers
from guieval.steps import StepKey


@dataclass(frozen=True)
class Disagreement:
    """A step that protocols judge differently: its label, what was answered, and verdict and reason of each protocol.

    A protocol under which the step was not reached has no reason.
    """

    key: StepKey
    reference: Action
    prediction: Action | None
    verdicts: Mapping[str, End]
    reasons: Mapping[str, str]


def disputed(columns: RunColumns) -> NDArray[np.bool_]:
    """(n,) steps whose answer is an exact match under some protocols, but not under all that judge it.

    In a mode that stops, a protocol does not judge what it never reaches.
    """
    right = np.zeros(len(columns), dtype=np.bool_)
    other = np.zeros(len(columns), dtype=np.bool_)
    for judged in columns.judged.values():
        right |= judged.measured & judged.exact_match
        other |= judged.measured & ~judged.exact_match
    return right & other


def agreeing(columns: RunColumns) -> list[tuple[str, ...]]:
    """The protocols in groups that end every step alike: the largest group first, then in the protocols' order."""
    groups: dict[bytes, list[str]] = {}
    for name, judged in columns.judged.items():
        groups.setdefault(judged.end.tobytes(), []).append(name)
    return sorted((tuple(names) for names in groups.values()), key=len, reverse=True)


def disagreements(columns: RunColumns, answers: JudgedAnswers) -> Iterator[Disagreement]:
    """Every disputed step of ``columns``, which are of ``answers``; these are read once more, in the order they stand there."""
    rows = {columns.key_of(row): row for row in np.flatnonzero(disputed(columns)).tolist()}
    evaluators = {
        name: evaluator for name, evaluator in zip(answers.protocols, answers.evaluators, strict=True) if name in columns.judged
    }
    for task, sample in answers.again() if rows else ():
        if task.key in rows:
            ends = {name: columns.judged[name].end[rows[task.key]] for name in evaluators}
            yield Disagreement(
                key=task.key,
                reference=task.action,
                prediction=sample.action,
                verdicts={name: ENDS[end] for name, end in ends.items()},
                reasons={
                    name: "" if end == NOT_REACHED else evaluators[name].rescore(task, sample).reason
                    for name, end in ends.items()
                },
            )

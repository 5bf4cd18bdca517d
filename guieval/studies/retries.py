"""Mode sop-retry from samples that were drawn before: no request is sent.

A rollout has n samples of each step, drawn under the same prompt. A try of a step is one of them, drawn without replacement,
and steps are taken as independent. A run in the mode shows a try the wrong ones before it, so its metrics may differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from guieval.actions import Stop, Wait
from guieval.errors import UsageError
from guieval.evaluation import ActionEvaluator
from guieval.journal.run_folders import open_folder
from guieval.metrics.measured import Measured, mean_over_episodes
from guieval.studies.decisions.executions import StepExecutions, read_executions


@dataclass(frozen=True)
class Retried:
    """PG, TSR and their mean over the episodes whose steps all have enough samples, of which ``left_out`` do not."""

    tries: int
    progress: Measured
    success: Measured
    score: Measured
    left_out: int


def right_in_tries(right: int, waits: int, stops: int, others: int, tries: int) -> float:
    """The probability that a step is right in mode sop-retry, its responses drawn one by one from samples.

    Of these ``right`` match exactly, ``waits`` and ``stops`` do not, ``others`` are wrong otherwise. The rule is
    :func:`guieval.history.modes.tries_again`: wrong after ``tries`` others, and waits count as such after the first ``tries``.
    A stop ends the tries. Without waits and stops it is pass@tries. Raises :class:`UsageError` for fewer samples than tries.
    """
    if (samples := right + waits + stops + others) < tries:
        raise UsageError(f"{tries} tries cannot be drawn from {samples} samples of a step")

    @cache
    def reaches(waited: int, wrong: int) -> float:
        if not right or waited + wrong - min(waited, tries) >= tries:
            return 0.0
        left_waits, left_others = waits - waited, others - wrong
        total = samples - waited - wrong
        found = right / total
        found += left_waits / total * reaches(waited + 1, wrong) if left_waits else 0.0
        return found + (left_others / total * reaches(waited, wrong + 1) if left_others else 0.0)

    return reaches(0, 0)


def retried(directory: Path, tries: Sequence[int], *, protocol: str | None = None) -> list[Retried]:
    """Mode sop-retry with each number of ``tries``, of a run or rollout with several samples a step, under ``protocol``.

    Progress of an episode is the expected share of its steps before the first wrong one. Raises :class:`UsageError` if no
    episode has enough samples, and as :func:`read_executions` does.
    """
    run = open_folder(directory)
    evaluator = ActionEvaluator(run.protocol if protocol is None else protocol)
    steps = {step.task.key: _counts(step, evaluator) for step in read_executions(directory, protocol=protocol)}
    most = min((sum(counts) for counts in steps.values()), default=0)
    episodes = [[steps.get((*key, index)) for index in indices] for key, indices in run.plan.items()]  # type: ignore[call-overload]
    return [_over_episodes(episodes, each, most) for each in tries]


def _counts(step: StepExecutions, evaluator: ActionEvaluator) -> tuple[int, int, int, int]:
    """Right ones, waits and stops that are wrong, and the others."""

    def wrong(kind: type[Wait | Stop]) -> int:
        found = zip(step.actions, step.counts, strict=True)
        mistaken = (
            count for each, count in found if isinstance(each, kind) and not evaluator.judge(step.task, each).exact_match
        )
        return int(sum(mistaken))

    waits, stops = wrong(Wait), wrong(Stop)
    return step.right, waits, stops, step.n - step.right - waits - stops


def _over_episodes(episodes: Sequence[Sequence[tuple[int, int, int, int] | None]], tries: int, most: int) -> Retried:
    whole = [steps for steps in episodes if all(counts is not None and sum(counts) >= tries for counts in steps)]
    if not whole:
        raise UsageError(f"{tries} tries need as many samples of every step of an episode; the fewest of a step are {most}")
    reached = [np.cumprod([right_in_tries(*counts, tries) for counts in steps if counts is not None]) for steps in whole]
    progress, success = np.array([each.mean() for each in reached]), np.array([each[-1] for each in reached])
    ones = np.ones(len(whole))
    pg, tsr, score = (mean_over_episodes(each, ones, share=True) for each in (progress, success, (progress + success) / 2))
    return Retried(tries, pg, tsr, score, len(episodes) - len(whole))

"""The record of a step, and the advantages of a batch of steps; does not import verl.

verl keeps one row per step, in any order and filled up with rows that do not count, and replaces every step's reward by its
session's. So the numbers from which advantages are computed are kept in a record of our own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean

from guieval.rewards.advantages import AdvantageSettings, Trajectory, advantages, keep_group
from guieval.rewards.rollout import RolloutStep
from guieval.training.reward_watch import Sum


@dataclass(frozen=True)
class RowRecord:
    """The result of one step: ``uid`` names the task, ``session`` the rollout, ``step`` is its index in the episode.

    ``measured`` is false if the response could not be scored; such a step is not trained on. ``watched`` are the response's
    sums for :class:`guieval.training.reward_watch.RewardWatch`, whose exact match is that of ``protocol``. In an environment
    nothing is matched: ``matched`` and ``type_match`` are true, and ``success`` and ``progress`` are the judge's of the
    rollout.
    """

    uid: str
    session: int
    step: int
    reward: float
    matched: bool
    patched: bool
    type_match: bool
    measured: bool
    protocol: str = ""
    watched: Mapping[str, Sum] = field(default_factory=dict, hash=False)
    success: bool | None = None
    progress: float = 0.0

    @classmethod
    def of(
        cls, uid: str, session: int, step: RolloutStep, *, protocol: str = "", watched: Mapping[str, Sum] | None = None
    ) -> RowRecord:
        outcome = step.sample.outcome
        return cls(
            uid,
            session,
            step.task.step_index,
            step.reward,
            step.matched,
            step.patched,
            outcome.type_match,
            outcome.verdict != "infrastructure_failure",
            protocol,
            watched or {},
        )


def trajectories(records: Iterable[RowRecord]) -> list[tuple[Trajectory, list[RowRecord]]]:
    """The rollouts in a list of steps in any order, each with its steps in order."""
    sessions: defaultdict[tuple[str, int], list[RowRecord]] = defaultdict(list)
    for record in records:
        sessions[record.uid, record.session].append(record)
    rollouts = []
    for (uid, _), steps in sessions.items():
        steps.sort(key=lambda record: record.step)
        indices, rewards, matched = zip(*((step.step, step.reward, step.matched) for step in steps), strict=True)
        rollouts.append((Trajectory(uid, indices, rewards, matched), steps))
    return rollouts


def row_advantages(records: Sequence[RowRecord | None], settings: AdvantageSettings) -> list[float]:
    """The advantage of every row; 0 for one that does not count (``None``, or a response that was not judged)."""
    rollouts = trajectories(record for record in records if record is not None)
    worth = advantages([trajectory for trajectory, _ in rollouts], settings)
    by_step = {
        (record.uid, record.session, record.step): value
        for (_, steps), values in zip(rollouts, worth, strict=True)
        for record, value in zip(steps, values, strict=True)
    }
    return [
        by_step[record.uid, record.session, record.step] if record is not None and record.measured else 0.0
        for record in records
    ]


def group_is_kept(records: Iterable[RowRecord], eta: float, settings: AdvantageSettings) -> bool:
    """Whether the rollouts of one task differ enough to be trained on (:func:`guieval.rewards.advantages.keep_group`)."""
    return keep_group([trajectory for trajectory, _ in trajectories(records)], eta, settings)


def logged(records: Sequence[RowRecord]) -> dict[str, float]:
    """The logged metrics of a batch."""
    rollouts = trajectories(records)
    if not rollouts:
        return {}
    common = {
        "guieval/reward": fmean(record.reward for record in records),
        "guieval/steps": fmean(len(steps) for _, steps in rollouts),
    }
    if any(record.success is not None for record in records):
        ends = [steps[-1] for _, steps in rollouts]
        return common | {
            "guieval/success": fmean(bool(end.success) for end in ends),
            "guieval/progress": fmean(end.progress for end in ends),
        }
    return common | {
        "guieval/type_match": fmean(record.type_match for record in records),
        "guieval/exact_match": fmean(record.matched for record in records),
        "guieval/patches": fmean(sum(step.patched for step in steps) for _, steps in rollouts),
    }

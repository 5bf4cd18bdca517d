"""Runs as columns, and summaries of records, with nothing in them but what a test says."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from guieval.actions import ActionSpace
from guieval.evaluation import ActionEvaluator
from guieval.history.modes import Mode
from guieval.metrics import AnyLedger, Ledger, RunSummary
from guieval.metrics import summarise as summary_of
from guieval.metrics.columns import ENDS, NOT_REACHED, RIGHT, TYPES, WRONG, Judged, RunColumns
from guieval.steps import EpisodeKey, Plan, StepRecord

PROTOCOL = "guievalkit"
EVERYTHING = ActionSpace()


def made_columns(
    episodes: Sequence[str],
    *,
    exact: Sequence[bool] | None = None,
    typed: Sequence[bool] | None = None,
    ends: Sequence[str] | None = None,
    steps: Sequence[int] | None = None,
    lengths: Sequence[int] | None = None,
    reference: Sequence[str] | None = None,
    predicted: Sequence[str] | None = None,
    distance: Sequence[float] | None = None,
    samples: Sequence[int] | None = None,
    right_samples: Sequence[int] | None = None,
    vote: Sequence[bool] | None = None,
    groups: Mapping[str, Sequence[str]] | None = None,
    elsewhere: Sequence[bool] | None = None,
    stop: str = "never",
    title: str = "a run",
    dataset: str = "made-up",
) -> RunColumns:
    """One row per entry of ``episodes`` ("subset/id" or "id"), whose steps count up from 0 unless ``steps`` says otherwise.

    ``exact``: those that end right unless said otherwise.
    """
    n = len(episodes)
    names = list(dict.fromkeys(episodes))
    keys = [EpisodeKey("made-up", *(name.split("/") if "/" in name else ("", name))) for name in names]
    counted = [episodes[:row].count(name) for row, name in enumerate(episodes)]
    right = np.array([end == "right" for end in ends or ()] if exact is None else exact, dtype=np.bool_)
    end = [ENDS.index(each) for each in ends] if ends else np.where(right, RIGHT, WRONG)
    judged = Judged(
        protocol=PROTOCOL,
        end=np.array(end, dtype=np.int8),
        type_match=right if typed is None else np.array(typed, dtype=np.bool_),
        exact_match=right,
        distance=np.full(n, np.nan) if distance is None else np.array(distance, dtype=np.float64),
        similarity=np.full(n, np.nan),
        exact_samples=right.astype(np.int16) if right_samples is None else np.array(right_samples, dtype=np.int16),
        vote=right if vote is None else np.array(vote, dtype=np.bool_),
    )
    assert not right[judged.end == NOT_REACHED].any()
    return RunColumns(
        title=title,
        benchmark="made-up",
        dataset=dataset,
        model="m",
        mode="sop" if stop == "first-mismatch" else "offline",
        stop=stop,
        selection="all",
        episodes=tuple(keys),
        episode=np.array([names.index(name) for name in episodes], dtype=np.int32),
        step_index=np.array(counted if steps is None else steps, dtype=np.int32),
        length=np.array([episodes.count(name) for name in episodes] if lengths is None else lengths, dtype=np.int32),
        reference_type=np.array([TYPES.index(each) if each else -1 for each in reference or ["CLICK"] * n], dtype=np.int8),
        predicted_type=np.array([TYPES.index(each) if each else -1 for each in predicted or ["CLICK"] * n], dtype=np.int8),
        covered=np.ones(n, dtype=np.bool_),
        samples=np.ones(n, dtype=np.int16) if samples is None else np.array(samples, dtype=np.int16),
        groups=groups or {},
        judged={PROTOCOL: judged},
        elsewhere=None if elsewhere is None else np.array(elsewhere, dtype=np.bool_),
    )


def summarise(
    records: Iterable[StepRecord], plan: Plan, mode: Mode, model_space: ActionSpace, benchmark_space: ActionSpace
) -> RunSummary:
    """The metrics of a run whose records are at hand."""
    ledger = made_ledger(plan, mode, model_space, benchmark_space)
    for record in records:
        ledger.take(record)
    return whole(ledger)


def made_ledger(
    plan: Plan, mode: Mode, model_space: ActionSpace = EVERYTHING, benchmark_space: ActionSpace = EVERYTHING
) -> Ledger:
    """A ledger of a run under :data:`PROTOCOL`."""
    return Ledger(plan, [ActionEvaluator(PROTOCOL)], (model_space, benchmark_space), mode)


def whole(ledger: Ledger, plan: Plan | None = None) -> RunSummary:
    """The metrics of what a ledger holds, or of a part of its plan."""
    return summary_of(ledger.columns(plan), ledger.evaluators[0].protocol, intervals=False)


def without_seconds(ledger: AnyLedger) -> RunSummary:
    """The metrics of what a ledger holds, but for how long answers took."""
    columns = replace(ledger.columns(), seconds=None)
    return summary_of(columns, ledger.evaluators[0].protocol, intervals=False)

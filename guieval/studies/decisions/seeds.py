"""Episode progress of a rollout's rounds, seed by seed: Table 19 of the GUIEvalKit paper (appendix C.2.2).

A round counts with the first sample of each step, as ``guieval score`` counts it. Over several benchmarks a round's progress is
the mean over all their episodes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from guieval.evaluation.protocol import PROGRESS
from guieval.journal import RunFolder
from guieval.journal.run_folders import rounds_of
from guieval.metrics import Measured
from guieval.metrics.protocol_metric import ProtocolMetric
from guieval.scoring.matrix import judge_run


def progress_by_seed(parts: Sequence[Path], protocol: str | None = None) -> Mapping[int, Measured]:
    """The progress in [0, 1] of each seed that every one of the rollouts has begun, in the rounds' order.

    ``protocol``: by default each rollout's own. Runs without a seed of their own have none.
    """
    rounds = [{seed: each for each in rounds_of(part) if (seed := _seed(each)) is not None} for part in parts]
    shared = [seed for seed in rounds[0] if all(seed in of for of in rounds)]
    return {seed: _over([_progress(of[seed], protocol) for of in rounds]) for seed in shared}


def _seed(run: Path) -> int | None:
    seed = (RunFolder(run).manifest.config.sampling.request or {}).get("seed")
    return seed if isinstance(seed, int) else None


def _progress(run: Path, protocol: str | None) -> Measured:
    columns = judge_run(run, None if protocol is None else [protocol]).columns()
    (judged,) = columns.judged.values()
    return ProtocolMetric(PROGRESS).measure(columns, judged, intervals=False)


def _over(parts: Sequence[Measured]) -> Measured:
    known = [(each.value, each.n) for each in parts if each.value is not None]
    n = sum(size for _, size in known)
    return Measured(sum(value * size for value, size in known) / n if n else None, n, "episodes", unit="")

"""Selects and weights the steps of a training by measurements of the policy's own samples: pass rate and decision diversity.

The metrics are those of ``guieval study decisions``: a step's pass rate is its decision stability (GUIEvalKit paper, section
5.1), the share of exact matches among the samples; its diversity is the entropy of its decisions in nats.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from guieval.errors import UsageError
from guieval.steps import StepKey
from guieval.studies.decisions.clustering import ClusterSettings
from guieval.studies.decisions.executions import read_executions
from guieval.studies.decisions.measures import measure
from guieval.training.settings import Curriculum


class StepMeasures(NamedTuple):
    """The metrics of one step; ``diversity`` is NaN if no sample has a decision."""

    pass_rate: float
    diversity: float


def read_measured(runs: Sequence[str]) -> dict[StepKey, StepMeasures]:
    """The measured steps of runs and rollout directories; of a step in several, those of the last."""
    found: dict[StepKey, StepMeasures] = {}
    for run in runs:
        metrics = measure(read_executions(Path(run)), ClusterSettings())
        steps = zip(metrics.keys, metrics.n, metrics.stability, metrics.diversity, strict=True)
        found |= {key: StepMeasures(float(share), float(diversity)) for key, n, share, diversity in steps if n}
    return found


def factors(tasks: Sequence[Sequence[StepKey]], settings: Curriculum, measured: Mapping[StepKey, StepMeasures]) -> list[float]:
    """The weight of each task, given the names of its steps; 0 leaves it out, and the mean over the others is 1.

    A task of several steps, an episode, has the mean of its steps' weights. Raises :class:`UsageError` if none of the steps was
    measured, or if no task is left.
    """
    if not any(key in measured for keys in tasks for key in keys):
        raise UsageError(
            f"none of the steps to train on was measured in {', '.join(map(repr, settings.runs))}, e.g. not "
            f"{str(tasks[0][0])!r}: measure the same benchmark and split"
        )
    raw = [sum(_weight(key, settings, measured) for key in keys) / len(keys) for keys in tasks]
    kept = [weight for weight in raw if weight > 0]
    if not kept:
        low, high = settings.pass_rate
        raise UsageError(
            f"the curriculum leaves none of {len(tasks):,} tasks: none has a measured pass rate from {low:g} to {high:g} and a "
            "weight above 0"
        )
    mean = sum(kept) / len(kept)
    return [weight / mean for weight in raw]


def _weight(key: StepKey, settings: Curriculum, measured: Mapping[StepKey, StepMeasures]) -> float:
    metrics = measured.get(key)
    if metrics is None:
        return 1.0 if settings.unmeasured == "keep" else 0.0
    within = settings.pass_rate[0] <= metrics.pass_rate <= settings.pass_rate[1]
    if settings.diversity is not None:
        within = within and settings.diversity[0] <= metrics.diversity <= settings.diversity[1]
    if not within:
        return 0.0
    match settings.weight:
        case "equal":
            return 1.0
        case "learnable":
            return 4 * metrics.pass_rate * (1 - metrics.pass_rate)
        case "hard":
            return 1 - metrics.pass_rate

"""Decision-level metrics of a run: diversity, effective support, stability and PASS@n, step by step and over all steps.

Intervals treat episodes as independent (:mod:`guieval.metrics.intervals`).

Source: GUIEvalKit paper, section 5.1 (equations 6 and 7), Figure 6 (PASS@n) and appendix C.3 (levels).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from guieval.errors import UsageError
from guieval.metrics import Measured
from guieval.metrics.measured import SHARE, mean_over_episodes, share_of
from guieval.metrics.sampling import Sampled, pass_measured
from guieval.steps import EpisodeKey, StepKey
from guieval.studies.decisions.clustering import ClusterSettings, decide
from guieval.studies.decisions.executions import StepExecutions
from guieval.studies.decisions.points import Floats, Ints

Level: TypeAlias = Literal["low", "medium", "high"]
Mean: TypeAlias = Literal["stability", "diversity", "support_size", "decisions"]
"""The columns that have a mean over steps."""
UNITS: Mapping[Mean, str] = {"stability": SHARE, "diversity": "nats", "support_size": "", "decisions": ""}
LEVELS: tuple[Level, ...] = ("low", "medium", "high")
COUNTS = ("n", "right", "unparseable", "unsupported", "failed", "decisions")
"""The columns of whole numbers."""


@dataclass(frozen=True)
class Thresholds:
    """Up to ``low`` a stability is low, above ``high`` it is high (appendix C.3.2); a shift of the effective support size of up
    to ``negligible`` is none (C.3.1). Raises :class:`UsageError` for a value out of range.
    """

    low: float = 0.4
    high: float = 0.8
    negligible: float = 0.1

    def __post_init__(self) -> None:
        if not 0 <= self.low < self.high <= 1:
            raise UsageError(f"the stability levels need 0 <= low < high <= 1, got low {self.low:g} and high {self.high:g}")
        if not 0 <= self.negligible < math.inf:
            raise UsageError(f"the negligible shift of the support size must be at least 0, got {self.negligible:g}")


PUBLISHED = Thresholds()


@dataclass(frozen=True, eq=False)
class DecisionColumns:
    """A run's m reached steps, in the order they were read, then those without a record; arrays of length m.

    ``episode``: indices into ``episodes``. Whole numbers: ``n`` measured executions, ``right`` of them exact matches,
    ``unparseable`` without an action, ``unsupported`` with one outside of the space, ``failed`` requests never answered or
    never made (in no ``n``), ``decisions`` K. ``diversity``: in nats, NaN if no execution has a decision.
    """

    title: str
    settings: ClusterSettings
    keys: tuple[StepKey, ...]
    episodes: tuple[EpisodeKey, ...]
    episode: Ints
    n: Ints
    right: Ints
    unparseable: Ints
    unsupported: Ints
    failed: Ints
    decisions: Ints
    diversity: Floats
    thresholds: Thresholds = PUBLISHED

    def __len__(self) -> int:
        return len(self.keys)

    @cached_property
    def measured(self) -> NDArray[np.bool_]:
        """(m,) steps with at least one measured execution; the others are in no metric."""
        return np.greater(self.n, 0)

    @cached_property
    def decided(self) -> NDArray[np.bool_]:
        """(m,) steps with at least one execution that has a decision; diversity is over these."""
        return np.greater(self.decisions, 0)

    @cached_property
    def stability(self) -> Floats:
        """(m,) the share of exact matches among all measured executions; NaN without any."""
        return np.asarray(np.divide(self.right, self.n, out=np.full(len(self), np.nan), where=self.measured))

    @cached_property
    def support_size(self) -> Floats:
        """(m,) exp(diversity), appendix C.3.1; NaN if no execution has a decision."""
        return np.exp(self.diversity)

    @cached_property
    def level(self) -> Ints:
        """(m,) the stability's level as an index into :data:`LEVELS`; -1 if nothing was measured."""
        return np.where(self.measured, level_of(self.right, self.n, self.thresholds), -1)

    def take(self, rows: Ints) -> DecisionColumns:
        """These steps alone, in this order."""
        arrays = {name: getattr(self, name)[rows] for name in ("episode", *COUNTS, "diversity")}
        keys = tuple(self.keys[row] for row in rows.tolist())
        return replace(self, keys=keys, **arrays)

    def over_episodes(self, values: Floats | Ints | NDArray[np.bool_]) -> Floats:
        """(e,) the values of each episode's steps, summed up."""
        return np.bincount(self.episode, weights=values, minlength=len(self.episodes)).astype(np.float64)


def measure(
    executions: Iterable[StepExecutions],
    settings: ClusterSettings,
    title: str = "",
    unasked: Iterable[StepKey] = (),
    thresholds: Thresholds = PUBLISHED,
) -> DecisionColumns:
    """Cluster every step's executions and keep the metrics of each; memory is a few numbers a step.

    ``unasked`` are read after the executions. Each is a step whose requests, as many as any step has, were never answered.
    """
    keys: list[StepKey] = []
    counts: list[tuple[int, ...]] = []
    diversity: list[float] = []
    for step in executions:
        of = decide(step, settings)
        keys.append(step.task.key)
        counts.append((of.n, of.right, of.unparseable, of.unsupported, of.failed, len(of.clusters)))
        diversity.append(math.nan if of.diversity is None else of.diversity)
    drawn = max((n + failed for n, _, _, _, failed, _ in counts), default=1)
    for key in unasked:
        keys.append(key)
        counts.append((0, 0, 0, 0, drawn, 0))
        diversity.append(math.nan)
    table = np.array(counts, dtype=np.int64).reshape(len(keys), len(COUNTS))
    episodes, episode = numbered(keys)
    return DecisionColumns(
        title=title,
        settings=settings,
        keys=tuple(keys),
        episodes=episodes,
        episode=episode,
        diversity=np.array(diversity, dtype=np.float64),
        thresholds=thresholds,
        **{name: table[:, place] for place, name in enumerate(COUNTS)},
    )


def numbered(keys: Sequence[StepKey]) -> tuple[tuple[EpisodeKey, ...], Ints]:
    """The steps' distinct episodes, and (m,) the index of each step's episode."""
    places: dict[EpisodeKey, int] = {}
    episode = [places.setdefault(EpisodeKey(*key[:3]), len(places)) for key in keys]
    return tuple(places), np.array(episode, dtype=np.int64)


def level_of(right: Ints, n: Ints, thresholds: Thresholds = PUBLISHED) -> Ints:
    """(m,) indices into :data:`LEVELS` of the stabilities right / n; one of exactly 0.4 is low, of exactly 0.8 medium."""

    def above(threshold: float) -> Ints:  # in whole numbers: 2 of 5 is 0.4, whatever a division makes of it
        parts = Fraction(str(threshold))
        return (parts.denominator * right > parts.numerator * n).astype(np.int64)

    return above(thresholds.low) + above(thresholds.high)


def mean(run: DecisionColumns, name: Mean) -> Measured:
    """The mean of a column over steps; the mean stability is exact match over all samples; diversity is in nats.

    ``stability`` is over the measured steps, the others over those with a decision. Each isolated point is one of the
    ``decisions``.
    """
    of = run.measured if name == "stability" else run.decided
    return mean_of(getattr(run, name)[of], run.episode[of], unit=UNITS[name])


def level_share(run: DecisionColumns, level: Level) -> Measured:
    """The share of measured steps whose stability is of this level."""
    of = run.measured
    return mean_of(run.level[of] == LEVELS.index(level), run.episode[of], unit=SHARE)


def solved_steps(run: DecisionColumns) -> Measured:
    """The share of steps with at least one exact match among all executions (Table 18), PASS@n of a step's n."""
    return mean_of(run.right > 0, run.episode, unit=SHARE)


def solved_episodes(run: DecisionColumns) -> Measured:
    """The share of episodes each of whose steps has at least one exact match among all executions (Table 18)."""
    steps, solved = run.over_episodes(np.ones(len(run))), run.over_episodes(run.right > 0)
    read = steps > 0
    return share_of(int((solved[read] == steps[read]).sum()), int(read.sum()), "episodes", interval=True)


def pass_at(run: DecisionColumns, k: int) -> Sampled:
    """PASS@k over all steps: the chance that one of k executions drawn from a step's is exact, unbiased.

    An unanswered request counts as wrong; steps may have different numbers of executions.
    Raises :class:`UsageError` if some step has fewer than k.
    """
    drawn, every = run.n + run.failed, np.ones(len(run), dtype=np.bool_)
    measured = pass_measured("any", drawn, run.right, k, every, run.over_episodes)
    return Sampled("any", k, int(drawn.max(initial=0)), measured)


def pass_sizes(run: DecisionColumns) -> list[int]:
    """The n of a curve of PASS@n: doublings up to the number that every step has, and that number."""
    most = int((run.n + run.failed).min(initial=np.iinfo(np.int64).max)) if len(run) else 0
    return sorted({2**power for power in range(most.bit_length())} | {most}) if most else []


def mean_of(values: Floats | Ints | NDArray[np.bool_], episode: Ints, *, unit: str = "") -> Measured:
    """The mean of (m,) values with its interval over episodes; ``episode``: (m,) the number of each value's episode.

    If ``unit`` is "share", the values lie in [0, 1].
    """
    above, below = np.bincount(episode, weights=values), np.bincount(episode)
    found = mean_over_episodes(above.astype(np.float64), below.astype(np.float64), share=unit == SHARE)
    return replace(found, unit=unit, better=None)


def check_several(run: DecisionColumns) -> None:
    """Raise :class:`UsageError` if no step has two executions."""
    if not len(run) or int((run.n + run.failed).max()) < 2:
        raise UsageError(
            f"{run.title or 'the run'!r} has one answer to each step, but a decision distribution needs several; "
            "draw them with `guieval study rollout` or `guieval run --samples 64`"
        )

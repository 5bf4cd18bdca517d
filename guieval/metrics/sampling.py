"""Several answers to one step, or several runs that differ in their seed: how much of a figure is luck?

None of these is an exact match: that one is of the first answer only. They have their own names and their own type, so that
none can slip into its column. An answer that never came counts as wrong, as everywhere.

Sources: M. Chen et al., "Evaluating large language models trained on code" (2021), section 2.1, the unbiased pass@k;
S. Yao et al., "tau-bench" (2024), pass^k; GUIEvalKit paper, Figure 6 (PASS@n) and Table 19 (spread over seeds).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from guieval.errors import UsageError, nearest
from guieval.metrics.columns import RunColumns
from guieval.metrics.intervals import LEVEL, RESAMPLES, Floats, Interval, quoted

Luck: TypeAlias = Literal["any", "all", "mean", "vote"]
"""``any``: pass@k, one of k answers is right; ``all``: pass^k, all k are; ``mean``: the share of right answers; ``vote``: the
action most answers agree on is right."""


@dataclass(frozen=True)
class SampledFigure:
    """A figure over ``n`` steps with ``samples`` answers each; ``k`` is how many of them it asks about.

    ``value`` and ``interval`` (over episodes) are ``None`` where no step was reached.
    """

    name: str
    value: float | None
    n: int
    k: int
    samples: int
    interval: Interval | None


@dataclass(frozen=True)
class Spread:
    """A figure over several seeds. ``sd`` divides by seeds - 1; it and ``interval`` (Student's t) need two of them.

    The interval is of the mean over all seeds, on these very steps: unlike a bootstrap over episodes it tells nothing about
    other steps.
    """

    mean: float
    sd: float | None
    seeds: int
    interval: Interval | None


def pass_any(n: NDArray[np.integer], right: NDArray[np.integer], k: int) -> Floats:
    """(m,) pass@k, the chance that at least one of k answers drawn from ``n``, of which ``right`` are right, is right.

    1 - C(n - right, k) / C(n, k), unbiased for answers drawn anew (Chen et al. 2021, equation 1); exact, then rounded once.
    Raises :class:`UsageError` for k below 1 or above some n.
    """
    return _exactly(n, right, k, lambda total, good: math.comb(total, k) - math.comb(total - good, k))


def pass_all(n: NDArray[np.integer], right: NDArray[np.integer], k: int) -> Floats:
    """(m,) pass^k, the chance that all k answers drawn from ``n`` are right: C(right, k) / C(n, k), exact, then rounded once.

    Raises :class:`UsageError` for k below 1 or above some n.
    """
    return _exactly(n, right, k, lambda total, good: math.comb(good, k))


def sampled(
    runs: Sequence[RunColumns],
    protocol: str,
    luck: Luck,
    k: int | None = None,
    *,
    unit: Literal["step", "episode"] = "step",
    drawn: int | None = None,
    seed: int = 0,
    resamples: int = RESAMPLES,
    level: float = LEVEL,
) -> SampledFigure:
    """A figure of one run with several answers to each step, or of several runs of the same steps that differ in their seed.

    Of a ``step`` the answers of all runs are put together; steps that the mode does not reach do not count. Of an ``episode``
    each run is one try, right where its first answers are exact throughout. ``drawn`` is how many answers each run was to give
    to a step (default: the most that a step of it has); what is missing of them is wrong. ``k`` defaults to all answers;
    ``mean`` and ``vote`` ask about all in any case.

    Raises :class:`UsageError` for runs of unlike steps, a protocol they were not judged by, a k out of range, a vote over
    several runs or episodes, and for the steps of several runs of a mode that stops, for they reach different ones.
    """
    _check_runs(runs, protocol)
    first, judged = runs[0], [run.judged[protocol] for run in runs]
    if luck == "vote" and (unit == "episode" or len(runs) > 1):
        raise UsageError("a vote is taken among one run's answers to a step, so it needs one run and unit 'step'")
    if unit == "episode":
        samples = len(runs)
        right: NDArray[np.int64] = np.sum(
            [np.logical_and.reduceat(each.exact_match, first.starts) for each in judged], axis=0, dtype=np.int64
        )
        values = _values(luck, samples, right, k)
        above, below = values, np.ones(len(values))
    else:
        stopping = next((run for run in runs if run.stop == "first-mismatch"), None)
        if stopping is not None and len(runs) > 1:
            raise UsageError(
                f"runs in mode {stopping.mode!r} reach different steps, which cannot be put together; use unit 'episode'"
            )
        samples = sum(_drawn(run, drawn) for run in runs)
        right = np.sum([each.exact_samples for each in judged], axis=0, dtype=np.int64)
        values = judged[0].vote.astype(np.float64) if luck == "vote" else _values(luck, samples, right, k)
        reached = judged[0].reached
        above, below = first.per_episode(np.where(reached, values, 0.0)), first.per_episode(reached)
    asked = samples if k is None or luck in ("mean", "vote") else k
    word = {"any": f"pass@{asked}", "all": f"pass^{asked}", "mean": f"mean@{asked}", "vote": f"vote@{asked}"}[luck]
    n = int(below.sum())
    return SampledFigure(
        name=word if unit == "step" else f"success {word}",
        value=float(above.sum()) / n if n else None,
        n=n,
        k=asked,
        samples=samples,
        interval=quoted(above, below, seed=seed, resamples=resamples, level=level),
    )


def spread(values: Sequence[float], level: float = LEVEL) -> Spread:
    """Mean and spread of one figure over several seeds. Raises ``ValueError`` for no value."""
    if not values:
        raise ValueError("there is no value to take the mean of")
    seeds, mean = len(values), math.fsum(values) / len(values)
    if seeds < 2:
        return Spread(mean, None, seeds, None)
    from scipy.special import stdtrit

    sd = float(np.std(values, ddof=1))
    reach = float(stdtrit(seeds - 1, (1 + level) / 2)) * sd / math.sqrt(seeds)
    return Spread(mean, sd, seeds, Interval(mean - reach, mean + reach, level, "t"))


def _check_runs(runs: Sequence[RunColumns], protocol: str) -> None:
    if not runs:
        raise UsageError("there is no run to take samples from")
    for run in runs:
        if protocol not in run.judged:
            raise UsageError(f"{run.title!r} was not judged by {protocol!r}{nearest(protocol, run.judged)}")
        same = run.episodes == runs[0].episodes and np.array_equal(run.episode, runs[0].episode)
        if not (same and np.array_equal(run.step_index, runs[0].step_index)):
            raise UsageError(f"{run.title!r} and {runs[0].title!r} do not hold the same steps; cut them to shared steps first")


def _drawn(run: RunColumns, drawn: int | None) -> int:
    most = max(1, int(run.samples.max(initial=1)))
    if drawn is not None and drawn < most:
        raise UsageError(f"{run.title!r} has steps with {most} answers, more than the {drawn} that were said to be drawn")
    return drawn or most


def _values(luck: Luck, samples: int, right: NDArray[np.integer], k: int | None) -> Floats:
    """What each unit with ``right`` of ``samples`` right adds to the figure."""
    if luck == "mean":
        return np.asarray(right / samples, dtype=np.float64)
    asked, total = samples if k is None else k, np.full(right.shape, samples)
    return pass_any(total, right, asked) if luck == "any" else pass_all(total, right, asked)


def _exactly(n: NDArray[np.integer], right: NDArray[np.integer], k: int, favourable: Callable[[int, int], int]) -> Floats:
    """favourable(n, right) / C(n, k) for each pair, worked out once per different pair, in whole numbers."""
    if k < 1 or (len(n) and k > int(n.min())):
        raise UsageError(
            f"{k} answers cannot be drawn where there are {int(n.min()) if len(n) else 0}; k must be from 1 to that"
        )
    if not len(n):
        return np.empty(0)
    pairs, which = np.unique(np.stack([n, right]), axis=1, return_inverse=True)
    values = [favourable(total, good) / math.comb(total, k) for total, good in pairs.T.tolist()]
    return np.array(values, dtype=np.float64)[which.reshape(-1)]

"""Several answers to one step, in one run or in several runs with different seeds: how much of a metric is luck?

None of these metrics is exact match, which is of the first answer only. They have their own names and their own type, so that
none can be mistaken for it. A missing answer counts as wrong, as everywhere.

Sources: M. Chen et al., "Evaluating large language models trained on code" (2021), section 2.1, the unbiased pass@k;
S. Yao et al., "tau-bench" (2024), pass^k; GUIEvalKit paper, Figure 6 (PASS@n).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from guieval.errors import UsageError
from guieval.metrics.columns import RunColumns
from guieval.metrics.intervals import Floats, quoted, spanning
from guieval.metrics.measured import Measured, mean_over_episodes

Luck: TypeAlias = Literal["any", "all", "mean", "vote"]
"""``any``: pass@k, one of k answers is right; ``all``: pass^k, all k are; ``mean``: the share of right answers; ``vote``: the
action most answers agree on is right."""
MOST = 2**31
"""The largest number of answers to a step for which pass@k is computed."""
_WORDS: dict[Luck, str] = {"any": "pass@", "all": "pass^", "mean": "mean@", "vote": "vote@"}
_EXACT = 1000
"""Up to so many factors a probability is computed exactly; beyond that its relative error is below 1e-12."""


class Sampled(NamedTuple):
    """A metric of steps with ``samples`` answers each, of which it concerns ``k``."""

    luck: Luck
    k: int
    samples: int
    measured: Measured

    @property
    def name(self) -> str:
        return f"{_WORDS[self.luck]}{self.k}"


def pass_any(n: NDArray[np.integer], right: NDArray[np.integer], k: int) -> Floats:
    """(m,) pass@k, the chance that at least one of k answers drawn from ``n``, of which ``right`` are right, is right.

    1 - C(n - right, k) / C(n, k), unbiased for independent answers (Chen et al. 2021, equation 1). Raises :class:`UsageError`
    for k below 1 or above some n, and for an n above :data:`MOST`.
    """
    return _per_pair(n, right, k, lambda total, good: float(1 - _chance_of_none(total, good, k)))


def pass_all(n: NDArray[np.integer], right: NDArray[np.integer], k: int) -> Floats:
    """(m,) pass^k, the chance that all k answers drawn from ``n`` are right: C(right, k) / C(n, k).

    Raises :class:`UsageError` as :func:`pass_any` does.
    """
    return _per_pair(n, right, k, lambda total, good: float(_chance_of_none(total, total - good, k)))


def pass_measured(
    luck: Literal["any", "all"],
    n: NDArray[np.integer],
    right: NDArray[np.integer],
    k: int,
    counted: NDArray[np.bool_],
    over_episodes: Callable[[Floats], Floats],
) -> Measured:
    """pass@k (``any``) or pass^k (``all``) over the ``counted`` of m units, and its interval over episodes.

    ``over_episodes`` sums (m,) values within each episode.
    """
    values = (pass_any if luck == "any" else pass_all)(n, right, k)
    total = int(counted.sum())
    if not total:
        return Measured(None, 0)
    above = over_episodes(np.where(counted, values, 0.0))
    interval = quoted(above, over_episodes(counted.astype(np.float64)))
    return Measured(math.fsum(above.tolist()) / total, total, interval=interval)


def sampled(runs: Sequence[RunColumns], protocol: str, luck: Luck, k: int | None = None) -> Sampled:
    """A metric of one run with several answers to each step, or of several runs of the same steps that differ in their seed.

    The answers of all runs are put together; steps that the mode does not reach do not count. Each step counts as having
    :func:`most_drawn` answers of each run; missing ones are wrong. ``k`` defaults to all answers; ``mean`` and ``vote`` are
    over all in any case. If responses are missing, the interval reaches up to that with all of them right.

    Raises :class:`UsageError` for runs of unlike steps, a protocol they were not judged by, a k out of range, a vote over
    several runs, and several runs of a mode that stops, because they reach different steps.
    """
    _check_runs(runs, protocol)
    first, judged = runs[0], [run.judged[protocol] for run in runs]
    if luck == "vote" and len(runs) > 1:
        raise UsageError("a vote is taken among one run's answers to a step, so it needs one run")
    stopping = next((run for run in runs if run.stop == "first-mismatch"), None)
    if stopping is not None and len(runs) > 1:
        raise UsageError(f"runs in mode {stopping.mode!r} reach different steps, which cannot be put together")
    samples = sum(map(most_drawn, runs))
    right: NDArray[np.int64] = np.sum([each.exact_samples for each in judged], axis=0, dtype=np.int64)
    counted = judged[0].reached
    size = samples if k is None or luck in ("mean", "vote") else k
    answered: NDArray[np.int64] = np.sum([run.samples for run in runs], axis=0, dtype=np.int64)
    lost = counted & (answered < samples)

    def found(right: NDArray[np.int64], vote: NDArray[np.bool_]) -> Measured:
        if luck == "any" or luck == "all":
            return pass_measured(luck, np.full(right.shape, samples), right, size, counted, first.per_episode)
        values = vote if luck == "vote" else right / samples
        return mean_over_episodes(first.per_episode(np.where(counted, values, 0.0)), first.per_episode(counted), share=True)

    measured = found(right, judged[0].vote)
    if lost.any():
        possible = found(np.where(lost, right + samples - answered, right), judged[0].vote | lost).interval
        interval = spanning([measured.interval, possible]) if answered[counted].any() else None
        measured = replace(measured, interval=interval)
    return Sampled(luck, size, samples, measured)


def most_drawn(run: RunColumns) -> int:
    """The largest number of answers that were requested for a step of the run."""
    return int((run.samples if run.drawn is None else run.drawn).max(initial=1))


def _check_runs(runs: Sequence[RunColumns], protocol: str) -> None:
    if not runs:
        raise UsageError("there is no run to take samples from")
    for run in runs:
        run.judged_by(protocol)
        same = run.episodes == runs[0].episodes and np.array_equal(run.episode, runs[0].episode)
        if not (same and np.array_equal(run.step_index, runs[0].step_index)):
            raise UsageError(f"{run.title!r} and {runs[0].title!r} do not hold the same steps; cut them to shared steps first")


def _per_pair(n: NDArray[np.integer], right: NDArray[np.integer], k: int, value: Callable[[int, int], float]) -> Floats:
    least, most = (int(n.min()), int(n.max())) if len(n) else (k, 0)
    if k < 1 or k > least:
        raise UsageError(f"{k} answers cannot be drawn where there are {least}; k must be from 1 to that")
    if most > MOST:
        raise UsageError(f"pass@k is not computed for {most:,} answers to a step; the most is {MOST:,}")
    if not len(n):
        return np.empty(0)
    pairs, which = np.unique(np.stack([n, right]), axis=1, return_inverse=True)
    return np.array([value(total, good) for total, good in pairs.T.tolist()], dtype=np.float64)[which.reshape(-1)]


def _chance_of_none(n: int, marked: int, k: int) -> Fraction | float:
    """The chance that k answers drawn from n hold none of the ``marked`` ones: C(n - marked, k) / C(n, k)."""
    few, many = sorted((marked, k))  # both play the same part
    if few + many > n:
        return 0.0
    if few <= _EXACT:
        return Fraction(math.comb(n - many, few), math.comb(n, few))
    if few * many > 800 * n:  # at most exp(-few * many / n), which is 0 among floats
        return 0.0
    return math.exp(np.log1p(-many / (n - np.arange(few, dtype=np.float64))).sum())

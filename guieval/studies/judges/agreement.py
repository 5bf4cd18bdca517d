"""How a judge agrees with the labels of trajectories, and with itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from guieval.data.names import natural_order
from guieval.metrics.intervals import Floats, Interval, mean_of_cells, quoted
from guieval.metrics.measured import Measured, mean_over_episodes
from guieval.metrics.power import independent_steps, intraclass_correlation
from guieval.studies.judges.asking import Found
from guieval.studies.judges.cases import Case

OF = "trajectories"
RESAMPLES = 2000
_Bools: TypeAlias = NDArray[np.bool_]


class Agreement(NamedTuple):
    """A judge against the labels, over the trajectories on which it has a verdict; what it did not answer readably is missing.

    ``sensitivity`` is the share of the successes that it calls successes, ``specificity`` that of the failures that it calls
    failures, ``balanced`` the mean of the two, ``kappa`` Cohen's; ``f1_success`` and ``f1_failure`` take one of them as
    positive, ``precision`` is the share of what it calls successes that are. ``leniency`` is the success rate in its opinion
    minus that of the labels. Intervals are over tasks.
    """

    judged_success: Measured
    success: Measured
    accuracy: Measured
    balanced: Measured
    kappa: Measured
    f1_success: Measured
    f1_failure: Measured
    sensitivity: Measured
    specificity: Measured
    precision: Measured
    leniency: Measured


class LabelsAndVerdicts(NamedTuple):
    """What n trajectories are by their labels and by a judge, and the number of their task, (n,) each; ``missing`` others have
    no verdict."""

    label: _Bools
    said: _Bools
    task: NDArray[np.int64]
    missing: int

    @classmethod
    def of(cls, cases: Sequence[Case], found: Found, repeat: int = 0) -> LabelsAndVerdicts:
        """The verdicts of one repeat."""
        both = [
            (case, judged.verdict == "success")
            for case in cases
            if (judged := found.get((case.id, repeat))) and judged.verdict in ("success", "failure")
        ]
        tasks = {task: number for number, task in enumerate(sorted({case.task for case, _ in both}))}
        return cls(
            np.array([case.label for case, _ in both], dtype=bool),
            np.array([said for _, said in both], dtype=bool),
            np.array([tasks[case.task] for case, _ in both], dtype=np.int64),
            len(cases) - len(both),
        )


def share(judged: LabelsAndVerdicts, above: NDArray[np.generic], below: NDArray[np.generic] | None = None) -> Measured:
    """The sum of ``above`` by that of ``below`` (the number of trajectories), with an interval over tasks."""
    below = np.ones(len(judged.task)) if below is None else below
    sums = [_by_task(judged.task, each) for each in (above, below)]
    found = mean_over_episodes(*sums, share=True)
    return Measured(found.value, found.n, OF, found.count, judged.missing, found.interval)


def _by_task(task: NDArray[np.int64], values: NDArray[np.generic]) -> Floats:
    return np.asarray(np.bincount(task, weights=values.astype(np.float64)) if len(task) else (), dtype=np.float64)


def agreement(judged: LabelsAndVerdicts) -> Agreement:
    """A judge against the labels."""
    label, said, task, missing = judged
    n = len(task)
    sensitivity, specificity = share(judged, label & said, label), share(judged, ~label & ~said, ~label)
    resampled = _resampled(judged)
    return Agreement(
        share(judged, said),
        share(judged, label),
        share(judged, label == said),
        _balanced(judged, sensitivity, specificity),
        Measured(_kappa(label, said), n, OF, missing=missing, interval=_ends(_kappas(resampled)), unit=""),
        replace(share(judged, 2 * (label & said), label.astype(int) + said), n=n),
        replace(share(judged, 2 * (~label & ~said), (~label).astype(int) + ~said), n=n),
        sensitivity,
        specificity,
        share(judged, label & said, said),
        _leniency(judged),
    )


def _leniency(judged: LabelsAndVerdicts) -> Measured:
    """The mean of differences from -1 to 1, whose interval is that of a share."""
    half = share(judged, 1 + judged.said.astype(int) - judged.label, np.full(len(judged.task), 2))
    interval = half.interval and replace(half.interval, low=2 * half.interval.low - 1, high=2 * half.interval.high - 1)
    value = None if half.value is None else 2 * half.value - 1
    return replace(half, value=value, n=len(judged.task), interval=interval, better=None)


def _balanced(judged: LabelsAndVerdicts, sensitivity: Measured, specificity: Measured) -> Measured:
    if sensitivity.value is None or specificity.value is None:
        return Measured(None, 0, OF, missing=judged.missing)
    right, of = (
        np.stack([_by_task(judged.task, each) for each in pair], axis=1)
        for pair in ((judged.label & judged.said, ~judged.label & ~judged.said), (judged.label, ~judged.label))
    )
    value = (sensitivity.value + specificity.value) / 2
    return Measured(value, len(judged.task), OF, missing=judged.missing, interval=quoted(right, of, mean_of_cells))


def _kappa(label: _Bools, said: _Bools) -> float | None:
    """Cohen's kappa; ``None`` if both always say the same one thing, for which it is not defined."""
    if len({*label, *said}) < 2:
        return None
    from sklearn.metrics import cohen_kappa_score

    return float(cohen_kappa_score(label, said))


def _kappas(cells: Floats) -> Floats:
    """(r,) Cohen's kappa of r samples (:func:`_resampled`): scikit-learn's takes one; NaN where it is not defined."""
    n = cells.sum(axis=1)
    one, other = (cells[:, 0] + cells[:, 1]) / n, (cells[:, 0] + cells[:, 2]) / n
    chance = one * other + (1 - one) * (1 - other)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(((cells[:, 0] + cells[:, 3]) / n - chance) / (1 - chance), dtype=np.float64)


def _resampled(judged: LabelsAndVerdicts) -> Floats:
    """(r, 4) numbers of successes called success and called failure, and of failures called so, with tasks drawn anew; no row
    with fewer than two tasks."""
    label, said, task, _ = judged
    pairs = (label & said, label & ~said, ~label & said, ~label & ~said)
    cells = np.stack([_by_task(task, each) for each in pairs], axis=1)
    if len(cells) < 2:
        return np.empty((0, 4))
    counts = np.random.default_rng(0).multinomial(len(cells), np.full(len(cells), 1 / len(cells)), size=RESAMPLES)
    return np.asarray(counts @ cells, dtype=np.float64)


def _ends(values: Floats) -> Interval | None:
    """The percentiles of what is defined of a statistic of resampled tasks."""
    known = values[np.isfinite(values)]
    spread = len(known) > 0 and known.max() - known.min() > 1e-9  # of perfect agreement it would say nothing of its doubt
    low, high = np.quantile(known, (0.025, 0.975)) if spread else (0.0, 0.0)
    return Interval(float(low), float(high), 0.95, "percentile") if spread else None


def independent(task: NDArray[np.int64], values: _Bools) -> float:
    """The number of independent trajectories that are worth as much as these, of which those of one task are alike."""
    groups = [values[task == each] for each in np.unique(task)]
    alike = intraclass_correlation(groups) or 0.0
    lengths = [len(each) for each in groups]
    return independent_steps(lengths, alike) if alike else float(len(values))


def by(cases: Iterable[Case], group: Callable[[Case], str]) -> Mapping[str, list[Case]]:
    """The cases of each group, in the order of the groups' names."""
    found: dict[str, list[Case]] = {}
    for case in cases:
        found.setdefault(group(case), []).append(case)
    return {name: found[name] for name in sorted(found, key=natural_order)}


def length(case: Case) -> str:
    """The group of a trajectory's length."""
    steps = len(case.steps)
    return next((name for most, name in ((5, "1 to 5"), (10, "6 to 10"), (20, "11 to 20")) if steps <= most), "21 or more")


def self_consistency(cases: Sequence[Case], found: Found) -> Measured | None:
    """Of all pairs of a judge's repeats on a case, the share with one verdict; ``None`` without a case with two."""
    pairs, equal = [], []
    for case in cases:
        said = [judged.verdict for (id, _), judged in found.items() if id == case.id]
        pairs.append(len(said) * (len(said) - 1) / 2)
        equal.append(sum(a == b for number, a in enumerate(said) for b in said[:number]))
    if not any(pairs):
        return None
    measured = mean_over_episodes(np.array(equal, dtype=float), np.array(pairs, dtype=float), share=True)
    return Measured(measured.value, measured.n, "pairs of repeats", measured.count, interval=measured.interval)

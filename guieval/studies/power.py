"""``guieval.power``: the smallest difference between two models that steps can detect, before anything is run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from guieval.errors import UsageError
from guieval.given import AnyPath
from guieval.metrics.power import (
    CORRELATION,
    DISAGREEMENT,
    UNKNOWN,
    design_effect,
    even_lengths,
    independent_steps,
    intraclass_correlation,
    needed,
    smallest_paired,
)
from guieval.reports.comparison import compare_runs
from guieval.scoring.matrix import judge_run

Source: TypeAlias = Literal["given", "measured", "assumed"]


@dataclass(frozen=True)
class Power:
    """What a number of steps in episodes can detect between two models, with ``power`` at the two-sided level ``alpha``.

    ``smallest`` is the smallest detectable difference in exact match, a fraction, ``None`` if the steps are too few for any.
    ``steps_for_difference`` are the steps needed to detect the ``difference`` that was asked for, if there was one.
    ``disagreement`` is the share of steps on which one of the two models alone is right, ``icc`` the correlation of their
    difference within episodes, and ``disagreement_is`` and ``icc_is`` are where they come from. The steps are worth
    ``independent_steps``, which are the steps / ``design_effect``.
    """

    steps: int
    episodes: int
    independent_steps: float
    icc: float
    design_effect: float
    disagreement: float
    power: float
    alpha: float
    icc_is: Source
    disagreement_is: Source
    smallest: float | None
    steps_for_difference: float | None


class _Measured(NamedTuple):
    """The lengths of episodes, and what two runs of them say of their difference; ``None`` if there are not two."""

    lengths: list[int]
    disagreement: float | None = None
    icc: float | None = None


def power(
    run: AnyPath | None = None,
    other: AnyPath | None = None,
    *,
    steps: int | None = None,
    episodes: int | None = None,
    difference: float | None = None,
    disagreement: float | None = None,
    icc: float | None = None,
    power: float = 0.8,
    alpha: float = 0.05,
) -> Power:
    """The smallest difference in exact match that steps can detect, as ``guieval study power`` prints it.

    The arguments are those of the command. Raises :class:`guieval.errors.UsageError` for whatever it refuses.
    """
    if (run is None) == (steps is None):
        raise UsageError("give a run, or two, or --steps with their number")
    if run is None:
        found = _Measured(_even(steps or 0, episodes or steps or 0))
    else:
        found = _Measured(_lengths(Path(run))) if other is None else _of_two(Path(run), Path(other))
    share, share_from = _chosen(disagreement, found.disagreement, DISAGREEMENT)
    correlation, correlation_from = _chosen(icc, found.icc, CORRELATION)
    lengths = found.lengths
    effect = design_effect(lengths, correlation)
    independent = independent_steps(lengths, correlation)
    wanted = None
    if difference is not None:
        try:
            wanted = needed(difference / 100, share, power, alpha) * effect + UNKNOWN * sum(lengths) / len(lengths)
        except ValueError as error:
            raise UsageError(f"--difference {difference:g}: {error}") from None
    smallest = smallest_paired(independent, share, power, alpha)
    return Power(
        steps=sum(lengths),
        episodes=len(lengths),
        independent_steps=independent,
        icc=correlation,
        design_effect=effect,
        disagreement=share,
        power=power,
        alpha=alpha,
        icc_is=correlation_from,
        disagreement_is=share_from,
        smallest=smallest,
        steps_for_difference=wanted,
    )


def _chosen(given: float | None, measured: float | None, assumed: float) -> tuple[float, Source]:
    if given is not None:
        return given, "given"
    return (assumed, "assumed") if measured is None else (measured, "measured")


def _even(steps: int, episodes: int) -> list[int]:
    if episodes > steps:
        raise UsageError(f"--episodes {episodes} is more than the {steps} steps")
    return even_lengths(steps, episodes)


def _lengths(directory: Path) -> list[int]:
    columns = judge_run(directory).columns()
    return [int(length) for length in np.bincount(columns.episode)]


def _of_two(first: Path, second: Path) -> _Measured:
    """On the steps that both runs answered; runs that cannot be compared are refused as `guieval compare` does."""
    found = compare_runs(first, second)
    runs = [(run, next(iter(run.judged.values()))) for run in (found.first, found.second)]
    both = np.logical_and.reduce([judged.measured for _, judged in runs])
    if not both.any():
        raise UsageError(f"no step was answered in both {str(first)!r} and {str(second)!r}")
    one, other = (judged.exact_match.astype(np.int8)[both] for _, judged in runs)
    opens = np.flatnonzero(np.diff(found.first.episode[both], prepend=-1))
    differences = np.split(one - other, opens[1:])
    disagreement = float((one != other).mean())
    if not disagreement:
        raise UsageError(f"{str(first)!r} and {str(second)!r} are right and wrong on the same steps: there is no difference")
    return _Measured([len(each) for each in differences], disagreement, intraclass_correlation(differences))

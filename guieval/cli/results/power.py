"""``guieval power``: the smallest difference between two models that steps can detect, before anything is run."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np
import typer

from guieval.cli.settings import path_argument
from guieval.cli.tables import JSON, print_json, say
from guieval.data.doctor.counts import counted
from guieval.errors import UsageError
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
from guieval.metrics.rounding import percentage
from guieval.reports.comparison import compare_runs
from guieval.scoring.matrix import judge_run


class _Measured(NamedTuple):
    """The lengths of episodes, and what two runs of them say of their difference; ``None`` where there are not two."""

    lengths: list[int]
    disagreement: float | None = None
    icc: float | None = None


def power(
    run: Annotated[Path | None, path_argument("RUN", "A run, for its steps.")] = None,
    other: Annotated[
        Path | None, path_argument("OTHER", "A second run of them, for how the two differ: disagreement and correlation.")
    ] = None,
    steps: Annotated[int | None, typer.Option(min=1, help="Number of steps, in place of runs.")] = None,
    episodes: Annotated[int | None, typer.Option(min=1, help="Number of their episodes (default: one per step).")] = None,
    difference: Annotated[float | None, typer.Option(help="Points: print the steps needed to detect this difference.")] = None,
    disagreement: Annotated[
        float | None,
        typer.Option(
            min=0.001,
            max=1,
            help=f"Share of steps on which exactly one of two models is right (default: two runs', else {DISAGREEMENT}).",
        ),
    ] = None,
    icc: Annotated[
        float | None,
        typer.Option(
            min=0, max=1, help=f"Correlation of the difference within episodes (default: two runs', else {CORRELATION})."
        ),
    ] = None,
    power: Annotated[float, typer.Option(min=0.5, max=0.999, help="Probability of detecting the difference.")] = 0.8,
    alpha: Annotated[float, typer.Option(min=0.0001, max=0.5, help="Level of the two-sided test.")] = 0.05,
    json: JSON = False,
) -> None:
    """Print the smallest difference in exact match between two models that a number of steps can detect."""
    if (run is None) == (steps is None):
        raise UsageError("give a run, or two, or --steps with their number")
    if run is None:
        found = _Measured(_even(steps or 0, episodes or steps or 0))
    else:
        found = _Measured(_lengths(run)) if other is None else _of_two(run, other)
    share, share_from = _chosen(disagreement, found.disagreement, DISAGREEMENT)
    correlation, correlation_from = _chosen(icc, found.icc, CORRELATION)
    lengths = found.lengths
    effect = design_effect(lengths, correlation)
    independent = independent_steps(lengths, correlation)
    smallest = smallest_paired(independent, share, power, alpha)
    wanted = None
    if difference is not None:
        try:
            wanted = needed(difference / 100, share, power, alpha) * effect + UNKNOWN * sum(lengths) / len(lengths)
        except ValueError as error:
            raise UsageError(f"--difference {difference:g}: {error}") from None
    if json:
        counts = {"steps": sum(lengths), "episodes": len(lengths), "icc": correlation, "design_effect": effect}
        given = {"disagreement": share, "power": power, "alpha": alpha}
        sources = {"icc_is": correlation_from, "disagreement_is": share_from}
        print_json({**counts, **given, **sources, "smallest": smallest, "steps_for_difference": wanted})
        return
    number = counted(sum(lengths), "step")
    say(f"steps:      {number} of {counted(len(lengths), 'episode')}, equivalent to {independent:,.0f} independent steps")
    few = f"{number} {'is' if sum(lengths) == 1 else 'are'} too few to detect any difference"
    detected = few if smallest is None else f"{100 * smallest:.1f} points"
    say(f"detectable: {detected} (power {percentage(power, '.0f')} %, level {alpha:g})")
    if wanted is not None:
        points = f"{difference:g} point{'s' * (difference != 1)}"
        say(f"needed:     {counted(math.ceil(wanted), 'step')} to detect {points}, in episodes of the same lengths")
    digits = ".1f" if share_from == "measured" else ".0f"
    say(f"assuming:   one model alone is right on {percentage(share, digits)} % of the steps ({share_from}),")
    say(f"            icc of the difference within episodes {correlation:.2f} ({correlation_from})")
    if "assumed" in (share_from, correlation_from):
        say("            (guieval power RUN OTHER measures both with two runs)")


def _chosen(given: float | None, measured: float | None, assumed: float) -> tuple[float, str]:
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

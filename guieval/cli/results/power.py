"""``guieval power``: the smallest difference between two models that steps can detect, before anything is run."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from guieval.cli.settings import path_argument
from guieval.cli.tables import JSON, print_json, say
from guieval.data.doctor.counts import counted
from guieval.errors import UsageError
from guieval.metrics.power import (
    CORRELATION,
    DISAGREEMENT,
    design_effect,
    even_lengths,
    intraclass_correlation,
    needed,
    smallest_paired,
)
from guieval.metrics.rounding import percentage
from guieval.scoring.matrix import judge_run


def power(
    run: Annotated[Path | None, path_argument("RUN", "A run, for its steps and their correlation within episodes.")] = None,
    steps: Annotated[int | None, typer.Option(min=1, help="Number of steps, in place of a run.")] = None,
    episodes: Annotated[int | None, typer.Option(min=1, help="Number of their episodes (default: one per step).")] = None,
    difference: Annotated[float | None, typer.Option(help="Points: print the steps needed to detect this difference.")] = None,
    disagreement: Annotated[
        float, typer.Option(min=0.001, max=1, help="Share of the steps on which exactly one of two models is right.")
    ] = DISAGREEMENT,
    icc: Annotated[
        float | None, typer.Option(min=0, max=1, help=f"Correlation within episodes (default: the run's, else {CORRELATION}).")
    ] = None,
    power: Annotated[float, typer.Option(min=0.5, max=0.999, help="Probability of detecting the difference.")] = 0.8,
    alpha: Annotated[float, typer.Option(min=0.0001, max=0.5, help="Level of the two-sided test.")] = 0.05,
    json: JSON = False,
) -> None:
    """Print the smallest difference in exact match between two models that a number of steps can detect."""
    if (run is None) == (steps is None):
        raise UsageError("give a run, or --steps with their number")
    if run is not None:
        lengths, measured = _of_run(run)
    else:
        lengths, measured = _even(steps or 0, episodes or steps or 0), None
    correlation = icc if icc is not None else CORRELATION if measured is None else measured
    effect = design_effect(lengths, correlation)
    smallest = smallest_paired(sum(lengths) / effect, disagreement, power, alpha)
    wanted = None
    if difference is not None:
        try:
            wanted = needed(difference / 100, disagreement, power, alpha) * effect
        except ValueError as error:
            raise UsageError(f"--difference {difference:g}: {error}") from None
    if json:
        counts = {"steps": sum(lengths), "episodes": len(lengths), "icc": correlation, "design_effect": effect}
        given = {"disagreement": disagreement, "power": power, "alpha": alpha}
        print_json({**counts, **given, "smallest": smallest, "steps_for_difference": wanted})
        return
    number, independent = counted(sum(lengths), "step"), f"{sum(lengths) / effect:,.0f} independent steps"
    say(f"steps:      {number} of {counted(len(lengths), 'episode')}, equivalent to {independent}")
    few = f"{number} {'is' if sum(lengths) == 1 else 'are'} too few to detect any difference"
    found = few if smallest is None else f"{100 * smallest:.1f} points"
    say(f"detectable: {found} (power {percentage(power, '.0f')} %, level {alpha:g})")
    if wanted is not None:
        points = f"{difference:g} point{'s' * (difference != 1)}"
        say(f"needed:     {counted(math.ceil(wanted), 'step')} to detect {points}, in episodes of the same lengths")
    source = "assumed" if icc is None and measured is None else "given" if icc is not None else "measured in the run"
    share = percentage(disagreement, ".0f")
    say(f"assuming:   exactly one of the two models is right on {share} % of the steps; icc {correlation:.2f} ({source})")


def _even(steps: int, episodes: int) -> list[int]:
    """Episodes as even as possible."""
    if episodes > steps:
        raise UsageError(f"--episodes {episodes} is more than the {steps} steps")
    return even_lengths(steps, episodes)


def _of_run(directory: Path) -> tuple[list[int], float | None]:
    columns = judge_run(directory).columns()
    judged = next(iter(columns.judged.values()))
    right = np.split(judged.exact_match & judged.measured, columns.starts[1:])
    return [len(each) for each in right], intraclass_correlation(right)

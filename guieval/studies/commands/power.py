"""``guieval study power``: the smallest difference between two models that steps can detect, before anything is run."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

import typer

from guieval.cli.settings import path_argument
from guieval.cli.tables import JSON, print_json, say
from guieval.data.doctor.counts import counted
from guieval.metrics.power import CORRELATION, DISAGREEMENT
from guieval.metrics.rounding import percentage
from guieval.studies.power import power as power_of


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
    found = power_of(
        run,
        other,
        steps=steps,
        episodes=episodes,
        difference=difference,
        disagreement=disagreement,
        icc=icc,
        power=power,
        alpha=alpha,
    )
    if json:
        print_json(found)
        return
    number = counted(found.steps, "step")
    independent = f"equivalent to {found.independent_steps:,.0f} independent steps"
    say(f"steps:      {number} of {counted(found.episodes, 'episode')}, {independent}")
    few = f"{number} {'is' if found.steps == 1 else 'are'} too few to detect any difference"
    detected = few if found.smallest is None else f"{100 * found.smallest:.1f} points"
    say(f"detectable: {detected} (power {percentage(power, '.0f')} %, level {alpha:g})")
    if found.steps_for_difference is not None:
        points = f"{difference:g} point{'s' * (difference != 1)}"
        wanted = counted(math.ceil(found.steps_for_difference), "step")
        say(f"needed:     {wanted} to detect {points}, in episodes of the same lengths")
    digits = ".1f" if found.disagreement_is == "measured" else ".0f"
    share = f"{percentage(found.disagreement, digits)} % of the steps ({found.disagreement_is})"
    say(f"assuming:   one model alone is right on {share},")
    say(f"            icc of the difference within episodes {found.icc:.2f} ({found.icc_is})")
    if "assumed" in (found.disagreement_is, found.icc_is):
        say("            (guieval study power RUN OTHER measures both with two runs)")

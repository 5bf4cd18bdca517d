"""What a campaign's trainings need before they begin: a row for each with its GPU hours, and the evaluations of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from guieval.cli.tables import say, show
from guieval.data.doctor.counts import counted
from guieval.reports.tables.table import Column, Row, Table, columns
from guieval.running.campaign import PlannedRun
from guieval.running.estimate import Estimate
from guieval.training.trainings import PlannedTraining, costs, hours
from guieval.training.work import REACHED

STATED = "stated sizes"
"""The source of hours that are computed without the data."""


def show_plan(trainings: Sequence[PlannedTraining], runs: Sequence[PlannedRun], found: Mapping[Path, Estimate]) -> None:
    """Print the trainings with what is left of each, and the evaluations that follow each of them."""
    from guieval.training.study import check_trainings, forecasts

    known_before = forecasts(trainings, check_trainings(trainings))
    steps = {name: each.steps for name, each in known_before.items()}
    left = list(costs(trainings, steps, {name: each.gpu_hours for name, each in known_before.items()}))
    started = any(each.starts_from is not None for each in trainings)
    rows: list[Row] = []
    for each, cost in zip(trainings, left, strict=True):
        first = [each.starts_from.name if each.starts_from is not None else None] * started
        amount = None if cost.left is None else hours(cost.left) if cost.left else "0"
        source = cost.source if cost.source != "computed" or known_before[each.name].measured else STATED
        rows.append((each.name, each.recipe.stem, *first, each.state, steps.get(each.name), amount, source))
    words = [Column(name, right=False) for name in ("training", "recipe", *["starts from"] * started, "state")]
    heads = (*words, Column("optimiser\nsteps"), Column("GPU hours\nleft"), Column("source", right=False))
    how = [f"computed: at {REACHED:g} TFLOP/s of each GPU, without decoding and evaluations (`guieval train plan`)"]
    how += [f"{STATED}: the same, of the sizes that the settings state until the data is there"] * any(
        row[-1] == STATED for row in rows
    )
    notes = how if any(cost.source == "computed" for cost in left) else []
    listed = Table("Trainings", heads, tuple(rows), tuple(notes), keys=1)
    known = [cost.left for cost in left if cost.left is not None]
    unknown = len(left) - len(known)
    text = f"about {hours(sum(known))} GPU hours for what is left of {counted(len(known), 'training')}" if any(known) else ""
    if unknown:
        text = f"{text}; " if text else "GPU hours "
        text += f"unknown of {counted(unknown, 'training')}, until a training of the same recipe has made its first steps"
    of_each: dict[str, tuple[int, Estimate | None]] = {}
    for run in runs:
        number, estimate = of_each.get(run.rest, (0, None))
        of_each[run.rest] = (number + 1, estimate or found.get(run.directory))
    each_rest: list[Row] = [
        (rest, number, None if estimate is None else estimate.steps) for rest, (number, estimate) in of_each.items()
    ]
    show(listed, Table("Evaluations", columns("benchmark and mode", "runs", "steps of each", keys=1), tuple(each_rest)))
    say(f"training: {text or 'nothing is left to train'}")

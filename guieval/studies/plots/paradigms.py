"""Kinds of evaluation by what they cost and what they tell: tasks an hour, number of tasks, and R² with success online.

Source: UI-S1 paper, Figure 7 (offline, semi-online and online evaluation by efficiency, diversity and correlation).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from guieval.errors import UsageError
from guieval.journal import RunFolder
from guieval.reports.leaderboards.published_results import Joined
from guieval.reports.plots.drawn import check_labels
from guieval.reports.plots.paper import LOOKS, Width, drawing, label_axes
from guieval.running.estimate import duration
from guieval.studies.correlation.coefficients import correlate
from guieval.studies.correlation.predictors import common

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Paradigm(NamedTuple):
    """One kind of evaluation: tasks (or episodes) an hour by the clock, how many, and R² of its metric with the live one."""

    name: str
    per_hour: float
    tasks: int
    r2: float


def paradigms(
    runs: Sequence[Path], labels: Sequence[str] | None, tables: Joined, x: Sequence[str], y: str
) -> tuple[list[Paradigm], int]:
    """One run for each column ``x``, in order, and the online one, of ``y``, last; with the number of models of the R².

    R² is of a straight line over the models that have all columns; of the online run it is 1. The clock runs from a run's
    beginning to its metrics, at the concurrency that it had. Raises :class:`UsageError` for a wrong number of runs or labels,
    and a run that is not finished.
    """
    if len(runs) != len(x) + 1:
        raise UsageError(
            f"paradigms needs a run for each --x, in order, and the online one last: {len(x)} --x and {len(runs)} runs"
        )
    check_labels(labels, len(runs))
    models, metrics, live, _ = common({name: tables.pairs(name, y) for name in x})
    fits = [correlate(metrics[name], live).r2 for name in x]
    found = []
    for place, (run, r2) in enumerate(zip(runs, [*fits, 1.0], strict=True)):
        seconds = duration(run)
        if seconds is None or r2 is None:
            raise UsageError(
                f"the run {str(run)!r} is not finished, so its time is not known" if seconds is None else f"{y!r} does not vary"
            )
        tasks = len(RunFolder(run).plan)
        name = RunFolder(run).manifest.mode.label if labels is None else labels[place]
        found.append(Paradigm(name, 3600 * tasks / seconds, tasks, r2))
    return found, len(models)


def three_axes(found: Sequence[Paradigm], width: Width = "two-column") -> Figure:
    """A panel for each axis, a bar for each kind of evaluation; tasks an hour and their number are on logarithmic axes."""
    panels = [
        ("tasks an hour", [each.per_hour for each in found], "{:,.0f}"),
        ("tasks", [float(each.tasks) for each in found], "{:,.0f}"),
        ("R² with success online", [each.r2 for each in found], "{:.2f}"),
    ]
    across = 3 if width == "two-column" else 1
    with drawing(width, (0.26 * len(found) + 0.5) * (3 // across)) as figure:
        grid = figure.subplots(3 // across, across, sharey=True, squeeze=False)
        for axes, (words, values, form) in zip(grid.flat, panels, strict=True):
            for row, value in enumerate(values):
                look = LOOKS[row % len(LOOKS)]
                axes.barh([row], [value], 0.62, color=look.colour, hatch=look.hatch, edgecolor="black", linewidth=0.5)
                axes.annotate(
                    form.format(value), (value, row), xytext=(3, 0), textcoords="offset points", va="center", fontsize=6
                )
            if words.startswith("R²"):
                axes.set_xlim(0, 1.25)
            else:
                axes.set_xscale("log")
                axes.set_xlim(min(1.0, *values), 6 * max(values))
            label_axes(axes, words, "")
            axes.grid(visible=False, axis="y")
            axes.set_yticks(range(len(found)), [each.name for each in found])
        grid.flat[0].set_ylim(len(found) - 0.5, -0.5)
    return figure

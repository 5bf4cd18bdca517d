"""Accuracy against what it costs in tokens or money: a mark for each run, and the front of runs that no other one beats."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from guieval.metrics.front import Spent, fronts
from guieval.reports.plots.paper import Width, drawing, interval_ends, label_axes, legend, looks

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def pareto(runs: Sequence[Spent], metric_name: str, axis: str, width: Width) -> Figure:
    """The runs with 95 % intervals, and the front of each mode as steps. Raises :class:`UsageError` for no run, or too many."""
    looks_of = looks([run.name for run in runs])
    with drawing(width, 2.1) as figure:
        axes = figure.add_subplot()
        for best in fronts(runs):
            axes.step([run.spent for run in best], [100 * run.value for run in best], where="post", color="0.6", linewidth=0.8)
        handles = []
        for run, low, high in zip(runs, *interval_ends(run.share for run in runs), strict=True):
            look = looks_of[run.name]
            axes.vlines(run.spent, low, high, color=look.colour, linewidth=0.8)
            handles += axes.plot([run.spent], [100 * run.value], color=look.colour, marker=look.marker, linestyle="")
        axes.set_xlim(left=0)
        label_axes(axes, axis, f"{metric_name} (%)", "both")
        legend(figure, handles, [run.name for run in runs])
    return figure

"""Trainings over their optimiser steps: one panel for each metric of the log, one curve for each series, bands over seeds."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import fill
from typing import TYPE_CHECKING

from guieval.reports.plots.paper import Width, drawing, interval_ends, label_axes, legend, looks
from guieval.studies.training_curves import FIGURES, TrainingCurves

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_COLUMNS = {"column": 2, "two-column": 4}
_HEIGHT = 1.45
SHARES = frozenset(shown.title for shown in FIGURES if shown.share)
BOUNDS = -3.0, 103.0
"""Of an axis of per cent, with room for the line itself."""


def training(series: Sequence[TrainingCurves], width: Width = "two-column") -> Figure:
    """Every metric that some series has. Raises :class:`guieval.errors.UsageError` for more series than there are looks."""
    styles = looks([each.label for each in series])
    titles = [shown.title for shown in FIGURES if any(shown.title in each.curves for each in series)]
    columns = min(_COLUMNS[width], len(titles))
    rows = -(-len(titles) // columns)
    with drawing(width, _HEIGHT * rows + 0.2) as figure:
        last = max(point.step for each in series for points in each.curves.values() for point in points) or 1
        handles = {}
        grid = figure.subplots(rows, columns, squeeze=False).flatten()
        for axes, title in zip(grid, titles, strict=False):
            for each in series:
                if (points := each.curves.get(title)) is None:
                    continue
                look = styles[each.label]
                steps = [point.step for point in points]
                few = "" if len(points) > 12 else look.marker
                (handles[each.label],) = axes.plot(
                    steps, [point.mean.value for point in points], color=look.colour, linestyle=look.line, marker=few
                )
                lower, upper = interval_ends((point.mean for point in points), 1.0)
                axes.fill_between(steps, lower, upper, color=look.colour, alpha=0.18, linewidth=0)
            axes.set_title(fill(title, 24), fontsize=7)
            label_axes(axes, "optimiser step" if title in titles[-columns:] else "", "")
            axes.ticklabel_format(axis="y", scilimits=(-3, 5))
            axes.set_xlim(0, 1.02 * last)
            if title in SHARES:  # Student's interval over a few seeds may go beyond what a share can be
                low, high = axes.get_ylim()
                axes.set_ylim(max(low, BOUNDS[0]), min(high, BOUNDS[1]))
        for axes in grid[len(titles) :]:
            axes.set_axis_off()
        if len(series) > 1:
            legend(figure, list(handles.values()), list(handles))
    return figure

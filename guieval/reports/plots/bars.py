"""Bars: how well runs do on each action type (or app, episode length, ...), side by side, with intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from guieval.metrics.breakdown import Cell
from guieval.reports.plots.cells import counted, ordered
from guieval.reports.plots.paper import Width, drawing, legend, looks, percent_axis

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_BAR = 0.105
"""Inches, the height of one bar; with less, a hatch cannot be made out."""


def bars(runs: Mapping[str, Sequence[Cell]], words: str = "exact match (%)", width: Width = "column") -> Figure:
    """Exact match of each cell (:func:`guieval.metrics.breakdown.breakdown`) as a bar, one for each named run.

    Bars are horizontal, so that names of action types fit a narrow column; the number of steps is below each name. Whiskers are
    the cells' intervals; a cell without one has none, a run without the cell no bar. ``words`` name the axis.
    Raises :class:`guieval.errors.UsageError` for no run, no cell, or too many runs.
    """
    looks_of = looks(list(runs) if any(runs.values()) else [])
    labels = ordered(cell.label for cells in runs.values() for cell in cells)
    pitch = max(len(runs) * _BAR + 0.08, 0.29)  # two lines of text must fit beside a group of bars
    height = len(labels) * pitch + 0.5
    thick = _BAR / pitch if len(runs) > 1 else 0.55
    with drawing(width, height) as figure:
        from matplotlib.patches import Patch

        axes = figure.add_subplot()
        handles = []
        for place, (name, cells) in enumerate(runs.items()):
            look, held = looks_of[name], {cell.label: cell for cell in cells}
            rows = [row for row, label in enumerate(labels) if label in held]
            shown = [held[labels[row]] for row in rows]
            at = np.array(rows) + (place - (len(runs) - 1) / 2) * thick
            shares = [100 * cell.exact_match for cell in shown]
            axes.barh(at, shares, thick, color=look.colour, hatch=look.hatch, edgecolor="black", linewidth=0.5, label=name)
            handles.append(Patch(facecolor=look.colour, hatch=look.hatch, edgecolor="black", linewidth=0.5))
            for middle, cell in zip(at.tolist(), shown, strict=True):
                if cell.interval is not None:
                    ends = [100 * cell.interval.low, 100 * cell.interval.high]
                    # White below black, or the whisker is lost in a hatch.
                    axes.plot(ends, [middle] * 2, color="white", linewidth=2.0, solid_capstyle="butt", zorder=3)
                    axes.plot(
                        ends, [middle] * 2, color="black", linewidth=0.8, marker="|", markersize=2.5, zorder=4, clip_on=False
                    )
        axes.set_yticks(range(len(labels)), [f"{label}\n{counted(label, runs)}" for label in labels])
        axes.tick_params(axis="y", length=0)
        axes.set_ylim(len(labels) - 0.5, -0.5)
        percent_axis(axes, "x", words)
        if len(runs) > 1:
            legend(figure, handles, list(runs))
    return figure

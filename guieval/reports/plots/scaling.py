"""A metric against the size of the training data: measured points, fitted curves and the intervals of these.

Source: GUIEvalKit paper (log-linear in episodes); UI-S1 paper, Figure 4 (exponential).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from guieval.reports.plots.paper import Width, drawing, legend, looks

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Trend:
    """One series: its points, and a curve of m points (``along``, ``curve``) with the interval from ``low`` to ``high``."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    along: Sequence[float]
    curve: Sequence[float]
    low: Sequence[float]
    high: Sequence[float]


def scaling(trends: Sequence[Trend], x: str, y: str, *, doublings: bool, width: Width = "column") -> Figure:
    """Every series with its curve and its interval; ``x`` and ``y`` name the axes, ``doublings`` scales x by powers of 2.

    A legend names the series when there are several. Raises :class:`UsageError` for none, or for more than there are looks.
    """
    styles = looks([trend.name for trend in trends])
    with drawing(width, 2.2) as figure:
        axes = figure.subplots()
        handles = []
        for trend in trends:
            look = styles[trend.name]
            axes.fill_between(trend.along, trend.low, trend.high, color=look.colour, alpha=0.18, linewidth=0)
            axes.plot(trend.along, trend.curve, color=look.colour, linestyle=look.line)
            handles += axes.plot(trend.x, trend.y, color=look.colour, marker=look.marker, linestyle="", label=trend.name)
        if doublings:
            axes.set_xscale("log", base=2)
            axes.xaxis.set_major_formatter("{x:,.0f}")
        measured = [value for trend in trends for value in trend.y]
        room = 0.3 * (max(measured) - min(measured)) or 1.0  # intervals may run far out where there is little data
        axes.set_ylim(min(measured) - room, max(measured) + room)
        axes.grid(axis="y", color="0.85", linewidth=0.5)
        axes.set_axisbelow(True)
        axes.set_xlabel(x)
        axes.set_ylabel(y)
        if len(trends) > 1:
            legend(figure, handles, [trend.name for trend in trends])
    return figure

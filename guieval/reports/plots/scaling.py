"""A metric against a quantity of the training data or of the history: points, and the curves fitted to them.

Sources: GUIEvalKit paper (log-linear in episodes; Figure 5, the online source ratio, which is defined in
:mod:`guieval.analysis.mix_sweep.sweep`); UI-S1 paper, Figure 4 (exponential).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from guieval.errors import UsageError
from guieval.reports.plots.paper import Width, drawing, label_axes, legend, looks

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
        label_axes(axes, x, y)
        if len(trends) > 1:
            legend(figure, handles, [trend.name for trend in trends])
    return figure


def mixing(
    regimes: Mapping[str, Sequence[tuple[float, float]]], rho: Mapping[str, float | None], width: Width = "column"
) -> Figure:
    """The points (OSR, exact match; fractions) of each regime, with their Spearman correlation ``rho`` in the legend.

    The more points, the smaller and fainter they are. The axis of exact match spans only the data, because the effect is a few
    percentage points. Raises :class:`UsageError` without any point.
    """
    drawn = {name: points for name, points in regimes.items() if points}
    if not drawn:
        raise UsageError("no setting has a past to draw")
    styles = looks(list(drawn))
    count = sum(map(len, drawn.values()))
    size, ink = (2.2, 0.55) if count > 200 else (3.5, 0.8)
    with drawing(width, 2.4) as figure:
        from matplotlib.lines import Line2D

        axes = figure.add_subplot()
        handles, names = [], []
        for name, points in drawn.items():
            look = styles[name]
            x, y = zip(*((100 * osr, 100 * exact) for osr, exact in points), strict=True)
            axes.plot(x, y, color=look.colour, marker=look.marker, linestyle="", markersize=size, alpha=ink, markeredgewidth=0)
            handles.append(Line2D([], [], color=look.colour, marker=look.marker, linestyle="", markersize=4.5))
            value = rho.get(name)
            names.append(name if value is None else f"{name} ($R_s$ = {value:.3f})")
        label_axes(axes, "online source ratio (%)", "step exact match (%)", "both")
        legend(figure, handles, names)
    return figure

"""Exact match against the online source ratio, a point for each setting of history mixing.

Source: GUIEvalKit paper, Figure 5; the ratio is defined in :mod:`guieval.analysis.mix_sweep.sweep`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from guieval.errors import UsageError
from guieval.reports.plots.paper import Width, drawing, legend, looks

if TYPE_CHECKING:
    from matplotlib.figure import Figure


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
        axes.grid(color="0.85", linewidth=0.5)
        axes.set_axisbelow(True)
        axes.set_xlabel("online source ratio (%)")
        axes.set_ylabel("step exact match (%)")
        legend(figure, handles, names)
    return figure

"""A metric against a quantity of the training data or of the history: points, and the curves fitted to them.

Sources: GUIEvalKit paper (log-linear in episodes; Figure 5, the online source ratio, which is defined in
:mod:`guieval.studies.mix_sweep.sweep`); UI-S1 paper, Figure 4 (exponential).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from guieval.errors import UsageError
from guieval.reports.plots.paper import Width, drawing, label_axes, legend, looks
from guieval.studies.scaling import ScalingFit, ScalingSeries
from guieval.studies.trained import GPU_HOURS, Points

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def scaling(fits: Sequence[tuple[ScalingSeries, ScalingFit]], x: str, width: Width = "column") -> Figure:
    """Every series with its law, all of one form, and the law's interval; ``x`` names the axis of sizes.

    A legend names the series when there are several. Raises :class:`UsageError` for none, or for more than there are looks.
    """
    styles = looks([series.name for series, _ in fits])
    doublings = fits[0][1].form == "log-linear"
    with drawing(width, 2.2) as figure:
        axes = figure.subplots()
        handles = []
        for series, law in fits:
            look = styles[series.name]
            along = (np.geomspace if doublings else np.linspace)(min(series.sizes), max(series.sizes), 200)
            axes.fill_between(along, *law.band(along), color=look.colour, alpha=0.18, linewidth=0)
            axes.plot(along, law.at(along), color=look.colour, linestyle=look.line)
            handles += axes.plot(
                series.sizes, series.values, color=look.colour, marker=look.marker, linestyle="", label=series.name
            )
        if doublings:
            axes.set_xscale("log", base=2)
            axes.xaxis.set_major_formatter("{x:,.0f}")
        measured = [value for series, _ in fits for value in series.values]
        room = 0.3 * (max(measured) - min(measured)) or 1.0  # intervals may run far out if there is little data
        axes.set_ylim(min(measured) - room, max(measured) + room)
        label_axes(axes, x, fits[0][0].y)
        if len(fits) > 1:
            legend(figure, handles, [series.name for series, _ in fits])
    return figure


def against_setting(found: Points, width: Width = "column") -> Figure:
    """The points of trainings, joined in each series; settings that are not all numbers are places in their order."""
    styles = looks(list(found.series))
    values = [value for own in found.series.values() for value, _ in own]
    places = list(dict.fromkeys(map(str, values)))
    numbers = all(isinstance(value, int | float) for value in values)
    with drawing(width, 2.2) as figure:
        axes = figure.subplots()
        handles = []
        for name, own in found.series.items():
            look = styles[name]
            line = sorted((value if numbers else places.index(str(value)), y) for value, y in own)
            across, up = zip(*line, strict=True)
            handles += axes.plot(across, up, color=look.colour, marker=look.marker, linestyle=look.line, label=name)
        if not numbers:
            axes.set_xticks(range(len(places)), ["null" if place == "None" else place for place in places])
        elif min(values) > 0 and max(values) >= 16 * min(values):
            axes.set_xscale("log", base=2)
            axes.xaxis.set_major_formatter("{x:,.0f}")
        label_axes(axes, found.x, "GPU hours" if found.y == GPU_HOURS else found.y)
        if len(found.series) > 1:
            legend(figure, handles, list(found.series))
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

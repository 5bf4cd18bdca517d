"""Pictures of decisions: PASS@n, how diversity is distributed, and what shifts between two runs.

Source: the kinds of figures 4, 6, 7 and 8 of the GUIEvalKit paper; :mod:`guieval.studies.decisions` defines them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from guieval.errors import UsageError
from guieval.reports.plots.heat import ink
from guieval.reports.plots.paper import LOOKS, Width, drawing, label_axes, legend, looks, percent_axis
from guieval.reports.plots.samples import samples
from guieval.studies.decisions.measures import LEVELS, DecisionColumns, pass_at, pass_sizes
from guieval.studies.decisions.points import Ints
from guieval.studies.decisions.shifts import TRENDS, Shifts

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BIN = 0.25
"""Width of a bar of diversity, in nats."""
_STEADINESS = {"dec": "less stable", "negl": "as stable", "inc": "more stable"}
_SUPPORT = {"dec": "narrower", "negl": "same", "inc": "wider"}
_STACK = (LOOKS[5], None, LOOKS[2])
"""How steps that got less, as, and more stable are filled; as stable is plain grey."""


def pass_curves(runs: Sequence[DecisionColumns], width: Width = "column") -> Figure:
    """PASS@n of each run against n, with intervals over episodes (Figure 6).

    Raises :class:`UsageError` if every step has one execution, or for more runs than there are looks.
    """
    found = {run.title: [pass_at(run, k) for k in pass_sizes(run)] for run in runs}
    return samples(found, width=width)


def diversities(runs: Sequence[DecisionColumns], width: Width = "column") -> Figure:
    """The share of each run's steps by their diversity, in bars 0.25 nats wide (Figure 7).

    The share is on a logarithmic scale, because most steps have hardly any diversity and the few others are of interest; a mark
    on the axis below is the run's mean. Raises :class:`UsageError` for no step with a decision, or too many runs.
    """
    look_of = looks([run.title for run in runs])
    values = {run.title: run.diversity[run.decided] for run in runs}
    if not any(len(each) for each in values.values()):
        raise UsageError("no execution has a decision, so there is no diversity to draw")
    most = max(float(value.max(initial=0.0)) for value in values.values())
    edges = BIN * np.arange(int(most / BIN) + 2)
    fewest = min(100 / max(len(each), 1) for each in values.values())
    with drawing(width, 2.1) as figure:
        from matplotlib.lines import Line2D

        axes = figure.add_subplot()
        handles = []
        for name, held in values.items():
            look = look_of[name]
            shares = 100 * np.histogram(held, edges)[0] / max(len(held), 1)
            shares = np.where(shares > 0, shares, np.nan)
            axes.stairs(shares, edges, color=look.colour, linestyle=look.line, linewidth=1.1)
            centres = (edges[:-1] + edges[1:]) / 2
            axes.plot(centres, shares, color=look.colour, linestyle="", marker=look.marker, clip_on=False)
            handles.append(Line2D([], [], color=look.colour, linestyle=look.line, marker=look.marker))
            if len(held):
                axes.plot(
                    [float(held.mean())],
                    [0.02],
                    color=look.colour,
                    marker=look.marker,
                    markerfacecolor="white",
                    transform=axes.get_xaxis_transform(),
                    clip_on=False,
                )
        axes.set_yscale("log")
        axes.set_ylim(fewest / 2, 100)
        ticks = [tick for tick in (0.01, 0.1, 1.0, 10.0, 100.0) if tick >= fewest / 2]
        axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.set_yticks([], minor=True)
        axes.set_xlim(0, float(edges[-1]))
        label_axes(axes, "decision diversity (nats); hollow: mean", "steps (%)")
        if len(runs) > 1:
            legend(figure, handles, list(values))
    return figure


def level_shifts(shifts: Sequence[Shifts], width: Width = "column") -> Figure:
    """For each pair of runs, the steps by the baseline's stability level and by the change of the stability (Figure 4).

    A cell has a count and its share of all the pair's steps, and is darker for more, on one scale for all pairs."""
    across = min(len(shifts), 3 if width == "two-column" else 1)
    down = -(-len(shifts) // across)
    counts = [shift.levels_by_trend() for shift in shifts]
    most = max(float((100 * count / count.sum()).max()) for count in counts)
    with drawing(width, 1.55 * down + 0.25) as figure:
        grid = figure.subplots(down, across, squeeze=False)
        for axes, each, held in zip(grid.flat, shifts, counts, strict=False):
            _counts(axes, held, most)
            axes.set_title(_named(each), fontsize=7, pad=3)
        for axes in grid.flat[len(shifts) :]:
            axes.set_visible(False)
        figure.supylabel("baseline stability", fontsize=8)
        figure.supxlabel("stability shift", fontsize=8)
    return figure


def trade_offs(shifts: Sequence[Shifts], width: Width = "column") -> Figure:
    """For each pair of runs, how diversity and stability moved together (Figure 8).

    Left: shares of the steps by the change of the effective support size; right: by the baseline's stability level. Each bar
    is divided by the change of the stability.
    """
    with drawing(width, 1.5 * len(shifts) + 0.35) as figure:
        grid = figure.subplots(len(shifts), 2, sharey=True, squeeze=False)
        handles: list[object] = []
        for (left, right), each in zip(grid, shifts, strict=True):
            _stacked(left, each.support_by_stability(), [_SUPPORT[trend] for trend in TRENDS])
            handles = _stacked(right, each.levels_by_trend(), list(LEVELS))
            left.set_ylabel("steps (%)")
            if len(shifts) > 1:
                left.set_title(_named(each), fontsize=7, pad=3, loc="left")
        grid[-1][0].set_xlabel("decision support")
        grid[-1][1].set_xlabel("baseline stability")
        legend(figure, handles, [_STEADINESS[trend] for trend in TRENDS])  # type: ignore[arg-type]  # bars are artists
    return figure


def _named(shifts: Shifts) -> str:
    return f"{shifts.before.title} → {shifts.after.title}"


def _counts(axes: Axes, counts: Ints, most: float) -> None:
    """A heat map of counts, its rows from low at the bottom to high at the top, darkest for ``most`` per cent."""
    shares = 100 * counts / counts.sum()
    image = axes.imshow(shares, cmap="Blues", vmin=0, vmax=most, aspect="auto", origin="lower")
    axes.set_yticks(range(3), LEVELS)
    axes.set_xticks(range(3), [_STEADINESS[trend] for trend in TRENDS])
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    for border in (0.5, 1.5):
        axes.axvline(border, color="white", linewidth=1.0)
        axes.axhline(border, color="white", linewidth=1.0)
    colours = np.asarray(image.cmap(image.norm(shares)))
    for (row, column), count in np.ndenumerate(counts):
        red, green, blue, _ = colours[row, column].tolist()
        words = f"{int(count):,}\n{shares[row, column]:.1f} %"
        axes.text(column, row, words, ha="center", va="center", color=ink((red, green, blue)), fontsize=7, linespacing=1.1)


def _stacked(axes: Axes, counts: Ints, names: Sequence[str]) -> list[object]:
    shares = 100 * counts / max(int(counts.sum()), 1)
    handles: list[object] = []
    under = np.zeros(len(names))
    for column, look in enumerate(_STACK):
        colour, hatch = ("0.82", "") if look is None else (look.colour, look.hatch)
        held = axes.bar(
            range(len(names)), shares[:, column], 0.7, bottom=under, color=colour, hatch=hatch, edgecolor="white", linewidth=0.5
        )
        handles.append(held)
        under += shares[:, column]
    axes.set_xticks(range(len(names)), [f"{name}\nn = {int(n):,}" for name, n in zip(names, counts.sum(axis=1), strict=True)])
    percent_axis(axes, "y", "")
    return handles

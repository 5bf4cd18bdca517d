"""Exact match by a property of the steps: bars by action type (or app, episode length, ...) and curves by horizon.

Source of the curves: GUIEvalKit paper, appendix D.4 and Figure 19 (by step index and by step ratio).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from guieval.errors import UsageError
from guieval.metrics.breakdown import BreakdownCell
from guieval.metrics.columns import TYPES
from guieval.reports.plots.paper import Look, Width, drawing, interval_ends, legend, looks, percent_axis, whisker

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_BAR = 0.105
"""Inches, the height of one bar; with less, a hatch cannot be made out."""
LEAST = 10
"""Cells of fewer steps are not drawn by step index, since the last ones have a step or two."""
_AXIS = "exact match (%)"
_TITLES = {
    "ratio": "place in the episode, (step + 1) / length",
    "length": "steps of the episode",
    "reasoning": "characters of reasoning",
}


HORIZONS = {
    "ratio": "part of the episode",
    "step": "step index",
    "length": "episode length",
    "reasoning": "length of the reasoning",
    "ratio-step": "step index in each part of the episode",
}
"""By which property of a breakdown curves go, in words."""


def bars(runs: Mapping[str, Sequence[BreakdownCell]], width: Width = "column") -> Figure:
    """Exact match of each cell (:func:`guieval.metrics.breakdown.breakdown`) as a bar, one for each named run.

    Bars are horizontal, so that names of action types fit a narrow column; the number of steps is below each name. Whiskers are
    the cells' intervals; a cell without one has none, a run without the cell no bar.
    Raises :class:`guieval.errors.UsageError` for no run, no cell, or too many runs.
    """
    looks_of = looks(list(runs) if any(runs.values()) else [])
    labels = ordered(cell.label for cells in runs.values() for cell in cells)
    pitch = max(len(runs) * _BAR + 0.08, 0.29)  # two lines of text must fit next to a group of bars
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
            shares = [100 * (cell.exact_match.value or 0.0) for cell in shown]
            axes.barh(at, shares, thick, color=look.colour, hatch=look.hatch, edgecolor="black", linewidth=0.5, label=name)
            handles.append(Patch(facecolor=look.colour, hatch=look.hatch, edgecolor="black", linewidth=0.5))
            for middle, cell in zip(at.tolist(), shown, strict=True):
                if (interval := cell.exact_match.interval) is not None:
                    whisker(axes, 100 * interval.low, 100 * interval.high, middle)
        axes.set_yticks(range(len(labels)), [f"{label}\n{counted(label, runs)}" for label in labels])
        axes.tick_params(axis="y", length=0)
        axes.set_ylim(len(labels) - 0.5, -0.5)
        percent_axis(axes, "x", _AXIS)
        if len(runs) > 1:
            legend(figure, handles, list(runs))
    return figure


def horizon(runs: Mapping[str, Sequence[BreakdownCell]], by: str, width: Width = "column") -> Figure:
    """Exact match as curves, one for each named run, with intervals as bands (a point without a neighbour has a whisker).

    ``by`` is one of :data:`HORIZONS`; ``ratio-step``, of cells of both labels, gives a panel for each fifth of the episode, as
    in Figure 19, ``reasoning`` is UI-R1's Figure 3 (right). By step, cells of fewer than :data:`LEAST` steps are left out, and
    the line is interrupted there. In a mode that stops, a cell has only the steps that were reached, so only episodes that were
    right so far.
    Raises :class:`UsageError` for no run, too many, or if no cell is large enough.
    """
    looks_of = looks(list(runs))
    least = 1 if by in _TITLES else LEAST
    kept = {name: [cell for cell in cells if cell.n >= least] for name, cells in runs.items()}
    if not any(kept.values()):
        raise UsageError(f"no cell holds {least} steps, so there is no curve to draw")
    parts = ordered(cell.labels[0] for cells in kept.values() for cell in cells) if by == "ratio-step" else [None]
    across = len(parts) if width == "two-column" else 1
    down = -(-len(parts) // across)
    with drawing(width, 0.45 + (1.25 if len(parts) > 1 else 1.7) * down) as figure:
        grid = figure.subplots(down, across, sharex=True, sharey=True, squeeze=False)
        handles = {}
        for axes, part in zip(grid.flat, parts, strict=True):
            shown = {
                name: {cell.labels[-1]: cell for cell in cells if part is None or cell.labels[0] == part}
                for name, cells in kept.items()
            }
            labels = ordered(label for held in shown.values() for label in held)
            if by in _TITLES:
                places = {label: float(place) for place, label in enumerate(labels)}
                sizes = [counted(label, kept) for label in labels]
                if width == "column" and len(labels) > 5:  # several in a line would overlap
                    sizes = [each.replace("n = ", "n =\n") for each in sizes]
                axes.set_xticks(range(len(labels)), [f"{label}\n{size}" for label, size in zip(labels, sizes, strict=True)])
            else:
                places = {str(step): float(step) for step in range(int(labels[-1]) + 1)} if labels else {}
                axes.xaxis.get_major_locator().set_params(integer=True)
            for name, held in shown.items():
                handles[name] = _curve(axes, places, held, looks_of[name])
            percent_axis(axes, "y", "")
            if part is not None:
                axes.set_title(part, fontsize=7, pad=2)
        figure.supylabel(_AXIS, fontsize=8)
        few = f" (not drawn: fewer than {least} steps)" if least > 1 else ""
        figure.supxlabel(_TITLES.get(by, f"step index, from 0{few}"), fontsize=8)
        if len(runs) > 1:
            legend(figure, list(handles.values()), list(handles))
    return figure


def _curve(axes: Axes, places: Mapping[str, float], held: Mapping[str, BreakdownCell], look: Look) -> Artist:
    at = np.array(list(places.values()))
    cells = [held.get(label) for label in places]
    values = [np.nan if cell is None else 100 * (cell.exact_match.value or 0.0) for cell in cells]
    low, high = interval_ends(None if cell is None else cell.exact_match for cell in cells)
    axes.fill_between(at, low, high, color=look.colour, alpha=0.18, linewidth=0)
    for border in (low, high):  # in grey print only the borders distinguish the bands
        axes.plot(at, border, color=look.colour, linewidth=0.4, linestyle=look.line)
    (line,) = axes.plot(at, values, color=look.colour, linestyle=look.line, marker=look.marker, clip_on=False)
    known = np.isfinite(values)
    beside = np.pad(known, 1)
    alone = known & ~beside[:-2] & ~beside[2:]  # points without a neighbour, whose interval no band can show
    axes.vlines(at[alone], np.array(low)[alone], np.array(high)[alone], color=look.colour, linewidth=0.8, linestyle=look.line)
    return line


def ordered(labels: Iterable[str]) -> list[str]:
    """Each label once: action types as everywhere, then by the number a label starts with, then by name."""

    def place(label: str) -> tuple[int, int, str]:
        number = re.match(r"\d+", label)
        kind = TYPES.index(label) if label in TYPES else len(TYPES)
        return kind, int(number[0]) if number else -1, label

    return sorted(set(labels), key=place)


def counted(label: str, runs: Mapping[str, Sequence[BreakdownCell]]) -> str:
    """How many steps the runs have in the cells of a label, in a word."""
    return f"n = {between([sum(cell.n for cell in cells if cell.label == label) for cells in runs.values()])}"


def between(numbers: Collection[int]) -> str:
    """The number, or the least and the largest of several."""
    low, high = min(numbers), max(numbers)
    return f"{low:,}" if low == high else f"{low:,}–{high:,}"

"""Horizon curves: exact match by the place of a step in its episode, or by the episode's length.

Source: GUIEvalKit paper, appendix D.4 and Figure 19 (by step index and by step ratio).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from guieval.errors import UsageError
from guieval.metrics.breakdown import Cell
from guieval.reports.plots.cells import counted, ordered
from guieval.reports.plots.paper import Look, Width, drawing, legend, looks, percent_axis

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LEAST = 10
"""Cells of fewer steps are not drawn by step index, where the last ones hold a step or two."""
_TITLES = {"ratio": "place in the episode, (step + 1) / length", "length": "steps of the episode"}


def horizon(
    runs: Mapping[str, Sequence[Cell]],
    by: str,
    words: str = "exact match (%)",
    width: Width = "column",
    least: int = LEAST,
) -> Figure:
    """Exact match as curves, one for each named run, with their intervals as bands (a point
    without a neighbour has a whisker).

    ``by`` is the property of the breakdown (:func:`guieval.metrics.breakdown.breakdown`): ``ratio``, ``step``, ``length``, or
    ``ratio-step`` for cells of both labels, which gives a panel for each fifth of the episode, as in Figure 19. By step, cells
    of fewer than ``least`` steps are left out, and the line is interrupted there. In a mode that stops, a cell holds
    the steps that were reached, hence only episodes that were right so far.
    Raises :class:`UsageError` for another ``by``, no run, too many, or where no cell is large enough.
    """
    if by not in (*_TITLES, "step", "ratio-step"):
        raise UsageError(f"horizon curves go by ratio, step, length or ratio-step, not by {by!r}")
    looks_of = looks(list(runs))
    if by in _TITLES:
        least = 1
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
                axes.set_xticks(range(len(labels)), [f"{label}\n{counted(label, kept)}" for label in labels])
            else:
                places = {str(step): float(step) for step in range(int(labels[-1]) + 1)} if labels else {}
                axes.xaxis.get_major_locator().set_params(integer=True)
            for name, held in shown.items():
                handles[name] = _curve(axes, places, held, looks_of[name])
            percent_axis(axes, "y", "")
            if part is not None:
                axes.set_title(part, fontsize=7, pad=2)
        figure.supylabel(words, fontsize=8)
        few = f" (not drawn: fewer than {least} steps)" if least > 1 else ""
        figure.supxlabel(_TITLES.get(by, f"step index, from 0{few}"), fontsize=8)
        if len(runs) > 1:
            legend(figure, list(handles.values()), list(handles))
    return figure


def _curve(axes: Axes, places: Mapping[str, float], held: Mapping[str, Cell], look: Look) -> Artist:
    at = np.array(list(places.values()))
    cells = [held.get(label) for label in places]
    values = [np.nan if cell is None else 100 * cell.exact_match for cell in cells]
    spans = [None if cell is None else cell.interval for cell in cells]
    low = [np.nan if span is None else 100 * span.low for span in spans]
    high = [np.nan if span is None else 100 * span.high for span in spans]
    axes.fill_between(at, low, high, color=look.colour, alpha=0.18, linewidth=0)
    for border in (low, high):  # in grey print only the borders distinguish the bands
        axes.plot(at, border, color=look.colour, linewidth=0.4, linestyle=look.line)
    (line,) = axes.plot(at, values, color=look.colour, linestyle=look.line, marker=look.marker, clip_on=False)
    alone = _alone(np.isfinite(values))
    axes.vlines(at[alone], np.array(low)[alone], np.array(high)[alone], color=look.colour, linewidth=0.8, linestyle=look.line)
    return line


def _alone(known: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which points have no neighbour, so that no band can show their interval."""
    beside = np.pad(known, 1)
    return np.asarray(known & ~beside[:-2] & ~beside[2:])

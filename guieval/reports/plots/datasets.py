"""What a data set consists of, as a picture: its apps or their categories, its actions, and the lengths of its episodes.

Source: GUIEvalKit / HyperTrack paper, Figures 9 (categories of apps) and 10 (statistics).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from guieval.data.doctor.statistics import Statistics
from guieval.reports.plots.paper import LOOKS, Width, drawing, label_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_ROWS = 20
"""Categories or apps that are drawn; the others are one bar."""
_LINE = 0.15
"""Inches of a bar and the space to the next."""


def dataset(found: Statistics, width: Width = "column") -> Figure:
    """Three panels, of steps by action, episodes by length, and episodes by category (of apps if the data name none)."""
    named = found.category_episodes or found.apps
    title = "episodes by category" if found.category_episodes else "episodes by app"
    rows = dict(named.most_common(MOST_ROWS))
    if rest := sum(named.values()) - sum(rows.values()):
        rows[f"{len(named) - MOST_ROWS:,} others"] = rest
    of_actions, of_names = max(len(found.types), 5) * _LINE + 0.45, len(rows) * _LINE + 0.45
    tall = width == "column" and bool(rows)
    with drawing(width, 2 * of_actions + of_names if tall else max(1.8, of_names)) as figure:
        if tall:
            upper, middle, lower = figure.subplots(3, 1, height_ratios=(of_actions, of_actions, of_names))
        else:
            upper, middle, *further = figure.subplots(1, 2 + bool(rows))
            lower = further[0] if further else None
        _rows(upper, dict(found.types.most_common()), found.steps, "steps by action (%)", 0)
        _lengths(middle, found)
        if lower is not None:
            _rows(lower, rows, found.episodes, f"{title} (%)", 2)
    return figure


def _rows(axes: Axes, counts: Mapping[str, int], of: int, words: str, look: int) -> None:
    """A bar for each name, in percent, with its count."""
    shares = [100 * count / of for count in counts.values()]
    axes.barh(range(len(shares)), shares, 0.72, color=LOOKS[look].colour)
    for row, (share, count) in enumerate(zip(shares, counts.values(), strict=True)):
        axes.annotate(f"{count:,}", (share, row), xytext=(2, 0), textcoords="offset points", va="center", fontsize=6)
    label_axes(axes, words, "")
    axes.grid(visible=False, axis="y")
    axes.set_xlim(0, 1.35 * max(shares))
    axes.set_ylim(len(shares) - 0.5, -0.5)
    axes.set_yticks(range(len(shares)), [name if len(name) <= 24 else f"{name[:23]}…" for name in counts], fontsize=6)


def _lengths(axes: Axes, found: Statistics) -> None:
    from matplotlib.ticker import MaxNLocator

    axes.bar(list(found.lengths), list(found.lengths.values()), 0.9, color=LOOKS[1].colour)
    axes.axvline(found.mean_steps, color="black", linestyle="--", linewidth=0.8)
    label_axes(axes, f"steps (dashed: mean {found.mean_steps:.2f})", "episodes")
    axes.set_xlim(0.4, max(found.lengths) + 0.6)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(nbins="auto", integer=True))

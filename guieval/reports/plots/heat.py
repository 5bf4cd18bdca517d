"""Heat maps: protocols by runs, or protocols by action types of one run, every value written in its cell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from guieval.errors import UsageError
from guieval.reports.plots.paper import WIDTHS, Width, drawing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage

_ROW = 0.19
"""Inches, the height of a row."""
_BAR = 0.1
"""Inches, the least height of the bar of colours."""
_SAME = 1e-9
"""Differences up to this are rounding errors."""
_DARK, _LIGHT = (0.0, 0.0, 0.0), (1.0, 1.0, 1.0)


@dataclass(frozen=True)
class Grid:
    """Shares in [0, 1] or ``None``: ``values[row][column]``; ``steps`` are the columns' numbers of steps, or of ``of``."""

    rows: Sequence[str]
    columns: Sequence[str]
    values: Sequence[Sequence[float | None]]
    steps: Sequence[str] = ()
    of: str = "steps"


def heat(grid: Grid, words: str = "exact match (%)", width: Width = "column") -> Figure:
    """The grid as a heat map: every value in percent, on a colour for its difference from its column's median.

    Columns often lie far apart and rows close together, so that on one scale for all values rows would look alike. Purple is
    above the median, orange below, darker for more, on the scale of :func:`span`; digits are black or white, for contrast. A
    single row has no colour. An empty cell has a dash. The columns' numbers of steps are in a row below. Long column names are
    rotated.
    Raises :class:`UsageError` for an empty grid.
    """
    if not grid.rows or not grid.columns:
        raise UsageError("there is nothing to draw")
    values = np.array([[np.nan if each is None else 100 * each for each in row] for row in grid.values], dtype=np.float64)
    known = values[:, ~np.isnan(values).all(axis=0)]
    differences = np.full_like(values, np.nan)
    differences[:, ~np.isnan(values).all(axis=0)] = known - np.nanmedian(known, axis=0)
    end = span(differences)
    lines = len(grid.rows) + bool(grid.steps)
    with drawing(width, _ROW * lines + 1.1) as figure:
        axes = figure.add_subplot()
        image = axes.imshow(differences, cmap="PuOr", vmin=-end, vmax=end, aspect="auto")
        axes.set_ylim(lines - 0.5, -0.5)
        axes.set_yticks(range(lines), [*grid.rows, *([grid.of] if grid.steps else [])])
        axes.set_xticks(range(len(grid.columns)), grid.columns)
        axes.tick_params(length=0, top=True, labeltop=True, bottom=False, labelbottom=False)
        axes.spines[:].set_visible(False)
        for border in range(1, len(grid.columns)):
            axes.axvline(border - 0.5, color="white", linewidth=1.0)
        for border in range(1, lines):
            axes.axhline(border - 0.5, color="white", linewidth=1.0)
        if len(grid.rows) > 1:
            _scale(figure, axes, image, words, lines, clipped=bool(np.nanmax(np.abs(differences), initial=0.0) > end))
        else:
            axes.set_xlabel(words)
        figure.draw_without_rendering()
        room = axes.get_window_extent().width / len(grid.columns)
        if any(label.get_window_extent().width > 0.95 * room for label in axes.get_xticklabels()):
            axes.tick_params(axis="x", labelrotation=45)
            for label in axes.get_xticklabels():
                label.set(ha="left", va="bottom", rotation_mode="anchor")
        _set_row_height(figure, axes, lines)
        room = axes.get_window_extent().width / len(grid.columns) / figure.dpi
        size = 7 if room > 0.33 else 6 if room > 0.26 else 5
        colours = np.asarray(image.cmap(image.norm(differences)))
        for (row, column), value in np.ndenumerate(values):
            if np.isnan(value):
                _write(axes, row, column, "–", (0.4, 0.4, 0.4), size)
                continue
            red, green, blue, _ = colours[row, column].tolist()
            _write(axes, row, column, f"{value:.1f}" if value < 100 else "100", ink((red, green, blue)), size)
        for column, steps in enumerate(grid.steps):
            _write(axes, len(grid.rows), column, steps, _DARK, size)
    return figure


def span(differences: NDArray[np.float64]) -> float:
    """The difference with the darkest colour: 90 % of the differences other than 0 are smaller or equal; 1 point at least.

    A few protocols that differ from all others by far would otherwise take the colours from the rest.
    """
    sizes = np.abs(differences[np.isfinite(differences)])
    sizes = sizes[sizes > _SAME]
    return max(float(np.quantile(sizes, 0.9)), 1.0) if len(sizes) else 1.0


def _scale(figure: Figure, axes: Axes, image: AxesImage, words: str, lines: int, *, clipped: bool) -> None:
    from matplotlib.ticker import MaxNLocator

    wide = figure.get_size_inches()[0] > WIDTHS["column"]
    bar = figure.colorbar(
        image,
        ax=axes,
        orientation="horizontal",
        extend="both" if clipped else "neither",
        aspect=50 if wide else 20,
        fraction=max(0.05, _BAR / (_ROW * lines)),
        pad=0.01,
    )
    bar.locator = MaxNLocator(5)
    bar.set_label(f"{words}, coloured by{' ' if wide else chr(10)}points from the column's median")


def _set_row_height(figure: Figure, axes: Axes, lines: int) -> None:
    """Make the figure as high as its names need, so that rows have the same height in all pictures."""
    for _ in range(2):  # the labels next to the axes may move a little with their height
        figure.draw_without_rendering()
        inches, height = figure.get_size_inches()
        figure.set_size_inches(inches, height + _ROW * lines - axes.get_window_extent().height / figure.dpi)
    figure.draw_without_rendering()


def _write(axes: Axes, row: int, column: int, text: str, ink: tuple[float, float, float], size: float) -> None:
    axes.text(column, row, text, ha="center", va="center_baseline", color=ink, fontsize=size)


def contrast(one: tuple[float, float, float], other: tuple[float, float, float]) -> float:
    """The contrast ratio of two colours (red, green, blue in [0, 1]), from 1 to 21: WCAG 2.1, "contrast ratio"."""
    low, high = sorted((_luminance(one), _luminance(other)))
    return (high + 0.05) / (low + 0.05)


def ink(ground: tuple[float, float, float]) -> tuple[float, float, float]:
    """Black or white, whichever contrasts more with the colour below it."""
    return max(_DARK, _LIGHT, key=lambda colour: contrast(colour, ground))


def _luminance(colour: tuple[float, float, float]) -> float:
    red, green, blue = (each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in colour)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue

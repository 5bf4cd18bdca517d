"""Static metrics against success in a live environment: one point per model, a least-squares curve, R² and Spearman's rho.

Source: GUIEvalKit paper, Figure 3 and Table 20; UI-S1 paper, Figure 2.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from textwrap import fill
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from guieval.errors import UsageError
from guieval.reports.plots.paper import LOOKS, Width, drawing
from guieval.studies.correlation.coefficients import Correlation, correlate

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.transforms import Bbox

_FAR = (4.0, 7.0, 12.0, 18.0, 26.0, 36.0)
"""Distances of a name from its point, in points; from the third on a line connects the two."""
MOST_NAMES = 16
"""The largest number of points with names next to them; more would overlap."""
_LONG = 24
"""Letters after which a name is broken."""
_ANGLES = (0, 180, 90, 270, 45, 135, 225, 315)


@dataclass(frozen=True)
class Panel:
    """One static metric of some models: names, x in the units given by ``words``, and y."""

    words: str
    names: Sequence[str]
    x: Sequence[float]
    y: Sequence[float]


def reliability(panels: Sequence[Panel], words: Sequence[str], degree: int = 1, width: Width = "column") -> Figure:
    """Every panel as a scatter plot with named points, the curve of ``degree``, and above it R², rho, its p-value and n.

    ``words`` name the y axes, of as many equal parts of the panels in order; an axis starts at 0 and is shared by its panels. x
    axes span only the points, because metrics of static data lie in a narrow range. A wide figure has its panels side by side,
    those of one y axis in a row if there are several. Raises :class:`UsageError` for no panel, a panel with fewer than three
    points, or with too few for the degree.
    """
    if not panels:
        raise UsageError("there is nothing to draw")
    found = [correlate(panel.x, panel.y, degrees=(degree,)) for panel in panels]
    if too_few := next((panel for panel, each in zip(panels, found, strict=True) if not each.fits), None):
        raise UsageError(f"{len(too_few.x)} points ({too_few.words}) are too few for a curve of degree {degree}")
    each = len(panels) // len(words)
    across = 1 if width == "column" else 2 if each in (2, 4) else min(each, 3)  # four fill two rows
    down = -(-len(panels) // across)
    with drawing(width, 2.5 * down) as figure:
        grid = figure.subplots(down, across, sharey=len(words) == 1 or "row", squeeze=False)
        drawn = list(zip(grid.flat, panels, found, strict=False))
        for axes in grid.flat[len(panels) :]:
            axes.remove()
        for axes, panel, correlation in drawn:
            _scatter(axes, panel, correlation)
        if len(words) == 1:
            figure.supylabel(words[0], fontsize=8)
        else:
            for place, axes in enumerate(grid[:, 0]):
                axes.set_ylabel(words[place * across // each])
        figure.draw_without_rendering()  # only now are the axes where they will be
        for axes, panel, correlation in drawn:
            if len(panel.names) <= MOST_NAMES:
                _name_points(axes, panel, correlation)
    return figure


def _scatter(axes: Axes, panel: Panel, correlation: Correlation) -> None:
    look, (curve,) = LOOKS[0], correlation.fits
    along = np.linspace(min(panel.x), max(panel.x), 200)
    axes.plot(along, curve.at(along), color=LOOKS[5].colour, linestyle="--", zorder=1)
    axes.plot(panel.x, panel.y, color=look.colour, marker=look.marker, linestyle="", markersize=4, zorder=3)
    axes.margins(0.15)
    if min(panel.y) >= 0:
        axes.set_ylim(bottom=0)
    axes.set_xlabel(panel.words)
    rho, p_value = correlation.rank.rho, correlation.rank.p_value
    parts = ["R² not defined" if curve.r2 is None else f"R² = {curve.r2:.2f}"]
    if rho is not None and p_value is not None:
        probability = "< 0.001" if p_value < 0.001 else f"= {p_value:.3f}"
        parts.append(f"ρ = {rho:.2f} (p {probability})")
    axes.set_title(", ".join([*parts, f"n = {correlation.n}"]), fontsize=7, pad=4)


def _name_points(axes: Axes, panel: Panel, correlation: Correlation) -> None:
    """Write each name near its point if it overlaps nothing; crowded points come first."""
    scale = axes.figure.dpi / 72
    inside = axes.get_window_extent()
    points = axes.transData.transform(np.column_stack([panel.x, panel.y]))
    along = np.linspace(min(panel.x), max(panel.x), 60)
    curve = axes.transData.transform(np.column_stack([along, correlation.fits[0].at(along)]))
    taken = [_box(x, y, 5 * scale, 5 * scale) for x, y in points.tolist()]
    taken += [_box(x, y, 2 * scale, 2 * scale) for x, y in curve.tolist()]
    apart = np.linalg.norm(points[:, None] - points[None], axis=2) + np.diag(np.full(len(points), np.inf))
    for place in np.argsort(apart.min(axis=1), kind="stable").tolist():
        point = (panel.x[place], panel.y[place])
        name = fill(panel.names[place], _LONG, break_on_hyphens=False, break_long_words=False)
        note: Any = axes.annotate(
            name, point, xytext=(0, 0), textcoords="offset points", ha="center", va="center", fontsize=6, linespacing=1.0
        )
        note.set_in_layout(False)
        extent = note.get_window_extent()
        spot = min(
            (
                _spot(points, place, (extent.width, extent.height), far * scale, angle, far > _FAR[1])
                for far, angle in product(_FAR, _ANGLES)
            ),
            key=lambda spot: _cost(spot, taken, inside, scale),
        )
        taken += [spot.box, *spot.leader]
        x, y = points[place].tolist()
        offset = ((spot.box.x0 + spot.box.x1) / 2 - x) / scale, ((spot.box.y0 + spot.box.y1) / 2 - y) / scale
        note.set_position(offset)
        if spot.leader:
            ends = axes.transData.inverted().transform([(x, y), spot.corner])
            axes.plot(*ends.T, color="0.5", linewidth=0.4, zorder=2, scalex=False, scaley=False, label=f"leader {place}")


class _Spot(NamedTuple):
    """A place for a name: its box, the point of the box that is next to its own, and little boxes along a leader."""

    box: Bbox
    corner: tuple[float, float]
    leader: list[Bbox]
    far: float
    strange: bool
    """Whether another point is nearer, so that the name needs a leader."""


def _spot(points: NDArray[np.float64], place: int, size: tuple[float, float], far: float, angle: int, led: bool) -> _Spot:
    x, y = points[place].tolist()
    along, up = math.cos(math.radians(angle)), math.sin(math.radians(angle))
    corner = x + far * along, y + far * up
    box = _box(corner[0] + round(along) * size[0] / 2, corner[1] + round(up) * size[1] / 2, *size)
    gaps = np.hypot(
        np.maximum(np.maximum(box.x0 - points[:, 0], points[:, 0] - box.x1), 0),
        np.maximum(np.maximum(box.y0 - points[:, 1], points[:, 1] - box.y1), 0),
    )
    own = gaps[place]
    strange = bool((np.delete(gaps, place) < 1.3 * own).any())
    small = far / 8
    leader = [_box(x + t * far * along, y + t * far * up, small, small) for t in np.linspace(0.4, 0.9, 5).tolist()]
    return _Spot(box, corner, leader if strange or led else [], far, strange)


def _cost(spot: _Spot, taken: Sequence[Bbox], inside: Bbox, scale: float) -> float:
    """Covered area in square points, outside the axes ten times as bad; then nearness, and being next to one's own point."""
    covered = sum(_overlap(box, other) for box in (spot.box, *spot.leader) for other in taken)
    outside = spot.box.width * spot.box.height - _overlap(spot.box, inside)
    return (covered + 10 * outside) / scale**2 + 0.5 * spot.far / scale + 5 * spot.strange


def _box(x: float, y: float, width: float, height: float) -> Bbox:
    from matplotlib.transforms import Bbox

    return Bbox.from_bounds(x - width / 2, y - height / 2, width, height)


def _overlap(one: Bbox, other: Bbox) -> float:
    wide = min(one.x1, other.x1) - max(one.x0, other.x0)
    high = min(one.y1, other.y1) - max(one.y0, other.y0)
    return float(max(wide, 0.0) * max(high, 0.0))

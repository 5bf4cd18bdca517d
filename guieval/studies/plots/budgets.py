"""A metric of models against what their training took: samples or GPU hours, with the size of the model as the area of a disc.

Source: UI-R1 paper, Figure 1 (right).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from guieval.errors import UsageError
from guieval.reports.leaderboards.published_results import PublishedModel, ResultTable
from guieval.reports.plots.paper import Width, drawing, label_axes, legend, looks

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Budget: TypeAlias = Literal["samples", "gpu-hours"]
AXES: dict[Budget, str] = {"samples": "training samples", "gpu-hours": "GPU hours of the training"}
_AREA = 14.0
"""Square points of a disc for 10^9 parameters."""


class Disc(NamedTuple):
    """A model: what its training took, its metric, and its size in 10^9 parameters."""

    name: str
    spent: float
    value: float
    parameters: float


def discs(table: ResultTable, x: Budget, y: str) -> tuple[list[Disc], list[str]]:
    """The rows that have all three numbers, and the titles of the others. Raises :class:`UsageError` if there is none."""

    def spent(row: PublishedModel) -> float | None:
        return row.samples if x == "samples" else row.gpu_hours

    found, left_out = [], []
    for row, value in zip(table.rows, table.values(y), strict=True):
        if (took := spent(row)) is not None and value is not None and row.parameters is not None:
            found.append(Disc(row.title, took, value, row.parameters))
        else:
            left_out.append(row.title)
    if not found:
        raise UsageError(f"no row of table {table.name!r} has {x.replace('-', '_')}, parameters and {y!r}")
    return found, left_out


def budgets(found: Sequence[Disc], axis: str, words: str, width: Width = "column") -> Figure:
    """The discs; the axis of x is logarithmic above 1, so that models without training have a place.

    Raises :class:`UsageError` for more models than there are looks.
    """
    looks_of = looks([disc.name for disc in found])
    with drawing(width, 2.3) as figure:
        from matplotlib.lines import Line2D

        axes = figure.add_subplot()
        handles = []
        for disc in found:
            colour = looks_of[disc.name].colour
            axes.scatter(
                [disc.spent], [disc.value], s=_AREA * disc.parameters, color=colour, alpha=0.6, edgecolor="black", linewidth=0.5
            )
            axes.plot(
                [disc.spent], [disc.value], color="black", marker=looks_of[disc.name].marker, markersize=2.5, linestyle=""
            )
            handles.append(Line2D([], [], color=colour, marker=looks_of[disc.name].marker, linestyle="", markersize=5))
        axes.set_xscale("symlog", linthresh=1)
        axes.set_xlim(-0.3, max(10.0, 3 * max(disc.spent for disc in found)))
        axes.margins(y=0.15)
        label_axes(axes, axis, words, "both")
        sizes = [f"{disc.parameters:g}B" for disc in found]
        legend(
            figure,
            handles,
            [disc.name + f", {size}" * (size not in disc.name) for disc, size in zip(found, sizes, strict=True)],
        )
    return figure

"""Accuracy against what it costs in tokens or money: a mark for each run, and the front of runs that no other one beats."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from guieval.metrics import Measured
from guieval.metrics.front import front
from guieval.reports.plots.paper import Width, drawing, interval_ends, label_axes, legend, looks

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Spent(NamedTuple):
    """A run: what it spends, a share, and its mode, since modes are not comparable."""

    name: str
    spent: float
    share: Measured
    mode: str = ""

    @property
    def value(self) -> float:
        """The metric's value, a share in [0, 1], on the vertical axis."""
        return self.share.value or 0.0


def on_front(runs: Sequence[Spent]) -> list[Spent]:
    """The runs that no other one of their mode beats, mode by mode, the cheapest first."""
    return [run for best in _fronts(runs) for run in best]


def _fronts(runs: Sequence[Spent]) -> Iterator[list[Spent]]:
    for mode in dict.fromkeys(run.mode for run in runs):
        same = [run for run in runs if run.mode == mode]
        yield [same[place] for place in front([(run.spent, run.value) for run in same])]


def pareto(runs: Sequence[Spent], metric_name: str, axis: str, width: Width) -> Figure:
    """The runs with 95 % intervals, and the front of each mode as steps. Raises :class:`UsageError` for no run, or too many."""
    looks_of = looks([run.name for run in runs])
    with drawing(width, 2.1) as figure:
        axes = figure.add_subplot()
        for best in _fronts(runs):
            axes.step([run.spent for run in best], [100 * run.value for run in best], where="post", color="0.6", linewidth=0.8)
        handles = []
        for run, low, high in zip(runs, *interval_ends(run.share for run in runs), strict=True):
            look = looks_of[run.name]
            axes.vlines(run.spent, low, high, color=look.colour, linewidth=0.8)
            handles += axes.plot([run.spent], [100 * run.value], color=look.colour, marker=look.marker, linestyle="")
        axes.set_xlim(left=0)
        label_axes(axes, axis, f"{metric_name} (%)", "both")
        legend(figure, handles, [run.name for run in runs])
    return figure

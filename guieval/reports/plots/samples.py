"""The value of several answers to a step: pass@n, pass^n, their mean and their vote against n.

Source: GUIEvalKit paper, Figure 6 (PASS@n); they are defined in :mod:`guieval.metrics.sampling`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from guieval.errors import UsageError
from guieval.metrics.sampling import Luck, Sampled
from guieval.reports.plots.paper import Width, drawing, interval_ends, legend, looks, percent_axis

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KINDS: dict[Luck, tuple[str, Any]] = {
    "any": ("pass@n", "-"),
    "vote": ("vote", ":"),
    "mean": ("mean", "-."),
    "all": ("pass^n", "--"),
}
"""The name of each kind of luck in the legend, and its line."""
HOLLOW = ("vote", "all")


def samples(runs: Mapping[str, Sequence[Sampled]], width: Width = "column") -> Figure:
    """Each named run's :func:`guieval.metrics.sampling.sampled` metrics against the number of answers they are over.

    Colour and marker show the run, line and hollow marks the metric; bands are intervals. A metric with a single n is a mark
    with a whisker. n is on a scale of doublings. Raises :class:`UsageError` for no metric, too many runs, or one answer to a
    step alone.
    """
    looks_of = looks(list(runs) if any(runs.values()) else [])
    if max(each.k for curves in runs.values() for each in curves) < 2:
        raise UsageError("there is one answer to each step, which gives no curve; add further tries, or runs with more answers")
    with drawing(width, 2.1) as figure:
        from matplotlib.lines import Line2D

        axes = figure.add_subplot()
        kinds: set[Luck] = set()
        for name, curves in runs.items():
            for kind, held in _by_kind(curves).items():
                kinds.add(kind)
                _, line = KINDS[kind]
                at = [each.k for each in held]
                look = looks_of[name]
                ground = "white" if kind in HOLLOW else look.colour
                shares = [100 * (each.measured.value or 0.0) for each in held]
                axes.plot(
                    at, shares, color=look.colour, linestyle=line, marker=look.marker, markerfacecolor=ground, clip_on=False
                )
                low, high = interval_ends(each.measured for each in held)
                if len(held) > 1:
                    axes.fill_between(at, low, high, color=look.colour, alpha=0.15, linewidth=0)
                else:
                    axes.vlines(at, low, high, color=look.colour, linewidth=0.8)
        ticks = sorted({each.k for curves in runs.values() for each in curves})
        axes.set_xscale("log", base=2)
        doublings = [tick for tick in ticks if tick & (tick - 1) == 0 or tick == ticks[-1]]
        axes.set_xticks(doublings, [str(doubling) for doubling in doublings])
        axes.set_xticks([], minor=True)
        axes.set_xlabel("answers to a step, n")
        percent_axis(axes, "y", "steps right (%)")
        several = len(runs) > 1
        handles, names = [], []
        for name in runs if several else ():
            look = looks_of[name]
            handles.append(Line2D([], [], color=look.colour, linestyle="", marker=look.marker, markersize=5))
            names.append(name)
        only = next(iter(looks_of.values()))
        for kind, (title, line) in KINDS.items():
            if kind in kinds:
                ink, marker = ("black", "") if several else (only.colour, only.marker)
                ground = "white" if kind in HOLLOW else ink
                handles.append(Line2D([], [], color=ink, linestyle=line, marker=marker, markerfacecolor=ground))
                names.append(title)
        legend(figure, handles, names)
    return figure


def _by_kind(found: Sequence[Sampled]) -> dict[Luck, list[Sampled]]:
    kinds: dict[Luck, list[Sampled]] = {}
    for each in sorted(found, key=lambda one: one.k):
        if each.measured.value is not None:
            kinds.setdefault(each.luck, []).append(each)
    return kinds

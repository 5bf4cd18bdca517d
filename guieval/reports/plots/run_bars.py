"""One metric of several runs as bars, each tested against the first: success online, mean steps, progress of episodes ...

Source: UI-S1 paper, Figure 8 (left: success of training paradigms, middle: mean steps of tasks).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, NamedTuple

from guieval.errors import UsageError, nearest
from guieval.evaluation import get_protocol
from guieval.journal.repeats import grouped
from guieval.metrics.leading import leading
from guieval.metrics.measured import SHARE, Measured
from guieval.metrics.repeats import measured
from guieval.reports.comparison import compare_all
from guieval.reports.comparison_formats import p_words
from guieval.reports.plots.drawn import apart, check_labels, titles_of
from guieval.reports.plots.paper import LOOKS, Width, drawing, label_axes, percent_axis, whisker
from guieval.scoring.matrix import judge_run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MOST = 24
"""The most runs of a picture; more bars would be longer than a page."""


class RunBar(NamedTuple):
    """A run, or the repeats of one model: its metric, and the two-sided p-value of its difference to the first run, if any.

    The p-values are corrected for the number of runs by Holm's method.
    """

    name: str
    value: Measured
    p_value: float | None


class ComparedBars(NamedTuple):
    """The bars of a metric in ``unit`` under a protocol."""

    metric: str
    protocol: str
    unit: str
    bars: tuple[RunBar, ...]


def compared(
    runs: Sequence[Path], labels: Sequence[str] | None = None, metric: str | None = None, protocol: str | None = None
) -> ComparedBars:
    """A metric of runs that leaderboards show (default: the first), by its name.

    Raises :class:`UsageError` for an unknown metric with the nearest name, a wrong number of labels, and runs that
    ``guieval compare`` refuses.
    """
    groups = grouped(runs)
    check_labels(labels, len(groups), "runs, repeats as one,")
    columns = [[judge_run(run, [protocol] if protocol else None).columns() for run in of.directories] for of in groups]
    rule = next(iter(columns[0][0].judged))
    known = leading(get_protocol(rule), columns[0][0].unit)
    names = [each.name for each in known]
    if metric is not None and metric not in names:
        raise UsageError(f"the runs have no metric {metric!r}{nearest(metric, names)}; they have: {', '.join(names)}")
    chosen = known[0 if metric is None else names.index(metric)]
    pairs = compare_all([(groups[0], other) for other in groups[1:]], [protocol] if protocol else None)
    tests = [next(each for each in pair.metrics if each.name == chosen.name).difference.p_value for pair in pairs]
    values = [measured(chosen, [(run, run.judged_by(rule)) for run in of]) for of in columns]
    titles = labels or apart(titles_of([of[0] for of in columns]), [of.folder for of in groups])
    bars = map(RunBar, titles, values, [None, *tests])
    return ComparedBars(chosen.name, rule, chosen.unit, tuple(bars))


def run_bars(found: ComparedBars, width: Width = "column") -> Figure:
    """Horizontal bars with 95 % intervals, their values, and p against the first if there is a test.

    Raises :class:`UsageError` if no run has the metric, or for too many runs.
    """
    known = [bar for bar in found.bars if bar.value.value is not None]
    if not known:
        raise UsageError(f"no run has the metric {found.metric!r}, so there is nothing to draw")
    if len(known) > _MOST:
        raise UsageError(f"{len(known)} runs are too many for one picture; draw at most {_MOST}")
    scale = 100.0 if found.unit == SHARE else 1.0
    with drawing(width, 0.26 * len(known) + 0.55) as figure:
        axes = figure.add_subplot()
        shares = [scale * (bar.value.value or 0.0) for bar in known]
        axes.barh(range(len(known)), shares, 0.62, color=LOOKS[0].colour, edgecolor="black", linewidth=0.5)
        ends = [max(share, scale * (bar.value.high or 0.0)) for share, bar in zip(shares, known, strict=True)]
        for row, (bar, share) in enumerate(zip(known, shares, strict=True)):
            if bar.value.low is not None and bar.value.high is not None:
                whisker(axes, scale * bar.value.low, scale * bar.value.high, row)
            p = "" if bar.p_value is None else f" ({p_words(bar.p_value)})"
            axes.annotate(
                f"{share:.1f}{p}", (ends[row], row), xytext=(4, 0), textcoords="offset points", va="center", fontsize=6
            )
        axes.set_yticks(range(len(known)), [fill(bar.name, 26, break_on_hyphens=False) for bar in known])
        axes.tick_params(axis="y", length=0)
        axes.set_ylim(len(known) - 0.5, -0.5)
        if found.unit == SHARE:
            percent_axis(axes, "x", f"{found.metric} (%)")
            axes.set_xlim(0, 135)  # room for the numbers at the end of a whole bar
        else:
            label_axes(axes, f"{found.metric} ({found.unit})" if found.unit not in found.metric else found.metric, "")
            axes.grid(visible=False, axis="y")
            axes.grid(axis="x", color="0.85", linewidth=0.5)
            axes.set_xlim(0, 1.45 * max(ends))
    return figure

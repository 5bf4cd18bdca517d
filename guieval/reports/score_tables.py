"""The tables of `guieval score` next to a run's report: figures with their intervals, several answers a step, and breakdowns.

Shares are in per cent. Intervals are over whole episodes (:mod:`guieval.metrics.intervals`), drawn with seed 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

from guieval.evaluation import get_protocol
from guieval.evaluation.protocol import EXACT_MATCH, PROGRESS, SUCCESS_RATE, TYPE_MATCH, Figure
from guieval.metrics.breakdown import Cell, Misses, breakdown, misses
from guieval.metrics.columns import RunColumns
from guieval.metrics.figures import FigureValue, compute_with_interval
from guieval.metrics.intervals import LEVEL, Interval
from guieval.metrics.sampling import Luck, SampledFigure, most_drawn, sampled
from guieval.reports.tables.table import Row, Table, bracketed, columns, per_cent

ERROR = "error"
"""The breakdown of the mismatches by kind of error."""
_NAMES = {"action-type": "action"}
"""Names of breakdowns for users that differ from the internal ones."""
_HEADLINES = (TYPE_MATCH, EXACT_MATCH, PROGRESS, SUCCESS_RATE)
_INTERVAL = f"{100 * LEVEL:.0f}% interval"


def own_figures(run: RunColumns, protocol: str) -> list[tuple[Figure, FigureValue, Interval | None]]:
    """The protocol's own figures that :func:`guieval.reports.console.run_table` does not show, each with its interval."""
    own, judged = get_protocol(protocol), run.judged[protocol]
    return [
        (figure, *compute_with_interval(figure, own.failure, run, judged)) for figure in own.figures if figure not in _HEADLINES
    ]


def figure_table(
    run: RunColumns, protocol: str, figures: Sequence[tuple[Figure, FigureValue, Interval | None]]
) -> Table | None:
    """The table of :func:`own_figures`; ``None`` without any."""
    own = get_protocol(protocol)
    rows: list[Row] = []
    for figure, value, interval in figures:
        shown = per_cent(value.value, missing=value.missing)
        rows.append((figure.name, shown, bracketed(interval), value.n, "" if interval is None else interval.method))
    heads = columns("figure", "value", _INTERVAL, "n", "method", spare=("method",))
    foreign = own.foreign_mark([run.dataset])
    title = f"The figures of {protocol}" + (f" ({foreign})" if foreign else "")
    return Table(title, heads, tuple(rows), name="own-figures") if rows else None


def sample_figures(run: RunColumns, protocol: str) -> list[SampledFigure]:
    """Figures of all answers to a step; empty if every step has at most one answer."""
    return [sampled([run], protocol, luck) for luck in get_args(Luck)] if most_drawn(run) > 1 else []


def sample_table(run: RunColumns, protocols: Sequence[str]) -> Table | None:
    """The table of :func:`sample_figures`, one line for each protocol; ``None`` without any."""
    by_protocol = {name: sample_figures(run, name) for name in protocols}
    heads = [each.name for each in next(iter(by_protocol.values()))]
    if not heads:
        return None
    rows: tuple[Row, ...] = tuple(
        (name, *(per_cent(figure.value, interval=figure.interval) for figure in figures), figures[0].n)
        for name, figures in by_protocol.items()
    )
    title = "All answers to a step (exact match is of the first alone)"
    return Table(title, columns("protocol", *heads, "n"), rows, name="samples")


def breakdown_cells(run: RunColumns, protocol: str, by: str) -> list[Cell] | list[Misses]:
    """The steps by ``action-type``, ``length``, ``step``, ``ratio``, ``subset`` or a label, or the misses by ``error``.

    Raises :class:`guieval.errors.UsageError` for a name that the run cannot be broken down by.
    """
    return misses(run, protocol) if by == ERROR else breakdown(run, protocol, _NAMES.get(by, by))


def breakdown_table(run: RunColumns, protocol: str, by: str) -> Table:
    """The table of :func:`breakdown_cells`."""
    rows: list[Row] = []
    for each in breakdown_cells(run, protocol, by):
        if isinstance(each, Misses):
            rows.append((each.kind, per_cent(each.share), bracketed(each.interval), each.n, each.of))
        else:
            shares = (per_cent(each.type_match), per_cent(each.exact_match))
            rows.append((each.labels[0], *shares, bracketed(each.interval), each.n))
    if by == ERROR:
        title, heads = f"What goes wrong under {protocol} (share of all steps)", ("error", "share", _INTERVAL, "steps", "of")
    else:
        title, heads = f"By {by} under {protocol}", (by, "type match", "exact match", _INTERVAL, "n")
    return Table(title, columns(*heads), tuple(rows), name=by)

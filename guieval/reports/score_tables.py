"""What `guieval score` shows next to a run's report: figures with their intervals, several answers a step, and breakdowns.

Shares are in per cent. Intervals are over whole episodes (:mod:`guieval.metrics.intervals`), drawn with seed 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, get_args

from guieval.evaluation import get_protocol
from guieval.evaluation.protocol import EXACT_MATCH, PROGRESS, SUCCESS_RATE, TYPE_MATCH, Figure
from guieval.metrics.breakdown import breakdown, misses
from guieval.metrics.columns import RunColumns
from guieval.metrics.figures import FigureValue, compute_with_interval
from guieval.metrics.intervals import LEVEL, Interval
from guieval.metrics.sampling import Luck, most_drawn, sampled
from guieval.reports.tables import Row, Table, bracketed, columns, per_cent

ERROR = "error"
"""The breakdown of the mismatches by kind of error."""
_NAMES = {"action-type": "action"}
"""Names of breakdowns for users that differ from the internal ones."""
_HEADLINES = (TYPE_MATCH, EXACT_MATCH, PROGRESS, SUCCESS_RATE)
_INTERVAL = f"{100 * LEVEL:.0f}% interval"
_SAMPLED: tuple[Luck, ...] = get_args(Luck)


def interval_json(interval: Interval | None) -> dict[str, Any] | None:
    """The whole interval, including its seed."""
    return None if interval is None else asdict(interval)


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


def sample_table(run: RunColumns, protocols: Sequence[str]) -> Table | None:
    """Figures of all answers to a step, one line a protocol; ``None`` where every step has one answer at most."""
    if most_drawn(run) < 2:
        return None
    found = {name: [sampled([run], name, luck) for luck in _SAMPLED] for name in protocols}
    heads = [each.name for each in next(iter(found.values()))]
    rows: tuple[Row, ...] = tuple(
        (name, *(per_cent(each.value, interval=each.interval) for each in figures), figures[0].n)
        for name, figures in found.items()
    )
    title = "All answers to a step (exact match is of the first alone)"
    return Table(title, columns("protocol", *heads, "n"), rows, name="samples")


def sample_json(columns: RunColumns, protocol: str) -> list[dict[str, Any]]:
    """The same for one protocol as plain values."""
    several = most_drawn(columns) > 1
    return [asdict(sampled([columns], protocol, luck)) for luck in _SAMPLED] if several else []


def breakdown_table(run: RunColumns, protocol: str, by: str) -> Table:
    """The steps by ``action-type``, ``length``, ``step``, ``ratio``, ``subset`` or a label, or the misses by ``error``.

    Raises :class:`guieval.errors.UsageError` for a name that the run cannot be broken down by.
    """
    if by == ERROR:
        errors = tuple(
            (each.kind, per_cent(each.share), bracketed(each.interval), each.n, each.of) for each in misses(run, protocol)
        )
        title = f"What goes wrong under {protocol} (share of all steps)"
        return Table(title, columns("error", "share", _INTERVAL, "steps", "of"), errors, name=by)
    rows = tuple(
        (cell.labels[0], per_cent(cell.type_match), per_cent(cell.exact_match), bracketed(cell.interval), cell.n)
        for cell in breakdown(run, protocol, _NAMES.get(by, by))
    )
    return Table(f"By {by} under {protocol}", columns(by, "type match", "exact match", _INTERVAL, "n"), rows, name=by)


def cell_json(columns: RunColumns, protocol: str, by: str) -> list[dict[str, Any]]:
    """The same as plain values."""
    if by == ERROR:
        return [asdict(each) for each in misses(columns, protocol)]
    return [asdict(each) for each in breakdown(columns, protocol, _NAMES.get(by, by))]

"""The tables of `guieval score` next to a run's report: several answers a step, and breakdowns.

Intervals are over whole episodes (:mod:`guieval.metrics.intervals`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import get_args

from guieval.metrics import Measured
from guieval.metrics.breakdown import BreakdownCell, breakdown, misses
from guieval.metrics.columns import RunColumns
from guieval.metrics.sampling import Luck, Sampled, most_drawn, sampled
from guieval.reports.console import INTERVAL
from guieval.reports.tables.table import Number, Row, Table, columns

ERROR = "error"
"""The breakdown of the mismatches by kind of error."""
_NAMES = {"action-type": "action"}
"""Names of breakdowns for users that differ from the internal ones."""


def sample_metrics(run: RunColumns, protocol: str) -> list[Sampled]:
    """Metrics of all answers to a step; empty if every step has at most one answer."""
    return [sampled([run], protocol, luck) for luck in get_args(Luck)] if most_drawn(run) > 1 else []


def sample_table(run: RunColumns, protocols: Sequence[str]) -> Table | None:
    """The table of :func:`sample_metrics`, one line for each protocol; ``None`` without any."""
    by_protocol = {name: sample_metrics(run, name) for name in protocols}
    heads = [each.name for each in next(iter(by_protocol.values()))]
    if not heads:
        return None
    rows: tuple[Row, ...] = tuple(
        (name, *(Number(each.measured) for each in found), found[0].measured.n) for name, found in by_protocol.items()
    )
    title = "All answers to a step (exact match is of the first alone)"
    return Table(title, columns("protocol", *heads, "n"), rows, name="samples")


def breakdown_cells(run: RunColumns, protocol: str, by: str) -> list[BreakdownCell] | Mapping[str, Measured]:
    """The steps by ``action-type``, ``length``, ``step``, ``ratio``, ``subset`` or a label, or the misses by ``error``.

    Raises :class:`guieval.errors.UsageError` for a name that the run cannot be broken down by.
    """
    if by == ERROR:
        return {kind: share for kind, share in misses(run, protocol).items()}  # noqa: C416  # wider keys
    return breakdown(run, protocol, _NAMES.get(by, by))


def breakdown_table(run: RunColumns, protocol: str, by: str) -> Table:
    """The table of :func:`breakdown_cells`."""
    found, rows = breakdown_cells(run, protocol, by), []
    if isinstance(found, Mapping):
        for kind, each in found.items():
            rows.append((kind, Number(each).shown, Number(each).ends, int(each.count), each.n))
        title, heads = f"What goes wrong under {protocol} (share of all steps)", ("error", "share", INTERVAL, "steps", "of")
        return Table(title, columns(*heads), tuple(rows), name=by)
    cells: list[Row] = []
    for cell in found:
        exact, typed = (replace(share, interval=None) for share in (cell.exact_match, cell.type_match))
        cells.append((cell.labels[0], Number(exact), Number(cell.exact_match).ends, Number(typed), cell.n))
    heads = (by, "exact match", INTERVAL, "type match", "n")
    return Table(f"By {by} under {protocol}", columns(*heads), tuple(cells), name=by)

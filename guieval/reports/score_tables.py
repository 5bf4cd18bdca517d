"""The tables of `guieval score` next to a run's report: several answers a step, and breakdowns.

Intervals are over whole episodes (:mod:`guieval.metrics.intervals`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, get_args

from guieval.metrics import Measured
from guieval.metrics.breakdown import BreakdownCell, breakdown, misses
from guieval.metrics.columns import RunColumns
from guieval.metrics.sampling import Luck, Sampled, most_drawn, sampled
from guieval.metrics.tasks import success_by
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


class TaskCell(NamedTuple):
    """The tasks with these labels, one for each name of the breakdown, and their success rate."""

    labels: tuple[str, ...]
    success: Measured


def names_of(by: str) -> list[str]:
    """The names of a breakdown, which have commas between them."""
    return [_NAMES.get(name, name) for name in by.split(",")]


def breakdown_cells(run: RunColumns, protocol: str, by: str) -> Sequence[BreakdownCell | TaskCell] | Mapping[str, Measured]:
    """The steps by ``action-type``, ``length``, ``step``, ``ratio``, ``subset`` or a label, or the misses by ``error``.

    Tasks are by their labels. Several names with commas between them give a cell for each combination. Raises
    :class:`guieval.errors.UsageError` for a name that the run cannot be broken down by.
    """
    if run.unit == "task":
        return _task_cells(run, protocol, by)
    if by == ERROR:
        return {kind: share for kind, share in misses(run, protocol).items()}  # noqa: C416  # wider keys
    return breakdown(run, protocol, names_of(by))


def _task_cells(run: RunColumns, protocol: str, by: str) -> list[TaskCell]:
    return [TaskCell(*each) for each in success_by(run, run.judged_by(protocol), names_of(by)).items()]


def breakdown_table(run: RunColumns, protocol: str, by: str) -> Table:
    """The table of :func:`breakdown_cells`: of tasks with the failures of their repetitions."""
    if by == ERROR and run.unit == "step":
        found = misses(run, protocol).items()
        lines = tuple((kind, Number(each).shown, Number(each).ends, int(each.count), each.n) for kind, each in found)
        title = f"What goes wrong under {protocol} (share of all steps)"
        return Table(title, columns("error", "share", INTERVAL, "steps", "of"), lines, name=by)
    keys = by.split(",")
    rows: list[Row] = []
    if run.unit == "task":
        title, heads = f"By {' and '.join(keys)}", ("success rate", INTERVAL, "failures", "n")
        for labels, success in _task_cells(run, protocol, by):
            rows.append((*labels, _plain(success), Number(success).ends, round(success.n - success.count), success.n))
    else:
        title, heads = f"By {' and '.join(keys)} under {protocol}", ("exact match", INTERVAL, "type match", "n")
        for cell in breakdown(run, protocol, names_of(by)):
            exact = cell.exact_match
            rows.append((*cell.labels, _plain(exact), Number(exact).ends, _plain(cell.type_match), cell.n))
    return Table(title, columns(*keys, *heads, keys=len(keys)), tuple(rows), name=by, keys=len(keys))


def _plain(measured: Measured) -> Number:
    return Number(replace(measured, interval=None))

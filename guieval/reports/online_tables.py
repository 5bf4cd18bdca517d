"""The tables of online runs: success, how tasks ended, and success by group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from guieval.metrics import Measured, TaskSummary
from guieval.reports.tables.table import Number, Row, Table, side_by_side
from guieval.steps import ENDS

_NOTE = "False completion: of the tasks that the model stopped as finished, those that the environment judges as not done."


def online_tables(runs: Sequence[tuple[str, TaskSummary]]) -> list[Table]:
    """Success by group, if tasks have groups, and all metrics of runs, which are given with their headings."""
    labels, found = [label for label, _ in runs], [each for _, each in runs]
    metrics = side_by_side("Online metrics (with 95 % intervals)", labels, _rows(found), (_NOTE,), "online")
    groups = _group_rows(found)
    return [*([side_by_side("By group: success rate", labels, groups, name="online-groups")] if groups else []), metrics]


def _rows(runs: Sequence[TaskSummary]) -> list[Row]:
    names = dict.fromkeys(name for run in runs for name in run.metrics)
    rows: list[Row] = [(name, *_numbers(name, [run.metrics for run in runs])) for name in names]
    if any(run.repetitions > 1 for run in runs):
        rows.append(("repetitions", *(run.repetitions for run in runs)))
    ended: list[Row] = [(f"ended: {name}", *(run.ended[name] for run in runs)) for name in ENDS]
    return [
        *rows,
        (),
        *ended,
        ("infrastructure failure", *(run.failed for run in runs)),
        ("not run", *(run.not_run for run in runs)),
        ("planned tasks", *(run.tasks for run in runs)),
    ]


def _numbers(name: str, found: Sequence[Mapping[str, Measured]]) -> list[Number]:
    return [Number(each.get(name, Measured(None, 0)), show_n=True) for each in found]


def _group_rows(runs: Sequence[TaskSummary]) -> list[Row]:
    groups: dict[str, set[str]] = {}
    for run in runs:
        for name, by_value in run.groups.items():
            groups.setdefault(name, set()).update(by_value)
    rows: list[Row] = []
    for name, values in groups.items():
        rows += [(), (f"by {name}", *("" for _ in runs))]
        rows += [(f"  {value}", *_numbers(value, [run.groups.get(name, {}) for run in runs])) for value in sorted(values)]
    return rows[1:]

"""The tables of online runs: success, how tasks ended, and success by group."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

from guieval.online.figures import OnlineFigures, Share
from guieval.online.trajectory import ENDS
from guieval.reports.tables import Cell, Column, Number, Row, Table, per_cent


class OnlineRun(NamedTuple):
    """A run's heading, over several lines, and its figures."""

    label: str
    figures: OnlineFigures


def online_tables(runs: Sequence[OnlineRun]) -> list[Table]:
    """Success by group, if tasks have groups, and all figures of the runs."""
    groups = _groups(runs)
    return [*([groups] if groups is not None else []), _figures(runs)]


def online_json(figures: OnlineFigures) -> dict[str, Any]:
    """The figures as JSON values: every share with its count, n and interval."""
    return asdict(figures)


def _figures(runs: Sequence[OnlineRun]) -> Table:
    rows: list[Row] = [
        _row("success", runs, lambda figures: _share(figures.success, missing=_missing(figures))),
        _row("progress", runs, lambda figures: _share(figures.progress)),
    ]
    if any(run.figures.repetitions > 1 for run in runs):
        rows += [
            _row("pass@n", runs, lambda figures: _optional(figures.pass_any)),
            _row("pass^n", runs, lambda figures: _optional(figures.pass_all)),
            _row("n (repetitions)", runs, lambda figures: figures.repetitions),
        ]
    rows += [
        _row("false completion", runs, lambda figures: _share(figures.false_completions)),
        _row("with side effects", runs, lambda figures: _share(figures.side_effects)),
        (),
        _row("mean steps", runs, lambda figures: _count(figures.steps)),
        _row("mean steps of successes", runs, lambda figures: _count(figures.steps_of_successes)),
        _row("unparseable replies", runs, lambda figures: _share(figures.unparseable)),
        _row("unsupported actions", runs, lambda figures: _share(figures.unsupported)),
        (),
        *(_row(f"ended: {name}", runs, lambda figures, name=name: figures.ended[name]) for name in ENDS),
        _row("infrastructure failure", runs, lambda figures: figures.failed),
        _row("not run", runs, lambda figures: figures.not_run),
        _row("planned tasks", runs, lambda figures: figures.tasks),
    ]
    notes = (
        "False completion: of the tasks that the model stopped as finished, those that the environment judges as not done.",
    )
    return _table("Online (% of n, with 95 % intervals)", rows, runs, "online", notes)


def _groups(runs: Sequence[OnlineRun]) -> Table | None:
    groups: dict[str, dict[str, None]] = {}
    for run in runs:
        for name, shares in run.figures.groups.items():
            groups.setdefault(name, {}).update(dict.fromkeys(shares))
    rows: list[Row] = []
    for name, values in groups.items():
        rows += [(), (f"by {name}", *("" for _ in runs))]
        rows += [(f"  {value}", *(_of_group(run.figures, name, value) for run in runs)) for value in sorted(values)]
    return _table("By group: success (% of n)", rows[1:], runs, "online-groups") if groups else None


def _of_group(figures: OnlineFigures, name: str, value: str) -> Number:
    return _share(figures.groups.get(name, {}).get(value, Share(0, 0)), ends=False)


def _table(title: str, rows: Sequence[Row], runs: Sequence[OnlineRun], name: str, notes: tuple[str, ...] = ()) -> Table:
    return Table(title, (Column("", right=False), *(Column(run.label) for run in runs)), tuple(rows), notes, name)


def _row(name: str, runs: Sequence[OnlineRun], cell: Callable[..., Cell]) -> Row:
    return (name, *(cell(run.figures) for run in runs))


def _share(share: Share, *, ends: bool = True, missing: int = 0) -> Number:
    return per_cent(share.value, share.n, share.interval if ends else None, missing=missing)


def _optional(share: Share | None) -> Cell:
    return None if share is None else _share(share)


def _count(share: Share) -> Number:
    return Number(share.value, ".1f", n=share.n, show_n=True)


def _missing(figures: OnlineFigures) -> int:
    return figures.failed + figures.not_run * figures.repetitions

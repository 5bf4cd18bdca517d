"""The tables of online runs: success, how tasks ended, and success by group."""

from __future__ import annotations

from collections.abc import Sequence

from guieval.online.figures import OnlineFigures, Share
from guieval.online.trajectory import ENDS
from guieval.reports.tables.table import Number, Row, Table, per_cent, side_by_side

_NOTE = "False completion: of the tasks that the model stopped as finished, those that the environment judges as not done."


def online_tables(runs: Sequence[tuple[str, OnlineFigures]]) -> list[Table]:
    """Success by group, if tasks have groups, and all figures of runs, which are given with their headings."""
    labels, all_figures = [label for label, _ in runs], [figures for _, figures in runs]
    figures = side_by_side("Online (% of n, with 95 % intervals)", labels, _figure_rows(all_figures), (_NOTE,), "online")
    groups = _group_rows(all_figures)
    return [*([side_by_side("By group: success (% of n)", labels, groups, name="online-groups")] if groups else []), figures]


def success(run: OnlineFigures, *, show_n: bool = True) -> Number:
    """The success rate over the judged repetitions of tasks, and how many of the planned ones are not judged."""
    share, missing = run.success, run.failed + run.not_run * run.repetitions
    mark = f"({missing:,} not judged)" if missing else ""
    return per_cent(share.value, share.n, share.interval, show_n=show_n, mark=mark)


def _figure_rows(runs: Sequence[OnlineFigures]) -> list[Row]:
    repeated: list[Row] = []
    if any(run.repetitions > 1 for run in runs):
        repeated = [
            ("pass@n", *(_share(run.pass_any) for run in runs)),
            ("pass^n", *(_share(run.pass_all) for run in runs)),
            ("n (repetitions)", *(run.repetitions for run in runs)),
        ]
    ended: list[Row] = [(f"ended: {name}", *(run.ended[name] for run in runs)) for name in ENDS]
    return [
        ("success", *(success(run) for run in runs)),
        ("progress", *(_share(run.progress) for run in runs)),
        *repeated,
        ("false completion", *(_share(run.false_completions) for run in runs)),
        ("with side effects", *(_share(run.side_effects) for run in runs)),
        (),
        ("mean steps", *(_mean(run.steps) for run in runs)),
        ("mean steps of successes", *(_mean(run.steps_of_successes) for run in runs)),
        ("unparseable replies", *(_share(run.unparseable) for run in runs)),
        ("unsupported actions", *(_share(run.unsupported) for run in runs)),
        (),
        *ended,
        ("infrastructure failure", *(run.failed for run in runs)),
        ("not run", *(run.not_run for run in runs)),
        ("planned tasks", *(run.tasks for run in runs)),
    ]


def _group_rows(runs: Sequence[OnlineFigures]) -> list[Row]:
    groups: dict[str, set[str]] = {}
    for run in runs:
        for name, by_value in run.groups.items():
            groups.setdefault(name, set()).update(by_value)
    rows: list[Row] = []
    for name, values in groups.items():
        rows += [(), (f"by {name}", *("" for _ in runs))]
        for value in sorted(values):
            shares = (run.groups.get(name, {}).get(value, Share(0, 0)) for run in runs)
            rows.append((f"  {value}", *(per_cent(share.value, share.n) for share in shares)))
    return rows[1:]


def _share(share: Share | None) -> Number | None:
    return None if share is None else per_cent(share.value, share.n, share.interval)


def _mean(share: Share) -> Number:
    return Number(share.value, ".1f", n=share.n, show_n=True)

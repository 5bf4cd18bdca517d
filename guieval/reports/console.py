"""The tables that a run prints at its end, also for several runs side by side: a column for each run.

Exact match over all steps leads, then the other metrics of every run; those of the protocol's source are a second block.
Each has its denominator and, if known, its interval.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from guieval.actions import Frozen
from guieval.data.doctor.counts import counted
from guieval.metrics import Measured, RunSummary, Summary, TaskSummary
from guieval.metrics.breakdown import BreakdownCell as Scores
from guieval.metrics.claims import CLAIMS
from guieval.metrics.columns import ENDS
from guieval.metrics.leading import denominators
from guieval.metrics.repeats import Repeated
from guieval.metrics.rounding import percentage
from guieval.metrics.summary import COVERAGE_NEEDED, WITHOUT_OPEN, GroupTable
from guieval.reports.tables.table import NOTHING, Cell, Number, Row, Table, columns, share, side_by_side
from guieval.steps import ENDS as ENDINGS

S = TypeVar("S", RunSummary, TaskSummary)
_WHOLE_EPISODES = ("success rate", "progress", "step-weighted progress")
_HIDDEN = {f"{name}{WITHOUT_OPEN}" for name in (*_WHOLE_EPISODES, "coverage", "covered type match")}
"""Metrics that only Python and JSON show."""
_NO_SCORES = ("median click distance", "mean text similarity", "mean seconds to answer", "prompt tokens", "completion tokens")
INTERVAL = "95% interval"
_CLAIMS = tuple(f"{claim.metric.capitalize()}: {claim.meaning}." for claim in CLAIMS)


class Run(NamedTuple, Generic[S]):
    """The printed column of a run. The label may have several lines, e.g. model, benchmark and mode."""

    label: str
    summary: S


def _has_outcomes(summary: RunSummary) -> bool:
    """Whether no label is an action of the unified space (a file of outcomes), so that types and coverage have no meaning."""
    return set(summary.by_action_type) == {"UNSUPPORTED"}


def run_table(runs: Sequence[Run[RunSummary]]) -> Table:
    """The metrics of every run: over all steps, those of the user, coverage, and how each planned step ended.

    Metrics that none of the runs defines are skipped, those of episodes if every episode is one step (grounding).
    Of tasks whose labels are outcomes only the success rate is left.
    """
    names = list(dict.fromkeys(name for run in runs for name in run.summary.metrics))
    if all(_has_outcomes(run.summary) for run in runs):
        steps, rest = ["success rate"], []
    else:
        several = any(run.summary.verdicts.planned > run.summary.episodes for run in runs)
        skipped = {*_NO_SCORES, *_HIDDEN, *(() if several else _WHOLE_EPISODES)}
        shown = [name for name in names if name not in skipped]
        rest = [name for name in shown if WITHOUT_OPEN in name or "cover" in name]
        steps = [name for name in shown if name not in rest]
    further = list(dict.fromkeys(name for run in runs for name in run.summary.further))
    known = [
        name for name in _NO_SCORES if any(run.summary.all_metrics.get(name, Measured(None)).value is not None for run in runs)
    ]
    sections = [_rows(part, runs) for part in (steps, further, rest)]
    sections += [_ends(runs), _rows(known, runs)]
    rows = [row for section in sections if section for row in ((), *section)]
    return side_by_side("Metrics (with 95 % intervals)", (run.label for run in runs), rows[1:], name="metrics")


def own_table(runs: Sequence[Run[RunSummary]]) -> Table | None:
    """The metrics of the protocol's source under its own names, and what each is over; ``None`` without any."""
    own = [run.summary.own for run in runs]
    names = list(dict.fromkeys(name for each in own for name in each))
    protocols = ", ".join(dict.fromkeys(run.summary.protocol for run in runs))
    title = f"{protocols}: its own metrics"
    if not names:
        return None
    if len(runs) > 1:
        over = {name: each[name].of for each in reversed(own) for name in each}
        cells = [{name: Number(number, show_n=True) for name, number in each.items()} for each in own]
        rows: list[Row] = [(name, *(each.get(name) for each in cells)) for name in names]
        return side_by_side(title, (run.label for run in runs), rows, (denominators(protocols, over),), "own")
    numbers = [(name, Number(own[0][name])) for name in names]
    rows = [(name, f"{each.shown} {each.marks}".strip(), each.ends, each.of.n, each.of.of) for name, each in numbers]
    return Table(title, columns("metric", "value", INTERVAL, "n", "of", folds=("of",)), tuple(rows), name="own")


def action_table(runs: Sequence[Run[RunSummary]]) -> Table | None:
    """Type match and exact match by the reference's action type; ``None`` if all references are of one type."""
    names = dict.fromkeys(name for run in runs for name in run.summary.by_action_type)
    if len(names) < 2:
        return None
    rows: list[Row] = [(name, *(_scores(run.summary.by_action_type.get(name)) for run in runs)) for name in names]
    all_steps = _all_steps(runs)
    if any(map(_without_type, runs)):  # of a run that did not write down the types of the steps without a record
        all_steps.append(("of them missing", *map(_without_type, runs)))
    return _pairs("By reference action", [rows, all_steps], runs, "actions")


def group_table(runs: Sequence[Run[RunSummary]]) -> Table | None:
    """Exact match and type match by group label; ``None`` when no run has groups.

    Every key of the benchmark's labels has a section, then every pair of keys with the unweighted mean of its cells; the
    last line is over all steps (the micro average).
    """
    labels: dict[tuple[str, ...], dict[tuple[str, ...], None]] = {}
    for run in runs:
        for table in run.summary.groups:
            labels.setdefault(table.keys, {}).update(dict.fromkeys(cell.labels for cell in table.cells))
    if not labels:
        return None
    sections: list[list[Row]] = []
    for keys, values in labels.items():
        tables = [next((table for table in run.summary.groups if table.keys == keys), None) for run in runs]
        cells = [{} if table is None else {cell.labels: cell for cell in table.cells} for table in tables]
        rows = [(f"  {' / '.join(value)}", *(_scores(of_run.get(value)) for of_run in cells)) for value in sorted(values)]
        heading: Row = (f"by {' x '.join(keys)}", *("" for _ in runs))
        sections.append([heading, *rows, ("  mean", *map(_mean, tables))])
    all_steps = _all_steps(runs)
    if any(run.summary.verdicts.not_run for run in runs):  # without a record, such a step may be in no row above
        all_steps.append(("of them unrecorded", *(run.summary.verdicts.not_run for run in runs)))
    return _pairs("By group", [*sections, all_steps], runs, "groups")


def report_tables(runs: Sequence[Run[RunSummary]]) -> list[Table]:
    """All tables, the metrics last."""
    tables = (group_table(runs), action_table(runs), run_table(runs), own_table(runs))
    return [table for table in tables if table is not None]


def online_tables(runs: Sequence[Run[TaskSummary]]) -> list[Table]:
    """Of online runs: success by group, if tasks have groups, and all metrics with how the repetitions ended."""
    labels, found = [run.label for run in runs], [run.summary for run in runs]
    rows = _named(dict.fromkeys(name for each in found for name in each.metrics), [each.metrics for each in found])
    if any(each.repetitions > 1 for each in found):
        rows.append(("repetitions", *(each.repetitions for each in found)))
    ends = [name for name in ENDINGS if name != "not judged" or any(each.ended.get(name) for each in found)]
    ended: list[Row] = [(f"ended: {name}", *(each.ended[name] for each in found)) for name in ends]
    counts = {"infrastructure failure": "failed", "not run": "not_run", "planned tasks": "tasks"}
    ended += [(name, *(getattr(each, field) for each in found)) for name, field in counts.items()]
    title = "Online metrics (with 95 % intervals)"
    metrics = side_by_side(title, labels, [*rows, (), *ended], _CLAIMS, "online")
    groups: list[Row] = []
    for group in dict.fromkeys(name for each in found for name in each.groups):
        of_runs = [each.groups.get(group, {}) for each in found]
        groups += [(), (f"by {group}", *("" for _ in found))]
        groups += _named(sorted({value for of_run in of_runs for value in of_run}), of_runs, "  ")
    return [*([side_by_side("By group: success rate", labels, groups[1:], name="online-groups")] if groups else []), metrics]


def report_json(summary: Summary) -> dict[str, Any]:
    """A run's summary with all metrics."""
    assert isinstance(summary, Frozen)
    return {"state": summary.state, "summary": {name: getattr(summary, name) for name in type(summary).model_fields}}


def warning_lines(runs: Sequence[Run[RunSummary]]) -> list[str]:
    """One sentence for each reason not to publish a run's metrics as they are."""
    return [line for run in runs for line in _warnings(" ".join(run.label.split()), run.summary)]


def _warnings(label: str, summary: RunSummary) -> Iterator[str]:
    verdicts, exact = summary.verdicts, summary.exact_match
    if not summary.complete:
        yield (
            f"{label}: incomplete: {summary.incomplete:,} of {verdicts.planned:,} steps, in {summary.incomplete_episodes:,} of "
            f"{summary.episodes:,} episodes, are missing ({verdicts.infrastructure_failure:,} failed, "
            f"{verdicts.not_run:,} unrecorded). They count as wrong: exact match is at least {share(exact.value)} "
            f"and at most {share(exact.value if exact.upper is None else exact.upper)}{_without(exact, summary)}."
        )
    if summary.coverage.value is not None and not summary.coverage_ok and not _has_outcomes(summary):
        ends = {"unparseable": verdicts.unparseable, "unsupported": verdicts.unsupported}
        why = ", ".join(f"{count:,} {name}" for name, count in ends.items() if count)
        others = verdicts.measured - round(summary.coverage.count * _times(summary.coverage)) - sum(ends.values())
        why = ", ".join(filter(None, (why, f"{others:,} with an action outside the common space" if others else "")))
        yield (
            f"{label}: coverage is {share(summary.coverage.value)}, below {COVERAGE_NEEDED:.0%} ({why}): the covered metrics "
            "should not be reported."
        )
    if summary.unplanned:
        yield f"{label}: not counted: {counted(summary.unplanned, 'recorded step')} outside the plan."


def _without(exact: Measured, summary: RunSummary) -> str:
    """Exact match over the answered steps alone, in words."""
    answered, right = exact.n * _times(exact) - summary.incomplete, exact.count * _times(exact)
    return f"; over the {counted(answered, 'answered step')} it is {share(right / answered)}" if answered > 0 else ""


def _times(of: Measured) -> int:
    """How many repeats a metric is a mean of: counts of steps are their sums."""
    return len(of.repeats) if isinstance(of, Repeated) else 1


def _pairs(title: str, sections: Sequence[Sequence[Row]], runs: Sequence[Run[RunSummary]], name: str) -> Table:
    rows = [row for section in sections for row in ((), *section)]
    whole = f"{title}: exact match / type match (% of n)"
    return side_by_side(whole, (run.label for run in runs), rows[1:], name=name)


def _rows(names: Sequence[str], runs: Sequence[Run[RunSummary]]) -> list[Row]:
    return _named(names, [run.summary.all_metrics for run in runs])


def _named(names: Iterable[str], found: Sequence[Mapping[str, Measured]], indent: str = "") -> list[Row]:
    unknown = Measured(None)
    return [(f"{indent}{name}", *(Number(of_run.get(name, unknown), show_n=True) for of_run in found)) for name in names]


def _ends(runs: Sequence[Run[RunSummary]]) -> list[Row]:
    ends: list[tuple[str, str]] = [(end.replace("_", " "), end) for end in ENDS]
    several = ", of all repeats" * any(_times(run.summary.exact_match) > 1 for run in runs)
    ends += [(f"planned steps{several}", "planned")]
    return [(name, *(getattr(run.summary.verdicts, end) for run in runs)) for name, end in ends]


def _scores(cell: Scores | None) -> str | None:
    return None if cell is None else _pair(cell.exact_match, cell.type_match)


def _mean(table: GroupTable | None) -> str | None:
    return None if table is None else f"{_pair(table.mean_exact_match, table.mean_type_match)} cells"


def _pair(exact_match: Measured, type_match: Measured) -> str:
    if type_match.value is None or exact_match.value is None:
        return NOTHING
    shares = (percentage(each, ".1f") for each in (exact_match.value, type_match.value))
    return f"{' / '.join(shares)} of {type_match.n:,}"


def _all_steps(runs: Sequence[Run[RunSummary]]) -> list[Row]:
    def match(run: Run[RunSummary]) -> Cell:
        return " ".join(
            filter(None, (_pair(run.summary.exact_match, run.summary.type_match), Number(run.summary.exact_match).marks))
        )

    return [("all steps", *map(match, runs))]


def _without_type(run: Run[RunSummary]) -> int:
    summary: RunSummary = run.summary
    return summary.type_match.n - sum(cell.n for cell in summary.by_action_type.values())

"""The tables that a run prints at its end, also for several runs side by side: a column for each run.

Percentages appear only here, each with its denominator and, if known, its interval.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

from guieval.data.doctor.counts import counted
from guieval.evaluation.protocol import FailurePolicy, Figure
from guieval.metrics.columns import RunColumns
from guieval.metrics.figures import compute_with_interval
from guieval.metrics.intervals import Interval
from guieval.metrics.rounding import percentage
from guieval.metrics.summary import COVERAGE_NEEDED, Average, GroupTable, Rate, RunSummary, Scores
from guieval.metrics.tally import SUMMARY_FIGURES
from guieval.reports.tables.table import NOTHING, Cell, Number, Row, Table, missing_mark, per_cent, side_by_side


class Run(NamedTuple):
    """The printed row of a run. The label may have several lines, e.g. model, benchmark and mode."""

    label: str
    summary: RunSummary
    intervals: Mapping[Figure, Interval] = MappingProxyType({})


def _missing(run: RunSummary) -> int:
    return run.incomplete + run.left_out


def _missing_without_open(run: RunSummary) -> int:
    rate = run.without_open.exact_match  # its upper bound counts every step that was not measured as right
    return run.left_out + (0 if rate.upper is None else round(rate.upper * rate.n) - rate.count)


_Share: TypeAlias = tuple[str, str, Callable[[RunSummary], int] | None]
"""A row of shares: its title, the dotted name in the summary, how many steps are missing."""
_STEPS: tuple[_Share, ...] = (
    ("type match", "type_match", _missing),
    ("exact match", "exact_match", _missing),
    ("coverage", "coverage", None),
    ("covered type match", "covered_type_match", None),
    ("covered exact match", "covered_exact_match", None),
)
_OUTCOMES: tuple[_Share, ...] = (("success rate", "success_rate", _missing),)
_WITHOUT_OPEN: tuple[_Share, ...] = (
    ("  type match", "without_open.type_match", _missing_without_open),
    ("  exact match", "without_open.exact_match", _missing_without_open),
    ("  covered exact match", "without_open.covered_exact_match", None),
)
_EPISODES: tuple[_Share, ...] = (
    ("progress (episode mean)", "progress_episode_mean", _missing),
    ("progress (step-weighted)", "progress_step_weighted", _missing),
    ("success rate", "success_rate", _missing),
)
_SOP: tuple[_Share, ...] = (("PG", "sop.pg", _missing), ("TSR", "sop.tsr", _missing), ("Score", "sop.score", _missing))
_ENDS = ("right", "wrong", "unparseable", "unsupported", "infrastructure failure", "not run", "not reached")
_DIAGNOSTICS = (
    ("median click distance", "click_distance_median", ".1f"),
    ("mean text similarity", "text_similarity_mean", "%"),
    ("mean seconds to answer", "seconds_mean", ".2f"),
    ("prompt tokens", "prompt_tokens", ","),
    ("completion tokens", "completion_tokens", ","),
)


def _has_outcomes(summary: RunSummary) -> bool:
    """Whether no label is an action of the unified space, so that types and coverage have no meaning."""
    return set(summary.by_action_type) == {"UNSUPPORTED"}


def intervals(columns: RunColumns, protocol: str) -> dict[Figure, Interval]:
    """The intervals of the figures that :func:`run_table` shows."""
    stops = columns.stop == "first-mismatch"
    figures = dict.fromkeys(figure for name, figure in SUMMARY_FIGURES.items() if stops or not name.startswith("sop."))
    judged = columns.judged[protocol]
    shown = {figure: compute_with_interval(figure, FailurePolicy(), columns, judged)[1] for figure in figures}
    return {figure: interval for figure, interval in shown.items() if interval is not None}


def run_table(runs: Sequence[Run]) -> Table:
    """Every headline figure: step and episode figures, coverage, and how each planned step ended.

    Figures that none of the runs defines are left out: figures of episodes if every episode is one step (grounding),
    and figures without OPEN steps if there are none. The click distance is in thousandths of the screen.
    Of tasks whose labels are outcomes only the success rate is left.
    """
    steps = _OUTCOMES if all(_has_outcomes(run.summary) for run in runs) else _STEPS
    sections = [_shares(steps, runs), _ends(runs), _diagnostics(runs)]
    if any(run.summary.verdicts.planned > run.summary.episodes for run in runs):
        sop = _SOP if any(run.summary.sop is not None for run in runs) else ()
        sections.insert(1, _shares((*_EPISODES, *sop), runs))
        if any("OPEN" in run.summary.by_action_type or _without_type(run) for run in runs):
            sections.insert(1, [_titled("without OPEN steps", runs), *_shares(_WITHOUT_OPEN, runs)])
    return _table("Figures (% of n, with 95 % intervals)", sections, runs, "figures")


def action_table(runs: Sequence[Run]) -> Table | None:
    """Type match and exact match by the reference's action type; ``None`` where all references are of one type."""
    names = dict.fromkeys(name for run in runs for name in run.summary.by_action_type)
    if len(names) < 2:
        return None
    rows = [(name, *(_scores(run.summary.by_action_type.get(name)) for run in runs)) for name in names]
    all_steps = _all_steps(runs)
    if any(map(_without_type, runs)):  # of a run that did not write down the types of the steps without a record
        all_steps.append(("of them not run", *map(_without_type, runs)))
    return _table("By reference action: type match / exact match (% of n)", [rows, all_steps], runs, "actions")


def group_table(runs: Sequence[Run]) -> Table | None:
    """Type match and exact match by group label; ``None`` when no run has groups.

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
        scores = [{} if table is None else {cell.labels: cell.scores for cell in table.cells} for table in tables]
        rows = [(f"  {' / '.join(value)}", *(_scores(of_run.get(value)) for of_run in scores)) for value in sorted(values)]
        sections.append([_titled(f"by {' x '.join(keys)}", runs), *rows, ("  mean", *map(_mean, tables))])
    all_steps = _all_steps(runs)
    if any(run.summary.verdicts.not_run for run in runs):  # without a record, such a step is in no row above
        all_steps.append(("of them not run", *(run.summary.verdicts.not_run for run in runs)))
    return _table("By group: type match / exact match (% of n)", [*sections, all_steps], runs, "groups")


def report_tables(runs: Sequence[Run]) -> list[Table]:
    """All tables, the headline figures last."""
    return [table for table in (group_table(runs), action_table(runs), run_table(runs)) if table is not None]


def report_json(run: Run) -> dict[str, Any]:
    """A run's summary, and its intervals by the figures' names."""
    return {
        "summary": run.summary,
        "intervals": [{"figure": figure.describe(), **vars(interval)} for figure, interval in run.intervals.items()],
    }


def warning_lines(runs: Sequence[Run]) -> list[str]:
    """One sentence for each reason not to publish a run's figures as they are."""
    return [line for run in runs for line in _warnings(" ".join(run.label.split()), run.summary)]


def _warnings(label: str, summary: RunSummary) -> Iterator[str]:
    verdicts, exact = summary.verdicts, summary.exact_match
    if not summary.complete:
        upper = exact.value if exact.upper is None else exact.upper
        yield (
            f"{label}: incomplete: {summary.incomplete:,} of {verdicts.planned:,} steps, in {summary.incomplete_episodes:,} of "
            f"{summary.episodes:,} episodes, were not measured ({verdicts.infrastructure_failure:,} failed, "
            f"{verdicts.not_run:,} never sent). They count as wrong: exact match is at least {per_cent(exact.value)} "
            f"and at most {per_cent(upper)}."
        )
    if summary.coverage.value is not None and not summary.coverage_ok and not _has_outcomes(summary):
        yield (
            f"{label}: coverage is {per_cent(summary.coverage.value)}, below {COVERAGE_NEEDED:.0%}: too many replies are "
            "outside the common action space for the covered figures to be reported."
        )
    if summary.unplanned:
        yield f"{label}: not counted: {counted(summary.unplanned, 'recorded step')} outside the plan."


def _table(title: str, sections: Sequence[Sequence[Row]], runs: Sequence[Run], name: str) -> Table:
    rows = [row for section in sections for row in ((), *section)]
    return side_by_side(title, (run.label for run in runs), rows[1:], name=name)


def _shares(rows: Sequence[_Share], runs: Sequence[Run]) -> list[Row]:
    return [(title, *(_share(run, path, missing) for run in runs)) for title, path, missing in rows]


def _share(run: Run, path: str, missing: Callable[[RunSummary], int] | None) -> Number:
    rate: Any = reduce(lambda part, name: part and getattr(part, name), path.split("."), run.summary)
    if rate is None:  # of SOP in another mode
        return Number(None)
    interval = run.intervals.get(SUMMARY_FIGURES[path]) if path in SUMMARY_FIGURES else None
    return per_cent(rate.value, rate.n, interval, missing=0 if missing is None else missing(run.summary))


def _ends(runs: Sequence[Run]) -> list[Row]:
    ends: list[Row] = [(name, *(getattr(run.summary.verdicts, name.replace(" ", "_")) for run in runs)) for name in _ENDS]
    return [*ends, ("planned steps", *(run.summary.verdicts.planned for run in runs))]


def _diagnostics(runs: Sequence[Run]) -> list[Row]:
    rows: list[Row] = []
    for title, name, form in _DIAGNOSTICS:
        figures = [getattr(run.summary.diagnostics, name) for run in runs]
        if any(figure.value is not None and figure.n for figure in figures):
            rows.append((title, *(_diagnostic(figure.value, figure.n, form) for figure in figures)))
    return rows


def _diagnostic(value: float | None, n: int, form: str) -> Number:
    return per_cent(value, n) if form == "%" else Number(value if n else None, form, n=n, show_n=True)


def _titled(title: str, runs: Sequence[Run]) -> Row:
    return (title, *("" for _ in runs))


def _scores(scores: Scores | None) -> str | None:
    return None if scores is None else _pair(scores.type_match, scores.exact_match)


def _mean(table: GroupTable | None) -> str | None:
    return None if table is None else f"{_pair(table.mean_type_match, table.mean_exact_match)} cells"


def _pair(type_match: Rate | Average, exact_match: Rate | Average) -> str:
    if type_match.value is None or exact_match.value is None:
        return NOTHING
    shares = (percentage(each, ".1f") for each in (type_match.value, exact_match.value))
    return f"{' / '.join(shares)} of {type_match.n:,}"


def _all_steps(runs: Sequence[Run]) -> list[Row]:
    def match(run: Run) -> Cell:
        mark = missing_mark(_missing(run.summary))
        return " ".join(filter(None, (_pair(run.summary.type_match, run.summary.exact_match), mark)))

    return [("all steps", *map(match, runs))]


def _without_type(run: Run) -> int:
    return run.summary.type_match.n - sum(scores.n for scores in run.summary.by_action_type.values())

"""Tables for the terminal: what a run prints at its end, and the same for several runs side by side.

Runs are given as (label, summary) pairs; a label may have several lines, e.g. benchmark, model and mode. Percentages appear
here only, each with the number it was divided by. Tables that are too wide are cut into several, by runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeAlias

from guieval.metrics import Average, GroupTable, Rate, RunSummary, Scores, Total
from guieval.metrics.summary import COVERAGE_NEEDED
from guieval.reports.wide_table import Row, WideTable

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

Run: TypeAlias = tuple[str, RunSummary]
_Row: TypeAlias = tuple[str, Callable[[RunSummary], str]]
_Section: TypeAlias = Sequence[_Row]

NOTHING = "-"
"""Shown where a figure has nothing to be computed from, or no meaning in the run's mode."""


def run_table(runs: Sequence[Run]) -> RenderableType:
    """Every headline figure, one column per run: step and episode figures, coverage, and how each planned step ended.

    The click distance is in thousandths of the screen.
    """
    sop = any(summary.sop is not None for _, summary in runs)
    sections = [_step_rows(), _open_rows(), _episode_rows(sop), _verdict_rows(), _diagnostic_rows(runs)]
    return _sections("Figures (% of n)", sections, runs)


def action_table(runs: Sequence[Run]) -> RenderableType:
    """Type match and exact match by the reference's action type, one column per run."""
    names = dict.fromkeys(name for _, summary in runs for name in summary.by_action_type)
    rows: list[_Row] = [(name, _of_type(name)) for name in names]
    return _sections(
        "By reference action: type match / exact match (% of n)", [rows, [("all steps", _all_steps), *_never_run(runs)]], runs
    )


def group_table(runs: Sequence[Run]) -> RenderableType | None:
    """Type match and exact match by group label, one column per run; ``None`` when no run has groups.

    Every key of the benchmark's labels comes apart, then every pair of keys with the unweighted mean of its cells; the
    last line is over all steps (the micro average).
    """
    cells: dict[tuple[str, ...], dict[tuple[str, ...], None]] = {}
    for _, summary in runs:
        for table in summary.groups:
            cells.setdefault(table.keys, {}).update(dict.fromkeys(cell.labels for cell in table.cells))
    if not cells:
        return None
    sections: list[_Section] = []
    for keys, labels in cells.items():
        rows: list[_Row] = [(f"  {' / '.join(each)}", _of_cell(keys, each)) for each in sorted(labels)]
        sections.append([(f"by {' x '.join(keys)}", _blank), *rows, ("  mean", _of_mean(keys))])
    sections.append([("all steps", _all_steps), *_never_run(runs)])
    return _sections("By group: type match / exact match (% of n)", sections, runs)


def warning_lines(runs: Sequence[Run]) -> list[str]:
    """One sentence for each reason not to publish a run's figures as they are."""
    return [line for label, summary in runs for line in _warnings(" ".join(label.split()), summary)]


def print_report(runs: Sequence[Run], console: Console | None = None) -> None:
    """Print all tables, the headline figures last, then the warnings, to ``console`` (standard output by default)."""
    from rich.console import Console
    from rich.text import Text

    console = console or Console()
    for table in (group_table(runs), action_table(runs), run_table(runs)):
        if table is not None:
            console.print(table)
    for line in warning_lines(runs):
        console.print(Text(f"Warning: {line}", style="yellow"))


def _warnings(label: str, summary: RunSummary) -> Iterator[str]:
    verdicts, exact = summary.verdicts, summary.exact_match
    if not summary.complete:
        upper = exact.value if exact.upper is None else exact.upper
        yield (
            f"{label}: incomplete: {summary.incomplete:,} of {verdicts.planned:,} steps, in {summary.incomplete_episodes:,} of "
            f"{summary.episodes:,} episodes, were not measured ({verdicts.infrastructure_failure:,} failed, "
            f"{verdicts.not_run:,} never asked). They count as wrong: exact match is at least {_percent(exact.value)} "
            f"and at most {_percent(upper)}."
        )
    if summary.coverage.value is not None and not summary.coverage_ok:
        yield (
            f"{label}: coverage is {_percent(summary.coverage.value)}, below {COVERAGE_NEEDED:.0%}: too many replies lie "
            "outside the common action space for the covered figures to be reported."
        )
    if summary.unplanned:
        yield f"{label}: {summary.unplanned:,} recorded steps lie outside the plan and count nowhere."


def _percent(value: float | None) -> str:
    return NOTHING if value is None else f"{100 * value:.2f}%"


def _figure(figure: Rate | Average | None) -> str:
    if figure is None or figure.value is None:
        return NOTHING
    return f"{_percent(figure.value)} of {figure.n:,}"


def _number(figure: Average, form: str) -> str:
    return NOTHING if figure.value is None else f"{figure.value:{form}} of {figure.n:,}"


def _total(total: Total) -> str:
    return f"{total.value:,} of {total.n:,}" if total.n else NOTHING


def _scores(scores: Scores | None) -> str:
    return NOTHING if scores is None else _pair(scores.type_match, scores.exact_match)


def _pair(type_match: Rate | Average, exact_match: Rate | Average) -> str:
    if type_match.value is None or exact_match.value is None:
        return NOTHING
    return f"{100 * type_match.value:.1f} / {100 * exact_match.value:.1f} of {type_match.n:,}"


def _step_rows() -> _Section:
    return [
        ("type match", lambda run: _figure(run.type_match)),
        ("exact match", lambda run: _figure(run.exact_match)),
        ("coverage", lambda run: _figure(run.coverage)),
        ("covered type match", lambda run: _figure(run.covered_type_match)),
        ("covered exact match", lambda run: _figure(run.covered_exact_match)),
    ]


def _open_rows() -> _Section:
    return [
        ("without OPEN steps", _blank),
        ("  type match", lambda run: _figure(run.without_open.type_match)),
        ("  exact match", lambda run: _figure(run.without_open.exact_match)),
        ("  covered exact match", lambda run: _figure(run.without_open.covered_exact_match)),
    ]


def _episode_rows(sop: bool) -> _Section:
    rows: list[_Row] = [
        ("progress (episode mean)", lambda run: _figure(run.progress_episode_mean)),
        ("progress (step-weighted)", lambda run: _figure(run.progress_step_weighted)),
        ("success rate", lambda run: _figure(run.success_rate)),
    ]
    if sop:
        rows += [
            ("PG", lambda run: _figure(run.sop.pg if run.sop else None)),
            ("TSR", lambda run: _figure(run.sop.tsr if run.sop else None)),
            ("Score", lambda run: _figure(run.sop.score if run.sop else None)),
        ]
    return rows


def _verdict_rows() -> _Section:
    return [
        ("right", lambda run: f"{run.verdicts.right:,}"),
        ("wrong", lambda run: f"{run.verdicts.wrong:,}"),
        ("unparseable", lambda run: f"{run.verdicts.unparseable:,}"),
        ("unsupported", lambda run: f"{run.verdicts.unsupported:,}"),
        ("infrastructure failure", lambda run: f"{run.verdicts.infrastructure_failure:,}"),
        ("not run", lambda run: f"{run.verdicts.not_run:,}"),
        ("not reached", lambda run: f"{run.verdicts.not_reached:,}"),
        ("planned steps", lambda run: f"{run.verdicts.planned:,}"),
    ]


def _diagnostic_rows(runs: Sequence[Run]) -> _Section:
    rows: list[_Row] = [
        ("median click distance", lambda run: _number(run.diagnostics.click_distance_median, ".1f")),
        ("mean text similarity", lambda run: _figure(run.diagnostics.text_similarity_mean)),
        ("mean seconds to answer", lambda run: _number(run.diagnostics.seconds_mean, ".2f")),
        ("prompt tokens", lambda run: _total(run.diagnostics.prompt_tokens)),
        ("completion tokens", lambda run: _total(run.diagnostics.completion_tokens)),
    ]
    return [(name, show) for name, show in rows if any(show(summary) != NOTHING for _, summary in runs)]


def _all_steps(run: RunSummary) -> str:
    return _pair(run.type_match, run.exact_match)


def _blank(run: RunSummary) -> str:
    return ""


def _never_run(runs: Sequence[Run]) -> _Section:
    """A line for the steps that are in "all steps" but, having no record, in no row above it."""
    if any(summary.verdicts.not_run for _, summary in runs):
        return [("of them not run", lambda run: f"{run.verdicts.not_run:,}")]
    return []


def _of_type(name: str) -> Callable[[RunSummary], str]:
    return lambda run: _scores(run.by_action_type.get(name))


def _table_of(run: RunSummary, keys: tuple[str, ...]) -> GroupTable | None:
    return next((table for table in run.groups if table.keys == keys), None)


def _of_cell(keys: tuple[str, ...], labels: tuple[str, ...]) -> Callable[[RunSummary], str]:
    def show(run: RunSummary) -> str:
        table = _table_of(run, keys)
        return _scores(next((cell.scores for cell in table.cells if cell.labels == labels), None) if table else None)

    return show


def _of_mean(keys: tuple[str, ...]) -> Callable[[RunSummary], str]:
    def show(run: RunSummary) -> str:
        table = _table_of(run, keys)
        return f"{_pair(table.mean_type_match, table.mean_exact_match)} cells" if table else NOTHING

    return show


def _sections(title: str, sections: Sequence[_Section], runs: Sequence[Run]) -> WideTable[Run]:
    """Rows in sections, a column for each run."""

    def rows(shown: Sequence[Run]) -> Iterator[list[Row]]:
        for section in sections:
            yield [(name, [show(summary) for _, summary in shown]) for name, show in section]

    return WideTable(title, runs, lambda run: run[0], rows)

"""``guieval score``: score a run under any protocol, or under all, without a model.

Under one protocol it prints what a run prints at its end and how sure its metrics are, under several one table of every
protocol's own metrics. The exit code is 1 when steps of a run are not measured that a resume would measure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from guieval.cli import options
from guieval.cli.settings import path_argument, path_option
from guieval.cli.tables import JSON, echo, print_json, say, show
from guieval.data.doctor.counts import counted
from guieval.data.overlays import read_overlay
from guieval.data.selection import Choice
from guieval.errors import UsageError
from guieval.history.modes import Kind
from guieval.journal import RunFolder
from guieval.journal.run_folders import several_runs
from guieval.metrics.columns import RunColumns
from guieval.metrics.kinds import of_steps, of_tasks
from guieval.metrics.registry import use_metrics
from guieval.reports.console import Run, online_tables, report_json, report_tables, warning_lines
from guieval.reports.matrix_table import (
    agreement_lines,
    glance_table,
    matrix_json,
    matrix_table,
    step_lines,
    unmeasured_lines,
    write_disagreements,
)
from guieval.reports.score_tables import breakdown_cells, breakdown_table, sample_table
from guieval.reports.tables.records import apart, check_ending
from guieval.running.resume.trust import resume_of
from guieval.scoring.answered import Scorable
from guieval.scoring.matrix import ALL, JudgedAnswers, judge_answers, on_own_sets
from guieval.scoring.matrix import disagreements as disagreements_of
from guieval.scoring.recorded_run import recorded_answers
from guieval.scoring.score import scored, summary_of_run


def score(
    source: Annotated[Path, path_argument("RUN", "A run, or a folder of runs.")],
    protocol: options.Protocols = None,
    by: Annotated[
        list[str] | None,
        typer.Option(
            help="By action-type, length, step, ratio, reasoning, subset, error or labels (tags,difficulty); may be repeated."
        ),
    ] = None,
    sample_set: options.SampleSet = None,
    split: options.Split = None,
    subset: options.Subset = None,
    episodes: Annotated[Path | None, path_option("Score only the episodes, or steps, that this file lists.")] = None,
    overlay: options.Overlay = None,
    reparse: Annotated[bool, typer.Option(help="Read the raw responses again with today's adapter.")] = False,
    adapter: options.ReadingAdapter = None,
    metrics_from: options.MetricsFrom = None,
    disagreements: Annotated[
        Path | None, path_option("Write the steps that protocols judge differently (.csv or .jsonl).")
    ] = None,
    json: JSON = False,
) -> None:
    """Score a run directory again, without the model."""
    use_metrics(metrics_from)
    if adapter is not None and not reparse:
        raise UsageError("--adapter reads the raw responses of a run again: add --reparse")
    choice = Choice(split, tuple(subset or ()), sample_set, episodes)
    names = list(dict.fromkeys(protocol or ()))
    if disagreements is not None and not _several(names):
        raise UsageError("--disagreements compares protocols: name several with --protocol, or --protocol all")
    added = None if overlay is None else read_overlay(overlay)
    recorded = partial(recorded_answers, reparse=reparse, adapter=adapter, overlay=added)
    opened = {run: partial(recorded, run) for run in several_runs([source])}
    _print(opened, names, choice, list(dict.fromkeys(by or ())), disagreements, json=json)


def _several(protocols: list[str]) -> bool:
    return len(protocols) > 1 or ALL in protocols


def _print(
    opened: Mapping[Path, Callable[[], Scorable]],
    names: list[str],
    choice: Choice,
    by: list[str],
    disagreements: Path | None,
    *,
    json: bool,
) -> None:
    plain: list[Any] = []
    unfinished = False
    for place, incomplete, values in _each_shown(opened, names, choice, by, disagreements, json=json):
        plain.append({"directory": place, **values})
        if incomplete:
            unfinished |= _print_unfinished(place, err=json)
    if json:
        print_json({"runs": plain})
    if unfinished:
        raise typer.Exit(1)


def score_values(source: Path, protocols: Sequence[str] = (), by: Sequence[str] = ()) -> dict[str, Any]:
    """What ``guieval score SOURCE --json`` prints, as values."""
    opened = {run: partial(recorded_answers, run) for run in several_runs([source])}
    shown = _each_shown(opened, list(dict.fromkeys(protocols)), Choice(), list(dict.fromkeys(by)), None, json=True)
    return {"runs": [{"directory": place, **values} for place, _, values in shown]}


def _each_shown(
    opened: Mapping[Path, Callable[[], Scorable]],
    names: list[str],
    choice: Choice,
    by: list[str],
    disagreements: Path | None,
    *,
    json: bool,
) -> Iterator[tuple[Path, bool, Mapping[str, Any]]]:
    """Score each run and print it unless ``json``: its folder, whether steps are unmeasured, and its values."""
    for place, open_answers in opened.items():
        if len(opened) > 1 and not json:
            echo(f"run:      {place}")
        answered = open_answers()
        file = None if disagreements is None else apart(disagreements, place, list(opened))
        judged = judge_answers(answered, names or None)
        print_steps = _print_matrix if _several(names) else _print_one
        kinds: Mapping[Kind, Callable[..., _ShownScore]] = {"steps": print_steps, "tasks": _print_tasks}
        yield place, *answered.mode.of_kind(kinds)(judged, place, choice, by, file, json=json)


class _ShownScore(NamedTuple):
    """Whether steps are unmeasured, and the values to print as JSON (empty without --json)."""

    incomplete: bool
    values: Mapping[str, Any]


def _print_tasks(
    answers: JudgedAnswers, place: Path, choice: Choice, by: list[str], file: Path | None, *, json: bool
) -> _ShownScore:
    if file is not None:
        raise UsageError("an online run is scored by its environment: leave out --disagreements")
    summary, columns = of_tasks(scored(answers, choice).summary), answers.columns(choice)
    if not json:
        tables = [breakdown_table(columns, summary.protocol, name) for name in by]
        run = RunFolder(place)
        title = "" if run.manifest.selection is None else run.manifest.selection.title
        heading = "\n".join(filter(None, (run.label, f"{run.manifest.config.data.bench} online", title)))
        show(*online_tables([Run(heading, summary)]), *tables)
        return _ShownScore(summary.state != "finished", {})
    cells = {name: breakdown_cells(columns, summary.protocol, name) for name in by}
    return _ShownScore(summary.state != "finished", {**report_json(summary), **({"breakdowns": cells} if cells else {})})


def _print_one(
    answers: JudgedAnswers, place: Path, choice: Choice, by: list[str], file: Path | None, *, json: bool
) -> _ShownScore:
    metrics, columns = scored(answers, choice), answers.columns(choice)
    run = Run(metrics.label, of_steps(metrics.summary))
    breakdowns = [breakdown_table(columns, metrics.protocol, name) for name in by]
    for note in metrics.notes:
        say(f"note: {note}", err=True)
    values: Mapping[str, Any] = {}
    if json:
        values = {
            **matrix_json(answers, on_own_sets(answers, choice), by),
            **report_json(run.summary),
            "selection": metrics.steps,
        }
        values |= {"edition": columns.edition, "scaffold": answers.answered.scaffold or None}
    else:
        show(*report_tables([run]), sample_table(columns, [metrics.protocol]), *breakdowns)
        for line in warning_lines([run]):
            say(f"Warning: {line}")
        say(f"data:     {metrics.steps}")
        _print_about(answers, columns)
    return _ShownScore(metrics.state != "finished", values)


def _print_about(answers: JudgedAnswers, columns: RunColumns) -> None:
    texts = {"labels": [columns.edition_line], "scaffold": [answers.answered.scaffold], "overlay": answers.answered.overlays}
    for name, lines in texts.items():
        for line in filter(None, lines):
            say(f"{name + ':':9} {line}")


def _print_matrix(
    answers: JudgedAnswers, place: Path, choice: Choice, by: list[str], disagreements: Path | None, *, json: bool
) -> _ShownScore:
    if disagreements is not None:
        check_ending(disagreements)
    placed = on_own_sets(answers, choice)
    common = answers.columns(choice)
    tables = [sample_table(common, answers.protocols)]
    tables += [breakdown_table(each.columns, each.protocol.name, name) for name in by for each in placed]
    for note in answers.notes:
        say(f"note: {note}", err=True)
    values = matrix_json(answers, placed, by) if json else {}
    if not json:
        show(matrix_table(placed), *tables, glance_table(common, placed))
        for line in (*step_lines(placed), *agreement_lines(common), *unmeasured_lines(placed)):
            say(line)
        _print_about(answers, common)
    if disagreements is not None:
        count = write_disagreements(disagreements, disagreements_of(common, answers), answers.protocols)
        say(f"disagreements: {counted(count, 'step')} in {disagreements}", err=json)
    return _ShownScore(bool(unmeasured_lines(placed)), values)


def _print_unfinished(directory: Path, *, err: bool) -> bool:
    """Print how to measure the missing steps; return whether a resume would measure them."""
    run = RunFolder(directory)
    if run.manifest.imported is not None:
        return False
    if summary_of_run(run).complete:
        after = f"come after a mismatch under {run.protocol}, where it stopped"
        say(f"note:     the run is finished: the steps that were not asked {after}", err=err)
        return False
    echo(f"resume:   {resume_of(directory)}", err=err)
    return True

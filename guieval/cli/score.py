"""``guieval score``: score a run, or a file of predictions, under any protocol, or under all; no model is asked.

Under one protocol it prints what a run prints at its end and how sure its figures are, under several one table of every
protocol's own figures; a file of predictions may be of any format of :mod:`guieval.predictions`. The exit code is 1 when steps
of a run are not measured that a resume would measure.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from guieval.cli.paths import PATH, path

if TYPE_CHECKING:
    from collections.abc import Callable

    from guieval.matrix import JudgedAnswers
    from guieval.overlays import Overlay
    from guieval.scoring import Scored
    from guieval.selection import Choice

ALL = "all"


def score(
    source: Annotated[
        Path, typer.Argument(parser=path, metavar="SOURCE", help="A run directory, or a file of predictions, whoever wrote it.")
    ],
    protocol: Annotated[
        list[str] | None, typer.Option(help="Protocol; may be repeated. all: every one for the data. Default: the run's own.")
    ] = None,
    by: Annotated[
        list[str] | None,
        typer.Option(help="Break down by action-type, length, step, ratio, subset, error or a label; may be repeated."),
    ] = None,
    format: Annotated[
        str | None,
        typer.Option(help="Predictions file: how it is written, see docs/predictions.md (default: what it looks like)."),
    ] = None,
    bench: Annotated[str | None, typer.Option(help="Predictions file: the benchmark its steps are of.")] = None,
    data: Annotated[
        Path | None, typer.Option(parser=path, metavar=PATH, help="Predictions file: that benchmark's data folder.")
    ] = None,
    model: Annotated[str | None, typer.Option(help="Predictions file: checkpoint whose raw replies it holds.")] = None,
    mode: Annotated[str | None, typer.Option(help="Predictions file: mode it was made in (default offline).")] = None,
    sample_set: Annotated[str | None, typer.Option(help="Score only the steps of this set, see `guieval sample-sets`.")] = None,
    split: Annotated[str | None, typer.Option(help="Score only this split (all: every split).")] = None,
    subset: Annotated[list[str] | None, typer.Option(help="Score only this subset; may be repeated.")] = None,
    episodes: Annotated[
        Path | None, typer.Option(parser=path, metavar=PATH, help="Score only the episodes, or steps, that this file lists.")
    ] = None,
    overlay: Annotated[
        Path | None, typer.Option(parser=path, metavar=PATH, help="JSONL file of further accepted actions.")
    ] = None,
    override: Annotated[
        list[str] | None, typer.Option("--set", help="Predictions file: option=value, for the benchmark's loader.")
    ] = None,
    skip_damaged: Annotated[
        bool, typer.Option("--skip-damaged", help="Predictions file of another evaluation: leave out rows that cannot be read.")
    ] = False,
    reparse: Annotated[bool, typer.Option(help="Run: read the raw replies again with today's adapter.")] = False,
    disagreements: Annotated[
        Path | None,
        typer.Option(parser=path, metavar=PATH, help="Write the steps that protocols judge differently (.csv or .jsonl)."),
    ] = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", parser=path, metavar=PATH, help="Write every protocol's figures as JSON.")
    ] = None,
) -> None:
    """Score a run directory or a predictions file again, without the model."""
    from guieval.cli.loader_options import loader_options
    from guieval.errors import UsageError
    from guieval.overlays import read_overlay
    from guieval.selection import Choice

    if not source.exists():
        raise UsageError(f"there is no run directory or predictions file at {str(source)!r}")
    for_files = {"bench": bench, "data": data, "model": model, "mode": mode, "set": override, "format": format}
    for option, value in {**for_files, "skip-damaged": skip_damaged or None}.items():
        if source.is_dir() and value is not None:
            raise UsageError(f"--{option} is for a file of predictions; the run {str(source)!r} says itself what it is of")
    if reparse and not source.is_dir():
        raise UsageError("--reparse is for a run; raw replies in a predictions file are always read, by --model's adapter")
    choice = Choice(split, tuple(subset or ()), sample_set, episodes)
    names = list(dict.fromkeys(protocol or ()))
    several = len(names) > 1 or ALL in names
    if disagreements is not None and not several:
        raise UsageError("--disagreements compares protocols: name several with --protocol, or --protocol all")
    added = None if overlay is None else read_overlay(overlay)
    if source.is_dir():
        opened = _run(source, choice, added, reparse=reparse)
    else:
        options = loader_options(override or [])
        how = {"format": format, "model": model, "mode": mode or "offline", "overlay": added, "skip_damaged": skip_damaged}
        opened = _file(source, choice, bench=bench, data=data, bench_options=options, **how)
    answers = opened.judge(names or None)
    broken_down = list(dict.fromkeys(by or ()))
    if several:
        incomplete = _print_matrix(answers, choice, broken_down, disagreements, json_file)
    else:
        incomplete = _print_one(answers, opened.evaluate(names[0] if names else None), choice, broken_down, json_file)
    if incomplete and source.is_dir():
        _tell_unfinished(source)


class _Opened(NamedTuple):
    """What is scored: how its answers are judged under some protocols, and how they are reported under one."""

    judge: Callable[[list[str] | None], JudgedAnswers]
    evaluate: Callable[[str | None], Scored]


def _run(directory: Path, choice: Choice, overlay: Overlay | None, *, reparse: bool) -> _Opened:
    from guieval.matrix import judge_run
    from guieval.scoring import evaluate_run

    narrowed = choice if choice.narrows else None
    return _Opened(
        lambda names: judge_run(directory, names, reparse=reparse, overlay=overlay),
        lambda name: evaluate_run(directory, name, reparse=reparse, choice=narrowed, overlay=overlay),
    )


def _file(file: Path, choice: Choice, **how: Any) -> _Opened:
    from guieval.matrix import answered_file, judge_answers
    from guieval.scoring import evaluate_answers

    answered = answered_file(file, **how)
    return _Opened(lambda names: judge_answers(answered, names), lambda name: evaluate_answers(answered, name, choice=choice))


def _print_one(answers: JudgedAnswers, scored: Scored, choice: Choice, by: list[str], json_file: Path | None) -> bool:
    """Print what a run prints at its end, and how sure its figures are; whether steps were not measured."""
    from rich.console import Console

    from guieval.journal import write_atomically
    from guieval.matrix import on_own_sets
    from guieval.reports.console import print_report
    from guieval.reports.matrix_table import matrix_json
    from guieval.reports.score_tables import breakdown_table, figure_table, sample_table

    columns = answers.columns(choice)
    shown = [figure_table(columns, scored.protocol), sample_table(columns, [scored.protocol])]
    shown += [breakdown_table(columns, scored.protocol, each) for each in by]
    if json_file is not None:
        write_atomically(json_file, matrix_json(answers, on_own_sets(answers, choice), by))
    for warning in scored.warnings:
        typer.echo(f"note: {warning}", err=True)
    wearing = "with overlay" if scored.overlays else ""
    print_report([("\n".join(filter(None, (scored.steps_title, scored.protocol, wearing))), scored.summary)])
    for table in filter(None, shown):
        Console().print(table)
    typer.echo(f"steps of: {scored.steps}")
    for text in scored.overlays:
        typer.echo(f"overlay:  {text}")
    return not scored.summary.complete


def _print_matrix(
    answers: JudgedAnswers, choice: Choice, by: list[str], disagreements: Path | None, json_file: Path | None
) -> bool:
    """Print every protocol's own figures, and write the files; whether steps were not measured."""
    from rich.console import Console

    from guieval.journal import write_atomically
    from guieval.matrix import on_own_sets
    from guieval.reports.disagreement_file import check_suffix
    from guieval.reports.matrix_table import (
        agreement_lines,
        glance_table,
        matrix_json,
        matrix_table,
        step_lines,
        unmeasured_lines,
    )
    from guieval.reports.score_tables import breakdown_table, sample_table

    if disagreements is not None:
        check_suffix(disagreements)
    placed = on_own_sets(answers, choice)
    common = answers.columns(choice)
    shown = [sample_table(common, answers.protocols)]
    shown += [breakdown_table(each.columns, each.protocol.name, name) for name in by for each in placed]
    for note in answers.notes:
        typer.echo(f"note: {note}", err=True)
    for table in (matrix_table(placed), *filter(None, shown), glance_table(common, placed)):
        Console().print(table)
    for line in (*step_lines(placed), *agreement_lines(common), *unmeasured_lines(placed)):
        typer.echo(line)
    for text in answers.overlays:
        typer.echo(f"overlay:  {text}")
    if disagreements is not None:
        _write_disagreements(disagreements, answers, choice)
    if json_file is not None:
        write_atomically(json_file, matrix_json(answers, placed, by))
        typer.echo(f"json:     {json_file}")
    return bool(unmeasured_lines(placed))


def _write_disagreements(file: Path, answers: JudgedAnswers, choice: Choice) -> None:
    from guieval.matrix import disagreements
    from guieval.reports.disagreement_file import write_disagreements

    found = disagreements(answers.columns(choice), answers)
    count = write_disagreements(file, found, answers.protocols)
    typer.echo(f"disagreements: {count:,} steps in {file}")


def _tell_unfinished(directory: Path) -> None:
    """Say how to measure what is missing, and leave with exit code 1, unless the run itself did all that it set out to do."""
    import shlex

    from guieval.journal import read_manifest
    from guieval.scoring import evaluate_run

    if evaluate_run(directory).summary.complete:
        own = read_manifest(directory)["protocol"]["name"]
        typer.echo(f"note:     the run is finished: steps never asked lie behind a mismatch under {own}, where it stopped")
        return
    typer.echo(f"resume:   guieval run --resume {shlex.quote(str(directory))}")
    raise typer.Exit(1)

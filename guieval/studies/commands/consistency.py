"""``guieval study consistency``: do executions do what their reasoning says, and does it matter?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from guieval.cli import options
from guieval.cli.settings import path_argument, path_option
from guieval.cli.tables import FORMATS, JSON, echo, print_json, say, write_tables
from guieval.errors import UsageError, nearest
from guieval.journal import RunFolder, is_run
from guieval.journal.run_folders import is_rollout, one_run, rollouts_below, rounds_of, runs_below, several_runs
from guieval.online.record import EPISODES_BENCHMARK
from guieval.registry import load_benchmark
from guieval.reports.tables.records import writable, write_file
from guieval.studies.consistency.human_labels import read_human_labels
from guieval.studies.consistency.judging import Consistency, read_consistency
from guieval.studies.consistency.page import consistency_page
from guieval.studies.consistency.tables import consistency_json, example_table, step_row, tables
from guieval.studies.decisions.clustering import DEFAULTS

UNDECIDED: dict[str, bool | None] = {"apart": None, "inconsistent": False}
"""How a step without a consensus counts: not at all, or as an inconsistent one."""


def consistency(
    run: Annotated[Path, path_argument("RUN", "The run whose thoughts and executions are judged.")],
    judges: Annotated[
        str, typer.Option(metavar="A,B,C", help="Runs, or rollouts, made to think RUN's thoughts.", show_default=False)
    ],
    pool: Annotated[
        bool,
        typer.Option("--pool", help="RUN and each judge are folders of runs, e.g. of several benchmarks: read each as one."),
    ] = False,
    labels: Annotated[Path | None, path_option("Human labels, .csv or .jsonl: episode_id, step_index, consistent.")] = None,
    undecided: Annotated[
        str, typer.Option(help="Steps on which the judges have no consensus: apart, or inconsistent.")
    ] = "apart",
    protocol: Annotated[str | None, typer.Option(help="Protocol of exact match (default: the run's own).")] = None,
    radius: Annotated[float, typer.Option(min=0.0, help="Clustering: radius, in thousandths of the screen.")] = 70.0,
    min_samples: Annotated[
        int | None, typer.Option(min=1, help="Clustering: executions that make a cluster (default: as published).")
    ] = None,
    examples: Annotated[int, typer.Option(min=0, help="Examples of each kind of failure.")] = 3,
    form: options.Format = "text",
    page: Annotated[Path | None, path_option("Also write a page (.html) with screenshots of the examples.")] = None,
    steps: Annotated[Path | None, path_option("Also write every judged step to this .csv or .jsonl file.")] = None,
    data: options.RunData = None,
    json: JSON = False,
) -> None:
    """Compare each action, also of live tasks, with what judges do when given its reasoning (GUIEvalKit paper, 5.4.1)."""
    chosen = "json" if json else options.one_of("format", form, FORMATS)
    if undecided not in UNDECIDED:
        raise UsageError(f"--undecided is {undecided!r}{nearest(undecided, UNDECIDED)}; expected {' or '.join(UNDECIDED)}")
    named = _directories(judges)
    for file, endings in ((page, (".html",)), (steps, (".csv", ".jsonl"))):
        if file is not None and writable(file).suffix.lower() not in endings:
            raise UsageError(f"the file {str(file)!r} must end in {' or '.join(endings)}")
    if pool and data is not None:
        raise UsageError("--data is one benchmark's folder, and --pool reads several; leave it out")
    for judge in () if pool else named:
        alone = is_run(judge) or is_rollout(judge)
        if not alone and (parts := [*rollouts_below(judge), *runs_below(judge)]):
            of = f"{len(parts)} run{'s' * (len(parts) > 1)}"
            raise UsageError(f"the judge {str(judge)!r} is a folder of {of}: add --pool, which reads RUN and each judge as one")
    judged = run if pool else _judged(run, named)
    settings = replace(DEFAULTS, radius=radius, min_samples=min_samples)
    labelled = None if labels is None else read_human_labels(labels)
    found = read_consistency(judged, named, pool=pool, settings=settings, protocol=protocol, labels=labelled)
    if labels is not None and not found.labelled:
        raise UsageError(f"none of the labels in {str(labels)!r} is of a step that is judged here")
    meant = UNDECIDED[undecided]
    if chosen == "json":
        print_json(consistency_json(found, examples, undecided_as=meant))
    else:
        made = tables(found, undecided_as=meant)
        if examples and (shown := example_table(found, examples)).rows:
            made.append(shown)
        write_tables(made, chosen)
    if steps is not None:
        rows = [step_row(trace, found) for trace in found.traces]
        say(f"steps:    {write_file(steps, rows, list(rows[0])):,} in {steps}", err=True)
    if page is not None:
        _write_page(found, page, data, examples, meant)


def _directories(judges: str) -> list[Path]:
    named = [Path(name.strip()) for name in judges.split(",") if name.strip()]
    if not named:
        raise UsageError("--judges names no directory; give one or more, with commas between them")
    if len({directory.resolve() for directory in named}) < len(named):
        raise UsageError(f"--judges names a directory twice: {judges!r}")
    return named


def _judged(run: Path, judges: Sequence[Path]) -> Path:
    """The run whose thoughts the judges were given, if ``run`` is a folder of several."""
    if not run.exists() or is_run(run):
        return one_run(run)
    thoughts = (RunFolder(each).manifest.fixed_thoughts for each in rounds_of(judges[0]))
    judged = {Path(each.run).name for each in thoughts if each is not None}
    matching = [place for place in several_runs([run]) if place.name in judged]
    return matching[0] if len(matching) == 1 else one_run(run)


def _write_page(found: Consistency, file: Path, data: Path | None, each: int, undecided_as: bool | None) -> None:
    roots = {EPISODES_BENCHMARK: found.parts[0]} if found.online else {}
    for part in () if found.online else found.parts:
        config = RunFolder(part).manifest.config.data
        try:
            opened = load_benchmark(config.bench, data or config.folder, **(config.bench_options or {}))
        except UsageError as error:
            if data is not None:
                raise
            say(f"note: the page has no screenshots of {config.bench}, for its data cannot be opened ({error})", err=True)
        else:
            roots[opened.name] = opened.root
    file.write_text(consistency_page(found, roots, each, undecided_as=undecided_as), encoding="utf-8")
    echo(f"page:     {file}", err=True)

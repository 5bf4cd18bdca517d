"""``guieval consistency``: do executions do what their reasoning says, and does it matter?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from guieval.cli.paths import PATH, path

if TYPE_CHECKING:
    from guieval.decisions.consistency import Consistency


def consistency(
    run: Annotated[Path, typer.Argument(parser=path, metavar="RUN", help="The run whose thoughts and executions are judged.")],
    judges: Annotated[
        str,
        typer.Option(metavar="A,B,C", help="Runs, or rollouts, made to think RUN's thoughts.", show_default=False),
    ],
    labels: Annotated[
        Path | None,
        typer.Option(parser=path, metavar=PATH, help="Human labels, .csv or .jsonl: episode_id, step_index, consistent."),
    ] = None,
    undecided: Annotated[
        str, typer.Option(help="Steps on which the judges have no consensus: apart, or inconsistent.")
    ] = "apart",
    protocol: Annotated[str | None, typer.Option(help="Exact match under this one. Default: the run's own.")] = None,
    radius: Annotated[float, typer.Option(min=0.0, help="Clustering: radius of a place, in thousandths of the screen.")] = 70.0,
    min_samples: Annotated[
        int | None, typer.Option(min=1, help="Clustering: executions that make a place dense. Default: as published.")
    ] = None,
    examples: Annotated[int, typer.Option(min=0, help="Examples of each kind of failure.")] = 3,
    form: Annotated[str, typer.Option("--format", help="text, md, csv or json.")] = "text",
    page: Annotated[
        Path | None, typer.Option(parser=path, metavar=PATH, help="Also write a page (.html) with screenshots of the examples.")
    ] = None,
    steps: Annotated[
        Path | None,
        typer.Option(parser=path, metavar=PATH, help="Also write every judged step to this .csv or .jsonl file."),
    ] = None,
    data: Annotated[
        Path | None, typer.Option(parser=path, metavar=PATH, help="The benchmark's data folder (default: the run's).")
    ] = None,
) -> None:
    """Compare each execution with what judges do who are given its reasoning (GUIEvalKit paper, section 5.4.1)."""
    from dataclasses import replace

    from guieval.cli.run_folders import one_run, writable
    from guieval.decisions.clustering import DEFAULTS
    from guieval.decisions.consistency import read_consistency
    from guieval.decisions.human_labels import read_human_labels
    from guieval.errors import UsageError, nearest
    from guieval.reports.consistency_tables import FORMATS, as_json, example_table, step_lines, tables, written

    chosen = next((known for known in FORMATS if known == form), None)
    if chosen is None:
        raise UsageError(f"unknown format {form!r}{nearest(form, FORMATS)}; known: {', '.join(FORMATS)}")
    meanings: dict[str, bool | None] = {"apart": None, "inconsistent": False}
    if undecided not in meanings:
        raise UsageError(f"--undecided is {undecided!r}{nearest(undecided, meanings)}; expected {' or '.join(meanings)}")
    named = [Path(name.strip()) for name in judges.split(",") if name.strip()]
    if not named:
        raise UsageError("--judges names no directory; give one or more, with commas between them")
    if len({each.resolve() for each in named}) < len(named):
        raise UsageError(f"--judges names a directory twice: {judges!r}")
    for file, endings in ((page, (".html",)), (steps, (".csv", ".jsonl"))):
        if file is not None and writable(file).suffix.lower() not in endings:
            raise UsageError(f"the file {str(file)!r} must end in {' or '.join(endings)}")
    settings = replace(DEFAULTS, radius=radius, min_samples=min_samples)
    found = read_consistency(
        one_run(run),
        named,
        settings=settings,
        protocol=protocol,
        labels=None if labels is None else read_human_labels(labels),
    )
    if labels is not None and not found.labelled:
        raise UsageError(f"none of the labels in {str(labels)!r} is of a step that is judged here")
    meant = meanings[undecided]
    if chosen == "json":
        typer.echo(as_json(found, examples, undecided_as=meant), nl=False)
    else:
        made = tables(found, undecided_as=meant)
        if examples and (shown := example_table(found, examples)).rows:
            made.append(shown)
        typer.echo(written(made, chosen), nl=False)
    if steps is not None:
        steps.write_text(step_lines(found, as_csv=steps.suffix.lower() == ".csv"), encoding="utf-8")
        typer.echo(f"steps:    {len(found.traces):,} in {steps}", err=True)
    if page is not None:
        _write_page(found, page, data, examples, meant)


def _write_page(found: Consistency, file: Path, data: Path | None, each: int, undecided_as: bool | None) -> None:
    from guieval.errors import UsageError
    from guieval.journal import read_manifest
    from guieval.registry import load_benchmark
    from guieval.reports.consistency_page import consistency_page

    config = read_manifest(found.run)["config"]
    root = None
    try:
        root = load_benchmark(
            str(config.get("bench", "")), data or config.get("data"), **(config.get("bench_options") or {})
        ).root
    except UsageError as error:
        if data is not None:
            raise
        typer.echo(f"note: the page has no screenshots, for the run's data cannot be opened ({error})", err=True)
    file.write_text(consistency_page(found, root, each, undecided_as=undecided_as), encoding="utf-8")
    typer.echo(f"page:     {file}", err=True)

"""``guieval data import``: make a run of another evaluation's predictions or results, and print what they held."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from guieval.cli import options
from guieval.cli.settings import path_argument, path_option
from guieval.cli.tables import echo
from guieval.data.doctor.counts import counted
from guieval.exchange import importing
from guieval.exchange.imported import Imported
from guieval.exchange.predictions import Predictions
from guieval.exchange.predictions.mapped import parse_mapping

SHOWN = 3
"""How many reasons, names and damaged rows of each kind are printed."""


def import_predictions(
    source: Annotated[
        Path, path_argument("SOURCE", "A predictions file, or a folder of results (ATIF, OSWorld, WebArena-Verified).")
    ],
    out: Annotated[Path, path_option("The run directory to make.")],
    format: Annotated[
        str | None,
        typer.Option(help="How the source is written, see docs/exchange/predictions.md (default: what it looks like)."),
    ] = None,
    mapping: Annotated[
        str | None,
        typer.Option("--map", metavar="NAME=FIELD,...", help="Which field is what: id=FIELD,point=FIELD,frame=pixels ..."),
    ] = None,
    bench: Annotated[str | None, typer.Option(help="Benchmark whose steps the file answers (with --data).")] = None,
    data: Annotated[Path | None, path_option("That benchmark's data folder.")] = None,
    model: Annotated[str | None, typer.Option(help="Checkpoint that reads the raw responses in the file.")] = None,
    adapter: options.ReadingAdapter = None,
    name: Annotated[str | None, typer.Option(help="What tables call the model (default: --model, or the file's name).")] = None,
    mode: Annotated[str, typer.Option(help="Mode it was made in.")] = "offline",
    protocol: Annotated[str | None, typer.Option(help="Protocol of the run (default: the benchmark's).")] = None,
    sample_set: options.SampleSet = None,
    split: options.Split = None,
    subset: options.Subset = None,
    episodes: Annotated[Path | None, path_option("Only the episodes, or steps, that this file lists, count.")] = None,
    answered_only: Annotated[
        bool, typer.Option("--answered-only", help="Only the steps that the file answers count (default: all, as missing).")
    ] = False,
    override: options.ImportOptions = None,
    skip_damaged: options.SkipDamaged = False,
    anyway: Annotated[bool, typer.Option("--anyway", help="Take rows that state other targets than the labels.")] = False,
    note: Annotated[str | None, typer.Option(help="Kept with the run, e.g. the address of the file.")] = None,
) -> None:
    """Make a run of predictions or results of another tool; every command then takes it."""
    of_model, of_loader = options.of_model_and_loader(override or [], "model.")
    made = importing.import_predictions(
        source,
        out,
        format=format,
        map=None if mapping is None else parse_mapping(mapping),
        bench=bench,
        data=data,
        bench_options=options.loader_options(of_loader),
        model=model,
        adapter=adapter,
        options=options.loader_options(of_model),
        name=name,
        mode=mode,
        protocol=protocol,
        sample_set=sample_set,
        split=split,
        subset=subset,
        episodes=episodes,
        answered_only=answered_only,
        skip_damaged=skip_damaged,
        anyway=anyway,
        note=note,
    )
    _report(made)
    echo(f"  then: guieval score {shlex.quote(str(out))}")


def _report(made: Imported) -> None:
    if made.trajectories is not None:
        held = made.trajectories
        echo(f"{made.directory}: {held.trajectories:,} trajectories of {counted(held.tasks, 'task')}, ", nl=False)
        echo(f"{held.screenshots:,} screenshots")
        if held.planned > held.tasks:
            echo(f"  {held.planned - held.tasks:,} of the {held.planned:,} planned tasks have no trajectory and are left out")
        return
    have = f"{'has' if made.answered == 1 else 'have'} {made.kind.recorded}"
    echo(f"{made.directory}: {made.answered:,} of {counted(made.units, made.kind.unit)} {have}, format {made.format}")
    if made.answered < made.units:
        echo(f"  missing: {made.units - made.answered:,}")
    if made.read is not None:
        _report_rows(made.read)
    for note in made.notes:
        echo(f"  note: {note}")


def _report_rows(read: Predictions) -> None:
    for title, counts in (("unparseable", read.unparseable), ("unsupported", read.unsupported)):
        if counts:
            echo(f"  {title}: {counts.total():,}")
        for reason, count in counts.most_common(SHOWN):
            echo(f"    {count:,}: {reason}")
        if len(counts) > SHOWN:
            echo(f"    and {len(counts) - SHOWN:,} other kinds")
    for error in read.skipped[1:SHOWN]:
        echo(f"  damaged and left out: {error}")

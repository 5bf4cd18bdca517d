"""``guieval import``: turn another evaluation's predictions file into guieval's own, and say what was in it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from guieval.cli import options
from guieval.cli.loader_options import loader_options
from guieval.cli.paths import PATH, path

if TYPE_CHECKING:
    from collections.abc import Iterator

    from guieval.predictions import Predictions
    from guieval.steps import StepTaskModel

SHOWN = 3
"""How many reasons, names and damaged rows are told of each kind."""


def import_predictions(
    format: Annotated[str, typer.Argument(metavar="FORMAT", help="How the file is written; auto: what it looks like.")],
    file: Annotated[Path, typer.Argument(parser=path, metavar="FILE", help="The predictions file, packed with gzip or not.")],
    out: Annotated[Path, typer.Option(parser=path, metavar=PATH, help="JSONL file to write, for `guieval score`.")],
    bench: Annotated[str | None, typer.Option(help="Benchmark whose steps the file answers (with --data).")] = None,
    data: Annotated[
        Path | None, typer.Option(parser=path, metavar=PATH, help="That benchmark's data folder, for files that name no steps.")
    ] = None,
    override: options.LoaderOptions = None,
    skip_damaged: Annotated[
        bool, typer.Option("--skip-damaged", help="Leave out rows that cannot be read, and say so.")
    ] = False,
) -> None:
    """Read a predictions file of GUIEvalKit, AgentCPM-GUI, OS-Atlas, ScreenSpot-Pro and others, and write guieval's own."""
    from guieval.errors import UsageError
    from guieval.journal import write_atomically
    from guieval.predictions import get_format, read_predictions

    name = None if format == "auto" else get_format(format).NAME
    if bench is not None and data is None:
        raise UsageError(f"--bench {bench} needs --data, its data folder")
    if out.resolve() == file.resolve():
        raise UsageError(f"--out {str(out)!r} is the file to be read; name another one")
    if not out.parent.is_dir():
        raise UsageError(f"there is no folder {str(out.parent)!r} to write {out.name!r} in")
    steps = () if data is None else _steps(bench or "screenspot-pro", data, override or [])
    read = read_predictions(file, name, steps=steps, skip_damaged=skip_damaged)
    write_atomically(out, "".join(f"{line}\n" for line in read.to_lines()))
    _report(read, out)


def _steps(bench: str, data: Path, override: list[str]) -> Iterator[StepTaskModel]:
    from guieval.registry import load_benchmark

    benchmark = load_benchmark(bench, data, **loader_options(override))
    return (step for ref in benchmark.index() for step in benchmark.load(ref).steps)


def _report(read: Predictions, out: Path) -> None:
    answered = f"{len(read.rows):,} answers to steps of {read.episodes:,} episodes"
    typer.echo(f"{out}: {answered}, format {read.format}")
    for title, counts in (("unparseable", read.unparseable), ("unsupported", read.unsupported)):
        typer.echo(f"  {title}: {counts.total():,}")
        for reason, count in counts.most_common(SHOWN):
            typer.echo(f"    {count:,}: {reason}")
        if len(counts) > SHOWN:
            typer.echo(f"    and {len(counts) - SHOWN:,} other kinds")
    if read.repeated:
        typer.echo(f"  repeated word for word and left out: {read.repeated:,}")
    if read.unanswered:
        typer.echo(f"  without an answer in the source, so not run: {read.unanswered:,}")
    typer.echo(f"  damaged and skipped: {len(read.skipped):,}")
    for error in read.skipped[:SHOWN]:
        typer.echo(f"    {error}")
    if len(read.skipped) > SHOWN:
        typer.echo(f"    and {len(read.skipped) - SHOWN:,} more")
    for benchmark in read.benchmarks:
        typer.echo(f"answers to steps of: {benchmark}")

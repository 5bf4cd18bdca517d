"""``guieval export``: write any benchmark's annotations as episodes JSONL."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from guieval.cli import options
from guieval.cli.loader_options import loader_options
from guieval.cli.paths import PATH, path


def export(
    bench: Annotated[str, typer.Argument(help="Benchmark, see `guieval benchmarks`.")],
    out: Annotated[Path, typer.Option(parser=path, metavar=PATH, help="File to write: NAME.jsonl or NAME.jsonl.gz.")],
    data: options.Data = None,
    override: options.LoaderOptions = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first so many episodes.")] = None,
    skip_damaged: Annotated[
        bool, typer.Option("--skip-damaged", help="Leave out episodes that cannot be read, and say so.")
    ] = False,
) -> None:
    """Write the annotations of a benchmark as episodes JSONL, without screenshots; `--bench episodes` reads it."""
    from guieval.preparation import export_episodes
    from guieval.registry import load_benchmark

    benchmark = load_benchmark(bench, data, **loader_options(override or []))
    benchmark.skip_damaged = skip_damaged
    episodes, steps = export_episodes(benchmark, out, limit=limit)
    typer.echo(f"{out}: {episodes:,} episodes, {steps:,} steps of {bench}")
    if benchmark.skipped:
        typer.echo(f"  damaged and left out: {len(benchmark.skipped):,}, the first: {benchmark.skipped[0]}")
    home, file = shlex.quote(str(benchmark.root)), shlex.quote(str(out.resolve()))
    typer.echo(f"next: guieval run --model NAME --bench episodes --data {home} --set bench_options.file={file}")

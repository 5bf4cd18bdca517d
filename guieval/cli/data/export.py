"""``guieval data export``: write any benchmark's annotations as episodes JSONL."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from guieval.cli import options
from guieval.cli.settings import path_option
from guieval.cli.tables import echo, say
from guieval.data.doctor.counts import counted
from guieval.data.episodes.prepare import export_episodes


def export(
    bench: Annotated[str, typer.Argument(help="Benchmark, see `guieval benchmarks`.")],
    out: Annotated[Path, path_option("File to write: NAME.jsonl or NAME.jsonl.gz.")],
    data: options.Data = None,
    override: options.LoaderOptions = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Only this many episodes, from the start.")] = None,
    skip_damaged: options.SkipDamaged = False,
) -> None:
    """Write the annotations of a benchmark as episodes JSONL, without screenshots; `--bench episodes` reads it."""
    benchmark = options.open_benchmark(bench, data, override)
    if skip_damaged:
        benchmark = benchmark.skipping_damaged()
    episodes, steps = export_episodes(benchmark, out, limit=limit)
    say(f"{out}: {counted(episodes, 'episode')}, {counted(steps, 'step')} of {bench}")
    if benchmark.skipped:
        say(f"  damaged and left out: {len(benchmark.skipped):,}, the first: {benchmark.skipped[0]}")
    home, file = shlex.quote(str(benchmark.root)), shlex.quote(str(out.resolve()))
    echo(f"next: guieval run --model NAME --bench episodes --data {home} --set bench_options.file={file}")

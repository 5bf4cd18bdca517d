"""``guieval score``: score a run, or a file of predictions, under any protocol; no model is asked."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from guieval.cli.paths import PATH, path


def score(
    source: Annotated[
        Path, typer.Argument(parser=path, metavar="SOURCE", help="A run directory, or a JSONL file of predictions.")
    ],
    protocol: Annotated[list[str] | None, typer.Option(help="Protocol; may be repeated. Default: the run's own.")] = None,
    bench: Annotated[str | None, typer.Option(help="Predictions file: the benchmark its steps are of.")] = None,
    data: Annotated[
        Path | None, typer.Option(parser=path, metavar=PATH, help="Predictions file: that benchmark's data folder.")
    ] = None,
    model: Annotated[str | None, typer.Option(help="Predictions file: checkpoint whose raw replies it holds.")] = None,
    mode: Annotated[str | None, typer.Option(help="Predictions file: mode it was made in (default offline).")] = None,
    reparse: Annotated[bool, typer.Option(help="Run: read the raw replies again with today's adapter.")] = False,
) -> None:
    """Score a run directory or a predictions file again, without the model."""
    from guieval.errors import UsageError
    from guieval.reports.console import print_report
    from guieval.scoring import evaluate_predictions, evaluate_run

    if not source.exists():
        raise UsageError(f"there is no run directory or predictions file at {str(source)!r}")
    for option, value in {"bench": bench, "data": data, "model": model, "mode": mode}.items():
        if source.is_dir() and value is not None:
            raise UsageError(f"--{option} is for a file of predictions; the run {str(source)!r} says itself what it is of")
    if reparse and not source.is_dir():
        raise UsageError("--reparse is for a run; raw replies in a predictions file are always read, by --model's adapter")
    results = []
    names: list[str | None] = [*protocol] if protocol else [None]
    for name in names:
        if source.is_dir():
            scored = evaluate_run(source, name, reparse=reparse)
        else:
            if bench is None:
                raise UsageError("a predictions file needs --bench, the benchmark its steps are of")
            scored = evaluate_predictions(source, bench, data, protocol=name, model=model, mode=mode or "offline")
        results.append((scored.protocol, scored.summary))
        for warning in scored.warnings:
            typer.echo(f"note: {warning}", err=True)
    print_report(results)

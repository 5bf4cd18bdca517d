"""``guieval data export-results``: write the results of runs in the formats of other tools."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, get_args

import typer

from guieval.cli.data.download import downloads
from guieval.cli.settings import path_argument, path_option
from guieval.cli.tables import echo
from guieval.errors import UsageError, nearest, refuse
from guieval.exchange.exported import Exported, exported
from guieval.exchange.formats import FORMATS, Relationship, format_named
from guieval.exchange.public_run import public_copy
from guieval.journal import RunFolder
from guieval.journal.run_folders import several_runs


def export_results(
    run: Annotated[list[Path], path_argument("RUN...", "Runs, or folders that hold several.")],
    form: Annotated[str, typer.Option("--format", help=f"Format: {', '.join(FORMATS)}.")],
    out: Annotated[Path | None, path_option("Folder to write to (default: exported).")] = None,
    protocol: Annotated[str | None, typer.Option(help="Protocol of the metrics (default: the run's own).")] = None,
    dataset: Annotated[
        str | None,
        typer.Option(metavar="ORG/NAME", help="The benchmark's data set on the hub (default: the one that guieval downloads)."),
    ] = None,
    organization: Annotated[str | None, typer.Option(help="every-eval-ever: Organization that publishes the result.")] = None,
    relationship: Annotated[
        str | None,
        typer.Option(
            help="every-eval-ever: Relationship of the publisher to the model's developer: "
            f"{', '.join(get_args(Relationship))} (default: other)."
        ),
    ] = None,
    metric: Annotated[str | None, typer.Option(help="hf-eval-results: Metric (default: exact match, or success rate).")] = None,
    task: Annotated[str | None, typer.Option(help="hf-eval-results, hf-eval-yaml: Task in the benchmark's eval.yaml.")] = None,
    images: Annotated[bool, typer.Option("--images", help="atif, inspect: Also write the screenshots.")] = False,
) -> None:
    """Write the results of runs in the formats of other tools: Every Eval Ever, Hugging Face, ATIF, Inspect."""
    chosen = format_named(form)
    known = get_args(Relationship)
    if relationship is not None and relationship not in known:
        raise UsageError(
            f"--relationship is {relationship!r}{nearest(relationship, known)}; expected one of {', '.join(known)}"
        )
    named = {
        "organization": organization,
        "relationship": relationship,
        "metric": metric,
        "task": task,
        "images": images or None,
    }
    given = {name: value for name, value in named.items() if value is not None}
    refuse({name: value for name, value in given.items() if name not in chosen.options}, f"is not for the format {form}")
    for each in several_runs(run):
        with TemporaryDirectory(prefix="guieval-export-") as made:
            public = public_copy(for_export(each, protocol, dataset), Path(made))
            for path in chosen.write(public, out or Path("exported"), **given):
                echo(f"written:  {path}")


def for_export(directory: Path, protocol: str | None, dataset: str | None) -> Exported:
    """A run with its benchmark's data set on the hub."""
    known = downloads().get(RunFolder(directory).manifest.benchmark.name)
    return exported(directory, protocol, dataset or (known.repository if known is not None else None))

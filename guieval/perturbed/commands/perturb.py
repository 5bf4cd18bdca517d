"""``guieval study perturb``: what perturbations make of a model, from runs at hand."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from guieval.cli.settings import path_argument, path_option
from guieval.cli.tables import JSON, print_json, write_tables
from guieval.journal.run_folders import several_runs
from guieval.perturbed.lures import effects
from guieval.perturbed.tables import effect_tables
from guieval.reports.tables.writers import format_named


def perturb(
    runs: Annotated[
        list[Path], path_argument("RUNS...", "Perturbed runs with their clean and neutral ones, or a folder of these.")
    ],
    format: Annotated[
        str | None, typer.Option("--format", help="text, md or csv (default: by the file's ending, else text).")
    ] = None,
    out: Annotated[Path | None, path_option("Write to this file.")] = None,
    json: JSON = False,
) -> None:
    """Show how often distractors are clicked, beyond chance and beyond any box, and how exact match changes."""
    found = effects(several_runs(runs))
    if json:
        print_json({"effects": found})
        return
    write_tables([*effect_tables(found)], format_named(format, out, ("text", "md", "csv"), "text"), out)

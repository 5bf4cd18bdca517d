"""Options that several commands have, under one name and in the same words."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from guieval.cli.paths import path_option
from guieval.cli.settings import RUN

if TYPE_CHECKING:
    from collections.abc import Mapping

    from guieval.reports.plots.paper import Width as ColumnWidth

Data: TypeAlias = Annotated[Path | None, RUN.fields["data"].mark()]
Subset: TypeAlias = Annotated[list[str] | None, typer.Option(help="Only this subset; may be repeated.")]
SampleSet: TypeAlias = Annotated[str | None, typer.Option(help="Only the steps of this set, see `guieval sample-sets`.")]
Thinking: TypeAlias = Annotated[bool | None, RUN.fields["thinking"].mark()]
Adapter: TypeAlias = Annotated[str | None, RUN.fields["adapter"].mark()]
Model: TypeAlias = Annotated[str, RUN.fields["model"].mark()]
Bench: TypeAlias = Annotated[str, RUN.fields["bench"].mark()]
Overlay: TypeAlias = Annotated[Path | None, RUN.fields["overlay"].mark()]
RunData: TypeAlias = Annotated[Path | None, path_option("The benchmark's data folder (default: the run's).")]
Split: TypeAlias = Annotated[str | None, typer.Option(help="Only this split (all: every split).")]
Protocols: TypeAlias = Annotated[
    list[str] | None, typer.Option(help="Protocol; may be repeated. all: every one. Default: the run's own.")
]
SkipDamaged: TypeAlias = Annotated[bool, typer.Option("--skip-damaged", help="Leave out what cannot be read, and report it.")]
Format: TypeAlias = Annotated[str, typer.Option("--format", help="text, md, csv or json.")]
TrustRun: TypeAlias = Annotated[
    bool, typer.Option("--trust-run", help="With --resume: also use the servers and programs that only the run folder names.")
]
AcceptChanges: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--accept-changes",
        help="With --resume: go on though model, data, prompts or sampling have changed; tables then mark the run as mixed.",
    ),
]
ReadingAdapter: TypeAlias = Annotated[
    str | None, typer.Option("--adapter", help="Family or Python file that reads replies; needed where the run's is a file.")
]
Config: TypeAlias = Annotated[Path | None, path_option("YAML file of settings, or the name of a shipped one.")]
Override: TypeAlias = Annotated[list[str] | None, typer.Option("--set", help="setting=value, e.g. sampling.temperature=0.7")]
LoaderOptions: TypeAlias = Annotated[list[str] | None, typer.Option("--set", help="Loader's option=value; may be repeated.")]
Seed: TypeAlias = Annotated[int, typer.Option(min=0, help="Seed of the bootstrap.")]
Picture: TypeAlias = Annotated[Path | None, path_option("Picture to write: .pdf, .svg or .png (300 dpi).")]
Width: TypeAlias = Annotated[str, typer.Option(help="Width of the picture: column (3.3 in) or two-column (6.8 in).")]
Quiet: TypeAlias = Annotated[bool, typer.Option(help="Print only the result, no progress.")]


def refuse(given: Mapping[str, object], why: str) -> None:
    """Raise :class:`guieval.errors.UsageError`, with the reason, for the first of these options that was given."""
    from guieval.errors import UsageError

    for name, value in given.items():
        if value is not None and value is not False:
            raise UsageError(f"--{name} {why}")


def check_width(name: str) -> ColumnWidth:
    """The width of a picture; :class:`guieval.errors.UsageError` with the nearest name for an unknown one."""
    from guieval.errors import UsageError, nearest
    from guieval.reports.plots.paper import WIDTHS

    for width in WIDTHS:
        if name == width:
            return width
    raise UsageError(f"unknown --width {name!r}{nearest(name, WIDTHS)}; it is one of {', '.join(WIDTHS)}")

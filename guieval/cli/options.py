"""Options that several commands have, under one name and in the same words."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, TypeVar

import typer

from guieval.cli.settings import RUN, path_option

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from guieval.data.benchmark import ABCBenchmark
    from guieval.reports.plots.paper import Width as ColumnWidth

Name = TypeVar("Name", bound=str)

Data: TypeAlias = Annotated[Path | None, RUN.fields["data"].mark()]
Subset: TypeAlias = Annotated[list[str] | None, typer.Option(help="Only this subset; may be repeated.")]
SampleSet: TypeAlias = Annotated[str | None, typer.Option(help="Only the steps of this set, see `guieval data sample-sets`.")]
Thinking: TypeAlias = Annotated[bool | None, RUN.fields["thinking"].mark()]
Adapter: TypeAlias = Annotated[str | None, RUN.fields["adapter"].mark()]
Scaffold: TypeAlias = Annotated[str | None, RUN.fields["scaffold"].mark()]
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
MetricsFrom: TypeAlias = Annotated[
    list[Path] | None,
    path_option("Python file with metrics of your own (@guieval.metric), shown too; may be repeated.", "--metrics-from"),
]
ReadingAdapter: TypeAlias = Annotated[
    str | None,
    typer.Option("--adapter", help="Family or Python file that reads raw responses (needed if the run's is a file)."),
]
Config: TypeAlias = Annotated[Path | None, path_option("YAML file of settings, or the name of a shipped one.")]
Override: TypeAlias = Annotated[list[str] | None, typer.Option("--set", help="setting=value, e.g. sampling.min_p=0.05")]
LoaderOptions: TypeAlias = Annotated[list[str] | None, typer.Option("--set", help="Loader's option=value; may be repeated.")]
ImportOptions: TypeAlias = Annotated[
    list[str] | None, typer.Option("--set", help="Loader's option=value, or model.option=value of the reading adapter.")
]
Picture: TypeAlias = Annotated[Path | None, path_option("Picture to write: .pdf, .svg or .png (300 dpi).")]
Width: TypeAlias = Annotated[str, typer.Option(help="Width of the picture: column (3.3 in) or two-column (6.8 in).")]
Label: TypeAlias = Annotated[
    str | None, typer.Option("--label", metavar="NAME", help="LaTeX: label of the table, tab:NAME (default: by the benchmark).")
]
Caption: TypeAlias = Annotated[str | None, typer.Option(metavar="TEXT", help="LaTeX: caption of the table.")]
Quiet: TypeAlias = Annotated[bool, typer.Option(help="Print only the result, no progress.")]


def one_of(option: str, name: str, known: Iterable[Name]) -> Name:
    """The value of an option; :class:`guieval.errors.UsageError` with the nearest for one that is not ``known``."""
    from guieval.errors import UsageError, nearest

    for each in known:
        if name == each:
            return each
    raise UsageError(f"unknown --{option} {name!r}{nearest(name, known)}; it is one of {', '.join(known)}")


def check_width(name: str) -> ColumnWidth:
    """A picture's width by its name in print (a column, a page). Raises :class:`UsageError` for other names."""
    from guieval.reports.plots.paper import WIDTHS

    return one_of("width", name, WIDTHS)


def open_benchmark(name: str, data: Path | None, override: Sequence[str] | None) -> ABCBenchmark:
    """The benchmark on its data folder, with the options that ``--set`` gives to its loader."""
    from guieval.registry import load_benchmark

    return load_benchmark(name, data, **loader_options(override or ()))


def loader_options(pairs: Sequence[str]) -> dict[str, Any]:
    """Options of a loader by name, from ``option=value`` with YAML values, or ``bench_options.option`` as in `guieval run`.

    Raises :class:`guieval.errors.UsageError` for anything else.
    """
    from guieval.errors import UsageError, whole_text
    from guieval.running.config import read_value

    options: dict[str, Any] = {}
    for pair in pairs:
        name, separator, text = pair.removeprefix("bench_options.").partition("=")
        if not separator or not name.isidentifier():
            raise UsageError(f"--set needs option=value, got {pair!r}")
        if whole_text(pair) != pair:
            raise UsageError(f"--set {pair!r} is not valid text")
        if name in options:
            raise UsageError(f"--set gives the option {name!r} twice")
        value = read_value(pair, text)
        options[name] = value if isinstance(value, str | int | float | list | dict | None) else text  # no dates
    return options


def of_model_and_loader(pairs: Sequence[str], prefix: str) -> tuple[list[str], list[str]]:
    """The ``--set`` values that are options of the model's adapter, without their prefix, and those of the loader."""
    of_model = [pair.removeprefix(prefix) for pair in pairs if pair.startswith(prefix)]
    return of_model, [pair for pair in pairs if not pair.startswith(prefix)]

"""``guieval doctor``: what is installed, and what a benchmark's data folder holds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from guieval.cli import options
from guieval.cli.paths import PATH, path

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterator

    from guieval.examination import Examination

MOST_VALUES = 12
"""A label with more different values is told by their number alone."""


def doctor(
    bench: Annotated[str | None, typer.Argument(help="Check this benchmark's data folder.")] = None,
    data: options.Data = None,
    overlay: Annotated[
        Path | None, typer.Option(parser=path, metavar=PATH, help="A file of further accepted actions, to be checked too.")
    ] = None,
    sample_set: Annotated[str | None, typer.Option(help="Look at the steps of this sample set only.")] = None,
    override: Annotated[list[str] | None, typer.Option("--set", help="option=value, for the benchmark's loader.")] = None,
    json: Annotated[
        Path | None, typer.Option("--json", parser=path, metavar=PATH, help="Write the report to this file too.")
    ] = None,
) -> None:
    """Say what is installed; with a benchmark, count its steps and look for damage and questionable labels.

    The exit code is 1 when there is an error: damaged rows or images, images of another size, some but not all missing.
    """
    from guieval.errors import UsageError
    from guieval.registry import load_benchmark

    if bench is None:
        if given := [name for name, value in {"data": data, "overlay": overlay, "sample-set": sample_set}.items() if value]:
            raise UsageError(f"--{given[0]} needs the name of the benchmark: guieval doctor BENCH --data DIR")
        _installation()
        return
    from guieval.cli.loader_options import loader_options
    from guieval.examination import examine
    from guieval.overlays import Overlaid, read_overlay

    benchmark = load_benchmark(bench, data, **loader_options(override or []))
    if overlay is not None:
        benchmark = Overlaid(benchmark, read_overlay(overlay))
    found = examine(benchmark, sample_set)
    _tell(found)
    if json is not None:
        _write(json, found)
    if found.of("error"):
        raise typer.Exit(1)


def _installation() -> None:
    import platform

    from guieval import __version__
    from guieval.evaluation import list_protocols
    from guieval.registry import list_adapters, list_benchmarks, list_models

    typer.echo(f"guieval {__version__}, Python {platform.python_version()}, {platform.platform()}")
    for line in _requirements():
        typer.echo(f"  {line}")
    typer.echo(f"{len(list_models())} models of {len(list_adapters())} families, {len(list_benchmarks())} benchmarks:")
    typer.echo(f"  benchmarks: {', '.join(list_benchmarks())}")
    typer.echo(f"  protocols:  {', '.join(list_protocols())}")


def _requirements() -> Iterator[str]:
    """What this version asks for, extra by extra, and what is there."""
    import re
    from importlib.metadata import PackageNotFoundError, requires, version

    for requirement in requires("guieval") or []:
        name = re.match(r"[\w.-]+", requirement)
        extra = re.search(r"""extra == ['"]([\w-]+)""", requirement)
        assert name is not None
        label = f"{name.group()} (extra {extra.group(1)})" if extra else name.group()
        try:
            yield f"{label} {version(name.group())}"
        except PackageNotFoundError:
            how = f"'guieval[{extra.group(1)}]'" if extra else "guieval"
            yield f"{label} is not installed: pip install {how}"


def _tell(found: Examination) -> None:
    from guieval.cli.tables import print_table
    from guieval.published import counted

    whole = found.whole
    typer.echo(f"{found.benchmark} at {found.folder}")
    parts = ((whole.episodes, "episode"), (whole.steps, "step"), (found.screenshots, "screenshot"))
    typer.echo(", ".join(counted(number, noun) for number, noun in parts) + " named")
    if len(found.parts) > 1:
        types = [name for name, _ in whole.types.most_common()]
        rows = [
            (split, subset or "-", f"{part.episodes:,}", f"{part.steps:,}", *(f"{part.types[name]:,}" for name in types))
            for (split, subset), part in found.parts.items()
        ]
        print_table(("split", "subset", "episodes", "steps", *types), rows)
    else:
        for split, subset in found.parts:
            typer.echo(f"split:   {split}" + (f", subset {subset}" if subset else ""))
        typer.echo(f"actions: {_shares(whole.types, whole.steps)}")
    for name, values in found.groups.items():
        few = len(values) <= MOST_VALUES
        typer.echo(f"{name}: {_shares(values, whole.steps) if few else f'{len(values):,} different values'}")
    for remark in found.remarks:
        typer.echo(f"{remark.weight}: {remark.what}")
        if remark.why:
            typer.echo(f"  why it matters: {remark.why}")
        for example in remark.examples:
            typer.echo(f"    {example}")
    numbers = [len(found.of("error")), len(found.of("warning"))]
    words = [
        f"{number or 'no'} {word}{'s' * (number != 1)}" for number, word in zip(numbers, ("error", "warning"), strict=True)
    ]
    typer.echo(f"{', '.join(words)}, in {found.seconds:.1f} s")


def _shares(counts: Counter[str], steps: int) -> str:
    return ", ".join(f"{name} {count:,} ({count / steps:.1%})" for name, count in counts.most_common())


def _write(file: Path, found: Examination) -> None:
    import json

    from guieval.errors import UsageError

    try:
        file.write_text(json.dumps(found.to_json(), indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    except OSError as error:
        raise UsageError(f"the report {str(file)!r} cannot be written: {error.strerror}") from None

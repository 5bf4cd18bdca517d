"""``guieval doctor``: what is installed, and what a benchmark's data folder holds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from guieval.cli.paths import PATH, path

if TYPE_CHECKING:
    from collections.abc import Iterator

    from guieval.benchmark import ABCBenchmark

SHOWN = 5


def doctor(
    bench: Annotated[str | None, typer.Argument(help="Check this benchmark's data folder.")] = None,
    data: Annotated[Path | None, typer.Option(parser=path, metavar=PATH, help="The benchmark's data folder.")] = None,
) -> None:
    """Say what is installed; with a benchmark, count its steps and look for missing or damaged screenshots."""
    from guieval.registry import load_benchmark

    if bench is None:
        _installation()
        return
    problems = _check(load_benchmark(bench, data))
    if problems:
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


def _check(benchmark: ABCBenchmark) -> int:
    from collections import Counter

    from guieval.errors import ScreenshotError
    from guieval.screenshots import read_screenshot

    types: Counter[str] = Counter()
    splits: Counter[str] = Counter()
    missing: list[str] = []
    damaged: list[str] = []
    episodes = steps = 0
    seen: set[str] = set()
    for episode in benchmark:
        episodes += 1
        for task in episode.steps:
            steps += 1
            types[task.action.type] += 1
            splits[f"{task.split}/{task.subset}" if task.subset else task.split] += 1
            if task.screenshot in seen:
                continue
            seen.add(task.screenshot)
            try:
                read_screenshot(benchmark.root, task.screenshot, task.screenshot_size)
            except ScreenshotError as error:
                (missing if "does not exist" in str(error) else damaged).append(f"{task.key}: {error}")
    typer.echo(f"{benchmark.name} at {benchmark.root}")
    typer.echo(f"  {episodes:,} episodes, {steps:,} steps, {len(seen):,} screenshots")
    typer.echo("  splits: " + ", ".join(f"{name} {count:,}" for name, count in sorted(splits.items())))
    typer.echo("  actions: " + ", ".join(f"{name} {count:,}" for name, count in types.most_common()))
    for title, rows in (("missing screenshots", missing), ("unusable screenshots", damaged)):
        typer.echo(f"  {title}: {len(rows):,}")
        for row in rows[:SHOWN]:
            typer.echo(f"    {row}")
        if len(rows) > SHOWN:
            typer.echo(f"    and {len(rows) - SHOWN:,} more")
    return len(missing) + len(damaged)

"""Options that several commands have, under one name and in the same words, and how they become settings of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from guieval.cli.paths import PATH, path

Model: TypeAlias = Annotated[str | None, typer.Option(help="Checkpoint, see `guieval models`.")]
Bench: TypeAlias = Annotated[str | None, typer.Option(help="Benchmark, see `guieval benchmarks`.")]
Data: TypeAlias = Annotated[Path | None, typer.Option(parser=path, metavar=PATH, help="The benchmark's data folder.")]
Subset: TypeAlias = Annotated[list[str] | None, typer.Option(help="Only this subset; may be repeated.")]
SampleSet: TypeAlias = Annotated[str | None, typer.Option(help="Only the steps of this set, see `guieval sample-sets`.")]
Episodes: TypeAlias = Annotated[
    Path | None, typer.Option(parser=path, metavar=PATH, help="Only the episodes, or steps, that this file lists.")
]
Limit: TypeAlias = Annotated[int | None, typer.Option(help="Only this many whole episodes, a seeded sample.")]
Thinking: TypeAlias = Annotated[bool | None, typer.Option("--thinking/--no-thinking", help="Switch thinking on or off.")]
FixedThoughts: TypeAlias = Annotated[
    Path | None, typer.Option(parser=path, metavar=PATH, help="Make the model think what this earlier run's model thought.")
]
Protocol: TypeAlias = Annotated[str | None, typer.Option(help="Scoring protocol (default: the benchmark's).")]
Adapter: TypeAlias = Annotated[str | None, typer.Option(help="Family, or path of a Python file, that serves --model.")]
BaseURL: TypeAlias = Annotated[list[str] | None, typer.Option(help="OpenAI-compatible endpoint; may be repeated.")]
ServedModel: TypeAlias = Annotated[str | None, typer.Option(help="Model name to ask the server for.")]
Timeout: TypeAlias = Annotated[float | None, typer.Option(help="Seconds one try of a request may take (default 120).")]
MaxAttempts: TypeAlias = Annotated[int | None, typer.Option(help="Tries of a request (default 5).")]
Override: TypeAlias = Annotated[list[str] | None, typer.Option("--set", help="setting=value, e.g. sampling.temperature=0.7")]
LoaderOptions: TypeAlias = Annotated[list[str] | None, typer.Option("--set", help="Loader's option=value; may be repeated.")]
Seed: TypeAlias = Annotated[int, typer.Option(min=0, help="Seed of the bootstrap.")]
Width: TypeAlias = Annotated[str, typer.Option(help="Of the picture: column (3.3 in) or two-column (6.8 in).")]
Quiet: TypeAlias = Annotated[bool, typer.Option(help="No progress, only the result.")]

_PLURAL = {"base_url": "base_urls", "patch_base_url": "patch_base_urls"}


def as_settings(**given: Any) -> dict[str, Any]:
    """The values of options as :func:`guieval.config.merge` takes them, ``None`` where an option was not given."""
    return {_PLURAL.get(name, name): _setting(value) for name, value in given.items()}


def _setting(value: Any) -> Any:
    if isinstance(value, Path):
        return str(value)
    return (tuple(value) or None) if isinstance(value, list) else value

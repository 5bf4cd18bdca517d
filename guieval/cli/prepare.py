"""``guieval prepare``: convert a benchmark's release into a folder that opens at once."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from guieval.cli import options
from guieval.cli.loader_options import loader_options
from guieval.cli.paths import PATH, path

if TYPE_CHECKING:
    from guieval.preparation import Prepared, Progress

SHOWN = 5
WORDS = {
    "agrees": "agrees with what is published",
    "part": "a part of what is published",
    "differs": "differs from what is published",
}


def prepare(
    bench: Annotated[str, typer.Argument(help="Benchmark, see `guieval benchmarks`.")],
    source: Annotated[Path, typer.Option(parser=path, metavar=PATH, help="Folder of the authors' release; only read.")],
    out: Annotated[Path, typer.Option(parser=path, metavar=PATH, help="Folder to make, or to go on with.")],
    override: options.LoaderOptions = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first so many episodes of the release.")] = None,
    skip_damaged: Annotated[
        bool, typer.Option("--skip-damaged", help="Leave damaged records out and list them in prepared.json.")
    ] = False,
    without_screenshots: Annotated[bool, typer.Option("--without-screenshots", help="Annotations only.")] = False,
) -> None:
    """Convert a benchmark's release; after an interruption the same command goes on where it stopped."""
    from guieval.errors import DataError, UsageError, nearest
    from guieval.preparation import prepare as prepare_release
    from guieval.registry import benchmarks

    known = benchmarks()
    if bench not in known:
        raise UsageError(f"unknown benchmark {bench!r}{nearest(bench, known)}; known: {', '.join(known)}")
    with _Bar(f"preparing {bench}") as bar:
        try:
            prepared = prepare_release(
                known[bench],
                source,
                out,
                options=loader_options(override or []),
                limit=limit,
                skip_damaged=skip_damaged,
                screenshots=not without_screenshots,
                on_progress=bar.update,
            )
        except DataError as error:
            raise DataError(
                f"{error}; nothing before it is lost: repair the release, or add --skip-damaged, and give the command again"
            ) from None
        except KeyboardInterrupt:
            bar.__exit__()
            typer.echo(f"guieval: stopped after {bar.episodes:,} episodes; the same command goes on from there", err=True)
            raise typer.Exit(130) from None
    _print(prepared)


def _print(prepared: Prepared) -> None:
    from guieval.published import counted

    told = prepared.preparation
    already = "" if prepared.added else ", all of them prepared before"
    held = f"{counted(told.episodes, 'episode')}, {counted(told.steps, 'step')}"
    typer.echo(f"{told.benchmark} prepared in {prepared.folder}: {held}{already}")
    if told.limit is not None:
        typer.echo(f"  a part: the first {told.limit:,} episodes of the release (--limit)")
    if not told.screenshots:
        typer.echo("  annotations only: without screenshots it can be counted and scored, but not run")
    for comparison in prepared.comparisons:
        if comparison.verdict != "absent":
            typer.echo(f"  {WORDS[comparison.verdict]}: {comparison}")
    if absent := [
        f"{each.published.name} ({each.published.steps:,} steps)" for each in prepared.comparisons if each.verdict == "absent"
    ]:
        typer.echo(f"  nothing of: {'; '.join(absent)}")
    if not prepared.comparisons:
        typer.echo("  no counts are published that could be compared")
    if told.skipped:
        typer.echo(f"  damaged and left out: {len(told.skipped):,} (all in prepared.json)")
        for row in told.skipped[:SHOWN]:
            typer.echo(f"    {row}")
    typer.echo(f"  sha256 of episodes.jsonl: {told.sha256}")
    folder = shlex.quote(str(prepared.folder))
    run, doctor = f"run --model NAME --bench {told.benchmark}", f"doctor {told.benchmark}"
    typer.echo(f"next: guieval {run if told.screenshots else doctor} --data {folder}")


class _Bar:
    """A progress bar where there is a terminal, and nothing elsewhere."""

    def __init__(self, title: str) -> None:
        self.episodes = 0
        self._title = title
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> _Bar:
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

            self._bar = Progress(
                TextColumn("{task.description}", markup=False),
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn("episodes"),
                TimeRemainingColumn(),
                console=Console(stderr=True),
            )
            self._bar.start()
            self._task = self._bar.add_task(self._title, total=None)
        return self

    def update(self, progress: Progress) -> None:
        """Show where the preparation stands."""
        self.episodes = progress.episodes
        if self._bar is not None:
            self._bar.update(self._task, completed=progress.episodes, total=progress.expected)

    def __exit__(self, *exception: object) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

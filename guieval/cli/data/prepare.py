"""``guieval data prepare``: convert a benchmark's release into a folder that opens at once."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from guieval.cli import options
from guieval.cli.settings import path_option
from guieval.cli.tables import echo, say
from guieval.data.doctor.counts import counted, size_of
from guieval.data.episodes.prepare import Prepared
from guieval.data.episodes.prepare import prepare as prepare_release
from guieval.errors import DataError
from guieval.registry import benchmark_class
from guieval.running.progress.bar import progress_bar

SHOWN = 5
WORDS = {
    "agrees": "agrees with what is published",
    "part": "a part of what is published",
    "differs": "differs from what is published",
}


def prepare(
    bench: Annotated[str, typer.Argument(help="Benchmark, see `guieval benchmarks`.")],
    source: Annotated[Path, path_option("Folder of the authors' release; only read.")],
    out: Annotated[Path, path_option("Folder to create, or to continue.")],
    override: options.LoaderOptions = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Only this many episodes, from the start of the release.")] = None,
    skip_damaged: Annotated[
        bool, typer.Option("--skip-damaged", help="Leave damaged records out and list them in prepared.json.")
    ] = False,
    without_screenshots: Annotated[bool, typer.Option("--without-screenshots", help="Annotations only.")] = False,
) -> None:
    """Convert a benchmark's release; after an interruption the same command continues where it stopped."""
    kind = benchmark_class(bench)
    done = 0
    try:
        with progress_bar(f"preparing {bench}", "episodes") as show:

            def count(episodes: int, total: int | None) -> None:
                nonlocal done
                done = episodes
                show(episodes, total)

            prepared = prepare_release(
                kind,
                source,
                out,
                options=options.loader_options(override or []),
                limit=limit,
                skip_damaged=skip_damaged,
                screenshots=not without_screenshots,
                on_progress=count,
            )
    except DataError as error:
        raise DataError(
            f"{error}; nothing before it is lost: repair the release, or add --skip-damaged, and give the command again"
        ) from None
    except KeyboardInterrupt:
        say(f"guieval: stopped after {counted(done, 'episode')}; the same command continues from there", err=True)
        raise typer.Exit(130) from None
    _print(prepared)


def _print(prepared: Prepared) -> None:
    done = prepared.preparation
    already = "" if prepared.added else ", all of them prepared before"
    held = f"{counted(done.episodes, 'episode')}, {counted(done.steps, 'step')}"
    say(f"{done.benchmark} prepared in {prepared.folder}: {held}{already}")
    if done.limit is not None:
        say(f"  a part: the first {done.limit:,} episodes of the release (--limit)")
    if not done.screenshots:
        say("  annotations only: without screenshots it can be counted and scored, but not run")
    for comparison in prepared.comparisons:
        if comparison.verdict != "absent":
            say(f"  {WORDS[comparison.verdict]}: {comparison}")
    if absent := [
        f"{each.published.name} ({size_of(each.published)})" for each in prepared.comparisons if each.verdict == "absent"
    ]:
        say(f"  nothing of: {'; '.join(absent)}")
    if not prepared.comparisons:
        say("  no counts are published that could be compared")
    if done.skipped:
        say(f"  damaged and left out: {len(done.skipped):,} (all in prepared.json)")
        for row in done.skipped[:SHOWN]:
            say(f"    {row}")
    say(f"  sha256 of episodes.jsonl: {done.sha256}")
    folder = shlex.quote(str(prepared.folder))
    run, doctor = f"run --model NAME --bench {done.benchmark}", f"doctor {done.benchmark}"
    echo(f"next: guieval {run if done.screenshots else doctor} --data {folder}")

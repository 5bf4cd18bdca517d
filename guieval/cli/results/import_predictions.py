"""``guieval import``: turn another evaluation's predictions file into guieval's own, and print what it held.

Trajectories in ATIF become a run.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from guieval.cli import options
from guieval.cli.settings import path_argument, path_option
from guieval.cli.tables import echo
from guieval.data.doctor.counts import counted
from guieval.data.plugin_options import check_options
from guieval.errors import UsageError, known_name, refuse
from guieval.journal import write_atomically
from guieval.reports.exchange.atif_reading import make_run
from guieval.scoring.predictions import FORMATS, Predictions, read_predictions
from guieval.scoring.predictions.webarena_verified import WEBARENA_VERIFIED
from guieval.scoring.webarena_verified.judge import Judge
from guieval.steps import StepTaskModel

ATIF = "atif"
SHOWN = 3
"""How many reasons, names and damaged rows of each kind are printed."""


def import_predictions(
    format: Annotated[str, typer.Argument(metavar="FORMAT", help="Format of the file; auto: guess from its content.")],
    file: Annotated[
        Path,
        path_argument(
            "FILE",
            "The predictions file, packed with gzip or not; webarena-verified: the agent's folder; atif: a folder of them.",
        ),
    ],
    out: Annotated[Path, path_option("JSONL file to write, for `guieval score`; atif: the directory of the run.")],
    bench: Annotated[str | None, typer.Option(help="Benchmark whose steps the file answers (with --data).")] = None,
    data: Annotated[Path | None, path_option("That benchmark's data folder, for files that name no steps.")] = None,
    override: options.LoaderOptions = None,
    skip_damaged: options.SkipDamaged = False,
    anyway: Annotated[
        bool, typer.Option("--anyway", help="Read a file whose rows state other targets than the benchmark's labels too.")
    ] = False,
) -> None:
    """Read a predictions file of GUIEvalKit, AgentCPM-GUI, OS-Atlas, ScreenSpot-Pro and others, and write guieval's own."""
    if format == ATIF:
        refuse({"bench": bench, "data": data, "set": override, "skip-damaged": skip_damaged}, f"is not for {ATIF}")
        _make_run(file, out)
        return
    known_name("format", format, ("auto", ATIF, *FORMATS))
    name = None if format == "auto" else format
    if bench is not None and data is None:
        raise UsageError(f"--bench {bench} needs --data, its data folder")
    if out.resolve() == file.resolve():
        raise UsageError(f"--out {str(out)!r} is the file to be read; name another one")
    if not out.parent.is_dir():
        raise UsageError(f"there is no folder {str(out.parent)!r} to write {out.name!r} in")
    steps = () if data is None else _steps(bench or "screenspot-pro", data, override or [])
    if name == WEBARENA_VERIFIED.name:
        if bench is not None:
            raise UsageError(f"--bench and --data have no use for the format {name}: the package has the tasks")
        _judge(file, out, override or [])
        return
    read = read_predictions(file, name, steps=steps, skip_damaged=skip_damaged)
    if not anyway:
        read.refuse_other_labels(file)
    write_atomically(out, "".join(f"{line}\n" for line in read.to_lines()))
    _report(read, out)


def _make_run(folder: Path, out: Path) -> None:
    made = make_run(folder, out)
    echo(f"{out}: {made.trajectories:,} trajectories of {counted(made.tasks, 'task')}, {made.screenshots:,} screenshots")
    if made.planned > made.tasks:
        echo(f"  {made.planned - made.tasks:,} of the {made.planned:,} planned tasks have no trajectory and are left out")
    echo(f"  then: guieval score {out}")


def _judge(folder: Path, out: Path, override: list[str]) -> None:
    """Have the package judge the agent's folder; what it says is a file of its own format."""
    given = options.loader_options(override)
    check_options(Judge, given, f"the format {WEBARENA_VERIFIED.name!r}")
    rows = list(Judge(**given).rows(folder))
    write_atomically(out, "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows))
    read = read_predictions(out, WEBARENA_VERIFIED.name)
    version = next((row["webarena_verified"] for row in rows if "webarena_verified" in row), "")
    echo(f"{out}: {counted(len(read.rows), 'task')} of {len(rows):,}, judged by webarena-verified {version}".rstrip())
    for status, count in sorted(Counter(row["status"] for row in rows).items()):
        echo(f"  {status}: {count:,}")
    echo(f"  then: guieval score {out}")


def _steps(bench: str, data: Path, override: list[str]) -> Iterator[StepTaskModel]:
    benchmark = options.open_benchmark(bench, data, override)
    return (step for ref in benchmark.index() for step in benchmark.load(ref).steps)


def _report(read: Predictions, out: Path) -> None:
    answered = f"{len(read.rows) - read.unkept.total():,} answers to steps of {counted(read.episodes, 'episode')}"
    echo(f"{out}: {answered}, format {read.format}")
    for title, counts in (("unparseable", read.unparseable), ("unsupported", read.unsupported)):
        echo(f"  {title}: {counts.total():,}")
        for reason, count in counts.most_common(SHOWN):
            echo(f"    {count:,}: {reason}")
        if len(counts) > SHOWN:
            echo(f"    and {len(counts) - SHOWN:,} other kinds")
    if read.repeated:
        echo(f"  repeated word for word and left out: {read.repeated:,}")
    for protocol, count in read.unkept.items():
        echo(f"  right under {protocol}, without the reply, and left out: {count:,}")
    if read.unanswered:
        echo(f"  without an answer in the source, so not run: {read.unanswered:,}")
    if read.differing:
        echo(f"  with another box than the benchmark, whose own label decides: {len(read.differing):,}")
        for row in read.differing:
            echo(f"    {row.episode_id}: {row.differs}")
    echo(f"  damaged and skipped: {len(read.skipped):,}")
    for error in read.skipped[:SHOWN]:
        echo(f"    {error}")
    if len(read.skipped) > SHOWN:
        echo(f"    and {len(read.skipped) - SHOWN:,} more")
    for benchmark in read.benchmarks:
        echo(f"  answers steps of {benchmark}")

"""``guieval report``: a folder that shows every step of a run in a browser."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from guieval.cli import options
from guieval.cli.settings import path_argument, path_option
from guieval.cli.tables import echo, say
from guieval.data.doctor.counts import counted
from guieval.errors import UsageError, known_name, refuse
from guieval.history.modes import Kind, Mode
from guieval.journal import RunFolder
from guieval.journal.run_folders import paired, rounds_of, several_runs
from guieval.reports.trajectories.moving import MOVING, Moving
from guieval.reports.trajectories.reading import read_online
from guieval.reports.trajectories.writing import write_trajectories
from guieval.reports.viewer.folder import Written
from guieval.reports.viewer.pictures import Pictures
from guieval.reports.viewer.reading import protocols_to_show, shown_run
from guieval.reports.viewer.sources import PlannedTasks, open_data, prompter
from guieval.reports.viewer.writing import write_report
from guieval.running.progress.bar import progress_bar


def report(
    run: Annotated[Path, path_argument("RUN", "The run, rollout or folder of runs to look at.")],
    out: Annotated[Path | None, path_option("Folder to write (default: report, in the run directory).")] = None,
    against: Annotated[Path | None, path_option("A second run over the same steps, shown next to the first.")] = None,
    protocol: options.Protocols = None,
    data: options.RunData = None,
    adapter: options.ReadingAdapter = None,
    no_images: Annotated[bool, typer.Option("--no-images", help="Leave the screenshots out.")] = False,
    small_images: Annotated[
        bool, typer.Option("--small-images", help="Scale the screenshots down, for a folder to send, instead of linking them.")
    ] = False,
    moving: Annotated[
        str | None, typer.Option(metavar="FORM", help="Write each trajectory of an online run as a picture too: gif or webp.")
    ] = None,
) -> None:
    """Write a folder that shows every step of a run: open its index.html in any browser, no server or network needed."""
    form = None if moving is None else known_name("moving picture", moving, MOVING)
    runs = several_runs([run], rollouts=True)
    pairs: list[tuple[Path, Path | None]] = [(each, None) for each in runs]
    if against is not None:
        pairs = [(one.first, other.first) for one, other in paired(run, against, rollouts=True)]
    if all(_mode(each).is_over("tasks") for each, _ in pairs):
        given = {"against": against, "protocol": protocol, "data": data, "adapter": adapter}
        refuse(given, "does not apply to an online run, whose report shows its own trajectories")
    if form is not None and not all(_mode(each).is_over("tasks") for each, _ in pairs):
        raise UsageError("--moving is for online runs, whose screens follow each other; a recorded step has one")
    for each, other in pairs:
        folder = each / "report" if out is None else out if len(pairs) == 1 else out / each.name
        how = _How(other, protocol or (), data, adapter, images=not no_images, small=small_images, moving=form)
        _mode(each).of_kind(_WRITE)(each, folder, how)


class _How(NamedTuple):
    against: Path | None
    protocols: Sequence[str]
    data: Path | None
    adapter: str | None
    images: bool
    small: bool
    moving: Moving | None


def _mode(directory: Path) -> Mode:
    return RunFolder(rounds_of(directory)[0]).manifest.mode


def _write_tasks(run: Path, folder: Path, how: _How) -> None:
    with progress_bar("writing the report", "tasks") as bar:
        written = write_trajectories(folder, read_online(run), images=how.images, moving=how.moving, on_progress=bar)
    number = written.episodes
    parts = f"{number:,} trajector{'y' if number == 1 else 'ies'}", counted(written.steps, "step")
    _print(", ".join((*parts, counted(written.images, "screenshot"))), written)


def _write_steps(run: Path, folder: Path, how: _How) -> None:
    against, names, data, adapter, images, small, _ = how
    shown = shown_run(run)
    beside = None if against is None else shown_run(against)
    protocols = protocols_to_show(shown, names)
    prompters = [prompter(each.manifest, adapter) for each in (shown, beside) if each is not None]
    benchmark, absent = open_data(shown.manifest, data)
    if benchmark is None and images:
        say(f"note: {absent}", err=True)
    if not images:
        absent = "the report was written without images"
    pictures = Pictures(benchmark.root if benchmark and images else None, folder, absent, small=small)
    with progress_bar("writing the report", "steps") as bar:
        written = write_report(
            folder,
            shown,
            pictures,
            protocols,
            against=beside,
            tasks=PlannedTasks(benchmark),
            prompters=prompters,
            on_progress=bar,
        )
    parts = counted(written.steps, "step"), counted(written.episodes, "episode"), counted(written.images, "screenshot")
    _print("{} of {}, {}".format(*parts), written)


_WRITE: Mapping[Kind, Callable[[Path, Path, _How], None]] = {"steps": _write_steps, "tasks": _write_tasks}


def _print(contents: str, written: Written) -> None:
    for note in written.notes:
        say(f"note: {note}", err=True)
    if written.lacking:
        say(f"note: missing: {counted(len(written.lacking), 'screenshot')}, first: {written.lacking[0]}", err=True)
    say(contents)
    echo(f"report:   {written.page}")
    echo(f"open:     {written.page.resolve().as_uri()}    (in a browser; no server needed)")

"""``guieval report``: a folder that shows every step of a run in a browser."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from guieval.cli import options
from guieval.cli.running.online import is_online
from guieval.cli.running.run_folders import paired_runs, several_runs
from guieval.cli.settings import path_argument, path_option
from guieval.cli.tables import echo, progress_bar
from guieval.data.doctor.counts import counted
from guieval.errors import UsageError
from guieval.history import recalled
from guieval.journal.run_files import Manifest
from guieval.models.written_prompts import shown
from guieval.registry import load_benchmark
from guieval.reports.trajectories.reading import read_online
from guieval.reports.trajectories.writing import write_trajectories
from guieval.reports.viewer.folder import Written
from guieval.reports.viewer.pictures import Pictures
from guieval.reports.viewer.reading import Prompter, protocols_to_show, shown_run
from guieval.reports.viewer.writing import write_report
from guieval.scoring.recorded_run import recorded_model
from guieval.steps import StepRecord


def report(
    run: Annotated[Path, path_argument("RUN", "The run, rollout or folder of runs to look at.")],
    out: Annotated[Path | None, path_option("Folder to write (default: report, in the run directory).")] = None,
    against: Annotated[Path | None, path_option("A second run over the same steps, shown next to the first.")] = None,
    protocol: options.Protocols = None,
    data: options.RunData = None,
    adapter: options.ReadingAdapter = None,
    no_images: Annotated[bool, typer.Option("--no-images", help="Leave the screenshots out.")] = False,
) -> None:
    """Write a folder that shows every step of a run: open its index.html in any browser, no server or network needed."""
    runs = several_runs([run], rollouts=True)
    pairs = [(each, None) for each in runs] if against is None else paired_runs(run, against, rollouts=True)
    if all(is_online(each) for each, _ in pairs):
        given = {"against": against, "protocol": protocol, "data": data, "adapter": adapter}
        options.refuse(given, "does not apply to an online run, whose report shows its own trajectories")
    for each, other in pairs:
        folder = each / "report" if out is None else out if len(pairs) == 1 else out / each.name
        if is_online(each):
            _write_online(each, folder, images=not no_images)
        else:
            _write(each, other, folder, protocol or (), data, adapter, images=not no_images)


def _write_online(run: Path, folder: Path, *, images: bool) -> None:
    with progress_bar("writing the report", "tasks") as bar:
        written = write_trajectories(folder, read_online(run), images=images, on_progress=bar)
    number = written.episodes
    parts = f"{number:,} trajector{'y' if number == 1 else 'ies'}", counted(written.steps, "step")
    _print(", ".join((*parts, counted(written.images, "screenshot"))), written)


def _write(
    run: Path,
    against: Path | None,
    folder: Path,
    names: Sequence[str],
    data: Path | None,
    adapter: str | None,
    *,
    images: bool,
) -> None:
    shown = shown_run(run)
    beside = None if against is None else shown_run(against)
    protocols = protocols_to_show(shown, names)
    for each in filter(None, (shown, beside)):
        each.prompter = _prompter(each.manifest, adapter)
    root, absent = _screenshots(shown.manifest, data) if images else (None, "the report was written without images")
    if root is None and images:
        echo(f"note: {absent}", err=True)
    with progress_bar("writing the report", "steps") as bar:
        written = write_report(folder, shown, Pictures(root, folder, absent), protocols, against=beside, on_progress=bar)
    parts = counted(written.steps, "step"), counted(written.episodes, "episode"), counted(written.images, "screenshot")
    _print("{} of {}, {}".format(*parts), written)


def _print(contents: str, written: Written) -> None:
    for note in written.notes:
        echo(f"note: {note}", err=True)
    if written.lacking:
        echo(f"note: {len(written.lacking):,} screenshots are missing, first: {written.lacking[0]}", err=True)
    echo(contents)
    echo(f"report:   {written.page}")
    echo(f"open:     {written.page.resolve().as_uri()}    (in a browser; no server needed)")


def _screenshots(manifest: Manifest, data: Path | None) -> tuple[Path | None, str]:
    """The folder of the run's screenshots, or why there is none; a folder that the user named must exist."""
    config = manifest.config
    try:
        benchmark = load_benchmark(config.bench, data or config.data, **(config.bench_options or {}))
    except UsageError as error:
        if data is not None:
            raise
        return None, f"the report has no screenshots, for the run's data cannot be opened ({error}); --data names their folder"
    return benchmark.root, ""


def _prompter(manifest: Manifest, adapter: str | None) -> Prompter:
    """Tells what the run's model was sent at a step, by asking its adapter again."""
    mode = manifest.mode
    try:
        model = recorded_model(manifest, adapter)
    except UsageError as error:
        reason = f"The prompt cannot be rebuilt: {error}."
        return lambda record, known: ("", reason)

    def prompt(record: StepRecord, known: Mapping[int, StepRecord]) -> tuple[str, str]:
        before = range(record.task.step_index)
        if missing := [str(index) for index in before if index not in known]:
            return "", f"The prompt cannot be rebuilt: the run holds no record of step {', '.join(missing[:5])} before it."
        past = tuple(recalled(mode.history, known[index].task, known[index]) for index in before)
        given = record.sample.thought if mode.fixed_thoughts else None
        try:
            prepared = (
                model.prepare_input(record.task, past)
                if given is None
                else model.prepare_fixed_thought(record.task, past, given)
            )
            text = shown(prepared)
        except Exception as error:  # an adapter may be anyone's code; the report shows everything else all the same
            return "", f"The prompt cannot be rebuilt: {type(error).__name__}: {error}"
        if record.history and tuple(entry.origin for entry in past) != record.history:
            return (
                text,
                "Rebuilt now; the run recorded another origin for a step of the past, so it sent something else.",
            )
        return text, ""

    return prompt

"""``guieval report``: a folder that shows every step of a run in a browser."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from guieval.cli.paths import PATH, path

if TYPE_CHECKING:
    from guieval.reports.viewer import Prompter
    from guieval.steps import StepRecord


def report(
    run: Annotated[Path, typer.Argument(parser=path, metavar="RUN", help="The run, or rollout, directory to look at.")],
    out: Annotated[
        Path | None, typer.Option(parser=path, metavar=PATH, help="Folder to write (default: report, in the run directory).")
    ] = None,
    against: Annotated[
        Path | None, typer.Option(parser=path, metavar=PATH, help="A second run over the same steps, shown beside.")
    ] = None,
    protocol: Annotated[
        list[str] | None,
        typer.Option(help="Judge under this one; may be repeated. all: every one. Default: the run's own."),
    ] = None,
    data: Annotated[
        Path | None, typer.Option(parser=path, metavar=PATH, help="The benchmark's data folder (default: the run's).")
    ] = None,
    no_images: Annotated[bool, typer.Option("--no-images", help="Leave the screenshots out.")] = False,
) -> None:
    """Write a folder that shows every step of a run: open its index.html in any browser, no server or network needed."""
    from guieval.reports.viewer import Pictures, open_run, protocols_to_show, write_report

    shown = open_run(_shown(run))
    beside = None if against is None else open_run(_shown(against))
    protocols = protocols_to_show(shown, protocol or ())
    for each in filter(None, (shown, beside)):
        each.prompter = _prompter(each.manifest)
    folder = out or run / "report"
    root, absent = (None, "the report was written without images") if no_images else _screenshots(shown.manifest, data)
    if root is None and not no_images:
        typer.echo(f"note: {absent}", err=True)
    with _Bar() as bar:
        written = write_report(folder, shown, Pictures(root, folder, absent), protocols, against=beside, on_progress=bar.update)
    for note in written.notes:
        typer.echo(f"note: {note}", err=True)
    if written.lacking:
        typer.echo(f"note: {len(written.lacking):,} screenshots are missing, the first because {written.lacking[0]}", err=True)
    typer.echo(f"{written.steps:,} steps of {written.episodes:,} episodes, {written.images:,} screenshots")
    typer.echo(f"report:   {written.page}")


def _shown(directory: Path) -> Path:
    from guieval.cli.run_folders import one_run
    from guieval.decisions.executions import is_rollout

    return directory if is_rollout(directory) else one_run(directory)


def _screenshots(manifest: Mapping[str, Any], data: Path | None) -> tuple[Path | None, str]:
    """Where the run's screenshots are, or why they are not to be had; a folder that was asked for must be there."""
    from guieval.errors import UsageError
    from guieval.registry import load_benchmark

    config = manifest["config"]
    try:
        benchmark = load_benchmark(
            str(config.get("bench", "")), data or config.get("data"), **(config.get("bench_options") or {})
        )
    except UsageError as error:
        if data is not None:
            raise
        return None, f"the report has no screenshots, for the run's data cannot be opened ({error}); --data says where they are"
    return benchmark.root, ""


def _prompter(manifest: Mapping[str, Any]) -> Prompter:
    """Tells what the run's model was sent at a step, by asking its adapter again."""
    from guieval.errors import UsageError
    from guieval.history import recalled
    from guieval.modes import recorded_mode
    from guieval.prompts import shown
    from guieval.scoring import recorded_model

    mode = recorded_mode(manifest["mode"])
    try:
        model = recorded_model(manifest)
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


class _Bar:
    """How many steps are written, where there is a terminal; nothing elsewhere."""

    def __init__(self) -> None:
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> _Bar:
        import sys

        if sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import Progress

            self._bar = Progress(console=Console(stderr=True))
            self._bar.start()
            self._task = self._bar.add_task("steps written", total=None)
        return self

    def update(self, done: int, total: int) -> None:
        if self._bar is not None:
            self._bar.update(self._task, completed=done, total=total)

    def __exit__(self, *exception: object) -> None:
        if self._bar is not None:
            self._bar.stop()

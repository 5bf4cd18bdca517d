"""``guieval runs``: the runs below a folder with their state and headline metric; removes and renames them."""

from __future__ import annotations

import shutil
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer
from typer.core import TyperGroup

from guieval.cli.settings import path_argument, path_option
from guieval.cli.tables import JSON, print_json, say, show
from guieval.errors import UsageError, nearest
from guieval.history.modes import MODES
from guieval.journal import ROLLOUT, SWEEP, is_held, is_run
from guieval.metrics import Measured
from guieval.reports.console import INTERVAL
from guieval.reports.past_runs import PastRun, age, past_runs, run_directories
from guieval.reports.tables.table import Cell, Number, Table, columns

LIST = "list"
_LABELS = ("title", "tags", "note")
"""What a run need not have."""


class _ListByDefault(TyperGroup):
    """``guieval runs`` and ``guieval runs FOLDER`` are ``guieval runs list``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if not args or args[0] not in (*self.commands, *ctx.help_option_names):
            args = [LIST, *args]
        return super().parse_args(ctx, args)


app = typer.Typer(cls=_ListByDefault, add_completion=False)
Folder: TypeAlias = Annotated[Path | None, path_option("Folder that the names are below (default: runs/).", "--in")]
DEFAULT = Path("runs")


@app.callback()
def runs() -> None:
    """List past runs with their exact match; remove or rename one."""


@app.command(LIST)
def list_runs(
    folder: Annotated[Path | None, path_argument("[FOLDER]", "Folder of runs (default: runs/).")] = None,
    tag: Annotated[list[str] | None, typer.Option(help="Only runs with this tag; may be repeated.")] = None,
    json_output: JSON = False,
) -> None:
    """List the runs in a folder, newest first: what was run, exact match with its interval, age and state."""
    where = folder or DEFAULT
    if not where.is_dir():
        raise UsageError(f"there is no folder {str(where)!r}" + ("; name the folder of your runs" if folder is None else ""))
    every = past_runs(where)
    runs = [run for run in every if set(tag or ()).issubset(run.tags)]
    if json_output:
        print_json({"runs": [run_values(run) for run in runs]})
        return
    if not runs:
        known = sorted({tag for run in every for tag in run.tags})
        wanted = f" with tag {' and '.join(tag)}; tags: {', '.join(known) or 'none'}" if tag and every else ""
        say(f"There are no runs in {str(where)!r}{wanted}.")
        return
    now = datetime.now(UTC)
    named, tagged = any(run.title for run in runs), any(run.tags for run in runs)
    about = [*(["name"] if named else []), *(["tags"] if tagged else [])]
    heads = ["run", *about, "model", "benchmark", "mode", "protocol", "engine", "exact match", INTERVAL, "success rate"]
    heads += ["age", "state"]
    spare = ("engine", INTERVAL, "success rate", "protocol", "age", "model", "mode")
    shown = ({"name": each.title, "tags": ", ".join(each.tags)} for each in runs)
    rows = tuple(
        (run.name, *(labels[name] for name in about), *_row(run, now)) for run, labels in zip(runs, shown, strict=True)
    )
    words = (*about, "model", "benchmark", "mode", "protocol", "engine", "state")
    laid_out = columns(*heads, keys=1, folds=("model", *about), spare=spare)
    show(Table("", tuple(replace(each, right=each.right and each.name not in words) for each in laid_out), rows))
    for each in runs:
        if each.problem is not None:
            say(f"broken: {each.name}: {each.problem}", err=True)


def run_values(run: PastRun) -> dict[str, Any]:
    """A run as ``guieval runs --json`` lists it; labels are there if they are set."""
    values = {name: value for name, value in vars(run).items() if value or name not in _LABELS}
    return {**values, "created": run.created.isoformat()}


def _row(run: PastRun, now: datetime) -> tuple[Cell, ...]:
    what = (run.model, run.benchmark, run.mode, run.protocol, run.engine)
    success = None if run.success_rate is None else Number(replace(run.success_rate, interval=None))
    leading = run.exact_match or run.success_rate or Measured(None)  # an online run has no exact match
    shown = Number(replace(leading, interval=None), mark="" if run.exact_match else "success")
    return *what, shown if leading.n else None, Number(leading).ends or None, success, age(run.created, now), run.state


@app.command("remove")
def remove(
    name: Annotated[str, typer.Argument(help="The run as the list names it, or its path; a folder of modes goes as a whole.")],
    folder: Folder = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Remove a run from the disk, or the runs that are the modes of one command; asks before it does."""
    directory = _named(name, folder or DEFAULT)
    own = [directory] if _owns(directory) else _modes_in(directory)
    if not yes:
        inside = "" if own == [directory] else f", which holds {', '.join(each.name for each in own)},"
        typer.confirm(f"Remove {str(directory)!r}{inside} from the disk?", abort=True)
    for each in own:
        shutil.rmtree(each)
    if own != [directory]:
        (directory / "vllm.log").unlink(missing_ok=True)
        with suppress(OSError):  # the folder stays if it has other files
            directory.rmdir()
    say(f"removed: {directory}" + (", but for files that are not a run's" if directory.exists() else ""))


@app.command("rename")
def rename(
    old: Annotated[str, typer.Argument(help="The run as the list names it, or its path.")],
    new: Annotated[str, typer.Argument(help="Its new name, in the same folder.")],
    folder: Folder = None,
) -> None:
    """Rename a run, or the folder of the modes of one command; runs that refer to it keep the old path."""
    directory = _named(old, folder or DEFAULT)
    if Path(new).name != new or new == "..":
        raise UsageError(f"the new name is {new!r}: expected a name without folders")
    target = directory.with_name(new)
    if target.exists() or target.is_symlink():
        raise UsageError(f"there is a {str(target)!r} already")
    directory.rename(target)
    say(f"renamed: {directory} to {target}")


def _named(name: str, folder: Path) -> Path:
    """The directory of a run, of several modes, of a rollout or of a sweep; not one in use, nor a part of another one."""
    directory = folder / name if (folder / name).is_dir() else Path(name)
    if directory.is_symlink() or not directory.is_dir() or not (_owns(directory) or _modes_in(directory)):
        known = [run.relative_to(folder).as_posix() for run in run_directories(folder)]
        raise UsageError(f"there is no run {name!r} in {str(folder)!r}{nearest(name, known)}; `guieval runs` lists them")
    for above in directory.resolve().parents:
        if any((above / file).exists() for file in (ROLLOUT, SWEEP)):
            raise UsageError(f"{str(directory)!r} is a part of {str(above)!r}; name the whole")
    for lock in directory.rglob("lock"):
        if is_held(lock.parent):
            raise UsageError(f"{str(lock.parent)!r} is being written; stop that run first")
    return directory


def _owns(directory: Path) -> bool:
    """Whether everything in a folder belongs to one run, rollout or sweep."""
    return is_run(directory) or any((directory / file).is_file() for file in (ROLLOUT, SWEEP))


def _modes_in(directory: Path) -> list[Path]:
    """The runs directly below a folder that are the modes of one command; an empty list if other runs are among them."""
    runs = [path for path in sorted(directory.iterdir()) if path.is_dir() and not path.is_symlink() and is_run(path)]
    return runs if all(run.name in MODES for run in runs) else []

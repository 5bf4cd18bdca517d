"""Which run directories a path on the command line means: itself, or the runs one below it, as several modes make them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from guieval.cli.tables import echo
from guieval.errors import UsageError
from guieval.journal import RunFolder, is_run
from guieval.journal.repeats import Repeats, grouped
from guieval.journal.run_folders import is_rollout, one_run, runs_below


def several_runs(directories: Iterable[Path], *, rollouts: bool = False) -> list[Path]:
    """Every run that the directories are or hold one below them, each once, in the order given.

    Of several runs, one whose manifest or plan cannot be read is left out and named on standard error; a
    :class:`guieval.errors.UsageError` is raised where that leaves none. With ``rollouts`` a rollout stands for itself.
    """
    found: dict[Path, None] = {}
    for directory in directories:
        whole = not directory.exists() or is_run(directory) or (rollouts and is_rollout(directory))
        below = [] if whole else runs_below(directory)
        found.update(dict.fromkeys(below or [directory if rollouts and is_rollout(directory) else one_run(directory)]))
    if len(found) == 1:
        return list(found)
    problems = {run: problem for run in found if (problem := None if is_rollout(run) else _problem(run)) is not None}
    if len(problems) == len(found):
        raise UsageError(f"none of the {len(found)} runs can be read; the first: {next(iter(problems.values()))}")
    for run, problem in problems.items():
        echo(f"note: the run {str(run)!r} is left out: {problem}", err=True)
    return [run for run in found if run not in problems]


def paired_repeats(first: Path, second: Path) -> list[tuple[Repeats, Repeats]]:
    """The runs of two directories to put side by side, repeats as one: by their modes, if one of the two holds several.

    Raises as :func:`paired_runs` does.
    """
    sides = [grouped(several_runs([each])) for each in (first, second)]
    pairs = _paired([[each.first for each in side] for side in sides], first, second)
    of = {each.first: each for side in sides for each in side}
    return [(of[one], of[two]) for one, two in pairs]


def paired_runs(first: Path, second: Path, *, rollouts: bool = False) -> list[tuple[Path, Path]]:
    """The runs of two directories to put side by side: by their modes, where one of the two holds several runs.

    A mode that only one side has is named on standard error. Raises :class:`guieval.errors.UsageError` where no mode is on both
    sides, or a side has several runs in one mode.
    """
    return _paired([several_runs([each], rollouts=rollouts) for each in (first, second)], first, second)


def _paired(sides: Sequence[Sequence[Path]], first: Path, second: Path) -> list[tuple[Path, Path]]:
    if all(len(side) == 1 for side in sides):
        return [(sides[0][0], sides[1][0])]
    by_mode: list[dict[str, Path]] = []
    for side in sides:
        by_mode.append({})
        for run in side:
            other = by_mode[-1].setdefault(RunFolder(run).manifest.mode.label, run)
            if other != run:
                raise UsageError(f"{str(other)!r} and {str(run)!r} are in the same mode; name one of them")
    one, two = by_mode
    shared = [mode for mode in one if mode in two]
    if not shared:
        raise UsageError(
            f"{str(first)!r} and {str(second)!r} have no mode in common ({', '.join(one)} and {', '.join(two)}); name two runs"
        )
    for mode in one.keys() ^ two.keys():
        echo(f"note: mode {mode} is only in {str((one | two)[mode])!r}, so it is not compared", err=True)
    return [(one[mode], two[mode]) for mode in shared]


def apart(file: Path, run: Path, runs: Sequence[object]) -> Path:
    """The file for one of several runs: with the run's name added, if there are several."""
    return file if len(runs) == 1 else file.with_name(f"{file.stem}-{run.name}{file.suffix}")


def _problem(directory: Path) -> str | None:
    try:
        RunFolder(directory).check()
    except UsageError as error:
        return str(error)
    return None


def writable(file: Path) -> Path:
    """The file itself, after a check that it can be written: before any work is done that would be lost."""
    if file.is_dir():
        raise UsageError(f"{str(file)!r} is a folder; give the name of the file to write")
    if not file.parent.is_dir():
        raise UsageError(f"there is no folder {str(file.parent)!r} to write {file.name!r} to")
    return file

"""Finds the runs of a path: the run itself, the runs below it, or the rounds of a rollout (one for each seed)."""

from __future__ import annotations

from itertools import chain
from pathlib import Path

from guieval.errors import UsageError
from guieval.journal.directory import MANIFEST, ROLLOUT, is_run
from guieval.journal.reading import RunFolder
from guieval.journal.repeats import repeats_in
from guieval.journal.run_files import RolloutFile, read_file


def runs_below(directory: Path) -> list[Path]:
    """The runs in the subfolders of a folder, e.g. of several modes, and the repeats in these subfolders."""
    if not directory.is_dir():
        return []
    repeats = repeats_in(directory)
    folders = [*repeats, *(path for path in sorted(directory.iterdir()) if path.is_dir() and path not in repeats)]
    runs = ([path] if is_run(path) else [each for each in repeats_in(path) if is_run(each)] for path in folders)
    return list(chain.from_iterable(runs))


def one_run(directory: Path) -> Path:
    """The run in a directory, or the only one in its subfolders; :class:`UsageError` if there are none or several."""
    if not directory.exists():
        raise UsageError(f"the run directory {str(directory)!r} does not exist")
    if is_run(directory):
        return directory
    below = runs_below(directory)
    if len(below) == 1:
        return below[0]
    if not below:
        raise UsageError(f"{str(directory)!r} is not a run directory and holds no run: it has no {MANIFEST}")
    named = ", ".join(repr(str(path)) for path in below)
    raise UsageError(f"{str(directory)!r} is not a run directory: it has no {MANIFEST}; below it are the runs {named}")


def is_rollout(directory: Path) -> bool:
    """Whether a folder is a rollout."""
    return (directory / ROLLOUT).is_file()


def open_folder(directory: Path) -> RunFolder:
    """A run, or a rollout as its first round with the further ones; their records are not read yet, and there may be none.

    Raises :class:`UsageError` if there is neither, or the rounds are over different steps.
    """
    first, *others = [RunFolder(each) for each in rounds_of(directory)]
    for other in others:
        if other.plan != first.plan:
            named = f"{str(first.directory)!r} and {str(other.directory)!r}"
            raise UsageError(f"the rounds {named} are over different steps, so they cannot be pooled")
    return RunFolder(first.directory, others).check()


def rounds_of(directory: Path) -> list[Path]:
    """The runs of ``directory``: the run itself, or the rounds of a rollout that have begun, in order.

    Raises :class:`UsageError` if there is neither, or the list of rounds is damaged.
    """
    if not is_rollout(directory):
        _ = RunFolder(directory).manifest
        return [directory]
    rounds = [directory / entry.directory for entry in read_file(directory / ROLLOUT, RolloutFile).rounds]
    if begun := [path for path in rounds if is_run(path)]:
        return begun
    raise UsageError(f"no round of the rollout {str(directory)!r} has begun")

"""Which run directories a path on the command line means: itself, or the runs one below it, as several modes make them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path


def one_run(directory: Path) -> Path:
    """The directory, which must hold a run; :class:`guieval.errors.UsageError` naming the runs below it where it holds none."""
    from guieval.errors import UsageError
    from guieval.journal import MANIFEST, is_run

    if not directory.exists():
        raise UsageError(f"there is no run directory at {str(directory)!r}")
    if is_run(directory):
        return directory
    below = _below(directory)
    hint = f"; below it are the runs {', '.join(repr(str(each)) for each in below)}" if below else ""
    raise UsageError(f"{str(directory)!r} is no run directory: it has no {MANIFEST}{hint}")


def several_runs(directories: Iterable[Path]) -> list[Path]:
    """Every run that the directories are or hold one below them, each once, in the order given."""
    from guieval.journal import is_run

    found: dict[Path, None] = {}
    for directory in directories:
        below = [] if not directory.exists() or is_run(directory) else _below(directory)
        found.update(dict.fromkeys(below or [one_run(directory)]))
    return list(found)


def _below(directory: Path) -> list[Path]:
    from guieval.journal import is_run

    return [each for each in sorted(directory.iterdir()) if each.is_dir() and is_run(each)] if directory.is_dir() else []


def writable(file: Path) -> Path:
    """The file, whose folder must exist and which is no folder itself, so that no work is done in vain."""
    from guieval.errors import UsageError

    if file.is_dir():
        raise UsageError(f"{str(file)!r} is a folder; give the name of the file to write")
    if not file.parent.is_dir():
        raise UsageError(f"there is no folder {str(file.parent)!r} to write {file.name!r} to")
    return file

"""Which run directory a path means: itself, or the only run below it."""

from __future__ import annotations

from pathlib import Path

from guieval.errors import UsageError
from guieval.journal.directory import MANIFEST, is_run


def runs_below(directory: Path) -> list[Path]:
    """The runs one below a folder, as several modes make them."""
    return [path for path in sorted(directory.iterdir()) if path.is_dir() and is_run(path)] if directory.is_dir() else []


def one_run(directory: Path) -> Path:
    """The run that the directory is, or the only one below it; otherwise :class:`UsageError` naming them."""
    if not directory.exists():
        raise UsageError(f"there is no run directory at {str(directory)!r}")
    if is_run(directory):
        return directory
    below = runs_below(directory)
    if len(below) == 1:
        return below[0]
    if not below:
        raise UsageError(f"{str(directory)!r} is not a run directory and holds no run: it has no {MANIFEST}")
    named = ", ".join(repr(str(path)) for path in below)
    raise UsageError(f"{str(directory)!r} is not a run directory: it has no {MANIFEST}; below it are the runs {named}")

"""Finds settings files by name: those shipped in ``configs/runs/`` and ``configs/training/``."""

from __future__ import annotations

from pathlib import Path

from guieval.errors import UsageError, nearest
from guieval.registry import config_folder


def settings_file(given: Path, kind: str, of_what: str) -> Path:
    """The file itself, or the shipped one of that name in the folder ``kind``.

    Raises :class:`guieval.errors.UsageError` with the nearest name, and what ``of_what`` is shipped.
    """
    if given.is_file() or given.suffix or len(given.parts) > 1:
        return given
    folder = config_folder() / kind
    known = sorted(file.stem for file in folder.glob("*.yaml"))
    if given.name not in known:
        raise UsageError(
            f"there is no file {str(given)!r}, and no shipped {of_what} of that name{nearest(given.name, known)}; "
            f"shipped: {', '.join(known)}"
        )
    return folder / f"{given.name}.yaml"


def run_file(given: Path | None) -> Path | None:
    """The settings of a run: the file itself, or the shipped one of that name; ``None`` for ``None``."""
    return None if given is None else settings_file(given, "runs", "run settings")

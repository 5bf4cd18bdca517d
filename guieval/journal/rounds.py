"""Rollout directories: several runs of one model over the same steps, one round for each seed."""

from __future__ import annotations

from pathlib import Path

from guieval.errors import UsageError
from guieval.journal.directory import ROLLOUT, is_run, read_manifest
from guieval.journal.run_files import RolloutFile, read_file


def is_rollout(directory: Path) -> bool:
    """Whether a folder is a rollout."""
    return (directory / ROLLOUT).is_file()


def rounds_of(directory: Path) -> list[Path]:
    """The runs of ``directory``: the run itself, or the rounds of a rollout that have begun, in order.

    Raises :class:`UsageError` if there is neither, or the list of rounds is damaged.
    """
    if not is_rollout(directory):
        read_manifest(directory)
        return [directory]
    rounds = [directory / entry.directory for entry in read_file(directory / ROLLOUT, RolloutFile).rounds]
    if begun := [path for path in rounds if is_run(path)]:
        return begun
    raise UsageError(f"no round of the rollout {str(directory)!r} has begun")

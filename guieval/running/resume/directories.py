"""Which runs a directory holds that is to be resumed, and with which settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from guieval.errors import UsageError
from guieval.journal import MANIFEST, has_records, is_run, read_manifest
from guieval.running.config import RunConfig
from guieval.running.resume.trust import resumed


def resumed_runs(
    directory: Path,
    modes: Sequence[str] | None,
    file: Path | None,
    overrides: Sequence[str],
    flags: Mapping[str, Any],
    *,
    trust: bool,
) -> list[tuple[RunConfig, Path]]:
    """The run that a directory is, or those one below it, with the user's settings over their own; only those in ``modes``.

    Raises :class:`UsageError` where there is no such run, or where one is damaged or not trusted
    (:func:`guieval.running.resume.trust.resumed`).
    """
    folders = [directory] if is_run(directory) else sorted(folder for folder in directory.glob("*") if is_run(folder))
    for folder in [] if folders == [directory] else [directory, *sorted(directory.glob("*"))]:
        if folder not in folders and has_records(folder):
            raise UsageError(f"{str(folder / MANIFEST)!r} is not there, so that what the folder holds cannot be resumed")
    if not folders:
        raise UsageError(f"nothing to resume: {str(directory)!r} holds no run")
    recorded = [(read_manifest(folder).config.to_json(), folder) for folder in folders]
    runs = [(resumed(base, file, overrides, flags, trust=trust, folder=folder), folder) for base, folder in recorded]
    here = {config.mode for config, _ in runs}
    for mode in modes or ():
        if mode not in here:
            raise UsageError(f"{str(directory)!r} holds no run in mode {mode!r}, only in {', '.join(sorted(here))}")
    return [(config, folder) for config, folder in runs if not modes or config.mode in modes]

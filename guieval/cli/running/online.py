"""Prints the figures of online runs."""

from __future__ import annotations

from pathlib import Path

from guieval.history.modes import ONLINE
from guieval.journal import Records, is_run, read_manifest, read_planned
from guieval.journal.caveats import model_label
from guieval.online.figures import online_figures
from guieval.reports.online_tables import OnlineRun


def is_online(directory: Path) -> bool:
    """Whether a directory holds an online run."""
    return is_run(directory) and read_manifest(directory).recorded_mode.name == ONLINE


def online_run(directory: Path) -> OnlineRun:
    """The heading and the figures of a run."""
    manifest = read_manifest(directory)
    heading = [model_label(manifest), f"{manifest.config.bench} online"]
    if manifest.selection is not None and manifest.selection.title:
        heading.append(manifest.selection.title)
    return OnlineRun("\n".join(heading), online_figures(Records(directory), read_planned(directory).plan))

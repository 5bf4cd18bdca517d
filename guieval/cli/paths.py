"""Paths of the command line: an empty one, as an unset shell variable gives it, is not the current folder; and a run's own."""

from __future__ import annotations

from pathlib import Path

import typer

PATH = "PATH"
"""What the help shows in place of a path."""


def path(text: str) -> Path:
    """A path option's value."""
    if not text.strip():
        raise typer.BadParameter("a path must not be empty")
    return Path(text)


def new_directory(*words: str) -> Path:
    """Where a run goes that was given no directory: below ``runs/``, by what it is of and the time."""
    import re
    import time

    return Path("runs") / re.sub(r"[^\w.+=@-]", "_", "-".join((*words, time.strftime("%Y%m%d-%H%M%S"))))[-200:]

"""How a path is read from the command line: an empty one, as an unset shell variable gives it, is not the current folder."""

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

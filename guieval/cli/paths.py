"""Paths of the command line: an empty one, as an unset shell variable gives it, is not the current folder; and a run's own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

PATH = "PATH"
"""What the help shows in place of a path."""


def path(text: str) -> Path:
    """A path option's value."""
    if not text.strip():
        raise typer.BadParameter("a path must not be empty")
    return Path(text)


def path_option(help: str, *names: str, metavar: str = PATH) -> Any:
    """What marks an option that takes a path."""
    return typer.Option(*names, parser=path, metavar=metavar, help=help)


def path_argument(metavar: str, help: str) -> Any:
    """What marks an argument that takes a path."""
    return typer.Argument(parser=path, metavar=metavar, help=help)

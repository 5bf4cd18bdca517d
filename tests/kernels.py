"""Notebooks that tests execute, and what they show."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from guieval.reports.notebook import VIEWS, views
from tests.waiting import PATIENCE


def html_of(value: object) -> str:
    """What a notebook shows of a value."""
    names = (f"{kind.__module__}.{kind.__qualname__}" for kind in type(value).__mro__)
    shown: str = getattr(views, next(VIEWS[name] for name in names if name in VIEWS))(value)
    return shown


def executed(notebook: Any, folder: Path, **options: Any) -> None:
    """Execute a notebook with a kernel that works in a folder; ``options`` as nbclient's client has them.

    The kernel is reached through files there: a port that is free when it is chosen may be another program's soon after.
    """
    from nbclient import NotebookClient
    from traitlets.config import Config

    files = Config({"KernelManager": {"transport": "ipc", "ip": str(folder / ".kernel")}})
    resources = {"metadata": {"path": str(folder)}}
    NotebookClient(notebook, config=files, resources=resources, startup_timeout=PATIENCE, timeout=600, **options).execute()

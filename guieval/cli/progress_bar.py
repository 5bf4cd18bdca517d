"""A progress bar on standard error where there is a terminal, and nothing elsewhere."""

from __future__ import annotations

import sys
from typing import Any


class ProgressBar:
    """A bar that counts ``unit``s. A context manager; :meth:`close` removes the bar before its end."""

    def __init__(self, title: str, unit: str) -> None:
        self.done = 0
        self._title = title
        self._unit = unit
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> ProgressBar:
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

            text = TextColumn("{task.description}", markup=False)
            columns = (text, BarColumn(), MofNCompleteColumn(), TextColumn(self._unit), TimeRemainingColumn())
            self._bar = Progress(*columns, console=Console(stderr=True))
            self._bar.start()
            self._task = self._bar.add_task(self._title, total=None)
        return self

    def update(self, done: int, total: int | None) -> None:
        """Show how far the work has come; ``total`` is ``None`` where it is not known."""
        self.done = done
        if self._bar is not None:
            self._bar.update(self._task, completed=done, total=total)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def __exit__(self, *exception: object) -> None:
        self.close()

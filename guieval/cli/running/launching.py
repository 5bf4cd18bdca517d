"""What the commands that run models show on the terminal: runs as they go, and servers while they start or when they fail."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from guieval.cli.running.progress import PLAIN_SECONDS, Dashboard
from guieval.cli.tables import echo
from guieval.engines.vllm.server import ServerFailure
from guieval.errors import harmless
from guieval.running.display import Cost, Display, RunDisplay, Waited


class Terminal(Display):
    """Shows runs on standard error, or nothing but notes where it is ``quiet``."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet

    def following(self, title: str, cost: Cost) -> AbstractContextManager[RunDisplay]:
        return Dashboard(title, quiet=self._quiet, cost=cost)

    @contextmanager
    def starting(self, title: str) -> Iterator[Waited]:
        with _StartLine(title, quiet=self._quiet) as line:
            yield line.update

    def note(self, text: str) -> None:
        echo(text)


def print_failure(failure: ServerFailure) -> None:
    """Print on standard error how a server failed, with the last lines of its log."""
    if isinstance(failure.__cause__, type(failure)):  # the run adds a sentence to the original error
        failure = failure.__cause__
    echo(f"guieval: {failure}" + ("; its last lines:" if failure.lines else ""), err=True)
    for line in failure.lines:
        echo(f"  {line}", err=True)


class _StartLine:
    """The time and the log's last line while a server starts: one that changes on a terminal, a new one at times elsewhere."""

    def __init__(self, title: str, *, quiet: bool) -> None:
        self._title = title
        self._quiet = quiet
        self._status: Any = None
        self._shown = time.monotonic()

    def __enter__(self) -> _StartLine:
        if not self._quiet and sys.stderr.isatty():
            from rich.console import Console
            from rich.text import Text

            self._status = Console(stderr=True).status(Text(harmless(f"{self._title} is starting")))
            self._status.start()
        return self

    def update(self, seconds: float, line: str) -> None:
        """Show how long it has been, and the last line of the server's log; silent once the terminal is closed."""
        if self._quiet:
            return
        text = harmless(f"{self._title} is starting, {seconds:.0f} s: {line}")
        try:
            if self._status is not None:
                from rich.text import Text

                self._status.update(Text(text[:200]))
            elif time.monotonic() - self._shown >= PLAIN_SECONDS:
                self._shown = time.monotonic()
                print(text, file=sys.stderr, flush=True)
        except OSError:
            self._quiet = True

    def __exit__(self, *exception: object) -> None:
        if self._status is not None:
            self._status.stop()

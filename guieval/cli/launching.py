"""Servers that a command starts for its runs: which run needs which, when each is up, and a line while one is starting."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from guieval.cli.progress import PLAIN_SECONDS

if TYPE_CHECKING:
    from guieval.config import RunConfig
    from guieval.engines.vllm_server import ServerFailure, VLLMServer


def open_servers(configs: Sequence[RunConfig], log: Path) -> list[VLLMServer | None]:
    """The server each run needs, ``None`` where it needs none; runs that differ in their mode alone share one.

    Raises :class:`guieval.errors.UsageError` when one could not be started. Nothing is started here.
    """
    from guieval.opening import open_server

    made: list[tuple[RunConfig, VLLMServer | None]] = []
    servers: list[VLLMServer | None] = []
    for config in configs:
        alike = config.model_copy(update={"mode": ""})
        found = next((server for other, server in made if other == alike), None)
        if found is None:
            found = open_server(config, log)
            made.append((alike, found))
        servers.append(found)
    return servers


class Launching:
    """Holds at most one server up, since the next one will need what this one occupies. A context manager."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._running: VLLMServer | None = None

    def use(self, server: VLLMServer | None) -> None:
        """Have ``server`` up, and end another one first; raises what :class:`VLLMServer` raises when it starts.

        One that has died since it was last used is started anew.
        """
        if server is None or (server is self._running and server.alive):
            return
        self._end()
        with _StartLine(f"vLLM with {server.model.name}", quiet=self._quiet) as line:
            server.on_wait = line.update
            server.start()
        self._running = server

    def check(self) -> None:
        """Raise :class:`ServerFailure` when the server in use is gone."""
        if self._running is not None:
            self._running.check_alive()

    def _end(self) -> None:
        if self._running is None:
            return
        server, self._running = self._running, None
        where, pid, kept = server.base_url, server.pid, server.settings.reuse and server.alive
        server.stop()
        if kept:
            typer.echo(f"server:   {where} is left running; `kill {pid}` ends it, {str(server.log)!r} is its log")

    def __enter__(self) -> Launching:
        return self

    def __exit__(self, *exception: object) -> None:
        self._end()


def tell(failure: ServerFailure) -> None:
    """Say on standard error how a server failed, with the last lines of its log."""
    if isinstance(failure.__cause__, type(failure)):  # the run has put a sentence behind the first one's
        failure = failure.__cause__
    typer.echo(f"guieval: {failure}" + ("; its last lines:" if failure.lines else ""), err=True)
    for line in failure.lines:
        typer.echo(f"  {line}", err=True)


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

            self._status = Console(stderr=True).status(Text(f"{self._title} is starting"))
            self._status.start()
        return self

    def update(self, seconds: float, line: str) -> None:
        """Show how long it has been, and what the server said last. Silent once nobody can see it any more."""
        if self._quiet:
            return
        said = f"{self._title} is starting, {seconds:.0f} s: {line}"
        try:
            if self._status is not None:
                from rich.text import Text

                self._status.update(Text(said[:200]))
            elif time.monotonic() - self._shown >= PLAIN_SECONDS:
                self._shown = time.monotonic()
                print(said, file=sys.stderr, flush=True)
        except OSError:
            self._quiet = True

    def __exit__(self, *exception: object) -> None:
        if self._status is not None:
            self._status.stop()

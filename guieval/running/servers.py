"""Servers that are started for runs: which run needs which, and one at a time running."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from guieval.running.config import RunConfig
from guieval.running.display import Display
from guieval.running.engine_choice import open_server

if TYPE_CHECKING:
    from guieval.engines.vllm.server import VLLMServer


def open_servers(configs: Sequence[RunConfig], log: Path) -> list[VLLMServer | None]:
    """The server each run needs, ``None`` where it needs none; runs that differ in their mode alone share one.

    Raises :class:`guieval.errors.UsageError` when one could not be started. Nothing is started here.
    """
    made: list[tuple[RunConfig, VLLMServer | None]] = []
    servers: list[VLLMServer | None] = []
    for config in configs:
        alike = config.model_copy(update={"mode": ""})
        shared = next((server for other, server in made if other == alike), None)
        if shared is None:
            shared = open_server(config, log)
            made.append((alike, shared))
        servers.append(shared)
    return servers


class Servers:
    """Keeps at most one server running, since the next one will need the GPUs of this one. A context manager."""

    def __init__(self, display: Display) -> None:
        self._display = display
        self._running: VLLMServer | None = None

    def use(self, server: VLLMServer | None) -> None:
        """Start ``server``, and end another one first; raises what :class:`VLLMServer` raises when it starts.

        One that has died since it was last used is started again.
        """
        if server is None or (server is self._running and server.alive):
            return
        self._end()
        with self._display.starting(f"vLLM with {server.model.name}") as waited:
            server.on_wait = waited
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
            self._display.note(f"server:   {where} is left running; `kill {pid}` ends it, {str(server.log)!r} is its log")

    def __enter__(self) -> Servers:
        return self

    def __exit__(self, *exception: object) -> None:
        self._end()

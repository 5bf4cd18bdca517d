"""Servers that stop answering, or go away and come back on the same port, and ports at which nobody answers meanwhile."""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any
from unittest.mock import patch

from guieval.engines.http import patience
from guieval.engines.http.connections import Connections
from guieval.playground.mock_server import MockServer
from tests.waiting import ahead


@contextmanager
def reserved_port() -> Iterator[int]:
    """A port that refuses connections unless a server that a test gives it listens there; no other program is given it."""
    with socket.socket() as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # a server with the same option may bind it too
        holder.bind(("127.0.0.1", 0))
        yield holder.getsockname()[1]


def hold(server: MockServer, after: int) -> None:
    """Let every request wait once so many more are answered: no run comes to its end, however late a test looks at it."""
    enough = server.stats()["served"] + after
    server.app.held = lambda tag: server.stats()["served"] >= enough


@contextmanager
def held(server: MockServer, after: int) -> Iterator[None]:
    """As :func:`hold`, until the block ends."""
    hold(server, after)
    try:
        yield
    finally:
        server.app.held = lambda tag: False


@contextmanager
def limits_pass(server: MockServer, limit: float) -> Iterator[None]:
    """The time limit of requests of this thread passes at once when they wait for nothing but those that the server hangs on.

    With a limit that is short enough to wait for, a busy machine would miss it in other requests too.
    """
    exchange = Connections.exchange
    under_way = expired = 0

    async def counted(*given: Any) -> Any:
        nonlocal under_way, expired
        under_way += 1
        try:
            return await exchange(*given)
        except asyncio.CancelledError:
            expired += 1
            raise
        finally:
            under_way -= 1

    def nothing_else() -> bool:
        counts = server.stats()
        hanging: int = counts["hung"] + counts["malformed"] - expired
        return 0 < under_way == hanging

    slow = patch("guieval.playground.mock_server.malformed._DRIPS", 1_000_000)  # a dripping answer does not end either
    with slow, patch.object(Connections, "exchange", counted), ahead(limit, nothing_else):
        yield


@contextmanager
def announced() -> Iterator[threading.Event]:
    """Set once a run in this process announces that it waits for a server."""
    event = threading.Event()

    class Listening(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if record.getMessage().startswith("waiting for "):
                event.set()

    logger, handler = logging.getLogger(patience.__name__), Listening()
    logger.addHandler(handler)
    try:
        yield event
    finally:
        logger.removeHandler(handler)


@contextmanager
def outage(
    make: Callable[[int], MockServer],
    *,
    after: int,
    back: threading.Event | None = None,
    meanwhile: Callable[[int], AbstractContextManager[object]] = nullcontext,
) -> Iterator[str]:
    """The base URL of a server, made for a port, that is stopped after so many answers or a few more, with requests in flight.

    It is made and started again when the event ``back`` is set, which without one is when a run in this process has announced
    its wait. ``meanwhile`` has the port until then.
    """
    over, happened = threading.Event(), threading.Event()
    with reserved_port() as port, announced() as waited_for:
        server = make(port)
        hold(server, after)
        server.start()

        def interrupt() -> None:
            nonlocal server
            while server.stats()["served"] < after:
                if over.wait(0.005):
                    return
            server.stop()
            happened.set()
            with meanwhile(port):
                while not (back or waited_for).wait(0.01):
                    if over.is_set():
                        return
            server = make(port)
            server.start()

        thread = threading.Thread(target=interrupt)
        thread.start()
        try:
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            over.set()
            thread.join()
            server.stop()
    assert happened.is_set(), "too little was asked of it"

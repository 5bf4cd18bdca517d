"""A mock server that is stopped in the middle of its work and comes back on the same port."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from guieval.testing.mock_server import MockServer

LONGEST = 60.0


@contextmanager
def outage(make: Callable[[int], MockServer], *, after: int, seconds: float) -> Iterator[str]:
    """The base URL of a server, made for a port, that is stopped after so many answers and started again ``seconds`` later."""
    server = make(0)
    url = server.base_url
    server.start()
    over = threading.Event()
    happened = threading.Event()

    def interrupt() -> None:
        nonlocal server
        while server.stats()["served"] < after:
            if over.wait(0.005):
                return
        server.stop()
        time.sleep(seconds)
        server = make(int(url.rsplit(":", 1)[1].split("/")[0]))
        server.start()
        happened.set()

    thread = threading.Thread(target=interrupt)
    thread.start()
    try:
        yield url
    finally:
        over.set()
        thread.join(LONGEST)
        server.stop()
    assert happened.is_set(), "too little was asked of it"

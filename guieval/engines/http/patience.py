"""Waits for unreachable servers: all requests wait together, while one small probe at a time checks whether a server is back.

A server is *away* when requests and probes get no answer, or only a gateway's 502, 503 or 504. With any other answer the
server is there, and the failed try counts. The caller supplies the probe.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Awaitable, Callable

from guieval.engines.http.routing import RoutedServer, Router
from guieval.errors import ServersAway

_LOG = logging.getLogger(__name__)
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 2.0
"""Shortest and longest pause between two probes, in seconds; the pause doubles each time."""
REACHED: set[str] = set()
"""URLs that answered this process (a server or a gateway), in this run or an earlier one. A URL that never answered is more
likely a mistake than an outage, so there is no wait for it."""


class Patience:
    """Waits up to ``seconds`` for the servers of ``router``, from the first failed probe until a request is answered.

    ``is_there`` probes one server. ``sleep`` may raise to end the wait. Bound to one event loop; :attr:`waiting` may be read
    from any thread.
    """

    def __init__(
        self,
        router: Router,
        is_there: Callable[[RoutedServer], Awaitable[bool]],
        seconds: float,
        *,
        sleep: Callable[[float], Awaitable[object]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._router = router
        self._is_there = is_there
        self._seconds = seconds
        self._sleep = sleep
        self._clock = clock
        self._since: float | None = None
        self._waits = False
        self._reason = ""
        self._probing: asyncio.Task[frozenset[RoutedServer]] | None = None

    @property
    def waiting(self) -> str | None:
        """A text with the awaited servers and the seconds so far; ``None`` when there is no wait."""
        since = self._since
        if not self._waits or since is None:
            return None
        return f"waiting for {self._names} for {self._clock() - since:.0f} s of {self._seconds:g} s"

    @property
    def reached(self) -> bool:
        """Whether any server has ever answered."""
        return any(server.url in REACHED for server in self._router.left)

    def answered(self, server: RoutedServer, *, by_gateway: bool) -> None:
        """A request (not a probe) was answered; if by the server itself, the time limit starts again with the next outage."""
        REACHED.add(server.url)
        if not by_gateway:
            self._since = None

    async def over(self) -> None:
        """Wait until no wait for servers is under way."""
        if self._waits and self._probing is not None:
            await asyncio.shield(self._probing)

    async def outlasts(self, server: RoutedServer, reason: str) -> bool:
        """Whether ``server`` is away, after a try failed for ``reason``; if so, return once a server is back.

        Raises :class:`ServersAway` when none is back in time.
        """
        if not self.reached:
            return False
        self._reason = reason
        if self._probing is None or self._probing.done():
            self._probing = asyncio.get_running_loop().create_task(self._wait())
            self._probing.add_done_callback(lambda probe: probe.cancelled() or probe.exception())  # it may never be awaited
        return server not in await asyncio.shield(self._probing)

    async def close(self) -> None:
        """End the current wait."""
        if self._probing is not None:
            self._probing.cancel()
            await asyncio.gather(self._probing, return_exceptions=True)

    async def _wait(self) -> frozenset[RoutedServer]:
        """Return when a server is there: the servers that answered the first probe, or an empty set after a wait."""
        pause, left = 0.0, math.inf
        try:
            while True:
                wait = min(max(pause, self._router.quiet_until() - self._clock()), left)
                if wait > 0:
                    await self._sleep(wait)
                there = await self._probe_servers()
                if there:
                    return frozenset() if self._waits else there
                now = self._clock()
                if self._since is None:
                    self._since = now
                left = self._since + self._seconds - now
                if left <= 0:
                    raise ServersAway(
                        f"no answer from {self._names} for {now - self._since:.0f} s, and the run waits for "
                        f"{self._seconds:g} s at most (--patience): {self._reason}"
                    )
                if not self._waits:
                    self._waits = True
                    _LOG.warning("%s", f"waiting for {self._names}, up to {left:.0f} s: {self._reason}")
                pause = min(2 * pause or FIRST_PAUSE, LONGEST_PAUSE)
        finally:
            self._waits = False

    async def _probe_servers(self) -> frozenset[RoutedServer]:
        """Probe the servers that are left, except those with a longer Retry-After than another; return those that answer."""
        soonest = max(self._clock(), self._router.quiet_until())
        probed = [server for server in self._router.left if server.quiet_until <= soonest]
        answers = await asyncio.gather(*map(self._is_there, probed))
        there = frozenset(server for server, answer in zip(probed, answers, strict=True) if answer)
        if self._waits and there:
            names = ", ".join(server.url for server in probed if server in there)
            after = f" after {self._clock() - self._since:.0f} s" if self._since is not None else ""
            _LOG.warning("%s is back%s", names, after)
        for server in probed:
            if server in there:
                self._router.alive(server)
            else:
                self._router.gone(server)
        return there

    @property
    def _names(self) -> str:
        return ", ".join(server.url for server in self._router.left)

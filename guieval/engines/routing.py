"""Which of several servers gets a request: the least loaded one, but an episode stays where its prefix is cached.

The steps of an episode begin with the same goal and the same past, which a server that has seen them need not compute again.
So an episode has a home, and leaves it only when the home is much busier than the others: consistent hashing with bounded loads
(Mirrokni, Thorup and Zadimoghaddam 2016) with the least loaded server in the place of a hash.

A server that is gone gets no work until it answers a health check, then one request, and everything again once that one is
answered (a circuit breaker with a half-open state). One that asks to be left alone for a while (Retry-After) gets none of
what another server can do. Sending is not done here: times and the check are given.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable, Hashable, Iterable, Sequence
from typing import Literal, TypeAlias

from guieval.engines import EndpointStats
from guieval.engines.connections import Connections
from guieval.steps import Usage

State: TypeAlias = Literal["up", "down", "checked", "on trial"]
"""``down``: gets no work; ``checked``: is asked now whether it is well; ``on trial``: gets one request at a time."""

BUSIER = 1.5
"""An episode leaves its home when that would have more than so many times the mean number of requests in flight."""
IN_A_ROW = 3
"""Failures without an answer between them after which a server that can be reached counts as gone."""
HOMES = 16_384
"""Episodes whose home is remembered; the one asked about longest ago is forgotten first."""
_FINENESS = 1.02  # latencies are counted in steps of 2 %, so that a quantile needs no list of them


class Server:
    """One base URL: its connections, whether it gets work, and how it fared since the start."""

    def __init__(self, connections: Connections) -> None:
        self.connections = connections
        self.state: State = "up"
        self.rests_until = -math.inf
        self.quiet_until = -math.inf
        self.failures = 0
        self.trips = 0
        self.tried = False
        self.in_flight = 0
        self.requests = self.retries = self.answered = self.failed = 0
        self.seconds = 0.0
        self.prompt_tokens = self.completion_tokens = 0
        self._latencies: Counter[int] = Counter()
        self._busy = 0.0
        self._busy_since = 0.0

    @property
    def url(self) -> str:
        """Its base URL."""
        return self.connections.url

    @property
    def takes_work(self) -> bool:
        """Whether a request may be sent to it now."""
        return self.state == "up" or (self.state == "on trial" and not self.tried)

    def sent(self, now: float, *, again: bool) -> None:
        """A try begins; ``again``: the request's try before failed."""
        self.in_flight += 1
        self.requests += 1
        self.retries += again
        if self.in_flight == 1:
            self._busy_since = now
        if self.state == "on trial":
            self.tried = True

    def over(self, now: float) -> None:
        """A try has ended, however it did."""
        self.in_flight -= 1
        if self.in_flight == 0:
            self._busy += now - self._busy_since
        if self.state == "on trial" and self.in_flight == 0:
            self.tried = False

    def note(self, seconds: float, usage: Usage | None) -> None:
        """A try was answered after so long."""
        self.answered += 1
        self.seconds += seconds
        self._latencies[math.ceil(math.log(max(seconds, 1e-6), _FINENESS))] += 1
        if usage is not None:
            self.prompt_tokens += usage.prompt_tokens or 0
            self.completion_tokens += usage.completion_tokens or 0

    def stats(self, now: float, started: float | None) -> EndpointStats:
        """Its figures; ``started`` is when the first request of all was sent. May be called from another thread."""
        busy = self._busy + (now - self._busy_since if self.in_flight else 0.0)
        return EndpointStats(
            self.url,
            self.in_flight,
            self.answered,
            self.failed,
            self.seconds,
            self.state != "up",
            requests=self.requests,
            retries=self.retries,
            seconds_p95=_quantile(self._latencies.copy(), 0.95),
            prompt_tokens=self.prompt_tokens,
            completion_tokens=self.completion_tokens,
            busy=None if started is None or now <= started else min(1.0, busy / (now - started)),
        )


class Router:
    """Chooses among ``servers``. Belongs to one event loop; :meth:`stats` may be called from any thread.

    ``check`` asks a server whether it is well. A server that fails it is left alone for ``backoff`` seconds, twice as long each
    further time, at most ``max_backoff``. A server that is alone is always asked: there is none to spare it for.
    """

    def __init__(
        self,
        servers: Sequence[Server],
        check: Callable[[Server], Awaitable[bool]],
        *,
        backoff: float,
        max_backoff: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.servers = tuple(servers)
        self._check = check
        self._backoff = backoff
        self._max_backoff = max_backoff
        self._clock = clock
        self._homes: OrderedDict[Hashable, Server] = OrderedDict()
        self._checks: set[asyncio.Task[None]] = set()
        self._turn = 0
        self._started: float | None = None

    @property
    def in_flight(self) -> int:
        """Tries in flight, over all servers."""
        return sum(server.in_flight for server in self.servers)

    def pick(self, key: Hashable | None = None, *, avoid: Server | None = None) -> Server:
        """The server for the next try of a request.

        ``key`` names what is to stay together; ``avoid`` is where the try before failed, taken only when no other is up.
        """
        if len(self.servers) == 1:
            return self.servers[0]
        self._check_the_rested()
        usable = [server for server in self.servers if server.takes_work]
        calm = self._calm(usable)
        candidates = _without(avoid, calm) or calm or _without(avoid, usable) or usable or _without(avoid, self.servers)
        home = self._homes.get(key) if key is not None else None
        chosen = home if home in candidates and home is not None and self._has_room(home) else self._least_loaded(candidates)
        if key is not None:
            self._homes[key] = chosen
            self._homes.move_to_end(key)
            if len(self._homes) > HOMES:
                self._homes.popitem(last=False)
        return chosen

    def sent(self, server: Server, *, again: bool = False) -> None:
        """A try goes to ``server``; :meth:`over` must follow, and before it at most one of the three reports."""
        now = self._clock()
        if self._started is None:
            self._started = now
        server.sent(now, again=again)

    def over(self, server: Server) -> None:
        """The try is over."""
        server.over(self._clock())

    def answered(self, server: Server, seconds: float, usage: Usage | None) -> None:
        """A request was answered."""
        server.note(seconds, usage)
        self.alive(server)

    def refused(self, server: Server) -> None:
        """A request was refused for what it is, by a server that is well."""
        server.failed += 1
        self.alive(server)

    def failed(self, server: Server, *, gone: bool, busy: bool = False, quiet: float = 0.0) -> None:
        """A try failed. ``gone``: nobody answered at all; ``busy``: it was only too much at once.

        ``quiet`` is for how many seconds the server asks to be left alone.
        """
        server.failed += 1
        server.quiet_until = max(server.quiet_until, self._clock() + quiet)
        if busy and not gone and server.state == "up":
            return
        server.failures += 1
        if gone or server.state == "on trial" or server.failures >= IN_A_ROW:
            self._take_down(server)

    def alive(self, server: Server) -> None:
        """It has answered, so it gets work."""
        server.state = "up"
        server.tried = False
        server.failures = server.trips = 0

    def another_is_up(self, server: Server) -> bool:
        """Whether work for this server could be done by another."""
        return any(other.state == "up" for other in self.servers if other is not server)

    def quiet_for(self) -> float:
        """Seconds until a request may be sent that no server has asked not to be sent; 0 when one may now."""
        usable = [server for server in self.servers if server.takes_work]
        return max(0.0, min((server.quiet_until for server in usable), default=-math.inf) - self._clock())

    def stats(self) -> list[EndpointStats]:
        """How each server fares."""
        now = self._clock()
        return [server.stats(now, self._started) for server in self.servers]

    async def close(self) -> None:
        """Stop asking whether servers are well, and close their connections."""
        for task in self._checks:
            task.cancel()
        await asyncio.gather(*self._checks, return_exceptions=True)
        for server in self.servers:
            await server.connections.close()

    def _take_down(self, server: Server) -> None:
        if server.state in ("up", "on trial"):
            self._rest(server)

    def _rest(self, server: Server) -> None:
        # a lost connection may mean nothing, so the first check comes at once
        wait = 0.0 if server.trips == 0 else min(self._max_backoff, self._backoff * 2.0 ** min(server.trips - 1, 60))
        server.state = "down"
        server.tried = False
        server.trips += 1
        server.rests_until = self._clock() + wait

    def _check_the_rested(self) -> None:
        for server in self.servers:
            if server.state == "down" and server.rests_until <= self._clock():
                server.state = "checked"
                task = asyncio.get_running_loop().create_task(self._examine(server))
                self._checks.add(task)
                task.add_done_callback(self._checks.discard)

    async def _examine(self, server: Server) -> None:
        well = False
        try:
            well = await self._check(server)
        finally:
            if server.state == "checked":  # meanwhile an answer to an earlier request may have come
                if well:
                    server.state = "on trial"
                    server.failures = 0
                else:
                    self._rest(server)

    def _has_room(self, home: Server) -> bool:
        up = [server for server in self.servers if server.state == "up"]
        if home not in up:
            return True
        mean = (sum(server.in_flight for server in up) + 1) / len(up)
        return home.in_flight + 1 <= math.ceil(BUSIER * mean)

    def _calm(self, servers: Iterable[Server]) -> list[Server]:
        now = self._clock()
        return [server for server in servers if server.quiet_until <= now]

    def _least_loaded(self, candidates: Sequence[Server]) -> Server:
        """The one with the fewest requests in flight, ties in turn."""
        start = self._turn % len(candidates)
        self._turn += 1
        return min((*candidates[start:], *candidates[:start]), key=lambda server: server.in_flight)


def _without(avoid: Server | None, servers: Iterable[Server]) -> list[Server]:
    return [server for server in servers if server is not avoid]


def _quantile(latencies: Counter[int], share: float) -> float | None:
    """The latency that a share of all are not above, up to 2 %."""
    if not latencies:
        return None
    left = share * latencies.total()
    for step in sorted(latencies):
        left -= latencies[step]
        if left <= 0:
            return float(_FINENESS**step)
    return float(_FINENESS ** max(latencies))

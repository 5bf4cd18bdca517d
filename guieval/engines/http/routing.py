"""Chooses the server of a request: the least loaded one, but an episode stays where its prefix is cached (docs/scaling.md).

An episode leaves its home server only when that is much busier than the others: consistent hashing with bounded loads
(Mirrokni, Thorup and Zadimoghaddam 2016), with the least loaded server in place of a hash. An unreachable server gets no work
until it answers a health check, then one request, and all work again once that is answered (a circuit breaker). A server with
a wrong configuration is put aside permanently, if another is left; one that sent Retry-After gets no work that another can do.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable, Collection, Hashable, Mapping, Sequence
from typing import Literal, TypeAlias

from guieval.engines import EndpointStats
from guieval.engines.http.connections import Connections
from guieval.steps import Usage

State: TypeAlias = Literal["up", "down", "checked", "on trial", "aside"]
"""``down``: gets no work; ``checked``: a health check is under way; ``on trial``: gets one request at a time;
``aside``: gets no work any more."""

BUSIER = 1.5
"""An episode leaves its home when that would exceed this multiple of the mean number of requests in flight."""
IN_A_ROW = 3
"""Consecutive failures after which a reachable server counts as gone, and refusals of requests that another server answered
after which it is put aside."""
HOMES = 16_384
"""Number of episodes whose home is remembered; the least recently used is dropped first."""
_FINENESS = 1.02  # latencies are counted in bins of 2 %, so that a quantile needs no list of them


class RoutedServer:
    """One base URL: its connections, its state, and its numbers since the start."""

    def __init__(self, connections: Connections) -> None:
        self.connections = connections
        self.state: State = "up"
        self.check_at = -math.inf
        self.quiet_until = -math.inf
        self.failures = 0
        self.contradicted = 0
        self.aside: str | None = None
        self.trips = 0
        self.tried = False
        self.in_flight = 0
        self.requests = self.retries = self.answered = self.failed = 0
        self.seconds = 0.0
        self.prompt_tokens = self.completion_tokens = 0
        self.latencies: Counter[int] = Counter()
        self.headers: Mapping[str, str] = {}
        """Those of its last answer."""
        self.busy = 0.0
        self.busy_since = 0.0

    @property
    def url(self) -> str:
        return self.connections.url

    @property
    def takes_work(self) -> bool:
        """Whether a request may be sent to it now."""
        return self.state == "up" or (self.state == "on trial" and not self.tried)

    def stats(self, now: float, started: float | None) -> EndpointStats:
        """Its numbers; ``started`` is the time of the run's first request. May be called from another thread."""
        busy = self.busy + (now - self.busy_since if self.in_flight else 0.0)
        return EndpointStats(
            self.url,
            **EndpointStats.counts(self),
            resting=self.state != "up",
            seconds_p95=_quantile(self.latencies.copy(), 0.95),
            busy=None if started is None or now <= started else min(1.0, busy / (now - started)),
            aside=self.aside,
        )


class Router:
    """Chooses among ``servers``. Bound to one event loop; :meth:`stats` may be called from any thread.

    ``check`` is the health check. A server that fails it is checked again after ``backoff`` seconds, then after twice as long
    each time, up to ``max_backoff``. A single server is always chosen, whatever its state.
    """

    def __init__(
        self,
        servers: Sequence[RoutedServer],
        check: Callable[[RoutedServer], Awaitable[bool]],
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
        self._homes: OrderedDict[Hashable, RoutedServer] = OrderedDict()
        self._checks: set[asyncio.Task[None]] = set()
        self._turn = 0
        self._started: float | None = None

    @property
    def in_flight(self) -> int:
        return sum(server.in_flight for server in self.servers)

    @property
    def left(self) -> list[RoutedServer]:
        """The servers that were not put aside."""
        return [server for server in self.servers if server.state != "aside"]

    def pick(
        self, key: Hashable | None = None, *, avoid: RoutedServer | None = None, refused: Collection[RoutedServer] = ()
    ) -> RoutedServer:
        """The server for the next try of a request.

        Requests with the same ``key`` stay together; ``avoid`` is the server of the previous failed try, chosen only when no
        other is up; ``refused`` are the servers that refused the request, which must not be all.
        """
        if len(self.servers) == 1:
            return self.servers[0]
        self._start_health_checks()
        left = [server for server in self.left if server not in refused] or self.servers
        usable = [server for server in left if server.takes_work]
        calm = [server for server in usable if server.quiet_until <= self._clock()]
        preferred = calm or usable or left
        candidates = [server for server in preferred if server is not avoid] or preferred
        home = self._homes.get(key) if key is not None else None
        chosen = home if home in candidates and home is not None and self._has_room(home) else self._least_loaded(candidates)
        if key is not None:
            self._homes[key] = chosen
            self._homes.move_to_end(key)
            if len(self._homes) > HOMES:
                self._homes.popitem(last=False)
        return chosen

    def sent(self, server: RoutedServer, *, again: bool = False) -> None:
        """A try goes to ``server``; :meth:`over` must follow, after at most one of the result methods."""
        now = self._clock()
        if self._started is None:
            self._started = now
        server.in_flight += 1
        server.requests += 1
        server.retries += again
        if server.in_flight == 1:
            server.busy_since = now
        if server.state == "on trial":
            server.tried = True

    def over(self, server: RoutedServer) -> None:
        server.in_flight -= 1
        if server.in_flight == 0:
            server.busy += self._clock() - server.busy_since
            server.tried = False

    def answered(self, server: RoutedServer, seconds: float, usage: Usage | None) -> None:
        server.answered += 1
        server.seconds += seconds
        server.latencies[math.ceil(math.log(max(seconds, 1e-6), _FINENESS))] += 1
        if usage is not None:
            self.paid(server, usage)
        server.contradicted = 0
        self.alive(server)

    def paid(self, server: RoutedServer, usage: Usage) -> None:
        """A response was received whose tokens have to be paid, be it the answer or not."""
        server.prompt_tokens += usage.prompt_tokens or 0
        server.completion_tokens += usage.completion_tokens or 0

    def refused(self, server: RoutedServer) -> None:
        """A healthy server refused a request."""
        server.failed += 1
        self.alive(server)

    def contradicted(self, server: RoutedServer, why: str) -> None:
        """Another server answered a request that this one refused."""
        server.contradicted += 1
        if server.contradicted >= IN_A_ROW:
            self.put_aside(server, f"{why}, and another server answers what it refuses")

    def put_aside(self, server: RoutedServer, why: str) -> bool:
        """Send nothing more to a server, unless it is the last one that is left; returns whether it is put aside."""
        if not self.another_is_left(server):
            return False
        if server.state != "aside":
            server.state, server.aside = "aside", why
            logging.getLogger(__name__).warning("%s; this server is put aside, and the others go on", why)
        return True

    def failed(self, server: RoutedServer, *, gone: bool, busy: bool = False, quiet: float = 0.0) -> None:
        """A try failed. ``gone``: there was no answer at all; ``busy``: the server only has too many requests.

        ``quiet`` is the server's Retry-After in seconds.
        """
        server.failed += 1
        self.quiet(server, quiet)
        if busy and not gone and server.state == "up":
            return
        server.failures += 1
        if gone or server.state == "on trial" or server.failures >= IN_A_ROW:
            self.gone(server)

    def quiet(self, server: RoutedServer, seconds: float) -> None:
        """A server sent a Retry-After of so many seconds."""
        server.quiet_until = max(server.quiet_until, self._clock() + seconds)

    def alive(self, server: RoutedServer) -> None:
        """A server answered, so it gets work."""
        if server.state != "aside":
            server.state = "up"
        server.tried = False
        server.failures = server.trips = 0

    def gone(self, server: RoutedServer) -> None:
        """A server does not answer: it gets no work until a health check succeeds."""
        if server.state in ("up", "on trial"):
            self._take_down(server)

    def done_without(self, server: RoutedServer, why: str) -> None:
        """As :meth:`gone`, with a warning: the server never answered, and others can do the work."""
        self.gone(server)
        logging.getLogger(__name__).warning("%s; the other servers go on, and this one is used once it answers", why)

    def another_is_up(self, *but: RoutedServer) -> bool:
        return any(other.state == "up" for other in self.servers if other not in but)

    def another_is_left(self, *but: RoutedServer) -> bool:
        """Whether another server, up or not, was not put aside."""
        return any(other not in but for other in self.left)

    def quiet_for(self) -> float:
        """Seconds until the earliest Retry-After of the servers that take work has passed; 0 if a request may be sent now."""
        usable = [server for server in self.servers if server.takes_work]
        return max(0.0, min((server.quiet_until for server in usable), default=-math.inf) - self._clock())

    def quiet_until(self) -> float:
        """The time at which the earliest Retry-After of the servers that are left has passed."""
        return min(server.quiet_until for server in self.left)

    def stats(self) -> list[EndpointStats]:
        now = self._clock()
        return [server.stats(now, self._started) for server in self.servers]

    async def close(self) -> None:
        """Stop the health checks and close the connections."""
        for task in self._checks:
            task.cancel()
        await asyncio.gather(*self._checks, return_exceptions=True)
        for server in self.servers:
            await server.connections.close()

    def _take_down(self, server: RoutedServer) -> None:
        # a lost connection may be harmless, so the first check comes at once
        wait = 0.0 if server.trips == 0 else min(self._max_backoff, self._backoff * 2.0 ** min(server.trips - 1, 60))
        server.state = "down"
        server.tried = False
        server.trips += 1
        server.check_at = self._clock() + wait

    def _start_health_checks(self) -> None:
        for server in self.servers:
            if server.state == "down" and server.check_at <= self._clock():
                server.state = "checked"
                task = asyncio.get_running_loop().create_task(self._examine(server))
                self._checks.add(task)
                task.add_done_callback(self._checks.discard)

    async def _examine(self, server: RoutedServer) -> None:
        well = False
        try:
            well = await self._check(server)
        finally:
            if server.state == "checked":  # unless an earlier request was answered in the meantime
                if well:
                    server.state = "on trial"
                    server.failures = 0
                else:
                    self._take_down(server)

    def _has_room(self, home: RoutedServer) -> bool:
        up = [server for server in self.servers if server.state == "up"]
        if home not in up:
            return True
        mean = (sum(server.in_flight for server in up) + 1) / len(up)
        return home.in_flight + 1 <= math.ceil(BUSIER * mean)

    def _least_loaded(self, candidates: Sequence[RoutedServer]) -> RoutedServer:
        """The server with the fewest requests in flight; ties are broken in turn."""
        start = self._turn % len(candidates)
        self._turn += 1
        return min((*candidates[start:], *candidates[:start]), key=lambda server: server.in_flight)


def _quantile(latencies: Counter[int], share: float) -> float | None:
    """The quantile of the latencies, with an error of up to 2 %."""
    if not latencies:
        return None
    left = share * latencies.total()
    for step in sorted(latencies):
        left -= latencies[step]
        if left <= 0:
            return float(_FINENESS**step)
    return float(_FINENESS ** max(latencies))

"""The adaptive limit against a simulated server: it finds the knee, holds it, and gives way. No real time passes."""

from __future__ import annotations

import heapq
import random
import statistics
from collections import deque
from collections.abc import Callable

from guieval.engines.concurrency import AdaptiveConcurrency
from tests.rows import every_row


class Simulation:
    """A client that keeps ``limit.value`` requests in flight at a server, one event after the other.

    ``rate(n)``: answers a second that each of n requests in service makes progress by is 1 / (mean seconds); at most
    ``slots`` are in service, the others wait in order. Beyond ``refuses_above`` requests in flight one is refused at once.
    """

    def __init__(
        self,
        slots: int,
        *,
        seconds: float = 2.0,
        sigma: float = 0.6,
        refuses_above: int | None = None,
        clients: int = 10_000,
        slowdown: Callable[[int], float] = lambda busy: 1.0,
        seed: int = 1,
        start: int = 64,
    ) -> None:
        self.now = 0.0
        self.limit = AdaptiveConcurrency(start=start, clock=lambda: self.now)
        self.slots, self.seconds, self.sigma = slots, seconds, sigma
        self.refuses_above, self.clients, self.slowdown = refuses_above, clients, slowdown
        self._random = random.Random(seed)
        self._serving: list[tuple[float, float]] = []
        self._queue: deque[float] = deque()
        self.refused = 0
        self.values: list[int] = []

    @property
    def in_flight(self) -> int:
        return len(self._serving) + len(self._queue)

    def run(self, answers: int) -> float:
        """Let so many be answered; how many that were a second."""
        began, done = self.now, 0
        while done < answers:
            self._fill()
            self.now, sent = heapq.heappop(self._serving)
            self.limit.answered(self.now - sent, self.in_flight + 1)
            self.values.append(self.limit.value)
            if self._queue:
                self._serve(self._queue.popleft())
            done += 1
        return answers / (self.now - began)

    def _fill(self) -> None:
        while self.in_flight < min(self.limit.value, self.clients):
            if self.refuses_above is not None and self.in_flight >= self.refuses_above:
                self.refused += 1
                self.limit.overloaded()
                break
            if len(self._serving) < self.slots:
                self._serve(self.now)
            else:
                self._queue.append(self.now)

    def _serve(self, sent: float) -> None:
        takes = self.seconds * self.slowdown(len(self._serving) + 1)
        if self.sigma:
            takes *= self._random.lognormvariate(-(self.sigma**2) / 2, self.sigma)
        heapq.heappush(self._serving, (self.now + takes, sent))


@every_row("sigma", [0.0, 0.6])
@every_row("seed", [1, 2])
@every_row("slots", [5, 16, 64, 100, 256, 700])
def test_the_rate_is_that_of_a_server_kept_full(slots: int, seed: int, sigma: float) -> None:
    simulated = Simulation(slots, sigma=sigma, seed=seed)
    simulated.run(30 * max(slots, 64))
    full = slots / simulated.seconds
    assert simulated.run(20 * max(slots, 64)) >= 0.95 * full


@every_row("seed", [1, 2])
@every_row("slots", [16, 64, 256])
def test_the_knee_is_found_and_held(slots: int, seed: int) -> None:
    simulated = Simulation(slots, seed=seed)
    simulated.run(400 * max(slots, 64))
    simulated.values.clear()
    simulated.run(100 * max(slots, 64))
    assert 0.95 * slots <= statistics.median(simulated.values) <= 2 * slots
    assert 0.75 * slots <= min(simulated.values) and max(simulated.values) <= 2.5 * slots  # what it tries now and then


@every_row("sigma", [1.0, 1.5])
@every_row("seed", [1, 2, 3])
def test_answers_that_take_very_unlike_long_do_not_make_it_climb_or_swing(sigma: float, seed: int) -> None:
    """With a sigma of 1.5 one answer in fifty takes seven times the mean, and one in two a third of it."""
    simulated = Simulation(64, sigma=sigma, seed=seed)
    simulated.run(20_000)
    simulated.values.clear()
    assert simulated.run(20_000) >= 0.9 * 64 / simulated.seconds
    assert min(simulated.values) >= 0.6 * 64 and max(simulated.values) <= 2.5 * 64
    moves = sum(one != other for one, other in zip(simulated.values, simulated.values[1:], strict=False))
    assert moves <= 40, "it tries another value once in 500 answers at most"


def test_a_server_that_slows_down_smoothly_is_used_to_where_it_gains_little() -> None:
    # a batch of n takes 1 + n/100 times as long as one alone: n requests bring n / (1 + n/100), at most 100
    simulated = Simulation(10_000, slowdown=lambda busy: 1 + busy / 100, sigma=0.3)
    simulated.run(60_000)
    most = 100 / simulated.seconds
    assert simulated.run(20_000) >= 0.75 * most
    assert simulated.limit.value <= 1024


def test_refusals_bring_the_limit_down_and_it_stays_near_what_is_taken() -> None:
    simulated = Simulation(1000, refuses_above=40)
    simulated.run(5_000)
    simulated.values.clear()
    simulated.refused = 0
    assert simulated.run(10_000) >= 0.6 * 40 / simulated.seconds
    assert max(simulated.values) <= 64 and min(simulated.values) >= 20
    assert simulated.refused < 100


def test_refusals_at_once_count_as_one() -> None:
    now = 0.0
    limit = AdaptiveConcurrency(start=100, clock=lambda: now)
    for _ in range(50):
        limit.overloaded()
    assert limit.value == 70
    now = 5.0
    limit.overloaded()
    assert limit.value == 49


def test_the_limit_has_ends() -> None:
    now = 0.0
    limit = AdaptiveConcurrency(start=3, clock=lambda: now)
    for _ in range(20):
        now += 100.0
        limit.overloaded()
    assert limit.value == 1
    for _ in range(2_000):  # and from the lower one it comes back
        now += 0.1
        limit.answered(0.1, limit.value)
    assert limit.value == 1  # one after the other, whatever the limit: more brings nothing
    simulated = Simulation(100_000, seconds=0.1)
    simulated.run(200_000)
    assert max(simulated.values) == simulated.limit.most == 1024


def test_a_client_that_cannot_fill_the_limit_does_not_raise_it() -> None:
    simulated = Simulation(10_000, clients=40)
    simulated.run(5_000)
    assert set(simulated.values) == {64}


def test_a_server_that_gets_faster_is_used() -> None:
    simulated = Simulation(64)
    simulated.run(6_400)
    simulated.slots = 256
    simulated.run(100_000)
    assert simulated.run(10_000) >= 0.95 * 256 / simulated.seconds


def test_it_depends_on_nothing_but_its_arguments() -> None:
    one, two = Simulation(100, seed=5), Simulation(100, seed=5)
    one.run(3_000)
    two.run(3_000)
    assert one.values == two.values

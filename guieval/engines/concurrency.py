"""How many requests are in flight: the one limit of a run (:class:`Slots`), and the search for one if none is given.

For an unknown server, :class:`AdaptiveConcurrency` keeps as many in flight as still increase the answers per second. It
doubles the number until the rate of answers stops rising, and keeps it there; from time to time it tries a little more and a
little less, because servers and prompts change. When the server is overloaded (status 429 or 503, no answer in time), the
number is reduced at once, as in TCP (multiplicative decrease). Rates are noisy, since answers differ in duration, so a clear
difference counts after one round of answers, a small one only after four.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from typing import Any, Literal, TypeAlias, TypeVar

Result = TypeVar("Result")

MOST = 1024
"""Upper limit of the requests in flight."""
START = 64

_Phase: TypeAlias = Literal["first", "rising", "falling", "holding", "probing", "easing"]
_STEP: dict[_Phase, float] = {"rising": 2.0, "falling": 0.5, "probing": 1.25, "easing": 0.8}
_CLEARLY_MORE, _MORE = 1.4, 1.08
_CLEARLY_LESS, _AS_MUCH = 0.75, 0.96
_ROUND, _ROUNDS = 32, 4
_PATIENCE, _MOST_PATIENCE = 4, 64
_BACK = 0.7
_FULL = 0.8


class AdaptiveConcurrency:
    """An adaptive limit: keep :attr:`value` requests in flight.

    Report every answer and every overload to it. Deterministic, given these calls and the ``clock`` (seconds). Not
    thread-safe.
    """

    def __init__(
        self, *, start: int = START, least: int = 1, most: int = MOST, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.most = most
        self.value = min(start, most)
        """The number of requests to keep in flight."""
        self._least = least
        self._clock = clock
        self._phase: _Phase = "first"
        self._best = self.value
        self._best_rate: float | None = None
        self._has_grown = False
        self._patience = _PATIENCE
        self._held = 0
        self._next: _Phase = "probing"
        self._latency = 0.0
        self._settled_at = clock()
        self._calm_at = clock()
        self._window: tuple[float, int] | None = None

    def answered(self, seconds: float, in_flight: int) -> None:
        """An answer came after ``seconds``, with ``in_flight`` requests in flight, this one included."""
        now = self._clock()
        self._latency = seconds if not self._latency else self._latency + (seconds - self._latency) / self.value
        if now < self._settled_at:
            return
        if in_flight < _FULL * self.value:  # too few requests to measure the server
            self._window = None
            return
        if self._window is None:
            self._window = (now, 0)
            return
        since, count = self._window[0], self._window[1] + 1
        self._window = (since, count)
        a_round = max(self.value, _ROUND)
        if count < a_round or now - since < self._latency or now == since:
            return
        full = count >= _ROUNDS * a_round
        rate = count / (now - since)
        if self._judge(rate, full=full) or full:
            self._window = None

    def overloaded(self) -> None:
        """A try was refused because the server is overloaded, or was not answered in time."""
        now = self._clock()
        if now < self._calm_at:  # sent before the last step down, or refused together with what caused it
            return
        if self._phase == "probing":
            self._patience = min(2 * self._patience, _MOST_PATIENCE)
        self._best_rate = None
        self._calm_at = now + max(self._latency, 1.0)
        self._hold(int(self.value * _BACK))

    def interrupted(self) -> None:
        """No server was reachable for a while: discard the rate measured across that time."""
        self._window = None

    def _judge(self, rate: float, *, full: bool) -> bool:
        """Act on the rate measured at the current value; false when more answers are needed."""
        if self._phase == "first":
            self._best, self._best_rate = self.value, rate
            self._go_on("rising")
            return True
        if self._best_rate is None:
            self._best_rate = rate if full else None
            return full
        ratio = rate / self._best_rate
        match self._phase:
            case "rising" | "probing":
                return self._judge_more(rate, ratio, full=full)
            case "falling" | "easing":
                return self._judge_less(ratio, full=full)
        if full:
            self._best_rate += (rate - self._best_rate) / 4
            self._held += 1
            if self._held >= self._patience:
                phase = self._next
                self._next = "easing" if phase == "probing" else "probing"
                self._go_on(phase)
        return full

    def _judge_more(self, rate: float, ratio: float, *, full: bool) -> bool:
        if ratio >= (_MORE if full else _CLEARLY_MORE):
            self._best, self._best_rate, self._has_grown = self.value, rate, True
            self._patience = _PATIENCE
            self._go_on(self._phase)
        elif not full:
            return False
        elif self._phase == "rising" and not self._has_grown:
            self._go_on("falling")  # the first value may have been too high already
        elif self._phase == "rising":
            self._hold(min(self.value, round(1.05 * self._best * max(1.0, ratio))))
        else:
            self._patience = min(2 * self._patience, _MOST_PATIENCE)
            self._hold(self._best)
        return True

    def _judge_less(self, ratio: float, *, full: bool) -> bool:
        if full and ratio >= _AS_MUCH:
            self._best = self.value
            self._patience = _PATIENCE
            self._go_on(self._phase)
        elif full or ratio <= _CLEARLY_LESS:
            if self._phase == "easing":
                self._patience = min(2 * self._patience, _MOST_PATIENCE)
            self._hold(self._best)
        else:
            return False
        return True

    def _go_on(self, phase: _Phase) -> None:
        """Try the value one step of the phase away from the best one."""
        value = round(_STEP[phase] * self._best)
        value = max(value, self._best + 1) if _STEP[phase] > 1.0 else min(value, self._best - 1)
        value = min(max(value, self._least), self.most)
        if value == self._best:  # at a limit of the range
            self._hold(self._best)
        else:
            self._move(phase, value)

    def _hold(self, value: int) -> None:
        self._held = 0
        self._best = min(max(value, self._least), self.most)
        self._move("holding", self._best)

    def _move(self, phase: _Phase, value: int) -> None:
        """Continue with another value; answers to requests sent before are not measured."""
        wait = 0.7 if value >= self.value else 1.0
        self._phase, self.value = phase, value
        self._window = None
        self._settled_at = self._clock() + wait * self._latency


class Slots:
    """Lets as many requests through at once as the limit is at that moment, in order of arrival.

    An asynchronous context manager: within it a request is in flight. Nothing else limits the requests of a run: an engine
    sends whatever it is given, and the runner prepares no more steps than the limit.
    """

    def __init__(self, concurrency: int | AdaptiveConcurrency) -> None:
        self._concurrency = concurrency
        self._inside = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    @property
    def limit(self) -> int:
        """How many may be inside now."""
        return self._concurrency if isinstance(self._concurrency, int) else self._concurrency.value

    @property
    def most(self) -> int:
        return self._concurrency if isinstance(self._concurrency, int) else self._concurrency.most

    async def __aenter__(self) -> None:
        if self._inside < self.limit and not self._waiting:
            self._inside += 1
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():  # it was let in just then
                self._leave()
            raise

    async def __aexit__(self, *exception: object) -> None:
        self._leave()

    def _leave(self) -> None:
        self._inside -= 1
        while self._waiting and self._inside < self.limit:
            turn = self._waiting.popleft()
            if not turn.done():
                self._inside += 1
                turn.set_result(None)


async def all_of(work: Iterable[Coroutine[Any, Any, Result]]) -> list[Result]:
    """The results of work that begins at once, in its order; the first failure, or the caller's end, cancels the rest."""
    tasks = [asyncio.create_task(each) for each in work]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()


async def as_they_end(work: Iterable[Coroutine[Any, Any, Result]]) -> AsyncIterator[Result]:
    """The results of work that begins at once, in the order in which it ends; the rest is cancelled if the caller stops."""
    pending = [asyncio.create_task(each) for each in work]
    try:
        for done in asyncio.as_completed(pending):
            yield await done
    finally:
        for task in pending:
            task.cancel()

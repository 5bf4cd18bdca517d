"""How much is under way at once: a gate for requests, and the tasks that answer steps; both follow a limit that may move."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any

from guieval.engines.concurrency import AdaptiveConcurrency


class Gate:
    """Lets as many requests through at once as the limit is at that moment, in order of arrival.

    An asynchronous context manager: within it a request is under way.
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
        """The highest value of the limit."""
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


class Workers:
    """Tasks that do the same, as many as are wanted at the moment; the first that fails ends the waiting for all."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()
        self._leaving: set[asyncio.Task[None]] = set()
        self._failure: BaseException | None = None
        self._over = asyncio.Event()

    def dismisses(self, wanted: int) -> bool:
        """Whether there are more than are wanted, and the task that asks is to end."""
        task = asyncio.current_task()
        if task is None or len(self._tasks) - len(self._leaving) <= wanted:
            return False
        self._leaving.add(task)
        return True

    def fill(self, wanted: int, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Start what is missing."""
        while len(self._tasks) - len(self._leaving) < wanted:
            task = asyncio.create_task(work())
            self._tasks.add(task)
            task.add_done_callback(self._ended)

    async def done(self) -> None:
        """Wait until none is left; raises what the first that failed raised, at once."""
        await self._over.wait()
        if self._failure is not None:
            raise self._failure

    async def cancel(self) -> None:
        """End those that are left."""
        left = list(self._tasks)
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._leaving.discard(task)
        if not task.cancelled() and (failure := task.exception()) is not None and self._failure is None:
            self._failure = failure
            self._over.set()
        if not self._tasks:
            self._over.set()

"""Waiting for what a test is about, never for an amount of time.

A fixed wait is too short on a busy machine and too long on every other one. These are the only loops that look again and again;
their deadline is far beyond what any machine needs, so that it is met only by what would never have happened.
"""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, TypeVar

Seen = TypeVar("Seen")

PATIENCE = 300.0
"""Seconds after which what a test waits for is not going to happen."""


def until(
    condition: Callable[[], Seen],
    what: str,
    *,
    within: float = PATIENCE,
    every: float = 0.01,
    running: subprocess.Popen[str] | subprocess.Popen[bytes] | None = None,
) -> Seen:
    """The first true value of ``condition``, which is looked at every so many seconds; ``what`` names it when it fails.

    A program given as ``running`` must not end before.
    """
    deadline = time.monotonic() + within
    while not (seen := condition()):
        _check(what, seen, deadline, within, running)
        time.sleep(every)
    return seen


async def auntil(condition: Callable[[], Seen], what: str, *, within: float = PATIENCE, every: float = 0.01) -> Seen:
    """As :func:`until`, while the other tasks of the event loop go on."""
    deadline = time.monotonic() + within
    while not (seen := condition()):
        _check(what, seen, deadline, within)
        await asyncio.sleep(every)
    return seen


def _check(
    what: str,
    seen: object,
    deadline: float,
    within: float,
    running: subprocess.Popen[str] | subprocess.Popen[bytes] | None = None,
) -> None:
    if running is not None and running.poll() is not None:
        raise AssertionError(f"{what}: the program ended before, with exit code {running.returncode}")
    if time.monotonic() > deadline:
        raise AssertionError(f"{what}: not within {within:g} s, the last value was {seen!r}")


class _Ahead(asyncio.SelectorEventLoop):
    """An event loop whose clock can be set ahead."""

    ahead = 0.0

    def time(self) -> float:
        return super().time() + self.ahead


@contextlib.contextmanager
def ahead(seconds: float, when: Callable[[], bool]) -> Iterator[None]:
    """In event loops that this thread makes in the block, so many seconds pass at once whenever a condition holds."""
    here = threading.current_thread()

    class Policy(asyncio.DefaultEventLoopPolicy):
        def new_event_loop(self) -> asyncio.AbstractEventLoop:
            if threading.current_thread() is not here:
                return super().new_event_loop()
            loop = _Ahead()

            def look() -> None:
                if when():
                    loop.ahead += seconds
                loop.call_later(0.01, look)

            loop.call_soon(look)
            return loop

    before = asyncio.get_event_loop_policy()
    asyncio.set_event_loop_policy(Policy())
    try:
        yield
    finally:
        asyncio.set_event_loop_policy(before)


def past_hangs(work: Coroutine[Any, Any, Seen], hung: Callable[[], int], limit: float) -> Seen:
    """The result of ``work``, for which ``limit`` seconds pass at once whenever ``hung`` counts another request.

    What is tested is that a time limit ends a request, whatever the limit: with one that is short enough to wait for, a busy
    machine would miss it in requests that do not hang.
    """
    loop = _Ahead()

    async def watched() -> Seen:
        task = loop.create_task(work)
        seen = 0
        while not task.done():
            if hung() > seen:
                seen += 1
                loop.ahead += limit
            await asyncio.wait([task], timeout=0.01)
        return task.result()

    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        return runner.run(watched())

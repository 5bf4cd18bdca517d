"""Ctrl-C, SIGTERM and SIGHUP while a run is under way."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def on_stop_signals(stop: Callable[[], None]) -> Iterator[None]:
    """Let Ctrl-C, SIGTERM and SIGHUP call ``stop`` at once; outside the main thread signals stay the caller's.

    The handlers are not the event loop's: it would lose a signal that arrives while the last step of a run ends, and the
    runs that follow would go on. A SIGHUP that is ignored, as by ``nohup``, stays so.
    """

    def handle(number: int, frame: FrameType | None) -> None:
        stop()

    numbers = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
        numbers.append(signal.SIGHUP)
    try:
        before = {number: signal.signal(number, handle) for number in numbers}
    except ValueError:
        yield
        return
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

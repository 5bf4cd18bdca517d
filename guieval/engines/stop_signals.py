"""Ctrl-C, SIGTERM and SIGHUP: in order while a run is under way, and as a Ctrl-C while what a run needs starts and ends."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import NoReturn


def on_stop_signals(stop: Callable[[], None]) -> AbstractContextManager[None]:
    """Let Ctrl-C, SIGTERM and SIGHUP call ``stop`` at once; outside the main thread signals stay the caller's.

    The handlers are not the event loop's: it would lose a signal that arrives while the last step of a run ends, and the
    runs that follow would go on. A SIGHUP that is ignored, as by ``nohup``, stays so.
    """
    ignored = signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    return _handled((signal.SIGINT, signal.SIGTERM, *(() if ignored else (signal.SIGHUP,))), stop)


def signals_as_interrupt() -> AbstractContextManager[None]:
    """Raise ``KeyboardInterrupt`` on SIGTERM and SIGHUP if they would end this process without cleaning up."""

    def interrupt() -> NoReturn:
        raise KeyboardInterrupt

    ours = [number for number in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(number) == signal.SIG_DFL]
    return _handled(ours, interrupt)


@contextmanager
def _handled(numbers: Iterable[int], call: Callable[[], None]) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, lambda *_: call()) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

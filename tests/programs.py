"""Programs that tests start, none of which outlives them.

A block ends the program that it started. When the tests themselves are killed no block ends, so a guard, which is this file run
as a program, waits for the end of the tests' process and then ends whatever still carries its mark in the environment: what the
programs started themselves too, a server in a session of its own included.
"""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil

MARK = "STARTED_BY_TESTS"


@functools.cache
def guard() -> subprocess.Popen[bytes]:
    """Set this process's mark, which all that it starts inherits, and start its guard; may be called again."""
    unmarked = {name: value for name, value in os.environ.items() if name != MARK}
    os.environ[MARK] = uuid.uuid4().hex
    words = [sys.executable, "-P", __file__, str(os.getpid()), os.environ[MARK]]
    # in a session of its own, or what ends the tests would end it first; whoever reads their output does not wait for it
    none = subprocess.DEVNULL
    return subprocess.Popen(words, stdin=none, stdout=none, stderr=none, env=unmarked, start_new_session=True)


@contextlib.contextmanager
def started(
    words: Sequence[str | Path], *, env: Mapping[str, str] | None = None, **options: Any
) -> Iterator[subprocess.Popen[str]]:
    """A program that runs for as long as the block, if it does not end before; ``options`` as ``subprocess.Popen`` has them."""
    guard()
    marked = None if env is None else {**env, MARK: os.environ[MARK]}
    with subprocess.Popen(words, env=marked, text=True, **options) as process:
        try:
            yield process
        finally:
            process.kill()


def signalled(number: signal.Signals, ending: str, opening: int) -> list[str]:
    """The first words of the ``guieval`` command, which gets a signal as it opens a file whose name ends so for the n-th time.

    Where a test waits for a moment and sends the signal itself, it may come when the program has ended on a busy machine.
    """
    script = f"""
import signal, sys
from guieval.cli import main

opened = 0

def noted(event, given):
    global opened
    if event == "open" and str(given[0]).endswith({ending!r}):
        opened += 1
        if opened == {opening}:
            signal.raise_signal({int(number)})

sys.addaudithook(noted)
main()
"""
    return [sys.executable, "-c", script]


def _main(owner: int, mark: str) -> None:
    while os.getppid() == owner:
        time.sleep(0.5)
    while left := [process for process in psutil.process_iter() if _mark_of(process) == mark]:
        for process in left:
            with contextlib.suppress(psutil.Error):
                process.kill()
        time.sleep(0.05)


def _mark_of(process: psutil.Process) -> str | None:
    with contextlib.suppress(psutil.Error):
        return process.environ().get(MARK)
    return None


if __name__ == "__main__":
    _main(int(sys.argv[1]), sys.argv[2])

"""Ends the processes that a library started if this process is killed and can no longer end them itself (Linux).

vLLM's engine runs in processes of its own, which survive a parent killed with ``kill -9`` and would keep the GPU. This file is
also the watcher program, run by its path: its standard input is a pipe that closes when the owner ends, however that happens.
Until then each line names a process to kill afterwards. psutil notices when a process id has been reused.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator

import psutil

_LOOK_SECONDS = 0.2


class Watch:
    """Kills all ``processes``, and those added later, when this process ends; :meth:`end` cancels that."""

    def __init__(self, processes: Iterable[int] = ()) -> None:
        self._watcher = subprocess.Popen(
            # in a session of its own, or Ctrl-C would end it first; -P, because this folder has a module named vllm
            [sys.executable, "-P", __file__],
            stdin=subprocess.PIPE,
            start_new_session=True,
            bufsize=0,
        )
        if self._watcher.stdin is not None:
            # a forked child, as vLLM's are, would hold the pipe open after our end
            os.register_at_fork(after_in_child=self._watcher.stdin.close)
        self._named: set[int] = set()
        self.add(processes)

    def add(self, processes: Iterable[int]) -> None:
        """Watch further processes; those that are watched already, or have ended, do no harm."""
        new = set(processes) - self._named
        if self._watcher.stdin is not None:
            with contextlib.suppress(BrokenPipeError):  # the watcher was killed
                self._watcher.stdin.write("".join(f"{pid}\n" for pid in new).encode())
        self._named |= new

    @contextlib.contextmanager
    def adding_new(self) -> Iterator[None]:
        """Inside of this block, also watch every process that starts below this one, within a moment of its start."""
        others = {*descendants(os.getpid())}
        over = threading.Event()

        def look() -> None:
            while not over.wait(_LOOK_SECONDS):
                self.add(descendants(os.getpid()) - others)

        looking = threading.Thread(target=look, name="guieval-watch", daemon=True)
        looking.start()
        try:
            yield
        finally:
            over.set()
            looking.join()
            self.add(descendants(os.getpid()) - others)

    def end(self) -> None:
        """Stop watching. May be called twice."""
        self._watcher.kill()
        self._watcher.wait()
        if self._watcher.stdin is not None:
            self._watcher.stdin.close()


def descendants(pid: int) -> set[int]:
    """All processes below ``pid``."""
    return {process.pid for process in psutil.Process(pid).children(recursive=True)}


def _main() -> None:
    watched = []
    for line in sys.stdin:
        with contextlib.suppress(psutil.Error):
            watched.append(psutil.Process(int(line)))
    for process in watched:
        with contextlib.suppress(psutil.Error):
            process.kill()


if __name__ == "__main__":
    _main()

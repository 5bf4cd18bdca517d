"""Ends the processes that a library started when this process is killed and can no longer do it itself (Linux).

vLLM's engine runs in processes of its own, which outlive a parent that is killed with ``kill -9``: they would keep the GPU.
This file is also the program that waits for that, run by its path: its standard input is a pipe that closes when we are gone,
however that comes. Until then each line there names a process to end, as ``pid:start``: a number given anew is left alone.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator

_LOOK_SECONDS = 0.2


class Watch:
    """Lets all ``processes``, and those added later, end with this process; :meth:`end` calls it off."""

    def __init__(self, processes: Iterable[int] = ()) -> None:
        self._watcher = subprocess.Popen(
            # in a session of its own, or Ctrl-C would end it first
            [sys.executable, "-I", "-S", __file__],
            stdin=subprocess.PIPE,
            start_new_session=True,
            bufsize=0,
        )
        if self._watcher.stdin is not None:
            # a child that is forked, as vLLM's are, would hold the pipe open beyond our end
            os.register_at_fork(after_in_child=self._watcher.stdin.close)
        self._named: set[str] = set()
        self.add(processes)

    def add(self, processes: Iterable[int]) -> None:
        """Watch over further ones; those that are watched over already, or are gone, are no mistake."""
        named = {f"{pid}:{start}" for pid in processes if (start := _start(pid)) is not None} - self._named
        if named and self._watcher.stdin is not None:
            with contextlib.suppress(BrokenPipeError):  # somebody ended it
                self._watcher.stdin.write("".join(f"{each}\n" for each in named).encode())
        self._named |= named

    @contextlib.contextmanager
    def adding_new(self) -> Iterator[None]:
        """Watch over every process that is started below this one meanwhile, within a moment of its start."""
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
        """Watch no longer. May be called twice."""
        self._watcher.kill()
        self._watcher.wait()
        if self._watcher.stdin is not None:
            self._watcher.stdin.close()


def descendants(pid: int) -> set[int]:
    """All processes below ``pid``."""
    below: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdecimal() and (fields := _stat(int(name))) is not None:
            below.setdefault(int(fields[1]), []).append(int(name))
    found: set[int] = set()
    waiting = [pid]
    while waiting:
        children = [child for child in below.get(waiting.pop(), ()) if child not in found]
        found.update(children)
        waiting.extend(children)
    return found


def _stat(pid: int) -> list[bytes] | None:
    """The fields of proc(5)'s stat from the third on: state, parent, and as the 22nd of all the start."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/stat", "rb") as file:
        return file.read().rpartition(b")")[2].split()
    return None


def _start(pid: int) -> str | None:
    fields = _stat(pid)
    return None if fields is None else fields[19].decode()


def _main() -> None:
    named = sys.stdin.read().split()
    for pid, _, start in (name.partition(":") for name in named):
        if _start(int(pid)) == start:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(int(pid), signal.SIGKILL)


if __name__ == "__main__":
    _main()

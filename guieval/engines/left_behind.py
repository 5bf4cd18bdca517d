"""Ends the processes that a library started when this process is killed and can no longer do it itself (Linux).

vLLM's engine runs in processes of its own, which outlive a parent that is killed with ``kill -9``: they would keep the GPU.
This file is also the program that waits for that, run by its path: its standard input is a pipe that closes when we are gone,
however that comes, and its arguments are the processes to end then, as ``pid:start``: a number given anew is left alone.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterable


class Watch:
    """Lets all ``processes`` end with this process; :meth:`end` calls it off."""

    def __init__(self, processes: Iterable[int]) -> None:
        named = [f"{pid}:{start}" for pid in processes if (start := _start(pid)) is not None]
        self._watcher = subprocess.Popen(
            # in a session of its own, or Ctrl-C would end it first
            [sys.executable, "-I", "-S", __file__, *named],
            stdin=subprocess.PIPE,
            start_new_session=True,
        )

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


def _main(named: Iterable[str]) -> None:
    while sys.stdin.buffer.read(1):
        pass
    for pid, _, start in (name.partition(":") for name in named):
        if _start(int(pid)) == start:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(int(pid), signal.SIGKILL)


if __name__ == "__main__":
    _main(sys.argv[1:])

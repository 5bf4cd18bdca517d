"""Ends the processes that a library started if this process is killed and can no longer end them itself (Linux).

vLLM's engine runs in processes of its own, which survive a parent killed with ``kill -9`` and would keep the GPU. This file is
also the watcher program, run by its path with the owner's process id. Its standard input is a pipe that closes when the owner
ends, however that happens; a byte in it ends the search for new processes. psutil notices when a process id has been reused.
"""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import sys

import psutil

_LOOK_SECONDS = 0.2


class Watch:
    """Kills the processes that start below this one in its ``with`` block, when this process ends; :meth:`end` cancels that.

    A process is noticed within a moment of its start.
    """

    def __init__(self) -> None:
        self._watcher = subprocess.Popen(
            # in a session of its own, or Ctrl-C would end it first; -P, because this folder has a module named vllm
            [sys.executable, "-P", __file__, str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
            bufsize=0,
        )
        assert self._watcher.stdin is not None and self._watcher.stdout is not None
        self._pipe = self._watcher.stdin
        # a forked child, as vLLM's are, would hold the pipe open after our end
        os.register_at_fork(after_in_child=self._pipe.close)
        with self._watcher.stdout as ready:
            ready.read()

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, *exception: object) -> None:
        with contextlib.suppress(BrokenPipeError):  # the watcher was killed
            self._pipe.write(b"\n")

    def end(self) -> None:
        """Stop watching. May be called twice."""
        self._watcher.kill()
        self._watcher.wait()
        self._pipe.close()


def _main() -> None:
    owner = psutil.Process(int(sys.argv[1]))
    others = set(owner.children(recursive=True))
    watched: set[psutil.Process] = set()
    os.close(1)  # from here on, new processes are noticed
    looking = owned = True
    while owned:
        readable, _, _ = select.select([0], [], [], _LOOK_SECONDS if looking else None)
        if looking:
            with contextlib.suppress(psutil.Error):
                watched |= set(owner.children(recursive=True)) - others
        if readable:
            looking, owned = False, bool(os.read(0, 1))
    for process in watched:
        with contextlib.suppress(psutil.Error):
            process.kill()


if __name__ == "__main__":
    _main()

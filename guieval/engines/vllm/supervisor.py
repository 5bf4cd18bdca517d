"""Runs a launched server, and ends it with every process it started when the owner ends.

A script, started by its path. Its standard input is a pipe from the owner, which closes however the owner ends (``kill -9``
included). The byte ``k`` in it means: keep the server after the owner's end. Its standard error is the server's log. The first
line of its standard output is ``{"pid": ...}`` of the server, or ``{"failed": ...}``.

Arguments: seconds between SIGTERM and SIGKILL, then the server's command. The exit code is the server's, 128 + N if signal N
ended it. Linux only: it adopts orphans of the server's processes (``PR_SET_CHILD_SUBREAPER``), also those that moved to a
session of their own, and the server gets SIGTERM if the supervisor itself is killed (``PR_SET_PDEATHSIG``).
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from types import FrameType

import psutil

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
POLL = 0.1
"""Seconds between two checks of the server."""
LAST_WAIT = 5.0
"""Seconds that killed processes may take to disappear: a process inside a driver's call can take long."""


def main(arguments: Sequence[str]) -> int:
    """Run the server until it ends, its owner ends, or a signal comes; then end every process it started."""
    grace, command = float(arguments[0]), list(arguments[1:])
    signals: list[int] = []

    def ask(number: int, frame: FrameType | None) -> None:
        signals.append(number)

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, ask)
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    own_pid = os.getpid()

    def follow() -> None:
        prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
        if os.getppid() != own_pid:  # killed before the line above took effect
            os._exit(1)

    try:
        server = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=2, stderr=2, start_new_session=True, preexec_fn=follow
        )
    except OSError as error:
        _report({"failed": f"{error.filename or command[0]}: {error.strerror}"})
        return 127
    _report({"pid": server.pid})
    owned = True
    while not signals and not _ended(server.pid):
        readable, _, _ = select.select([0] if owned else [], [], [], POLL)
        if readable:
            owned = os.read(0, 1) != b"k"
            if owned:
                break
    return _take_down(server, grace)


def _report(message: dict[str, object]) -> None:
    with contextlib.suppress(OSError):  # the owner may have ended, which the main loop notices
        os.write(1, json.dumps(message).encode() + b"\n")
    os.dup2(2, 1)


def _ended(pid: int) -> bool:
    """Whether a child has ended. It is not reaped, so its process group keeps its number."""
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _take_down(server: subprocess.Popen[bytes], grace: float) -> int:
    if not _ended(server.pid):
        _signal_group(server.pid, signal.SIGTERM)
        wait_for(lambda: _ended(server.pid), grace)
    _signal_group(server.pid, signal.SIGKILL)
    code = server.wait()
    wait_for(_none_left, LAST_WAIT)
    return code if code >= 0 else 128 - code


def _signal_group(group: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def wait_for(done: Callable[[], bool], seconds: float) -> bool:
    """Wait until ``done``, and return whether it is."""
    deadline = time.monotonic() + seconds
    while not (finished := done()) and time.monotonic() < deadline:
        time.sleep(POLL / 5)
    return finished


def _none_left() -> bool:
    """Kill and reap this process's children, and return whether none is left. It adopts the children of a killed process."""
    for child in psutil.Process().children():
        with contextlib.suppress(psutil.Error):
            child.kill()
    try:
        while os.waitpid(-1, os.WNOHANG) != (0, 0):
            pass
    except ChildProcessError:
        return True
    return False


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Keeps a launched server and every process it starts together, and takes all of them down when their owner is gone.

Started as a script by its path and isolated (``python -I``), so it imports the standard library only and stays small. Its
standard input is a pipe of which the owner holds the other end: however the owner ends, ``kill -9`` included, the pipe
closes. One byte ``k`` in it means that the server is to be kept after the owner's end. Its standard error is the server's
log. The first line of its standard output is ``{"pid": ...}`` of the server, or ``{"failed": ...}`` when there is none.

Arguments: seconds between SIGTERM and SIGKILL, then the server's command. Its exit code is the server's, 128 + N when signal
N ended that. Linux only: it adopts what the server's processes leave behind (``PR_SET_CHILD_SUBREAPER``), also those that
moved to a session of their own, and the server is told when the supervisor itself is killed (``PR_SET_PDEATHSIG``).
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

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
POLL = 0.1
"""Seconds between two looks at the server."""
LAST_WAIT = 5.0
"""Seconds that killed processes may take to disappear: one inside a driver's call can take long, and nobody can help it."""


def main(arguments: Sequence[str]) -> int:
    """Run the server until it ends, its owner is gone, or a signal asks for the end; then leave no process behind."""
    grace, command = float(arguments[0]), list(arguments[1:])
    asked: list[int] = []

    def ask(number: int, frame: FrameType | None) -> None:
        asked.append(number)

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
        _tell({"failed": f"{error.filename or command[0]}: {error.strerror}"})
        return 127
    _tell({"pid": server.pid})
    owned = True
    while not asked and not _ended(server.pid):
        readable, _, _ = select.select([0] if owned else [], [], [], POLL)
        if readable:
            owned = os.read(0, 1) != b"k"
            if owned:
                break
    return _take_down(server, grace)


def _tell(message: dict[str, object]) -> None:
    with contextlib.suppress(OSError):  # the owner may be gone already, which the pipe tells as well
        os.write(1, json.dumps(message).encode() + b"\n")
    os.dup2(2, 1)


def _ended(pid: int) -> bool:
    """Whether a child has ended; it is not reaped, so that its process group keeps its number."""
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _take_down(server: subprocess.Popen[bytes], grace: float) -> int:
    if not _ended(server.pid):
        _signal_group(server.pid, signal.SIGTERM)
        _wait(lambda: _ended(server.pid), grace)
    _signal_group(server.pid, signal.SIGKILL)
    code = server.wait()
    _wait(_none_left, LAST_WAIT)
    return code if code >= 0 else 128 - code


def _signal_group(group: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def _wait(done: Callable[[], bool], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not done() and time.monotonic() < deadline:
        time.sleep(POLL / 5)


def _none_left() -> bool:
    """Kill and reap whatever was left to this process; whether nothing is left. Each killed parent hands on its children."""
    own_pid = os.getpid()
    for name in os.listdir("/proc"):
        if name.isdecimal() and _parent(name) == own_pid:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(int(name), signal.SIGKILL)
    try:
        while os.waitpid(-1, os.WNOHANG) != (0, 0):
            pass
    except ChildProcessError:
        return True
    return False


def _parent(pid: str) -> int | None:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            # the second field is the program's name in brackets, and may hold anything
            return int(file.read().rpartition(b")")[2].split()[1])
    except (OSError, IndexError, ValueError):
        return None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

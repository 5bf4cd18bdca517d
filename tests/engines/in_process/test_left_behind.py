"""Processes of a library end with ours, also when ours is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import psutil
import pytest

from guieval.engines.in_process.left_behind import Watch
from tests.programs import started
from tests.waiting import until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")

SLEEP = [sys.executable, "-c", "import time; time.sleep(600)"]
OWNER = """
import fcntl, subprocess, sys, termios, time
from guieval.engines.in_process.left_behind import Watch
with Watch() as watch:
    watched = subprocess.Popen(sys.argv[1:], start_new_session=True)
while any(fcntl.ioctl(watch._pipe, termios.FIONREAD, bytes(4))):  # what the block wrote is read after the last look
    pass
other = subprocess.Popen(sys.argv[1:], start_new_session=True)
print(watched.pid, other.pid, flush=True)
time.sleep(600)
"""


def descendants(pid: int) -> set[int]:
    return {process.pid for process in psutil.Process(pid).children(recursive=True)}


def gone(pid: int) -> bool:
    """Whether a process has ended, waited for or not."""
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] in (b"Z", b"X")
    except OSError:
        return True


def has_looked(watcher: int) -> Callable[[], bool]:
    """Whether a watcher, which sleeps between its looks, has surely begun and ended one since now."""
    process = psutil.Process(watcher)
    before = process.num_ctx_switches().voluntary
    return lambda: process.num_ctx_switches().voluntary >= before + 3


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_the_watched_end_with_their_owner_and_no_others(number: signal.Signals) -> None:
    with started([sys.executable, "-c", OWNER, *SLEEP], stdout=subprocess.PIPE) as owner:
        assert owner.stdout is not None
        watched, other = map(int, owner.stdout.readline().split())
        try:
            assert {watched, other} <= descendants(owner.pid) <= descendants(os.getpid())
            owner.send_signal(number)
            owner.wait()
            until(lambda: gone(watched), "the end of what was watched")
            assert not gone(other)
        finally:
            os.kill(other, signal.SIGKILL)


LOADING = """
import os, subprocess, sys, time
from guieval.engines.in_process.left_behind import Watch
other = subprocess.Popen(sys.argv[1:])
with Watch() as watch:
    watched = os.fork()
    if not watched:
        time.sleep(600)
    print(watched, other.pid, watch._watcher.pid, flush=True)
    time.sleep(600)
"""


def test_what_is_started_while_loading_ends_with_its_owner_too() -> None:
    """Also where it was forked, and so has a copy of all that its owner had open."""
    with started([sys.executable, "-c", LOADING, *SLEEP], stdout=subprocess.PIPE) as owner:
        assert owner.stdout is not None
        watched, other, watcher = map(int, owner.stdout.readline().split())
        try:
            until(has_looked(watcher), "a look")
            owner.kill()
            owner.wait()
            until(lambda: gone(watched), "the end of what was watched")
            assert not gone(other)
        finally:
            os.kill(other, signal.SIGKILL)


def test_a_watch_called_off_harms_nobody() -> None:
    with ExitStack() as later:
        with Watch() as watch:
            child = later.enter_context(started(SLEEP))
            until(has_looked(watch._watcher.pid), "a look")
        watch.end()
        watch.end()
        assert child.poll() is None and descendants(os.getpid()) >= {child.pid}

"""Processes of a library end with ours, also when ours is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from guieval.engines.in_process.left_behind import Watch

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")

SLEEP = [sys.executable, "-c", "import time; time.sleep(600)"]
OWNER = """
import subprocess, sys, time
from guieval.engines.in_process.left_behind import Watch
with Watch():
    watched = subprocess.Popen(sys.argv[1:], start_new_session=True)
time.sleep(2.0)  # the last look is a moment after the block
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


def becomes_gone(pid: int) -> bool:
    deadline = time.monotonic() + 30
    while not gone(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    return gone(pid)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_the_watched_end_with_their_owner_and_no_others(number: signal.Signals) -> None:
    owner = subprocess.Popen([sys.executable, "-c", OWNER, *SLEEP], stdout=subprocess.PIPE, text=True)
    assert owner.stdout is not None
    watched, other = map(int, owner.stdout.readline().split())
    try:
        assert {watched, other} <= descendants(owner.pid) <= descendants(os.getpid())
        owner.send_signal(number)
        owner.wait()
        assert becomes_gone(watched) and not gone(other)
    finally:
        os.kill(other, signal.SIGKILL)
        owner.stdout.close()


LOADING = """
import os, subprocess, sys, time
from guieval.engines.in_process.left_behind import Watch
other = subprocess.Popen(sys.argv[1:])
with Watch():
    watched = os.fork()
    if not watched:
        time.sleep(600)
    print(watched, other.pid, flush=True)
    time.sleep(600)
"""


def test_what_is_started_while_loading_ends_with_its_owner_too() -> None:
    """Also where it was forked, and so has a copy of all that its owner had open."""
    owner = subprocess.Popen([sys.executable, "-c", LOADING, *SLEEP], stdout=subprocess.PIPE, text=True)
    assert owner.stdout is not None
    watched, other = map(int, owner.stdout.readline().split())
    try:
        time.sleep(2.0)  # it looks five times a second
        owner.kill()
        owner.wait()
        assert becomes_gone(watched) and not gone(other)
    finally:
        os.kill(other, signal.SIGKILL)
        owner.stdout.close()


def test_a_watch_called_off_harms_nobody() -> None:
    with Watch() as watch:
        child = subprocess.Popen(SLEEP)
        time.sleep(1.0)
    try:
        watch.end()
        watch.end()
        assert child.poll() is None and descendants(os.getpid()) >= {child.pid}
    finally:
        child.kill()
        child.wait()

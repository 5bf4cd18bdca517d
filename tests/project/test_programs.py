"""What tests start ends with them, also when they are killed."""

from __future__ import annotations

import subprocess
import sys

import psutil

from tests.conftest import REPOSITORY
from tests.waiting import until

TESTS = """
import os, signal, subprocess, sys
from tests.programs import started
SERVER = "import os, time; print(os.getpid(), flush=True); time.sleep(600)"
PROGRAM = "import subprocess, sys; subprocess.Popen([sys.executable, '-c', sys.argv[1]], start_new_session=True).wait()"
with started([sys.executable, "-c", PROGRAM, SERVER], stdout=subprocess.PIPE) as program:
    print(program.pid, program.stdout.readline(), flush=True)
    {ending}
"""


def left_by(ending: str) -> list[int]:
    """Run such tests; the process ids of the program that they started and of its server, in a session of its own."""
    words = [sys.executable, "-c", TESTS.format(ending=ending)]
    done = subprocess.run(words, cwd=REPOSITORY, capture_output=True, text=True)
    return [int(number) for number in done.stdout.split()]


def test_a_program_and_its_server_end_with_the_tests_that_are_killed() -> None:
    program, server = left_by("os.kill(os.getpid(), signal.SIGKILL)")
    until(lambda: not psutil.pid_exists(program) and not psutil.pid_exists(server), "their end")


def test_a_program_ends_with_its_block() -> None:
    program, server = left_by("pass")
    assert not psutil.pid_exists(program)
    until(lambda: not psutil.pid_exists(server), "the end of the server, with the tests")

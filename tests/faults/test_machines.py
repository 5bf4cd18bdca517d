"""Machines and neighbours that interrupt."""

from __future__ import annotations

import functools
import os
import resource
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from guieval.journal import STEPS, RunFolder
from tests.faults.program import Program, journal_lines, wait_for_lines
from tests.faults.rows import Row, rows
from tests.outage import held
from tests.waiting import PATIENCE, until

STOPS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
SLOW = {"latency": 0.06, "sigma": 0.2}


def listen() -> None:
    """As a shell starts a program in the foreground; tests in the background, or under ``nohup``, ignore these signals."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def _ignore_hangups() -> None:
    """As ``nohup`` starts a program."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)


@rows(
    Row(
        "SIGTERM, as batch systems send it",
        "cancels the requests in flight, writes the figures so far and exits",
        "the result so far and `resume: guieval run --resume`",
        130,
    ),
    Row(
        "SIGHUP, as a closed terminal or connection sends it",
        "the same; a program started with `nohup` goes on",
        "the result so far and `resume: guieval run --resume`",
        130,
    ),
    Row("Ctrl-C (SIGINT)", "the same", "the result so far and `resume: guieval run --resume`", 130),
)
def test_a_stopped_run_goes_on(program: Program, tmp_path: Path, row: Row) -> None:
    """Cancelled requests are not counted as failures; the resume ends with the answers and figures of a clean run, no step is
    run twice."""
    with program.server(**SLOW) as server, held(server, after=10):
        process = program.start(server.base_url, tmp_path / "run", before=listen)
        wait_for_lines(process, tmp_path / "run", 10)
        process.send_signal(next(number for number in STOPS if number.name in row.fault))
        row.check_seen(program.end(process, row.code))
        assert program.check_honest(tmp_path / "run") == 0
    program.check_resumed(tmp_path / "run")


@rows(
    Row(
        "Ctrl-C twice, at any moment",
        "cancels the requests in flight, and leaves no temporary file",
        "the result so far, unless the second Ctrl-C comes before it is printed",
        130,
    )
)
def test_two_interrupts_leave_no_temporary_file(program: Program, tmp_path: Path, row: Row) -> None:
    """Four runs, interrupted in their beginning, middle and end, and again at once, when the requests in flight are cancelled,
    when the figures are written and when the result is printed: nothing but a run's own files is left, and a resume ends with
    the answers and figures of a clean run."""
    with program.server(**SLOW) as server:

        def reached(moment: int, run: Path, process: subprocess.Popen[str]) -> bool:
            assert process.stdout is not None
            return (
                moment == 0
                or process.poll() is not None
                or (moment == 1 and server.stats()["in_flight"] == 0)
                or (moment == 2 and any(run.glob("metrics.json*")))
                or (moment == 3 and bool(select.select([process.stdout], [], [], 0)[0]))
            )

        for moment in range(4):
            run = tmp_path / str(moment)
            with held(server, after=20):  # some of which may be of the run before
                process = program.start(server.base_url, run, before=listen)
                wait_for_lines(process, run, 1 + 3 * moment)
                process.send_signal(signal.SIGINT)
                until(functools.partial(reached, moment, run, process), "the moment", every=0.001)
                process.send_signal(signal.SIGINT)
                text, _ = process.communicate(timeout=PATIENCE)
            assert process.returncode in (row.code, -signal.SIGINT), text  # both are 130 to a shell
            assert "Traceback" not in text, text
            assert {each.name for each in run.iterdir()} <= {"lock", "manifest.json", "episodes.json", "metrics.json", STEPS}
    program.check_resumed(run)


def test_an_event_loop_that_an_interrupt_left_half_closed_is_not_printed() -> None:
    script = """
import asyncio, sys
from guieval.cli import _interrupt_again
sys.unraisablehook = _interrupt_again
loop = asyncio.new_event_loop()
loop._ssock.close()
del loop
class Broken:
    def __del__(self):
        raise ValueError("printed")
Broken()
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "Invalid file descriptor" not in done.stderr and "printed" in done.stderr


def test_an_interrupt_that_python_drops_is_delivered_again() -> None:
    """Python prints and forgets a Ctrl-C that arrives inside a finalizer or a weak reference's callback."""
    script = """
import signal, sys
from guieval.cli import _interrupt_again
class Interrupted:
    def __del__(self):
        signal.raise_signal(signal.SIGINT)
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.unraisablehook = _interrupt_again
try:
    Interrupted()
    for _ in range(100_000_000):  # one long sleep would end only by itself
        pass
except KeyboardInterrupt:
    print("interrupted")
"""
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=PATIENCE)
    assert (ended.stdout, ended.stderr) == ("interrupted\n", "")


def test_a_run_that_ignores_hangups_goes_on(program: Program, tmp_path: Path) -> None:
    with program.server(**SLOW) as server:
        process = program.start(server.base_url, tmp_path / "run", before=_ignore_hangups)
        wait_for_lines(process, tmp_path / "run", 5)
        process.send_signal(signal.SIGHUP)
        program.end(process)
    program.check_whole(tmp_path / "run")


@rows(
    Row(
        "fewer open files than the requests need (ulimit -n)",
        "limits the requests in flight to what the files allow",
        "a warning: `requests are in flight instead of` how many, `because this system allows a program`",
    )
)
def test_few_open_files_make_a_run_slower_not_impossible(program: Program, tmp_path: Path, row: Row) -> None:
    """With 24, 64 and 256 files, with a concurrency of 200: answers and figures equal those of a clean run."""

    def limited(soft: int, hard: int) -> str:
        limit = functools.partial(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        run = tmp_path / str(hard)
        message = program.end(program.start(server.base_url, run, "--concurrency", "200", before=limit))
        program.check_whole(run)
        return " ".join(message.split())

    with program.server() as server:
        for files in (24, 64, 256):
            message = limited(files, files)
            row.check_seen(message)
        assert "at most 128 requests are in flight instead of 200, because this system allows a program 256 open" in message
        assert "open files" not in limited(256, 2048), "what the system allows more is used"


@rows(
    Row(
        "kill -9, or a crash",
        "reads every whole line of the journal, cuts off a partial last line, and runs the remaining steps",
        "as usual, from the resume",
    )
)
def test_a_killed_run_goes_on(program: Program, tmp_path: Path, row: Row) -> None:
    """Killed twice, and half a line cut off at the end: no finished step is run again, none is lost, and answers and
    figures equal those of a clean run."""
    with program.server(**SLOW) as server:
        for kill in range(2):
            lines = journal_lines(tmp_path / "run")
            with held(server, after=15):  # some of which may be of the run before
                process = program.start(server.base_url, tmp_path / "run", resume=kill > 0)
                wait_for_lines(process, tmp_path / "run", lines + 5)
                process.kill()
                process.communicate()
        with (tmp_path / "run" / STEPS).open("rb+") as journal:
            journal.seek(-100, os.SEEK_END)
            journal.truncate()
        row.check_seen(program.run(server.base_url, tmp_path / "run", resume=True))
    program.check_whole(tmp_path / "run")


@rows(
    Row(
        "a second run in the same directory",
        "lets one process write and refuses the other; the lock is released when its process ends, in whatever way",
        "one sentence that names the writer: `is being written by process`",
        1,
    )
)
def test_a_second_writer_is_refused(program: Program, tmp_path: Path, row: Row) -> None:
    """The second leaves no trace; the first ends undisturbed with the answers and figures of a clean run."""
    with program.server(**SLOW) as server:
        with held(server, after=3):  # it writes the directory for as long as this takes
            first = program.start(server.base_url, tmp_path / "run")
            wait_for_lines(first, tmp_path / "run", 3)
            message = program.run(server.base_url, tmp_path / "run", resume=True, code=row.code)
        row.check_seen(message)
        assert f"process {first.pid} on " in message
        program.end(first)
    program.check_whole(tmp_path / "run")


CLOCK = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

/* Every 50 ms the time of day is another one of: right, a day ahead, a day behind. */
static long jump(void) {
    struct timespec now;
    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
    return ((now.tv_sec * 20 + now.tv_nsec / 50000000) % 3 - 1) * 86400;
}
int clock_gettime(clockid_t clock, struct timespec *time) {
    int result = syscall(SYS_clock_gettime, clock, time);
    if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE) time->tv_sec += jump();
    return result;
}
time_t time(time_t *where) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (where) *where = now.tv_sec;
    return now.tv_sec;
}
int gettimeofday(struct timeval *restrict where, void *restrict zone) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    where->tv_sec = now.tv_sec;
    where->tv_usec = now.tv_nsec / 1000;
    return 0;
}
"""


@pytest.fixture(scope="module")
def jumping_clock(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library that, loaded before all others, makes the time of day jump; needs a C compiler."""
    folder = tmp_path_factory.mktemp("clock")
    (folder / "clock.c").write_text(CLOCK, encoding="utf-8")
    library = folder / "clock.so"
    try:
        subprocess.run(["cc", "-shared", "-fPIC", "-o", library, folder / "clock.c"], check=True, capture_output=True)
    except FileNotFoundError:
        pytest.skip("no C compiler to make a clock that jumps")
    look = "import time\nseen = set()\nwhile len(seen) < 3: seen.add(time.time() // 7200)"
    subprocess.run([sys.executable, "-c", look], env={**os.environ, "LD_PRELOAD": str(library)}, check=True, timeout=PATIENCE)
    return library


@rows(
    Row(
        "a clock that is set a day back or ahead, again and again",
        "measures every wait, limit and duration with the monotonic clock",
        "as usual",
        server={"error_rate": 0.08, "error_status": 429, "retry_after_date": 1.0, "hang_rate": 0.08},
        options=("--timeout", "1", "--max-attempts", "20"),  # a busy machine may lose tries that do not hang
    )
)
def test_a_clock_that_jumps_does_no_harm(program: Program, tmp_path: Path, row: Row, jumping_clock: Path) -> None:
    """With hangs and Retry-After dates on top, no attempt is cut off early or waits a day, every recorded duration is that of
    an answer, and answers and figures equal those of a clean run."""
    with program.server(**row.server) as server:
        process = program.start(server.base_url, tmp_path / "run", *row.options, env={"LD_PRELOAD": str(jumping_clock)})
        row.check_seen(program.end(process))
        assert server.stats()["hung"] > 0 < server.stats()["failed"]
    for record in RunFolder(tmp_path / "run").records:
        assert record.sample.seconds is not None and 0.0 <= record.sample.seconds < 60.0
    program.check_whole(tmp_path / "run")


@rows(
    Row(
        "a screenshot that is damaged",
        "records the step as an infrastructure failure, sends no request for it, and continues with other episodes",
        "`step at screenshot`, the file and what is wrong with it: `truncated`",
        1,
    )
)
def test_a_damaged_screenshot_costs_its_step(program: Program, tmp_path: Path, row: Row) -> None:
    """One step failed, the rest of its episode was not run, all other answers are those of the clean run; with the file
    repaired and the run resumed, the run ends with the figures of a clean run."""
    task = next(iter(program.benchmark)).steps[1]
    file = program.benchmark.root / task.screenshot
    whole = file.read_bytes()
    try:
        file.write_bytes(whole[: len(whole) // 2])
        with program.server() as server:
            row.check_seen(program.run(server.base_url, tmp_path / "run", code=row.code))
    finally:
        file.write_bytes(whole)
    assert program.check_honest(tmp_path / "run") == 1
    program.check_resumed(tmp_path / "run")

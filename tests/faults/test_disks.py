"""Disks and files that fail."""

from __future__ import annotations

import os
import random
import resource
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from guieval.journal import LOCK, STEPS, RunFolder
from guieval.online.trajectory import TRAJECTORIES
from guieval.steps import Episode, StepKey
from tests.faults.program import Program, guieval, journal_lines, wait_for_lines
from tests.faults.rows import Row, rows
from tests.online.acting import Acting, steps_recorded
from tests.online.test_runs import outcomes, reference, task_id, whole_screens
from tests.outage import held


def no_file_beyond(limit: int) -> Callable[[], None]:
    """What makes every write beyond so many bytes of a file fail: a full disk, as far as the program can tell."""
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))


@rows(
    Row(
        "a disk that is full in the middle of a run",
        "takes back the line that did not fit and stops",
        "one sentence: `(the disk is full); every record before is kept`, and how to resume",
        1,
    )
)
def test_a_full_disk_loses_nothing(program: Program, tmp_path: Path, row: Row) -> None:
    """The journal ends with a whole line; with room again, the resume ends with the answers and figures of a clean run, no
    finished step is run again."""
    with program.server() as server:
        process = program.start(server.base_url, tmp_path / "run", before=no_file_beyond(30_000))
        row.check_seen(program.end(process, row.code))
        journal = (tmp_path / "run" / STEPS).read_bytes()
        assert 10_000 < len(journal) <= 30_000 and journal.endswith(b"\n")
    program.check_resumed(tmp_path / "run")


@rows(
    Row(
        "a disk that is full from the start",
        "writes each file whole or not at all, and sends no request",
        "one sentence that names the file: `cannot write`",
        1,
    )
)
def test_a_disk_without_room_is_no_run(program: Program, tmp_path: Path, row: Row) -> None:
    """No request was sent, no half file is left; with room again, the same command ends with the figures of a clean run."""
    with program.server() as server:
        process = program.start(server.base_url, tmp_path / "run", before=no_file_beyond(500))
        row.check_seen(program.end(process, row.code))
        assert server.stats()["requests"] == 0
        assert not [path for path in (tmp_path / "run").iterdir() if path.suffix == ".partial" or path.name == "manifest.json"]
        program.run(server.base_url, tmp_path / "run")
    program.check_whole(tmp_path / "run")


@rows(
    Row(
        "a disk that is full when a run is resumed",
        "keeps every file that it cannot rewrite unchanged, and sends no request",
        "one sentence that names the file: `cannot write`",
        1,
    )
)
def test_a_disk_without_room_spares_what_is_there(program: Program, tmp_path: Path, row: Row) -> None:
    """Every file of the run but its lock is the same to the byte, and no request was sent; with room again, the resume ends
    with the answers and figures of a clean run."""
    with program.server() as server:
        program.run(server.base_url, tmp_path / "run")
        asked = server.stats()["requests"]
        path = tmp_path / "run" / STEPS
        path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:10]))
        before = contents(tmp_path / "run")
        process = program.start(server.base_url, tmp_path / "run", resume=True, before=no_file_beyond(50))
        row.check_seen(program.end(process, row.code))
        assert contents(tmp_path / "run") == before and server.stats()["requests"] == asked
    program.check_resumed(tmp_path / "run")


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != LOCK}


@rows(
    Row(
        "garbage in the middle of the journal",
        "skips every line that has no record, and runs the lost steps again (semi-online also the later steps of their "
        "episode, whose history changes)",
        "`warning:` that says how many lines `held no record, first: line 4`",
    )
)
def test_garbage_costs_what_it_hides(program: Program, tmp_path: Path, row: Row) -> None:
    """Zeros, random bytes, a line cut short and two run into one: other commands skip the lines too and report them; the
    resume runs exactly those steps and ends with the answers and figures of a clean run."""
    path = tmp_path / "run" / STEPS
    with program.server() as server:
        program.run(server.base_url, tmp_path / "run")
        before = server.stats()["requests"]
        lines = path.read_bytes().splitlines(keepends=True)
        lines[3] = b"\0" * 4096 + b"\n"
        lines[8] = bytes(range(256)) + lines[8]
        lines[12] = lines[12][:200] + b"\n"
        lines[15] = lines[15][:-1]
        path.write_bytes(b"".join(lines))
        scored = guieval("score", str(tmp_path / "run"), folder=tmp_path, code=1)
        assert "line 4 of" in scored
        kept = {record.task.key for record in RunFolder(tmp_path / "run").records}
        again = sum(lost_and_later(episode, kept) for episode in program.benchmark)
        row.check_seen(program.run(server.base_url, tmp_path / "run", resume=True))
        assert server.stats()["requests"] - before == again >= 4
    program.check_whole(tmp_path / "run", once=False)


def lost_and_later(episode: Episode, kept: set[StepKey]) -> int:
    """How many steps come after an episode's last one before the first that is lost."""
    return max((len(episode) - task.step_index for task in episode.steps if task.key not in kept), default=0)


@rows(
    Row(
        "a journal that another program deletes, replaces or cuts short during a run",
        "detects it within seconds, saves the records that are still in memory next to the journal and stops; a resume "
        "restores them",
        "one sentence: `another program has deleted the journal`, and that its records are in `steps.rescued.jsonl`",
        1,
    )
)
def test_a_deleted_journal_ends_the_run(program: Program, tmp_path: Path, row: Row) -> None:
    """The server stops answering before the journal is deleted, so nothing is appended; every record is restored by the
    resume, which ends with the answers and figures of a clean run, no step is run twice."""
    with program.server() as server, held(server, after=5):
        process = program.start(server.base_url, tmp_path / "run")
        wait_for_lines(process, tmp_path / "run", 5)
        (tmp_path / "run" / STEPS).unlink()
        row.check_seen(program.end(process, row.code))
    program.check_resumed(tmp_path / "run")


POWER_LOSSES = int(os.environ.get("GUIEVAL_POWER_LOSSES", "5"))
"""Moments at which the power is cut; 20 in ``make kills``."""


@rows(
    Row(
        "a machine that loses power",
        "flushes records to the disk within a second or every hundred records, and new file names with them",
        "as usual, from the resume",
    )
)
def test_a_loss_of_power_takes_a_second_of_answers(
    program: Program, tmp_path: Path, row: Row, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file system on an image of its own, copied right before and right after flushes: each copy holds every record that was
    flushed, and its resume ends with the answers and figures of a clean run."""
    monkeypatch.setattr("guieval.journal.directory.FLUSH_SECONDS", 0.02)
    run = tmp_path / "disk" / "run"
    disk, power = file_system(tmp_path / "image", tmp_path / "disk"), Power(tmp_path / "image", run / STEPS, most=35)  # of 40
    with disk, monkeypatch.context() as context, program.server(latency=0.05, concurrency=1) as server:
        context.setattr(os, "fsync", power.fsync)
        server.app.held = lambda tag: power.due  # or a run could be over before a slow disk has flushed a line
        row.check_seen(program.run(server.base_url, run))
    for image, expected in power.cuts():
        with file_system(image, tmp_path / "disk", made=True), program.server() as server:
            assert journal_lines(run) >= expected
            program.run(server.base_url, run, resume=(run / "manifest.json").exists())
            program.check_whole(run)


@rows(
    Row(
        "a machine that loses power in an online run",
        "brings every step to the disk, with the screenshot that it was shown, before its action is carried out",
        "as usual, from the resume",
    )
)
def test_a_loss_of_power_takes_no_step_of_a_task(tmp_path: Path, row: Row, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same with an agent that solves six tasks: each copy holds every step that was flushed, each step's screenshot is
    whole, and its resume ends with every task a success and asks for no step again but those that the copy does not hold."""
    scripts = {task_id(number): reference(number) for number in range(6)}
    acting = Acting.made(tmp_path, scripts, "--bench", "demo", "--set", "bench_options.episodes=6")
    steps, run = sum(map(len, scripts.values())), tmp_path / "disk" / "run"
    disk, power = file_system(tmp_path / "image", tmp_path / "disk"), Power(tmp_path / "image", run / TRAJECTORIES, most=steps)
    with disk, monkeypatch.context() as context:
        context.setattr(os, "fsync", power.fsync)
        row.check_seen(guieval(*acting.command(run), folder=tmp_path))
    for image, expected in power.cuts():
        with file_system(image, tmp_path / "disk", made=True):
            kept, before = steps_recorded(run), acting.asked()
            assert kept >= expected and (whole_screens(run) or not kept)
            guieval(*acting.command(run, resume=True), folder=tmp_path)
            assert acting.asked() - before == steps - kept
            assert {name: outcome.ended for name, outcome in outcomes(run).items()} == dict.fromkeys(scripts, "success")
            assert whole_screens(run)


class Power:
    """Copies the image of a disk right before or right after flushes of ``file``, at moments among its first ``most`` lines."""

    def __init__(self, image: Path, file: Path, *, most: int) -> None:
        self._image, self._file = image, file
        self._draw = random.Random(20)
        self._moments = sorted(self._draw.sample(range(1, most + 1), POWER_LOSSES))
        self._really, self._guard, self._flushed = os.fsync, threading.Lock(), 0
        self._cuts: list[int] = []

    def fsync(self, file: int) -> None:
        """To be called in the place of :func:`os.fsync`."""
        with self._guard:
            lines = self._lines()
            if not lines or not os.path.samestat(os.fstat(file), self._file.stat()):
                self._really(file)
                return
            due = bool(self._moments) and lines >= self._moments[0]
            self._moments = [moment for moment in self._moments if moment > lines]
            before = self._draw.random() < 0.5
            if due and before:
                self._cut()
            self._really(file)
            self._flushed = lines
            if due and not before:
                self._cut()

    @property
    def due(self) -> bool:
        """Whether the next flush is one to copy at."""
        return any(self._lines() >= moment for moment in self._moments)

    def _lines(self) -> int:
        return self._file.read_bytes().count(b"\n") if self._file.exists() else 0

    def _cut(self) -> None:
        shutil.copyfile(self._image, self._copy(len(self._cuts)))
        self._cuts.append(self._flushed)

    def _copy(self, number: int) -> Path:
        return self._image.with_name(f"cut-{number}")

    def cuts(self) -> Iterator[tuple[Path, int]]:
        """Every copy, with how many lines were flushed before it was made."""
        assert any(self._cuts), "no line was flushed at any moment: make the run longer"
        for number, flushed in enumerate(self._cuts):
            yield self._copy(number), flushed


@contextmanager
def file_system(image: Path, folder: Path, *, made: bool = False) -> Iterator[None]:
    """A file system in an image file, mounted at ``folder`` so that the kernel writes nothing back by itself for minutes."""
    if os.geteuid() != 0 or shutil.which("mkfs.ext4") is None:
        pytest.skip("a file system of its own can be mounted by root alone, and needs mkfs.ext4")
    folder.mkdir(exist_ok=True)
    if not made:
        with image.open("wb") as stream:
            stream.truncate(32 << 20)
        subprocess.run(["mkfs.ext4", "-q", str(image)], check=True)
    mounted = subprocess.run(["mount", "-o", "loop,commit=300", str(image), str(folder)], capture_output=True, text=True)
    if mounted.returncode:
        pytest.skip(f"no file system can be mounted here: {mounted.stderr.strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", str(folder)], check=True)

"""Disks and files that fail."""

from __future__ import annotations

import resource
from collections.abc import Callable
from pathlib import Path

from guieval.journal import LOCK, STEPS, Records
from guieval.steps import Episode, StepKey
from tests.faults.program import Program, guieval
from tests.faults.rows import Row, rows


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
    finished step asked again."""
    with program.server() as server:
        process = program.start(server.base_url, tmp_path / "run", before=no_file_beyond(30_000))
        row.check_seen(program.end(process, row.code))
        journal = (tmp_path / "run" / STEPS).read_bytes()
        assert 10_000 < len(journal) <= 30_000 and journal.endswith(b"\n")
        program.run(server.base_url, tmp_path / "run", resume=True)
    program.check_whole(tmp_path / "run")


@rows(
    Row(
        "a disk that is full from the start",
        "writes each file whole or not at all, and asks nothing",
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
        assert not [path for path in (tmp_path / "run").iterdir() if path.suffix == ".tmp" or path.name == "manifest.json"]
        program.run(server.base_url, tmp_path / "run")
    program.check_whole(tmp_path / "run")


@rows(
    Row(
        "a disk that is full when a run is resumed",
        "leaves each file as it was where it cannot be written anew, and asks nothing",
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
        program.run(server.base_url, tmp_path / "run", resume=True)
    program.check_whole(tmp_path / "run")


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != LOCK}


@rows(
    Row(
        "garbage in the middle of the journal",
        "passes over every line that holds no record, and asks anew for what was lost with it (and, semi-online, for what came "
        "after that in its episode, since its history is another answer)",
        "`warning:` that says how many lines `held no record, the first is line 4`",
    )
)
def test_garbage_costs_what_it_hides(program: Program, tmp_path: Path, row: Row) -> None:
    """Zeros, random bytes, a line cut short and two run into one: other tools pass over the lines too and say so; the resume
    asks for exactly those steps and ends with the answers and figures of a clean run."""
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
        kept = {record.task.key for record in Records(tmp_path / "run")}
        anew = sum(lost_and_later(episode, kept) for episode in program.benchmark)
        row.check_seen(program.run(server.base_url, tmp_path / "run", resume=True))
        assert server.stats()["requests"] - before == anew >= 4
    program.check_whole(tmp_path / "run", once=False)


def lost_and_later(episode: Episode, kept: set[StepKey]) -> int:
    """How many steps come after an episode's last one before the first that is lost."""
    return max((len(episode) - task.step_index for task in episode.steps if task.key not in kept), default=0)

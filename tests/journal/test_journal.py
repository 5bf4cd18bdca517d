"""The run directory: one writer, torn lines cut, full disks reported in a sentence, nothing already written lost."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from guieval.actions import Type
from guieval.errors import JournalError, UsageError
from guieval.journal import (
    EPISODES,
    FLUSH_SECONDS,
    LOCK,
    MANIFEST,
    PACKED_STEPS,
    STEPS,
    Journal,
    RunFolder,
    has_records,
    journal_file,
)
from guieval.journal.directory import FLUSH_RECORDS
from guieval.journal.lines import json_line, write_line
from guieval.steps import EpisodeKey, Plan, Sample, StepOutcome, StepRecord
from tests.made_runs import write_run
from tests.rows import every_row
from tests.scripted import ACTIONS, make_episode
from tests.waiting import until


def records(count: int) -> list[StepRecord]:
    sample = Sample(raw_response="ok", outcome=StepOutcome(verdict="right", type_match=True, exact_match=True))
    return [StepRecord(task=make_episode(str(n), ACTIONS).steps[0], samples=(sample,)) for n in range(count)]


@pytest.mark.parametrize("compact", [False, True])
def test_what_is_appended_is_read_back_where_it_lies(tmp_path: Path, compact: bool) -> None:
    written = records(3)
    with Journal(tmp_path, compact=compact) as journal:
        for record in written:
            journal.append(record)
    found = RunFolder(tmp_path).records
    assert list(found) == written
    offsets = [offset for offset, _ in found.outline()]
    assert [found.at(offset) for offset in reversed(offsets)] == written[::-1]
    assert offsets == [offset for offset, _ in found.with_offsets()]


def test_half_a_surrogate_pair_is_written_as_a_question_mark(tmp_path: Path) -> None:
    record = records(1)[0]
    sample = record.sample.model_copy(update={"raw_response": "a \ud83d b", "action": Type(text="\udc00")})
    with Journal(tmp_path) as journal:
        journal.append(record.model_copy(update={"samples": (sample,)}))
    (read,) = RunFolder(tmp_path).records
    assert read.task == record.task and read.sample.raw_response == "a ? b" and read.sample.action == Type(text="?")


@pytest.mark.parametrize("compact", [False, True])
def test_a_torn_last_line_is_cut_wherever_it_is_torn(tmp_path: Path, compact: bool) -> None:
    first, second = records(2)
    with Journal(tmp_path, compact=compact) as journal:
        journal.append(first)
        end = journal_file(tmp_path).stat().st_size
        journal.append(second)
    path = journal_file(tmp_path)
    both = path.read_bytes()
    for cut in range(end, len(both)):
        path.write_bytes(both[:cut])
        assert list(RunFolder(tmp_path).records) == [first]
        with Journal(tmp_path) as journal:  # it stays compact
            journal.append(second)
        assert path.read_bytes() == both
    steps = {file.name for file in tmp_path.iterdir()} & {PACKED_STEPS, STEPS}
    assert steps == {path.name} == {PACKED_STEPS if compact else STEPS} and has_records(tmp_path)


def test_a_torn_line_longer_than_one_block_is_cut(tmp_path: Path) -> None:
    with Journal(tmp_path) as journal:
        journal.append(records(1)[0])
    with (tmp_path / STEPS).open("ab") as stream:
        stream.write(b"x" * 200_000)
    with Journal(tmp_path):
        pass
    assert len(list(RunFolder(tmp_path).records)) == 1


def test_a_damaged_line_in_the_middle_is_reported_and_passed_over(tmp_path: Path) -> None:
    with Journal(tmp_path) as journal:
        for record in records(3):
            journal.append(record)
    lines = (tmp_path / STEPS).read_bytes().splitlines(keepends=True)
    (tmp_path / STEPS).write_bytes(lines[0] + b'{"garbage": \xff\n' + lines[2])
    read = RunFolder(tmp_path).records
    assert len(list(read)) == 2 and read.damaged == [2]


def test_an_unwritable_place_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(JournalError, match="cannot write to the run directory"):
        Journal(tmp_path / "file" / "run")


def test_manifest_and_plan_are_read_back(tmp_path: Path) -> None:
    plan: Plan = {EpisodeKey("b", "s", "1"): range(3), EpisodeKey("b", "s", "ü"): range(4)}
    written = {**RunFolder(write_run(tmp_path / "other", [])).manifest.to_json(), "schema": 1, "new": {"of a later": [1, None]}}
    with Journal(tmp_path) as journal:
        journal.start(written, plan)
    manifest = RunFolder(tmp_path).manifest
    assert RunFolder(tmp_path).plan == plan and manifest.version == 1 and manifest.to_json() == written
    assert not [path for path in tmp_path.iterdir() if path.name.endswith(".tmp")]
    for values, problem in (
        ({"schema": 99}, "field schema: expected 1, 2 or 3, got 99"),
        ({"schema": 1, "config": {}}, "field model: is missing; the file was not written by guieval"),
        ({**written, "mode": "offline"}, "field mode: expected a group of values, got 'offline'"),
    ):
        (tmp_path / MANIFEST).write_text(json.dumps(values))
        with pytest.raises(UsageError, match=problem):
            _ = RunFolder(tmp_path).manifest
    for damaged in ("x", "[1]", '[["a", "b", "c", "d"]]'):
        (tmp_path / EPISODES).write_text(damaged)
        with pytest.raises(UsageError, match=r"episodes\.json'.*; `guieval run --resume .*` writes it again"):
            _ = RunFolder(tmp_path).planned
    (tmp_path / MANIFEST).unlink()
    with pytest.raises(UsageError, match="not a run directory"):
        _ = RunFolder(tmp_path).manifest
    assert (tmp_path / EPISODES).exists()


def test_a_line_is_json_with_its_checksum() -> None:
    record = records(1)[0]
    line = write_line(record, compact=False)
    assert {**record.model_dump(mode="json"), "crc32": json.loads(line)["crc32"]} == json.loads(line)
    assert json.loads(json_line(line)) == record.model_dump(mode="json")


def test_a_changed_character_is_noticed_wherever_it_stands(tmp_path: Path) -> None:
    """Each line would still be JSON of a record, but for its checksum; one without any is of an earlier version."""
    with Journal(tmp_path) as journal:
        journal.append(records(1)[0])
    line = (tmp_path / STEPS).read_bytes()
    for place in range(len(line) - 1):
        (tmp_path / STEPS).write_bytes(line[:place] + bytes([line[place] ^ 1]) + line[place + 1 :])
        read = RunFolder(tmp_path).records
        assert list(read) == [] and read.damaged == [1], place
    (tmp_path / STEPS).write_bytes(json_line(line))
    assert list(RunFolder(tmp_path).records) == records(1)


def test_a_deleted_lock_admits_no_second_writer(tmp_path: Path) -> None:
    with Journal(tmp_path) as journal:
        (tmp_path / LOCK).unlink()
        with pytest.raises(JournalError, match="is being written by"):
            Journal(tmp_path)
        journal.append(records(1)[0])
    with Journal(tmp_path):
        pass


@pytest.mark.parametrize(("seconds", "number"), [(1e-3, 1), (1e3, FLUSH_RECORDS)])
def test_records_reach_the_disk_by_time_and_by_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds: float, number: int
) -> None:
    assert FLUSH_SECONDS <= 1.0
    monkeypatch.setattr("guieval.journal.directory.FLUSH_SECONDS", seconds)
    synced: list[int] = []
    really = os.fsync

    def fsync(file: int) -> None:
        really(file)
        if os.path.samestat(os.fstat(file), (tmp_path / STEPS).stat()):
            synced.append((tmp_path / STEPS).read_bytes().count(b"\n"))

    monkeypatch.setattr(os, "fsync", fsync)
    with Journal(tmp_path) as journal:
        for record in records(number):
            assert seconds < 1.0 or not synced, "fewer wait"
            journal.append(record)
        until(lambda: number in synced, "a flush")
    assert len(synced) <= 2, "nothing new, nothing to bring to the disk"


def replace(path: Path) -> None:
    other = path.with_name("other")
    other.write_text("")
    other.replace(path)


def move(path: Path) -> None:
    path.rename(path.with_name("moved"))


def grow(path: Path) -> None:
    with path.open("ab") as stream:
        stream.write(b"{}\n")


@every_row("harm", [Path.unlink, replace, move, lambda path: os.truncate(path, path.stat().st_size // 2), grow])
@every_row("while_appending", [True, False])
def test_a_destroyed_journal_ends_the_run_and_what_is_left_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, harm: Callable[[Path], None], while_appending: bool
) -> None:
    """Everything that was appended comes back with the next writer."""
    monkeypatch.setattr("guieval.journal.directory.FLUSH_SECONDS", 0.02)
    written = records(6)
    called: list[bool] = []
    with pytest.raises(JournalError, match=r"another program has .* the journal"), Journal(tmp_path) as journal:
        journal.on_failure(lambda: called.append(True))
        for record in written[:5]:
            journal.append(record)
        harm(tmp_path / STEPS)
        if while_appending:
            until(lambda: journal.append(written[5]), "a notice")  # of a file that was renamed, by the next look
        until(lambda: bool(called), "a notice")
        journal.check()
    with Journal(tmp_path):
        pass
    left = {record.task.key for record in RunFolder(tmp_path).records}
    assert left >= {record.task.key for record in written[:5]}
    assert sorted(path.name for path in tmp_path.iterdir() if "rescued" in path.name) == []

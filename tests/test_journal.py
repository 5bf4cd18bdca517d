"""The run directory: one writer, torn lines cut, full disks told in a sentence, nothing already written lost."""

from __future__ import annotations

import json
import multiprocessing
import os
import subprocess
import sys
from pathlib import Path

import pytest

from guieval.actions import Type
from guieval.errors import JournalError, UsageError
from guieval.journal import EPISODES, MANIFEST, MANIFEST_KEYS, STEPS, Journal, Records, read_manifest, read_planned
from guieval.steps import EpisodeKey, Plan, Sample, StepOutcome, StepRecord
from tests.scripted import ACTIONS, make_episode


def records(count: int) -> list[StepRecord]:
    sample = Sample(raw_response="ok", outcome=StepOutcome(verdict="right", type_match=True, exact_match=True))
    return [StepRecord(task=make_episode(str(n), ACTIONS).steps[0], samples=(sample,)) for n in range(count)]


def test_what_is_appended_is_read_back(tmp_path: Path) -> None:
    written = records(3)
    with Journal(tmp_path) as journal:
        for record in written:
            journal.append(record)
    assert list(Records(tmp_path)) == written
    offsets = [offset for offset, _ in Records(tmp_path).with_offsets()]
    assert [Records(tmp_path).at(offset) for offset in offsets] == written


def test_half_a_surrogate_pair_is_written_as_a_question_mark(tmp_path: Path) -> None:
    record = records(1)[0]
    sample = record.sample.model_copy(update={"raw_response": "a \ud83d b", "action": Type(text="\udc00")})
    with Journal(tmp_path) as journal:
        journal.append(record.model_copy(update={"samples": (sample,)}))
    (read,) = Records(tmp_path)
    assert read.task == record.task and read.sample.raw_response == "a ? b" and read.sample.action == Type(text="?")


def test_a_torn_last_line_is_cut_wherever_it_is_torn(tmp_path: Path) -> None:
    first, second = records(2)
    with Journal(tmp_path) as journal:
        journal.append(first)
        whole = (tmp_path / STEPS).read_bytes()
        journal.append(second)
    both = (tmp_path / STEPS).read_bytes()
    for cut in range(len(whole), len(both)):
        (tmp_path / STEPS).write_bytes(both[:cut])
        assert list(Records(tmp_path)) == [first]
        with Journal(tmp_path) as journal:
            journal.append(second)
        assert (tmp_path / STEPS).read_bytes() == both


def test_a_torn_line_longer_than_one_block_is_cut(tmp_path: Path) -> None:
    with Journal(tmp_path) as journal:
        journal.append(records(1)[0])
    with (tmp_path / STEPS).open("ab") as stream:
        stream.write(b"x" * 200_000)
    with Journal(tmp_path):
        pass
    assert len(list(Records(tmp_path))) == 1


def test_a_damaged_line_in_the_middle_is_told_and_passed_over(tmp_path: Path) -> None:
    with Journal(tmp_path) as journal:
        for record in records(3):
            journal.append(record)
    lines = (tmp_path / STEPS).read_bytes().splitlines(keepends=True)
    (tmp_path / STEPS).write_bytes(lines[0] + b'{"garbage": \xff\n' + lines[2])
    read = Records(tmp_path)
    assert len(list(read)) == 2 and read.damaged == [2]


def hold(directory: str, ready: multiprocessing.synchronize.Event, done: multiprocessing.synchronize.Event) -> None:
    with Journal(Path(directory)):
        ready.set()
        done.wait(30)


def test_a_second_writer_is_refused_and_told_who_holds_it(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    ready, done = context.Event(), context.Event()
    process = context.Process(target=hold, args=(str(tmp_path), ready, done))
    process.start()
    try:
        assert ready.wait(30)
        with pytest.raises(JournalError, match=f"is being written by process {process.pid} on "):
            Journal(tmp_path)
    finally:
        done.set()
        process.join(30)
    with Journal(tmp_path):
        pass


FILL = """
import resource, sys
from pathlib import Path
from guieval.errors import JournalError
from guieval.journal import Journal
from tests.test_journal import records
resource.setrlimit(resource.RLIMIT_FSIZE, (6000, 6000))
with Journal(Path(sys.argv[1])) as journal:
    for number, record in enumerate(records(100)):
        try:
            journal.append(record)
        except JournalError as error:
            print(number, error)
            break
"""


def test_a_full_disk_keeps_every_whole_record(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FILL, str(tmp_path)], capture_output=True, text=True, check=True, cwd=os.getcwd()
    )
    number, _, sentence = done.stdout.strip().partition(" ")
    assert int(number) > 0 and "disk is full" in sentence and "--resume" in sentence
    assert (tmp_path / STEPS).read_bytes().endswith(b"\n")
    assert len(list(Records(tmp_path))) == int(number)


def test_an_unwritable_place_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(JournalError, match="cannot write to the run directory"):
        Journal(tmp_path / "file" / "run")


def test_manifest_and_plan_are_read_back(tmp_path: Path) -> None:
    plan: Plan = {EpisodeKey("b", "s", "1"): range(3), EpisodeKey("b", "s", "ü"): range(4)}
    with Journal(tmp_path) as journal:
        journal.start({"schema": 1, **{key: {} for key in MANIFEST_KEYS}}, plan)
    assert read_planned(tmp_path).plan == plan and read_manifest(tmp_path)["schema"] == 1
    assert not [path for path in tmp_path.iterdir() if path.name.endswith(".tmp")]
    (tmp_path / MANIFEST).write_text(json.dumps({"schema": 99}))
    with pytest.raises(UsageError, match="schema 1"):
        read_manifest(tmp_path)
    (tmp_path / MANIFEST).write_text(json.dumps({"schema": 1, "config": {}}))
    with pytest.raises(UsageError, match="lacks action_spaces, benchmark"):
        read_manifest(tmp_path)
    (tmp_path / MANIFEST).write_text(json.dumps({"schema": 1, **{key: {} for key in MANIFEST_KEYS}, "mode": "offline"}))
    with pytest.raises(UsageError, match="field mode: expected a group of values, got 'offline'"):
        read_manifest(tmp_path)
    for damaged in ("x", "[1]", '[["a", "b", "c", "d"]]'):
        (tmp_path / EPISODES).write_text(damaged)
        with pytest.raises(UsageError, match="cannot be read"):
            read_planned(tmp_path)
    (tmp_path / MANIFEST).unlink()
    with pytest.raises(UsageError, match="no run directory"):
        read_manifest(tmp_path)
    assert (tmp_path / EPISODES).exists()

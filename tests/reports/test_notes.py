"""Notes beside a run: the last line about a thing counts, and damaged or hostile lines are skipped."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from guieval.errors import UsageError
from guieval.reports.notes import LONGEST_NOTE, NOTES, read_notes, write_note, write_tags
from guieval.steps import StepKey
from tests.rows import every_row

STEP = StepKey("demo", "", "e1", 2)


def test_the_last_line_about_a_thing_counts(tmp_path: Path) -> None:
    assert read_notes(tmp_path).steps == {}
    write_note(tmp_path, "first", STEP)
    write_note(tmp_path, "whole run")
    write_note(tmp_path, "second\n", STEP)
    write_tags(tmp_path, ["paper", "ablation", "paper"])
    notes = read_notes(tmp_path)
    assert (notes.steps, notes.text, notes.tags) == ({STEP: "second\n"}, "whole run", ["paper", "ablation"])
    write_note(tmp_path, "", STEP)
    write_tags(tmp_path, [])
    assert read_notes(tmp_path).steps == {} and read_notes(tmp_path).tags == []
    assert len((tmp_path / NOTES).read_text().splitlines()) == 6


def test_a_torn_line_costs_only_itself(tmp_path: Path) -> None:
    write_note(tmp_path, "kept", STEP)
    with (tmp_path / NOTES).open("ab") as file:
        file.write(b'{"step": ["demo"')
    write_note(tmp_path, "later")
    assert read_notes(tmp_path).steps == {STEP: "kept"} and read_notes(tmp_path).text == "later"


@every_row(
    "line", [b"[]", b"\xff\xfe", b"null", b'{"tags": ["' + b"x" * 41 + b'"]}', b'{"step": "demo", "text": "x"}', b"[" * 100_000]
)
def test_a_line_that_does_not_fit_is_skipped(tmp_path: Path, line: bytes) -> None:
    (tmp_path / NOTES).write_bytes(line + b"\n" + json.dumps({"text": "fine"}).encode() + b"\n")
    notes = read_notes(tmp_path)
    assert (notes.text, notes.tags, notes.steps) == ("fine", [], {})


def test_what_is_too_long_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="at most 10,000"):
        write_note(tmp_path, "x" * (LONGEST_NOTE + 1))
    with pytest.raises(UsageError, match="without spaces"):
        write_tags(tmp_path, ["two words"])
    assert not (tmp_path / NOTES).exists()


def test_a_link_in_a_run_folder_is_not_written_through(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_text("mine")
    run = tmp_path / "run"
    run.mkdir()
    (run / NOTES).symlink_to(other)
    with pytest.raises(UsageError, match="cannot be written"):
        write_note(run, "x")
    assert other.read_text() == "mine"

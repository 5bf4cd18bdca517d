"""Notes on a run, of which the last line about a thing counts, and what is shortened in a text that is published."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from guieval.errors import UsageError
from guieval.reports.notes import LONGEST_NOTE, NOTES, read_notes, write_note, write_tags
from guieval.reports.private_places import Shortener, any_of, last_part
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


SHORTENER = Shortener([Path("/data/screens")], ["http://gpu7:8000/v1", "http://judge.lab/v1/"])
WITHOUT_PLACES = (
    "the server went away at all 5 attempts: status 500",
    "Content-Type is 'text/html', expected 'application/json' and/or UTF-8",
    "step demo/s0-0001#2 of 3/4 at 0.5 took 12:30 min with guieval 0.1.0",
    "vLLM's base URL ends in /v1",
    "gpu70 and my-gpu7 answer",
)


@every_row(
    ("message", "shortened"),
    [
        ("https://api.example.com/v1 has no model 'm' (status 404)", "[...] has no model 'm' (status 404)"),
        ("at http://[::1]:8000/v1.", "at [...]."),
        ("file:///home/ann/x.png: damaged", "[...]: damaged"),
        ("cannot read '/home/ann/my run/steps.jsonl'; try again", "cannot read '[...]'; try again"),
        ('cannot read "/srv": denied', 'cannot read "[...]": denied'),
        ("see /srv/a/b.log, ~/log and ../c/d", "see [...], [...] and [...]"),
        ("connect to localhost:8000 or 10.0.0.1", "connect to [...] or [...]"),
        ("gpu7 and judge.lab are away", "[...] and [...] are away"),
        *zip(WITHOUT_PLACES, WITHOUT_PLACES, strict=True),
    ],
)
def test_places_in_a_message(message: str, shortened: str) -> None:
    assert SHORTENER.message(message) == shortened


@every_row(
    ("text", "kept"),
    [
        ("open https://example.com/a and /home/user/b", "open https://example.com/a and /home/user/b"),
        ("/data/screens/1.png, /data/screens. /data/screens2", "[...]/1.png, [...]. /data/screens2"),
        ("http://gpu7:8000/v1/models, gpu7", "[...]/models, gpu7"),
    ],
)
def test_of_a_reply_only_known_places_are_shortened(text: str, kept: str) -> None:
    assert SHORTENER.known(text) == kept


@every_row(
    ("name", "last"),
    [
        ("Qwen/Qwen2.5-VL-7B", ""),
        ("/home/ann/models/ui-tars", "ui-tars"),
        ("/home/ann/models/ui-tars/", "ui-tars"),
        ("~/.cache/huggingface/hub/models--Qwen--Qwen2.5-VL-7B/snapshots/0a1b", "Qwen/Qwen2.5-VL-7B"),
        ("C:\\models\\ui-tars", "ui-tars"),
    ],
)
def test_the_last_part_of_a_path(name: str, last: str) -> None:
    assert last_part(name) == last


def test_nothing_matches_without_texts() -> None:
    assert any_of([]).search("anything") is None

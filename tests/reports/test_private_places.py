"""What is shortened in a text that is published, and what is kept."""

from __future__ import annotations

from pathlib import Path

from guieval.reports.private_places import Shortener, any_of, last_part
from tests.rows import every_row

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

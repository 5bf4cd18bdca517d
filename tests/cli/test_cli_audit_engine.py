"""`guieval audit-engine` finds a server that sees other pictures: by its counts, by clicks, and by earlier answers."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from guieval.registry import load_benchmark
from guieval.testing.mock_server import MockServer, MockSettings
from tests.command_line import CommandLine, Done

MODEL = "qwen2.5-vl-7b"
SMALL = ("--set", "options.max_pixels=1003520")


@pytest.fixture(scope="module")
def screens(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("screens")
    list(load_benchmark("demo-screens", folder))
    return folder


@pytest.fixture
def audited(guieval: CommandLine, screens: Path) -> Callable[..., Done]:
    def audit(sees: str, *more: str | Path, model: str = MODEL, **settings: Any) -> Done:
        chosen = MockSettings(policy="reference", model=model, sees=sees, **settings)
        with MockServer(chosen, benchmark=load_benchmark("demo-screens", screens)) as server:
            return guieval("audit-engine", model, "--base-url", server.base_url, "--set", f"data={screens}", *SMALL, *more)

    return audit


def verdicts(done: Done) -> dict[str, str]:
    return {each["about"]: each["verdict"] for each in json.loads(done.out)["findings"]}


def test_each_fault_is_found_by_what_it_changes(tmp_path: Path, audited: Callable[..., Done]) -> None:
    kept = tmp_path / "kept.json"
    right = audited("right", "--json", "--save", kept)
    fine = {"tokens": "fine", "clicks": "fine", "orientation": "fine"}
    assert (right.code, verdicts(right)) == (0, {**fine, "fingerprint": "unknown"}), right
    for sees, alone, faults in (
        ("right", {}, {}),
        ("shrunk", {"tokens": "fault", "clicks": "fault"}, {"fingerprint": "fault"}),
        ("unturned", {"orientation": "fault"}, {"fingerprint": "fault"}),
        ("lossy", {}, {"fingerprint": "fault"}),
    ):
        done = audited(sees, "--json", "--against", kept)
        assert verdicts(done) == {**fine, "fingerprint": "fine", **alone, **faults}, (sees, done.out[-3000:])
        assert done.code == (1 if faults else 0)
        assert audited(sees, "--json").code == (1 if alone else 0)


def test_a_shrunk_picture_is_told_with_its_limit(audited: Callable[..., Done], monkeypatch: pytest.MonkeyPatch) -> None:
    for width in (80, 120):
        monkeypatch.setenv("COLUMNS", str(width))
        done = audited("shrunk", seen_pixels=300_000)
        text = " ".join(done.out.split())
        assert "larger ones are shrunk to at most 300,000 to " not in text and done.code == 1
        assert max(map(len, done.out.splitlines())) <= width


def test_what_cannot_be_known_is_said(tmp_path: Path, audited: Callable[..., Done]) -> None:
    done = audited("nothing", "--json", model="ui-tars-7b")  # with prompt tokens that are no counts of the picture
    assert verdicts(done)["tokens"] == "unknown" and done.code == 0
    bad = audited("right", "--json", accuracy=0.0)
    assert verdicts(bad)["clicks"] == "unknown" and bad.code == 0


def test_a_fingerprint_of_other_requests_is_refused(tmp_path: Path, audited: Callable[..., Done]) -> None:
    kept = tmp_path / "kept.json"
    audited("right", "--save", kept)
    other = audited("right", "--against", kept, "--set", "sampling.max_tokens=7")
    assert other.code == 2 and "the fingerprint is of other requests" in other.err
    kept.write_text("{}")
    assert "is no fingerprint" in audited("right", "--against", kept).err

"""`guieval dev audit-engine` finds a server that sees other pictures: by its counts, by clicks, and by earlier answers."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from guieval.playground.mock_server import MockServer, MockSettings
from guieval.registry import load_benchmark
from tests.command_line import CommandLine, Done

MODEL = "qwen2.5-vl-7b"
Audited = Callable[..., Done]


@pytest.fixture
def audited(tmp_path: Path, guieval: CommandLine) -> Audited:
    """What the command prints, and how it ends, on a mock server that sees its pictures like this."""

    def audit(sees: str, *more: str | Path, model: str = MODEL, **settings: Any) -> Done:
        chosen = MockSettings.model_validate({"policy": "reference", "model": model, "sees": sees, **settings})
        data = ("--set", f"data={tmp_path}", "--set", "bench_options.episodes=45")
        with MockServer(chosen, benchmark=load_benchmark("demo-screens", tmp_path)) as server:
            return guieval("dev", "audit-engine", model, "--base-url", server.base_url, *data, *more)

    return audit


def verdicts(done: Done) -> dict[str, str]:
    return {each["about"]: each["verdict"] for each in json.loads(done.out)["findings"]}


def test_each_fault_is_found_by_what_it_changes(tmp_path: Path, audited: Audited, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = tmp_path / "kept.json"
    right = audited("right", "--json", "--save", kept)
    fine = {"tokens": "fine", "clicks": "fine", "orientation": "fine"}
    assert (right.code, verdicts(right)) == (0, {**fine, "fingerprint": "unknown"}), right
    of_fingerprint = "The answers are not those of the fingerprint: "
    turned = f"{of_fingerprint}answers differ on 8 of 8 screens with an EXIF orientation"
    for sees, width, faults in (
        ("right", 80, []),
        (
            "shrunk",
            80,
            ["Prompt tokens of 20 of 45", "Clicks hit", f"{of_fingerprint}prompt tokens differ on 20 of 45 screens"],
        ),
        ("unturned", 120, ["Of 8 clicks on pictures that an EXIF orientation turns, 0 hit the target, and 8 hit", turned]),
        ("lossy", 120, [f"{of_fingerprint}log-probabilities of 37 screens differ by"]),
    ):
        monkeypatch.setenv("COLUMNS", str(width))
        done = audited(sees, "--against", kept)
        assert done.code == (1 if faults else 0) and max(map(len, done.out.splitlines())) <= width
        found = [words.split("fault: ")[1] for words in " ".join(done.out.split()).split(". ") if "fault: " in words]
        assert len(found) == len(faults), done.out
        assert [one[: len(other)] for one, other in zip(map(str.strip, found), faults, strict=True)] == faults
    other = audited("right", "--against", kept, "--set", "sampling.max_tokens=7")
    assert other.code == 2 and "the fingerprint is of other requests" in other.err
    kept.write_text("{}")
    assert "field name: is missing" in audited("right", "--against", kept).err


def test_what_cannot_be_known_is_stated_and_no_fault(audited: Audited) -> None:
    """Prompt tokens that are made up and follow no declared processor; clicks that miss; no log-probabilities."""
    assert verdicts(audited("nothing", "--json", model="ui-tars-7b"))["tokens"] == "unknown"
    bad = audited("right", "--json", accuracy=0.0)
    assert (bad.code, verdicts(bad)["tokens"], verdicts(bad)["clicks"]) == (0, "fine", "unknown")

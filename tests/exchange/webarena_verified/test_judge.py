"""WebArena-Verified's evaluator on an agent's folders.

The package itself judges where it is installed or GUIEVAL_WEBARENA_VERIFIED names a Python that has it.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from guieval.journal import RunFolder
from tests.command_line import CommandLine
from tests.rows import every_row

PACKAGE = "webarena_verified"
MONTHS = [("Jan", 12), ("Feb", 7), ("March", 5), ("April", 9), ("May", 5)]
"""The orders by month that task 108 asks for."""


@pytest.fixture(scope="module")
def python() -> str:
    given = os.environ.get("GUIEVAL_WEBARENA_VERIFIED")
    if given is None and importlib.util.find_spec(PACKAGE) is None:
        pytest.skip("webarena-verified is not installed, and GUIEVAL_WEBARENA_VERIFIED does not name a Python that has it")
    return given or sys.executable


def leave(folder: Path, task: int, response: Any, *, trace: bool = True) -> None:
    """Leave a response, as text or as JSON, and the traffic of one page, as an agent does."""
    home = folder / str(task)
    home.mkdir(parents=True)
    text = response if isinstance(response, str) else json.dumps(response)
    (home / "agent_response.json").write_text(text, encoding="utf-8")
    request = {"method": "GET", "url": "http://localhost:7780/admin", "headers": [], "queryString": []}
    answer = {"status": 200, "headers": [], "content": {"mimeType": "text/html"}}
    entry = {"startedDateTime": "2026-01-01T00:00:00.000Z", "request": request, "response": answer}
    if trace:
        log = {"version": "1.2", "creator": {"name": "test", "version": "1"}, "entries": [entry]}
        (home / "network.har").write_text(json.dumps({"log": log}), encoding="utf-8")


def retrieved(data: Any) -> dict[str, Any]:
    return {"task_type": "RETRIEVE", "status": "SUCCESS", "retrieved_data": data, "error_details": None}


def test_the_package_judges(python: str, guieval: CommandLine, tmp_path: Path) -> None:
    runs, out = tmp_path / "runs", tmp_path / "run"
    leave(runs, 108, retrieved([{"month": month, "count": count} for month, count in MONTHS]))
    leave(runs, 107, retrieved([{"month": "May", "count": 1}]))
    leave(runs, 0, "The best-selling product is the band.")
    leave(runs, 1, retrieved(["Sprite"]), trace=False)
    done = guieval("data", "import", runs, "--out", out, "--set", f"python={python}")
    assert "3 of 812 tasks have an outcome, format webarena-verified" in done.out and "judged by webarena-verified" in done.out
    found = {record.task.episode_id: record.samples[0] for record in RunFolder(out).tasks}
    verdicts = {task: repetition.verdict for task, repetition in found.items()}
    assert verdicts == {"0": "unparseable", "1": "infrastructure_failure", "107": "wrong", "108": "right"}
    assert found["107"].outcome is not None and "retrieved_data" in found["107"].outcome.score.reason
    assert found["1"].error is not None and "not found" in found["1"].error.message
    guieval("data", "import", runs, "--out", tmp_path / "hard", "--set", f"python={python}", "--set", "tasks=hard")
    assert len(RunFolder(tmp_path / "hard").plan) == 258


def test_a_settings_file_that_the_package_refuses_is_one_sentence(python: str, guieval: CommandLine, tmp_path: Path) -> None:
    leave(tmp_path / "runs", 108, retrieved([]))
    (tmp_path / "config.json").write_text("[", encoding="utf-8")
    settings = ("--set", f"python={python}", "--set", f"config={tmp_path / 'config.json'}")
    said = guieval.sentence("data", "import", tmp_path / "runs", "--out", tmp_path / "run", *settings)
    assert said.startswith("guieval: webarena-verified in")
    assert not (tmp_path / "run").exists()


@every_row(
    ("settings", "words"),
    [
        (["pyton=python3"], "has no option 'pyton' (did you mean 'python'?)"),
        (["tasks=hrd"], "option tasks is 'hrd'; expected all or hard"),
        (["python=no-such-python"], "option python is 'no-such-python', which is not a program"),
        (["config=none.json"], "option config is 'none.json', which is not a file"),
    ],
)
def test_settings_that_cannot_be(settings: list[str], words: str, guieval: CommandLine, tmp_path: Path) -> None:
    leave(tmp_path / "runs", 108, retrieved([]))
    pairs = [part for pair in settings for part in ("--set", pair)]
    assert words in guieval.sentence("data", "import", tmp_path / "runs", "--out", tmp_path / "run", *pairs)


def test_a_python_without_the_package_and_folders_without_a_task(guieval: CommandLine, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    command: list[str | Path] = ["data", "import", runs, "--format", PACKAGE.replace("_", "-"), "--out", tmp_path / "run"]
    assert "does not exist" in guieval.sentence(*command)
    (runs / "logs").mkdir(parents=True)
    assert "has no task; expected <task id>/agent_response.json" in guieval.sentence(*command)
    leave(runs, 108, retrieved([]))
    if importlib.util.find_spec(PACKAGE) is None:
        assert "pip install 'guieval[webarena-verified]'" in guieval.sentence(*command)
    assert "--bench is not for the format webarena-verified" in guieval.sentence(*command, "--bench", "demo")

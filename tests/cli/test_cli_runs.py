"""``guieval runs``: which runs there are, in which state, with score's own figures; and what may be removed or renamed."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from guieval.actions import Click, Point
from guieval.journal import EPISODES, LOCK, MANIFEST, ROLLOUT, SWEEP, Journal
from guieval.reports.past_runs import age
from tests.command_line import CommandLine
from tests.made_runs import record, step, write_run

HERE, THERE = Click(point=Point(500, 500)), Click(point=Point(100, 900))


def made(directory: Path, answered: int = 4, planned: int = 4, *, failed: bool = False, created: str = "") -> Path:
    """A run over episodes of one step, in which every second answer is right."""
    tasks = [step(HERE, episode=f"e{number}") for number in range(planned)]
    answers: list[tuple[Click, ...]] = [() if failed else (HERE if number % 2 else THERE,) for number in range(answered)]
    records = [record(task, *answer) for task, answer in zip(tasks, answers, strict=False)]
    write_run(directory, records, plan={task.episode_key: range(1) for task in tasks}, protocol="agentcpm")
    if created:
        changed(directory, created=created)
    return directory


def changed(directory: Path, **values: Any) -> None:
    manifest = json.loads((directory / MANIFEST).read_text())
    (directory / MANIFEST).write_text(json.dumps({**manifest, **values}))


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    folder = tmp_path / "runs"
    made(folder / "old", created="2024-01-01T00:00:00+00:00")
    made(folder / "several" / "offline", created="2024-01-02T00:00:00+00:00")
    made(folder / "several" / "sop", 2, created="2024-01-03T00:00:00+00:00")
    made(folder / "silent", 4, failed=True, created="2024-01-04T00:00:00+00:00")
    made(folder / "unasked", 0, created="2024-01-05T00:00:00+00:00")
    made(folder / "torn", created="2024-01-06T00:00:00+00:00")
    (folder / "torn" / MANIFEST).write_text("{")
    (folder / "notes").mkdir()
    (folder / "notes" / MANIFEST).write_text('{"name": "of another program"}')
    return folder


def listed(guieval: CommandLine, folder: Path) -> dict[str, dict[str, Any]]:
    done = guieval("runs", folder, "--json")
    assert done.code == 0, done.err
    return {each["name"]: each for each in json.loads(done.out)["runs"]}


def test_every_run_is_listed_newest_first_with_its_state_and_scores_own_figures(guieval: CommandLine, runs: Path) -> None:
    found = listed(guieval, runs)
    states = {"old": "finished", "several/offline": "finished", "several/sop": "stopped"}
    states |= {"silent": "never answered", "unasked": "never answered", "torn": "broken"}
    assert {name: each["state"] for name, each in found.items()} == states
    dated = [name for name in found if name != "torn"]  # dated by its folder
    assert dated == ["unasked", "silent", "several/sop", "several/offline", "old"]
    assert found["old"]["exact_match"] is not None and found["silent"]["exact_match"] is None
    assert "cannot be read" in found["torn"]["problem"]
    for name in ("old", "several/sop"):
        scored = json.loads(guieval("score", runs / name, "--json").out)["runs"][0]
        for figure in ("exact match", "success rate"):
            assert found[name][figure.replace(" ", "_")] == scored["summary"]["metrics"][figure]


def test_a_run_is_running_while_it_is_written_and_not_when_it_was_killed(guieval: CommandLine, runs: Path) -> None:
    with Journal(runs / "several" / "sop"):
        assert listed(guieval, runs)["several/sop"]["state"] == "running"
    (runs / "several" / "sop" / LOCK).write_text("process 1 on a machine that is off\n")
    assert listed(guieval, runs)["several/sop"]["state"] == "stopped"


def test_the_list_fits_the_terminal(guieval: CommandLine, runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for width in (80, 120, 160):
        monkeypatch.setenv("COLUMNS", str(width))
        done = guieval("runs", runs)
        assert max(map(len, done.out.splitlines())) <= width
        assert re.search(r"^old .*50\.00% .*finished", done.out, re.MULTILINE)
        assert "broken: torn: " in " ".join(done.err.split())
    (line,) = (line for line in done.out.splitlines() if line.startswith("several/sop"))
    assert "(2 missing)" in line  # what a part of the steps lacks stands in the cell


def test_the_folder_of_runs(guieval: CommandLine, runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert list(listed(guieval, runs / "old")) == ["old"]
    assert list(listed(guieval, runs / "several")) == ["sop", "offline"]
    (tmp_path / "empty").mkdir()
    assert "no runs in" in guieval("runs", tmp_path / "empty").out
    assert "there is no folder" in guieval.sentence("runs", tmp_path / "none")
    # without a folder it is the runs folder here
    monkeypatch.chdir(runs.parent)
    assert guieval("runs", "--json").out == guieval("runs", "list", "runs", "--json").out != '{"runs": []}\n'
    assert guieval("runs", "remove", "old", "--yes").code == 0 and not (runs / "old").exists()
    monkeypatch.chdir(runs)
    assert "name the folder of your runs" in guieval.sentence("runs")


def test_removing_asks_and_leaves_foreign_files(guieval: CommandLine, runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for message, gone in (("n", False), ("y", True)):
        monkeypatch.setattr("sys.stdin", StringIO(f"{message}\n"))
        assert guieval("runs", "remove", "old", "--in", runs).code == (0 if gone else 130)
        assert (runs / "old").exists() is not gone
    (runs / "several" / "mine.txt").write_text("kept")
    assert "but for files" in guieval("runs", "remove", "several", "--in", runs, "--yes").out
    assert [each.name for each in (runs / "several").iterdir()] == ["mine.txt"]
    assert guieval("runs", "remove", "torn", "--in", runs, "--yes").code == 0
    assert not (runs / "torn").exists()


def test_a_folder_of_other_runs_is_not_removed_and_names_are_changed(guieval: CommandLine, runs: Path, tmp_path: Path) -> None:
    before = sorted(runs.rglob("*"))
    assert "there is no run" in guieval.sentence("runs", "remove", runs, "--yes")
    assert "there is no run" in guieval.sentence("runs", "remove", ".", "--in", runs, "--yes")
    (tmp_path / "link").symlink_to(runs / "old")
    assert "there is no run" in guieval.sentence("runs", "remove", tmp_path / "link", "--yes")
    assert "did you mean 'old'" in guieval.sentence("runs", "remove", "olds", "--in", runs, "--yes")
    assert sorted(runs.rglob("*")) == before
    # renaming
    assert guieval("runs", "rename", "old", "older", "--in", runs).code == 0
    assert guieval("runs", "rename", "several", "both", "--in", runs).code == 0
    assert {"older", "both/sop", "both/offline"} <= listed(guieval, runs).keys()
    assert "already" in guieval.sentence("runs", "rename", "older", "both", "--in", runs)
    for name in ("../x", "a/b", ".."):
        assert "expected a name without folders" in guieval.sentence("runs", "rename", "older", name, "--in", runs)


def test_runs_being_written_and_parts_of_rollouts_and_sweeps_are_left_alone(guieval: CommandLine, runs: Path) -> None:
    with Journal(runs / "several" / "sop"):
        for command in (("remove", "several", "--yes"), ("rename", "several", "new")):
            assert "is being written" in guieval.sentence("runs", *command, "--in", runs)
    assert (runs / "several" / "sop" / EPISODES).exists()
    for marker in (ROLLOUT, SWEEP):
        whole = made(runs / "whole" / "part").parent
        (whole / marker).write_text("{}")
        assert "is a part of" in guieval.sentence("runs", "remove", "whole/part", "--in", runs, "--yes")
        assert guieval("runs", "remove", "whole", "--in", runs, "--yes").code == 0 and not whole.exists()


def test_an_age_is_shown_in_its_largest_unit() -> None:
    now = datetime(2025, 1, 10, tzinfo=UTC)
    ages = {"45 s": 45, "12 min": 12 * 60 + 59, "23 h": 86_399, "9 d": 9 * 86_400, "0 s": -5}
    assert all(age(now - timedelta(seconds=seconds), now) == text for text, seconds in ages.items())

"""OSWorld's result folders are runs of tasks; the files are as its ``lib_run_single.py`` writes them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from PIL import Image

from guieval.errors import DataError, UsageError
from guieval.exchange.importing import import_predictions
from guieval.journal import RunFolder
from guieval.metrics import TaskSummary
from guieval.reports.opened import OpenedOnlineRun, open_run
from guieval.scoring.score import evaluate_run
from tests.command_line import CommandLine

CLICK = "import pyautogui\npyautogui.click(1896, 89)"


def leave(folder: Path, task: str, *actions: str, result: str | None = "0.0", error: bool = False) -> None:
    """Leave what a task leaves: a line and a screenshot for each action, and its score."""
    place = folder / task
    place.mkdir(parents=True)
    lines: list[dict[str, object]] = []
    for number, action in enumerate(actions, 1):
        name = f"step_{number}_20260122@144314.png"
        Image.new("RGB", (64, 36), (number, 0, 0)).save(place / name)
        about = {"step_num": number, "action_timestamp": "20260122@144314", "action": action, "response": f"reply {number}"}
        lines.append({**about, "reward": 0, "done": action == "DONE", "info": {}, "screenshot_file": name})
    lines += [{"Error": f"{task} timed out"}] * error
    (place / "traj.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    if result is not None:
        (place / "result.txt").write_text(f"{result}\n")


def test_a_result_folder_is_a_run_of_tasks(tmp_path: Path, guieval: CommandLine) -> None:
    model = tmp_path / "results" / "pyautogui" / "screenshot" / "gui-a"
    leave(model, "chrome/030e", CLICK, "DONE", result="1.0")
    leave(model, "chrome/06fe", CLICK, "DONE")
    leave(model, "gimp/2a72", CLICK, CLICK, CLICK, result="0.5")
    leave(model, "os/5812", "FAIL", result="0")
    leave(model, "os/aaaa", CLICK, result=None, error=True)
    made = guieval("data", "import", tmp_path / "results", "--out", tmp_path / "run").out
    assert "4 of 5 tasks have an outcome, format osworld" in made
    opened = open_run(tmp_path / "run")
    assert isinstance(opened, OpenedOnlineRun) and opened.manifest.model_name == "gui-a"
    found = evaluate_run(tmp_path / "run").summary
    assert isinstance(found, TaskSummary)
    assert (found.success.count, found.success.n, found.success.missing) == (1, 4, 1)
    assert (found.metrics["progress"].value, found.metrics["mean steps"].value) == (1.5 / 4, 2.0)
    ends = {"success": 1, "false completion": 1, "wrong stop": 1, "step limit": 1}
    assert {name: count for name, count in found.ended.items() if count} == ends
    assert found.groups["domain"]["chrome"].value == 0.5
    failed = {record.task.episode_id: record.samples[0].error for record in RunFolder(tmp_path / "run").tasks}["aaaa"]
    assert failed is not None and failed.message == "os/aaaa timed out"
    seen = opened.trajectory("gimp/2a72".rpartition("/")[2])
    assert [step.record.raw_response for step in seen] == ["reply 1", "reply 2", "reply 3"]
    assert seen[1].image().size == (64, 36)  # the screen after the first action
    assert guieval("compare", tmp_path / "run", tmp_path / "run").code == 0


def test_what_is_no_result_folder_of_one_model_is_named(tmp_path: Path) -> None:
    leave(tmp_path / "results" / "a", "chrome/030e", "DONE")
    leave(tmp_path / "results" / "b", "chrome/030e", "DONE")
    with pytest.raises(UsageError, match=r"has the results of 2 models or settings \(a, b\): name one"):
        import_predictions(tmp_path / "results", tmp_path / "run")
    (tmp_path / "results" / "a" / "chrome" / "030e" / "result.txt").write_text("maybe")
    with pytest.raises(DataError, match=r"result\.txt: expected a score from 0 to 1, got 'maybe'"):
        import_predictions(tmp_path / "results" / "a", tmp_path / "run")
    (tmp_path / "results" / "b" / "chrome" / "030e" / "traj.jsonl").write_text("{\n")
    with pytest.raises(DataError, match=r"traj\.jsonl, line 1: is not JSON"):
        import_predictions(tmp_path / "results" / "b", tmp_path / "run")

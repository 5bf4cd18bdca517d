"""Results of tasks by others, OSWorld's folders and WebArena-Verified's judged tasks and folders of agents, become runs."""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from guieval.errors import DataError, UsageError
from guieval.exchange.importing import import_predictions
from guieval.exchange.predictions import read_predictions
from guieval.exchange.webarena_verified import judge
from guieval.journal import RunFolder
from guieval.metrics import TaskSummary
from guieval.reports.opened import OpenedOnlineRun, open_run
from guieval.scoring.score import evaluate_run
from tests.command_line import CommandLine
from tests.exchange.predictions.files import guicourse_row, judged_row, write_lines
from tests.rows import every_row

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


ROWS = [
    judged_row(1),
    judged_row(2, "failure"),
    judged_row(3, "partial_match", sites=["gitlab", "reddit"], task_type="mutate", score=0.5),
    judged_row(4, "failure", object=False),
    judged_row(5, "error", reason="Network trace file not found"),
    {**{name: judged_row()[name] for name in ("intent", "sites", "task_type", "hard")}, "task_id": 6, "status": "missing"},
]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The run that these judgements make; the package is not asked for them."""
    (tmp_path / "agent" / "1").mkdir(parents=True)
    (tmp_path / "agent" / "1" / "agent_response.json").write_text("{}")
    monkeypatch.setattr(judge.WebArenaJudge, "rows", lambda self, folder: iter(ROWS))
    return import_predictions(tmp_path / "agent", tmp_path / "run").directory


def test_every_status_has_its_verdict(run: Path) -> None:
    folder = RunFolder(run)
    found = {record.task.episode_id: record.samples[0] for record in folder.tasks}
    verdicts = {task: repetition.verdict for task, repetition in found.items()}
    assert verdicts == {"1": "right", "2": "wrong", "3": "wrong", "4": "unparseable", "5": "infrastructure_failure"}
    assert found["5"].error is not None and found["5"].error.message == "Network trace file not found"
    progress = {task: each.outcome.score.progress for task, each in found.items() if each.outcome is not None}
    assert progress == {"1": 1.0, "2": 0.0, "3": 0.5, "4": 0.0}
    assert len(folder.plan) == 6 and folder.manifest.imported is not None
    assert folder.manifest.imported.notes == ["judged by webarena-verified 1.2.3, tasks d652, evaluator 35c3"]


def test_score_prints_the_success_rate_by_site_and_no_steps(run: Path, guieval: CommandLine) -> None:
    printed = " ".join(guieval("score", run).out.split())
    assert "success rate 25.00% of 4 (2 missing) [" in printed and "by sites" in printed
    assert "progress 37.50% of 4" in printed and "mean steps - " in printed  # not known


PACKAGE = "webarena_verified"
MONTHS = [("Jan", 12), ("Feb", 7), ("March", 5), ("April", 9), ("May", 5)]
"""The orders by month that task 108 asks for."""


@pytest.fixture(scope="module")
def python() -> str:
    given = os.environ.get("GUIEVAL_WEBARENA_VERIFIED")
    if given is None and importlib.util.find_spec(PACKAGE) is None:
        pytest.skip("webarena-verified is not installed, and GUIEVAL_WEBARENA_VERIFIED does not name a Python that has it")
    return given or sys.executable


def leave_answer(folder: Path, task: int, response: Any, *, trace: bool = True) -> None:
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
    leave_answer(runs, 108, retrieved([{"month": month, "count": count} for month, count in MONTHS]))
    leave_answer(runs, 107, retrieved([{"month": "May", "count": 1}]))
    leave_answer(runs, 0, "The best-selling product is the band.")
    leave_answer(runs, 1, retrieved(["Sprite"]), trace=False)
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
    leave_answer(tmp_path / "runs", 108, retrieved([]))
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
    leave_answer(tmp_path / "runs", 108, retrieved([]))
    pairs = [part for pair in settings for part in ("--set", pair)]
    assert words in guieval.sentence("data", "import", tmp_path / "runs", "--out", tmp_path / "run", *pairs)


def test_a_python_without_the_package_and_folders_without_a_task(guieval: CommandLine, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    command: list[str | Path] = ["data", "import", runs, "--format", PACKAGE.replace("_", "-"), "--out", tmp_path / "run"]
    assert "does not exist" in guieval.sentence(*command)
    (runs / "logs").mkdir(parents=True)
    assert "has no task; expected <task id>/agent_response.json" in guieval.sentence(*command)
    leave_answer(runs, 108, retrieved([]))
    if importlib.util.find_spec(PACKAGE) is None:
        assert "pip install 'guieval[webarena-verified]'" in guieval.sentence(*command)
    assert "--bench is not for the format webarena-verified" in guieval.sentence(*command, "--bench", "demo")


TAP = "actions:\ntap, <point> 500 970</point>"
LABELLED = ({"type": "CLICK", "point": [500, 1940]}, {"type": "STOP"}, {"type": "PRESS", "button": "BACK"})
STEPS = [{"screenshot": f"{n}.png", "screenshot_size": [1000, 2000], "action": each} for n, each in enumerate(LABELLED)]
LABELS = {"episode_id": "10270", "instruction": "What is the capital of Brazil?", "frame": "pixels", "steps": STEPS}


def files(folder: Path, *replies: str) -> Path:
    """A file of replies to the steps of an episode, in the format that GUICourse publishes, beside the labels."""
    write_lines(folder / "episodes.jsonl", [LABELS])
    rows = [guicourse_row(reply, f"uid_episode_10270_step_{index:02}") for index, reply in enumerate(replies)]
    file = folder / "minicpm_guiagent_smartphone.json"
    file.write_text(json.dumps(rows), encoding="utf-8")
    return file


@every_row(
    ("uid", "episode", "step"),
    [
        ("uid_episode_10270193012375700035_step_01", "10270193012375700035", 1),
        ("uid_record_03567_step_00", "03567", 0),
        ("uid_image_950c428d-6548-4b06-80bd-665ddc069ebe_qa_01", "image_950c428d-6548-4b06-80bd-665ddc069ebe_qa_01", 0),
        ("uid_img_C4web50k-3_275496228-split-4_text2bbox_00", "img_C4web50k-3_275496228-split-4_text2bbox_00", 0),
    ],
)
def test_a_uid_names_the_step(uid: str, episode: str, step: int, tmp_path: Path) -> None:
    (row,) = read_predictions(write_lines(tmp_path / "f.jsonl", [guicourse_row(TAP, uid)])).rows
    assert (row.episode_id, row.step_index, row.response, row.task, row.benchmark) == (episode, step, TAP, None, "")


def test_replies_are_read_by_the_models_adapter_and_judged_by_the_benchmarks_labels(tmp_path: Path) -> None:
    file = files(tmp_path, TAP, "actions:\nanswer, task complete", "actions:\ntap, <point> 1 1</point>")
    run = import_predictions(file, tmp_path / "run", bench="episodes", data=tmp_path, model="minicpm-gui").directory
    assert evaluate_run(run)["exact match"].count == evaluate_run(run, reparse=True)["exact match"].count == 2


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    file = files(tmp_path, TAP)
    with pytest.raises(UsageError, match="names no benchmark and has no labels: add --bench and --data"):
        import_predictions(file, tmp_path / "run")
    with pytest.raises(UsageError, match="has raw responses; add --model"):
        import_predictions(file, tmp_path / "run", bench="episodes", data=tmp_path)

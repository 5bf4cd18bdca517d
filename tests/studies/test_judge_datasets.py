"""Judges against people's labels: the published formats, the correction of success rates, and the command."""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from guieval.playground.mock_server import MockServer, MockSettings
from guieval.studies.judges.agreement import LabelsAndVerdicts
from guieval.studies.judges.cases import shown
from guieval.studies.judges.correction import corrected, ends
from guieval.studies.judges.datasets import read_labelled
from tests.command_line import CommandLine
from tests.conftest import REPOSITORY

RUN = REPOSITORY / "tests" / "pinned" / "runs" / "phone-careful"
PICTURE = next((RUN / "screens").iterdir()).read_bytes()


def trace(number: int, label: str, **fields: Any) -> dict[str, Any]:
    """A trajectory as OSReward's ``example_trace.json`` has it, with an action in its own words."""
    about = {"trace_id": f"trace_{number}", "task_id": f"Task_{number // 2}", "platform": "Desktop", "agent": "a"}
    step = {"raw_response": None, "coordinate2": None, "screenshot_path": "screenshots/step_0000.png"}
    steps: list[dict[str, Any]] = [
        {**step, "step_index": 0, "thought": "Open it.", "action": "click(coordinate=[150, 608])", "coordinate": [150, 608]},
        {**step, "step_index": 1, "thought": None, "action": "terminate(status='success')", "coordinate": None},
    ]
    steps[0]["meta_action"], steps[1]["meta_action"] = "click", "terminate"
    rest = {"instruction": "Turn on Dark Mode.", "trajectory": steps, "trajectory_length": 2, "human_label": label}
    return {**about, **rest, **fields}


def os_reward(folder: Path, labels: Sequence[str]) -> Path:
    (folder / "screenshots").mkdir(parents=True)
    (folder / "screenshots" / "step_0000.png").write_bytes(PICTURE)
    for number, label in enumerate(labels):
        (folder / f"{number}.json").write_text(json.dumps(trace(number, label)))
    return folder


def parquet(file: Path, rows: list[dict[str, Any]]) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    file.parent.mkdir(parents=True, exist_ok=True)
    pytest.importorskip("pyarrow.parquet").write_table(pyarrow.Table.from_pylist(rows), file, row_group_size=1)


def test_os_reward(tmp_path: Path) -> None:
    """From JSON and from Parquet alike; a frame that is missing is not shown, and the ring is where the action is."""
    found = read_labelled(os_reward(tmp_path / "json", ["SUCCESS", "FAIL"]))
    first, second = found.cases
    assert (first.id, first.task, first.label, first.claimed, second.label) == ("trace_0", "Task_0", True, True, False)
    assert [(step.action, step.thought, step.point) for step in first.steps][1] == ("terminate(status='success')", "", None)
    assert shown(first.steps[1]).data == PICTURE
    ringed, plain = (shown(first.steps[0], ring=ring) for ring in (True, False))
    assert plain.data == PICTURE and ringed.data != PICTURE and ringed.size == plain.size
    assert shown(first.steps[1], ring=True, jpeg=75).format == "jpeg"
    frame = {"bytes": PICTURE, "path": "step_0000.png"}
    for subset, labels in (("full", ["SUCCESS", "FAIL"]), ("hard", ["FAIL"])):
        rows = [
            trace(number, label, frame_semantics="before", screenshots=[None, frame]) for number, label in enumerate(labels)
        ]
        parquet(tmp_path / "hub" / "parquet" / subset / "0.parquet", rows)
    same = read_labelled(tmp_path / "hub" / "parquet" / "full").cases
    assert [case._replace(steps=()) for case in same] == [case._replace(steps=()) for case in found.cases]
    assert same[1].steps[0].screenshot is None and shown(same[1].steps[1]).data == PICTURE


def test_cua_verifier_bench(tmp_path: Path) -> None:
    """Most people's vote is the label; a tie is left out; screenshots may be fewer or more than actions, or none."""
    log = [{"action": "web_surfer", "arguments": {"action": "left_click", "thoughts": "Look.", "x": 1}, "url": "http://a/"}]
    row = {"instruction": "Find it.", "init_url": "", "final_answer": "42", "is_aborted": False, "uv_outcome_success": 1}
    rows = [
        {
            **row,
            "task_id": "a--1",
            "web_surfer_log": json.dumps(log[0]) + "\n",
            "screenshots": [{"bytes": PICTURE, "path": None}] * 2,
        },
        {**row, "task_id": "b--1", "web_surfer_log": "", "final_answer": "<no_answer>", "screenshots": []},
        {**row, "task_id": "c--1", "web_surfer_log": "", "screenshots": []},
        {**row, "task_id": "d--1", "web_surfer_log": "", "screenshots": []},
    ]
    votes = {"a--1": ["Correct"], "b--1": ["Correct", "Incorrect", "Incorrect"], "c--1": ["Correct", "Incorrect"]}
    said = [
        {"task_id": task, "annotator": f"Judge{number}", "human_judgement_outcome": vote}
        for task, each in votes.items()
        for number, vote in enumerate(each)
    ]
    parquet(tmp_path / "trajectories" / "internal-00000-of-00001.parquet", rows)
    parquet(tmp_path / "annotations" / "internal-00000-of-00001.parquet", said)
    found = read_labelled(tmp_path)
    first, second = found.cases
    assert [(case.id, case.label, case.answer, case.claimed, case.own) for case in found.cases] == [
        ("internal/a--1", True, "42", True, True),
        ("internal/b--1", False, None, False, True),
    ]
    assert [(step.action, step.thought, step.url) for step in first.steps] == [
        ("left_click(x=1)", "Look.", "http://a/"),
        ("", "", ""),
    ]
    assert shown(first.steps[1]).data == PICTURE and len(second.steps) == 0
    left_out = [sentence.removeprefix("trajectories left out: ") for sentence in found.left_out]
    assert left_out == ["1 with a tie of people's votes", "1 without an annotation"]


def test_agent_reward_bench(tmp_path: Path) -> None:
    """The first annotation counts, and neither "Unsure" nor an annotation without its trajectory."""
    fields = ("annotator_name", "benchmark", "task_id", "model_name", "exp_name", "trajectory_success")
    lines = [
        ("A", "workarena", "workarena.l2.1", "M", "M_on_w", "Successful"),
        ("B", "workarena", "workarena.l2.1", "M", "M_on_w", "Unsuccessful"),
        ("A", "webarena", "webarena.2", "M", "M_on_w", "Unsure"),
        ("A", "webarena", "webarena.3", "M", "M_on_w", "Unsuccessful"),
    ]
    with (tmp_path / "annotations.csv").open("w", newline="") as stream:
        csv.writer(stream).writerows([fields, *lines])
    step = {
        "num": 0,
        "reasoning": "I see it.",
        "url": "http://a/",
        "action": "click('12')",
        "screenshot_path": "trajectories/a.png",
    }
    last = {**step, "num": 1, "action": "send_msg_to_user('42 pages')", "reasoning": None}
    file = tmp_path / "trajectories" / "cleaned" / "workarena" / "M" / "M_on_w" / "workarena.l2.1.json"
    file.parent.mkdir(parents=True)
    (tmp_path / "trajectories" / "a.png").write_bytes(PICTURE)
    file.write_text(json.dumps({"goal": "Count.", "steps": [step, last], "summary_info": {"cum_reward": 0.0}}))
    found = read_labelled(tmp_path)
    (case,) = found.cases
    assert case.second is False
    assert (case.label, case.own, case.claimed, case.answer, case.platform, case.agent) == (
        *(True, False, True, "42 pages", "workarena++", "M"),
    )
    assert [step.action for step in case.steps] == ["click('12')", "send_msg_to_user('42 pages')"]
    assert shown(case.steps[0]).data == PICTURE
    left_out = [sentence.removeprefix("trajectories left out: ") for sentence in found.left_out]
    assert left_out == ["1 with the label Unsure", "1 without a trajectory"]


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "a label": ({"0.json": trace(0, "DONE")}, "field human_label: expected SUCCESS or FAIL, got 'DONE'"),
    "one id twice": ({"0.json": trace(0, "FAIL"), "1.json": trace(0, "FAIL")}, "two trajectories have the id 'trace_0'"),
    "nothing": ({"0.json": {}}, "has no labelled trajectories: expected OSReward"),
    "no steps": ({"0.json": trace(0, "FAIL", trajectory=None)}, "field trajectory: expected a list, got None"),
}


def test_a_wrong_data_set_is_refused_in_a_sentence(tmp_path: Path, guieval: CommandLine) -> None:
    missing = []
    for name, (files, sentence) in WRONG.items():
        (tmp_path / name).mkdir()
        for file, values in files.items():
            (tmp_path / name / file).write_text(json.dumps(values))
        if sentence not in guieval.sentence("study", "judges", tmp_path / name):
            missing.append(name)
    assert not missing, missing
    assert "does not exist" in guieval.sentence("study", "judges", tmp_path / "none")


RATES = [
    (0.3, 0.8, 0.9, 100, 60, 60),
    (0.05, 0.9, 0.85, 150, 40, 100),
    (0.9, 0.85, 0.7, 60, 100, 40),
    (0.281, 0.816, 0.855, 300, 395, 1012),
    (0.0, 0.9, 0.9, 100, 50, 50),
    (0.98, 0.95, 0.9, 100, 100, 30),
]
"""The success rate, the judge's sensitivity and specificity, and over how many trajectories each is measured."""


def test_a_judge_with_known_errors_is_recovered() -> None:
    """The interval has the true rate in at least 93 % of 4,000 experiments."""
    random = np.random.default_rng(0)
    covered = {}
    for rate, sensitivity, specificity, n, n1, n0 in RATES:
        said = random.binomial(n, rate * sensitivity + (1 - rate) * (1 - specificity), 4000) / n
        of = (random.binomial(n1, sensitivity, 4000) / n1, n1, random.binomial(n0, specificity, 4000) / n0, n0)
        low, high = ends(said, n, *of)
        covered[rate] = float(((low <= rate) & (rate <= high)).mean())
    assert {rate: share for rate, share in covered.items() if share < 0.93} == {}


def sampled(random: np.random.Generator, rate: float, tasks: int, each: int, errors: tuple[float, float]) -> LabelsAndVerdicts:
    """Trajectories of tasks that are easy or hard, and a judge that errs more on one task than on another."""
    easy = random.beta(rate, 1 - rate, tasks).repeat(each)
    label = random.random(len(easy)) < easy
    hit, miss = (random.beta(4 * share, 4 * (1 - share), tasks).repeat(each) for share in errors)
    said = np.where(label, random.random(len(easy)) < hit, random.random(len(easy)) >= miss)
    return LabelsAndVerdicts(label, said, np.arange(tasks).repeat(each), 0)


def test_correction_with_several_trajectories_of_a_task() -> None:
    """They are not independent of each other; taken as if they were, the interval covers 81 %."""
    random = np.random.default_rng(1)
    found = [corrected(sampled(random, 0.4, 40, 4, (0.85, 0.9)), sampled(random, 0.4, 60, 4, (0.85, 0.9))) for _ in range(400)]
    assert np.mean([each.low <= 0.4 <= each.high for each in found if each.low is not None and each.high is not None]) >= 0.93
    assert abs(np.mean([each.value or 0.0 for each in found]) - 0.4) < 0.01
    guessing = LabelsAndVerdicts(np.arange(40) % 2 == 0, np.arange(40) % 4 < 2, np.arange(40), 0)
    assert corrected(guessing, guessing).value is None


def test_the_command_compares_resumes_and_corrects(tmp_path: Path, guieval: CommandLine) -> None:
    data = os_reward(tmp_path / "data", ["SUCCESS"] * 6 + ["FAIL"] * 6)
    run = shutil.copytree(RUN, tmp_path / "run")
    with MockServer(MockSettings(policy="fixed", reply="Status: success", served_models=("m",))) as server:
        url = ("--base-url", server.base_url)
        asked = ("study", "judges", data, "--judge", "ui-s1", "--repeats", "2", *url, "--json")
        first, again = guieval(*asked), guieval(*asked)
        assert first.code == again.code == 0 and first.out == again.out and server.stats()["requests"] == 24
        assert guieval("study", "judge", run, *url).code == 0
    found = json.loads(first.out)["judges"]["ui-s1, m"]
    assert (found["sensitivity"]["value"], found["specificity"]["value"], found["self_consistency"]["n"]) == (1.0, 0.0, 12)
    assert found["cost"]["answers"] == 24 and json.loads(first.out)["labels"] == "OSReward"
    both = json.loads(guieval("study", "judges", data, "--run", run, "--json").out)
    assert both["judges"].keys() == {"ui-s1, m", "rule-claim", "rule-answer", "rule-success"}
    rates = {each["judge"]: each for each in both["run"]}
    assert rates["ui-s1, m"]["judged"]["value"] == 1.0 and rates["ui-s1, m"]["corrected"]["value"] is None
    assert rates["the environment"]["judged"]["value"] == pytest.approx(4 / 6)
    printed = guieval("study", "judges", data, "--run", run, "--reference", "agentrewardbench-judges").out
    assert "Success rates of the run" in printed and "AER-C  " in printed and "cost of ui-s1, m: " in printed

"""The page's data on a step's many samples."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from guieval.actions import Action, Type
from guieval.journal import ROLLOUT
from guieval.reports.viewer.pictures import Pictures
from guieval.reports.viewer.reading import shown_run
from guieval.reports.viewer.writing import write_report
from tests.reports.viewer.made_run import PROTOCOL, at, record, report, task, write_run
from tests.reports.viewer.test_writing import read

TEA = [Type(text="green tea")] * 3 + [Type(text="green tea.")] + [Type(text="something else entirely")]
ANSWERS: list[Action | None] = [*[at(500, 500)] * 5, at(505, 510), at(510, 490), *[at(100, 900)] * 6, *TEA, at(900, 100), None]


def decisions(folder: Path, *answers: Action | None, **more: Any) -> dict[str, Any]:
    report(folder, [record(task(length=1), *answers)], **more)
    run = read(folder, "steps-00000.js")["rows"][0]["runs"][0]
    found: dict[str, Any] = run.get("decisions", {})
    return found


def test_a_single_sample_comes_to_no_decisions(tmp_path: Path) -> None:
    assert decisions(tmp_path, at(500, 500)) == {}


def test_points_come_by_cluster_and_texts_by_prototype_with_counts(tmp_path: Path) -> None:
    found = decisions(tmp_path, *ANSWERS)
    first, second, tea, *rest = found["clusters"]
    assert (first["count"], second["count"], tea["count"]) == (7, 6, 4)
    assert first["points"] == [[500, 500, 5], [505, 510, 1], [510, 490, 1]] and second["points"] == [[100, 900, 6]]
    assert first["prototype"]["type"] == "CLICK" and not first["alone"]
    assert tea["texts"] == [["green tea", 3], ["green tea.", 1]] and tea["different"] == 2 and tea["points"] == []
    assert sorted((each["type"], each["count"], each["alone"]) for each in rest) == [("CLICK", 1, True), ("TYPE", 1, False)]
    assert found["n"] == len(ANSWERS) and found["unparseable"] == 1 and found["failed"] == 0
    assert "radius 70" in found["settings"]


def test_right_answers_are_reported_under_each_protocol(tmp_path: Path) -> None:
    near = [at(500, 600)] * 5  # right under guievalkit, wrong under ui-s1-sop
    found = decisions(tmp_path, at(500, 500), *near, protocols=(PROTOCOL, "ui-s1-sop"))
    assert {each["count"]: each["right"] for each in found["clusters"]} == {5: [5, 0], 1: [1, 1]}


def test_the_rounds_of_a_rollout_are_shown_together_and_of_many_samples_some(tmp_path: Path) -> None:
    of = task(length=1)
    rollout = tmp_path / "rollout"
    write_run(rollout / "a", [record(of, *[at(500, 500)] * 60)])
    write_run(rollout / "b", [record(of, *[at(100, 100)] * 40)])
    rounds = [{"directory": name, "seed": 0} for name in "ab"]
    (rollout / ROLLOUT).write_text(json.dumps({"schema": 1, "rounds": rounds}))
    shown = shown_run(rollout)
    written = write_report(tmp_path / "report", shown, Pictures(None, tmp_path / "report"), [PROTOCOL])
    assert written.notes == ["The samples of 2 rounds are shown together."]
    run = read(tmp_path, "steps-00000.js")["rows"][0]["runs"][0]
    assert len(run["samples"]) == 64 and run["more"] == 36
    assert [each["count"] for each in run["decisions"]["clusters"]] == [60, 40]

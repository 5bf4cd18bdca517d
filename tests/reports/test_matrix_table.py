"""The table of one prediction under every protocol: each protocol's own figures, and what stands beside them."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from guieval.actions import Action, Click, Point
from guieval.reports import matrix_table
from guieval.reports.tables.terminal import rendered
from guieval.scoring.matrix import JudgedAnswers, disagreements, judge_run, on_own_sets
from tests.made_runs import key, record, step, write_run

TARGET = Click(point=Point(500, 500))
NEAR_MISS = Click(point=Point(600, 500))
MISS = Click(point=Point(900, 100))
PROTOCOLS = ("seeclick-official", "guievalkit", "sspro-official")


def answers_of(
    folder: Path,
    predicted: Sequence[Action | None],
    *,
    missing: int = 0,
    protocols: Sequence[str] = PROTOCOLS,
    mode: str = "offline",
) -> JudgedAnswers:
    """A run of one episode of clicks on a button; the ``missing`` last steps are not recorded."""
    length = len(predicted) + missing
    tasks = [step(TARGET, index=index, length=length, targets=[[450.0, 450.0, 550.0, 550.0]]) for index in range(length)]
    records = [record(task, action) for task, action in zip(tasks, predicted, strict=False)]
    return judge_run(write_run(folder / "run", records, plan={key("a"): range(length)}, mode=mode), protocols)


def printed(answers: JudgedAnswers, width: int = 200) -> str:
    return "\n".join(line.plain for line in rendered(matrix_table.matrix_table(on_own_sets(answers)), width))


def cells(text: str, row: str) -> list[str]:
    """The cells of the row of that name."""
    (line,) = [line for line in text.splitlines() if line.startswith(f"{row} ")]
    return re.split(r"\s{2,}", line.strip())[1:]


def test_what_a_protocol_drops_stays_visible(tmp_path: Path) -> None:
    text = printed(answers_of(tmp_path, [TARGET, TARGET, MISS, None], protocols=["guievalkit"]))
    assert cells(text, "exact match") == ["50.00% of 4 [1.6, 98.4]"]
    assert cells(text, "IN_UNIFIED exact match") == ["66.67% of 3 [2.1, 99.0]"]
    assert text.index("exact match") < text.index("IN_UNIFIED")
    of = "IN_UNIFIED type match, IN_UNIFIED exact match: of steps, unparseable, unsupported and missing ones dropped"
    assert of in " ".join(text.split())
    nothing = printed(answers_of(tmp_path / "none", [None, None], protocols=["guievalkit"]))
    assert cells(nothing, "exact match")[0].startswith("0.00% of 2") and cells(nothing, "IN_UNIFIED exact match") == ["-"]


def test_lines_say_which_steps_what_agrees_and_what_is_missing(tmp_path: Path) -> None:
    answers = answers_of(tmp_path, [TARGET, NEAR_MISS], missing=1)
    placed = on_own_sets(answers)
    assert matrix_table.step_lines(placed) == ["data:     all episodes of the run (1)"]
    (line,) = matrix_table.unmeasured_lines(placed)
    assert line == "incomplete: 1 of 3 steps are missing (0 failed, 1 unrecorded) under every protocol"
    assert matrix_table.agreement_lines(answers.columns()) == [
        "agreement: 1 of 3 steps are exact under some of the 3 protocols only",
        "  alike:   seeclick-official, sspro-official",
        "  each by itself: guievalkit",
    ]
    alike = answers_of(tmp_path / "alike", [TARGET, MISS])
    assert matrix_table.agreement_lines(alike.columns()) == ["agreement: the 3 protocols judge all 2 steps alike"]
    assert matrix_table.unmeasured_lines(on_own_sets(alike)) == []
    assert matrix_table.agreement_lines(answers_of(tmp_path / "one", [TARGET], protocols=["guievalkit"]).columns()) == []


def test_a_looser_protocol_would_have_gone_on(tmp_path: Path) -> None:
    placed = on_own_sets(answers_of(tmp_path, [TARGET, NEAR_MISS], missing=2, mode="sop"))
    assert matrix_table.unmeasured_lines(placed) == [
        "incomplete: 2 of 4 steps are missing (0 failed, 2 unrecorded) under guievalkit"
    ]


@pytest.mark.parametrize("name", ["found.jsonl", "found.csv"])
def test_disagreements_as_a_file(tmp_path: Path, name: str) -> None:
    """And the name of an episode is no formula in a spreadsheet."""
    answers = answers_of(tmp_path, [TARGET, NEAR_MISS, None])
    file = tmp_path / name
    (one,) = disagreements(answers.columns(), answers)
    hostile = replace(one, key=one.key._replace(episode_id="=1+1"))
    assert matrix_table.write_disagreements(file, [hostile], answers.protocols) == 1
    if file.suffix == ".csv":
        (row,) = csv.DictReader(file.read_text(encoding="utf-8").splitlines())
        found = [row[name] for name in ("episode_id", "step_index", "guievalkit", "sspro-official")]
        assert found == ["'=1+1", "1", "right", "wrong"]
        assert row["sspro-official: reason"] == "outside every target box"
        predicted = json.loads(row["reference"]), json.loads(row["prediction"])
    else:
        (line,) = file.read_text(encoding="utf-8").splitlines()
        values = json.loads(line)
        assert (values["episode_id"], values["step_index"], values["verdicts"]["guievalkit"]) == ("=1+1", 1, "right")
        assert values["reasons"]["sspro-official"] == "outside every target box"
        predicted = values["reference"], values["prediction"]
    assert predicted == (TARGET.model_dump(mode="json"), NEAR_MISS.model_dump(mode="json"))

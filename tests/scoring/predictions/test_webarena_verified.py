"""Tasks that WebArena-Verified's evaluator has judged: verdicts, groups, damage, and what `guieval score` prints."""

from __future__ import annotations

import json
from pathlib import Path

from guieval.evaluation import ActionEvaluator
from guieval.scoring.matrix.answered_files import answered_file
from guieval.scoring.predictions import read_predictions
from tests.command_line import CommandLine

from .files import judged_row, write_lines

ROWS = [
    judged_row(1),
    judged_row(2, "failure"),
    judged_row(3, "partial_match", sites=["gitlab", "reddit"], task_type="mutate"),
    judged_row(4, "failure", object=False),
    judged_row(5, "error", reason="Network trace file not found"),
    {**{name: judged_row()[name] for name in ("intent", "sites", "task_type", "hard")}, "task_id": 6, "status": "missing"},
]


def test_every_status_has_its_verdict(tmp_path: Path) -> None:
    answered = answered_file(write_lines(tmp_path / "judged.jsonl", ROWS))
    assert (answered.protocol, answered.left_out) == ("environment", 1)
    samples = {task.episode_id: of_task[0] for task, of_task in answered.answers(ActionEvaluator("environment"))}
    verdicts = {task: sample.outcome.verdict for task, sample in samples.items()}
    assert verdicts == {"1": "right", "2": "wrong", "3": "wrong", "4": "unparseable", "5": "infrastructure_failure"}
    assert samples["5"].outcome.reason == "Network trace file not found" and not samples["5"].answered


def test_a_row_states_its_task(tmp_path: Path) -> None:
    read = read_predictions(write_lines(tmp_path / "judged.jsonl", ROWS))
    task = read.rows[2].task
    assert task is not None
    assert task.groups == {"sites": "gitlab, reddit", "task type": "mutate"}
    assert task.extras == {"webarena_verified": "1.2.3", "data": "d652", "evaluator": "35c3"}
    assert (read.unanswered, sum(read.unparseable.values())) == (1, 1)


def test_score_prints_the_success_rate_alone(guieval: CommandLine, tmp_path: Path) -> None:
    file = write_lines(
        tmp_path / "judged.jsonl", [judged_row(number, "success" if number < 3 else "failure") for number in range(4)]
    )
    printed = guieval("score", file).out
    # three of four episodes
    assert "success rate" in printed and "75.00% of 4 [21.1, 99.3]" in printed
    assert "coverage" not in printed and "\ntype match" not in printed
    values = json.loads(guieval("score", file, "--json").out)["runs"][0]
    assert values["summary"]["metrics"]["success rate"]["value"] == 0.75

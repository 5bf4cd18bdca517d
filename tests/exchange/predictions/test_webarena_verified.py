"""Tasks that WebArena-Verified's evaluator has judged become outcomes."""

from __future__ import annotations

from pathlib import Path

import pytest

from guieval.exchange.importing import import_predictions
from guieval.exchange.webarena_verified import judge
from guieval.journal import RunFolder
from tests.command_line import CommandLine

from .files import judged_row

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
    monkeypatch.setattr(judge.Judge, "rows", lambda self, folder: iter(ROWS))
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

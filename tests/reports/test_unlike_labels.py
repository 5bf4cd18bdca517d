"""Runs over the same steps with other labels are never compared, ranked or put into one campaign without a word."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from guieval.actions import Boxes, Press
from guieval.errors import UsageError
from guieval.journal import MANIFEST, RunFolder
from guieval.journal.repeats import Repeats
from guieval.reports.campaign import board_of_campaign, comparison_table
from guieval.reports.comparison import compare_runs
from guieval.reports.comparison_formats import compare_json, headings
from guieval.reports.leaderboards.leaderboard import leaderboard
from guieval.steps import Episode, StepTaskModel
from tests.command_line import CommandLine
from tests.reports.scripted_runs import EPISODES, edited, named
from tests.rows import every_row
from tests.scripted import ACTIONS, ScriptedEngine, make_episode, reply_with, run_scripted

Change = Callable[[StepTaskModel], dict[str, Any]]


def smaller_targets(task: StepTaskModel) -> dict[str, Any]:
    """Every target cut to a pixel."""
    return {"targets": Boxes([[x1, y1, x1 + 1, y1 + 1] for x1, y1, _, _ in task.targets])}


def run_over(directory: Path, change: Change, model: str) -> Path:
    """A run that is right by the labels of the unchanged episodes, over episodes of which ``change`` relabels the first."""
    episodes = [make_episode(name, ACTIONS) for name in EPISODES[:5]]
    first = Episode(steps=tuple(step.model_copy(update=change(step)) for step in episodes[0].steps))
    run_scripted(directory, [first, *episodes[1:]], ScriptedEngine(lambda request: reply_with(request.task.action)))
    with edited(directory / MANIFEST) as manifest:
        named(model)(manifest)
    return directory


def unchanged(task: StepTaskModel) -> dict[str, Any]:
    return {}


@every_row(
    ("change", "reason"),
    [
        (smaller_targets, r"1 shared step with other targets \(scripted/e00#0\)"),
        (lambda task: {"instruction": "another goal"}, r"4 shared steps with other instructions \(scripted/e00#0, .*#3\)"),
        (lambda task: {"alternatives": (Press(button="BACK"),)}, r"4 shared steps with other references"),
        (lambda task: {"elements": Boxes([[0, 0, 1, 1]])}, r"4 shared steps with other elements"),
    ],
)
def test_two_sets_of_labels_are_not_compared(tmp_path: Path, change: Change, reason: str) -> None:
    one, other = run_over(tmp_path / "a", unchanged, "a"), run_over(tmp_path / "b", change, "b")
    with pytest.raises(UsageError, match=reason):
        compare_runs(one, other)
    found = compare_runs(one, other, anyway=True)
    assert len(found.unlike) == 1
    assert any(line.startswith("Warning: unlike runs, compared anyway: ") for line in headings(found))
    with pytest.raises(UsageError, match=f"the labels of .*a' and .*b' differ: {reason}.*--anyway"):
        leaderboard([one, other])
    board = leaderboard([one, other], anyway=True)
    assert [note for note in board.notes if note.startswith("unlike labels, ranked anyway: ")]


def test_a_campaign_names_the_steps_too(tmp_path: Path) -> None:
    one, other = run_over(tmp_path / "a", unchanged, "a"), run_over(tmp_path / "b", smaller_targets, "b")
    with pytest.raises(UsageError, match="other targets"):
        board_of_campaign([one, other], (), (), None)
    assert board_of_campaign([one, other], (), (), None, anyway=True) is not None
    table = comparison_table([("offline", Repeats.of(one), Repeats.of(other))])
    assert table is not None and not table.rows and "with other targets (scripted/e00#0" in table.notes[0]
    table = comparison_table([("offline", Repeats.of(one), Repeats.of(other))], anyway=True)
    assert table is not None and len(table.rows) == 1 and "compared anyway" in table.notes[0]


def test_equal_labels_are_compared_and_the_manifest_names_their_edition(tmp_path: Path) -> None:
    one, other = run_over(tmp_path / "a", unchanged, "a"), run_over(tmp_path / "b", unchanged, "b")
    editions = [RunFolder(each).manifest.benchmark.edition for each in (one, other)]
    assert editions[0] is not None and editions[0] == editions[1] and editions[0].steps == 20
    found = compare_runs(one, other)
    assert found.unlike == ()
    assert found.first.edition == editions[0].model_dump(mode="json") == compare_json(found)["runs"]["A"]["edition"]
    assert not [note for note in leaderboard([one, other]).notes if "labels" in note]


def test_the_commands_refuse_and_have_a_way_out(guieval: CommandLine, tmp_path: Path) -> None:
    one, other = run_over(tmp_path / "a", unchanged, "a"), run_over(tmp_path / "b", smaller_targets, "b")
    for command in (("compare", one, other), ("leaderboard", one, other)):
        assert "1 shared step with other targets" in guieval.sentence(*command)
        assert guieval(*command, "--anyway").code == 0

"""Overlays: further accepted actions in a file of their own, applied to whatever loads the steps."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from guieval.actions import Boxes, Press, Type
from guieval.data.overlays import Overlaid, Overlay, read_overlay
from guieval.errors import DataError, UsageError
from guieval.evaluation import ActionEvaluator
from guieval.journal import RunFolder
from guieval.scoring.score import evaluate_run
from guieval.steps import StepTaskModel
from tests.conftest import REPOSITORY
from tests.rows import every_row
from tests.scripted import ACTIONS, CLICK, ListBenchmark, ScriptedEngine, make_episode, reply_with, run_scripted

BACK = Press(button="BACK")
EPISODES = [make_episode("a", ACTIONS), make_episode("b", ACTIONS[:2])]


def overlay(folder: Path, *lines: dict[str, Any]) -> Overlay:
    file = folder / "more.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return read_overlay(file)


def line(step: int, episode: str = "a", **adds: Any) -> dict[str, Any]:
    return {"episode_id": episode, "step_index": step, **adds}


def steps(benchmark: Overlaid) -> dict[str, StepTaskModel]:
    return {f"{task.episode_id}{task.step_index}": task for episode in benchmark for task in episode.steps}


def test_only_the_named_steps_change_and_only_by_what_is_added(tmp_path: Path) -> None:
    added = overlay(
        tmp_path,
        line(0, alternatives=[{"type": "PRESS", "button": "BACK"}], note="both close it"),
        line(0, alternatives=[{"type": "PRESS", "button": "BACK"}, CLICK.model_dump(mode="json")], targets=[[0, 0, 9, 9]]),
        line(1, text_patterns=["green +leaf", "TEA"]),
    )
    plain = {f"{task.episode_id}{task.step_index}": task for episode in EPISODES for task in episode.steps}
    overlaid = steps(Overlaid(ListBenchmark(EPISODES), added))
    assert {name for name in overlaid if overlaid[name] != plain[name]} == {"a0", "a1"}
    assert overlaid["a0"].alternatives == (BACK,)  # given twice, and once as the reference itself, it is still one more
    assert overlaid["a0"].targets == Boxes([*plain["a0"].targets, (0, 0, 9, 9)])
    assert overlaid["a1"].extras["text_patterns"] == ["green +leaf", "TEA"]
    assert overlaid["a0"].model_copy(update={"alternatives": (), "targets": plain["a0"].targets}) == plain["a0"]
    judge = ActionEvaluator("guievalkit")
    assert judge.evaluate(overlaid["a0"], BACK).exact_match and not judge.evaluate(plain["a0"], BACK).exact_match
    assert judge.evaluate(overlaid["a0"], CLICK).exact_match
    leaf = Type(text="green   leaf")
    assert judge.evaluate(overlaid["a1"], leaf).exact_match and not judge.evaluate(plain["a1"], leaf).exact_match
    assert (added.steps, len(added.sha256)) == (2, 64)


def test_the_documented_lines_are_read(tmp_path: Path) -> None:
    page = (REPOSITORY / "docs" / "concepts" / "denominators.md").read_text(encoding="utf-8")
    lines = re.findall(r"^    (\{.*(?:alternatives|targets).*\})$", page, re.MULTILINE)
    assert len(lines) == 2
    assert overlay(tmp_path, *map(json.loads, lines)).steps == 2


def test_a_box_that_the_data_names_twice_stays_so(tmp_path: Path) -> None:
    """A rule that looks at the nearest few boxes must not see others because of an overlay."""
    twice = Boxes([[1, 1, 2, 2], [1, 1, 2, 2]])
    task = EPISODES[0].steps[0].model_copy(update={"targets": twice})
    added = overlay(tmp_path, line(0, targets=[[1, 1, 2, 2], [3, 3, 4, 4], [3, 3, 4, 4]]))
    assert added.apply(task).targets == Boxes([*twice, (3, 3, 4, 4)])


@every_row(
    ("adds", "message"),
    [
        ("", "line 1: a line must add alternatives, targets or text_patt"),
        (', "alternative": []', "line 1, field alternative: is not known .did you"),
        (', "text_patterns": ["("]', r"patterns: '\(' is not a regular expression"),
        (', "text_patterns": ["a{99999999999999}"]', "is not a regular expression"),
        (', "alternatives": [{"type": "TAP"}]', "field alternatives.0.type: expected"),
        (', "alternatives": [{"type": "PRESS", "button": "BAK"}]', "button: expected 'BACK"),
        (', "alternatives": [{"type": "CLICK"}]', r"alternatives\.0\.point: is missing$"),
        (', "targets": [[1, 2, 3]]', "line 1, field targets"),
        (', "targets": "x"', "field targets: boxes must be a list of"),
        (', "step_index": "x", "targets": []', "step_index: expected a whole number .got 'x'."),
    ],
)
def test_a_line_that_cannot_be_read_is_named(tmp_path: Path, adds: str, message: str) -> None:
    file = tmp_path / "more.jsonl"
    file.write_text('{"episode_id": "a", "step_index": 0' + adds + "}")
    with pytest.raises(DataError, match=message):
        read_overlay(file)
    file.write_text("\nnonsense")
    with pytest.raises(DataError, match="line 2: is not JSON"):
        read_overlay(file)


def test_a_step_that_is_not_there_is_named(tmp_path: Path) -> None:
    box: dict[str, Any] = {"targets": [[0, 0, 1, 1]]}
    for lines, message in (
        ([line(0, **box), line(2, "b", **box)], "line 2: episode 'b' has no step 2; its 2 steps are counted from 0"),
        ([line(0, "c", **box)], "line 1: benchmark 'scripted' has no episode 'c'"),
        ([line(0, subset="shop", **box)], "no episode 'shop/a', but one in subset ''"),
    ):
        with pytest.raises(DataError, match=message):
            Overlaid(ListBenchmark(EPISODES), overlay(tmp_path, *lines)).index()
    with pytest.raises(UsageError, match="cannot be read"):
        read_overlay(tmp_path / "none.jsonl")
    (tmp_path / "empty.jsonl").write_text("\n")
    with pytest.raises(UsageError, match="adds nothing"):
        read_overlay(tmp_path / "empty.jsonl")


def test_a_stored_run_is_scored_again_with_an_overlay(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run_scripted(run, EPISODES, ScriptedEngine(lambda request: reply_with(BACK)))
    back: dict[str, Any] = {"alternatives": [BACK.model_dump(mode="json")]}
    added = overlay(tmp_path, line(0, **back), line(0, "elsewhere", **back))
    before, after = evaluate_run(run), evaluate_run(run, overlay=added)
    assert (before.summary.metrics["exact match"].count, after.summary.metrics["exact match"].count) == (0, 1)
    assert after.notes == ("1 of the 2 steps that the overlay adds to are recorded in this run",)
    assert all(record.task.alternatives == () for record in RunFolder(run).records)  # the journal is as it was
    assert "overlay" not in RunFolder(run).manifest.to_json()
    with pytest.raises(DataError, match="line 1: episode 'b' has no step 2"):
        evaluate_run(run, overlay=overlay(tmp_path, line(2, "b", targets=[[0, 0, 1, 1]])))

"""MobiBench: its layouts, several accepted actions, and its scorer's rules by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from guieval.actions import DIRECTIONS, Action, Click, LongPress, Open, Point, Press, Scroll, Stop, Type, Wait
from guieval.errors import DataError
from guieval.evaluation import ActionEvaluator
from guieval.registry import load_benchmark
from guieval.steps import Episode
from tests.rows import every_row

NAME = "mobi-bench"
TAP = {"type": "Click", "index": 22, "bounds": "[466,2148][613,2295]", "params": {}, "default": True}
"""An accepted action as a sample of the authors has it."""
BACK = {"type": "Navigate Back", "index": -1, "bounds": None, "params": {}, "default": False}


def write(task: Path, *steps: list[dict[str, Any]], goal: str | None = "Record a clip\n") -> None:
    task.mkdir(parents=True)
    for index, answers in enumerate(steps):
        (task / f"{index}_answers.json").write_text(json.dumps(answers), encoding="utf-8")
        Image.new("RGB", (1080, 2400)).save(task / f"{index}.png")
    if goal is not None:
        (task / "instruction.txt").write_text(goal, encoding="utf-8")


def episodes_of(root: Path) -> list[Episode]:
    return list(load_benchmark(NAME, root))


def test_the_default_action_is_the_reference_and_the_others_are_alternatives(tmp_path: Path) -> None:
    other = {**TAP, "bounds": "[0,0][108,240]", "default": False}
    write(tmp_path / "Recorder" / "1", [BACK, other, TAP], [{"type": "Finish", "default": True}])
    (episode,) = episodes_of(tmp_path)
    first, last = episode.steps
    assert first.action == Click(point=Point(539.5 / 1.08, 2221.5 / 2.4))
    assert first.alternatives == (Press(button="BACK"), Click(point=Point(50, 50)))
    assert [tuple(box) for box in first.targets] == [
        pytest.approx((466 / 1.08, 2148 / 2.4, 613 / 1.08, 2295 / 2.4)),
        pytest.approx((0, 0, 100, 100)),
    ]
    assert (first.instruction, first.groups, first.key.episode_id) == ("Record a clip", {"app": "Recorder"}, "Recorder/1")
    assert first.extras["accepted"] == [TAP, BACK, other]
    assert last.action == Stop() and last.screenshot == "Recorder/1/1.png"


def test_what_the_page_of_labels_does_not_show(tmp_path: Path) -> None:
    write(tmp_path / "task_1", [{"type": "Open App", "params": {"app": "Clock"}}], [{"type": "Swipe"}])
    (episode,) = episodes_of(tmp_path)
    opened, swiped = episode.steps
    assert (opened.action, opened.alternatives) == (Open(app="Clock"), ())
    assert [swiped.action, *swiped.alternatives] == [Scroll(point=Point(500, 500), direction=way) for way in DIRECTIONS]
    assert opened.groups == {} and opened.key.episode_id == "task_1"


@every_row(("goal", "words"), [(None, "open the clock"), (" \n", "open the clock"), ("Tell\r\nthe time", "Tell the time")])
def test_the_goal_is_the_instruction_or_else_the_name_of_the_folder(goal: str | None, words: str, tmp_path: Path) -> None:
    write(tmp_path / "dataset" / "Clock" / "open_the_clock", [BACK], goal=goal)
    (episode,) = episodes_of(tmp_path)
    assert episode.steps[0].instruction == words


def test_tasks_are_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    for task in ("B/10", "B/9", "A/100", "A/extra"):
        write(tmp_path / task, [BACK])
    assert [episode.key.episode_id for episode in episodes_of(tmp_path)] == ["A/100", "A/extra", "B/9", "B/10"]


def test_damage_is_reported(tmp_path: Path) -> None:
    write(tmp_path / "A" / "1", [TAP], [TAP], [TAP])
    (tmp_path / "A" / "1" / "1_answers.json").unlink()
    with pytest.raises(DataError, match=r"there are 2 steps, but no 1_answers\.json"):
        load_benchmark(NAME, tmp_path).index()
    (tmp_path / "A" / "1" / "1_answers.json").write_text("[]")
    with pytest.raises(DataError, match=r"1_answers\.json: expected a list of accepted actions, got \[\]"):
        episodes_of(tmp_path)


@every_row(
    ("answer", "problem"),
    [
        ({**TAP, "bounds": "[613,2295][466,2148]"}, r"action 0, field bounds: expected \[x1,y1\]\[x2,y2\]"),
        ({**TAP, "default": 1}, "action 0, field default: expected true or false, got 1"),
        ({"type": "OpenApp", "params": {}}, "action 0, field params, field app: is missing"),
    ],
)
def test_a_damaged_answer_is_reported(answer: dict[str, Any], problem: str, tmp_path: Path) -> None:
    write(tmp_path / "task_1", [answer])
    with pytest.raises(DataError, match=rf"0_answers\.json, {problem}"):
        episodes_of(tmp_path)


@every_row(
    ("answers", "action", "right"),
    [
        ([TAP], Click(point=Point(613 / 1.08, 2148 / 2.4)), True),  # the border counts
        ([TAP], Click(point=Point(613.9 / 1.08, 2148 / 2.4)), True),  # cut to whole pixels
        ([TAP], Click(point=Point(614 / 1.08, 2148 / 2.4)), False),
        ([TAP], LongPress(point=Point(500, 925)), True),
        ([{**TAP, "type": "Long Click"}], Click(point=Point(500, 925)), False),
        ([BACK, TAP], Press(button="BACK"), True),
        ([BACK], Press(button="HOME"), False),
        ([TAP], Wait(), False),
        ([{"type": "Scroll"}], Scroll(point=Point(100, 100), direction="left"), True),
        ([{"type": "OpenApp", "params": {"app": "Clock"}}], Open(app="Maps"), True),
        ([{"type": "Finish"}], Stop(status="impossible"), True),
        ([{"type": "Input", "params": {"text": "Green Tea"}}], Type(text=" green tea"), True),
        ([{"type": "Input", "params": {"text": "Green Tea"}}], Type(text="green"), False),
    ],
)
def test_the_authors_rules(answers: list[dict[str, Any]], action: Action, right: bool, tmp_path: Path) -> None:
    write(tmp_path / "task_1", answers)
    (episode,) = episodes_of(tmp_path)
    assert ActionEvaluator(NAME).evaluate(episode.steps[0], action).exact_match is right

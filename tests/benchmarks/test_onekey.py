"""Benchmarks of phones whose files name keys, or several accepted actions: OneKey and Mobi-Bench."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from guieval.actions import DIRECTIONS, Action, Click, LongPress, Open, Point, Press, Scroll, Stop, Type, Wait
from guieval.errors import DataError
from guieval.evaluation import ActionEvaluator
from guieval.registry import load_benchmark
from guieval.steps import Episode, StepOutcome, StepTaskModel
from tests.rows import every_row

END = [{"action": "COMPLETE", "params": {}, "next": "#"}]


def move(action: str, following: str = "#", **params: Any) -> dict[str, Any]:
    return {"action": action, "params": params, "next": following}


def write(root: Path, states: dict[str, Any], *, name: str = "case", images: tuple[str, ...] = (), **overview: Any) -> Path:
    (root / name).mkdir(parents=True, exist_ok=True)
    about = {"instruction": "打开应用", "app": "应用", "screen_shape": [480, 1056], **overview}
    (root / name / "ref.json").write_text(json.dumps({"case_overview": about, **states}), encoding="utf-8")
    for image in images:
        Image.new("RGB", (480, 1056), "white").save(root / name / image)
    return root


def steps_of(root: Path) -> tuple[StepTaskModel, ...]:
    (episode,) = load_benchmark("onekey", root)
    return episode.steps


def one(tmp_path: Path, *moves: dict[str, Any]) -> StepTaskModel:
    return steps_of(write(tmp_path, {"0": list(moves)}))[0]


def judge(step: StepTaskModel, action: Any) -> StepOutcome:
    return ActionEvaluator("onekey").evaluate(step, action)


def test_the_first_accepted_actions_are_the_path(tmp_path: Path) -> None:
    states = {
        "0": [move("OPEN", "1", app="应用")],
        "1": [move("TYPE", "3-1", text="曲"), move("CLICK", "2", x=[100, 300], y=[200, 400])],
        "2": [move("TYPE", "3-1", text="曲")],
        "3-1": [move("CLICK", "4", x=[0, 10], y=[990, 1000]), move("COMPLETE")],
        "4": END,
    }
    steps = steps_of(write(tmp_path, states, images=("0.webp", "1.png", "2.png", "3-1.jpg", "9.png")))
    assert [step.extras["state"] for step in steps] == ["0", "1", "3-1", "4"]
    assert [step.screenshot for step in steps] == ["case/0.webp", "case/1.png", "case/3-1.jpg", "case/4.png"]
    assert [step.action for step in steps] == [Open(app="应用"), Type(text="曲"), Click(point=Point(5, 995)), Stop()]
    assert steps[1].alternatives == (Click(point=Point(200, 300)),)
    assert steps[1].targets.array.tolist() == [[100, 200, 300, 400]]
    assert steps[1].extras["accepted"] == states["1"]
    assert steps[2].alternatives == (Stop(),)
    assert steps[0].groups == {"app": "应用"}
    assert steps[0].screenshot_size == (480, 1056)


@every_row("first", ["0-0", "1-1"])
def test_an_episode_may_begin_at_other_states(tmp_path: Path, first: str) -> None:
    steps = steps_of(write(tmp_path, {first: [move("OPEN", "2", app="应用")], "2": END, "0": END}))
    assert [step.extras["state"] for step in steps] == [first, "2"]
    assert steps_of(write(tmp_path, {"0": END[0]}))[0].action == Stop()  # without a list


@every_row(
    ("pattern", "example", "accepted", "refused"),
    [
        ("正则 .*三体.*", "三体", ["三体", "搜索三体有声剧", "三体\n全集"], ["三", "", "三 体"]),
        ("正则 窑村干锅猪蹄.*", "窑村干锅猪蹄", ["窑村干锅猪蹄（科技大学店）"], ["干锅猪蹄", "去窑村干锅猪蹄"]),
        ("正则 ^国际.*中心", "国际中心", ["国际医学中心", "国际中心二楼"], ["西安国际中心", "国际"]),
        ("正则 ^中心$", "中心", ["中心"], ["中心二楼"]),
        (".*国际医学中心", ".*国际医学中心", [".*国际医学中心"], ["西安国际医学中心"]),
        ("采莲曲", "采莲曲", ["采莲曲"], ["采莲", "采莲曲 "]),
    ],
)
def test_typed_texts(tmp_path: Path, pattern: str, example: str, accepted: list[str], refused: list[str]) -> None:
    step = one(tmp_path, move("TYPE", text=pattern))
    assert step.action == Type(text=example)
    assert ("text_patterns" in step.extras) is ("正则" in pattern)
    assert [text for text in [example, *accepted] if not judge(step, Type(text=text)).exact_match] == []
    assert [text for text in refused if judge(step, Type(text=text)).exact_match] == []


@every_row(
    ("params", "directions"),
    [
        ({}, list(DIRECTIONS)),
        ({"x": [500, 500], "y": [800, 200]}, list(DIRECTIONS)),
        ({"x": [500, 480], "y": [800, 200], "is_precise": False}, ["up"]),
        ({"x": [100, 900], "y": [500, 510], "is_precise": True}, ["right"]),
    ],
)
def test_scrolls(tmp_path: Path, params: dict[str, Any], directions: list[str]) -> None:
    step = one(tmp_path, move("SCROLL", **params))
    assert [each.direction for each in (step.action, *step.alternatives) if isinstance(each, Scroll)] == directions


@every_row(
    ("states", "message"),
    [
        ({"0": [move("OPEN", "1", app="a")]}, r"state '0', action 0, field next: there is no state '1'"),
        ({"0": [move("OPEN", "1", app="a")], "1": [move("OPEN", "0", app="a")]}, "lead back to state '0' and never to the end"),
        ({"0": []}, "field 0: expected a list of accepted actions"),
        ({}, "field 0: is missing"),
        ({"0": [move("SHAKE")]}, "field action: expected CLICK, TYPE, OPEN, COMPLETE or SCROLL, got 'SHAKE'"),
        ({"0": [move("CLICK", x=[300, 300], y=[1, 2])]}, "field params, field x: expected a range"),
        ({"0": [move("CLICK", x=[1, 2], y=[1, 1001])]}, "field params, field y: expected a range"),
        ({"0": [move("TYPE", text="正则 a|b")]}, "field text: expected a pattern of literal characters and '.*'"),
        ({"0": [move("SCROLL", x=[1, 1], y=[1, 1], is_precise=True)]}, "field x: expected a path"),
    ],
)
def test_an_unreadable_graph_is_named(tmp_path: Path, states: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=rf"case/ref\.json.*{message}"):
        steps_of(write(tmp_path, states))
    with pytest.raises(DataError, match="screen_shape: expected a width and a height in pixels"):
        steps_of(write(tmp_path, {"0": END}, screen_shape=[480.5, 1056]))


@every_row("inner", ["test_data/offline", "offline"])
def test_the_folder_around_is_taken_too(tmp_path: Path, inner: str) -> None:
    write(tmp_path / inner, {"0": END}, images=("0.png",))
    assert steps_of(tmp_path)[0].screenshot == f"{inner}/case/0.png"


def test_the_starter_data(shared_data: Path) -> None:
    benchmark = load_benchmark("onekey", shared_data / "zte_onekey")
    episodes = {episode.key.episode_id: episode for episode in benchmark}
    lengths = {name.split("_")[1]: len(episode) for name, episode in episodes.items()}
    assert lengths == {"bilibili": 7, "kuaishou": 10, "quonekey": 15, "tengxunshipin": 8, "ximalaya": 8}
    steps = [step for episode in episodes.values() for step in episode.steps]
    assert Counter(step.action.type for step in steps) == {"CLICK": 32, "TYPE": 6, "OPEN": 5, "STOP": 5}
    assert sum(1 + len(step.alternatives) for step in steps) == 54
    searched = episodes["step_ximalaya_onekey_0001"].steps[4]
    assert searched.action == Type(text="三体")
    assert judge(searched, Type(text="三体多人有声剧")).verdict == "right"
    for step in steps:
        assert (benchmark.root / step.screenshot).is_file()
        for accepted in (step.action, *step.alternatives):
            assert judge(step, accepted).verdict == "right"


NAME = "mobi-bench"
TAP = {"type": "Click", "index": 22, "bounds": "[466,2148][613,2295]", "params": {}, "default": True}
"""An accepted action as a sample of the authors has it."""
BACK = {"type": "Navigate Back", "index": -1, "bounds": None, "params": {}, "default": False}


def write_mobi(task: Path, *steps: list[dict[str, Any]], goal: str | None = "Record a clip\n") -> None:
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
    write_mobi(tmp_path / "Recorder" / "1", [BACK, other, TAP], [{"type": "Finish", "default": True}])
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
    write_mobi(tmp_path / "task_1", [{"type": "Open App", "params": {"app": "Clock"}}], [{"type": "Swipe"}])
    (episode,) = episodes_of(tmp_path)
    opened, swiped = episode.steps
    assert (opened.action, opened.alternatives) == (Open(app="Clock"), ())
    assert [swiped.action, *swiped.alternatives] == [Scroll(point=Point(500, 500), direction=way) for way in DIRECTIONS]
    assert opened.groups == {} and opened.key.episode_id == "task_1"


@every_row(("goal", "words"), [(None, "open the clock"), (" \n", "open the clock"), ("Tell\r\nthe time", "Tell the time")])
def test_the_goal_is_the_instruction_or_else_the_name_of_the_folder(goal: str | None, words: str, tmp_path: Path) -> None:
    write_mobi(tmp_path / "dataset" / "Clock" / "open_the_clock", [BACK], goal=goal)
    (episode,) = episodes_of(tmp_path)
    assert episode.steps[0].instruction == words


def test_tasks_are_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    for task in ("B/10", "B/9", "A/100", "A/extra"):
        write_mobi(tmp_path / task, [BACK])
    assert [episode.key.episode_id for episode in episodes_of(tmp_path)] == ["A/100", "A/extra", "B/9", "B/10"]


def test_damage_is_reported(tmp_path: Path) -> None:
    write_mobi(tmp_path / "A" / "1", [TAP], [TAP], [TAP])
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
    write_mobi(tmp_path / "task_1", [answer])
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
    write_mobi(tmp_path / "task_1", answers)
    (episode,) = episodes_of(tmp_path)
    assert ActionEvaluator(NAME).evaluate(episode.steps[0], action).exact_match is right

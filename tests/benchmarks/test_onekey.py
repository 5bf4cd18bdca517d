"""The contest's onekey cases: the starter data, graphs in made-up cases, and what is refused."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from guieval.actions import DIRECTIONS, Click, Open, Point, Scroll, Stop, Type
from guieval.errors import DataError
from guieval.evaluation import ActionEvaluator
from guieval.registry import load_benchmark
from guieval.steps import StepOutcome, StepTaskModel
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

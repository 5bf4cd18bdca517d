"""AgentNetBench: the authors' sample, every kind of action in made-up trajectories, and what is refused."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from guieval.actions import Action, Click, Drag, Hotkey, Point, Press, RightClick, Scroll, Type, Unsupported, Wait
from guieval.data.benchmark import ABCBenchmark
from guieval.errors import DataError
from guieval.evaluation import ActionEvaluator
from guieval.registry import load_benchmark
from guieval.steps import StepTaskModel
from tests.rows import every_row

PLACE: dict[str, Any] = {"position": {"x": 0.25, "y": 0.5}}
BOX = {"rel_bbox": [0.2, 0.4, 0.1, 0.2], "abs_bbox": [200, 320, 100, 160]}


def action(kind: str, boxes: list[dict[str, Any]] | None = None, **params: Any) -> dict[str, Any]:
    return {"type": kind, "params": params, "metadata": {} if boxes is None else {"bboxes": boxes}}


def write(
    root: Path, *steps: dict[str, Any], name: str = "t1", size: tuple[int, int] | None = (1000, 800), **more: Any
) -> Path:
    (root / "images").mkdir(parents=True, exist_ok=True)
    listed = []
    for number, step in enumerate(steps):
        listed.append({"step_num": 3 * number, "image": f"{name}_{number}.png", **step})
        if size is not None:
            Image.new("RGB", size, "white").save(root / "images" / f"{name}_{number}.png")
    trajectory = {"task_id": name, "high_level_task_description": "Do it", "steps": listed, **more}
    (root / f"{name}.json").write_text(json.dumps(trajectory), encoding="utf-8")
    return root


def only(root: Path) -> StepTaskModel:
    (episode,) = load_benchmark("agentnetbench", root)
    (step,) = episode.steps
    return step


def step_of(tmp_path: Path, *actions: dict[str, Any], options: list[Any] | None = None) -> StepTaskModel:
    return only(write(tmp_path, {"ground_truth_actions": list(actions), "alternative_options": options or []}))


def key(name: str, *keys: str) -> Unsupported:
    return Unsupported(name=name, arguments={"keys": list(keys)}, device=Hotkey(keys=keys))


@every_row(
    ("actions", "expected"),
    [
        ([action("moveTo", **PLACE), action("click", position={"x": 0.5, "y": 0.5})], Click(point=Point(500, 500))),
        ([action("write", content="Hello")], Type(text="Hello")),
        ([action("write", text="Hello"), action("press", keys=["Return"])], Type(text="Hello\n")),
        ([action("write", text="Hello"), action("hotkey", keys=["enter"])], Type(text="Hello\n")),
        ([action("press", keys=["enter"])], Press(button="ENTER")),
        ([action("press", keys=["esc"])], key("press", "esc")),
        ([action("hotkey", keys=["Ctrl", "F"])], key("hotkey", "ctrl", "f")),
        ([action("wait")], Wait()),
        ([action("scroll", amount=3, **PLACE)], Scroll(point=Point(250, 500), direction="down")),
        ([action("moveTo", **PLACE), action("scroll", amount=-1, **PLACE)], Scroll(point=Point(250, 500), direction="up")),
        ([action("hscroll", amount=-2, **PLACE)], Scroll(point=Point(250, 500), direction="right")),
        (
            [action("rightClick", **PLACE)],
            Unsupported(name="rightClick", arguments={"point": [250.0, 500.0]}, device=RightClick(point=Point(250.0, 500.0))),
        ),
        (
            [action("moveTo", **PLACE), action("dragTo", position={"x": 0.5025, "y": 0.6039})],
            Unsupported(
                name="drag",
                arguments={"start": [250.0, 500.0], "end": [502.5, 603.9]},
                device=Drag(start=Point(250.0, 500.0), end=Point(0.5025 * 1000, 0.6039 * 1000)),
            ),
        ),
        (
            [action("press", keys=["home"]), action("write", text="x")],
            Unsupported(
                name="press+write", arguments={"actions": [{"name": "press", "keys": ["home"]}, {"name": "write", "text": "x"}]}
            ),
        ),
    ],
)
def test_actions(tmp_path: Path, actions: list[dict[str, Any]], expected: Action) -> None:
    step = step_of(tmp_path, *actions)
    assert step.action == expected
    assert ActionEvaluator("agentnetbench").evaluate(step, step.action).verdict == "right"


def test_boxes_are_the_clicks_own(tmp_path: Path) -> None:
    other = action("click", [{"rel_bbox": [0.7, 0.7, 0.1, 0.1]}], position={"x": 0.75, "y": 0.75})
    held = action("rightClick", [{"rel_bbox": [0.0, 0.0, 1.0, 1.0]}], position={"x": 0.9, "y": 0.1})
    click = action("click", [BOX], **PLACE)
    step = step_of(tmp_path, click, options=[[other], [held], [action("write", text="x")], [other], [click]])
    own, others = pytest.approx([200, 400, 300, 600]), pytest.approx([700, 700, 800, 800])
    assert step.targets.array.tolist() == [own, others, others, own]
    assert step.extras["unsupported_boxes"] == [[0, 0, 1000, 1000]]
    assert [each.type for each in step.alternatives] == ["CLICK", "UNSUPPORTED", "TYPE"]
    evaluator = ActionEvaluator("agentnetbench")
    assert evaluator.evaluate(step, Click(point=Point(790, 710))).verdict == "right"
    assert evaluator.evaluate(step, Click(point=Point(900, 100))).verdict == "wrong"
    assert evaluator.evaluate(step, Type(text="X")).verdict == "right"


def test_a_drag_has_boxes_at_its_start_and_its_end(tmp_path: Path) -> None:
    end = {"rel_bbox": [0.7, 0.7, 0.2, 0.2]}
    drag = [action("moveTo", [BOX], **PLACE), action("dragTo", [end], position={"x": 0.75, "y": 0.75})]
    step = step_of(tmp_path, *drag)
    assert step.extras["unsupported_boxes"] == [pytest.approx([200, 400, 300, 600])]
    assert step.extras["drag_end_boxes"] == [pytest.approx([700, 700, 900, 900])]

    def verdict(start: Point | None, end: Point) -> str:
        given = Unsupported(name="left_click_drag", device=Drag(start=start, end=end))
        return ActionEvaluator("agentnetbench").evaluate(step, given).verdict

    assert verdict(Point(210, 590), Point(890, 710)) == "right"
    assert verdict(Point(210, 590), Point(650, 710)) == verdict(Point(110, 590), Point(890, 710)) == "wrong"
    assert verdict(None, Point(890, 710)) == "wrong"


def test_steps_are_numbered_without_gaps_and_tell_what_else_is_known(tmp_path: Path) -> None:
    sentence = {"observation": "o", "thought": "t", "low_level_instruction": "Click it"}
    end = {"ground_truth_actions": [action("terminate", status="success")], "milestone": True, "inner_monologue": sentence}
    about = {"system": "Darwin", "domain": "Daily"}
    write(tmp_path, {"ground_truth_actions": [action("click", **PLACE)]}, end, meta_info=about)
    (episode,) = load_benchmark("agentnetbench", tmp_path)
    first, last = episode.steps
    assert (last.step_index, last.extras["step_num"], last.extras["milestone"], last.extras["thought"]) == (1, 3, True, "t")
    assert (first.low_level_instruction, last.low_level_instruction) == (None, "Click it")
    assert first.groups == about
    assert first.instruction == "Do it"


def test_a_missing_screenshot_leaves_its_size_to_the_boxes(tmp_path: Path) -> None:
    write(tmp_path, {"ground_truth_actions": [action("click", [BOX], **PLACE)]}, size=None)
    assert only(tmp_path).screenshot_size == (1000, 800)
    write(tmp_path, {"ground_truth_actions": [action("write", text="x")]}, size=None)
    with pytest.raises(DataError, match=r"t1.json, step 0, field image: there is no image 'images/t1_0.png'"):
        only(tmp_path)


@every_row(
    ("broken", "message"),
    [
        (action("click", position={"x": 1.2, "y": 0.5}), "step 0, field ground_truth_actions.0., field params, field position"),
        (action("scroll", amount=0, **PLACE), "field amount: expected a number other than 0"),
        (action("scroll", amount=float("nan"), **PLACE), "field amount"),
        (action("terminate", status="gave up"), "field status: expected success, failure or fail, got 'gave up'"),
        (action("write"), "field text: is missing"),
        (action("press", keys=[]), "field keys: expected a list of names of keys"),
    ],
)
def test_an_unreadable_label_is_named(tmp_path: Path, broken: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=rf"t1\.json.*{message}"):
        step_of(tmp_path, broken)


def test_a_damaged_file_can_be_skipped(tmp_path: Path) -> None:
    write(tmp_path, {"ground_truth_actions": [action("wait")]}, name="good")
    (tmp_path / "bad.json").write_text("{", encoding="utf-8")
    write(tmp_path, name="empty")
    benchmark = load_benchmark("agentnetbench", tmp_path)
    with pytest.raises(DataError, match=r"bad\.json: is not JSON"):
        benchmark.index()
    benchmark = benchmark.skipping_damaged()
    assert [episode.key.episode_id for episode in benchmark] == ["good"]
    assert [str(error).split(":")[0].rsplit("/", 1)[-1] for error in benchmark.skipped] == ["bad.json", "empty.json"]


def test_two_tasks_of_one_name_are_refused(tmp_path: Path) -> None:
    write(tmp_path, {"ground_truth_actions": [action("wait")]})
    (tmp_path / "t2.json").write_bytes((tmp_path / "t1.json").read_bytes())
    with pytest.raises(DataError, match=r"t2.json: episode agentnetbench/t1 is already in .*t1.json"):
        load_benchmark("agentnetbench", tmp_path).index()


@every_row("inner", ["single_data", "sample_data"])
def test_the_folder_around_is_taken_too(tmp_path: Path, inner: str) -> None:
    write(tmp_path / inner, {"ground_truth_actions": [action("wait")]})
    assert only(tmp_path).screenshot == f"{inner}/images/t1_0.png"


@pytest.fixture(scope="module")
def sample(shared_data: Path) -> ABCBenchmark:
    return load_benchmark("agentnetbench", shared_data / "agentnetbench")


def test_the_authors_sample(sample: ABCBenchmark) -> None:
    steps = {(step.episode_id, step.extras["step_num"]): step for episode in sample for step in episode.steps}
    (published,) = sample.published
    assert (len(steps), len(sample.index())) == (published.steps, published.episodes) == (54, 5)
    kinds = Counter(step.action.name if isinstance(step.action, Unsupported) else step.action.type for step in steps.values())
    # The README counts 30 clicks, 7 writes, 5 ends, 2 scrolls, 1 press (of enter), 6 hotkeys, 1 right click, 2 drags.
    assert kinds == {"CLICK": 30, "TYPE": 7, "STOP": 5, "SCROLL": 2, "PRESS": 1, "hotkey": 6, "rightClick": 1, "drag": 2}
    assert sum(bool(step.alternatives) for step in steps.values()) == 6
    search = steps["s_7f27a11115e596eb", 0]
    assert search.action == Click(point=Point(339.5, 630.7))
    assert search.alternatives == (Click(point=Point(376.3, 100.3)),)
    assert search.targets[0] == pytest.approx((232.05445, 598.07388, 887.21122, 676.91293), abs=1e-4)
    assert steps["s_7f27a11115e596eb", 7].action == Scroll(point=Point(449.6, 734.9), direction="up")
    assert steps["s_c53b113bf3e7d362", 8].action == Type(text="stat6011\n")
    assert {step.screenshot_size for step in steps.values()} == {(1212, 758), (1468, 956), (1280, 720)}
    for step in steps.values():
        for accepted in (step.action, *step.alternatives):
            assert ActionEvaluator("agentnetbench").evaluate(step, accepted).verdict == "right"

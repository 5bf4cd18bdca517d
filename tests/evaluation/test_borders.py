"""Clicks on a border hit however it is written, and actions of which only the type is known count by their type alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from guieval import actions as act
from guieval.actions import BORDER, Box, Boxes, Click, Point
from guieval.evaluation import ActionEvaluator
from guieval.frames import PER_1000, PIXELS, RELATIVE, Size
from guieval.history import describe, reference_entry, select
from guieval.models import ABCModel
from guieval.online.attempt import Attempt
from guieval.registry import load_benchmark, load_model
from guieval.rewards import ResponseScorer, action_reward, coordinate_reward, format_reward, get_reward
from guieval.steps import OnlineTask, Sample, StepTaskModel
from tests.evaluation.verdicts import judged
from tests.made_runs import ANSWERED, step
from tests.rows import every_row

SIZES = ((2560, 1440), (1920, 1080), (1366, 768), (1080, 2400), (1179, 2556), (3840, 1600))
STEP = 11
"""Every so many pixels a border is tried."""


def pixels(x: float, y: float, size: Size) -> Point:
    return PIXELS.decode(x, y, size)


def fractions(x: float, y: float, size: Size) -> Point:
    """As MMBench-GUI's labels and fractional answers are read: written as a share of the screen, then scaled."""
    width, height = size
    return PIXELS.decode(x / width * width, y / height * height, size)


def shares(x: float, y: float, size: Size) -> Point:
    return RELATIVE.decode(x / size[0], y / size[1], size)


def thousandths(x: float, y: float, size: Size) -> Point:
    return PER_1000.decode(x / size[0] * 1000, y / size[1] * 1000, size)


WAYS: tuple[Callable[[float, float, Size], Point], ...] = (pixels, fractions, shares, thousandths)


def bordering(size: Size, label: Callable[[float, float, Size], Point]) -> tuple[list[StepTaskModel], list[tuple[int, int]]]:
    """Steps whose boxes begin or end at a whole pixel, and the pixel on that border."""
    width, height = size
    tasks, places = [], []
    for at in range(40, min(width, height) - 60, STEP):
        corners = *label(at, at + 1, size), *label(at + 30, at + 20, size)
        more: dict[str, Any] = {"screenshot_size": size, "targets": Boxes([corners])}
        task = step(Click(point=Box(*corners).centre), episode=str(at), **more)
        for place in ((at, at + 10), (at + 30, at + 10), (at + 15, at + 1), (at + 15, at + 20)):
            tasks.append(task)
            places.append(place)
    return tasks, places


def hits(protocol: str, tasks: list[StepTaskModel], points: list[Point]) -> list[bool]:
    evaluator = ActionEvaluator(protocol)
    return [evaluator.evaluate(task, Click(point=point)).exact_match for task, point in zip(tasks, points, strict=True)]


@every_row("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
@every_row("protocol", ["mmbench-gui-l2", "ui-vision", "hypertrack-reward", "ui-r1-reward"])
def test_every_border_pixel_is_inside_however_it_is_written(protocol: str, size: Size) -> None:
    wrong = []
    for label in WAYS:
        tasks, places = bordering(size, label)
        for answer in WAYS:
            judged = hits(protocol, tasks, [answer(x, y, size) for x, y in places])
            wrong += [(label.__name__, answer.__name__, place) for place, hit in zip(places, judged, strict=True) if not hit]
    assert not wrong, f"{len(wrong)} border pixels fall outside, e.g. {wrong[:3]}"


@pytest.mark.parametrize("protocol", ["gui-r1-grounding", "onekey"])
def test_a_rule_that_leaves_the_border_out_leaves_out_every_border_pixel(protocol: str) -> None:
    for label in WAYS:
        tasks, places = bordering((2560, 1440), label)
        for answer in WAYS:
            assert not any(hits(protocol, tasks, [answer(x, y, (2560, 1440)) for x, y in places]))


def test_no_protocol_takes_the_pixel_beyond_the_border_for_the_border() -> None:
    """The tolerance is far below a pixel: a hundredth of one outside of a box is outside."""
    size = (3840, 2160)
    tasks, places = bordering(size, pixels)
    beyond = [
        pixels(x + (0.01 if x == int(task.episode_id) + 30 else -0.01 if x == int(task.episode_id) else 0), y, size)
        for task, (x, y) in zip(tasks, places, strict=True)
    ]
    sideways = [point.x != pixels(x, y, size).x for point, (x, y) in zip(beyond, places, strict=True)]
    judged = hits("mmbench-gui-l2", tasks, beyond)
    assert [not hit for hit in judged] == sideways


def test_boxes_name_those_that_contain_a_point_with_their_borders() -> None:
    boxes = Boxes([[100, 100, 200, 200], [150, 150, 300, 300]])
    assert boxes.containing(Point(200 + BORDER / 2, 160)).tolist() == [True, True]
    assert boxes.containing(Point(200 + 2 * BORDER, 160)).tolist() == [False, True]
    assert not len(Boxes().containing(Point(1, 1)))


@pytest.mark.parametrize(
    ("benchmark", "folder", "least"), [("mmbench-gui-l2", "MMbench_data", 3000), ("ui-vision", "UI_Vision_data", 400)]
)
def test_a_click_on_a_whole_pixel_of_a_real_border_hits(shared_data: Path, benchmark: str, folder: str, least: int) -> None:
    root = shared_data / "screenspot_pro_format_annotations"
    if not (root / folder).is_dir():
        pytest.skip(f"no {folder} in {root}")
    loader = load_benchmark(benchmark, root)
    tasks, points = [], []
    for task in (loader.load(ref).steps[0] for ref in loader.index()):
        width, height = task.screenshot_size
        box, middle = task.targets[0], task.targets[0].centre
        ends = [(x * width / 1000, middle.y * height / 1000, 0) for x in (box.x1, box.x2)]
        ends += [(middle.x * width / 1000, y * height / 1000, 1) for y in (box.y1, box.y2)]
        for *place, axis in ends:
            whole = round(place[axis])
            if abs(place[axis] - whole) < 1e-7 and 0 <= whole <= task.screenshot_size[axis]:
                place[axis] = whole
                tasks.append(task)
                points.append(pixels(place[0], place[1], task.screenshot_size))
    assert len(points) > least
    wrong = [str(task.key) for task, hit in zip(tasks, hits(benchmark, tasks, points), strict=True) if not hit]
    assert not wrong, f"{len(wrong)} of {len(points)} border pixels fall outside, e.g. {wrong[:3]}"


AT = act.Point(500, 500)


def typed(known: act.ActionType, name: str = "call") -> act.Unsupported:
    return act.Unsupported(name=name, known=known, problem="it has no argument")


@every_row(
    ("protocol", "reference", "known", "type_match", "exact"),
    [
        ("ui-r1", act.Scroll(point=AT, direction="up"), "SCROLL", True, True),
        ("ui-r1", act.Open(app="Maps"), "OPEN", True, True),
        ("ui-r1", act.Type(text="a"), "TYPE", True, True),
        ("ui-r1", act.Press(button="BACK"), "PRESS", True, True),
        ("ui-r1", act.Click(point=AT), "CLICK", True, False),
        ("ui-r1", act.Click(point=AT), "SCROLL", False, False),
        ("ui-r1-reward", act.Scroll(point=AT, direction="up"), "SCROLL", True, True),
        ("ui-r1-reward", act.Press(button="BACK"), "PRESS", False, False),  # each button is a type of its own there
        ("ui-r1-reward", act.Stop(), "STOP", False, False),
        ("guievalkit", act.Scroll(point=AT, direction="up"), "SCROLL", True, False),
        ("guievalkit", act.Type(text="a"), "TYPE", True, False),
        ("guievalkit", act.Click(point=AT), "CLICK", True, False),
        ("guievalkit", act.LongPress(point=AT), "LONG_PRESS", True, False),
        ("guievalkit", act.LongPress(point=AT), "CLICK", False, False),
        ("guievalkit", act.Wait(), "WAIT", True, True),
        ("agentnetbench", act.Scroll(point=AT, direction="up"), "SCROLL", True, True),
        ("agentnetbench-v2", act.Scroll(point=AT, direction="up"), "SCROLL", True, False),
        ("guievalkit", act.Unsupported(name="zoom"), "CLICK", False, False),
    ],
)
def test_the_type_alone_decides_where_the_protocol_looks_at_nothing_else(
    protocol: str, reference: act.Action, known: act.ActionType, type_match: bool, exact: bool
) -> None:
    outcome = judged(protocol, step(reference), typed(known))
    assert (outcome.type_match, outcome.exact_match) == (type_match, exact)
    assert outcome.verdict == ("right" if exact else "wrong") and outcome.distance is None


def test_the_best_of_several_labels_counts_and_the_reason_names_the_problem() -> None:
    outcome = judged("guievalkit", step(act.Stop(), alternatives=(act.Click(point=AT),)), typed("CLICK"))
    assert outcome.type_match and outcome.reason == "CLICK as the reference; it has no argument"


PIXEL_CALL = '<tool_call>\n{"name": "mobile_use", "arguments": {"action": "click", "coordinate": %s}}\n</tool_call>'


@every_row(
    ("name", "text"),
    [
        ("qwen2.5-vl-7b", PIXEL_CALL % "[5000, 20]"),
        ("qwen3-vl-8b-instruct", PIXEL_CALL % "[500, 1200]"),
        ("qwen3-vl-8b-instruct", '{"name": "mobile_use", "arguments": {"action": "click"}}'),
        ("ui-tars-1.5-7b", "Thought: I tap.\nAction: click(start_box='(5000,20)')"),
        ("autoglm-phone-9b", '<answer>do(action="Tap", element=[1811,188])</answer>'),
        ("aguvis-7b", "pyautogui.click(x=1.5, y=0.5)"),
    ],
)
def test_a_click_outside_the_frame_counts_in_type_and_not_in_place(name: str, text: str) -> None:
    task = step(act.Click(point=AT), targets=[[0, 0, 1000, 1000]])
    action = load_model(name).parse_response(task, text).action
    for protocol in ("guievalkit", "ui-s1-sop", "ui-r1", "seeclick-official"):
        outcome = ActionEvaluator(protocol).evaluate(task, action)
        assert (outcome.verdict, outcome.type_match, outcome.distance) == ("wrong", True, None), protocol
    assert act.action_from_json(act.action_to_json(action)) == action


@every_row(
    ("name", "text"),
    [
        ("qwen3-vl-8b-instruct", '{"name": "mobile_use", "arguments": {"action": "swipe", "coordinate": [500, 500]}}'),
        (
            "qwen3-vl-8b-instruct",
            '{"name": "mobile_use", "arguments": {"action": "swipe", "coordinate": [1, 2], "coordinate2": [1, 2]}}',
        ),
        ("aguvis-7b", "mobile.swipe(from_coord=[0.5, 0.8])"),
    ],
)
def test_a_swipe_without_an_end_or_a_length_counts_in_type(name: str, text: str) -> None:
    task = step(act.Scroll(point=AT, direction="up"))
    outcome = ActionEvaluator("guievalkit").evaluate(task, load_model(name).parse_response(task, text).action)
    assert (outcome.type_match, outcome.exact_match) == (True, False)


NAMES = {"SCROLL": "scroll", "OPEN": "open_app", "TYPE": "input_text", "PRESS": "navigate_back"}


def perfect(model: ABCModel, task: StepTaskModel) -> str:
    """A response in the published format, which asks for a name and a coordinate: as the prompt's example has it."""
    if isinstance(task.action, act.Click):
        return model.render(task, task.action, "I see it.")
    answer = [{"action": NAMES[task.action.type], "coordinate": [0, 0]}]
    return f"<think> I see it. </think> <answer>{answer}</answer>"


def test_perfect_responses_in_ui_r1s_format_win_every_step_of_its_file(shared_data: Path) -> None:
    model, evaluator = load_model("ui-r1-3b"), ActionEvaluator("ui-r1")
    missed: Counter[str] = Counter()
    count = 0
    for task in (each for episode in load_benchmark("ui-r1", shared_data / "ui_r1") for each in episode.steps):
        outcome = evaluator.evaluate(task, model.parse_response(task, perfect(model, task)).action)
        count += 1
        missed[task.action.type] += not (outcome.type_match and outcome.exact_match)
    assert count == 7868 and not +missed


@every_row(
    "reference",
    [
        act.Click(point=AT),
        act.Scroll(point=AT, direction="down"),
        act.Open(app="Maps"),
        act.Type(text="hello"),
        act.Press(button="BACK"),
    ],
)
def test_the_reward_pays_a_right_type_in_full_as_the_released_code_does(reference: act.Action) -> None:
    model = load_model("ui-r1-3b")
    task = step(reference, targets=[[450, 450, 550, 550]])
    scorer = ResponseScorer(model, get_reward("ui-r1"))
    for answered in (reference, act.Scroll(point=AT, direction="up"), act.Press(button="BACK"), act.Type(text="x")):
        text = perfect(model, task.model_copy(update={"action": answered}))
        solution = f"<answer>[{{'action': '{NAMES.get(reference.type, 'click')}', 'coordinate': [1, 1, 1008, 2296]}}]</answer>"
        released = action_reward(text, solution) + coordinate_reward(text, solution) + format_reward(text)
        assert scorer.score(task, text).reward.total == released
        assert (released == 3.0) is (answered.type == reference.type)


def test_no_device_carries_it_out_and_it_counts_as_unsupported_there() -> None:
    attempt = Attempt(OnlineTask(benchmark="demo", episode_id="t", instruction="a goal", max_steps=9))
    shown = step(act.Wait())
    assert act.executable(typed("SCROLL")) is None
    assert attempt.answered(shown, Sample(raw_response="", action=typed("SCROLL"), outcome=ANSWERED)) == []
    assert (attempt.steps, attempt.unsupported, attempt.unparseable, attempt.history) == (1, 1, 0, [])


def test_a_later_step_sees_the_reference_in_its_place() -> None:
    task = step(act.Scroll(point=AT, direction="up"))
    outcome = ActionEvaluator("ui-r1").evaluate(task, typed("SCROLL"))
    assert outcome.exact_match
    told = partial(select, task=task, sample=Sample(raw_response="r", action=typed("SCROLL"), outcome=outcome))
    assert told("matched") == told("model") == reference_entry(task)
    assert describe(typed("SCROLL", "scroll")) == "scroll."


def test_a_space_holds_it_by_its_type() -> None:
    assert typed("SCROLL") in act.ActionSpace(types=frozenset({"SCROLL"}))
    assert typed("OPEN") not in act.ActionSpace(types=frozenset({"SCROLL"}))

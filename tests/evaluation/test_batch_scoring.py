"""Properties of judging: arrays agree with single calls, and a reference is right under every protocol that says so itself."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from guieval.actions import BUTTONS, Action, Click, LongPress, Open, Point, Press, Scroll, Stop, Type, Unsupported, Wait
from guieval.evaluation import (
    ActionEvaluator,
    ClickRule,
    PredictionTable,
    Protocol,
    StepRules,
    TextRule,
    compile_targets,
    get_protocol,
    list_protocols,
    score,
)
from guieval.evaluation.leniencies import (
    AnyPointedAction,
    AnyWrittenAction,
    LongPressIsClick,
    PromptDirection,
    RecentIsHome,
    WaitIsStop,
)
from guieval.evaluation.rules import unsupported_key
from guieval.steps import StepTaskModel
from tests.evaluation.strategies import anything, directions, points, step_rules, tasks

DISTINCT = list({get_protocol(name).judgement(): name for name in reversed(list_protocols())}.values())
"""One protocol of each way of judging."""


@pytest.mark.parametrize("protocol", DISTINCT)
@settings(max_examples=30, deadline=None)
@given(pairs=st.lists(st.tuples(tasks(), st.none() | anything), max_size=8))
def test_arrays_agree_with_single_calls(protocol: str, pairs: list[tuple[StepTaskModel, Action | None]]) -> None:
    evaluator = ActionEvaluator(protocol)
    outcomes = [evaluator.evaluate(task, action) for task, action in pairs]
    scores = score(
        compile_targets([task for task, _ in pairs], protocol), PredictionTable.from_actions(action for _, action in pairs)
    )
    assert scores.type_match.tolist() == [outcome.type_match for outcome in outcomes]
    assert scores.exact_match.tolist() == [outcome.exact_match for outcome in outcomes]
    assert [None if math.isnan(each) else each for each in scores.distance.tolist()] == [
        outcome.distance for outcome in outcomes
    ]


@settings(max_examples=300, deadline=None)
@given(rules=step_rules, pairs=st.lists(st.tuples(tasks(), anything), min_size=1, max_size=6))
def test_arrays_agree_with_single_calls_under_rules_of_any_kind(
    rules: StepRules, pairs: list[tuple[StepTaskModel, Action]]
) -> None:
    protocol = Protocol(name="any", source="s", summary="t", rules=rules)
    outcomes = [ActionEvaluator(protocol).evaluate(task, action) for task, action in pairs]
    scores = score(
        compile_targets([task for task, _ in pairs], protocol), PredictionTable.from_actions(action for _, action in pairs)
    )
    assert scores.type_match.tolist() == [outcome.type_match for outcome in outcomes]
    assert scores.exact_match.tolist() == [outcome.exact_match for outcome in outcomes]
    told = [math.nan if outcome.distance is None else outcome.distance for outcome in outcomes]
    np.testing.assert_array_equal(scores.distance, told)


@pytest.mark.parametrize("protocol", DISTINCT)
@settings(max_examples=30, deadline=None)
@given(pair=st.tuples(tasks(), anything))
def test_an_exact_match_is_a_type_match_and_right(protocol: str, pair: tuple[StepTaskModel, Action]) -> None:
    task, action = pair
    outcome = ActionEvaluator(protocol).evaluate(task, action)
    whatever_type = any(
        isinstance(each, AnyPointedAction | AnyWrittenAction)
        for each in get_protocol(protocol).rules_for(task.dataset).leniencies
    )
    assert outcome.type_match or not outcome.exact_match or whatever_type
    assert (outcome.verdict == "right") is outcome.exact_match
    comparable = any(isinstance(each, Unsupported) for each in (task.action, *task.alternatives))
    assert (outcome.verdict == "unsupported") is (isinstance(action, Unsupported) and not comparable)


def around(point: Point) -> list[float]:
    return [point.x - 10, point.y - 10, point.x + 10, point.y + 10]


def has_no_f1(rule: TextRule, text: str) -> bool:
    return rule.compare == "token-f1" and rule.span == "whole" and not rule.normalise(text).split()


def refuses(rules: StepRules, action: Action) -> bool:
    """Whether a source takes a labelled action as wrong when it is predicted as it stands: its known defects."""
    match action:
        case Click(point=point) if rules.click.zero_is_missing:
            return 0.0 in point
        case LongPress(point=point):  # labels say their type themselves, predictions by their duration
            tap = rules.read(action) is not action
            return tap is not (LongPressIsClick() in rules.leniencies) or (rules.click.zero_is_missing and 0.0 in point)
        case Scroll(direction=direction):  # without a content label UI-S1's matcher takes vertical scrolls upside down
            return rules.scroll.compare == "ui-s1-reward" and direction in ("up", "down")
        case Type(text=text):
            return has_no_f1(rules.text, text)
        case Open(app=app):
            return has_no_f1(rules.app_text, app)
        case Press(button="RECENT"):
            return RecentIsHome() in rules.leniencies
    return False


@pytest.mark.parametrize("protocol", DISTINCT)
@settings(max_examples=40, deadline=None)
@given(task=tasks(), reference=anything)
def test_the_reference_is_right_under_its_own_protocol(protocol: str, task: StepTaskModel, reference: Action) -> None:
    rules = get_protocol(protocol).rules_for(task.dataset)
    update: dict[str, Any] = {"action": reference, "alternatives": (), "extras": {}, "instruction": ""}
    update["low_level_instruction"] = None
    if isinstance(reference, Click | LongPress):
        assume(rules.click.reference == "label")
        assume(not rules.click.zero_is_missing or all(side == 0 or side >= 2 for side in reference.point))  # a pixel
        if rules.click.fallback is None:  # where labels are boxes, a point in none has no right answer
            update["boxes"] = type(task.boxes)([*task.boxes, around(reference.point)])
    outcome = ActionEvaluator(protocol).evaluate(task.model_copy(update=update), reference)
    assert outcome.exact_match is not refuses(rules, reference)


@settings(max_examples=50, deadline=None)
@given(task=tasks(), point=points, direction=directions)
def test_ui_s1_reward_match_accepts_a_reference_with_its_content_label(
    task: StepTaskModel, point: Point, direction: Any
) -> None:
    reference = Scroll(point=point, direction=direction)
    content = {"up": "down", "down": "up"}.get(direction, direction)
    labelled = task.model_copy(update={"action": reference, "extras": {"direction_label": content}})
    assert ActionEvaluator("ui-s1-reward-match").evaluate(labelled, reference).exact_match


def test_arrays_may_be_given_as_such(step: Callable[..., StepTaskModel]) -> None:
    tasks = [step(Click(point=Point(500, 500))), step(Type(text="Coffee")), step(Press(button="HOME")), step(Stop())]
    nowhere = (np.nan, np.nan)
    predictions = PredictionTable.from_arrays(
        [0, 3, 5, -1],
        point=np.array([(530, 500), nowhere, nowhere, nowhere]),
        button=[-1, -1, BUTTONS.index("HOME"), -1],
        text=["", " COFFEE shop", "", ""],
    )
    scores = score(compile_targets(tasks, "guievalkit"), predictions)
    assert scores.exact_match.tolist() == [True, True, True, False]
    assert scores.type_match.tolist() == [True, True, True, False]
    np.testing.assert_array_equal(scores.distance, [30.0, np.nan, np.nan, np.nan])


def test_a_long_press_given_without_duration_is_no_tap(step: Callable[..., StepTaskModel]) -> None:
    predictions = PredictionTable.from_arrays([1], point=[[500, 500]])
    held, tapped = step(LongPress(point=Point(500, 500))), step(Click(point=Point(500, 500)))
    assert score(compile_targets([held], "guievalkit"), predictions).exact_match.tolist() == [True]
    assert score(compile_targets([tapped], "guievalkit"), predictions).type_match.tolist() == [False]


def test_many_steps_with_uneven_numbers_of_boxes(step: Callable[..., StepTaskModel]) -> None:
    rng = np.random.default_rng(0)
    tasks, predicted = [], []
    for count in [0, 1, 120, 7, 30, 0, 5, 6, 63] * 8:
        corners = rng.uniform(0, 900, (count, 2))
        rectangles = np.hstack([corners, corners + rng.uniform(10, 300, (count, 2))]).tolist()
        tasks.append(step(Click(point=Point(*rng.uniform(0, 1000, 2))), rectangles))
        predicted.append(Click(point=Point(*rng.uniform(0, 1000, 2))))
    hits = 0
    for protocol in DISTINCT:
        evaluator = ActionEvaluator(protocol)
        single = [evaluator.evaluate(task, action).exact_match for task, action in zip(tasks, predicted, strict=True)]
        batch = score(compile_targets(tasks, protocol), PredictionTable.from_actions(predicted))
        assert batch.exact_match.tolist() == single
        hits += sum(single)
    assert 0 < hits < len(tasks) * len(DISTINCT)


def test_many_steps_with_polygons_patterns_and_statuses(step: Callable[..., StepTaskModel]) -> None:
    triangle = {"polygon": [[0, 0], [1000, 0], [0, 1000]]}
    tasks = [step(Click(point=Point(100, 100)), [[0, 0, 1000, 1000]], extras=triangle) for _ in range(2)]
    tasks += [step(Type(text="x"), extras={"text_patterns": [".*三体.*"]}), step(Stop(status="impossible")), step(Stop())]
    predicted: list[Action] = [Click(point=Point(500, 500)), Click(point=Point(600, 600)), Type(text="搜三体"), Stop(), Stop()]
    scores = score(compile_targets(tasks, "osworld-g"), PredictionTable.from_actions(predicted))
    assert scores.exact_match.tolist() == [True, False, True, False, True]
    assert scores.type_match.all()
    by_status = PredictionTable.from_arrays([7, 7], status=[1, 0])
    assert score(compile_targets(tasks[3:], "osworld-g"), by_status).exact_match.tolist() == [True, True]


def test_what_arrays_leave_out_is_never_right_where_steps_are_judged_one_by_one(step: Callable[..., StepTaskModel]) -> None:
    at = Point(500, 500)
    rules = StepRules(
        click=ClickRule(whole_pixels=True, fallback=0.14),
        leniencies=(AnyPointedAction(), PromptDirection(), RecentIsHome(), WaitIsStop()),
    )
    tasks = [step(Click(point=at)), step(Scroll(point=at, direction="up")), step(Press(button="HOME")), step(Wait())]
    predictions = PredictionTable.from_arrays([2, 2, 5, 7], status=[0, 0, 0, -1])
    scores = score(compile_targets(tasks, Protocol(name="p", source="s", summary="t", rules=rules)), predictions)
    assert scores.exact_match.tolist() == [False, False, False, True]
    assert scores.type_match.tolist() == [False, True, True, True]


@settings(max_examples=100, deadline=None)
@given(given_actions=st.lists(anything, max_size=8))
def test_a_table_gives_its_actions_back(given_actions: list[Action]) -> None:
    table = PredictionTable.from_actions(given_actions)
    for row, action in enumerate(given_actions):
        again = table.action(row)
        if isinstance(action, Unsupported):
            assert isinstance(again, Unsupported)
            assert unsupported_key(again) == unsupported_key(action)
        else:
            assert again == action


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"type": [0], "point": [[500, 500], [1, 1]]}, "one length"),
        ({"type": [9]}, "type codes must lie between -1 and 8"),
        ({"type": [-2]}, "type codes"),
        ({"type": [5], "button": [4]}, "button codes"),
        ({"type": [2], "direction": [4]}, "direction codes"),
        ({"type": [7], "status": [2]}, "status codes"),
        ({"type": [0]}, "the point of a click"),
        ({"type": [1], "point": [[500, 1000.5]]}, "the point of a click"),
        ({"type": [3], "text": ["a", "b"]}, "one length"),
    ],
)
def test_arrays_that_make_no_table_are_refused(columns: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        PredictionTable.from_arrays(**columns)


def test_tables_of_unlike_length_are_refused(step: Callable[..., StepTaskModel]) -> None:
    with pytest.raises(ValueError, match="2 predictions cannot answer 1 steps"):
        score(compile_targets([step(Stop())], "guievalkit"), PredictionTable.from_actions([Stop(), None]))

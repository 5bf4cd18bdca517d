"""Verdicts of single steps: five kinds, alternatives, purity."""

from __future__ import annotations

from typing import Any

import pytest

from guieval.actions import Action, Click, LongPress, Open, Point, Press, Stop, Type, Unsupported
from guieval.evaluation import ActionEvaluator, ClickRule, Protocol, StepRules, infrastructure_failure, list_protocols
from guieval.steps import VERDICTS, StepOutcome
from tests.evaluation.verdicts import judged, right, scroll, step
from tests.rows import every_row

AT, FAR = Point(500, 500), Point(900, 900)


def test_the_five_verdicts() -> None:
    evaluator = ActionEvaluator("guievalkit")
    task = step(Click(point=AT))
    outcomes = [
        evaluator.evaluate(task, Click(point=Point(510, 500))),
        evaluator.evaluate(task, Click(point=Point(700, 500))),
        evaluator.evaluate(task, None),
        evaluator.evaluate(task, Unsupported(name="answer", arguments={"text": "4"})),
        infrastructure_failure("the server answered 500 three times"),
    ]
    assert [outcome.verdict for outcome in outcomes] == list(VERDICTS)
    assert [outcome.type_match for outcome in outcomes] == [True, True, False, False, False]
    assert [outcome.exact_match for outcome in outcomes] == [True, False, False, False, False]
    assert [outcome.distance for outcome in outcomes] == [10.0, 200.0, None, None, None]
    assert all(outcome.reason for outcome in outcomes)
    assert "answer" in outcomes[3].reason
    assert outcomes[4].reason == "the server answered 500 three times"


@every_row("protocol", list_protocols)
@every_row(
    ("predicted", "verdict", "type_match"),
    [
        (Unsupported(name="HOTKEY", arguments={"keys": ["ctrl", "c"], "times": 1.0}), "right", True),
        (Unsupported(name="hotkey", arguments={"times": 1, "keys": ["ctrl", "c"]}), "right", True),
        (Unsupported(name="hotkey", arguments={"keys": ["c", "ctrl"], "times": 1}), "wrong", True),
        (Unsupported(name="hotkey", arguments={"keys": ["ctrl", "c"], "times": True}), "wrong", True),
        (Unsupported(name="hotkey"), "wrong", True),
        (Unsupported(name="press", arguments={"keys": ["ctrl", "c"], "times": 1}), "wrong", False),
        (Press(button="ENTER"), "wrong", False),
    ],
)
def test_a_label_outside_the_space_is_met_by_an_equal_action(
    protocol: str, predicted: Action, verdict: str, type_match: bool
) -> None:
    label = Unsupported(name="hotkey", arguments={"keys": ["ctrl", "c"], "times": 1})
    for task in (step(label), step(Stop(), alternatives=[label])):
        outcome = ActionEvaluator(protocol).evaluate(task, predicted)
        assert (outcome.verdict, outcome.type_match, outcome.exact_match) == (verdict, type_match, verdict == "right")


@every_row("protocol", list_protocols)
def test_an_action_outside_the_space_is_unsupported_where_no_label_is(protocol: str) -> None:
    task = step(Click(point=AT), alternatives=[Stop()])
    assert ActionEvaluator(protocol).evaluate(task, Unsupported(name="answer")) == StepOutcome(
        verdict="unsupported", reason="the action 'answer' is outside the unified action space"
    )


@every_row("protocol", ["onekey", "guievalkit", "agentnetbench", "odyssey-v1", "mind2web-element"])
def test_a_pattern_accepts_the_texts_it_matches_wholly(protocol: str) -> None:
    task = step(Type(text="no"), extras={"text_patterns": ["(", "[0-9]{3}", ".*三体.*"]})
    assert right(protocol, task, Type(text="123"))
    assert right(protocol, task, Type(text="搜索三体有声剧"))
    assert not right(protocol, task, Type(text="1234567"))
    assert not right(protocol, step(Type(text="x1234567y")), Type(text="9876"))
    assert not right(protocol, step(Open(app="no"), extras={"text_patterns": ["[0-9]{3}"]}), Open(app="123"))


def test_text_similarity_is_reported_for_typed_text_and_app_names() -> None:
    evaluator = ActionEvaluator("guievalkit")
    typed = evaluator.evaluate(step(Type(text="kitten")), Type(text="sitting"))
    assert (typed.verdict, typed.distance) == ("wrong", None)
    assert typed.text_similarity == pytest.approx(4 / 7)
    opened = evaluator.evaluate(step(Open(app="Google Maps")), Open(app="maps"))
    assert opened.verdict == "right"
    assert opened.text_similarity == pytest.approx(4 / 11)


def test_reasons_say_what_was_compared_and_a_wrong_type_keeps_no_distance_or_similarity() -> None:
    outcome = judged("ui-s1-sop", step(Click(point=AT)), Type(text="x"))
    assert outcome == StepOutcome(verdict="wrong", reason="TYPE, reference CLICK")
    assert judged("guievalkit", step(scroll("down")), scroll("up")).reason == "scrolled up, reference down"


ABOUT, ELSEWHERE = [300, 300, 700, 700], [800, 800, 900, 900]
OTHER = "inside a box of the screen that is not around the reference"


@every_row(
    ("protocol", "boxes", "point", "reason"),
    [
        ("guievalkit", {"elements": [ABOUT]}, (690, 690), "inside a box of the screen around the reference"),
        ("guievalkit", {"targets": [ABOUT], "elements": [ELSEWHERE]}, (690, 690), "inside a target box"),
        ("ui-s1-sop", {"elements": [ABOUT, ELSEWHERE]}, (890, 890), OTHER),
        ("ui-s1-sop", {"targets": [ABOUT], "elements": [ELSEWHERE]}, (890, 890), OTHER),
        ("ui-s1-sop", {"targets": [ABOUT, ELSEWHERE]}, (890, 890), "inside a target box"),
        ("seeclick-official", {"targets": [ABOUT], "elements": [ELSEWHERE]}, (690, 690), "inside a target box"),
        ("seeclick-official", {"targets": [ABOUT], "elements": [ELSEWHERE]}, (890, 890), "outside every target box"),
        ("seeclick-official", {"elements": [ABOUT]}, (690, 690), "the step has no target box"),
        ("ui-r1-reward", {"elements": [ABOUT]}, (690, 690), "inside a box of the screen around the reference"),
        ("ui-r1-reward", {"targets": [ABOUT], "elements": [[490, 490, 510, 510]]}, (690, 690), "inside a target box"),
        (
            "ui-r1-reward",
            {"targets": [ABOUT], "elements": [ELSEWHERE]},
            (890, 890),
            "outside every box of the screen that counts",
        ),
    ],
)
def test_a_reason_never_says_target_of_another_element(
    protocol: str, boxes: dict[str, Any], point: tuple[float, float], reason: str
) -> None:
    outcome = ActionEvaluator(protocol).evaluate(step(Click(point=AT), **boxes), Click(point=Point(*point)))
    assert outcome.reason == reason
    assert outcome.exact_match is reason.startswith("inside")


def test_any_accepted_action_counts() -> None:
    evaluator = ActionEvaluator("guievalkit")
    task = step(Click(point=AT), alternatives=[Press(button="BACK"), Open(app="Clock")])
    assert evaluator.evaluate(task, Press(button="BACK")).verdict == "right"
    assert evaluator.evaluate(task, Click(point=AT)).verdict == "right"
    half = evaluator.evaluate(task, Press(button="HOME"))
    assert (half.verdict, half.type_match) == ("wrong", True)
    assert not evaluator.evaluate(task, Stop()).type_match


def test_among_alternatives_the_best_and_then_the_nearest_decides() -> None:
    evaluator = ActionEvaluator("guievalkit")
    first, second = Click(point=Point(100, 500)), Click(point=Point(700, 500))
    for one, other in ((first, second), (second, first)):
        task = step(one, alternatives=[other])
        assert evaluator.evaluate(task, Click(point=AT)).distance == 200.0
        assert evaluator.evaluate(task, Click(point=Point(110, 500))).distance == 10.0
    # A far exact match (in a box) is preferred to a near miss.
    boxed = step(Click(point=Point(100, 100)), targets=[[0, 0, 300, 300]], alternatives=[Click(point=Point(301, 400))])
    outcome = ActionEvaluator(
        Protocol(name="p", source="s", summary="t", rules=StepRules(click=ClickRule("targets", "around-reference")))
    ).evaluate(boxed, Click(point=Point(300, 300)))
    assert outcome.exact_match
    assert outcome.distance == pytest.approx(200 * 2**0.5)


def test_a_judgement_is_the_outcome_without_its_verdict() -> None:
    evaluator = ActionEvaluator("guievalkit")
    task = step(Click(point=AT), alternatives=[Type(text="kitten"), Press(button="BACK")])
    for action in (Click(point=Point(510, 500)), Click(point=FAR), Type(text="sitting"), Press(button="HOME"), Stop()):
        judgement, outcome = evaluator.judge(task, action), evaluator.evaluate(task, action)
        assert tuple(judgement) == (
            outcome.type_match,
            outcome.exact_match,
            outcome.distance,
            outcome.text_similarity,
            outcome.reason,
        )
    assert not evaluator.judge(task, Unsupported(name="answer")).type_match


def test_a_hit_under_another_type_is_preferred_to_a_type_match() -> None:
    task = step(Click(point=AT), alternatives=[LongPress(point=FAR)])
    outcome = ActionEvaluator("gui-r1").evaluate(task, LongPress(point=AT))
    assert (outcome.verdict, outcome.type_match, outcome.exact_match, outcome.distance) == ("right", False, True, 0.0)

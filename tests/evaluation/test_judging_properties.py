"""Properties of judging: an exact match is a type match, and a reference is right under every protocol that says so itself."""

from __future__ import annotations

from functools import cache
from typing import Any

from hypothesis import given, settings

from guieval.actions import Action, Click, LongPress, Open, Point, Press, Scroll, Type, Unsupported
from guieval.evaluation import ActionEvaluator, StepRules, TextRule, get_protocol, list_protocols
from guieval.evaluation.leniencies import AnyPointedAction, AnyWrittenAction, LongPressIsClick, NeverNamed, RecentIsHome
from guieval.steps import StepTaskModel
from tests.evaluation.strategies import anything, directions, points, tasks, whole


@cache
def distinct() -> list[str]:
    """One protocol of each way of judging."""
    return list({get_protocol(name).judgement(): name for name in reversed(list_protocols())}.values())


@settings(max_examples=120)
@given(task=tasks(), action=anything)
def test_an_exact_match_is_a_type_match_and_right(task: StepTaskModel, action: Action) -> None:
    comparable = any(isinstance(each, Unsupported) for each in (task.action, *task.alternatives))
    for protocol in distinct():
        outcome = ActionEvaluator(protocol).evaluate(task, action)
        whatever_type = any(
            isinstance(each, AnyPointedAction | AnyWrittenAction)
            for each in get_protocol(protocol).rules_for(task.dataset).leniencies
        )
        assert outcome.type_match or not outcome.exact_match or whatever_type, protocol
        assert (outcome.verdict == "right") is outcome.exact_match, protocol
        outside = isinstance(action, Unsupported) and action.known is None
        assert (outcome.verdict == "unsupported") is (outside and not comparable), protocol


def around(point: Point) -> list[float]:
    return [point.x - 10, point.y - 10, point.x + 10, point.y + 10]


def has_no_f1(rule: TextRule, text: str) -> bool:
    return rule.compare == "token-f1" and rule.span == "whole" and not rule.normalise(text).split()


def refuses(rules: StepRules, action: Action) -> bool:
    """Whether a source takes a labelled action as wrong when it is predicted as it stands: its known defects."""
    match action:
        case Open() | Press() if NeverNamed() in rules.leniencies:
            return True
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


@settings(max_examples=120)
@given(task=tasks(), reference=whole)
def test_the_reference_is_right_under_its_own_protocol(task: StepTaskModel, reference: Action) -> None:
    asked: dict[str, Any] = {"action": reference, "alternatives": (), "extras": {}, "instruction": ""}
    bare = task.model_copy(update={**asked, "low_level_instruction": None})
    for protocol in distinct():
        rules, own = get_protocol(protocol).rules_for(task.dataset), bare
        if isinstance(reference, Click | LongPress):
            a_pixel = all(side == 0 or side >= 2 for side in reference.point)
            if rules.click.reference != "label" or (rules.click.zero_is_missing and not a_pixel):
                continue
            if rules.click.fallback is None:  # where labels are boxes, a point in none has no right answer
                own = bare.model_copy(update={"targets": type(task.targets)([*task.targets, around(reference.point)])})
        outcome = ActionEvaluator(protocol).evaluate(own, reference)
        assert outcome.exact_match is not refuses(rules, reference), protocol


@settings(max_examples=50)
@given(task=tasks(), point=points, direction=directions)
def test_ui_s1_reward_match_accepts_a_reference_with_its_content_label(
    task: StepTaskModel, point: Point, direction: Any
) -> None:
    reference = Scroll(point=point, direction=direction)
    content = {"up": "down", "down": "up"}.get(direction, direction)
    labelled = task.model_copy(update={"action": reference, "extras": {"direction_label": content}})
    assert ActionEvaluator("ui-s1-reward-match").evaluate(labelled, reference).exact_match

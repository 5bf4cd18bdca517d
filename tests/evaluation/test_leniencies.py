"""What scorers forgive, by hand on both sides of each border, and properties that judging always has."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

from hypothesis import given, settings

from guieval.actions import Action, Click, LongPress, Open, Point, Press, Scroll, Stop, Type, Unsupported, Wait
from guieval.evaluation import (
    ActionEvaluator,
    ClickRule,
    Judgement,
    Leniency,
    OpenRule,
    StepRules,
    TextRule,
    get_protocol,
    list_protocols,
)
from guieval.evaluation.leniencies import (
    AnyLongPress,
    AnyPointedAction,
    AnyWrittenAction,
    ClickForType,
    CornerForPress,
    LongPressIsClick,
    NeverNamed,
    NodeText,
    PromptDirection,
    RecentIsHome,
    WaitIsStop,
)
from guieval.steps import StepTaskModel
from tests.evaluation.strategies import LENIENCIES, anything, directions, points, tasks, whole
from tests.evaluation.verdicts import step
from tests.rows import every_row

AT, NEAR, FAR = Point(500, 500), Point(600, 500), Point(900, 500)
PLAIN = StepRules(click=ClickRule("targets", fallback=0.14))
UP, DOWN, LEFT = (Scroll.model_validate({"point": NEAR, "direction": word}) for word in ("up", "down", "left"))


def judged(leniency: Leniency, reference: Action, predicted: Action, rules: StepRules = PLAIN) -> Judgement:
    return replace(rules, leniencies=(leniency,)).judge(step(reference), reference, predicted)


@every_row(
    ("leniency", "reference", "predicted", "type_match", "exact"),
    [
        (WaitIsStop(), Wait(), Stop(), True, True),
        (WaitIsStop(), Stop(status="impossible"), Wait(), True, True),
        (WaitIsStop(), Stop(), Stop(status="impossible"), True, True),  # although the rules ask for the status
        (WaitIsStop(), Wait(), Press(button="BACK"), False, False),
        (WaitIsStop(), Press(button="BACK"), Stop(), False, False),
        (LongPressIsClick(), LongPress(point=AT), Click(point=NEAR), True, True),
        (LongPressIsClick(), LongPress(point=AT), Click(point=FAR), True, False),
        (LongPressIsClick(), LongPress(point=AT), LongPress(point=AT), False, False),
        (LongPressIsClick(), Click(point=AT), LongPress(point=AT), False, False),
        (LongPressIsClick("prediction"), Click(point=AT), LongPress(point=NEAR), True, True),
        (LongPressIsClick("prediction"), Click(point=AT), LongPress(point=FAR), True, False),
        (LongPressIsClick("prediction"), LongPress(point=AT), Click(point=AT), False, False),
        (LongPressIsClick("prediction"), LongPress(point=AT), LongPress(point=NEAR), True, True),
        (LongPressIsClick("both"), LongPress(point=AT), LongPress(point=NEAR), True, True),
        (LongPressIsClick("both"), Click(point=AT), LongPress(point=NEAR), True, True),
        (LongPressIsClick("both"), Click(point=AT), LongPress(point=FAR), True, False),
        (AnyLongPress(), LongPress(point=AT), LongPress(point=FAR), True, True),
        (AnyLongPress(), LongPress(point=AT), Click(point=AT), False, False),
        (AnyLongPress(), Click(point=AT), LongPress(point=AT), False, False),
        (AnyPointedAction(), Click(point=AT), LongPress(point=NEAR), False, True),
        (AnyPointedAction(), Click(point=AT), LongPress(point=FAR), False, False),
        (AnyPointedAction(), LongPress(point=AT), Click(point=NEAR), False, True),
        (AnyPointedAction(), Click(point=AT), UP, False, True),  # where the scroll begins
        (AnyPointedAction(), Click(point=FAR), UP, False, False),
        (AnyPointedAction(), UP, Click(point=NEAR), False, False),
        (AnyPointedAction(), Click(point=AT), Click(point=NEAR), True, True),
        (AnyWrittenAction(), Type(text="Clock"), Open(app="clock"), False, True),
        (AnyWrittenAction(), Open(app="Clock"), Type(text="the clock"), False, True),
        (AnyWrittenAction(), Open(app="Clock"), Type(text="Maps"), False, False),
        (AnyWrittenAction(), Open(app="Clock"), Open(app="clock"), True, True),
        (ClickForType(), Type(text="x"), Click(point=FAR), True, True),
        (ClickForType(), Click(point=AT), Type(text=""), True, True),
        (ClickForType(), LongPress(point=AT), Type(text="x"), False, False),
        (ClickForType(), Type(text="x"), LongPress(point=AT), False, False),
        (ClickForType(), Type(text="x"), Type(text="y"), True, False),
        (CornerForPress(), Press(button="HOME"), Click(point=Point(150, 150)), True, True),
        (CornerForPress(), Press(button="HOME"), Click(point=Point(150.1, 150)), False, False),
        (CornerForPress(), Press(button="HOME"), Click(point=Point(0, 150.1)), False, False),
        (CornerForPress(0.2), Press(button="HOME"), Click(point=Point(200, 0)), True, True),
        (CornerForPress(), Click(point=Point(1, 1)), Press(button="BACK"), False, False),
        (CornerForPress(), Press(button="HOME"), Press(button="BACK"), True, False),
        (RecentIsHome(), Press(button="RECENT"), Press(button="HOME"), True, True),
        (RecentIsHome(), Press(button="RECENT"), Press(button="RECENT"), True, False),
        (RecentIsHome(), Press(button="HOME"), Press(button="RECENT"), True, False),
        (RecentIsHome(), Press(button="RECENT"), Press(button="BACK"), True, False),
    ],
)
def test_what_each_forgives(leniency: Leniency, reference: Action, predicted: Action, type_match: bool, exact: bool) -> None:
    result = judged(leniency, reference, predicted, replace(PLAIN, stop="status"))
    assert (result.type_match, result.exact_match) == (type_match, exact)


def test_a_hit_under_another_type_keeps_its_distance() -> None:
    result = judged(AnyPointedAction(), Click(point=AT), UP)
    assert result.distance == 100.0
    assert result.reason == "SCROLL in place of CLICK: 100 thousandths from the reference; 140 allowed"


def test_app_names_written_otherwise_are_compared_by_their_own_rule() -> None:
    rules = replace(PLAIN, open=OpenRule(text=TextRule("equal", form="as-given")))
    assert judged(AnyWrittenAction(), Open(app="Clock"), Type(text="Clock"), rules).exact_match
    assert not judged(AnyWrittenAction(), Open(app="Clock"), Type(text="clock"), rules).exact_match
    assert judged(AnyWrittenAction(), Type(text="Clock"), Open(app="clock"), rules).exact_match


NODES = [[0.0, 0.0, 1000.0, 1000.0], [100.0, 100.0, 300.0, 300.0], [600.0, 600.0, 700.0, 700.0]]
NODE_TEXTS = ["Everything", "Clock, alarm", "Navigate BACK"]


@every_row(
    ("reference", "predicted", "exact"),
    [
        (Open(app="Clock"), Click(point=Point(300, 300)), True),  # border included
        (Open(app="Clock"), Click(point=Point(301, 300)), False),  # the smallest box is now the whole screen
        (Open(app="Everything"), Click(point=Point(301, 300)), True),
        (Click(point=Point(200, 200)), Open(app="ALARM"), True),
        (Click(point=Point(200, 200)), Open(app="Maps"), False),
        (Press(button="BACK"), Click(point=Point(650, 650)), True),
        (Click(point=Point(650, 650)), Press(button="BACK"), True),
        (Click(point=Point(200, 200)), Press(button="BACK"), False),
        (Press(button="HOME"), Click(point=Point(650, 650)), False),
        (Type(text="Clock"), Click(point=Point(200, 200)), False),
    ],
)
def test_the_text_of_the_element_clicked(reference: Action, predicted: Action, exact: bool) -> None:
    rules = StepRules(click=ClickRule("targets"), leniencies=(NodeText(),))
    task = step(reference, NODES, extras={"box_texts": NODE_TEXTS})
    result = rules.judge(task, reference, predicted)
    assert (result.type_match, result.exact_match) == (exact, exact)


@every_row("texts", [None, [], "Clock", ["x"], [None, None, None], ["Clock", "", "Clock"]])
def test_an_element_without_text_names_nothing(texts: object) -> None:
    rules = StepRules(click=ClickRule("targets"), leniencies=(NodeText(),))
    for app in ("Clock", ""):
        task = step(Open(app=app), NODES, extras={"box_texts": texts})
        assert not rules.judge(task, task.action, Click(point=Point(200, 200))).exact_match
    bare = step(Open(app="Clock"), extras={"box_texts": texts})
    assert not rules.judge(bare, bare.action, Click(point=Point(200, 200))).exact_match


@every_row(
    ("setting", "goal", "low", "predicted", "exact"),
    [
        ("low", "", "Scroll up to see more", DOWN, True),  # to scroll the content up the finger moves down
        ("low", "", "Scroll down to see more", UP, True),
        ("low", "", "Scroll down to see more", DOWN, False),
        ("low", "", "scroll down to see more", UP, False),  # case counts
        ("low", "", "Scroll right", LEFT, True),  # labelled so; the words know up and down alone
        ("high", "", "Scroll down to see more", UP, False),  # not in the prompt
        ("high", "Scroll down to the end", None, UP, True),
        ("low", "Scroll down to the end", "Tap", UP, True),
    ],
)
def test_a_scroll_as_the_prompt_describes_it(setting: str, goal: str, low: str | None, predicted: Scroll, exact: bool) -> None:
    rules = replace(PLAIN, leniencies=(PromptDirection(),))
    update = {"setting": setting, "instruction": goal, "low_level_instruction": low}
    result = rules.judge(step(LEFT).model_copy(update=update), LEFT, predicted)
    assert (result.type_match, result.exact_match) == (True, exact)


def test_leniencies_are_asked_in_order_and_hand_on() -> None:
    rules = replace(PLAIN, leniencies=(ClickForType(), LongPressIsClick()))
    held = step(LongPress(point=AT))
    assert rules.judge(held, held.action, Type(text="x")).exact_match  # a long press is a click, for which typing counts
    assert rules.judge(held, held.action, Click(point=NEAR)).exact_match
    short_press = replace(rules, tap_limit=200.0)
    typed = step(Type(text="x"))
    assert short_press.judge(typed, typed.action, LongPress(point=AT, duration=200)).exact_match
    assert not short_press.judge(typed, typed.action, LongPress(point=AT, duration=201)).exact_match


@settings(max_examples=150)
@given(task=tasks(), predicted=anything)
def test_where_it_is_not_concerned_the_ordinary_rules_hold(task: StepTaskModel, predicted: Action) -> None:
    plain = PLAIN.judge(task, task.action, predicted)
    for leniency in LENIENCIES:
        if not leniency.concerns(task.action.type, predicted.type):
            assert replace(PLAIN, leniencies=(leniency,)).judge(task, task.action, predicted) == plain, leniency


def test_each_action_is_written_in_its_own_words() -> None:
    words = {replace(PLAIN, leniencies=(each,)).describe() for each in LENIENCIES} | {PLAIN.describe()}
    assert len(words) == len(LENIENCIES) + 1
    one, other = (replace(PLAIN, leniencies=(WaitIsStop(), LongPressIsClick("both"))) for _ in range(2))
    assert hash(one) == hash(other)


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

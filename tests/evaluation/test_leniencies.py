"""Hand-computed cases of what scorers forgive, both sides of each border, and what each leniency leaves alone."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings

from guieval.actions import Action, Click, LongPress, Open, Point, Press, Scroll, Stop, Type, Wait
from guieval.evaluation import ClickRule, Judgement, Leniency, OpenRule, StepRules, TextRule
from guieval.evaluation.leniencies import (
    AnyLongPress,
    AnyPointedAction,
    AnyWrittenAction,
    ClickForType,
    CornerForPress,
    LongPressIsClick,
    NodeText,
    PromptDirection,
    RecentIsHome,
    WaitIsStop,
)
from guieval.steps import StepTaskModel
from tests.evaluation.strategies import LENIENCIES, anything, tasks
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

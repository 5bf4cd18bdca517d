"""ScreenSuite's graded click: which steps earn a credit, and the figure by hand from steps and answers."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from guieval.actions import Action, Click, LongPress, Open, Point, Press, Scroll, Type, Wait
from guieval.evaluation import ActionEvaluator, get_protocol
from guieval.steps import StepTaskModel

Step = Callable[..., StepTaskModel]


def matches(task: StepTaskModel, action: Action) -> tuple[bool, bool]:
    outcome = ActionEvaluator("screensuite").evaluate(task, action)
    return outcome.type_match, outcome.exact_match


def click(x: float, y: float) -> Click:
    return Click(point=Point(x, y))


def test_a_click_is_right_where_it_earns_any_credit(step: Step) -> None:
    task = step(click(0, 0))
    assert matches(task, click(500, 500)) == (True, False)  # exactly sqrt(1/2) of the screen: no credit
    assert matches(task, click(500, 499.9)) == (True, True)
    assert matches(task, click(707.1, 0)) == (True, True)
    assert matches(task, click(707.2, 0)) == (True, False)
    assert ActionEvaluator("screensuite").evaluate(task, click(300, 400)).distance == pytest.approx(500)


def test_every_long_press_is_a_click(step: Step) -> None:
    held = LongPress(point=Point(500, 500))
    for label in (held, click(500, 500)):
        for answer in (held, click(500, 500)):
            assert matches(step(label), answer) == (True, True)


def test_texts_are_equal_in_any_case_and_directions_equal(step: Step) -> None:
    assert matches(step(Type(text="Clock")), Type(text=" clock ")) == (True, True)
    assert matches(step(Type(text="Clock")), Type(text="clock app")) == (True, False)
    scroll = Scroll(point=Point(500, 500), direction="up")
    assert matches(step(scroll), scroll.model_copy(update={"direction": "down"})) == (True, False)
    assert matches(step(scroll), scroll) == (True, True)
    assert matches(step(Wait()), Wait(duration=1)) == (True, True)


def test_apps_and_buttons_never_match(step: Step) -> None:
    assert matches(step(Open(app="Clock")), Open(app="Clock")) == (False, False)
    assert matches(step(Press(button="BACK")), Press(button="BACK")) == (False, False)


def test_the_words_state_the_credit() -> None:
    protocol = get_protocol("screensuite")
    [figure] = protocol.figures
    assert "1 - sqrt(2) x its distance" in figure.describe() and "without STOP" in figure.describe()
    assert f"{math.sqrt(0.5):g}" in protocol.rules.describe() and "never match" in protocol.rules.describe()

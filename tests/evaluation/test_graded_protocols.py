"""ScreenSuite's graded click: which steps earn a credit, and the figure by hand from steps and answers."""

from __future__ import annotations

import math

import pytest

from guieval.actions import LongPress, Open, Point, Press, Type, Wait
from guieval.evaluation import get_protocol
from tests.evaluation.verdicts import Step, click, judged, matches, scroll

PROTOCOL = "screensuite"


def test_a_click_is_right_where_it_earns_any_credit(step: Step) -> None:
    task = step(click(0, 0))
    assert matches(PROTOCOL, task, click(500, 500)) == (True, False)  # exactly sqrt(1/2) of the screen: no credit
    assert matches(PROTOCOL, task, click(500, 499.9)) == (True, True)
    assert matches(PROTOCOL, task, click(707.1, 0)) == (True, True)
    assert matches(PROTOCOL, task, click(707.2, 0)) == (True, False)
    assert judged(PROTOCOL, task, click(300, 400)).distance == pytest.approx(500)


def test_every_long_press_is_a_click(step: Step) -> None:
    held = LongPress(point=Point(500, 500))
    for label in (held, click(500, 500)):
        for answer in (held, click(500, 500)):
            assert matches(PROTOCOL, step(label), answer) == (True, True)


def test_texts_are_equal_in_any_case_and_directions_equal(step: Step) -> None:
    assert matches(PROTOCOL, step(Type(text="Clock")), Type(text=" clock ")) == (True, True)
    assert matches(PROTOCOL, step(Type(text="Clock")), Type(text="clock app")) == (True, False)
    assert matches(PROTOCOL, step(scroll("up")), scroll("down")) == (True, False)
    assert matches(PROTOCOL, step(scroll("up")), scroll("up")) == (True, True)
    assert matches(PROTOCOL, step(Wait()), Wait(duration=1)) == (True, True)


def test_apps_and_buttons_never_match(step: Step) -> None:
    assert matches(PROTOCOL, step(Open(app="Clock")), Open(app="Clock")) == (False, False)
    assert matches(PROTOCOL, step(Press(button="BACK")), Press(button="BACK")) == (False, False)


def test_the_words_state_the_credit() -> None:
    protocol = get_protocol(PROTOCOL)
    [figure] = protocol.metrics
    assert "1 - sqrt(2) x its distance" in figure.describe() and "without STOP" in figure.describe()
    assert f"{math.sqrt(0.5):g}" in protocol.rules.describe() and "never match" in protocol.rules.describe()

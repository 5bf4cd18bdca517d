"""MiniCPM-GUI: what each verb means, several lines, garbage that is refused, and the past."""

from __future__ import annotations

from dataclasses import replace

import pytest

from guieval.actions import Action, Click, LongPress, Point, Press, Scroll, Stop, Type
from guieval.errors import ParseError
from guieval.history import reference_entry
from guieval.registry import load_model

from .steps import scroll, step
from .tables import reads, refuses

MODEL = load_model("minicpm-gui")
MIDDLE = Point(500.0, 500.0)


def read(text: str, setting: str = "high") -> Action:
    return MODEL.parse_response(step(setting=setting), text).action


test_lines = reads(
    MODEL,
    ("click,<box> 200 300 300 500</box>", Click(point=Point(250.0, 400.0))),
    (
        "swipe, from <point> 500 700</point>  to <point> 520 300</point>",
        Scroll(point=Point(500.0, 700.0), direction="up", distance=400),
    ),
    # where the view goes: the finger goes the other way
    *(("scroll, down 350 right 0", scroll("up")), ("scroll, down -20 right 10", scroll("down"))),
    *(("scroll, down 0 right 100", scroll("left")), ("scroll, down 10 right -100", scroll("right"))),
    *(("input, weather in new york", Type(text="weather in new york")), ("input, a, b", Type(text="a, b"))),
    *(("input, one\ntwo", Type(text="one\ntwo")), ("go_back", Press(button="BACK")), ("answer, task complete", Stop())),
    ("task_impossible", Stop(status="impossible")),
    wrap=lambda line: (f"actions:\n{line}", f"actions:  \n{line}", line),
)


def test_the_thought_stands_before_the_actions() -> None:
    text = "thoughts: click on the link.\nactions:\nclick,<box> 200 300 300 500</box> \ninput, hello\t\nenter"
    parsed = MODEL.parse_response(step(), text)
    assert (parsed.action, parsed.thought) == (Click(point=Point(250.0, 400.0)), "click on the link.")
    assert read("actions:\ninput, hello\t\nclick,<box> 1 2 3 4</box>") == Type(text="hello")


test_garbage_is_no_action = refuses(
    MODEL,
    *("", "actions:", "actions:\nfly, <point> 1 2</point>", "actions:\ntap, the switch"),
    ("actions:\ntap, <point> 910 1907</point>", "", "CLICK"),
    *("actions:\nswipe, from <point> 1 2</point>", "actions:\nscroll, down 0 right 0", "actions:\nscroll, down"),
    *("I will tap, <point> 1 2</point>", "enter the name"),
)


def test_a_box_answers_a_grounding_query_only() -> None:
    assert read("<box>  200 300 300 500</box>\n<box> 1 2 3 4</box>", "grounding") == Click(point=Point(250.0, 400.0))
    assert read("actions:\ntap, <point> 250 400</point>", "grounding") == Click(point=Point(250.0, 400.0))
    for text, setting in (("<box>  200 300 300 500</box>", "high"), ("Privacy", "grounding")):
        with pytest.raises(ParseError):
            read(text, setting)


def test_the_past_is_the_verbs_of_each_step() -> None:
    steps = [step(step_index=index, screenshot=f"{index}.png") for index in range(4)]
    past = [reference_entry(one) for one in steps[:3]]
    past[1] = replace(past[1], raw_response="actions:\nclick,<box> 1 2 3 4</box>\ninput, tea\nenter")
    past[2] = replace(past[2], action=LongPress(point=MIDDLE))
    assert MODEL.prepare_input(steps[3], past).text == (
        "Actions History\nstep 0: tap\nstep 1: click, input, enter\nstep 2: long_press\nYour Task\nTurn on Wi-Fi\n"
        "Generate next actions to do this task."
    )

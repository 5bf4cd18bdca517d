"""The rows of GUI-Odyssey's two scorers, hand-computed on both sides of every border."""

from __future__ import annotations

import pytest

from guieval.actions import Action, LongPress, Point, Press, Stop, Type, Wait
from guieval.evaluation import get_protocol
from tests.evaluation.verdicts import Step, click, judged, scroll

BOTH = pytest.mark.parametrize("protocol", ["odyssey-v1", "odyssey-v2"])


@BOTH
@pytest.mark.parametrize(
    ("x", "y", "hit"),
    [(640, 500, True), (640.1, 500, False), (500, 360, True), (500, 359.9, False), (584, 612, True), (585, 612, False)],
)
def test_0_14_of_the_screen_is_an_ellipse(step: Step, protocol: str, x: float, y: float, hit: bool) -> None:
    # 84 and 112 thousandths make 140; the screen's 1080 x 2400 pixels do not matter.
    assert judged(protocol, step(click(500, 500)), click(x, y)).exact_match is hit
    held = step(LongPress(point=Point(500, 500)))
    assert judged(protocol, held, LongPress(point=Point(x, y))).exact_match is hit
    assert not judged(protocol, held, click(500, 500)).exact_match


def test_the_box_counts_in_the_second_scorer_alone(step: Step) -> None:
    for make in (lambda x, y: click(x, y), lambda x, y: LongPress(point=Point(x, y))):
        task = step(make(150, 250), targets=[[100, 200, 700, 400]])
        assert judged("odyssey-v2", task, make(700, 400)).exact_match
        assert judged("odyssey-v2", task, make(150, 110)).exact_match  # above the box, at 0.14
        assert not judged("odyssey-v2", task, make(700.1, 400)).exact_match
        assert not judged("odyssey-v1", task, make(700, 400)).exact_match


@BOTH
def test_buttons_and_ends_are_types_of_their_own(step: Step, protocol: str) -> None:
    labels: list[Action] = [
        *(Press(button=name) for name in ("HOME", "BACK", "RECENT")),
        Stop(status="finish"),
        Stop(status="impossible"),
        Wait(),
    ]
    assert judged(protocol, step(Wait()), Wait(duration=5)).exact_match
    for label in labels:
        for given in labels:
            outcome = judged(protocol, step(label), given)
            assert outcome.type_match is outcome.exact_match is (label == given)


@BOTH
@pytest.mark.parametrize(
    ("reference", "predicted", "exact"),
    [
        ("abcd", "abxy", True),  # 1 - 2/4
        ("abcde", "abxyz", False),  # 1 - 3/5
        ("abcd", "axyz", False),  # 1 - 3/4
        ("coffee near me", " coffee ", True),
        ("", "", True),
        ("weather", " weather in Rome ", True),
        ("ABCD", "abcd", False),
        ("something", "", True),
    ],
)
def test_texts(step: Step, protocol: str, reference: str, predicted: str, exact: bool) -> None:
    assert judged(protocol, step(Type(text=reference)), Type(text=predicted)).exact_match is exact


@BOTH
def test_scrolls_have_a_direction(step: Step, protocol: str) -> None:
    assert judged(protocol, step(scroll("left")), scroll("left")).exact_match
    assert not judged(protocol, step(scroll("left")), scroll("right")).exact_match


@BOTH
def test_the_random_split_averages_categories_and_the_others_do_not(protocol: str) -> None:
    figures = {figure.name: figure for figure in get_protocol(protocol).metrics}
    assert [(figures[name].measure, figures[name].average, figures[name].keys) for name in ("AMS", "SR")] == [
        ("exact", "cells", ("category",)),
        ("success", "cells", ("category",)),
    ]
    others = [figures[f"{name} (app, device and task splits)"] for name in ("AMS", "SR")]
    assert [(figure.measure, figure.average) for figure in others] == [("exact", "all"), ("success", "all")]


@BOTH
def test_lost_steps_are_left_out_and_unreadable_ones_are_wrong(protocol: str) -> None:
    failure = get_protocol(protocol).failure
    assert (failure.missing, failure.unparseable, failure.unsupported) == ("episode-left-out", "wrong", "wrong")

"""The rows of AITW's, AiTZ's, GUI-Odyssey's, ScreenSuite's, desktop and web scorers, by hand on both sides of every border."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pytest

from guieval import actions as act
from guieval.evaluation import get_protocol
from tests.evaluation.verdicts import click, judged, matches, right, scroll, step
from tests.rows import every_row

NODE, BOX = {"elements": [[400.0, 400.0, 600.0, 500.0]]}, {"targets": [[100.0, 200.0, 300.0, 400.0]]}
COAT, ODYSSEY, AGENTNET = (
    ["coat-official", "coat-intended"],
    ["odyssey-v1", "odyssey-v2"],
    ["agentnetbench", "agentnetbench-v2"],
)
MIND2WEB = {"targets": [*BOX["targets"], [700, 700, 800, 800]]}
WIDE = {"targets": [[100, 200, 700, 400]]}
Tried = tuple[float, float, bool]
PLACES: list[tuple[Sequence[str], tuple[float, float], dict[str, Any], Sequence[Tried]]] = [
    # CoAT as it is meant asks whether the node pointed at holds the label, enlarged: 380 to 620 and 390 to 510
    *((COAT[1:], label, NODE, [(599, 499, True)]) for label in ((420, 450), (380.1, 390.1))),
    *((COAT[1:], label, NODE, [(599, 499, False)]) for label in ((379.9, 450), (500, 510.1))),
    # Another node counts that overlaps by more than half. Enlarged, the node pointed at spans 390 to 510 and the other one
    # 10 % of its width more on either side; both have one height, so the overlap is the ratio of the widths that they share
    # and cover: [400, 700] becomes [370, 730]: 240 / 360 = 0.667; [360.4, 835.6]: 0.505; [359.6, 844.4]: 0.495.
    *(
        (COAT[1:], (edge - 10, 450), {"elements": [*NODE["elements"], [400, 400, edge, 500]]}, [(500, 450, edge < 800)])
        for edge in (700.0, 796.0, 804.0)
    ),
    (COAT[1:], (100, 100), NODE, [(100, 100, True), (100.1, 100, False)]),  # without a node the very place
    # CoAT's released scorer compares clicks with the corner: right by the label is wrong
    (COAT[:1], (450, 450), NODE, [(450, 450, False)]),
    # nodes that reach the corner, also once they have grown by 10 % of 100, and one that does not
    *(
        (protocols, label, {"elements": [[edge, edge, edge + size, edge + size]]}, [(edge + 50, edge + 50, edge < 10.1)])
        for protocols, label in ((COAT[:1], (450, 450)), (COAT[1:], (0, 0)))
        for edge, size in ((0, 200), (10, 100), (10.1, 100))
    ),
    # AITW takes both points in one box grown by 140 per cent: 200 wide and 50 high, 140 more on the left and right, 35 more
    # above and below; only so it holds the reference
    (
        *(["aitw-original"], (261, 425), {"elements": [[400, 400, 600, 450]]}),
        [(739.9, 425, True), (740.1, 425, False), (500, 484.9, True), (500, 485.1, False), (500, 364.9, False)],
    ),
    # a box cut at the edge keeps its size: [0, 200] grows by 280 to [-140, 340], which becomes [0, 480]
    (["aitw-original"], (10, 500), {"elements": [[0, 480, 200, 520]]}, [(479, 500, True), (481, 500, False)]),
    # a box that holds only one of the points does not count; 0.14 of the screen, border included
    (
        *(["aitw-original"], (100, 100), {"elements": [[600, 600, 700, 700]]}),
        [(650, 650, False), (240, 100, True), (240.1, 100, False)],
    ),
    # 0.14 of the screen is an ellipse, 84 and 112 thousandths make 140; the screen's 1080 x 2400 pixels do not matter
    (ODYSSEY, (500, 500), {}, [(640, 500, True), (640.1, 500, False), (500, 360, True), (500, 359.9, False)]),
    (ODYSSEY, (500, 500), {}, [(584, 612, True), (585, 612, False)]),
    # the box counts in the second scorer alone, and beside it the distance
    (["odyssey-v2"], (150, 250), WIDE, [(700, 400, True), (150, 110, True), (700.1, 400, False)]),
    (["odyssey-v1"], (150, 250), WIDE, [(700, 400, False)]),
    # full marks are a box with its border, or a hundredth on both axes: 9.9 on both is 14.0, 10.1 is 14.28
    (AGENTNET, (500, 600), BOX, [(300, 400, True), (300.1, 300, False), (509.9, 609.9, True), (510.1, 610.1, False)]),
    (AGENTNET, (500, 600), BOX, [(514.14, 600, True), (514.15, 600, False)]),
    # any of the targets' boxes
    (["mind2web-element"], (200, 300), MIND2WEB, [(100, 200, True), (300, 400, True), (300, 200, True), (99.99, 300, False)]),
    (["mind2web-element"], (200, 300), MIND2WEB, [(300.01, 300, False), (200, 400.01, False)]),
    (["mind2web-element"], (200, 300), MIND2WEB, [(750, 750, True), (650, 650, False)]),
    # right where it earns any credit: exactly sqrt(1/2) of the screen earns none
    (["screensuite"], (0, 0), {}, [(500, 500, False), (500, 499.9, True), (707.1, 0, True), (707.2, 0, False)]),
]


@every_row(("protocols", "label", "more", "tried"), PLACES)
def test_places(protocols: Sequence[str], label: tuple[float, float], more: dict[str, Any], tried: Sequence[Tried]) -> None:
    for protocol in protocols:
        for kind in (click, held) if protocol.startswith("odyssey") else (click,):
            for x, y, hit in tried:
                assert matches(protocol, step(kind(*label), **more), kind(x, y)) == (True, hit), (protocol, x, y)


def held(x: float, y: float) -> act.LongPress:
    return act.LongPress(point=act.Point(x, y))


@every_row(
    ("protocols", "texts"),
    [
        (
            COAT,
            [
                ("coffee near me", "near", True),
                ("near", "coffee near me", True),
                ("Coffee", "coffee", True),  # not contained; 1 - 2/12 = 0.833
                ("COFFEE", "coffee", False),  # case counts: nothing in common
                ("anything", "", True),
                ("abcdefghi", "abcdefghX", True),  # 9 characters of which 8 are shared: 16/18 = 0.889
                ("abcde", "abcdX", False),  # 8/10 is not more than 0.8
                ("abcdef", "abcdeX", True),  # 10/12
                ("abcdX", "Xabcd", False),  # moved: 8/10, while a plain distance would give 1 - 2/5
            ],
        ),
        (
            ODYSSEY,
            [
                ("abcd", "abxy", True),  # 1 - 2/4
                ("abcde", "abxyz", False),  # 1 - 3/5
                ("abcd", "axyz", False),  # 1 - 3/4
                ("coffee near me", " coffee ", True),
                ("weather", " weather in Rome ", True),
                *(("", "", True), ("ABCD", "abcd", False), ("something", "", True)),
            ],
        ),
        (
            AGENTNET,
            [
                ("abcde", "abcdx", True),  # 1 - 1/5
                ("abcd", "abcx", False),  # 1 - 1/4
                ("Hello\n", "hello", True),  # the line break is stripped before it could matter
                ("STAT6011 Grouping\n", "stat6011 gROUPING", True),
                *(("ab", "", False), ("long text", "text", False), ("", "", True)),
            ],
        ),
        (
            ["mind2web-element"],  # the words of a value
            [
                *(("New York", " york  new ", True), ("New York", "New", False), ("New York", "York", False)),
                *(("a , b", "A B", True), ("New York , NY", "new york ny", True)),
                *(("", ".", True), ("", "-", True), ("a", "", False)),
            ],
        ),
        (["aitw-original"], [("a", "b", True)]),
        (["screensuite"], [("Clock", " clock ", True), ("Clock", "clock app", False)]),
    ],
)
def test_texts(protocols: Sequence[str], texts: Sequence[tuple[str, str, bool]]) -> None:
    for protocol in protocols:
        for reference, predicted, exact in texts:
            assert matches(protocol, step(act.Type(text=reference)), act.Type(text=predicted)) == (True, exact), (
                protocol,
                predicted,
            )


BACK, HOME, ENTER = (act.Press(button=name) for name in ("BACK", "HOME", "ENTER"))
UP, DOWN, LEFT, RIGHT = map(scroll, ("up", "down", "left", "right"))
COPY, PASTE = (act.Unsupported(name="hotkey", arguments={"keys": ["ctrl", letter]}) for letter in "cv")
DONE, IMPOSSIBLE = act.Stop(status="finish"), act.Stop(status="impossible")
SUITE = ["screensuite"]
CHORD = act.Unsupported(name="hotkey", arguments={"keys": ["ctrl", "c"]}, device=act.Hotkey(keys=("ctrl", "c")))


@every_row(
    ("protocols", "reference", "predicted", "verdict"),
    [
        (COAT, UP, UP, (True, True)),
        (COAT, UP, DOWN, (True, False)),
        (COAT, BACK, BACK, (True, True)),
        (COAT, BACK, HOME, (True, False)),
        (COAT, IMPOSSIBLE, DONE, (True, True)),
        (COAT, click(500, 450), held(500, 450), (False, False)),
        # AITW: every button and status is a type; of a scroll the axis counts
        (["aitw-original"], act.Wait(), act.Wait(duration=5), (True, True)),
        (["aitw-original"], BACK, BACK, (True, True)),
        (["aitw-original"], BACK, HOME, (False, False)),
        (["aitw-original"], DONE, DONE, (True, True)),
        (["aitw-original"], DONE, IMPOSSIBLE, (False, False)),
        (["aitw-original"], LEFT, RIGHT, (True, True)),
        (["aitw-original"], LEFT, DOWN, (True, False)),
        (["aitw-original"], LEFT, click(500, 500), (False, False)),
        (ODYSSEY, held(500, 500), click(500, 500), (False, False)),
        (ODYSSEY, LEFT, LEFT, (True, True)),
        (ODYSSEY, LEFT, RIGHT, (True, False)),
        (ODYSSEY, act.Wait(), act.Wait(duration=5), (True, True)),
        # only AgentNetBench's later scorer minds the way of a scroll
        (AGENTNET[:1], UP, DOWN, (True, True)),
        (AGENTNET[:1], UP, LEFT, (True, True)),
        (AGENTNET[1:], UP, DOWN, (True, False)),
        (AGENTNET, UP, UP, (True, True)),
        (AGENTNET, DONE, DONE, (True, True)),
        (AGENTNET, DONE, IMPOSSIBLE, (True, False)),
        (AGENTNET, ENTER, ENTER, (True, True)),
        (AGENTNET, ENTER, BACK, (True, False)),
        (AGENTNET, act.Wait(), act.Wait(duration=5), (True, True)),
        (AGENTNET, COPY, COPY, (True, True)),
        (AGENTNET, COPY, PASTE, (True, False)),
        # keys are compared as a set
        (AGENTNET, CHORD, act.Unsupported(name="key", device=act.Hotkey(keys=("C", "ctrl"))), (True, True)),
        (AGENTNET, CHORD, act.Unsupported(name="key", device=act.Hotkey(keys=("ctrl", "v"))), (True, False)),
        # every long press is a click; apps and buttons never match
        *((SUITE, label, answer, (True, True)) for label in (held(9, 9), click(9, 9)) for answer in (held(9, 9), click(9, 9))),
        (SUITE, UP, DOWN, (True, False)),
        (SUITE, UP, UP, (True, True)),
        (SUITE, act.Wait(), act.Wait(duration=1), (True, True)),
        (SUITE, act.Open(app="Clock"), act.Open(app="Clock"), (False, False)),
        (SUITE, BACK, BACK, (False, False)),
    ],
)
def test_the_other_actions(
    protocols: Sequence[str], reference: act.Action, predicted: act.Action, verdict: tuple[bool, bool]
) -> None:
    for protocol in protocols:
        assert matches(protocol, step(reference), predicted) == verdict, protocol


@every_row("protocol", ODYSSEY)
def test_buttons_and_ends_are_types_of_their_own(protocol: str) -> None:
    labels: list[act.Action] = [HOME, BACK, act.Press(button="RECENT"), DONE, IMPOSSIBLE, act.Wait()]
    for label in labels:
        for given in labels:
            assert matches(protocol, step(label), given) == (label == given, label == given)


@every_row("protocol", AGENTNET)
@every_row("kind", [act.DoubleClick, act.RightClick, act.Hover])
def test_mouse_actions_are_judged_by_their_places(
    protocol: str, kind: type[act.DoubleClick] | type[act.RightClick] | type[act.Hover]
) -> None:
    label = act.Unsupported(name="rightClick", arguments={"point": [200.0, 300.0]}, device=kind(point=act.Point(200.0, 300.0)))
    near, far = (act.Unsupported(name="right_click", device=kind(point=act.Point(x, 300.0))) for x in (210.0, 220.0))
    assert right(protocol, step(label), near)  # 0.010 screens, 0.0141 allowed
    assert not right(protocol, step(label), far)
    boxed = step(label, extras={"unsupported_boxes": [[100.0, 200.0, 400.0, 400.0]]})
    assert right(protocol, boxed, far)
    other = judged(protocol, boxed, act.Unsupported(name="zoom", device=act.Drag(end=act.Point(200.0, 300.0))))
    assert (other.verdict, other.type_match) == ("wrong", False)
    assert not right("ui-r1", boxed, far)


def test_the_intended_coat_names_what_it_mends() -> None:
    official, intended = map(get_protocol, COAT)
    assert (intended.mends, official.mends, official.metrics) == ("coat-official", None, intended.metrics)


@every_row(
    ("protocols", "figure", "measure", "average", "keys"),
    [
        (COAT, "type_acc", "type", "all", ()),
        (COAT, "exact_acc", "exact", "all", ()),
        (COAT, "success_rate", "success", "all", ()),
        (COAT, "goal_progress", "progress", "episodes", ()),
        # the random split averages categories and the others do not
        (ODYSSEY, "AMS", "exact", "cells", ("category",)),
        (ODYSSEY, "SR", "success", "cells", ("category",)),
        (ODYSSEY, "AMS (app, device and task splits)", "exact", "all", ()),
        (ODYSSEY, "SR (app, device and task splits)", "success", "all", ()),
        (["mind2web-element"], "step_acc", "exact", "all", ()),
        (["mind2web-element"], "macro_step_acc", "exact", "episodes", ()),
    ],
)
def test_figures(protocols: Sequence[str], figure: str, measure: str, average: str, keys: tuple[str, ...]) -> None:
    for protocol in protocols:
        found = {each.name: each for each in get_protocol(protocol).metrics}
        assert (found[figure].measure, found[figure].average, found[figure].keys) == (measure, average, keys)
        if protocol in COAT:
            assert found["PRESS exact_acc"].over == frozenset({"PRESS"})


@every_row(
    ("protocol", "missing"),
    [("aitw-original", "left-out"), ("odyssey-v1", "episode-left-out"), ("odyssey-v2", "episode-left-out")],
)
def test_lost_steps_are_left_out_and_unreadable_ones_are_wrong(protocol: str, missing: str) -> None:
    failure = get_protocol(protocol).failure
    assert (failure.missing, failure.unparseable, failure.unsupported) == (missing, "wrong", "wrong")


def test_screensuites_credit_is_graded_and_stated() -> None:
    protocol = get_protocol("screensuite")
    assert judged("screensuite", step(click(0, 0)), click(300, 400)).distance == pytest.approx(500)
    [figure] = protocol.metrics
    assert "1 - sqrt(2) x its distance" in figure.describe() and "without STOP" in figure.describe()
    assert f"{math.sqrt(0.5):g}" in protocol.rules.describe() and "never match" in protocol.rules.describe()

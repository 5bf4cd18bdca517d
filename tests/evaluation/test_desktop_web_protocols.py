"""The rows of desktop and web scorers, hand-computed on both sides of every border."""

from __future__ import annotations

import pytest

from guieval.actions import DoubleClick, Drag, Hotkey, Hover, Point, Press, RightClick, Stop, Type, Unsupported, Wait
from guieval.evaluation import ActionEvaluator, get_protocol
from tests.evaluation.verdicts import Step, click, matches, right, scroll
from tests.rows import every_row

BOX = [[100.0, 200.0, 300.0, 400.0]]
BOTH = pytest.mark.parametrize("protocol", ["agentnetbench", "agentnetbench-v2"])


@BOTH
@pytest.mark.parametrize(
    ("x", "y", "hit"),
    [
        (300, 400, True),  # the border of the box
        (300.1, 300, False),
        (509.9, 609.9, True),  # 9.9 on both axes is 14.0
        (510.1, 610.1, False),  # 14.28; a hundredth on both axes is the border
        (514.14, 600, True),
        (514.15, 600, False),
    ],
)
def test_full_marks_are_a_box_or_a_hundredth_on_both_axes(step: Step, protocol: str, x: float, y: float, hit: bool) -> None:
    assert right(protocol, step(click(500, 600), targets=BOX), click(x, y)) is hit


@BOTH
@pytest.mark.parametrize(
    ("reference", "predicted", "exact"),
    [
        ("abcde", "abcdx", True),  # 1 - 1/5
        ("abcd", "abcx", False),  # 1 - 1/4
        ("Hello\n", "hello", True),  # the line break is stripped before it could matter
        ("STAT6011 Grouping\n", "stat6011 gROUPING", True),
        ("ab", "", False),
        ("long text", "text", False),
        ("", "", True),
    ],
)
def test_texts_are_four_fifths_similar(step: Step, protocol: str, reference: str, predicted: str, exact: bool) -> None:
    assert right(protocol, step(Type(text=reference)), Type(text=predicted)) is exact


def test_only_the_later_scorer_minds_the_way_of_a_scroll(step: Step) -> None:
    task = step(scroll("up"))
    assert right("agentnetbench", task, scroll("down"))
    assert right("agentnetbench", task, scroll("left"))
    assert not right("agentnetbench-v2", task, scroll("down"))
    assert right("agentnetbench-v2", task, scroll("up"))


@BOTH
def test_ends_keys_and_named_actions(step: Step, protocol: str) -> None:
    assert right(protocol, step(Stop(status="finish")), Stop(status="finish"))
    assert matches(protocol, step(Stop(status="finish")), Stop(status="impossible")) == (True, False)
    assert right(protocol, step(Press(button="ENTER")), Press(button="ENTER"))
    assert not right(protocol, step(Press(button="ENTER")), Press(button="BACK"))
    assert right(protocol, step(Wait()), Wait(duration=5))
    hotkey = Unsupported(name="hotkey", arguments={"keys": ["ctrl", "c"]})
    assert right(protocol, step(hotkey), hotkey)
    assert not right(protocol, step(hotkey), Unsupported(name="hotkey", arguments={"keys": ["ctrl", "v"]}))


@BOTH
@pytest.mark.parametrize("kind", [DoubleClick, RightClick, Hover])
def test_mouse_actions_are_judged_by_their_places(
    step: Step, protocol: str, kind: type[DoubleClick] | type[RightClick] | type[Hover]
) -> None:
    label = Unsupported(name="rightClick", arguments={"point": [200.0, 300.0]}, device=kind(point=Point(200.0, 300.0)))
    near, far = (Unsupported(name="right_click", device=kind(point=Point(x, 300.0))) for x in (210.0, 220.0))
    assert right(protocol, step(label), near)  # 0.010 screens, 0.0141 allowed
    assert not right(protocol, step(label), far)
    boxed = step(label).model_copy(update={"extras": {"unsupported_boxes": [[100.0, 200.0, 400.0, 400.0]]}})
    assert right(protocol, boxed, far)
    other = Unsupported(name="zoom", device=Drag(end=Point(200.0, 300.0)))
    judged = ActionEvaluator(protocol).evaluate(boxed, other)
    assert (judged.verdict, judged.type_match) == ("wrong", False)
    assert not right("ui-r1", boxed, far)


@BOTH
def test_keys_are_compared_as_a_set(step: Step, protocol: str) -> None:
    label = Unsupported(name="hotkey", arguments={"keys": ["ctrl", "c"]}, device=Hotkey(keys=("ctrl", "c")))
    assert right(protocol, step(label), Unsupported(name="key", device=Hotkey(keys=("C", "ctrl"))))
    assert not right(protocol, step(label), Unsupported(name="key", device=Hotkey(keys=("ctrl", "v"))))


@every_row(
    ("x", "y", "hit"),
    [
        (100, 200, True),
        (300, 400, True),
        (300, 200, True),
        (99.99, 300, False),
        (300.01, 300, False),
        (200, 400.01, False),
        (750, 750, True),
        (650, 650, False),
    ],
)
def test_mind2web_takes_any_of_the_targets_boxes(step: Step, x: float, y: float, hit: bool) -> None:
    assert right("mind2web-element", step(click(200, 300), targets=[*BOX, [700, 700, 800, 800]]), click(x, y)) is hit


@every_row(
    ("reference", "predicted", "exact"),
    [
        ("New York", " york  new ", True),
        ("New York", "New", False),
        ("New York", "York", False),
        ("a , b", "A B", True),
        ("New York , NY", "new york ny", True),
        ("", ".", True),
        ("", "-", True),
        ("a", "", False),
    ],
)
def test_mind2web_compares_the_words_of_a_value(step: Step, reference: str, predicted: str, exact: bool) -> None:
    assert right("mind2web-element", step(Type(text=reference)), Type(text=predicted)) is exact


def test_mind2web_averages_steps_and_tasks() -> None:
    figures = {figure.name: figure for figure in get_protocol("mind2web-element").metrics}
    assert figures["step_acc"].average == "all"
    assert figures["macro_step_acc"].average == "episodes"
    assert {figure.measure for figure in figures.values()} == {"exact"}

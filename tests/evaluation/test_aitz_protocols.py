"""The rows of AITW's and AiTZ's scorers, hand-computed on both sides of every border."""

from __future__ import annotations

import pytest

from guieval.actions import LongPress, Point, Press, Stop, Type, Wait
from guieval.evaluation import get_protocol
from tests.evaluation.verdicts import Step, click, judged, scroll
from tests.rows import every_row

NODE = [400.0, 400.0, 600.0, 500.0]


@every_row(
    ("label", "hit"),
    [
        ((420, 450), True),  # in the node pointed at
        ((380.1, 390.1), True),  # in it enlarged: 380 to 620 and 390 to 510
        ((379.9, 450), False),
        ((500, 510.1), False),
    ],
)
def test_the_intended_coat_asks_whether_the_node_pointed_at_holds_the_label(
    step: Step, label: tuple[float, float], hit: bool
) -> None:
    assert judged("coat-intended", step(click(*label), [NODE]), click(599, 499)).exact_match is hit


@pytest.mark.parametrize(
    ("right_edge", "hit"),
    [
        # Enlarged, the node pointed at spans 390 to 510 and the other one 10 % of its width more on either side; both have
        # one height, so the overlap is the ratio of the widths that they share and cover.
        (700.0, True),  # [400, 700] becomes [370, 730]: 240 / 360 = 0.667
        (796.0, True),  # [360.4, 835.6]: 240 / 475.2 = 0.505
        (804.0, False),  # [359.6, 844.4]: 240 / 484.8 = 0.495
    ],
)
def test_the_intended_coat_takes_a_node_that_overlaps_by_more_than_half(step: Step, right_edge: float, hit: bool) -> None:
    around_the_label = [400.0, 400.0, right_edge, 500.0]
    task = step(click(right_edge - 10, 450), [NODE, around_the_label])
    assert judged("coat-intended", task, click(500, 450)).exact_match is hit


def test_coat_without_a_node_asks_for_the_very_place(step: Step) -> None:
    task = step(click(100, 100), [NODE])
    assert judged("coat-intended", task, click(100, 100)).exact_match
    assert not judged("coat-intended", task, click(100.1, 100)).exact_match


@every_row(
    ("node", "point", "hit"),
    [
        ([400.0, 400.0, 600.0, 500.0], (450, 450), False),  # right by the label, which is not looked at
        ([0.0, 0.0, 200.0, 200.0], (150, 150), True),  # reaches the corner
        ([10.0, 10.0, 110.0, 110.0], (60, 60), True),  # reaches it enlarged: 10 - 10 % of 100
        ([10.1, 10.1, 110.1, 110.1], (60, 60), False),
    ],
)
def test_the_official_coat_compares_clicks_with_the_corner(
    step: Step, node: list[float], point: tuple[float, float], hit: bool
) -> None:
    task = step(click(450, 450), [node])
    outcome = judged("coat-official", task, click(*point))
    assert outcome.type_match
    assert outcome.exact_match is hit
    assert judged("coat-intended", step(click(0, 0), [node]), click(*point)).exact_match is hit


@every_row("protocol", ["coat-official", "coat-intended"])
@every_row(
    ("reference", "predicted", "exact"),
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
)
def test_coat_texts(step: Step, protocol: str, reference: str, predicted: str, exact: bool) -> None:
    assert judged(protocol, step(Type(text=reference)), Type(text=predicted)).exact_match is exact


@pytest.mark.parametrize("protocol", ["coat-official", "coat-intended"])
def test_the_other_actions_under_coat(step: Step, protocol: str) -> None:
    assert judged(protocol, step(scroll("up")), scroll("up")).exact_match
    assert not judged(protocol, step(scroll("up")), scroll("down")).exact_match
    assert judged(protocol, step(Press(button="BACK")), Press(button="BACK")).exact_match
    other = judged(protocol, step(Press(button="BACK")), Press(button="HOME"))
    assert other.type_match
    assert not other.exact_match
    assert judged(protocol, step(Stop(status="impossible")), Stop(status="finish")).exact_match
    assert not judged(protocol, step(click(500, 450), [NODE]), LongPress(point=Point(500, 450))).type_match


def test_the_intended_coat_names_what_it_mends() -> None:
    assert get_protocol("coat-intended").mends == "coat-official"
    assert get_protocol("coat-official").mends is None
    assert get_protocol("coat-official").metrics == get_protocol("coat-intended").metrics


def test_coat_reports_steps_action_types_and_episodes() -> None:
    figures = {figure.name: figure for figure in get_protocol("coat-official").metrics}
    assert (figures["type_acc"].measure, figures["exact_acc"].measure) == ("type", "exact")
    assert figures["PRESS exact_acc"].over == frozenset({"PRESS"})
    assert figures["success_rate"].measure == "success"
    assert (figures["goal_progress"].measure, figures["goal_progress"].average) == ("progress", "episodes")


def test_every_button_and_status_is_an_action_type_in_aitw(step: Step) -> None:
    assert judged("aitw-original", step(Wait()), Wait(duration=5)).exact_match
    for label, other in ((Press(button="BACK"), Press(button="HOME")), (Stop(status="finish"), Stop(status="impossible"))):
        assert judged("aitw-original", step(label), label).exact_match
        outcome = judged("aitw-original", step(label), other)
        assert (outcome.type_match, outcome.exact_match) == (False, False)


def test_aitw_is_lenient_about_texts_and_the_way_of_a_scroll(step: Step) -> None:
    assert judged("aitw-original", step(Type(text="a")), Type(text="b")).exact_match
    assert judged("aitw-original", step(scroll("left")), scroll("right")).exact_match
    assert not judged("aitw-original", step(scroll("left")), scroll("down")).exact_match
    assert not judged("aitw-original", step(scroll("left")), click(500, 500)).type_match


def test_aitw_leaves_lost_steps_out() -> None:
    protocol = get_protocol("aitw-original")
    assert (protocol.failure.missing, protocol.failure.unparseable) == ("left-out", "wrong")


@every_row(
    ("x", "y", "hit"), [(739.9, 425, True), (740.1, 425, False), (500, 484.9, True), (500, 485.1, False), (500, 364.9, False)]
)
def test_aitw_takes_both_points_in_one_box_grown_by_140_per_cent(step: Step, x: float, y: float, hit: bool) -> None:
    # 200 wide and 50 high: 140 more on the left and right, 35 more above and below. Only so grown it holds the reference.
    assert judged("aitw-original", step(click(261, 425), [[400.0, 400.0, 600.0, 450.0]]), click(x, y)).exact_match is hit


def test_aitw_keeps_the_size_of_a_box_cut_at_the_edge(step: Step) -> None:
    # [0, 200] grows by 280 to [-140, 340], which becomes [0, 480].
    task = step(click(10, 500), [[0.0, 480.0, 200.0, 520.0]])
    assert judged("aitw-original", task, click(479, 500)).exact_match
    assert not judged("aitw-original", task, click(481, 500)).exact_match


def test_aitw_ignores_boxes_that_hold_only_one_of_the_points(step: Step) -> None:
    task = step(click(100, 100), [[600.0, 600.0, 700.0, 700.0]])
    assert not judged("aitw-original", task, click(650, 650)).exact_match
    assert judged("aitw-original", task, click(240, 100)).exact_match  # 0.14 of the screen, border included
    assert not judged("aitw-original", task, click(240.1, 100)).exact_match

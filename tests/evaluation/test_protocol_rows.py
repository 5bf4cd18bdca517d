"""What each published protocol accepts, on both sides of every border its scorer draws."""

from __future__ import annotations

from typing import Any

from guieval.actions import Click, LongPress, Open, Point, Press, Stop, Type, Wait
from guieval.evaluation import ActionEvaluator, get_protocol
from tests.evaluation.verdicts import Step, click, right, scroll
from tests.rows import every_row

BOX = [[100.0, 200.0, 300.0, 400.0]]
INSIDE, OUTSIDE = Point(200, 300), Point(600, 600)
SQUARE = [[100.0, 100.0], [500.0, 100.0], [500.0, 500.0], [100.0, 500.0]]
NOTCHED = [[0.0, 0.0], [600.0, 0.0], [600.0, 600.0], [300.0, 300.0], [0.0, 600.0]]


@every_row("protocol", ["seeclick-official", "sspro-official", "osworld-g", "mmbench-gui-l2", "ui-vision", "mind2web-element"])
@every_row(
    ("x", "y", "hit"),
    [(100, 200, True), (300, 400, True), (300, 200, True), (99.99, 300, False), (300.01, 300, False), (200, 400.01, False)],
)
def test_grounding_counts_the_border_and_nothing_beyond(step: Step, protocol: str, x: float, y: float, hit: bool) -> None:
    assert right(protocol, step(Click(point=INSIDE), BOX), click(x, y)) is hit


@every_row(
    ("x", "y", "hit"),
    [(101, 201, True), (299, 399, True), (100, 300, False), (300, 300, False), (200, 200, False), (200, 400, False)],
)
def test_onekey_leaves_the_border_out(step: Step, x: float, y: float, hit: bool) -> None:
    assert right("onekey", step(Click(point=INSIDE), BOX), click(x, y)) is hit


def test_onekey_takes_any_range(step: Step) -> None:
    task = step(Click(point=INSIDE), [*BOX, [700, 700, 800, 800]], alternatives=[click(750, 750)])
    assert right("onekey", task, click(790, 710))
    assert not right("onekey", task, click(600, 600))


@every_row(
    ("corners", "x", "y", "hit"),
    [
        (SQUARE, 100, 100, True),  # a corner
        (SQUARE, 300, 500, True),  # the lower edge, which plain ray casting would leave out
        (SQUARE, 500, 300, True),
        (SQUARE, 300, 500.001, False),
        (NOTCHED, 300, 299, True),
        (NOTCHED, 300, 300, True),  # the tip of the notch
        (NOTCHED, 300, 301, False),
        (NOTCHED, 450, 450, True),  # on its slanted edge
        (NOTCHED, 100, 500, True),  # on the other slanted edge
        (NOTCHED, 101, 500, False),
        (NOTCHED, 599, 598, True),
    ],
)
def test_osworld_g_judges_by_the_polygon_where_there_is_one(
    step: Step, corners: list[list[float]], x: float, y: float, hit: bool
) -> None:
    whole = [[0.0, 0.0, 1000.0, 1000.0]]
    assert right("osworld-g", step(click(200, 200), whole, extras={"polygon": corners}), click(x, y)) is hit
    assert right("sspro-official", step(click(200, 200), whole, extras={"polygon": corners}), click(x, y))


@every_row("odd", [[], [[1, 1], [2, 2]], "polygon", [[1, 1], [2], [3, 3]], [["1", 1], [2, 2], [3, 3]]])
def test_what_is_no_polygon_leaves_the_boxes(step: Step, odd: Any) -> None:
    task = step(Click(point=INSIDE), BOX, extras={"polygon": odd})
    assert right("osworld-g", task, click(100, 200))
    assert not right("osworld-g", task, click(99, 200))


@every_row("protocol", ["osworld-g", "aitw-original", "odyssey-v1", "odyssey-v2", "agentnetbench"])
def test_ends_agree_by_their_status(step: Step, protocol: str) -> None:
    task = step(Stop(status="impossible"))
    assert right(protocol, task, Stop(status="impossible"))
    assert not right(protocol, task, Stop(status="finish"))
    own_types = protocol not in ("osworld-g", "agentnetbench")  # elsewhere each status is an action type
    assert ActionEvaluator(protocol).evaluate(task, Stop(status="finish")).type_match is not own_types
    assert not right(protocol, task, click(500, 500))
    assert right("guievalkit", task, Stop(status="finish"))


@every_row(
    ("x", "y", "hit"), [(739.9, 425, True), (740.1, 425, False), (500, 484.9, True), (500, 485.1, False), (500, 364.9, False)]
)
def test_aitw_takes_both_points_in_one_box_grown_by_140_per_cent(step: Step, x: float, y: float, hit: bool) -> None:
    # 200 wide and 50 high: 140 more on the left and right, 35 more above and below. Only so grown it holds the reference.
    assert right("aitw-original", step(click(261, 425), [[400.0, 400.0, 600.0, 450.0]]), click(x, y)) is hit


def test_aitw_keeps_the_size_of_a_box_cut_at_the_edge(step: Step) -> None:
    # [0, 200] grows by 280 to [-140, 340], which becomes [0, 480].
    task = step(click(10, 500), [[0.0, 480.0, 200.0, 520.0]])
    assert right("aitw-original", task, click(479, 500))
    assert not right("aitw-original", task, click(481, 500))


def test_aitw_ignores_boxes_that_hold_only_one_of_the_points(step: Step) -> None:
    task = step(click(100, 100), [[600.0, 600.0, 700.0, 700.0]])
    assert not right("aitw-original", task, click(650, 650))
    assert right("aitw-original", task, click(240, 100))  # 0.14 of the screen, border included
    assert not right("aitw-original", task, click(240.1, 100))


@every_row(
    ("protocol", "reference", "predicted", "exact"),
    [
        ("aitw-original", "up", "down", True),
        ("aitw-original", "left", "right", True),
        ("aitw-original", "left", "up", False),
        ("odyssey-v1", "up", "up", True),
        ("odyssey-v2", "up", "down", False),
        ("agentnetbench", "up", "left", True),
        ("onekey", "up", "down", False),
        ("onekey", "up", "up", True),
    ],
)
def test_scrolls(step: Step, protocol: str, reference: str, predicted: str, exact: bool) -> None:
    assert right(protocol, step(scroll(reference)), scroll(predicted)) is exact


@every_row("protocol", ["odyssey-v1", "odyssey-v2"])
@every_row(("x", "hit"), [(640, True), (640.1, False), (360, True), (359.9, False)])
def test_odyssey_takes_0_14_of_the_screen(step: Step, protocol: str, x: float, hit: bool) -> None:
    assert right(protocol, step(click(500, 500)), click(x, 500)) is hit
    held = step(LongPress(point=Point(500, 500)))
    assert right(protocol, held, LongPress(point=Point(x, 500))) is hit
    assert not right(protocol, held, click(500, 500))


def test_only_the_second_odyssey_scorer_knows_boxes(step: Step) -> None:
    task = step(click(150, 250), [[100, 200, 700, 400]])
    assert right("odyssey-v2", task, click(700, 400))
    assert not right("odyssey-v2", task, click(700.1, 400))
    assert not right("odyssey-v1", task, click(700, 400))


@every_row(
    ("protocol", "reference", "predicted", "exact"),
    [
        ("odyssey-v2", "abcd", "abxy", True),  # 1 - 2/4 = 0.5
        ("odyssey-v2", "abcd", "axyz", False),  # 1 - 3/4
        ("odyssey-v2", "abcde", "abxyz", False),  # 1 - 3/5 = 0.4
        ("odyssey-v1", "coffee near me", " coffee ", True),  # contained
        ("odyssey-v1", "ABCD", "abcd", False),  # its scorer minds the case
        ("odyssey-v1", "", "", True),
        ("agentnetbench", "abcde", "abcdx", True),  # 1 - 1/5 = 0.8
        ("agentnetbench", "abcd", "abcx", False),  # 1 - 1/4
        ("agentnetbench", "STAT6011 Grouping\n", "stat6011 gROUPING", True),
        ("agentnetbench", "long text", "text", False),  # contained is not enough
        ("agentnetbench", "", "", True),
        ("agentnetbench", "ab", "", False),
        ("mind2web-element", "New York", " york new ", True),  # the same words
        ("mind2web-element", "New York , NY", "new york ny", True),
        ("mind2web-element", "New York", "York", False),
        ("mind2web-element", "", "-", True),
        ("onekey", "采莲曲", "采莲曲", True),
        ("onekey", "采莲曲", "采莲", False),
        ("onekey", "Abc", "abc", False),
        ("onekey", "abc", "abc ", False),
        ("aitw-original", "abc", "xyz", True),
        ("guievalkit", "abc", "xyz", False),
    ],
)
def test_texts(step: Step, protocol: str, reference: str, predicted: str, exact: bool) -> None:
    assert right(protocol, step(Type(text=reference)), Type(text=predicted)) is exact
    if protocol == "onekey":
        assert right(protocol, step(Open(app=reference)), Open(app=predicted)) is exact


@every_row("protocol", ["onekey", "guievalkit", "agentnetbench", "odyssey-v1", "mind2web-element"])
def test_a_pattern_accepts_the_texts_it_matches_wholly(step: Step, protocol: str) -> None:
    task = step(Type(text="no"), extras={"text_patterns": ["(", "[0-9]{3}", ".*三体.*"]})
    assert right(protocol, task, Type(text="123"))
    assert right(protocol, task, Type(text="搜索三体有声剧"))
    assert not right(protocol, task, Type(text="1234567"))
    assert not right(protocol, step(Type(text="x1234567y")), Type(text="9876"))
    assert not right(protocol, step(Open(app="no"), extras={"text_patterns": ["[0-9]{3}"]}), Open(app="123"))


def test_agentnetbench_gives_full_marks_up_to_a_hundredth_on_both_axes(step: Step) -> None:
    task = step(click(500, 500), BOX)
    assert right("agentnetbench", task, click(509.9, 509.9))
    assert right("agentnetbench", task, click(514.1, 500))
    assert not right("agentnetbench", task, click(514.2, 500))
    assert right("agentnetbench", task, click(300, 400))  # the border of the box


@every_row("protocol", ["odyssey-v2", "agentnetbench", "onekey", "aitw-original"])
def test_buttons_and_waits(step: Step, protocol: str) -> None:
    assert right(protocol, step(Press(button="BACK")), Press(button="BACK"))
    assert not right(protocol, step(Press(button="BACK")), Press(button="HOME"))
    assert right(protocol, step(Wait()), Wait(duration=5))


@every_row(
    ("protocol", "words"),
    [
        ("osworld-g", ("polygon", "status")),
        ("aitw-original", ("x2.4", "0.14", "axis", "any text agrees", "status")),
        ("odyssey-v1", ("boxes do not count", "0.14", "at least 0.5", "both stripped")),
        ("agentnetbench", ("0.0141421", "at least 0.8", "any scroll")),
        ("mind2web-element", ("same words",)),
        ("onekey", ("border left out", "equal, as they are", "patterns")),
    ],
)
def test_thresholds_print(protocol: str, words: tuple[str, ...]) -> None:
    described = get_protocol(protocol).describe()
    assert [word for word in words if word not in described] == []

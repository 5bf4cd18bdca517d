"""The rows of grounding scorers: both sides of every border, refusals, and how the same hits average."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from guieval.actions import LongPress, Open, Point, Scroll, Stop
from guieval.evaluation import Metric, get_protocol
from guieval.evaluation.table import grounding
from guieval.metrics.protocol_metric import ProtocolMetric
from guieval.steps import StepTaskModel
from tests.evaluation.verdicts import click, matches, right, step
from tests.metrics.made_columns import made_columns
from tests.rows import every_row

BOX = [[100.0, 200.0, 300.0, 400.0]]
SQUARE = [[100.0, 100.0], [500.0, 100.0], [500.0, 500.0], [100.0, 500.0]]
NOTCHED = [[0.0, 0.0], [600.0, 0.0], [600.0, 600.0], [300.0, 300.0], [0.0, 600.0]]
NAMES = [protocol.name for protocol in grounding.PROTOCOLS]
INCLUSIVE = [name for name in NAMES if name not in ("vlmevalkit", "clawgui-grounding", "gui-r1-grounding", "se-gui")]
REFUSING = ("sspro-official", "infigui-g1", "osworld-g", "lmms-osworld-g-corner-boxes", "mai-ui-grounding")


def target(box: list[float] = BOX[0], **more: Any) -> StepTaskModel:
    """A target on a screen of 1000 x 1000 pixels, so that a pixel is a thousandth; clicked in the middle of its box."""
    middle = click((box[0] + box[2]) / 2, (box[1] + box[3]) / 2)
    return step(middle, targets=[box], screenshot_size=(1000, 1000), **more)


MOST: list[tuple[float, float, bool]] = [
    *((100, 200, True), (300, 400, True), (100, 400, True), (300, 200, True)),
    *((99.99, 300, False), (300.01, 300, False), (200, 199.99, False), (200, 400.01, False)),
]
BORDERS: dict[str, list[tuple[float, float, bool]]] = {
    **dict.fromkeys(INCLUSIVE, MOST),
    # a pixel off the far edges
    "vlmevalkit": [
        *((100, 200, True), (299, 399, True)),
        *((299.01, 300, False), (200, 399.01, False), (300, 300, False), (99.99, 300, False)),
    ],
    # half open
    "se-gui": [(100, 200, True), (299.99, 399.99, True), (300, 300, False), (200, 400, False), (99.99, 300, False)],
    # the point is cut to whole pixels, so (300.99, 400.99) to (300, 400)
    "clawgui-grounding": [(100, 200, True), (300.99, 400.99, True), (301, 300, False), (200, 401, False), (99.99, 300, False)],
    # without the border
    "gui-r1-grounding": [
        *((100.01, 200.01, True), (299.99, 399.99, True)),
        *((100, 300, False), (300, 300, False), (200, 200, False), (200, 400, False)),
    ],
}


@every_row("protocol", NAMES)
def test_the_border_of_a_box(protocol: str) -> None:
    for x, y, hit in BORDERS[protocol]:
        assert right(protocol, target(), click(x, y)) is hit, (x, y)


def test_vlmevalkit_takes_pixels_of_the_screenshot() -> None:
    task = step(click(200, 300), targets=BOX)  # 1080 x 2400: the box ends at pixel 324 and 960
    assert right("vlmevalkit", task, click(323 * 1000 / 1080, 300))
    assert not right("vlmevalkit", task, click(323.01 * 1000 / 1080, 300))
    assert right("vlmevalkit", task, click(200, 959 * 1000 / 2400))
    assert not right("vlmevalkit", task, click(200, 959.01 * 1000 / 2400))


def test_clawgui_cuts_points_out_of_boxes_that_begin_within_a_pixel() -> None:
    task = target([99.5, 200.0, 300.0, 400.0])
    assert not right("clawgui-grounding", task, click(99.7, 300))  # becomes 99
    assert right("clawgui-grounding", task, click(100, 300))
    assert right("sspro-official", task, click(99.7, 300))


@every_row("protocol", NAMES)
def test_only_ui_r1_reads_the_place_of_any_action(protocol: str) -> None:
    task, inside = target(), Point(200, 300)
    hit = protocol == "ui-r1-grounding"
    assert right(protocol, task, Scroll(point=inside, direction="up")) is hit
    assert right(protocol, task, LongPress(point=inside)) is hit
    assert not right(protocol, task, Scroll(point=Point(99, 300), direction="up"))
    assert not right(protocol, task, Open(app="a"))


@every_row("protocol", REFUSING)
def test_what_has_no_target_must_be_refused(protocol: str) -> None:
    nothing, impossible = step(Stop(status="impossible")), Stop(status="impossible")
    assert right(protocol, nothing, impossible)
    assert matches(protocol, nothing, Stop(status="finish")) == (True, False)
    assert not right(protocol, nothing, click(200, 300))
    assert not right(protocol, target(), impossible)


@every_row("protocol", NAMES)
def test_three_scorers_know_polygons(protocol: str) -> None:
    triangle = [[100.0, 200.0], [300.0, 200.0], [100.0, 400.0]]
    task = target(extras={"polygon": triangle})
    assert right(protocol, task, click(150, 250))
    by_polygon = protocol in ("osworld-g", "infigui-g1", "lmms-osworld-g-corner-boxes")
    assert right(protocol, task, click(250, 350)) is not by_polygon


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
def test_osworld_g_judges_by_the_polygon_where_there_is_one(corners: list[list[float]], x: float, y: float, hit: bool) -> None:
    whole = [[0.0, 0.0, 1000.0, 1000.0]]
    assert right("osworld-g", step(click(200, 200), targets=whole, extras={"polygon": corners}), click(x, y)) is hit
    assert right("sspro-official", step(click(200, 200), targets=whole, extras={"polygon": corners}), click(x, y))


@every_row("odd", [[], [[1, 1], [2, 2]], "polygon", [[1, 1], [2], [3, 3]], [["1", 1], [2, 2], [3, 3]]])
def test_what_is_no_polygon_leaves_the_boxes(odd: Any) -> None:
    task = step(click(200, 300), targets=BOX, extras={"polygon": odd})
    assert right("osworld-g", task, click(100, 200))
    assert not right("osworld-g", task, click(99, 200))


@every_row(("x", "y", "hit"), [(100, 200, True), (400, 400, True), (401, 400, False), (400, 401, False), (99, 300, False)])
def test_mai_uis_box_of_a_polygon_ends_at_the_sum_of_its_first_corners(x: int, y: int, hit: bool) -> None:
    """Of (100, 200), (300, 200), ... the box from (100, 200) to (100 + 300, 200 + 200)."""
    triangle = [[100.0, 200.0], [300.0, 200.0], [100.0, 400.0]]
    assert right("mai-ui-grounding", target(extras={"polygon": triangle}), click(x, y)) is hit


def test_a_reply_without_a_place_is_wrong_everywhere_and_a_lost_request_almost_everywhere() -> None:
    policies = {name: get_protocol(name).failure for name in NAMES}
    assert {policy.unparseable for policy in policies.values()} == {"wrong"}
    assert [name for name, policy in policies.items() if policy.missing != "wrong"] == ["ui-r1-grounding"]


@every_row(
    ("protocol", "average", "keys"),
    [
        *((name, "cells", ("platform", "element")) for name in ("seeclick-official", "showui", "uground-grounding")),
        ("mmbench-gui-l2", "cells", ("level",)),
        ("ui-vision", "cells", ("subset",)),
        *((name, "all", ()) for name in ("sspro-official", "lmms-rec", "lmms-v2", "lmms-pro", "vlmevalkit", "evalscope")),
        *((name, "all", ()) for name in ("clawgui-grounding", "gui-r1-grounding", "ui-r1-grounding", "gui-actor")),
        *((name, "all", ()) for name in ("infigui-g1", "ui-agile-grounding", "osworld-g")),
    ],
)
def test_the_leading_figure_averages_as_the_source_does(protocol: str, average: str, keys: tuple[str, ...]) -> None:
    leading = get_protocol(protocol).metrics[0]
    assert (leading.measure, leading.average, leading.keys) == ("exact", average, keys)


Cells = Mapping[tuple[str, str], tuple[int, int]]
"""Right ones and all, by the values of two keys."""


def texts_and_icons(**hits: tuple[tuple[int, int], tuple[int, int]]) -> Cells:
    return {(name, kind): each for name, both in hits.items() for kind, each in zip(("text", "icon"), both, strict=True)}


V2_HITS = texts_and_icons(mobile=((285, 290), (192, 211)), desktop=((192, 194), (126, 140)), web=((228, 234), (187, 203)))
PRO_HITS = {
    **texts_and_icons(Dev=((114, 154), (65, 145)), Creative=((160, 198), (52, 143)), CAD=((158, 197), (31, 64))),
    **texts_and_icons(Scientific=((118, 144), (46, 110)), Office=((143, 177), (29, 53)), OS=((95, 107), (35, 89))),
}
"""The sizes are the data sets'; the hits are made up so that they average as the outputs of one released model do."""


def value(figure: Metric, keys: Sequence[str], cells: Cells) -> float:
    """A figure, in per cent, of a run whose targets fill these cells."""
    filled = [(cell, place < hits) for cell, (hits, size) in cells.items() for place in range(size)]
    columns = made_columns(
        [str(number) for number in range(len(filled))],
        exact=[hit for _, hit in filled],
        typed=[True] * len(filled),
        groups={key: [cell[place] for cell, _ in filled] for place, key in enumerate(keys)},
    )
    (judged,) = columns.judged.values()
    found = ProtocolMetric(figure, get_protocol("sspro-official").failure).measure(columns, judged, intervals=False).value
    assert found is not None
    return 100 * found


@every_row(
    ("protocol", "published"),
    [
        *((name, 94.63) for name in ("seeclick-official", "showui", "uground-grounding")),
        *((name, 95.13) for name in ("lmms-v2", "vlmevalkit", "clawgui-grounding")),
        *((name, 95.13) for name in ("gui-actor", "infigui-g1", "ui-agile-grounding")),
    ],
)
def test_the_same_hits_on_screenspot_v2_average_to_95_13_or_94_63(protocol: str, published: float) -> None:
    # 1210 of 1272 is 95.126 %; the mean of 285/290, 192/211, 192/194, 126/140, 228/234 and 187/203 is 94.632 %.
    found = value(get_protocol(protocol).metrics[0], ("platform", "element"), V2_HITS)
    assert found == pytest.approx(published, abs=0.005)


@pytest.mark.parametrize(
    ("figure", "published"),
    [
        (get_protocol("sspro-official").metrics[0], 66.16),  # 1046 of 1581
        (Metric("mean of the groups", "exact", average="cells", keys=("group",)), 66.69),
        (Metric("mean of the cells", "exact", average="cells", keys=("group", "element")), 62.67),
    ],
)
def test_the_same_hits_on_screenspot_pro_average_to_66_16_66_69_or_62_67(figure: Metric, published: float) -> None:
    assert value(figure, ("group", "element"), PRO_HITS) == pytest.approx(published, abs=0.005)


def test_vlmevalkit_lets_a_part_s_cells_weigh_by_their_size_twice() -> None:
    # The icons of two groups: 5 of 10 and 30 of 30, so 35/40 of all, but (10 x 5 + 30 x 30) / (10 x 10 + 30 x 30).
    icons = {("CAD", "icon"): (5, 10), ("Dev", "icon"): (30, 30)}
    overall, of_a_part = get_protocol("vlmevalkit-pro").metrics
    assert value(overall, ("group", "element"), icons) == pytest.approx(87.5)
    assert value(of_a_part, ("group", "element"), icons) == pytest.approx(95.0)
    (intended,) = get_protocol("vlmevalkit-pro-intended").metrics
    assert value(intended, ("group", "element"), icons) == pytest.approx(87.5)
    platforms = {("mobile", "icon"): (5, 10), ("web", "icon"): (30, 30)}
    assert value(get_protocol("vlmevalkit").metrics[1], ("platform", "element"), platforms) == pytest.approx(95.0)


def test_levels_and_kinds_of_query_weigh_the_same_whatever_their_size() -> None:
    levels = {("basic", "text"): (1, 1), ("advanced", "text"): (1, 4)}
    assert value(get_protocol("mmbench-gui-l2").metrics[0], ("level", "element"), levels) == pytest.approx(62.5)
    queries = {("basic", "text"): (1, 1), ("functional", "text"): (1, 2), ("spatial", "text"): (0, 3)}
    assert value(get_protocol("ui-vision").metrics[0], ("subset", "element"), queries) == pytest.approx(50.0)

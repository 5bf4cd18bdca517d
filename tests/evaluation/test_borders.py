"""A click on a pixel that borders a target hits it, however the label and the answer write that pixel."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from guieval.actions import BORDER, Box, Boxes, Click, Point
from guieval.evaluation import ActionEvaluator
from guieval.frames import PER_1000, PIXELS, RELATIVE, Size
from guieval.registry import load_benchmark
from guieval.steps import StepTaskModel
from tests.made_runs import step
from tests.rows import every_row

SIZES = ((2560, 1440), (1920, 1080), (1366, 768), (1080, 2400), (1179, 2556), (3840, 1600))
STEP = 11
"""Every so many pixels a border is tried."""


def pixels(x: float, y: float, size: Size) -> Point:
    return PIXELS.decode(x, y, size)


def fractions(x: float, y: float, size: Size) -> Point:
    """As MMBench-GUI's labels and fractional answers are read: written as a share of the screen, then scaled."""
    width, height = size
    return PIXELS.decode(x / width * width, y / height * height, size)


def shares(x: float, y: float, size: Size) -> Point:
    return RELATIVE.decode(x / size[0], y / size[1], size)


def thousandths(x: float, y: float, size: Size) -> Point:
    return PER_1000.decode(x / size[0] * 1000, y / size[1] * 1000, size)


WAYS: tuple[Callable[[float, float, Size], Point], ...] = (pixels, fractions, shares, thousandths)


def bordering(size: Size, label: Callable[[float, float, Size], Point]) -> tuple[list[StepTaskModel], list[tuple[int, int]]]:
    """Steps whose boxes begin or end at a whole pixel, and the pixel on that border."""
    width, height = size
    tasks, places = [], []
    for at in range(40, min(width, height) - 60, STEP):
        corners = *label(at, at + 1, size), *label(at + 30, at + 20, size)
        more: dict[str, Any] = {"screenshot_size": size, "targets": Boxes([corners])}
        task = step(Click(point=Box(*corners).centre), episode=str(at), **more)
        for place in ((at, at + 10), (at + 30, at + 10), (at + 15, at + 1), (at + 15, at + 20)):
            tasks.append(task)
            places.append(place)
    return tasks, places


def hits(protocol: str, tasks: list[StepTaskModel], points: list[Point]) -> list[bool]:
    evaluator = ActionEvaluator(protocol)
    return [evaluator.evaluate(task, Click(point=point)).exact_match for task, point in zip(tasks, points, strict=True)]


@every_row("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
@every_row("protocol", ["mmbench-gui-l2", "ui-vision", "hypertrack-reward", "ui-r1-reward"])
def test_every_border_pixel_is_inside_however_it_is_written(protocol: str, size: Size) -> None:
    wrong = []
    for label in WAYS:
        tasks, places = bordering(size, label)
        for answer in WAYS:
            judged = hits(protocol, tasks, [answer(x, y, size) for x, y in places])
            wrong += [(label.__name__, answer.__name__, place) for place, hit in zip(places, judged, strict=True) if not hit]
    assert not wrong, f"{len(wrong)} border pixels fall outside, e.g. {wrong[:3]}"


@pytest.mark.parametrize("protocol", ["gui-r1-grounding", "onekey"])
def test_a_rule_that_leaves_the_border_out_leaves_out_every_border_pixel(protocol: str) -> None:
    for label in WAYS:
        tasks, places = bordering((2560, 1440), label)
        for answer in WAYS:
            assert not any(hits(protocol, tasks, [answer(x, y, (2560, 1440)) for x, y in places]))


def test_no_protocol_takes_the_pixel_beyond_the_border_for_the_border() -> None:
    """The tolerance is far below a pixel: a hundredth of one outside of a box is outside."""
    size = (3840, 2160)
    tasks, places = bordering(size, pixels)
    beyond = [
        pixels(x + (0.01 if x == int(task.episode_id) + 30 else -0.01 if x == int(task.episode_id) else 0), y, size)
        for task, (x, y) in zip(tasks, places, strict=True)
    ]
    sideways = [point.x != pixels(x, y, size).x for point, (x, y) in zip(beyond, places, strict=True)]
    judged = hits("mmbench-gui-l2", tasks, beyond)
    assert [not hit for hit in judged] == sideways


def test_boxes_name_those_that_contain_a_point_with_their_borders() -> None:
    boxes = Boxes([[100, 100, 200, 200], [150, 150, 300, 300]])
    assert boxes.containing(Point(200 + BORDER / 2, 160)).tolist() == [True, True]
    assert boxes.containing(Point(200 + 2 * BORDER, 160)).tolist() == [False, True]
    assert not len(Boxes().containing(Point(1, 1)))


@pytest.mark.parametrize(
    ("benchmark", "folder", "least"), [("mmbench-gui-l2", "MMbench_data", 3000), ("ui-vision", "UI_Vision_data", 400)]
)
def test_a_click_on_a_whole_pixel_of_a_real_border_hits(shared_data: Path, benchmark: str, folder: str, least: int) -> None:
    root = shared_data / "screenspot_pro_format_annotations"
    if not (root / folder).is_dir():
        pytest.skip(f"no {folder} in {root}")
    loader = load_benchmark(benchmark, root)
    tasks, points = [], []
    for task in (loader.load(ref).steps[0] for ref in loader.index()):
        width, height = task.screenshot_size
        box, middle = task.targets[0], task.targets[0].centre
        ends = [(x * width / 1000, middle.y * height / 1000, 0) for x in (box.x1, box.x2)]
        ends += [(middle.x * width / 1000, y * height / 1000, 1) for y in (box.y1, box.y2)]
        for *place, axis in ends:
            whole = round(place[axis])
            if abs(place[axis] - whole) < 1e-7 and 0 <= whole <= task.screenshot_size[axis]:
                place[axis] = whole
                tasks.append(task)
                points.append(pixels(place[0], place[1], task.screenshot_size))
    assert len(points) > least
    wrong = [str(task.key) for task, hit in zip(tasks, hits(benchmark, tasks, points), strict=True) if not hit]
    assert not wrong, f"{len(wrong)} of {len(points)} border pixels fall outside, e.g. {wrong[:3]}"

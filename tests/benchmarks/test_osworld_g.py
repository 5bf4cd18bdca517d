"""OSWorld-G: boxes, polygons and refusals in the authors' form and in MAI-UI's conversion, and the real lists."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from guieval.benchmarks._examples.grounding import tapped_elements

from guieval.actions import Click, Point, Stop
from guieval.data.screenshots import read_screenshot
from guieval.errors import DataError, UsageError
from guieval.evaluation import ActionEvaluator
from guieval.registry import benchmarks, load_benchmark
from guieval.steps import StepTaskModel

ARROW = [100, 100, 300, 100, 300, 300, 200, 200, 100, 300]
"""A polygon whose box has its middle at a corner of the notch."""


def row(kind: str, coordinates: Sequence[float], **changes: Any) -> dict[str, Any]:
    """A row as the authors write it."""
    return {
        "id": "SCREEN-0",
        "image_path": "SCREEN.png",
        "image_size": [1000, 500],
        "instruction": "Close",
        "box_type": kind,
        "box_coordinates": list(coordinates),
        "GUI_types": ["Button", "Icon"],
        **changes,
    }


def converted(box: Sequence[float], **changes: Any) -> dict[str, Any]:
    """A row as MAI-UI converted it."""
    return {
        "img_filename": "SCREEN.png",
        "img_size": [1000, 500],
        "bbox": list(box),
        "instruction": "Close",
        "instruction_cn": "",
        "id": "SCREEN-0",
        "ui_type": ["Button", "Icon"],
        "group": "os_g_refine",
        "application": "osworld-g",
        "platform": "linux",
        **changes,
    }


def write(root: Path, *rows: dict[str, Any], name: str = "OSWorld-G.json") -> Path:
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text(json.dumps(rows), encoding="utf-8")
    return root


def steps_of(root: Path, name: str = "osworld-g") -> list[StepTaskModel]:
    return [episode.steps[0] for episode in load_benchmark(name, root)]


def only(root: Path, item: dict[str, Any]) -> StepTaskModel:
    (step,) = steps_of(write(root, item))
    return step


@pytest.mark.parametrize("item", [row("bbox", [100, 100, 200, 50]), converted([100, 100, 300, 150])])
def test_a_box(tmp_path: Path, item: dict[str, Any]) -> None:
    step = only(tmp_path, item)
    assert step.action == Click(point=Point(200, 250))
    assert [tuple(box) for box in step.boxes] == [(100, 200, 300, 300)]
    assert step.groups == {"target": "bbox"}
    assert step.extras == {"ui_types": ["Button", "Icon"]}
    assert (step.episode_id, step.screenshot, step.screenshot_size) == ("SCREEN-0", "SCREEN.png", (1000, 500))


@pytest.mark.parametrize(
    "item",
    [
        row("polygon", ARROW),
        converted([100, 100, 100 + 300, 100 + 100, 300, 300, 200, 200, 100, 300]),  # as if a width and a height came third
    ],
)
def test_a_polygon_is_clicked_inside(tmp_path: Path, item: dict[str, Any]) -> None:
    step = only(tmp_path, item)
    assert step.extras["polygon"] == [[100, 200], [300, 200], [300, 600], [200, 400], [100, 600]]
    assert [tuple(box) for box in step.boxes] == [(100, 200, 300, 600)]
    assert step.groups == {"target": "polygon"}
    assert step.action == Click(point=Point(150, 400))  # at half its height the notch's corner cuts 100 to 300 in two
    judge = ActionEvaluator("osworld-g")
    assert judge.evaluate(step, step.action).exact_match
    assert not judge.evaluate(step, Click(point=Point(200, 500))).exact_match  # in the notch, though in the box


def test_the_middle_of_the_widest_part_is_clicked_where_the_boxs_middle_is_outside(tmp_path: Path) -> None:
    u_shape = [0, 0, 100, 0, 100, 200, 200, 200, 200, 0, 500, 0, 500, 300, 0, 300]  # two legs, 100 and 300 wide
    step = only(tmp_path, row("polygon", u_shape))
    assert step.action == Click(point=Point(350, 300))
    assert ActionEvaluator("osworld-g").evaluate(step, step.action).exact_match
    assert not ActionEvaluator("osworld-g").evaluate(step, Click(point=Point(150, 300))).exact_match


@pytest.mark.parametrize("item", [row("refusal", [-1, -1, -1, -1]), row("refusal", []), converted([0, 0, 0, 0])])
def test_a_refusal(tmp_path: Path, item: dict[str, Any]) -> None:
    step = only(tmp_path, item)
    assert step.action == Stop(status="impossible")
    assert (len(step.boxes), step.groups) == (0, {"target": "refusal"})
    judge = ActionEvaluator("osworld-g")
    assert judge.evaluate(step, step.action).exact_match
    assert not judge.evaluate(step, Stop()).exact_match
    assert not judge.evaluate(step, Click(point=Point(0, 0))).exact_match


@pytest.mark.parametrize(
    ("item", "problem"),
    [
        (row("circle", [1, 2, 3]), "field box_type: expected bbox, polygon or refusal, got 'circle'"),
        (row("bbox", ARROW), "field box_coordinates: expected a list of 4 numbers"),
        (row("bbox", [10, 10, -5, 5]), r"field box_coordinates: expected \[x, y, width, height\]"),
        (row("polygon", ARROW[:-1]), "field box_coordinates: expected x and y of three corners or more, got 9 numbers"),
        (row("polygon", [1, 2, 3, 4]), "field box_coordinates: expected x and y of three corners or more, got 4 numbers"),
        (row("polygon", [1, 5, 3, 5, 9, 5]), "field box_coordinates: the polygon has no area"),
        (row("polygon", [1, 5, 1, 9, 1, 7]), "field box_coordinates: the polygon has no area"),
        (row("polygon", [1, 5, 3, float("nan"), 9, 5]), "field box_coordinates: expected finite numbers"),
        (row("polygon", [1100, 0, 1300, 0, 1200, 90]), "field box_coordinates: .*expected 1000 or less"),
        (row("bbox", [1, 2, 3, 4], GUI_types="Icon"), "field GUI_types: expected a list of words"),
        (converted([1, 2, 3]), "field bbox: expected a list of 4 numbers"),
        (converted([9, 2, 3, 4]), r"field bbox: expected \[x1, y1, x2, y2\]"),
        ({**row("bbox", [1, 2, 3, 4]), "box_type": None}, "field box_type: expected a string"),
    ],
)
def test_a_damaged_row_is_reported(tmp_path: Path, item: dict[str, Any], problem: str) -> None:
    with pytest.raises(DataError, match=rf"OSWorld-G\.json, row 0, {problem}"):
        only(tmp_path, item)


def test_the_repository_is_read_with_its_classification(tmp_path: Path) -> None:
    rows = [row("bbox", [1, 2, 3, 4]), row("refusal", [], id="SCREEN-1")]
    write(tmp_path, *rows, name="benchmark/OSWorld-G.json")
    write(tmp_path, {**rows[0], "instruction": "Click the cross"}, rows[1], name="benchmark/OSWorld-G_refined.json")
    (tmp_path / "benchmark/images").mkdir()
    classes = {"text_matching": [rows[0]], "layout_understanding": [rows[0], {"id": "OTHER-3"}], "refusal": [rows[1]]}
    (tmp_path / "benchmark/classification_result.json").write_text(json.dumps({"classified": classes}))
    first, second = steps_of(tmp_path)
    assert first.screenshot == "benchmark/images/SCREEN.png"
    assert first.groups == {"target": "bbox", "text matching": "yes", "layout understanding": "yes"}
    assert second.groups == {"target": "refusal"}
    refined = steps_of(tmp_path, "osworld-g-refined")
    assert [step.instruction for step in refined] == ["Click the cross", "Close"]
    assert {step.dataset for step in refined} == {"osworld-g"}
    (tmp_path / "benchmark/classification_result.json").write_text('{"classified": {"text_matching": [{"id": 4}]}}')
    with pytest.raises(
        DataError, match=r"classification_result\.json, field classified, field text_matching\[0\], field id: expected"
    ):
        load_benchmark("osworld-g", tmp_path).index()


def test_an_image_may_have_another_suffix(tmp_path: Path) -> None:
    (tmp_path / "SCREEN.webp").write_bytes(b"")
    assert only(tmp_path, converted([1, 2, 3, 4])).screenshot == "SCREEN.webp"
    (tmp_path / "SCREEN.png").write_bytes(b"")
    assert only(tmp_path, converted([1, 2, 3, 4])).screenshot == "SCREEN.png"
    other = only(tmp_path, converted([1, 2, 3, 4], img_filename="SCREEN.v2"))
    assert other.screenshot == "SCREEN.v2.png"  # not there, and SCREEN.png is another screen


def test_a_foreign_folder_is_refused(tmp_path: Path) -> None:
    write(tmp_path, name="OSWorld-G.json")
    with pytest.raises(UsageError, match="are empty"):
        load_benchmark("osworld-g", tmp_path).index()
    with pytest.raises(UsageError, match=r"holds no benchmark/OSWorld-G_refined.*`guieval prepare osworld-g-refined"):
        load_benchmark("osworld-g-refined", tmp_path)


def test_the_example_holds_the_elements_that_it_was_made_of(tmp_path: Path) -> None:
    benchmarks()["osworld-g"].write_example(tmp_path, episodes=2, seed=1)
    boxed, cut, refused = steps_of(tmp_path)
    for step, element in zip((boxed, cut), tapped_elements(2, 1), strict=True):
        x1, y1, x2, y2 = element.box
        assert tuple(step.boxes[0]) == pytest.approx((x1 / 0.36, y1 / 0.8, x2 / 0.36, y2 / 0.8))
        assert (tmp_path / step.screenshot).read_bytes() == element.png
    assert len(cut.extras["polygon"]) == 8
    corner = Click(point=Point(cut.boxes[0].x1, cut.boxes[0].y1))
    assert not ActionEvaluator("osworld-g").evaluate(cut, corner).exact_match
    assert refused.action == Stop(status="impossible")


@pytest.mark.parametrize("name", ["osworld-g", "osworld-g-refined"])
def test_the_full_lists_have_the_published_counts(shared_data: Path, name: str) -> None:
    root = shared_data / "screenspot_pro_format_annotations"
    if not root.is_dir():
        pytest.skip(f"no {root}")
    steps = steps_of(root, name)
    targets = Counter(step.groups["target"] for step in steps)
    assert targets == {"bbox": 470, "polygon": 40, "refusal": 54}
    published = {count.groups.get("target", "all"): count.steps for count in benchmarks()[name].published}
    assert published == {**targets, "all": 564}
    assert Counter(step.action.type for step in steps) == benchmarks()[name].published[0].types
    polygons = [step for step in steps if step.groups["target"] == "polygon"]
    assert all(0 <= value <= 1000 for step in polygons for corner in step.extras["polygon"] for value in corner)
    # 2ENZHM7E2X-0, published as [1197.26, 350.44, 2390.24, 708.0, 1192.98, 363.26, ...]: an octagon of 20 x 19 pixels
    first = polygons[0]
    assert first.episode_id == "2ENZHM7E2X-0"
    assert first.extras["polygon"][1] == pytest.approx([1192.98 / 1.92, 357.56 / 1.08])
    assert first.boxes[0].x2 - first.boxes[0].x1 == pytest.approx(19.96 / 1.92)
    judge = ActionEvaluator("osworld-g")
    assert all(judge.evaluate(step, step.action).exact_match for step in steps)


def test_both_lists_ask_for_the_same_targets(shared_data: Path) -> None:
    root = shared_data / "screenspot_pro_format_annotations"
    if not root.is_dir():
        pytest.skip(f"no {root}")
    pairs = list(zip(steps_of(root, "osworld-g"), steps_of(root, "osworld-g-refined"), strict=True))
    assert all((one.episode_id, one.action, one.boxes) == (two.episode_id, two.action, two.boxes) for one, two in pairs)
    assert sum(one.instruction != two.instruction for one, two in pairs) == 507


@pytest.mark.parametrize("name", ["osworld-g", "osworld-g-refined"])
def test_real_screenshots_under_their_new_suffix(shared_data: Path, name: str) -> None:
    root = shared_data / "osworld_g"
    if not root.is_dir():
        pytest.skip(f"no {root}")
    steps = steps_of(root, name)
    assert len(steps) == 18
    assert {Path(step.screenshot).suffix for step in steps} == {".webp", ".png"}
    for step in steps:
        assert read_screenshot(root, step.screenshot, step.screenshot_size).size == step.screenshot_size

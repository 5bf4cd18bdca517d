"""UI-Vision's element grounding: its three lists, its domains, and the real rows with their screenshots."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from guieval.benchmarks._examples.grounding import tapped_elements

from guieval.actions import Click, Point
from guieval.data.screenshots import read_screenshot
from guieval.errors import DataError, UsageError
from guieval.evaluation import ActionEvaluator
from guieval.registry import benchmarks, load_benchmark
from guieval.steps import StepTaskModel

NAME = "ui-vision"
PATTERN = "annotations/element_grounding/element_grounding_{}.json"


def row(**changes: Any) -> dict[str, Any]:
    return {
        "image_path": "element_grounding/a.png",
        "image_size": [200, 100],
        "prompt_to_evaluate": "quick print",
        "bbox": [20.5, 30.0, 40.5, 50.0],
        "platform": "OnlyOffice Spreadsheet",
        "category": "Button",
        "element_type": "icon",
        **changes,
    }


def write(root: Path, subset: str, *rows: dict[str, Any], pattern: str = PATTERN) -> Path:
    file = root / pattern.format(subset)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(rows), encoding="utf-8")
    return root


def steps_of(root: Path) -> list[StepTaskModel]:
    return [episode.steps[0] for episode in load_benchmark(NAME, root)]


def test_a_row_gives_its_target_and_its_groups(tmp_path: Path) -> None:
    (tmp_path / "images").mkdir()
    (step,) = steps_of(write(tmp_path, "spatial", row()))
    assert step.action == Click(point=Point(152.5, 400))
    assert [tuple(box) for box in step.boxes] == [(102.5, 300, 202.5, 500)]
    assert (step.subset, step.episode_id) == ("spatial", "element_grounding_spatial_0")
    assert step.screenshot == "images/element_grounding/a.png"
    assert step.groups == {"subset": "spatial", "domain": "Productivity", "category": "Button", "element": "icon"}
    assert (step.instruction, step.extras) == ("quick print", {"application": "OnlyOffice Spreadsheet"})


def test_the_authors_table_of_programs_spells_some_in_another_case(tmp_path: Path) -> None:
    steps = steps_of(write(tmp_path, "basic", row(platform="gedit"), row(platform="Gedit"), row(platform="darktable")))
    assert [step.groups["domain"] for step in steps] == ["Development", "Development", "Creativity"]


@pytest.mark.parametrize("pattern", ["element_grounding_{}.json", "UI_Vision_data/element_grounding_{}.json"])
def test_a_copy_may_lack_folders_and_lists(tmp_path: Path, pattern: str) -> None:
    write(tmp_path, "functional", row(), row(), pattern=pattern)
    write(tmp_path, "basic", row(), pattern=pattern)
    steps = steps_of(tmp_path)
    assert [step.episode_id for step in steps] == [
        "element_grounding_basic_0",
        "element_grounding_functional_0",
        "element_grounding_functional_1",
    ]
    assert steps[0].screenshot == "element_grounding/a.png"


def test_a_target_that_is_one_point_is_hit_by_that_point(tmp_path: Path) -> None:
    (step,) = steps_of(write(tmp_path, "basic", row(bbox=[71.3833251953125, 54.857137625558025] * 2)))
    judge = ActionEvaluator("ui-vision")
    assert judge.evaluate(step, step.action).exact_match
    assert not judge.evaluate(step, Click(point=Point(356.9, 548.57))).exact_match


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"bbox": [40, 30, 20, 50]}, "field bbox: expected"),
        ({"bbox": [-50, 30, 20, 50]}, r"field bbox: \(-15, 40\) lies outside"),
        ({"platform": "Inkscap"}, "field platform: 'Inkscap' is none of the benchmark's 83 programs.*'Inkscape'"),
        ({"element_type": "image"}, "field element_type: expected text or icon"),
        ({"prompt_to_evaluate": None}, "field prompt_to_evaluate: expected a string"),
        ({"image_size": [200.5, 100]}, "field image_size: expected a width and a height"),
    ],
)
def test_a_damaged_row_is_reported(tmp_path: Path, change: dict[str, Any], problem: str) -> None:
    with pytest.raises(DataError, match=rf"element_grounding_basic\.json, row 0, {problem}"):
        steps_of(write(tmp_path, "basic", row(**change)))


def test_a_foreign_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"holds no element_grounding_<subset>\.json.*`guieval prepare ui-vision --source"):
        load_benchmark(NAME, tmp_path)


def test_the_example_holds_the_elements_that_it_was_made_of(tmp_path: Path) -> None:
    benchmarks()[NAME].write_example(tmp_path, episodes=3, seed=4)
    steps = steps_of(tmp_path)
    assert [step.subset for step in steps] == ["basic", "functional", "spatial"]
    for step, element in zip(steps, tapped_elements(3, 4), strict=True):
        x1, y1, x2, y2 = element.box
        expected = ((x1 + 0.25) / 0.36, (y1 + 0.25) / 0.8, (x2 - 0.25) / 0.36, (y2 - 0.25) / 0.8)
        assert tuple(step.boxes[0]) == pytest.approx(expected)
        assert (tmp_path / step.screenshot).read_bytes() == element.png


def test_the_full_lists_have_the_published_counts(shared_data: Path) -> None:
    root = shared_data / "screenspot_pro_format_annotations"
    if not root.is_dir():
        pytest.skip(f"no {root}")
    steps = steps_of(root)
    subsets = Counter(step.subset for step in steps)
    assert subsets == {"basic": 1772, "functional": 1772, "spatial": 1935}
    assert {count.subset: count.steps for count in benchmarks()[NAME].published} == subsets
    assert len({step.extras["application"] for step in steps}) == 83
    assert len({step.groups["domain"] for step in steps}) == 6
    over = sum(any(box.x1 < 0 or box.y1 < 0 or box.x2 > 1000 or box.y2 > 1000 for box in step.boxes) for step in steps)
    points = [step.episode_id for step in steps if step.boxes[0].x1 == step.boxes[0].x2]
    assert (over, points) == (77, ["element_grounding_spatial_1908"])
    judge = ActionEvaluator("ui-vision")
    assert all(judge.evaluate(step, step.action).exact_match for step in steps)


def test_real_rows_with_their_screenshots(shared_data: Path) -> None:
    root = shared_data / "ui_vision"
    if not root.is_dir():
        pytest.skip(f"no {root}")
    steps = steps_of(root)
    assert Counter(step.subset for step in steps) == {"basic": 56, "functional": 56, "spatial": 80}
    screens = {(step.screenshot, step.screenshot_size) for step in steps}
    assert len(screens) == 36
    for screenshot, size in screens:
        assert read_screenshot(root, screenshot, size).size == size

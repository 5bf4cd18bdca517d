"""MMBench-GUI L2: boxes in fractions and in pixels, where its images are, and the full list."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from guieval.benchmarks._examples.grounding import tapped_elements

from guieval.actions import Click, Point
from guieval.errors import DataError, UsageError
from guieval.registry import benchmarks, load_benchmark
from guieval.steps import StepTaskModel

NAME = "mmbench-gui-l2"


def row(**changes: Any) -> dict[str, Any]:
    """A row as the authors write it."""
    return {
        "index": 7,
        "image_path": "a.png",
        "instruction": "scroll down",
        "bbox": [0.25, 0.5, 0.75, 1.0],
        "image_size": [200, 400],
        "data_type": "icon",
        "platform": "os_windows",
        "app_name": "calendar",
        "grounding_type": "advanced",
        **changes,
    }


def converted(**changes: Any) -> dict[str, Any]:
    """A row as MAI-UI converted it."""
    return {
        "img_filename": "os_windows/a.png",
        "bbox": [50.0, 200.0, 150.0, 400.0],
        "instruction": "scroll down",
        "instruction_cn": "",
        "id": 7,
        "application": "calendar",
        "platform": "os_windows",
        "img_size": [200, 400],
        "ui_type": "icon",
        "group": "advanced",
        **changes,
    }


def write(root: Path, *rows: dict[str, Any], name: str = "L2_annotations.json") -> Path:
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text(json.dumps(rows), encoding="utf-8")
    return root


def steps_of(root: Path) -> list[StepTaskModel]:
    return [episode.steps[0] for episode in load_benchmark(NAME, root)]


@pytest.mark.parametrize(
    "item",
    [row(), row(image_path="os_windows/a.png"), row(bbox=[50, 200, 150, 400]), converted()],
    ids=["fractions", "with its platform's folder", "pixels", "converted"],
)
def test_every_form_gives_the_same_target(tmp_path: Path, item: dict[str, Any]) -> None:
    (step,) = steps_of(write(tmp_path, item))
    assert step.action == Click(point=Point(500, 750))
    assert [tuple(box) for box in step.boxes] == [(250, 500, 750, 1000)]
    assert (step.episode_id, step.screenshot) == ("7", "offline_images/os_windows/a.png")
    assert step.groups == {"level": "advanced", "platform": "os_windows", "element": "icon"}
    assert step.extras == {"application": "calendar"}


@pytest.mark.parametrize(
    ("name", "images"),
    [
        ("L2_annotations.json", "MMBench-GUI-OfflineImages/offline_images"),
        ("MMBench-GUI/L2_annotations.json", "MMBench-GUI/offline_images"),
    ],
)
def test_the_images_are_found_where_the_archive_puts_them(tmp_path: Path, name: str, images: str) -> None:
    (tmp_path / images / "os_windows").mkdir(parents=True)
    (tmp_path / images / "os_windows/a.jpg").write_bytes(b"")
    (step,) = steps_of(write(tmp_path, row(), name=name))
    assert step.screenshot == f"{images}/os_windows/a.jpg"


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"bbox": [0.5, 0.5, 0.25, 1.0]}, "field bbox: expected"),
        ({"bbox": [0.5, 0.5, 0.25]}, "field bbox: expected a list of 4 numbers"),
        ({"bbox": [100, 0, 400, 10]}, r"field bbox: \(250, 5\) lies outside"),
        ({"image_size": [1e308, 400]}, "field bbox: .*finite"),
        ({"grounding_type": "hard"}, "field grounding_type: expected basic or advanced, got 'hard'"),
        ({"data_type": None}, "field data_type: expected a string"),
        ({"platform": 3}, "field platform: expected a string"),
        ({"index": None}, "field index: expected a string"),
        ({"index": True}, "field index: expected a whole number"),
    ],
)
def test_a_damaged_row_is_reported(tmp_path: Path, change: dict[str, Any], problem: str) -> None:
    with pytest.raises(DataError, match=rf"L2_annotations\.json, row 0, {problem}"):
        steps_of(write(tmp_path, row(**change)))


def test_a_foreign_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"holds no L2_annotations\.json.*`guieval prepare mmbench-gui-l2 --source"):
        load_benchmark(NAME, tmp_path)


def test_the_example_holds_the_elements_that_it_was_made_of(tmp_path: Path) -> None:
    benchmarks()[NAME].write_example(tmp_path, episodes=2, seed=2)
    for step, element in zip(steps_of(tmp_path), tapped_elements(2, 2), strict=True):
        x1, y1, x2, y2 = element.box
        expected = (x1 / 0.36, y1 / 0.8, x2 / 0.36, y2 / 0.8)
        assert tuple(step.boxes[0]) == pytest.approx(expected, abs=0.06)  # the release rounds fractions to four places
        assert (tmp_path / step.screenshot).read_bytes() == element.png


def test_the_full_list_has_the_published_counts(shared_data: Path) -> None:
    root = shared_data / "screenspot_pro_format_annotations"
    if not root.is_dir():
        pytest.skip(f"no {root}")
    steps = steps_of(root)
    levels = Counter(step.groups["level"] for step in steps)
    assert levels == {"basic": 1787, "advanced": 1807}
    published = {count.groups.get("level", "all"): count.steps for count in benchmarks()[NAME].published}
    assert published == {**levels, "all": 3594}
    assert len({step.groups["platform"] for step in steps}) == 6
    first = steps[0]  # published with fractions [0.3875, 0.1361, 0.3945, 0.1507] of 2560 x 1440
    assert tuple(first.boxes[0]) == pytest.approx((387.5, 136.1, 394.5, 150.7), abs=0.06)
    assert isinstance(first.action, Click)
    assert first.action.point == pytest.approx((390.98, 143.4), abs=0.06)

"""UI-I2E-Bench: the released rows and UI-Ins' conversion, unknown annotations, crossed corners."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from guieval.benchmarks._examples.grounding import tapped_elements
from PIL import Image

from guieval.actions import Click, Point
from guieval.errors import DataError, UsageError
from guieval.registry import benchmarks, load_benchmark
from guieval.steps import StepTaskModel

NAME = "ui-i2e-bench"


def row(**changes: Any) -> dict[str, Any]:
    """A row with the fields that the authors' scorer reads."""
    return {
        "image": "screenshot/folder_1/a.png",
        "instruction": "close the popup",
        "bounding_box": [50, 200, 150, 400],
        "source": "web",
        "el_type": "Icon",
        "annotations": {"instr_type": 2},
        **changes,
    }


def converted(**changes: Any) -> dict[str, Any]:
    """A row as UI-Ins converted it."""
    return {
        "img_filename": "screenshot/folder_1/a.png",
        "bbox": [50, 200, 150, 400],
        "instruction": "close the popup",
        "instruction_cn": "",
        "id": "2",
        "application": "web",
        "platform": "web",
        "img_size": [200, 400],
        "ui_type": "icon",
        "group": "implicit",
        **changes,
    }


def released(root: Path, *rows: dict[str, Any]) -> list[StepTaskModel]:
    folder = root / "screenshot" / "folder_1"
    folder.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (200, 400)).save(folder / "a.png")
    (root / "annotations.jsonl").write_text("".join(json.dumps(each) + "\n" for each in rows), encoding="utf-8")
    return [episode.steps[0] for episode in load_benchmark(NAME, root)]


def test_both_forms_give_the_same_target(tmp_path: Path) -> None:
    (native,) = released(tmp_path / "native", row())
    (tmp_path / "I2E_sspro_format.json").write_text(json.dumps([converted()]), encoding="utf-8")
    (other,) = load_benchmark(NAME, tmp_path).load(load_benchmark(NAME, tmp_path).index()[0]).steps
    for step in (native, other):
        assert step.action == Click(point=Point(500, 750))
        assert [tuple(box) for box in step.boxes] == [(250, 500, 750, 1000)]
        assert step.groups == {"platform": "web", "element": "icon", "instruction": "implicit"}
        assert (step.instruction, step.screenshot) == ("close the popup", "screenshot/folder_1/a.png")
        assert step.screenshot_size == (200, 400)
    assert (native.episode_id, other.episode_id) == ("annotations.jsonl_0", "2")


@pytest.mark.parametrize(
    ("annotations", "kind"),
    [
        ({"instr_type": 2}, "implicit"),
        ({"instr_type": 1}, "explicit"),
        ({"instr_type": "Implicit"}, "implicit"),
        ({}, "unknown"),
        (None, "unknown"),
    ],
)
def test_instruction_types_as_the_authors_scorer_reads_them(tmp_path: Path, annotations: Any, kind: str) -> None:
    (step,) = released(tmp_path, row(annotations=annotations, source=None))
    assert step.groups == {"platform": "unknown", "element": "icon", "instruction": kind}


def test_crossed_corners_are_put_in_order(tmp_path: Path) -> None:
    (step,) = released(tmp_path, row(bounding_box=[150, 400, 50, 200]))
    assert step.action == Click(point=Point(500, 750))
    assert [tuple(box) for box in step.boxes] == [(250, 500, 750, 1000)]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"bounding_box": [50, 200, 150]}, "field bounding_box: expected a list of 4 numbers"),
        ({"bounding_box": [500, 200, 900, 400]}, r"field bounding_box: \(700, 300\) lies outside"),
        ({"image": "screenshot/b.png"}, "field image: there is no image 'screenshot/b.png'"),
        ({"annotations": {"instr_type": True}}, "annotations, field instr_type: expected a string"),
        ({"annotations": {"instr_type": "vague"}}, "annotations, field instr_type: expected implicit or explicit, got 'vague'"),
    ],
)
def test_a_damaged_row_is_reported(tmp_path: Path, change: dict[str, Any], problem: str) -> None:
    with pytest.raises(DataError, match=rf"annotations\.jsonl, line 1.*{problem}"):
        released(tmp_path, row(**change))


def test_a_foreign_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"holds no annotations\.jsonl"):
        load_benchmark(NAME, tmp_path)


def test_the_example_holds_the_elements_that_it_was_made_of(tmp_path: Path) -> None:
    benchmarks()[NAME].write_example(tmp_path, episodes=2, seed=2)
    steps = [episode.steps[0] for episode in load_benchmark(NAME, tmp_path)]
    for step, element in zip(steps, tapped_elements(2, 2), strict=True):
        x1, y1, x2, y2 = element.box
        assert tuple(step.boxes[0]) == pytest.approx((x1 / 0.36, y1 / 0.8, x2 / 0.36, y2 / 0.8))
        assert (tmp_path / step.screenshot).read_bytes() == element.png

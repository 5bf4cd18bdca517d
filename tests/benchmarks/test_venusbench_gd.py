"""VenusBench-GD: its six lists under both of their names, refusals, both languages, and the scorer's rule."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from guieval.actions import Action, Click, Point, Stop
from guieval.errors import DataError, UsageError
from guieval.evaluation import ActionEvaluator
from guieval.registry import load_benchmark
from guieval.steps import StepTaskModel

NAME = "venusbench-gd"


def row(**changes: Any) -> dict[str, Any]:
    return {
        "img_filename": "mobile/excel/a.png",
        "instruction": "enter the name",
        "instruction_zh": "输入名称",
        "category": "element_grounding",
        "bbox": [50, 200, 150, 400],
        "label": "text input",
        "data_type": "bbox",
        **changes,
    }


def write(root: Path, *rows: dict[str, Any], task: str = "element_grounding") -> Path:
    (root / "instruction").mkdir(parents=True, exist_ok=True)
    (root / "instruction" / f"{task}.json").write_text(json.dumps(rows), encoding="utf-8")
    image = root / "images" / "mobile" / "excel" / "a.png"
    image.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (200, 400)).save(image)
    return root


def steps_of(root: Path, **options: Any) -> list[StepTaskModel]:
    return [episode.steps[0] for episode in load_benchmark(NAME, root, **options)]


def test_a_row(tmp_path: Path) -> None:
    (step,) = steps_of(write(tmp_path, row()))
    assert step.action == Click(point=Point(500, 750))
    assert [tuple(box) for box in step.boxes] == [(250, 500, 750, 1000)]
    assert step.groups == {
        "task": "element",
        "level": "basic",
        "platform": "mobile",
        "application": "excel",
        "element": "text input",
    }
    assert (step.instruction, step.extras) == ("enter the name", {"instruction_zh": "输入名称"})
    assert (step.episode_id, step.screenshot) == ("element_grounding_0", "images/mobile/excel/a.png")


@pytest.mark.parametrize(
    ("name", "task", "level"),
    [
        ("spatial_grounding", "spatial", "basic"),
        ("visual_grounding", "visual", "basic"),
        ("functional_grounding", "functional", "advanced"),
        ("reasoning_grounding", "reasoning", "advanced"),
        ("reason_grounding", "reasoning", "advanced"),
    ],
)
def test_every_list_under_its_names(tmp_path: Path, name: str, task: str, level: str) -> None:
    (step,) = steps_of(write(tmp_path, row(), task=name))
    assert (step.groups["task"], step.groups["level"]) == (task, level)


@pytest.mark.parametrize("name", ["refusal_grounding", "refusal_spatial"])
@pytest.mark.parametrize("box", [{"bbox": [-1, -1, -1, -1]}, {"bbox": None}, {}])
def test_what_is_not_there_is_a_refusal(tmp_path: Path, name: str, box: dict[str, Any]) -> None:
    value = {key: item for key, item in row().items() if key != "bbox"} | box
    (step,) = steps_of(write(tmp_path, value, task=name))
    assert step.action == Stop(status="impossible") and not len(step.boxes)


def test_the_other_language(tmp_path: Path) -> None:
    write(tmp_path, row())
    (step,) = steps_of(tmp_path, language="cn")
    assert (step.instruction, step.extras) == ("输入名称", {"instruction": "enter the name"})
    with pytest.raises(UsageError, match=r"option language is 'zh'; expected en or cn"):
        load_benchmark(NAME, tmp_path, language="zh")


@pytest.mark.parametrize(
    ("task", "change", "problem"),
    [
        ("element_grounding", {"bbox": None}, "field bbox: expected a list, got None"),
        ("element_grounding", {"bbox": [150, 200, 50, 400]}, "field bbox: expected .* upper left corner first"),
        ("element_grounding", {"bbox": [-1, -1, -1, -1]}, "field bbox: .* lies outside"),
        ("element_grounding", {"img_filename": "web/b.png"}, "field img_filename: there is no image"),
        ("refusal_grounding", {}, r"field bbox: expected null or \[-1, -1, -1, -1\] where nothing fits"),
    ],
)
def test_a_damaged_row_is_reported(tmp_path: Path, task: str, change: dict[str, Any], problem: str) -> None:
    with pytest.raises(DataError, match=rf"{task}\.json, row 0, {problem}"):
        steps_of(write(tmp_path, row(**change), task=task))


def test_a_foreign_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"holds no instruction/<task>\.json"):
        load_benchmark(NAME, tmp_path)


@pytest.mark.parametrize(
    ("task", "action", "right"),
    [
        ("element_grounding", Click(point=Point(250, 500)), True),  # the border counts
        ("element_grounding", Click(point=Point(249, 500)), False),
        ("element_grounding", Stop(status="impossible"), False),
        ("refusal_grounding", Stop(status="impossible"), True),
        ("refusal_grounding", Stop(status="finish"), False),
        ("refusal_grounding", Click(point=Point(500, 750)), False),
    ],
)
def test_the_authors_rule(tmp_path: Path, task: str, action: Action, right: bool) -> None:
    box = {"bbox": None} if task.startswith("refusal") else {}
    (step,) = steps_of(write(tmp_path, row(**box), task=task))
    assert ActionEvaluator(NAME).evaluate(step, action).exact_match is right

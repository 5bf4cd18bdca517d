"""AMEX: every action from hand-written files, the authors' rule for testing, every folder, and damage."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from guieval.benchmarks._examples.amex import write_amex

from guieval.actions import Action, Click, Point, Scroll
from guieval.errors import DataError
from guieval.registry import load_benchmark
from guieval.steps import StepTaskModel
from tests.rows import every_row

NAME = "2024_5_14_15_19_a33e893f15bb4ad69a903291f954bf64"


def row(action: str, number: int = 1, **changes: Any) -> dict[str, Any]:
    """One step as the release has it, x before y, in pixels of a screen of 1440 x 3120."""
    shown = {"step_id": number, "image_path": f"{NAME}-{number}.png", "package_name": "com.example", "device_dim": [1440, 3120]}
    return {**shown, "action": action, "touch_coord": [-1, -1], "lift_coord": [-1, -1], "type_text": "", **changes}


def element(*bbox: int) -> dict[str, Any]:
    return {"bbox": list(bbox), "xml_desc": [], "functionality": ""}


def write(root: Path, *steps: dict[str, Any], name: str = NAME, instruction: str = "Buy milk", **changes: Any) -> Path:
    (root / "instruction_anno").mkdir(parents=True, exist_ok=True)
    annotation = {"episode_id": name, "instruction": instruction, "steps": list(steps), **changes}
    (root / "instruction_anno" / f"{name}.json").write_text(json.dumps(annotation), encoding="utf-8")
    return root


def write_elements(root: Path, value: Any, image: str = f"{NAME}-1") -> None:
    (root / "element_anno").mkdir(parents=True, exist_ok=True)
    (root / "element_anno" / f"{image}.json").write_text(json.dumps(value))


def only_step(root: Path) -> StepTaskModel:
    (episode,) = load_benchmark("amex", root)
    (step,) = episode.steps
    return step


@every_row(
    ("item", "action"),
    [
        (row("TAP", touch_coord=[720, 780]), Click(point=Point(500, 250))),
        (row("TAP", touch_coord=[1440, 0], lift_coord=[5, 5]), Click(point=Point(1000, 0))),
        (row("SWIPE", touch_coord=[720, 780], lift_coord=[720, 2340]), Scroll(point=Point(500, 250), direction="down")),
        (row("SWIPE", touch_coord=[360, 1560], lift_coord=[1080, 1560]), Scroll(point=Point(250, 500), direction="right")),
        # 400 of 1440 is more of the screen than 600 of 3120, and 720 as much as 1560
        (row("SWIPE", touch_coord=[720, 1560], lift_coord=[320, 960]), Scroll(point=Point(500, 500), direction="left")),
        (row("SWIPE", touch_coord=[720, 1560], lift_coord=[0, 0]), Scroll(point=Point(500, 500), direction="up")),
    ],
)
def test_what_the_page_of_labels_does_not_show(tmp_path: Path, item: dict[str, Any], action: Action) -> None:
    step = only_step(write(tmp_path, item))
    assert step.action == action
    assert (step.dataset, step.subset, step.setting, step.episode_id) == ("amex", "", "high", NAME)
    assert (step.instruction, step.low_level_instruction) == ("Buy milk", None)
    assert (step.screenshot, step.screenshot_size) == (f"screenshot/{NAME}-1.png", (1440, 3120))
    assert len(step.elements) == 0


def test_a_swipe_keeps_its_path(tmp_path: Path) -> None:
    step = only_step(write(tmp_path, row("SWIPE", touch_coord=[720, 2340], lift_coord=[720, -312])))
    assert step.extras == {"step_id": 1, "package_name": "com.example", "path": [[500, 750], [500, -100]]}
    assert only_step(write(tmp_path, row("PRESS_BACK", package_name=None))).extras == {"step_id": 1}


def test_boxes_are_those_of_the_clickable_elements(tmp_path: Path) -> None:
    write(tmp_path, row("TASK_COMPLETE"))
    clickable = [element(144, 312, 288, 624), element(-72, 0, 72, 0)]
    write_elements(tmp_path, {"clickable_elements": clickable, "scrollable_elements": [element(0, 0, 1440, 3120)]})
    assert [tuple(box) for box in only_step(tmp_path).elements] == [(100, 100, 200, 200), (-50, 0, 50, 0)]


@every_row(
    ("instruction", "split"),
    [
        ("Open Gmail. Write a mail", "test"),
        ("Open YouTube Music. Play a song. Stop it.", "test"),
        ("Open Microsoft To Do. Add a task", "test"),
        ("Open Gmail and write a mail. Send it.", "train"),
        ("Open Spotify. Play a song", "train"),
        ("Open Gmail", "train"),
        ("In Gmail, write a mail", "train"),
    ],
)
def test_the_authors_rule_determines_the_split(tmp_path: Path, instruction: str, split: str) -> None:
    benchmark = load_benchmark("amex", write(tmp_path, row("TASK_COMPLETE"), instruction=instruction))
    (ref,) = benchmark.index()
    assert ref.split == benchmark.load(ref).steps[0].split == split


@every_row("inner", ["", "AMEX"])
@every_row("nested", [False, True])
def test_folders_as_the_archives_unpack_are_found(tmp_path: Path, inner: str, nested: bool) -> None:
    home = tmp_path / "AMEX"
    write_amex(home, episodes=1)
    if nested:
        for name in ("instruction_anno", "element_anno", "screenshot"):
            (home / name).rename(home / "moved")
            (home / name).mkdir()
            (home / "moved").rename(home / name / name)
    benchmark = load_benchmark("amex", tmp_path / inner)
    (episode,) = benchmark
    for step in episode.steps:
        assert (benchmark.root / step.screenshot).is_file()
        assert len(step.elements) > 0


@every_row(
    ("item", "field"),
    [
        (row("TAP"), "touch_coord"),
        (row("TAP", touch_coord=[1441, 5]), "touch_coord"),
        (row("SWIPE", touch_coord=[5, 5], lift_coord=[math.nan, 5]), "lift_coord"),
        (row("SWIPE", touch_coord=[5, 5], lift_coord=[5, math.inf]), "lift_coord"),
        (row("SCROLL"), "action"),
        (row("PRESS_BACK", device_dim=[1440, 0]), "device_dim"),
        (row("PRESS_BACK", image_path="x"), "image_path"),
        (row("PRESS_BACK", step_id="1"), "step_id"),
    ],
)
def test_a_damaged_step_is_reported_by_file_step_and_field(tmp_path: Path, item: dict[str, Any], field: str) -> None:
    write(tmp_path, row("TASK_COMPLETE"), item)
    with pytest.raises(DataError) as caught:
        list(load_benchmark("amex", tmp_path))
    assert f"{NAME}.json, step 1, field {field}: " in str(caught.value)


@every_row(
    ("elements", "message"),
    [
        ({}, "field clickable_elements: is missing"),
        ({"clickable_elements": [element(1, 2, 3, 4), {}]}, "field clickable_elements[1], field bbox: is missing"),
    ],
)
def test_damaged_elements_are_reported_by_their_own_file(tmp_path: Path, elements: Any, message: str) -> None:
    write(tmp_path, row("TASK_COMPLETE"))
    write_elements(tmp_path, elements)
    with pytest.raises(DataError) as caught:
        only_step(tmp_path)
    assert f"element_anno/{NAME}-1.json" in str(caught.value)
    assert message in str(caught.value)


def test_a_damaged_episode_can_be_skipped(tmp_path: Path) -> None:
    write(tmp_path, row("TASK_COMPLETE"))
    write(tmp_path, name="b")
    write(tmp_path, row("TASK_COMPLETE"), name="c", episode_id=NAME)
    write(tmp_path, row("TASK_COMPLETE"), name="d", instruction="Open the door", episode_id=5)
    benchmark = load_benchmark("amex", tmp_path)
    with pytest.raises(DataError, match=r"b\.json: expected a list of steps, got \[\]"):
        benchmark.index()
    benchmark = benchmark.skipping_damaged()
    assert [episode.key.episode_id for episode in benchmark] == [NAME]
    _, twice, number = map(str, benchmark.skipped)
    assert f"c.json: episode amex/{NAME} is already in " in twice
    assert "d.json, field episode_id: expected a string, got 5" in number

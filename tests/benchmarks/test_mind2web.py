"""Multimodal-Mind2Web: UGround's full lists, blocks and pages, and what is refused."""

from __future__ import annotations

import gzip
import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from guieval.actions import Click, Point, Type, Unsupported
from guieval.data.benchmark import ABCBenchmark
from guieval.errors import DataError, UsageError
from guieval.evaluation import ActionEvaluator
from guieval.registry import load_benchmark
from guieval.steps import StepTaskModel
from tests.rows import every_row


def row(step: int = 0, *, name: str = "t", **changes: Any) -> dict[str, Any]:
    """A row of a list with blocks, as the authors write it."""
    task = {"task": "Rent a truck", "website": "budget", "domain": "Travel", "subdomain": "Car rental", "split": "task"}
    place = {"annotation_id": name, "action_uid": f"u{step}", "step": step, "total_steps": 9, "previous_actions": []}
    label = {"operation": "CLICK", "value": "", "bbox": [[100.0, 1050.0, 200.0, 40.0]]}
    blocks = {"blocks_path": f"{name}_u{step}", "target_blocks": {"1": [[100.0, 250.0, 200.0, 40.0]]}}
    return {**task, **place, **label, **blocks, **changes}


def write(root: Path, *rows: dict[str, Any], file: str = "cross_task_blocks.jsonl") -> Path:
    path = root / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(each) + "\n" for each in rows), encoding="utf-8")
    return root


def image(root: Path, path: str, size: tuple[int, int]) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", size, "white").save(root / path)


def only(root: Path, **options: Any) -> StepTaskModel:
    (episode,) = load_benchmark("mind2web", root, **options)
    (step,) = episode.steps
    return step


def test_the_first_target_block_is_shown(tmp_path: Path) -> None:
    image(write(tmp_path, row()), "blocks/t_u0/1.png", (1000, 500))
    step = only(tmp_path)
    assert (step.screenshot, step.screenshot_size) == ("blocks/t_u0/1.png", (1000, 500))
    assert step.action == Click(point=Point(200, 540))  # (100 + 200 / 2) / 1000, (250 + 40 / 2) / 500
    assert step.targets.array.tolist() == [[100, 500, 300, 580]]
    assert step.subset == "cross_task"
    assert step.groups == {"domain": "Travel", "target": "present"}
    assert (step.extras["website"], step.extras["screen_size_from"]) == ("budget", "image")
    evaluator = ActionEvaluator("mind2web-element")
    assert evaluator.evaluate(step, Click(point=Point(300, 580))).verdict == "right"
    assert evaluator.evaluate(step, Click(point=Point(301, 580))).verdict == "wrong"


@every_row("folder", ["blocks", "cross_task/blocks", "blocks/cross_task", "cross_task_blocks"])
def test_blocks_may_lie_in_several_places(tmp_path: Path, folder: str) -> None:
    image(write(tmp_path, row()), f"{folder}/t_u0/1.webp", (1280, 900))
    assert only(tmp_path).screenshot == f"{folder}/t_u0/1.webp"


def test_without_images_a_block_has_its_nominal_size(tmp_path: Path) -> None:
    step = only(write(tmp_path, row()))
    assert (step.screenshot_size, step.extras["screen_size_from"]) == ((1280, 1000), "nominal block")
    assert step.targets[0] == pytest.approx((78.125, 250, 234.375, 290))


@every_row(
    ("box", "block", "top"),
    [([10, 0, 20, 30], 0, 0), ([10, 960, 20, 40], 0, 960), ([10, 961, 20, 40], 1, 161), ([10, 2600, 20, 200], 3, 200)],
)
def test_a_list_without_target_blocks_is_read_by_its_page(tmp_path: Path, box: list[int], block: int, top: int) -> None:
    step = only(write(tmp_path, row(bbox=[box], target_blocks={})))
    assert step.screenshot == f"blocks/t_u0/{block}.png"
    assert step.targets[0].y1 == top


def test_the_whole_page_can_be_shown(tmp_path: Path) -> None:
    image(write(tmp_path, row()), "images/t_u0.jpg", (1000, 2000))
    step = only(tmp_path, view="page")
    assert (step.screenshot, step.screenshot_size) == ("images/t_u0.jpg", (1000, 2000))
    assert step.action == Click(point=Point(200, 535))
    assert step.targets.array.tolist() == [[100, 525, 300, 545]]
    with pytest.raises(UsageError, match=r"option view is 'pages'; expected block or page \(did you mean 'page'\?\)"):
        only(tmp_path, view="pages")


def test_a_list_of_pages_shows_pages(tmp_path: Path) -> None:
    page = row(image="t_u0.png")
    del page["target_blocks"], page["blocks_path"]
    image(write(tmp_path, page, file="cross_website/sample.jsonl"), "cross_website/images/t_u0.png", (1000, 2000))
    step = only(tmp_path)
    assert (step.subset, step.screenshot) == ("cross_website", "cross_website/images/t_u0.png")
    assert step.action == Click(point=Point(200, 535))
    (tmp_path / step.screenshot).unlink()
    told = r"sample.jsonl, line 1, field bbox: there is no image '.*', whose size is needed to read the label"
    with pytest.raises(DataError, match=told):
        only(tmp_path)


def test_texts_choices_and_absent_targets(tmp_path: Path) -> None:
    nowhere: dict[str, Any] = {"bbox": [], "target_blocks": {}}
    rows = [
        row(0, operation="TYPE", value="New York"),
        row(1, operation="SELECT", value="Pickup"),
        row(2, **nowhere),
        row(3, operation="TYPE", value="boxer", **nowhere),
    ]
    (episode,) = load_benchmark("mind2web", write(tmp_path, *rows))
    typed, chosen, absent, unplaced = episode.steps
    assert (typed.action, len(typed.targets)) == (Type(text="New York"), 1)
    assert chosen.action == Unsupported(name="SELECT", arguments={"value": "Pickup"})
    assert absent.action == Unsupported(name="CLICK", arguments={"bbox": []})
    assert unplaced.action == Type(text="boxer")
    assert [step.groups["target"] for step in episode.steps] == ["present", "present", "absent", "absent"]
    evaluator = ActionEvaluator("mind2web-element")
    assert evaluator.evaluate(typed, Type(text="new york")).verdict == "right"
    assert evaluator.evaluate(chosen, Unsupported(name="select", arguments={"value": "Pickup"})).verdict == "right"
    assert evaluator.evaluate(absent, Click(point=Point(500, 500))).verdict == "wrong"


def test_steps_are_put_in_order_and_numbered_without_gaps(tmp_path: Path) -> None:
    write(tmp_path, row(4), row(0, name="other"), row(1), row(7))
    first, second = load_benchmark("mind2web", tmp_path)
    assert [step.extras["step"] for step in first.steps] == [1, 4, 7]
    assert [step.step_index for step in first.steps] == [0, 1, 2]
    assert (second.key.episode_id, first.steps[0].extras["total_steps"]) == ("other", 9)


@every_row(
    ("changes", "field"),
    [
        ({"operation": "HOVER"}, "field operation: expected CLICK, TYPE or SELECT, got 'HOVER'"),
        ({"bbox": [[1, float("nan"), 3, 4]], "target_blocks": {}}, "field bbox: expected boxes"),
        ({"target_blocks": {"0": [[10**400, 2, 3, 4]]}}, "field target_blocks: expected boxes"),
        ({"bbox": [[1, 2, -3, 4]]}, "field bbox: expected a width and a height"),
        ({"target_blocks": {"a": []}}, "field target_blocks: expected numbers of blocks, got 'a'"),
        ({"annotation_id": "else"}, "field annotation_id: 'else' is not that of blocks_path"),
        ({"step": -1}, "field step: expected a position"),
        ({"name": "whole"}, "field step: 0 of task 'whole' is already on line 1"),
    ],
)
def test_a_damaged_row_is_named(tmp_path: Path, changes: dict[str, Any], field: str) -> None:
    write(tmp_path, row(0, name="whole"), row(**changes))
    with pytest.raises(DataError, match=rf"cross_task_blocks\.jsonl, line 2.*{field}"):
        list(load_benchmark("mind2web", tmp_path))


@pytest.fixture(scope="module")
def lists(shared_data: Path) -> ABCBenchmark:
    return load_benchmark("mind2web", shared_data / "uground_offline")


def test_every_label_of_the_lists_is_read(lists: ABCBenchmark) -> None:
    kinds: Counter[str] = Counter()
    absent = 0
    evaluator = ActionEvaluator("mind2web-element")
    for episode in lists:
        for step in episode.steps:
            kinds[step.action.name if isinstance(step.action, Unsupported) else step.action.type] += 1
            absent += step.groups["target"] == "absent"
            assert evaluator.evaluate(step, step.action).verdict == "right"
    # 1,121 + 827 + 3,395 clicks (339 of them on elements that are not there), 158 + 120 + 560 texts, 59 + 72 + 95 choices
    assert kinds == {"CLICK": 5343, "TYPE": 838, "SELECT": 226}
    assert absent == 347


def test_a_real_page(tmp_path: Path, shared_data: Path) -> None:
    """The button that the label frames on the real page, from a list of pages and on the block cut from it."""
    (label,) = json.loads((shared_data / "mind2web_step" / "annotation.json").read_text(encoding="utf-8"))
    name = label["blocks_path"]
    (tmp_path / "images").mkdir()
    shutil.copy(shared_data / "mind2web_step" / "images" / "0.jpg", tmp_path / "images" / f"{name}.jpg")
    with gzip.open(tmp_path / "cross_domain_blocks.jsonl.gz", "wt", encoding="utf-8") as stream:
        stream.write(json.dumps(label))
    page = only(tmp_path, view="page")
    assert page.screenshot_size == (1280, 7412)
    x, y = page.action.point if isinstance(page.action, Click) else (0, 0)
    assert (x * 1.28, y * 7.412) == pytest.approx((587 + 93 / 2, 596.59375 + 54 / 2))
    with Image.open(tmp_path / page.screenshot) as screenshot:
        block = screenshot.crop((0, 0, 1280, 1000))
    (tmp_path / "blocks" / name).mkdir(parents=True)
    block.save(tmp_path / "blocks" / name / "0.png")
    assert only(tmp_path).action == Click(point=Point(633.5 / 1.28, 623.59375))
    # The button is the one bright blue thing there: its left edge is, what is above and beside it is not.
    assert bluer(block, 595, 623)
    assert not bluer(block, 575, 575)


def bluer(picture: Image.Image, x: int, y: int) -> bool:
    red, _, blue = picture.convert("RGB").crop((x, y, x + 1, y + 1)).tobytes()
    return blue > red + 60

"""CAGUI's grounding part: rows from hand-written lists, the published ones, every folder, and damage."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from guieval.benchmarks._examples.cagui import write_cagui_grounding

from guieval.actions import Click, Point
from guieval.errors import DataError, UsageError
from guieval.registry import load_benchmark
from guieval.steps import StepTaskModel
from tests.rows import every_row


def entry(number: int = 0, part: str = "cap", **changes: Any) -> dict[str, Any]:
    """One row of a list; a screen of 100 x 200 pixels."""
    return {
        "task": "bbox2function" if part == "cap" else "bbox2text",
        "image": f"grounding_eval/dataset/images/{'' if part == 'cap' else 'ocr/'}{number}.jpeg",
        "id": 7,
        "abs_position": "<10, 20, 30, 60>",
        "rel_position": "<0.1, 0.1, 0.3, 0.3>",
        "text": "关注",
        **changes,
    }


def write_lists(folder: Path, *cap: dict[str, Any], packed: bool = False) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for part, rows in (("cap", cap or (entry(),)), ("ocr", (entry(part="ocr"),))):
        text = "".join(json.dumps(each, ensure_ascii=False) + "\n" for each in rows).encode()
        (folder / f"{part}.jsonl{'.gz' if packed else ''}").write_bytes(gzip.compress(text) if packed else text)
    return folder


def targets(root: Path) -> list[StepTaskModel]:
    return [step for episode in load_benchmark("cagui-grounding", root) for step in episode.steps]


def test_a_row_becomes_a_click_on_the_middle_of_its_box(tmp_path: Path) -> None:
    first, second = targets(write_lists(tmp_path))
    assert first.key == ("cagui-grounding", "fun2point", "0", 0)
    assert second.key == ("cagui-grounding", "text2point", "0", 0)
    for step in (first, second):
        assert step.action == Click(point=Point(200, 200))
        assert [tuple(box) for box in step.boxes] == [(100, 100, 300, 300)]
        assert (step.instruction, step.setting, step.dataset) == ("关注", "grounding", "cagui-grounding")
        assert step.screenshot_size == (100, 200)
        assert step.groups == {"task": step.subset}
        assert step.extras == {"id": 7}
    assert (first.screenshot, second.screenshot) == ("images/cap/0.jpeg", "images/ocr/0.jpeg")


def test_the_published_lists(shared_data: Path) -> None:
    steps = targets(shared_data / "cagui_grounding")
    assert [sum(step.subset == task for step in steps) for task in ("fun2point", "text2point")] == [1500, 1500]
    assert len({step.key for step in steps}) == len({step.screenshot for step in steps}) == 3000
    by_key = {(step.subset, step.episode_id): step for step in steps}
    menu = by_key["fun2point", "0"]
    assert menu.instruction.startswith("UI元素是一个菜单按钮")
    assert menu.screenshot_size == (1220, 2712)  # 1061 / 0.8696721311475409 and 2424 / 0.8938053097345132
    assert isinstance(menu.action, Click)
    assert tuple(menu.action.point) == pytest.approx((1110 / 1220 * 1000, 2473 / 2712 * 1000))
    music = by_key["text2point", "1"]
    assert (music.instruction, music.extras, music.screenshot_size) == ("QQ音乐", {"id": 629}, (1080, 2376))
    assert tuple(music.boxes[0]) == pytest.approx((643 / 1.08, 462 / 2.376, 849 / 1.08, 744 / 2.376))
    assert [step.key for step in steps if not step.instruction] == [by_key["text2point", "416"].key]
    assert len({step.screenshot_size for step in steps}) == 15


@every_row("inner", ["", "CAGUI_grounding", "CAGUI_grounding/code"])
def test_any_folder_of_the_grounding_part_may_be_given(tmp_path: Path, inner: str) -> None:
    shown = write_cagui_grounding(tmp_path, episodes=2)
    benchmark = load_benchmark("cagui-grounding", tmp_path / inner)
    episodes = list(benchmark)
    assert [episode.steps[0].subset for episode in episodes] == ["fun2point"] * 2 + ["text2point"] * 2
    for episode, was in zip(episodes[2:], shown, strict=True):
        (step,) = episode.steps
        assert was.target is not None
        assert (benchmark.root / step.screenshot).is_file()
        assert step.instruction == was.target.label
        assert isinstance(was.action, Click)
        box = step.boxes[0]
        assert box.x1 <= was.action.point.x <= box.x2
        assert box.y1 <= was.action.point.y <= box.y2


def test_images_where_the_rows_recorded_them_are_found(tmp_path: Path) -> None:
    write_lists(tmp_path / "code")
    (tmp_path / "images" / "ocr").mkdir(parents=True)
    assert [step.screenshot for step in targets(tmp_path)] == ["images/0.jpeg", "images/ocr/0.jpeg"]


def test_packed_lists_are_the_same(tmp_path: Path) -> None:
    rows = [entry(number, text=f"第{number}个") for number in range(3)]
    assert targets(write_lists(tmp_path / "a", *rows)) == targets(write_lists(tmp_path / "b", *rows, packed=True))


@every_row("part", ["cap", "ocr", None])
def test_a_folder_without_both_lists_is_refused(tmp_path: Path, part: str | None) -> None:
    if part is not None:
        write_lists(tmp_path)
        (tmp_path / f"{part}.jsonl").unlink()
    with pytest.raises(UsageError, match=r"holds no .*\.jsonl.*guieval prepare cagui-grounding"):
        load_benchmark("cagui-grounding", tmp_path)


@every_row(
    ("item", "field"),
    [
        (entry(1, abs_position="<10, 20, 30>"), "abs_position"),
        (entry(1, abs_position="<10, 20, 30, x>"), "abs_position"),
        (entry(1, abs_position="<30, 20, 10, 60>"), "abs_position"),
        (entry(1, abs_position="<10, 20, 30, nan>"), "abs_position"),
        (entry(1, rel_position="<0.1, 0.1, 0.2, 0.3>"), "rel_position"),
        (entry(1, rel_position="<0, 0, 0, 0>", abs_position="<0, 0, 0, 0>"), "rel_position"),
        (entry(1, rel_position="<0, 0, 1e-300, 1e-300>", abs_position="<0, 0, 1e300, 1e300>"), "rel_position"),
        (entry(1, task="bbox2text"), "task"),
        (entry(1, text=None), "text"),
        (entry(1, id="7"), "id"),
        (entry(1, image="1"), "image"),
        (entry(0), "image"),
    ],
)
def test_a_damaged_row_is_reported_by_file_line_and_field_and_can_be_skipped(
    tmp_path: Path, item: dict[str, Any], field: str
) -> None:
    write_lists(tmp_path, entry(0), item, entry(2))
    with pytest.raises(DataError) as caught:
        targets(tmp_path)
    assert f"cap.jsonl, line 2, field {field}: " in str(caught.value)
    benchmark = load_benchmark("cagui-grounding", tmp_path).skipping_damaged()
    assert [episode.key[1:] for episode in benchmark] == [("fun2point", "0"), ("fun2point", "2"), ("text2point", "0")]
    assert [str(error) for error in benchmark.skipped] == [str(caught.value)]

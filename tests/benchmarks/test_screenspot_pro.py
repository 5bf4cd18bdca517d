"""ScreenSpot-Pro: the released layout, both languages, and the full lists against the published counts."""

from __future__ import annotations

import gzip
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

NAME = "screenspot-pro"


def row(**changes: Any) -> dict[str, Any]:
    return {
        "img_filename": "word/a.png",
        "bbox": [100, 200, 300, 600],
        "instruction": "make it bold",
        "instruction_cn": "加粗",
        "id": "word_macos_0",
        "application": "word",
        "platform": "macos",
        "img_size": [2000, 1000],
        "ui_type": "icon",
        "group": "Office",
        **changes,
    }


def write(root: Path, rows: list[dict[str, Any]], name: str = "annotations/word_macos.json") -> Path:
    file = root / name
    file.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(rows).encode()
    file.write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    return root


def steps_of(root: Path, **options: Any) -> list[StepTaskModel]:
    return [episode.steps[0] for episode in load_benchmark(NAME, root, **options)]


@pytest.mark.parametrize(
    "name",
    ["annotations/word_macos.json", "ScreenSpot_Pro_data/word_macos.json", "word_macos.json", "annotations/word_macos.json.gz"],
)
def test_a_row_without_its_image_gives_its_target(tmp_path: Path, name: str) -> None:
    (step,) = steps_of(write(tmp_path, [row()], name))
    assert step.action == Click(point=Point(100, 400))
    assert [tuple(box) for box in step.boxes] == [(50, 200, 150, 600)]
    assert (step.screenshot, step.screenshot_size) == ("images/word/a.png", (2000, 1000))
    assert step.groups == {"group": "Office", "application": "word", "platform": "macos", "element": "icon"}
    assert (step.instruction, step.extras) == ("make it bold", {"instruction_cn": "加粗"})
    assert (step.episode_id, step.setting, step.dataset) == ("word_macos_0", "grounding", "screenspot-pro")


def test_chinese_on_request(tmp_path: Path) -> None:
    (step,) = steps_of(write(tmp_path, [row()]), language="cn")
    assert (step.instruction, step.extras) == ("加粗", {"instruction": "make it bold"})
    with pytest.raises(UsageError, match=r"option language is 'chinese'; expected en or cn"):
        load_benchmark(NAME, tmp_path, language="chinese")
    (tmp_path / "annotations/word_macos.json").write_text(json.dumps([{k: v for k, v in row().items() if "_cn" not in k}]))
    with pytest.raises(DataError, match=r"word_macos\.json, row 0, field instruction_cn: is missing"):
        steps_of(tmp_path, language="cn")


def test_lists_come_in_name_order_and_an_id_only_once(tmp_path: Path) -> None:
    write(tmp_path, [row(id="w")])
    write(tmp_path, [row(id="v1"), row(id="v0")], "annotations/vivado_windows.json")
    assert [step.episode_id for step in steps_of(tmp_path)] == ["v1", "v0", "w"]
    write(tmp_path, [row(id="v1")], "annotations/zbrush_linux.json")
    with pytest.raises(
        DataError, match=r"zbrush_linux\.json, row 0, field id: 'v1' is already that of .*vivado_windows\.json, row 0"
    ):
        load_benchmark(NAME, tmp_path).index()


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"bbox": [300, 200, 100, 600]}, r"field bbox: expected \[x1, y1, x2, y2\] with the upper left corner first"),
        ({"bbox": [3900, 200, 4000, 600]}, r"field bbox: \(3950, 400\) lies outside"),
        ({"bbox": [float("nan"), 200, 300, 600]}, "field bbox: expected"),
        ({"bbox": [float("-inf"), 200, float("inf"), 600]}, "field bbox: .*outside"),
        ({"img_size": [2000, 0]}, "field img_size: expected a width and a height"),
        ({"ui_type": "button"}, "field ui_type: expected text or icon, got 'button'"),
        ({"group": 3}, "field group: expected a string"),
        ({"id": 1.5}, "field id: expected a string"),
    ],
)
def test_a_damaged_row_is_reported(tmp_path: Path, change: dict[str, Any], problem: str) -> None:
    with pytest.raises(DataError, match=rf"word_macos\.json, row 0, {problem}"):
        steps_of(write(tmp_path, [row(**change)]))


def test_a_foreign_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "word.json").write_text("[]")
    with pytest.raises(UsageError, match=r"holds no annotations/<application>.*`guieval prepare screenspot-pro --source"):
        load_benchmark(NAME, tmp_path)


def test_the_example_holds_the_elements_that_it_was_made_of(tmp_path: Path) -> None:
    benchmarks()[NAME].write_example(tmp_path, episodes=3, seed=5)
    steps = {step.instruction: step for step in steps_of(tmp_path)}
    for element in tapped_elements(3, 5):
        x1, y1, x2, y2 = element.box
        step = steps[element.instruction]
        assert tuple(step.boxes[0]) == pytest.approx((x1 / 0.36, y1 / 0.8, x2 / 0.36, y2 / 0.8))
        assert (tmp_path / step.screenshot).read_bytes() == element.png


def test_the_full_lists_have_the_published_counts(shared_data: Path) -> None:
    root = shared_data / "screenspot_pro_format_annotations"
    if not root.is_dir():
        pytest.skip(f"no {root}")
    steps = steps_of(root)
    groups = Counter(step.groups["group"] for step in steps)
    assert groups == {"CAD": 261, "Creative": 341, "Dev": 299, "OS": 196, "Office": 230, "Scientific": 254}
    published = {count.groups.get("group", "all"): count.steps for count in benchmarks()[NAME].published}
    assert published == {**groups, "all": 1581}
    assert len({step.groups["application"] for step in steps}) == 26
    chinese = steps_of(root, language="cn")
    assert all(step.instruction.strip() for step in steps + chinese)
    assert [step.boxes for step in steps] == [step.boxes for step in chinese]
    first = steps[0]  # android_studio_macos_0: [1774, 1586, 2113, 1618] of 3840 x 2160
    assert first.episode_id == "android_studio_macos_0"
    assert isinstance(first.action, Click)
    assert first.action.point == pytest.approx((1943.5 / 3.84, 1602 / 2.16))

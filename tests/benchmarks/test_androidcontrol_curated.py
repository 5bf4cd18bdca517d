"""AndroidControl-Curated's point files: every label, episodes joined by goal and history, sizes of screens."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from guieval.actions import Action, Click, Point, Scroll
from guieval.errors import DataError
from guieval.registry import load_benchmark
from guieval.steps import Episode
from tests.rows import every_row

NAME = "androidcontrol-curated"


def row(image: int, *past: str, **changes: Any) -> dict[str, Any]:
    """A row of the high file, written as the authors write a history."""
    lines = "".join(f"Step {number}: {words}\n" for number, words in enumerate(past, 1)) or "None\n"
    return {
        "image": f"android_control_high/image_{image}.jpg",
        "history": f" \n{lines}" + ("\n" if past else ""),
        "instruction": "Read the news",
        "gt_action": "press_back",
        "gt_bbox": [-100, -100],
        "gt_input_text": "no input text",
        "group": "android",
        "ui_type": "press_back",
        **changes,
    }


def episodes_of(root: Path, *rows: Any, name: str = NAME, folder: str = "") -> list[Episode]:
    file = root / folder / f"android_control_{'low' if name.endswith('low') else 'high'}_point.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(rows), encoding="utf-8")
    return list(load_benchmark(name, root))


def images(episodes: list[Episode]) -> dict[str, list[int]]:
    return {
        episode.key.episode_id: [int(step.screenshot.rpartition("_")[2].removesuffix(".jpg")) for step in episode.steps]
        for episode in episodes
    }


@every_row(
    ("label", "action"),
    [
        ({"gt_action": "click", "gt_bbox": [540, 600]}, Click(point=Point(500, 250))),
        ({"gt_action": "scroll", "gt_input_text": "LEFT"}, Scroll(point=Point(500, 500), direction="right")),
    ],
)
def test_every_label(label: dict[str, Any], action: Action, tmp_path: Path) -> None:
    for name in (NAME, f"{NAME}-low"):
        (episode,) = episodes_of(tmp_path, row(1, **label), name=name)
        (step,) = episode.steps
        assert step.action == action and step.instruction == "Read the news"
        assert step.low_level_instruction == ("Read the news" if name.endswith("low") else None)
        assert step.extras.get("direction_label") == (label["gt_input_text"].lower() if action.type == "SCROLL" else None)
        assert (step.screenshot_size, step.extras["screen_size_from"]) == ((1080, 2400), "fit")


def test_rows_are_joined_by_goal_and_history(tmp_path: Path) -> None:
    episodes = episodes_of(
        tmp_path,
        row(9, "open it", "scroll"),
        row(3, "open it"),
        row(5),
        row(4, instruction="Play music"),
        row(8, "open it", instruction="Play music"),
    )
    assert images(episodes) == {"4": [4, 8], "5": [5, 3, 9]}
    assert [step.extras["past_instructions"] for step in episodes[1].steps] == [[], ["open it"], ["open it", "scroll"]]


def test_the_low_file_has_an_episode_a_row(tmp_path: Path) -> None:
    assert images(episodes_of(tmp_path, row(9, "open it"), row(5), name=f"{NAME}-low")) == {"5": [5], "9": [9]}


def test_two_episodes_of_one_goal_are_told_apart_by_history_and_by_the_numbers_of_images(tmp_path: Path) -> None:
    rows = [row(10), row(20), row(12, "open it"), row(21, "open it"), row(13, "open it", "tap"), row(23, "open it", "type")]
    assert images(episodes_of(tmp_path, *rows)) == {"10": [10, 12, 13], "20": [20, 21, 23]}


def test_an_empty_instruction_in_a_history_counts_as_a_step(tmp_path: Path) -> None:
    first = row(2) | {"history": " \nStep 1: \n\n"}
    assert images(episodes_of(tmp_path, row(1), first, row(3, "", "go on"))) == {"1": [1, 2, 3]}


@every_row(
    ("rows", "problem"),
    [
        ([row(1), row(2, "one", "two")], "row 1, field history: no step of the same goal comes before it: 'two'"),
        ([row(1), row(1)], r"row 1, field image: 'android_control_high/image_1\.jpg' is already that of .*row 0"),
        ([row(1) | {"image": "a.jpg"}], "row 0, field image: expected a name that ends with _<number>"),
        ([row(1) | {"history": "None"}], "row 0, field history: expected None or lines of steps"),
        ([row(1, gt_action="swipe")], "row 0, field gt_action: expected click, .* got 'swipe'"),
        ([row(1, gt_action="scroll", gt_input_text="UPWARDS")], "row 0, field gt_input_text: expected up, .* got 'UPWARDS'"),
        ([row(1, gt_action="click")], r"row 0, field gt_bbox: \(-100, -100\) lies outside"),
    ],
)
def test_a_damaged_row_is_reported(rows: list[dict[str, Any]], problem: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=rf"android_control_high_point\.json, {problem}"):
        episodes_of(tmp_path, *rows)


def test_a_point_beyond_the_common_screen_means_the_large_one(tmp_path: Path) -> None:
    label = {"gt_action": "click", "gt_bbox": [1440, 1560]}
    (episode,) = episodes_of(tmp_path, row(1), row(2, "tap", **label))
    assert {step.screenshot_size for step in episode.steps} == {(1440, 3120)}
    assert episode.steps[1].action == Click(point=Point(1000, 500))


def test_an_image_states_its_size_and_may_lie_above_the_file(tmp_path: Path) -> None:
    (tmp_path / "android_control_high").mkdir()
    Image.new("RGB", (200, 400)).save(tmp_path / "android_control_high" / "image_1.jpg")
    label = {"gt_action": "click", "gt_bbox": [100, 100]}
    (episode,) = episodes_of(tmp_path, row(1, **label), folder="src/benchmark_resource")
    (step,) = episode.steps
    assert step.action == Click(point=Point(500, 250))
    assert (step.screenshot, step.extras["screen_size_from"]) == ("android_control_high/image_1.jpg", "image")

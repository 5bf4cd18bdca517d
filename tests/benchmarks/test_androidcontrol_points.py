"""AndroidControl's test steps as UI-R1 and AndroidControl-Curated hand them around: labels, episodes, sizes of screens."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from guieval.actions import Action, Click, Point, Scroll
from guieval.data.sample_sets import get_sample_set
from guieval.errors import DataError
from guieval.registry import load_benchmark
from guieval.steps import Episode, StepTaskModel
from tests.rows import every_row


def row(episode: int = 7, number: int = 0, **gt: Any) -> dict[str, Any]:
    image = f"episode_{episode}-screenshot_{number}.png"
    return {"image": image, "gt": gt or {"action_type": "navigate_back"}, "task": "Do it"}


def steps_of(folder: Path, *rows: Any) -> list[StepTaskModel]:
    (folder / "ac_test.json").write_text(json.dumps(rows), encoding="utf-8")
    return [step for episode in load_benchmark("ui-r1", folder) for step in episode.steps]


@every_row(
    ("gt", "action"),
    [
        ({"action_type": "click", "x": 540, "y": 600}, Click(point=Point(500, 250))),
        ({"action_type": "scroll", "direction": "down"}, Scroll(point=Point(500, 500), direction="up")),
        ({"action_type": "scroll", "direction": "left"}, Scroll(point=Point(500, 500), direction="right")),
        ({"action_type": "scroll", "direction": "right"}, Scroll(point=Point(500, 500), direction="left")),
    ],
)
def test_what_the_page_of_labels_does_not_show(gt: dict[str, Any], action: Action, tmp_path: Path) -> None:
    (step,) = steps_of(tmp_path, row(**gt))
    assert step.action == action
    assert step.instruction == step.low_level_instruction == "Do it"
    assert step.extras["screen_size_from"] == "fit" and step.screenshot_size == (1080, 2400)
    assert step.extras.get("direction_label") == gt.get("direction")


def test_steps_are_numbered_in_order_and_keep_their_own_numbers(tmp_path: Path) -> None:
    steps = steps_of(tmp_path, row(7, 3), row(7, 0), row(12, 5), row(7, 9))
    found = [(step.episode_id, step.step_index, step.episode_length, step.extras["step_id"]) for step in steps]
    assert found == [("7", 0, 3, 0), ("7", 1, 3, 3), ("7", 2, 3, 9), ("12", 0, 1, 5)]


def test_a_point_outside_the_common_screen_means_the_larger_one_for_its_episode(tmp_path: Path) -> None:
    inside, outside = {"action_type": "click", "x": 720, "y": 780}, {"action_type": "click", "x": 1081, "y": 0}
    first, second, other = steps_of(tmp_path, row(1, 0, **inside), row(1, 1, **outside), row(2, 0, **inside))
    assert first.screenshot_size == second.screenshot_size == (1440, 3120) and other.screenshot_size == (1080, 2400)
    assert first.action == Click(point=Point(500, 250))
    with pytest.raises(DataError, match=r"ac_test.json, row 0, field gt, field x, y: \(1441, 1\) lies outside the 1440 x 3120"):
        steps_of(tmp_path, row(action_type="click", x=1441, y=1))


@every_row("folder", ["images", "screenshots", ""])
def test_the_image_states_the_size(folder: str, tmp_path: Path) -> None:
    (tmp_path / folder).mkdir(exist_ok=True)
    Image.new("RGB", (200, 400)).save(tmp_path / folder / "episode_7-screenshot_0.png")
    (step,) = steps_of(tmp_path, row(action_type="click", x=100, y=100))
    assert step.action == Click(point=Point(500, 250)) and step.extras["screen_size_from"] == "image"
    assert (tmp_path / step.screenshot).is_file()
    (tmp_path / folder / "episode_7-screenshot_0.png").write_bytes(b"no image")
    with pytest.raises(DataError, match=r"row 0, field image: the image '.*episode_7-screenshot_0.png' is not a readable"):
        steps_of(tmp_path, row())


@every_row(
    ("damaged", "message"),
    [
        ("row", "row 1: expected an object, got 'row'"),
        ({**row(), "image": "7_0.png"}, "row 1, field image: expected episode_<id>-screenshot_<n>.png, got '7_0.png'"),
        (row(1), "row 1, field image: 'episode_1-screenshot_0.png' is already that of .*row 0"),
        (row(action_type="wait"), "row 1, field gt, field action_type: expected click, .* got 'wait'"),
        (row(action_type="scroll", direction="Down"), "row 1, field gt, field direction: expected up, .* got 'Down'"),
        (row(action_type="click", x=1, y="2"), "row 1, field gt, field y: expected a number, got '2'"),
    ],
)
def test_a_damaged_row_is_named(damaged: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=f"ac_test.json, {message}"):
        steps_of(tmp_path, row(1), damaged, row(2))


def test_the_real_file(shared_data: Path) -> None:
    benchmark = load_benchmark("ui-r1", shared_data / "ui_r1")
    refs = benchmark.index()
    steps = [step for ref in refs for step in benchmark.load(ref).steps]
    assert (len(refs), len(steps)) == (1543, 7868)
    assert sum(step.screenshot_size == (1440, 3120) for step in steps if step.action.type == "CLICK") > 0
    episodes = {step.episode_id: (step.screenshot_size, step.extras["screen_size_from"]) for step in steps}
    assert Counter(episodes.values()) == {((1080, 2400), "fit"): 1514, ((1440, 3120), "known"): 24, ((1080, 2160), "known"): 5}
    assert sum(not step.instruction for step in steps) == 10


def test_its_steps_are_ui_s1s_without_waiting_and_long_presses(shared_data: Path) -> None:
    """Step by step over the two real files: the same steps, and the same labels read by two loaders."""
    own = [step for episode in load_benchmark("ui-r1", shared_data / "ui_r1") for step in episode.steps]
    whole = [step for episode in load_benchmark("androidcontrol-low", shared_data / "ui_s1") for step in episode.steps]
    kept = {(step.episode_id, step.step_index): step for step in whole if step.action.type not in ("WAIT", "LONG_PRESS")}
    names = [(step.episode_id, step.extras["step_id"]) for step in own]
    assert len(names) == 7868 and set(names) == kept.keys()
    sample_set = get_sample_set("ac-no-wait-long-press-7868")
    assert set(names) == {(name, index) for name in sample_set.ids for index in sample_set.counted(name)}
    for step in own:
        other = kept[step.episode_id, step.extras["step_id"]]
        assert _pixels(step) == _pixels(other)
        assert step.instruction.strip() == (other.low_level_instruction or "").strip()


def _pixels(step: StepTaskModel) -> object:
    """A label in the words both files have: places in pixels, scrolls by their direction alone."""
    width, height = step.screenshot_size
    match step.action:
        case Click(point=point):
            return "click", round(point.x * width / 1000, 6), round(point.y * height / 1000, 6)
        case Scroll(direction=direction):
            return "scroll", direction
        case action:
            return action


CURATED = "androidcontrol-curated"


def high(image: int, *past: str, **changes: Any) -> dict[str, Any]:
    """A row of the high file, written as the authors write a history."""
    lines = "".join(f"Step {number}: {words}\n" for number, words in enumerate(past, 1)) or "None\n"
    shown = {"image": f"android_control_high/image_{image}.jpg", "history": f" \n{lines}" + ("\n" if past else "")}
    label = {"gt_action": "press_back", "gt_bbox": [-100, -100], "gt_input_text": "no input text", "ui_type": "press_back"}
    return {**shown, "instruction": "Read the news", **label, "group": "android", **changes}


def episodes_of(root: Path, *rows: Any, name: str = CURATED, folder: str = "") -> list[Episode]:
    file = root / folder / f"android_control_{'low' if name.endswith('low') else 'high'}_point.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(rows), encoding="utf-8")
    return list(load_benchmark(name, root))


def joined(episodes: list[Episode]) -> dict[str, list[int]]:
    return {each.key.episode_id: [int(Path(step.screenshot).stem.split("_")[1]) for step in each.steps] for each in episodes}


@every_row(
    ("label", "action"),
    [
        ({"gt_action": "click", "gt_bbox": [540, 600]}, Click(point=Point(500, 250))),
        ({"gt_action": "scroll", "gt_input_text": "LEFT"}, Scroll(point=Point(500, 500), direction="right")),
    ],
)
def test_every_label_of_the_curated_files(label: dict[str, Any], action: Action, tmp_path: Path) -> None:
    for name in (CURATED, f"{CURATED}-low"):
        (episode,) = episodes_of(tmp_path, high(1, **label), name=name)
        (step,) = episode.steps
        assert step.action == action and step.instruction == "Read the news"
        assert step.low_level_instruction == ("Read the news" if name.endswith("low") else None)
        assert step.extras.get("direction_label") == (label["gt_input_text"].lower() if action.type == "SCROLL" else None)
        assert (step.screenshot_size, step.extras["screen_size_from"]) == ((1080, 2400), "fit")


def test_rows_are_joined_by_goal_and_history(tmp_path: Path) -> None:
    other = {"instruction": "Play music"}
    rows = [high(9, "open it", "scroll"), high(3, "open it"), high(5), high(4, **other), high(8, "open it", **other)]
    episodes = episodes_of(tmp_path, *rows)
    assert joined(episodes) == {"4": [4, 8], "5": [5, 3, 9]}
    assert [step.extras["past_instructions"] for step in episodes[1].steps] == [[], ["open it"], ["open it", "scroll"]]


def test_the_low_file_has_an_episode_a_row(tmp_path: Path) -> None:
    assert joined(episodes_of(tmp_path, high(9, "open it"), high(5), name=f"{CURATED}-low")) == {"5": [5], "9": [9]}


def test_two_episodes_of_one_goal_are_told_apart_by_history_and_by_the_numbers_of_images(tmp_path: Path) -> None:
    rows = [high(10), high(20), high(12, "open"), high(21, "open"), high(13, "open", "tap"), high(23, "open", "type")]
    assert joined(episodes_of(tmp_path, *rows)) == {"10": [10, 12, 13], "20": [20, 21, 23]}
    first = high(2) | {"history": " \nStep 1: \n\n"}  # an empty instruction counts as a step
    assert joined(episodes_of(tmp_path, high(1), first, high(3, "", "go on"))) == {"1": [1, 2, 3]}


@every_row(
    ("rows", "problem"),
    [
        ([high(1), high(2, "one", "two")], "row 1, field history: no step of the same goal comes before it: 'two'"),
        ([high(1), high(1)], r"row 1, field image: 'android_control_high/image_1\.jpg' is already that of .*row 0"),
        ([high(1) | {"image": "a.jpg"}], "row 0, field image: expected a name that ends with _<number>"),
        ([high(1) | {"history": "None"}], "row 0, field history: expected None or lines of steps"),
        ([high(1, gt_action="swipe")], "row 0, field gt_action: expected click, .* got 'swipe'"),
        ([high(1, gt_action="scroll", gt_input_text="UPWARDS")], "row 0, field gt_input_text: expected up, .* got 'UPWARDS'"),
        ([high(1, gt_action="click")], r"row 0, field gt_bbox: \(-100, -100\) lies outside"),
    ],
)
def test_a_damaged_curated_row_is_reported(rows: list[dict[str, Any]], problem: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=rf"android_control_high_point\.json, {problem}"):
        episodes_of(tmp_path, *rows)


def test_a_point_beyond_the_common_screen_means_the_large_one(tmp_path: Path) -> None:
    label = {"gt_action": "click", "gt_bbox": [1440, 1560]}
    (episode,) = episodes_of(tmp_path, high(1), high(2, "tap", **label))
    assert {step.screenshot_size for step in episode.steps} == {(1440, 3120)}
    assert episode.steps[1].action == Click(point=Point(1000, 500))


def test_an_image_states_its_size_and_may_lie_above_the_file(tmp_path: Path) -> None:
    (tmp_path / "android_control_high").mkdir()
    Image.new("RGB", (200, 400)).save(tmp_path / "android_control_high" / "image_1.jpg")
    label = {"gt_action": "click", "gt_bbox": [100, 100]}
    (episode,) = episodes_of(tmp_path, high(1, **label), folder="src/benchmark_resource")
    (step,) = episode.steps
    assert step.action == Click(point=Point(500, 250))
    assert (step.screenshot, step.extras["screen_size_from"]) == ("android_control_high/image_1.jpg", "image")

"""UI-R1's test steps: each label by hand, what the loader refuses, and the real file against UI-S1's."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from guieval.actions import Action, Click, Point, Scroll
from guieval.data.sample_sets import get_sample_set
from guieval.errors import DataError
from guieval.registry import load_benchmark
from guieval.steps import StepTaskModel
from tests.rows import every_row


def row(episode: int = 7, number: int = 0, **gt: Any) -> dict[str, Any]:
    return {
        "image": f"episode_{episode}-screenshot_{number}.png",
        "gt": gt or {"action_type": "navigate_back"},
        "task": "Do it",
    }


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
    assert [(step.episode_id, step.step_index, step.episode_length, step.extras["step_id"]) for step in steps] == [
        ("7", 0, 3, 0),
        ("7", 1, 3, 3),
        ("7", 2, 3, 9),
        ("12", 0, 1, 5),
    ]


def test_a_point_outside_the_common_screen_means_the_larger_one_for_its_episode(tmp_path: Path) -> None:
    inside, outside = {"action_type": "click", "x": 720, "y": 780}, {"action_type": "click", "x": 1081, "y": 0}
    first, second, other = steps_of(tmp_path, row(1, 0, **inside), row(1, 1, **outside), row(2, 0, **inside))
    assert first.screenshot_size == second.screenshot_size == (1440, 3120) and other.screenshot_size == (1080, 2400)
    assert first.action == Click(point=Point(500, 250))
    with pytest.raises(DataError, match=r"ac_test.json, row 0, field gt, field x, y: \(1441, 1\) lies outside the 1440 x 3120"):
        steps_of(tmp_path, row(action_type="click", x=1441, y=1))


@every_row("folder", ["images", "screenshots", ""])
def test_the_image_states_the_size(folder: str, tmp_path: Path) -> None:
    from PIL import Image

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
        (row(action_type="input_text"), "row 1, field gt, field text: is missing"),
        ({"image": row()["image"], "gt": row()["gt"]}, "row 1, field task: is missing"),
    ],
)
def test_a_damaged_row_is_named_and_skipped_only_on_request(damaged: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=f"ac_test.json, {message}"):
        steps_of(tmp_path, row(1), damaged, row(2))
    benchmark = load_benchmark("ui-r1", tmp_path).skipping_damaged()
    assert [episode.key.episode_id for episode in benchmark] == ["1", "2"]
    assert len(benchmark.skipped) == 1


def test_the_real_file(shared_data: Path) -> None:
    benchmark = load_benchmark("ui-r1", shared_data / "ui_r1")
    refs = benchmark.index()
    steps = [step for ref in refs for step in benchmark.load(ref).steps]
    (published,) = benchmark.published
    assert (len(refs), len(steps)) == (published.episodes, published.steps) == (1543, 7868)
    assert Counter(step.action.type for step in steps) == published.types
    assert sum(step.screenshot_size == (1440, 3120) for step in steps if step.action.type == "CLICK") > 0
    episodes = {step.episode_id: (step.screenshot_size, step.extras["screen_size_from"]) for step in steps}
    assert Counter(episodes.values()) == {((1080, 2400), "fit"): 1514, ((1440, 3120), "known"): 24, ((1080, 2160), "known"): 5}
    assert sum(not step.instruction for step in steps) == 10
    labels = json.loads(gzip.decompress((shared_data / "ui_r1" / "ac_test.json.gz").read_bytes()))
    for label, step in zip(labels, steps, strict=True):  # the file is in order
        assert label["image"] == f"episode_{step.episode_id}-screenshot_{step.extras['step_id']}.png"
        if isinstance(step.action, Click):
            width, height = step.screenshot_size
            assert (label["gt"]["x"], label["gt"]["y"]) == pytest.approx(
                (step.action.point.x * width / 1000, step.action.point.y * height / 1000)
            )


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

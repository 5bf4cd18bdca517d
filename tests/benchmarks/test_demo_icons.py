from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from guieval.actions import Click, Point
from guieval.data.screenshots import read_screenshot
from guieval.errors import DataError, UsageError
from guieval.evaluation import ActionEvaluator
from guieval.registry import benchmarks, load_benchmark
from guieval.steps import Episode


def icons(folder: Path, **options: Any) -> list[Episode]:
    return list(load_benchmark("demo-icons", folder, **options))


def test_it_lists_its_episodes_without_drawing(tmp_path: Path) -> None:
    refs = load_benchmark("demo-icons", tmp_path).index()
    assert len(refs) == len({ref.key for ref in refs}) == 100
    assert list(tmp_path.iterdir()) == []


def test_records_hold_the_goal_the_step_and_the_target(tmp_path: Path) -> None:
    for episode in icons(tmp_path, episodes=5):
        goal = episode.steps[0].instruction
        assert goal == "tap " + ", ".join((step.low_level_instruction or "").removeprefix("tap ") for step in episode.steps)
        for step in episode.steps:
            assert (step.split, step.instruction, step.setting) == ("test", goal, "high")
            assert step.low_level_instruction == f"tap {step.groups['colour']} {step.groups['shape']}"
            assert len(step.boxes) == 1
            image = read_screenshot(tmp_path, step.screenshot, step.screenshot_size)
            assert (image.format, image.size) == ("png", (252, 448))


def test_a_point_is_right_inside_the_box_and_wrong_beside_it(tmp_path: Path) -> None:
    evaluator = ActionEvaluator(benchmarks()["demo-icons"].protocol)
    for episode in icons(tmp_path, episodes=5):
        for step in episode.steps:
            box = step.boxes[0]
            middle = (box.y1 + box.y2) / 2
            for x, right in ((box.x1 + 0.1, True), (box.x2 - 0.1, True), (box.x1 - 0.1, False), (box.x2 + 0.1, False)):
                outcome = evaluator.evaluate(step, Click(point=Point(x, middle)))
                assert (outcome.exact_match, outcome.type_match) == (right, True)


def test_train_and_test_share_no_goal_and_no_file(tmp_path: Path) -> None:
    found = {split: icons(tmp_path, episodes=60, split=split) for split in ("train", "test")}
    goals = {split: {episode.steps[0].instruction for episode in episodes} for split, episodes in found.items()}
    files = {split: {s.screenshot for episode in episodes for s in episode.steps} for split, episodes in found.items()}
    assert not goals["train"] & goals["test"]
    assert not files["train"] & files["test"]
    assert {ref.split for ref in load_benchmark("demo-icons", tmp_path, split="train").index()} == {"train"}


def test_more_episodes_begin_with_the_same_ones(tmp_path: Path) -> None:
    assert icons(tmp_path, episodes=4)[:2] == icons(tmp_path, episodes=2)
    assert icons(tmp_path, episodes=2, seed=1) != icons(tmp_path, episodes=2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"episodes": 0}, "option episodes is 0; expected at least 1"),
        ({"split": "tests"}, r"option split is 'tests'; expected train or test \(did you mean 'test'\?\)"),
        ({"split": 3}, "option split is 3; expected train or test"),
        ({"size": 3}, "no option 'size'"),
    ],
)
def test_a_wrong_option_is_one_sentence(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        load_benchmark("demo-icons", tmp_path, **options)


def test_a_foreign_reference_is_refused(tmp_path: Path) -> None:
    foreign = load_benchmark("demo-icons", tmp_path, split="train").index()[0]
    with pytest.raises(DataError, match="no episode demo-icons/train-s0-00000"):
        load_benchmark("demo-icons", tmp_path).load(foreign)

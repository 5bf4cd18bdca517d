"""The two benchmarks that draw their own data: a phone, and coloured shapes to tap."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from guieval.actions import Click, Point
from guieval.data.screenshots import read_screenshot
from guieval.errors import DataError, UsageError
from guieval.evaluation import ActionEvaluator
from guieval.registry import benchmarks, load_benchmark
from guieval.steps import Episode
from tests.rows import every_row

DIGEST = """
import hashlib, pathlib, sys
from guieval.registry import load_benchmark
demo = load_benchmark("demo", sys.argv[1], episodes=3, seed=5)
digest = hashlib.sha256()
for episode in demo:
    digest.update(episode.model_dump_json().encode())
    for step in episode.steps:
        digest.update((pathlib.Path(sys.argv[1]) / step.screenshot).read_bytes())
print(digest.hexdigest())
"""


def icons(folder: Path, **options: Any) -> list[Episode]:
    return list(load_benchmark("demo-icons", folder, **options))


@every_row(("name", "episodes"), [("demo", 12), ("demo-icons", 100)])
def test_episodes_are_listed_without_drawing(tmp_path: Path, name: str, episodes: int) -> None:
    refs = load_benchmark(name, tmp_path).index()
    assert len(refs) == len({ref.key for ref in refs}) == episodes
    assert list(tmp_path.iterdir()) == []


def test_a_step_of_the_phone_states_its_app_and_what_to_do(tmp_path: Path) -> None:
    for episode in load_benchmark("demo", tmp_path, episodes=4, seed=2):
        for step in episode.steps:
            assert step.groups["app"] and step.low_level_instruction
            assert read_screenshot(tmp_path, step.screenshot, step.screenshot_size).size == (360, 800)


def test_a_step_of_the_icons_states_the_goal_the_step_and_the_target(tmp_path: Path) -> None:
    for episode in icons(tmp_path, episodes=5):
        goal = episode.steps[0].instruction
        assert goal == "tap " + ", ".join((step.low_level_instruction or "").removeprefix("tap ") for step in episode.steps)
        for step in episode.steps:
            assert (step.split, step.instruction, step.setting) == ("test", goal, "high")
            assert step.low_level_instruction == f"tap {step.groups['colour']} {step.groups['shape']}"
            assert len(step.targets) == 1
            assert read_screenshot(tmp_path, step.screenshot, step.screenshot_size).size == (252, 448)


def test_a_point_is_right_inside_the_box_and_wrong_beside_it(tmp_path: Path) -> None:
    evaluator = ActionEvaluator(benchmarks()["demo-icons"].protocol)
    for episode in icons(tmp_path, episodes=5):
        for step in episode.steps:
            box = step.targets[0]
            middle = (box.y1 + box.y2) / 2
            for x, right in ((box.x1 + 0.1, True), (box.x2 - 0.1, True), (box.x1 - 0.1, False), (box.x2 + 0.1, False)):
                outcome = evaluator.evaluate(step, Click(point=Point(x, middle)))
                assert (outcome.exact_match, outcome.type_match) == (right, True)


def test_train_and_test_icons_share_no_goal_and_no_file(tmp_path: Path) -> None:
    found = {split: icons(tmp_path, episodes=30, split=split) for split in ("train", "test")}
    goals = {split: {episode.steps[0].instruction for episode in episodes} for split, episodes in found.items()}
    files = {split: {s.screenshot for episode in episodes for s in episode.steps} for split, episodes in found.items()}
    assert not goals["train"] & goals["test"]
    assert not files["train"] & files["test"]
    assert {ref.split for ref in load_benchmark("demo-icons", tmp_path, split="train").index()} == {"train"}


def test_other_options_never_share_a_file(tmp_path: Path) -> None:
    shots: list[str] = []
    for options in ({}, {"seed": 1}, {"width": 480, "height": 960}):
        demo = load_benchmark("demo", tmp_path, episodes=1, **options)
        shots += [step.screenshot for step in demo.load(demo.index()[0]).steps]
    assert len(shots) == len(set(shots))


@every_row("name", ["demo", "demo-icons"])
def test_more_episodes_begin_with_the_same_ones_unless_another_seed_is_taken(tmp_path: Path, name: str) -> None:
    few, many, others = (
        list(load_benchmark(name, tmp_path, episodes=count, seed=seed)) for count, seed in ((2, 0), (4, 0), (2, 1))
    )
    assert many[:2] == few != others


def test_what_is_drawn_is_kept_and_what_is_missing_is_drawn_again(tmp_path: Path) -> None:
    demo = load_benchmark("demo", tmp_path, episodes=1)
    first, second = (tmp_path / step.screenshot for step in demo.load(demo.index()[0]).steps[:2])
    pixels = second.read_bytes()
    first.write_bytes(b"kept")
    second.unlink()
    demo.load(demo.index()[0])
    assert first.read_bytes() == b"kept"
    assert second.read_bytes() == pixels
    assert list(tmp_path.rglob("*.tmp")) == []


def test_many_may_draw_the_same_episode_at_once(tmp_path: Path) -> None:
    demo = load_benchmark("demo", tmp_path, episodes=1)
    ref = demo.index()[0]
    loaded: list[Episode] = []
    threads = [threading.Thread(target=lambda: loaded.append(demo.load(ref))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(loaded) == 4 and all(episode == loaded[0] for episode in loaded)
    for step in loaded[0].steps:
        read_screenshot(tmp_path, step.screenshot, step.screenshot_size)


def test_records_and_pixels_do_not_depend_on_the_process(tmp_path: Path) -> None:
    digests = set()
    for seed in ("0", "1"):
        command, environment = [sys.executable, "-c", DIGEST, str(tmp_path / seed)], {**os.environ, "PYTHONHASHSEED": seed}
        digests.add(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.strip())
    assert [len(digest) for digest in digests] == [64]


@every_row(
    ("name", "options", "message"),
    [
        ("demo", {"episodes": 0}, "option episodes is 0; expected at least 1"),
        ("demo", {"episodes": "many"}, "option episodes is 'many'; expected a whole number"),
        ("demo", {"episodes": True}, "option episodes is True; expected a whole number"),
        ("demo", {"seed": 1.5}, "option seed is 1.5; expected a whole number"),
        ("demo", {"width": 100}, "a phone of 100 x 800 pixels cannot be drawn"),
        ("demo-icons", {"episodes": 0}, "option episodes is 0; expected at least 1"),
        ("demo-icons", {"split": "tests"}, r"option split is 'tests'; expected train or test \(did you mean 'test'\?\)"),
        ("demo-icons", {"split": 3}, "option split is 3; expected train or test"),
    ],
)
def test_a_wrong_option_is_one_sentence(tmp_path: Path, name: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        load_benchmark(name, tmp_path, **options)


@every_row(
    ("name", "options", "foreign"),
    [("demo", {"episodes": 30, "seed": 1}, "demo/s1-0000"), ("demo-icons", {"split": "train"}, "demo-icons/train-s0-00000")],
)
def test_a_foreign_reference_is_refused(tmp_path: Path, name: str, options: dict[str, Any], foreign: str) -> None:
    refs = load_benchmark(name, tmp_path, **options).index()
    with pytest.raises(DataError, match=f"no episode {foreign}"):
        load_benchmark(name, tmp_path).load(refs[0])
    with pytest.raises(DataError, match="no episode"):
        load_benchmark(name, tmp_path).load(refs[29])


def test_a_folder_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    demo = load_benchmark("demo", tmp_path / "file", episodes=1)
    with pytest.raises(UsageError, match="cannot be written"):
        demo.load(demo.index()[0])

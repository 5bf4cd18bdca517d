"""The ``episodes`` benchmark over a folder written by hand: the records are those of the phone that it was made from."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from guieval.benchmarks._examples.episodes import FRAMES, screenshot, write_episodes

from guieval.actions import Boxes, Click, LongPress, Press, Scroll
from guieval.data.screenshots import read_screenshot
from guieval.evaluation import ActionEvaluator
from guieval.registry import benchmarks, load_benchmark

SIZE = (360, 800)


def test_every_frame_gives_the_phone_back(tmp_path: Path) -> None:
    played = write_episodes(tmp_path, episodes=3, size=SIZE)
    lines = (tmp_path / "episodes.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["frame"] for line in lines] == list(FRAMES)
    benchmark = load_benchmark("episodes", tmp_path)
    assert (benchmark.dataset, benchmark.setting, benchmark.protocol) == ("synthetic", "high", "guievalkit")
    for phone, episode in zip(played, benchmark, strict=True):
        assert [step.instruction for step in episode.steps] == [phone.task.instruction] * len(phone)
        for index, (result, step) in enumerate(zip(phone.steps, episode.steps, strict=True)):
            assert (step.screenshot, step.screenshot_size) == (screenshot(phone, index), SIZE)
            assert read_screenshot(tmp_path, step.screenshot, SIZE).format == "png"
            assert step.low_level_instruction == result.instruction
            assert len(step.alternatives) == len(result.alternatives)
            for ours, theirs in zip((step.action, *step.alternatives), (result.action, *result.alternatives), strict=True):
                if isinstance(theirs, Click | LongPress | Scroll):
                    assert isinstance(ours, Click | LongPress | Scroll)
                    assert ours.point == pytest.approx(theirs.point, abs=1e-9)
                    ours = ours.model_copy(update={"point": theirs.point})
                assert ours == theirs
            assert step.targets.array == pytest.approx(result.targets.array, abs=1e-9)


def test_the_reference_is_right_under_its_own_protocol(tmp_path: Path) -> None:
    benchmarks()["episodes"].write_example(tmp_path, episodes=3)
    benchmark = load_benchmark("episodes", tmp_path)
    evaluator = ActionEvaluator(benchmark.protocol)
    steps = [step for episode in benchmark for step in episode.steps]
    assert len(steps) > 6
    for step in steps:
        assert step.action in benchmark.action_space
        assert evaluator.evaluate(step, step.action).exact_match


def test_any_button_may_be_a_label(tmp_path: Path) -> None:
    line = {
        "episode_id": "e",
        "instruction": "",
        "steps": [{"screenshot": "a.png", "screenshot_size": [1, 1], "action": {"type": "PRESS", "button": "RECENT"}}],
    }
    (tmp_path / "episodes.jsonl").write_text(json.dumps(line))
    benchmark = load_benchmark("episodes", tmp_path)
    [episode] = benchmark
    assert episode.steps[0].action == Press(button="RECENT")
    assert episode.steps[0].action in benchmark.action_space
    assert episode.steps[0].targets == Boxes()

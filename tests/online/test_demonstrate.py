"""An environment's own expert does its tasks, and what the environment judges as a success becomes an offline benchmark."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from guieval.actions import Click, Unsupported
from guieval.connectors.pages.miniwob import MiniWoB
from guieval.online import ABCEnvironment
from guieval.online.demonstrate import demonstrate
from guieval.playground.environments.phone import PhoneEnvironment
from guieval.registry import load_benchmark
from tests.command_line import CommandLine
from tests.online.devices import require_chromium

SOLVED = 103
"""Tasks of MiniWoB++ that the expert does with seed 0, 1 or 2."""
HANDFUL = ["click-test-2", "enter-text", "drag-box", "choose-list", "scroll-text", "email-inbox-forward", "click-dialog"]


@pytest.fixture
def pages() -> ABCEnvironment:
    require_chromium("miniwob")
    return MiniWoB(scale=2)


def content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_the_phone_s_expert_follows_its_references(tmp_path: Path) -> None:
    done = demonstrate(PhoneEnvironment(episodes=8), tmp_path / "made")
    assert len(done.succeeded) == done.episodes == 8 and not done.failed and not done.unknown
    made = {episode.key.episode_id: episode for episode in load_benchmark("episodes", tmp_path / "made")}
    for reference in load_benchmark("demo", tmp_path, episodes=8):
        steps = made[reference.key.episode_id].steps
        assert [step.action for step in steps] == [step.action for step in reference.steps]
        assert [step.alternatives for step in steps] == [step.alternatives for step in reference.steps]
        for step, expected in zip(steps, reference.steps, strict=True):
            assert np.array_equal(step.targets.array, expected.targets.array)
            assert step.instruction == expected.instruction


def test_pages_are_recorded_with_the_targets_boxes(tmp_path: Path, pages: ABCEnvironment) -> None:
    done = demonstrate(pages, tmp_path / "made", tasks=[*HANDFUL, "chase-circle"])
    assert done.succeeded == tuple(HANDFUL) and done.unknown == ("chase-circle",) and not done.failed
    episodes = {episode.key.episode_id: episode.steps for episode in load_benchmark("episodes", tmp_path / "made")}
    assert list(episodes) == HANDFUL
    for steps in episodes.values():
        for step in steps:
            assert Image.open(tmp_path / "made" / step.screenshot).size == step.screenshot_size == (320, 420)
            if isinstance(step.action, Click):
                assert step.targets.containing(step.action.point).tolist() == [True]
    (click,) = episodes["click-test-2"]
    assert click.instruction == "Click button ONE." and isinstance(click.action, Click)
    assert [step.action.type for step in episodes["enter-text"]] == ["CLICK", "TYPE", "CLICK"]
    drag = episodes["drag-box"][0].action
    assert isinstance(drag, Unsupported) and drag.device is not None and drag.device.type == "DRAG"


def test_a_recording_repeats_bit_by_bit(tmp_path: Path, pages: ABCEnvironment) -> None:
    for name in ("one", "two"):
        demonstrate(pages, tmp_path / name, seeds=(4, 5), tasks=["click-test-2", "use-slider", "login-user-popup"])
    assert content(tmp_path / "one") == content(tmp_path / "two")
    ids = [episode.key.episode_id for episode in load_benchmark("episodes", tmp_path / "one")]
    assert ids[:2] == ["click-test-2-4", "click-test-2-5"]


@pytest.mark.full
def test_all_tasks_that_the_expert_knows(tmp_path: Path, pages: ABCEnvironment) -> None:
    assert len(demonstrate(pages, tmp_path / "made", seeds=(0, 1, 2)).succeeded) >= SOLVED


def test_the_command_prints_how_many_tasks_it_does(tmp_path: Path, guieval: CommandLine) -> None:
    out = tmp_path / "made"
    made = guieval("data", "record", "--bench", "demo", "--agent", "expert", "--out", str(out), "--set", "episodes=3")
    assert made.code == 0 and "3 episodes" in made.out and "the expert succeeds in 3 of 3 tasks" in made.out
    assert "progress: recording demo: 100 %, 3 of 3 attempts" in made.err
    where = ["--data", str(out), "--out", str(tmp_path / "run")]
    assert guieval("run", "--model", "ocr-baseline", "--bench", "episodes", "--limit", "1", *where).code == 0
    assert "exists; name a new folder" in guieval.sentence("data", "record", "--bench", "demo", "--out", str(out))


def test_wrong_choices_are_refused(tmp_path: Path, guieval: CommandLine) -> None:
    out = ["--out", str(tmp_path / "made")]
    assert "name online runs, or an environment" in guieval.sentence("data", "record", *out)
    assert "name online runs, or an environment" in guieval.sentence("data", "record", str(tmp_path), "--bench", "demo", *out)
    assert "unknown model 'me'" in guieval.sentence("data", "record", "--bench", "demo", "--agent", "me", *out)
    assert "--seeds is 0" in guieval.sentence("data", "record", "--bench", "demo", "--seeds", "0", *out)
    assert "has no task 'x'" in guieval.sentence("data", "record", "--bench", "demo", "--task", "x", *out)
    assert "unknown environment 'demoo'" in guieval.sentence("data", "record", "--bench", "demoo", *out)

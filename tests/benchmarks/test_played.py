"""What is played on the simulated phone is written as each benchmark's authors would, and read back as it was played."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest
from guieval.benchmarks._examples import amex, cagui, gui_odyssey, hypertrack
from guieval.benchmarks._examples.aitw import write_aitw
from guieval.benchmarks._examples.aitz import write_aitz

from guieval.actions import Box, Click, LongPress, Scroll
from guieval.data.screenshots import read_screenshot
from guieval.playground.phone import PhoneEpisode, PhoneStep, generate_episode
from guieval.registry import benchmarks, load_benchmark
from guieval.steps import StepTaskModel
from tests.rows import every_row

CLICKED = frozenset({"CLICK", "STOP"})


@dataclass(frozen=True)
class Written:
    """How a benchmark's example is written, what is lost on the way, and what its episodes are called."""

    benchmark: str
    write: Callable[[Path], Iterable[PhoneEpisode]]
    name: Callable[[PhoneEpisode], str]
    near: float = 1e-6
    """How far a place may have moved, in thousandths of the screen."""
    low: bool = False
    """Whether steps have instructions of their own."""
    boxes: Callable[[PhoneStep], Sequence[Box]] | None = None
    """The boxes that are kept."""
    inner: str = ""
    """The folder into which it is written, of that which is opened."""
    scrolls: bool = False
    """Whether a scroll starts where it was played; elsewhere it starts where its path does."""
    types: frozenset[str] = CLICKED
    """Actions that must have been played."""

    def check(self, root: Path) -> None:
        played = {self.name(one): one for one in self.write(root / self.inner)}
        assert {step.action.type for one in played.values() for step in one.steps} >= self.types
        benchmark = load_benchmark(self.benchmark, root)
        loaded = {episode.key.episode_id: episode for episode in benchmark}
        assert loaded.keys() == played.keys()
        for name, one in played.items():
            for step, was in zip(loaded[name].steps, one.steps, strict=True):
                assert step.instruction.endswith(one.task.instruction)
                assert step.low_level_instruction == (was.instruction if self.low else None)
                assert read_screenshot(benchmark.root, step.screenshot, one.size).size == step.screenshot_size
                self.same(step, was)

    def same(self, step: StepTaskModel, was: PhoneStep) -> None:
        if isinstance(was.action, Click | LongPress | Scroll):
            assert isinstance(step.action, type(was.action))
            if self.scrolls or not isinstance(was.action, Scroll):
                assert tuple(step.action.point) == pytest.approx(tuple(was.action.point), abs=self.near)
            assert getattr(step.action, "direction", None) == getattr(was.action, "direction", None)
        else:
            assert step.action == was.action
        if self.boxes is not None:
            expected, boxes = self.boxes(was), step.targets + step.elements
            assert len(boxes) == len(expected)
            for box, drawn in zip(boxes, expected, strict=True):
                assert tuple(box) == pytest.approx(tuple(drawn), abs=self.near)


RENAMED: list[dict[str, str]] = [
    {"steps": "trajectory", "screenshot": "image_path", "coordinate": "click_point", "action_description": "low_instruction"},
    {"instruction": "highLevelInstruction", "action_type": "actionType", "bbox": "boundingBox", "episode_id": "episodeId"},
    {"instruction": "goal", "device_info": "metadata", "action": "annotation", "action_type": "type", "text": "value"},
]
"""HyperTrack's keys are not published, so that its loader takes the obvious ones."""


FLAT, BY_EPISODE = (False, True, False, True, True), (False, True, True, False, True)


def all_boxes(step: PhoneStep) -> list[Box]:
    return list(step.targets + step.elements)


@every_row(
    "written",
    [
        Written(
            "aitw",
            lambda folder: [one for played in write_aitw(folder, episodes=7).values() for one in played],
            lambda one: f"{168_000_000_000_000_000 + one.number}",
            boxes=all_boxes,
        ),
        Written("aitz", partial(write_aitz, episodes=5), lambda one: f"{523_000_000_000_000_000 + one.number}", low=True),
        # places may be half a pixel off
        Written(
            "amex", partial(amex.write_amex, episodes=3, size=(720, 1600), app="Yelp"), amex.episode_id, 0.7, boxes=all_boxes
        ),
        Written(
            "cagui", partial(cagui.write_cagui_agent, episodes=4), cagui.episode_id, types=CLICKED | {"LONG_PRESS", "TYPE"}
        ),
        *[
            Written(
                "gui-odyssey",
                partial(gui_odyssey.write_gui_odyssey, episodes=5, seed=3, version=version, parts=version == 1),
                gui_odyssey.episode_id,
                near=0.5,
                low=version == 2,
                inner="data",  # the folder above is the authors' repository
                types=CLICKED | {"SCROLL", "TYPE"},
            )
            for version in (1, 2)
        ],
        *[
            Written(
                "hypertrack",
                partial(hypertrack.write_hypertrack, renamed=renamed, flat=flat, by_episode=by_episode),
                hypertrack.episode_id,
                near=0.01,
                low=True,
                boxes=lambda step: list(step.targets) if isinstance(step.action, Click) else [],
                scrolls=True,
            )
            for renamed, flat, by_episode in zip([{}, {}, *RENAMED], FLAT, BY_EPISODE, strict=True)
        ],
    ],
)
def test_what_was_played_is_what_is_loaded(tmp_path: Path, written: Written) -> None:
    written.check(tmp_path)


@every_row(
    ("name", "episodes", "seed", "played"),
    [
        ("agentnetbench", 4, 1, lambda name: (int(name[2:10], 16), int(name[10:18], 16))),
        ("mind2web", 4, 3, lambda name: [int(part, 16) for part in name.split("-")[:2]]),
        ("onekey", 3, 2, lambda name: (2, int(name[-4:]))),
    ],
)
def test_an_example_in_other_words_states_what_was_played(
    tmp_path: Path, name: str, episodes: int, seed: int, played: Callable[[str], tuple[int, int]]
) -> None:
    """Formats that lack some actions, or have a web page's words for them."""
    benchmarks()[name].write_example(tmp_path, episodes=episodes, seed=seed)
    kinds = set()
    for episode in load_benchmark(name, tmp_path):
        phone = generate_episode(*played(episode.key.episode_id), (360, 800))
        assert name == "mind2web" or len(episode) == len(phone)
        for step in episode.steps:
            was = phone.steps[step.extras.get("step", step.step_index)]
            kinds.add(step.action.type)
            assert step.instruction == phone.task.instruction
            if step.action.type == "UNSUPPORTED":
                assert name == "agentnetbench" and was.action.type in ("LONG_PRESS", "PRESS")
                continue
            assert step.action.type == was.action.type
            for field in ("text", "app", "button", "status", "direction"):
                assert getattr(step.action, field, None) == getattr(was.action, field, None)
            if name == "agentnetbench" and isinstance(step.action, Click) and isinstance(was.action, Click):
                assert step.action.point == pytest.approx(was.action.point, abs=0.06)
            elif step.targets and was.target is not None:
                near = 1 if name == "onekey" else 1e-6
                assert step.targets[0] == pytest.approx(was.phone.screen.unified(was.target.box), abs=near)
    assert kinds >= {"CLICK", "TYPE"}

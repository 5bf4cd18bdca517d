"""The simulated phone as an environment: its judge agrees with reference trajectories, and sees what else was changed."""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from pathlib import Path

import pytest
from PIL import Image

from guieval.actions import Action, Click, Point, Stop, Wait, executable
from guieval.online import Observation, Score
from guieval.playground.environments.phone import SPARE_STEPS, PhoneEnvironment, judged
from guieval.playground.phone import PhoneEpisode, generate_episode, replay
from guieval.playground.phone.transitions import mark
from guieval.registry import load_benchmark
from tests.online.devices import played


def done(number: int, actions: Sequence[Action]) -> tuple[list[Observation], Score]:
    """What the environment shows and judges when a task's actions are given one by one."""
    steps = ([todo] for action in actions if (todo := executable(action)) is not None)
    return played(PhoneEnvironment(), PhoneEnvironment().tasks()[number], *steps)


@pytest.fixture(scope="module")
def episodes() -> list[PhoneEpisode]:
    return [generate_episode(0, number) for number in range(12)]


def test_reference_trajectories_succeed_without_side_effects(episodes: list[PhoneEpisode]) -> None:
    for number, episode in enumerate(episodes):
        seen, score = done(number, [step.action for step in episode.steps])
        assert (score.success, score.progress, score.side_effects) == (True, 1.0, ())
        assert [observation.over for observation in seen] == [False] * len(episode) + [True]


def test_a_screen_is_the_one_of_the_offline_benchmark(tmp_path: Path, episodes: list[PhoneEpisode]) -> None:
    benchmark = load_benchmark("demo", tmp_path)
    seen, _ = done(0, [step.action for step in episodes[0].steps[:2]])
    for step, observation in zip(benchmark.episode(0).steps, seen, strict=False):
        assert observation.goal == step.instruction and observation.size == step.screenshot_size
        offline = Image.open(tmp_path / step.screenshot)
        assert Image.open(BytesIO(observation.screenshot)).tobytes() == offline.tobytes()


def test_a_task_has_the_id_of_its_episode_and_spare_steps(tmp_path: Path, episodes: list[PhoneEpisode]) -> None:
    environment, benchmark = PhoneEnvironment(), load_benchmark("demo", tmp_path)
    assert [environment.key(task) for task in environment.tasks()] == [ref.key for ref in benchmark.index()]
    assert [task.max_steps for task in environment.tasks()] == [2 * len(episode) + SPARE_STEPS for episode in episodes]
    assert [task.goal for task in environment.tasks()] == [episode.task.instruction for episode in episodes]


def test_stopping_at_once_fails_every_task(episodes: list[PhoneEpisode]) -> None:
    for number in range(len(episodes)):
        _, score = done(number, [Stop()])
        assert (score.success, score.progress, score.side_effects) == (False, 0.0, ())


def test_progress_counts_conditions_that_became_true(episodes: list[PhoneEpisode]) -> None:
    episode = next(one for one in (generate_episode(0, n) for n in range(200)) if one.task.kind == "two settings")
    states = [replay(episode.start, tuple(step.action for step in episode.steps[:n])).state for n in range(len(episode) + 1)]
    progress = [judged(episode, state).progress for state in states]
    assert progress == sorted(progress) and set(progress) == {0.0, 0.5, 1.0}


def test_the_right_state_without_a_stop_is_no_success(episodes: list[PhoneEpisode]) -> None:
    _, score = done(0, [step.action for step in episodes[0].steps[:-1]])
    assert (score.success, score.progress) == (False, 1.0) and score.reason.endswith("the task was not stopped")


def test_other_changes_are_side_effects(episodes: list[PhoneEpisode]) -> None:
    episode = next(one for one in episodes if one.task.app != "Settings")
    item = next(one for one in episode.start.state.items("settings") if not one.options)
    changed = mark(episode.start.state, "settings", item.key, "on", "on" not in item.flags)
    score = judged(episode, changed)
    assert score.side_effects == (f"changed {item.title!r} in settings",) and not score.success


def test_actions_that_lead_nowhere_change_nothing() -> None:
    seen, score = done(0, [Wait(), Click(point=Point(0, 0))])
    assert seen[1].screenshot == seen[0].screenshot and not score.side_effects

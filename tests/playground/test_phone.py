"""The simulated phone and the screens of icons as environments."""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from pathlib import Path

import pytest
from PIL import Image

from guieval.actions import Action, Click, DoubleClick, ExecutableAction, Point, Stop, Type, Wait, executable
from guieval.online import Observation, Score
from guieval.online.find import load_environment
from guieval.playground.environments.icons import IconsEnvironment
from guieval.playground.environments.phone import SPARE_STEPS, PhoneEnvironment, judged
from guieval.playground.icons.screens import IconEpisode, generate_icon_episode
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


BESIDE = Click(point=Point(1.0, 999.0))
"""In the corner, where no icon is drawn."""


EPISODE = generate_icon_episode(0, 0, "test")


def tried(episode: IconEpisode, *steps: Sequence[ExecutableAction]) -> tuple[list[Observation], Score]:
    environment = IconsEnvironment(episodes=episode.number + 1)
    return played(environment, environment.tasks()[episode.number], *steps)


def right(index: int, episode: IconEpisode = EPISODE) -> Click:
    return Click(point=episode.screens[index].find(episode.goal[index]).centre)


def test_tasks_are_the_episodes_of_the_benchmark(tmp_path: Path) -> None:
    environment = load_environment("demo-icons", split="train", episodes=3, seed=5)
    benchmark = load_benchmark("demo-icons", tmp_path, split="train", episodes=3, seed=5)
    episodes = list(benchmark)
    assert [environment.key(task) for task in environment.tasks()] == [episode.key for episode in episodes]
    assert [task.goal for task in environment.tasks()] == [episode.steps[0].instruction for episode in episodes]
    (seen,), _ = played(environment, environment.tasks()[1])
    assert seen.screenshot == (tmp_path / episodes[1].steps[0].screenshot).read_bytes()
    assert seen.size == episodes[1].steps[0].screenshot_size


def test_the_right_icons_in_order_are_a_success() -> None:
    count = len(EPISODE)
    seen, score = tried(EPISODE, *([right(index)] for index in range(count)))
    assert score == Score(success=True, progress=1.0, reason=f"{count} of {count} icons were tapped in order")
    assert [each.over for each in seen] == [False] * count + [True]
    assert len({each.screenshot for each in seen[:-1]}) == count


def test_a_tap_beside_all_icons_changes_nothing() -> None:
    seen, score = tried(EPISODE, [right(0)], [BESIDE], [Type(text="red")], [])
    assert seen[1] == seen[2] == seen[3] == seen[4] and not seen[4].over
    assert not score.success and score.progress == 1 / len(EPISODE)


def test_another_icon_or_a_stop_ends_the_task() -> None:
    wrong = Click(point=EPISODE.screens[0].find(EPISODE.goal[1]).centre)
    named = f"; {EPISODE.goal[1].name} was tapped in place of {EPISODE.goal[0].name}"
    for action, reason in ((wrong, named), (Stop(), "")):
        seen, score = tried(EPISODE, [action], [right(0)])
        assert seen[1].over and seen[2] == seen[1] and not score.success and score.progress == 0
        assert score.reason.endswith(reason)


def test_a_double_click_is_two_taps() -> None:
    episode = next(each for number in range(50) if _same_place(each := generate_icon_episode(0, number, "test")))
    _, score = tried(episode, [DoubleClick(point=right(0, episode).point)])
    assert score.progress != 1 / len(episode) or not score.reason.endswith("in order")  # tapped twice


def _same_place(episode: IconEpisode) -> bool:
    """Whether the second screen has an icon where the first one's is tapped."""
    point = right(0, episode).point
    second = episode.screens[1].icons
    return any(each.box.x1 < point.x < each.box.x2 and each.box.y1 < point.y < each.box.y2 for each in second)

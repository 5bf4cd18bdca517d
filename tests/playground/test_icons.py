"""The icons demo as an environment: its tasks are the benchmark's episodes, and a tap does what the judge counts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from guieval.actions import Click, DoubleClick, ExecutableAction, Point, Stop, Type
from guieval.online import Observation, Score
from guieval.online.find import load_environment
from guieval.playground.environments.icons import IconsEnvironment
from guieval.playground.icons.screens import IconEpisode, generate_icon_episode
from guieval.registry import load_benchmark
from tests.online.devices import played

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

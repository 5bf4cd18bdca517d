"""None"""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from typing import Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from guieval.actions import ACTION_TYPES, Click, LongPress, Scroll, Stop, Type
from guieval.playground.icons import screens
from guieval.playground.icons.screens import COLOURS, HEIGHT, ICONS, SPLITS, WIDTH, Icon, draw_screen, generate_icon_episode
from guieval.playground.phone import PhoneEpisode, generate_episode, replay
from guieval.playground.phone.dice import Dice
from tests.rows import every_row

seeds = st.integers(0, 2**64)
numbers = st.integers(0, 1000)
sizes = st.sampled_from([(360, 800), (360, 640), (720, 1280), (1080, 2400), (1440, 3200)])


@settings(max_examples=25, deadline=None)
@given(seeds, numbers, sizes)
def test_replaying_the_actions_reaches_the_goal_and_nothing_less_does(seed: int, number: int, size: tuple[int, int]) -> None:
    episode = generate_episode(seed, number, size)
    actions = tuple(step.action for step in episode.steps)
    phone = episode.start
    for step in episode.steps:
        assert phone == step.phone and not episode.task.achieved(phone.state)
        phone = phone.apply(step.action)
    assert phone == replay(episode.start, actions)
    assert episode.task.achieved(phone.state)
    wrong = Stop(status="impossible" if episode.task.status == "finish" else "finish")
    assert not episode.task.achieved(replay(episode.start, (*actions[:-1], wrong)).state)
    assert not episode.task.achieved(episode.start.apply(Stop(status=episode.task.status)).state)


@settings(max_examples=25, deadline=None)
@given(seeds, numbers, sizes)
def test_a_reference_point_is_inside_its_box_and_touches_its_target(seed: int, number: int, size: tuple[int, int]) -> None:
    for step in generate_episode(seed, number, size).steps:
        boxes = step.targets + step.elements
        if isinstance(step.action, Click | LongPress | Scroll):
            point, (box,) = step.action.point, step.targets
            assert box.x1 < point.x < box.x2 and box.y1 < point.y < box.y2
        if isinstance(step.action, Click | LongPress):
            assert step.phone.screen.hit(step.action.point) is step.target
        if isinstance(step.action, Type):
            assert step.target is not None and step.target.role in ("field", "search")
        assert all(0 <= box.x1 < box.x2 <= 1000 and 0 <= box.y1 < box.y2 <= 1000 for box in boxes)


@settings(max_examples=15, deadline=None)
@given(seeds, numbers)
def test_an_alternative_leads_to_the_same_phone(seed: int, number: int) -> None:
    for step in generate_episode(seed, number).steps:
        for other in step.alternatives:
            assert other != step.action and step.phone.apply(other) == step.phone.apply(step.action)


@settings(max_examples=15, deadline=None)
@given(seeds, numbers)
def test_an_episode_is_the_same_every_time_and_states_what_to_do(seed: int, number: int) -> None:
    episode = generate_episode(seed, number)
    assert episode == generate_episode(seed, number) and 3 <= len(episode) <= 13
    assert episode.task.instruction and all(step.instruction for step in episode.steps)
    assert [isinstance(step.action, Stop) for step in episode.steps] == [False] * (len(episode) - 1) + [True]


@pytest.fixture(scope="module")
def round_of_tasks() -> list[PhoneEpisode]:
    return [generate_episode(0, number) for number in range(80)]


@every_row(("seed", "count"), [(0, 12), (1, 30), (2, 30), (3, 30)])
def test_a_dozen_or_thirty_episodes_show_every_action_type(seed: int, count: int) -> None:
    steps = [step for number in range(count) for step in generate_episode(seed, number).steps]
    assert {step.action.type for step in steps} == set(ACTION_TYPES)


def test_types_directions_buttons_and_endings_come_at_natural_rates(round_of_tasks: list[PhoneEpisode]) -> None:
    actions = [step.action for episode in round_of_tasks for step in episode.steps]
    share = {kind: sum(action.type == kind for action in actions) / len(actions) for kind in ACTION_TYPES}
    assert max(share, key=lambda kind: share[kind]) == "CLICK"
    assert all(share[kind] > 0.01 for kind in ACTION_TYPES), share
    assert {action.direction for action in actions if action.type == "SCROLL"} >= {"up", "down", "left"}
    assert {action.button for action in actions if action.type == "PRESS"} == {"BACK", "HOME", "ENTER"}
    assert {action.status for action in actions if action.type == "STOP"} == {"finish", "impossible"}
    assert len({episode.task.kind for episode in round_of_tasks}) >= 30
    assert len({episode.task.app for episode in round_of_tasks}) >= 8


def test_pop_ups_are_closed_by_button_and_by_back(round_of_tasks: list[PhoneEpisode]) -> None:
    steps = [step for episode in round_of_tasks for step in episode.steps]
    asked = [step for step in steps if step.phone.state.overlay and step.phone.screen.find("choice:Not now") is not None]
    assert {step.action.type for step in asked} == {"CLICK", "PRESS"}


def test_seeds_and_numbers_change_what_episodes_are_about_and_sizes_do_not() -> None:
    assert len({generate_episode(seed, number).task.instruction for seed in range(4) for number in range(5)}) >= 18
    small, large = ([generate_episode(1, number, size) for number in range(12)] for size in ((360, 800), (1080, 2400)))
    assert [episode.task.instruction for episode in small] == [episode.task.instruction for episode in large]


EPISODES = """
from hashlib import sha256
from guieval.playground.icons.screens import generate_icon_episode
for episode in (generate_icon_episode(5, number, "test") for number in range(3)):
    print(episode, [sha256(screen.render().tobytes()).hexdigest() for screen in episode.screens])
"""


def test_there_is_an_icon_of_every_colour_and_shape_and_a_goal_names_some_in_order() -> None:
    assert len(set(ICONS)) == len(COLOURS) * len(screens.SHAPES) == 40
    assert screens.goal_text([Icon("red", "circle"), Icon("blue", "star")]) == "tap red circle, blue star"


@every_row("split", SPLITS)
def test_every_screen_shows_the_whole_goal_at_free_places(split: Literal["train", "test"]) -> None:
    for number in range(60):
        episode = generate_icon_episode(1, number, split)
        assert 2 <= len(episode.goal) == len(set(episode.goal)) <= 4 and len(episode) == len(episode.screens)
        for screen in episode.screens:
            assert screens.LEAST <= len(screen.icons) <= screens.MOST
            assert {*episode.goal} <= {placed.icon for placed in screen.icons}
            assert max(Counter(placed.icon for placed in screen.icons).values()) == 1
            shown = np.zeros((HEIGHT, WIDTH), dtype=int)
            for placed in screen.icons:
                x1, y1, x2, y2 = placed.pixels
                assert x1 >= 0 and y1 > screens.STATUS_BAR and x2 <= WIDTH and y2 <= HEIGHT
                shown[y1:y2, x1:x2] += 1
            assert shown.max() == 1, "two icons overlap"


def test_the_same_icons_are_at_other_places_on_the_next_screen() -> None:
    first, second = generate_icon_episode(0, 0, "test").screens[:2]
    both = [placed.icon for placed in first.icons if placed.icon in {each.icon for each in second.icons}]
    assert len(both) >= 2
    assert all(first.find(icon).pixels != second.find(icon).pixels for icon in both)


def test_the_splits_share_no_goal_in_any_order() -> None:
    goals = {split: {frozenset(generate_icon_episode(0, n, split).goal) for n in range(400)} for split in SPLITS}
    assert not goals["train"] & goals["test"]
    for split in SPLITS:
        goal = generate_icon_episode(0, 7, split).goal
        assert screens.split_of(goal) == screens.split_of(goal[::-1]) == split
    # by construction, so for every pair there is
    pairs = Counter(screens.split_of((one, other)) for one in ICONS for other in ICONS if one < other)
    assert pairs == {"train": 624, "test": 156}


def test_the_middle_of_an_icon_has_its_colour() -> None:
    for number in range(30):
        screen = draw_screen(Dice("middle", number))
        pixels = screen.render().load()
        assert pixels is not None
        for placed in screen.icons:
            x, y = placed.centre.x * WIDTH / 1000, placed.centre.y * HEIGHT / 1000
            assert pixels[round(x), round(y)] == COLOURS[placed.icon.colour]
            box = placed.box
            assert box.x1 < placed.centre.x < box.x2 and box.y1 < placed.centre.y < box.y2


def test_a_goal_that_cannot_be_drawn_is_none() -> None:
    only = ICONS[5]  # the single goal of this icon is for testing
    assert screens.split_of([only]) == "test"
    assert screens.draw_goal(Dice("goal"), "train", [only], 1) is None
    assert screens.draw_goal(Dice("goal"), "test", [only], 1) == (only,)


def test_an_icon_that_is_not_shown_is_an_error() -> None:
    screen = draw_screen(Dice("missing"))
    missing = next(icon for icon in ICONS if icon not in {placed.icon for placed in screen.icons})
    with pytest.raises(KeyError, match=missing.name):
        screen.find(missing)


def test_episodes_do_not_depend_on_the_process() -> None:
    environments = [{**os.environ, "PYTHONHASHSEED": seed} for seed in "01"]
    one, other = (subprocess.check_output([sys.executable, "-c", EPISODES], env=each) for each in environments)
    assert one == other and one.count(b"IconEpisode(") == 3

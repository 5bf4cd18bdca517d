from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from typing import Literal

import numpy as np
import pytest

from guieval.playground.icons import screens
from guieval.playground.icons.screens import COLOURS, HEIGHT, ICONS, SPLITS, WIDTH, Icon, draw_screen, generate_icon_episode
from guieval.playground.phone.dice import Dice
from tests.rows import every_row

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

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from guieval.actions import ACTION_TYPES, Click, LongPress, Scroll, Stop, Type
from guieval.playground.phone import PhoneEpisode, generate_episode, replay
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

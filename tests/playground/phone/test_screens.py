"""What is on the screen is inside it, apart from its neighbours, and can be seen."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from guieval.actions import BUTTONS, DIRECTIONS, Action, Click, LongPress, Open, Point, Press, Scroll, Type, Wait
from guieval.playground.phone import Element, Phone, encode, generate_episode
from guieval.playground.phone.dice import Dice
from tests.playground.phone.test_phone import phone_with
from tests.rows import every_row

APART = {"row", "field", "search", "button", "icon", "tile", "key", "tab", "choice", "action"}
"""Roles whose elements never lie over one another (a switch lies in its row, the floating button over the list)."""


def check_places(phone: Phone) -> None:
    screen = phone.screen
    width, height = screen.size
    names = [element.name for element in screen.interactive]
    assert len(names) == len(set(names)) and all(names)
    for element in screen.elements:
        box = element.box
        assert 0 <= box.x1 < box.x2 <= width and 0 <= box.y1 < box.y2 <= height, element
    for one, other in combinations([element for element in screen.interactive if element.role in APART], 2):
        assert one.box.clip(other.box).area == 0, (one.name, other.name)


def check_seen(phone: Phone) -> None:
    """Every whole interactive element with a text or pictogram shows something that stands out from its ground."""
    grey = np.asarray(phone.render().convert("L"), dtype=np.int16)
    for element in phone.screen.interactive:
        if element.role == "field" or element.shown < 0.99 or hidden(phone, element):
            continue
        x1, y1, x2, y2 = element.box
        part = grey[y1 + 2 : y2 - 2, x1 + 2 : x2 - 2]
        assert int(part.max()) - int(part.min()) >= 70, (phone.state.view, element.name)


def hidden(phone: Phone, element: Element) -> bool:
    cover = [other for other in phone.screen.elements if other.role in ("toast", "fab") and other is not element]
    return any(element.box.clip(other.box).area for other in cover)


@every_row("size", [(360, 800), (720, 1280), (1080, 2400)])
def test_screens_of_an_episode_have_their_size_and_show_their_parts(size: tuple[int, int]) -> None:
    episode = generate_episode(0, 1, size)
    for step in episode.steps[:: 1 if size[0] == 360 else 4]:
        assert (step.phone.render().size, step.phone.render().mode) == (size, "RGB")
        check_places(step.phone)
        check_seen(step.phone)


@settings(max_examples=12, deadline=None)
@given(st.integers(0, 10**6), st.integers(0, 400), st.sampled_from([(360, 800), (360, 640), (540, 1170)]))
def test_nothing_lies_outside_or_over_its_neighbour(seed: int, number: int, size: tuple[int, int]) -> None:
    for step in generate_episode(seed, number, size).steps:
        check_places(step.phone)


@settings(max_examples=6, deadline=None)
@given(st.integers(0, 10**6), st.integers(0, 400))
def test_everything_that_can_be_touched_can_be_seen(seed: int, number: int) -> None:
    for step in generate_episode(seed, number).steps:
        check_seen(step.phone)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**6))
def test_whatever_is_done_the_phone_can_be_drawn(seed: int) -> None:
    """An agent that taps, types and swipes anywhere never gets the phone into a state without a sound screen."""
    dice = Dice("monkey", seed)
    phone = Phone.furnished(seed, 0, (360, 640))
    for _ in range(60):
        parts = phone.screen.interactive
        point = phone.screen.unified(dice.pick(parts).box).centre if parts else Point(500.0, 500.0)
        choices: list[Action] = [LongPress(point=point), Wait(), *(Click(point=point) for _ in range(6))]
        choices += [Scroll(point=point, direction=direction) for direction in DIRECTIONS]
        choices += [Type(text="two\nlines and more " * 4), Type(text="07:30"), Open(app=dice.pick(phone.state.apps))]
        choices += [Press(button=button) for button in BUTTONS]
        phone = phone.apply(dice.pick(choices))
        check_places(phone)
    assert phone.render().size == (360, 640)


def test_labels_are_drawn_where_their_elements_say() -> None:
    """Another label changes pixels inside the element's box and nowhere else."""
    phone = phone_with("Notes")
    notes = phone.state.items("notes")
    row = phone.screen.find(f"row:notes/{notes[1].key}")
    assert row is not None
    renamed = tuple(type(note)(note.key, "Zebra", body=note.body) if note is notes[1] else note for note in notes)
    other = Phone(phone.state.with_items("notes", renamed))
    changed = np.argwhere((np.asarray(phone.render()) != np.asarray(other.render())).any(axis=2))
    assert len(changed)
    (y1, x1), (y2, x2) = changed.min(axis=0), changed.max(axis=0)
    assert row.box.x1 <= x1 <= x2 < row.box.x2 and row.box.y1 <= y1 <= y2 < row.box.y2


def test_the_same_phone_is_drawn_the_same_and_other_seeds_look_unlike() -> None:
    one, other = ([encode(Phone.furnished(seed, 0, (360, 800)).render()) for seed in range(6)] for _ in range(2))
    assert one == other and len(set(one)) == 6

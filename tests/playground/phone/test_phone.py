"""None"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guieval.actions import Action, Click, LongPress, Open, Point, Press, Scroll, Stop, Type, Unsupported, Wait
from guieval.errors import UsageError
from guieval.playground.phone import DEFAULT_SIZE, Phone
from guieval.playground.phone.dice import Dice
from guieval.playground.phone.world import APPS
from tests.rows import every_row

MIDDLE = Point(500.0, 500.0)


def phone_with(app: str) -> Phone:
    """A furnished phone with ``app`` in front, loaded, without a pop-up."""
    phone = Phone.furnished(0, 0, DEFAULT_SIZE).apply(Open(app=app)).apply(Wait())
    return phone.apply(Press(button="BACK")) if phone.state.overlay else phone


def tapped(phone: Phone, name: str) -> Phone:
    element = phone.screen.find(name)
    assert element is not None, f"{name} is not on the screen"
    return phone.apply(Click(point=phone.screen.unified(element.box).centre))


def field_text(phone: Phone, field: str) -> str:
    assert phone.state.view is not None
    return phone.state.view.text(field)


@every_row("app", APPS)
def test_every_app_opens_by_name_and_by_icon(app: str) -> None:
    home = Phone.furnished(3, 1, DEFAULT_SIZE)
    opened = home.apply(Open(app=app.upper()))
    assert opened.state.view is not None and opened.state.view.app == app
    if home.screen.find(f"icon:{app}") is None:
        home = home.apply(Scroll(point=MIDDLE, direction="left"))
    assert tapped(home, f"icon:{app}").state.view == opened.state.view


def test_what_leads_nowhere_changes_nothing() -> None:
    home = Phone.furnished(0, 0, DEFAULT_SIZE)
    nowhere: list[Action] = [Open(app="No such app"), Type(text="hello"), Unsupported(name="call_user")]
    nowhere += [Click(point=Point(500.0, 1.0)), LongPress(point=Point(1000.0, 1000.0))]
    nowhere += [Press(button="BACK"), Press(button="ENTER"), Press(button="RECENT")]
    nowhere += [Scroll(point=MIDDLE, direction="up"), Scroll(point=MIDDLE, direction="right")]
    for action in nowhere:
        assert home.apply(action) == home, action


def test_nothing_happens_after_stop() -> None:
    phone = Phone.furnished(0, 0, DEFAULT_SIZE).apply(Stop(status="impossible"))
    assert phone.state.stopped == "impossible"
    with pytest.raises(ValueError, match="the episode is over"):
        phone.apply(Wait())


def test_back_takes_away_one_thing_at_a_time() -> None:
    phone = tapped(phone_with("Contacts"), "field:search").apply(Type(text="a"))
    without_keyboard = phone.apply(Press(button="BACK"))
    assert phone.screen.find("key:q") is not None and without_keyboard.screen.find("key:q") is None
    assert field_text(without_keyboard, "search") == "a"
    without_search = without_keyboard.apply(Press(button="BACK"))
    assert field_text(without_search, "search") == ""
    assert without_search.apply(Press(button="BACK")).state.view is None


def test_the_keyboard_types_what_its_keys_say() -> None:
    phone = tapped(phone_with("Notes"), "field:search")
    by_keys = phone
    for key in ("c", "a", "r", "space", "comma", "full stop", "x", "backspace"):
        by_keys = tapped(by_keys, f"key:{key}")
    assert by_keys == phone.apply(Type(text="car ,."))
    assert tapped(by_keys, "key:enter") == by_keys.apply(Press(button="ENTER"))
    named = phone.apply(Type(text="backspace")).apply(Type(text="enter"))  # a word that names a key
    assert field_text(named, "search") == "backspaceenter"


def test_swipes_scroll_there_and_back_and_stop_at_the_ends() -> None:
    top = phone_with("Contacts")
    swipe_up, swipe_down = Scroll(point=MIDDLE, direction="up"), Scroll(point=MIDDLE, direction="down")
    assert top.apply(swipe_down) == top == top.apply(Scroll(point=Point(500.0, 5.0), direction="up"))  # beside the list
    assert top.apply(swipe_up).apply(swipe_down) == top
    last = top
    for _ in range(20):
        last = last.apply(swipe_up)
    assert last.apply(swipe_up) == last
    assert last.screen.scroll == last.screen.max_scroll > 0
    names = {element.name for element in last.screen.interactive}
    assert f"row:contacts/{last.state.items('contacts')[-1].key}" in names


def test_a_dialog_keeps_everything_else_out_of_reach_and_a_note_is_deleted_only_after_the_question() -> None:
    phone = phone_with("Notes")
    note = phone.state.items("notes")[0]
    row = phone.screen.find(f"row:notes/{note.key}")
    assert row is not None
    point = phone.screen.unified(row.box).centre
    menu = phone.apply(LongPress(point=point))
    assert menu.state.overlay is not None
    assert {element.role for element in menu.screen.interactive} == {"choice"}
    assert menu.apply(Scroll(point=MIDDLE, direction="up")) == menu == menu.apply(Type(text="x"))
    assert menu.apply(Click(point=point)) == phone  # a tap beside the menu closes it
    assert menu.apply(Press(button="BACK")) == phone
    asked = tapped(menu, "choice:Delete")
    assert note in asked.state.items("notes") and note in tapped(asked, "choice:Cancel").state.items("notes")
    deleted = tapped(asked, "choice:Delete")
    assert note not in deleted.state.items("notes")
    assert deleted.screen.find(f"row:notes/{note.key}") is None


def test_a_loading_page_comes_with_a_wait_and_with_nothing_else() -> None:
    inbox = phone_with("Mail")
    loading = inbox.apply(Scroll(point=MIDDLE, direction="down"))
    assert loading.state.view is not None and loading.state.view.loading
    assert [element.role for element in loading.screen.interactive] == []
    assert loading.apply(Click(point=MIDDLE)) == loading
    before, after = inbox.screen.interactive, loading.apply(Wait()).screen.interactive
    arrived = {element.name for element in after} - {element.name for element in before}
    assert "row:mails/m0" in arrived


def test_a_form_is_kept_only_when_it_is_filled_in() -> None:
    form = tapped(phone_with("Clock"), "fab")
    refused = tapped(tapped(form, "field:Time").apply(Type(text="25:00")), "action:save")
    assert refused.state.toast and refused.state.items("alarms") == form.state.items("alarms")
    kept = tapped(tapped(form, "field:Time").apply(Type(text="6:45")), "action:save")
    assert [alarm.title for alarm in kept.state.items("alarms") if alarm.key.startswith("new")] == ["06:45"]


def test_enter_leads_on_and_breaks_lines_only_in_long_fields() -> None:
    form = tapped(tapped(phone_with("Notes"), "fab"), "field:Title").apply(Type(text="Title"))
    following = form.apply(Press(button="ENTER"))
    assert following.state.view is not None and following.state.view.focus == "Note"
    assert field_text(following.apply(Press(button="ENTER")).apply(Type(text="x")), "Note") == "\nx"


@every_row("size", [(359, 800), (360, 500), (800, 360), (360, 2000), (10_000, 20_000), (0, 0)])
def test_a_size_that_no_phone_has_is_refused(size: tuple[int, int]) -> None:
    with pytest.raises(UsageError, match=f"a phone of {size[0]} x {size[1]} pixels cannot be drawn"):
        Phone.furnished(0, 0, size)


def test_draws_are_the_same_on_every_platform_and_version() -> None:
    dice = Dice("test", 7, "x")
    assert [dice.below(1000) for _ in range(5)] == [686, 1, 290, 79, 775]
    assert dice.shuffled(range(6)) == [1, 5, 2, 0, 4, 3]


@given(st.integers(), st.lists(st.integers(), max_size=20), st.integers(0, 25))
def test_a_sample_holds_different_places(key: int, items: list[int], count: int) -> None:
    sample = Dice(key).sample(list(enumerate(items)), count)
    assert len(sample) == len(set(sample)) == min(count, len(items))
    assert set(sample) <= set(enumerate(items))


@given(st.integers(), st.integers(-5, 5), st.integers(0, 9))
def test_between_includes_both_ends_and_nothing_else(key: int, low: int, spread: int) -> None:
    dice = Dice(key)
    drawn = {dice.between(low, low + spread) for _ in range(400)}
    assert drawn == set(range(low, low + spread + 1))

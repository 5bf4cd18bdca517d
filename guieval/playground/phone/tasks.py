"""The tasks on a furnished phone: an instruction, the intents of its solver, and the goals that must be reached.

A task names widgets and never places; :mod:`guieval.playground.phone.episodes` finds what to scroll, to wait for and to tap.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from guieval.actions import StopStatus
from guieval.playground.phone import words
from guieval.playground.phone.dice import Dice
from guieval.playground.phone.state import Bound, Effects, Item, State, bind
from guieval.playground.phone.transitions import go, launch, mark
from guieval.playground.phone.world import APPS

Goal: TypeAlias = Bound[bool]
"""A condition on a phone's state: a function bound to its other arguments."""


class Intent(NamedTuple):
    """One thing that the solver means to do, whatever actions it takes.

    - ``open``: bring an app to the front; ``icon``: the same by its icon on the home screen.
    - ``tap``, ``hold``: find a widget, scrolling if necessary, and tap or press it long.
    - ``fill``: type ``text`` into a field, which is tapped first unless it is focused.
    - ``enter``, ``back``, ``home``: press the button.
    - ``pull``: swipe down from the top of a list to load it again.
    """

    verb: Literal["open", "icon", "tap", "hold", "fill", "enter", "back", "home", "pull"]
    target: str = ""
    text: str = ""


ENTER, BACK, HOME, PULL = Intent("enter"), Intent("back"), Intent("home"), Intent("pull")


def tap(widget: str) -> Intent:
    """A short press of the widget with this name, wherever it is shown."""
    return Intent("tap", widget)


def hold(widget: str) -> Intent:
    """Press ``widget`` long."""
    return Intent("hold", widget)


def fill(field: str, text: str) -> Intent:
    """Tap the field with this name and replace its text."""
    return Intent("fill", field, text)


@dataclass(frozen=True)
class Task:
    """One task. ``before`` prepares the phone for it; ``status`` is the one to stop with."""

    kind: str
    app: str
    instruction: str
    intents: tuple[Intent, ...]
    goals: tuple[Goal, ...]
    status: StopStatus = "finish"
    before: Effects = ()

    def achieved(self, state: State) -> bool:
        """Whether the phone was stopped with the right status, in a state in which all goals are reached."""
        return state.stopped == self.status and self.fulfilled(state)

    def fulfilled(self, state: State) -> bool:
        """Whether all goals are reached in ``state``, stopped or not."""
        return all(goal(state) for goal in self.goals)


class NoSuchTask(Exception):
    """This phone has nothing for a task of this kind."""


def _start(dice: Dice, app: str) -> Intent:
    return Intent("icon" if dice.chance(0.25) else "open", app)


def _pick(dice: Dice, items: Sequence[Item]) -> Item:
    if not items:
        raise NoSuchTask
    return dice.pick(items)


def _onward(dice: Dice, *fields: tuple[str, str]) -> tuple[Intent, ...]:
    """Fill several fields, and go to the next one by ENTER or by a tap."""
    by_enter = dice.chance(0.5)
    intents: list[Intent] = []
    for index, (name, text) in enumerate(fields):
        if index and by_enter:
            intents.append(ENTER)
        intents.append(fill(name, text))
    return tuple(intents)


def _switches(state: State) -> list[Item]:
    return [item for item in state.items("settings") if not item.options]


def _settings_switch(dice: Dice, state: State) -> Task:
    item = _pick(dice, _switches(state))
    on = "on" not in item.flags
    word = "on" if on else "off"
    text = dice.pick((f'Turn {word} "{item.title}" in Settings.', f'Open the Settings app and switch "{item.title}" {word}.'))
    part = dice.pick(("switch", "row"))
    intents = (_start(dice, "Settings"), tap(f"section:{item.group}"), tap(f"{part}:settings/{item.key}"))
    return Task("settings switch", "Settings", text, intents, (bind(flagged, "settings", item.key, "on", on),))


def _settings_two(dice: Dice, state: State) -> Task:
    first = _pick(dice, _switches(state))
    second = _pick(dice, [item for item in _switches(state) if item.group != first.group])
    wanted = [(item, "on" not in item.flags) for item in (first, second)]
    clauses = " and ".join(f'turn {"on" if on else "off"} "{item.title}"' for item, on in wanted)
    flip_first, flip_second = ((tap(f"section:{item.group}"), tap(f"switch:settings/{item.key}")) for item in (first, second))
    intents = (_start(dice, "Settings"), *flip_first, BACK, *flip_second)
    goals = tuple(bind(flagged, "settings", item.key, "on", on) for item, on in wanted)
    return Task("two settings", "Settings", f"In Settings, {clauses}.", intents, goals)


def _settings_choice(dice: Dice, state: State) -> Task:
    item = _pick(dice, [item for item in state.items("settings") if item.options])
    value = dice.pick([option for option in item.options if option != item.value])
    text = dice.pick((f'Set "{item.title}" to "{value}" in Settings.', f'Change the setting "{item.title}" to "{value}".'))
    change = (tap(f"section:{item.group}"), tap(f"row:settings/{item.key}"), tap(f"choice:{value}"))
    intents = (_start(dice, "Settings"), *change)
    return Task("settings choice", "Settings", text, intents, (bind(valued, "settings", item.key, value),))


def _settings_search(dice: Dice, state: State) -> Task:
    item = _pick(dice, _switches(state))
    on = "on" not in item.flags
    text = f'Search for "{item.title}" in Settings and turn it {"on" if on else "off"}.'
    change = (tap(f"row:settings/{item.key}"), tap(f"switch:settings/{item.key}"))
    intents = (_start(dice, "Settings"), fill("search", item.title), *change)
    return Task("settings search", "Settings", text, intents, (bind(flagged, "settings", item.key, "on", on),))


def _settings_about(dice: Dice, state: State) -> Task:
    what = dice.pick(("Android version", "build number", "serial number"))
    text = dice.pick((f"Show the {what} of this phone.", f'Find the {what} under "About phone" in Settings.'))
    intents = (_start(dice, "Settings"), tap("section:About phone"))
    return Task("about phone", "Settings", text, intents, (bind(showing, "Settings", "about"),))


def _back_to_settings(dice: Dice, state: State) -> Task:
    here, there = dice.sample([section for section, _, _ in words.SECTIONS], 2)
    text = f'Go back to the list of settings and open "{there}".'
    before = (bind(launch, "Settings"), bind(go, "section", here))
    goals = (bind(showing, "Settings", "section", there),)
    return Task("back to settings", "Settings", text, (BACK, tap(f"section:{there}")), goals, before=before)


def _note_create(dice: Dice, state: State) -> Task:
    title, body = dice.pick(words.NEW_NOTES)
    text = dice.pick(
        (f'Create a note titled "{title}" that says "{body}".', f'In Notes, write a new note "{title}" with the text "{body}".')
    )
    intents = (_start(dice, "Notes"), tap("fab"), *_onward(dice, ("Title", title), ("Note", body)), tap("action:save"))
    return Task("create note", "Notes", text, intents, (bind(saved, "notes", title, "", body),))


def _note_append(dice: Dice, state: State) -> Task:
    note = _pick(dice, state.items("notes"))
    line = dice.pick([body for _, body in words.NEW_NOTES])
    text = f'Add the line "{line}" at the end of the note "{note.title}" and save it.'
    write = (tap("field:Note"), ENTER, fill("Note", line), tap("action:save"))
    intents = (_start(dice, "Notes"), tap(f"row:notes/{note.key}"), *write)
    return Task("add to note", "Notes", text, intents, (bind(saved, "notes", note.title, "", f"{note.body}\n{line}"),))


def _note_delete(dice: Dice, state: State) -> Task:
    note = _pick(dice, state.items("notes"))
    text = dice.pick((f'Delete the note "{note.title}".', f'Remove "{note.title}" from the Notes app.'))
    intents = (_start(dice, "Notes"), hold(f"row:notes/{note.key}"), tap("choice:Delete"), tap("choice:Delete"))
    return Task("delete note", "Notes", text, intents, (bind(deleted, "notes", note.key),))


def _note_pin(dice: Dice, state: State) -> Task:
    note = _pick(dice, state.items("notes"))
    text = f'Pin the note "{note.title}" to the top of Notes.'
    intents = (_start(dice, "Notes"), hold(f"row:notes/{note.key}"), tap("choice:Pin to top"))
    return Task("pin note", "Notes", text, intents, (bind(flagged, "notes", note.key, "pinned"),))


def _contact_show(dice: Dice, state: State) -> Task:
    person = _pick(dice, state.items("contacts"))
    text = dice.pick((f"Show the phone number of {person.title}.", f"Open the contact {person.title} in Contacts."))
    intents = (_start(dice, "Contacts"), tap(f"row:contacts/{person.key}"))
    return Task("show contact", "Contacts", text, intents, (bind(showing, "Contacts", "person", person.key),))


def _contact_favourite(dice: Dice, state: State) -> Task:
    person = _pick(dice, state.items("contacts"))
    text = f'Search for "{person.title}" in Contacts and add this person to the favourites.'
    find = (fill("search", person.title), tap(f"row:contacts/{person.key}"))
    intents = (_start(dice, "Contacts"), *find, tap("action:favourite"))
    return Task("favourite contact", "Contacts", text, intents, (bind(flagged, "contacts", person.key, "favourite"),))


def _stranger(dice: Dice, state: State) -> tuple[str, str]:
    known = {word for person in state.items("contacts") for word in person.title.split()}
    first = dice.pick([name for name in words.FIRST_NAMES if name not in known])
    return first, dice.pick([name for name in words.LAST_NAMES if name not in known])


def _contact_create(dice: Dice, state: State) -> Task:
    first, last = _stranger(dice, state)
    number = f"{dice.between(201, 989)} 555 {dice.between(0, 9999):04d}"
    text = f'Create a contact for {first} {last} with the phone number "{number}".'
    start = _start(dice, "Contacts")
    fields = _onward(dice, ("First name", first), ("Last name", last), ("Phone", number))
    intents = (start, tap("fab"), *fields, tap("action:save"))
    return Task("create contact", "Contacts", text, intents, (bind(saved, "contacts", f"{first} {last}", number),))


def _contact_delete(dice: Dice, state: State) -> Task:
    person = _pick(dice, state.items("contacts"))
    text = f"Delete {person.title} from Contacts."
    intents = (_start(dice, "Contacts"), tap(f"row:contacts/{person.key}"), tap("action:delete"), tap("choice:Delete"))
    return Task("delete contact", "Contacts", text, intents, (bind(deleted, "contacts", person.key),))


def _contact_missing(dice: Dice, state: State) -> Task:
    name = " ".join(_stranger(dice, state))
    text = f'Find the phone number of "{name}" in Contacts.'
    intents = (_start(dice, "Contacts"), fill("search", name))
    goals = (bind(showing, "Contacts", "main", "", name),)
    return Task("missing contact", "Contacts", text, intents, goals, status="impossible")


def _number_to_note(dice: Dice, state: State) -> Task:
    person = _pick(dice, state.items("contacts")[:14])
    text = f'Look up the phone number of {person.title} and save it as a note titled "{person.title}".'
    look_up = (Intent("open", "Contacts"), tap(f"row:contacts/{person.key}"), HOME, _start(dice, "Notes"))
    fields = _onward(dice, ("Title", person.title), ("Note", person.detail))
    intents = (*look_up, tap("fab"), *fields, tap("action:save"))
    return Task("number to note", "Notes", text, intents, (bind(saved, "notes", person.title, "", person.detail),))


def _alarm_switch(dice: Dice, state: State) -> Task:
    alarm = _pick(dice, state.items("alarms"))
    on = "on" not in alarm.flags
    text = f'Turn {"on" if on else "off"} the "{alarm.detail}" alarm at {alarm.title}.'
    intents = (_start(dice, "Clock"), tap(f"switch:alarms/{alarm.key}"))
    return Task("switch alarm", "Clock", text, intents, (bind(flagged, "alarms", alarm.key, "on", on),))


def _alarm_create(dice: Dice, state: State) -> Task:
    time = f"{dice.between(5, 22):02d}:{dice.between(1, 5)}{dice.pick('1234')}"
    label = dice.pick(words.ALARM_LABELS)
    text = f'Set an alarm for {time} with the label "{label}".'
    intents = (_start(dice, "Clock"), tap("fab"), *_onward(dice, ("Time", time), ("Label", label)), tap("action:save"))
    return Task("create alarm", "Clock", text, intents, (bind(saved, "alarms", time, label),))


def _alarm_delete(dice: Dice, state: State) -> Task:
    alarm = _pick(dice, state.items("alarms"))
    text = f"Delete the alarm at {alarm.title} in the Clock app."
    intents = (_start(dice, "Clock"), hold(f"row:alarms/{alarm.key}"), tap("choice:Delete"))
    return Task("delete alarm", "Clock", text, intents, (bind(deleted, "alarms", alarm.key),))


def _city_add(dice: Dice, state: State) -> Task:
    searched = dice.chance(0.4)
    cities = [city for city in state.items("cities") if "shown" not in city.flags]
    city = _pick(dice, cities if searched else cities[:28])
    text = f"Add {city.title} to the world clock."
    find = (fill("search", city.title),) if searched else ()
    intents = (_start(dice, "Clock"), tap("tab:World clock"), tap("fab"), *find, tap(f"row:cities/{city.key}"))
    return Task("add city", "Clock", text, intents, (bind(flagged, "cities", city.key, "shown"),))


def _products(state: State, *, sold_out: bool) -> list[Item]:
    return [item for item in state.items("products") if ("sold out" in item.flags) == sold_out]


def _shop_cart(dice: Dice, state: State) -> Task:
    product = _pick(dice, _products(state, sold_out=False))
    text = dice.pick(
        (
            f'Search for "{product.group}" in Shop and put the "{product.title}" into the cart.',
            f'In the Shop app, look for "{product.group}" and add "{product.title}" to the cart.',
        )
    )
    buy = (tap(f"row:products/{product.key}"), tap("button:cart"))
    intents = (_start(dice, "Shop"), fill("search", product.group), ENTER, *buy)
    return Task("fill cart", "Shop", text, intents, (bind(flagged, "products", product.key, "cart"),))


def _shop_sold_out(dice: Dice, state: State) -> Task:
    product = _pick(dice, _products(state, sold_out=True))
    text = f'Add the "{product.title}" to the cart in Shop.'
    intents = (_start(dice, "Shop"), fill("search", product.title), ENTER, tap(f"row:products/{product.key}"))
    goals = (bind(showing, "Shop", "product", product.key),)
    return Task("sold out", "Shop", text, intents, goals, status="impossible")


def _shop_wish(dice: Dice, state: State) -> Task:
    product = _pick(dice, state.items("products")[:16])
    text = f'Save the "{product.title}" from the offers in Shop to the wishlist.'
    intents = (_start(dice, "Shop"), tap(f"row:products/{product.key}"), tap("action:wish"))
    return Task("wishlist", "Shop", text, intents, (bind(flagged, "products", product.key, "wished"),))


def _shop_order(dice: Dice, state: State) -> Task:
    product = _pick(dice, _products(state, sold_out=False))
    text = dice.pick(("Order what is in the cart of the Shop app.", f'Check out the cart with the "{product.title}" in Shop.'))
    intents = (_start(dice, "Shop"), tap("tab:Cart"), tap("button:checkout"), tap("choice:Place order"))
    before = (bind(mark, "products", product.key, "cart", True),)
    goals = (bind(flagged, "products", product.key, "ordered"), bind(showing, "Shop", "ordered"))
    return Task("order", "Shop", text, intents, goals, before=before)


def _message_send(dice: Dice, state: State) -> Task:
    chat = _pick(dice, [chat for chat in state.items("chats") if chat.lines])
    line = dice.pick(words.NEW_MESSAGES)
    text = dice.pick((f'Send "{line}" to {chat.title} in Messages.', f'Answer {chat.title} with the message "{line}".'))
    intents = (_start(dice, "Messages"), tap(f"row:chats/{chat.key}"), fill("message", line), tap("action:send"))
    return Task("send message", "Messages", text, intents, (bind(sent, chat.key, line),))


def _message_new(dice: Dice, state: State) -> Task:
    chat = _pick(dice, [chat for chat in state.items("chats") if not chat.lines])
    line = dice.pick(words.NEW_MESSAGES)
    text = f'Start a new chat with {chat.title} and send "{line}".'
    find = (fill("search", chat.title),) if dice.chance(0.6) else ()
    send = tap("action:send") if dice.chance(0.5) else ENTER
    write = (*find, tap(f"row:contacts/{chat.key}"), fill("message", line), send)
    intents = (_start(dice, "Messages"), tap("fab"), *write)
    return Task("new chat", "Messages", text, intents, (bind(sent, chat.key, line),))


def _chat_menu(dice: Dice, state: State) -> Task:
    chat = _pick(dice, [chat for chat in state.items("chats") if chat.lines])
    word, flag = dice.pick((("Archive", "archived"), ("Mute", "muted")))
    text = f"{word} the conversation with {chat.title} in Messages."
    intents = (_start(dice, "Messages"), hold(f"row:chats/{chat.key}"), tap(f"choice:{word}"))
    return Task("chat menu", "Messages", text, intents, (bind(flagged, "chats", chat.key, flag),))


def _mail_write(dice: Dice, state: State) -> Task:
    person = _pick(dice, state.items("contacts"))
    subject, body = dice.pick(words.NEW_MAILS)
    text = f'Write a mail to {person.body} with the subject "{subject}" and the text "{body}".'
    start = _start(dice, "Mail")
    fields = _onward(dice, ("To", person.body), ("Subject", subject), ("Message", body))
    intents = (start, tap("fab"), *fields, tap("action:send"))
    return Task("write mail", "Mail", text, intents, (bind(saved, "mails", subject, person.body, body),))


def _inbox(state: State) -> list[Item]:
    return [mail for mail in state.items("mails") if "incoming" not in mail.flags]


def _mail_button(dice: Dice, state: State) -> Task:
    word, flag = ("star", "starred") if dice.chance(0.5) else ("archive", "archived")
    mail = _pick(dice, [mail for mail in _inbox(state) if "starred" not in mail.flags])
    text = f'{word.title()} the mail "{mail.title}" from {mail.detail}.'
    intents = (_start(dice, "Mail"), tap(f"row:mails/{mail.key}"), tap(f"action:{word}"))
    return Task(f"{word} mail", "Mail", text, intents, (bind(flagged, "mails", mail.key, flag),))


def _mail_refresh(dice: Dice, state: State) -> Task:
    mail = next(mail for mail in state.items("mails") if "incoming" in mail.flags)
    text = dice.pick(("Refresh the inbox in Mail and read the newest mail.", f'Load new mail and open "{mail.title}".'))
    intents = (_start(dice, "Mail"), PULL, tap(f"row:mails/{mail.key}"))
    return Task("refresh mail", "Mail", text, intents, (bind(showing, "Mail", "mail", mail.key),))


def _mail_reply(dice: Dice, state: State) -> Task:
    mail = _pick(dice, _inbox(state))
    line = dice.pick(words.NEW_MESSAGES)
    text = f'Reply "{line}" to the mail "{mail.title}".'
    reply = (tap("button:reply"), fill("Message", line), tap("action:send"))
    intents = (_start(dice, "Mail"), tap(f"row:mails/{mail.key}"), *reply)
    return Task("reply to mail", "Mail", text, intents, (bind(saved, "mails", f"Re: {mail.title}", mail.detail, line),))


def _mail_delete(dice: Dice, state: State) -> Task:
    mail = _pick(dice, _inbox(state))
    text = f'Search for the mail "{mail.title}" in Mail and delete it.'
    find = (fill("search", mail.title), ENTER, tap(f"row:mails/{mail.key}"))
    intents = (_start(dice, "Mail"), *find, tap("action:delete"))
    return Task("delete mail", "Mail", text, intents, (bind(deleted, "mails", mail.key),))


def _song_play(dice: Dice, state: State) -> Task:
    song = _pick(dice, state.items("songs"))
    text = dice.pick((f'Play the song "{song.title}" in Music.', f'Listen to "{song.title}" by {song.detail}.'))
    intents = (_start(dice, "Music"), tap(f"row:songs/{song.key}"), tap("button:play"))
    return Task("play song", "Music", text, intents, (bind(flagged, "songs", song.key, "playing"),))


def _song_like(dice: Dice, state: State) -> Task:
    song = _pick(dice, [song for song in state.items("songs") if "liked" not in song.flags])
    text = f'Search for "{song.title}" in Music and like the song.'
    find = (fill("search", song.title), ENTER, tap(f"row:songs/{song.key}"))
    intents = (_start(dice, "Music"), *find, tap("action:like"))
    return Task("like song", "Music", text, intents, (bind(flagged, "songs", song.key, "liked"),))


def _song_to_playlist(dice: Dice, state: State) -> Task:
    song = _pick(dice, state.items("songs"))
    playlist = dice.pick(state.items("playlists"))
    text = f'Add "{song.title}" to the playlist "{playlist.title}" in Music.'
    add = (tap("button:add"), tap(f"choice:{playlist.title}"))
    intents = (_start(dice, "Music"), tap(f"row:songs/{song.key}"), *add)
    return Task("song to playlist", "Music", text, intents, (bind(flagged, "songs", song.key, f"in {playlist.key}"),))


def _unreachable(dice: Dice, state: State) -> Task:
    apps = [app for app in state.apps if app in words.MISSING_THINGS]
    if not apps:
        raise NoSuchTask
    app = dice.pick(apps)
    intents = (_start(dice, app), tap("button:retry"))
    goals = (bind(showing, app),)
    return Task("no service", app, f"{words.MISSING_THINGS[app]}.", intents, goals, status="impossible")


def _other_app(dice: Dice, state: State) -> Task:
    here, there = dice.sample(APPS, 2)
    text = f"Go to the home screen and open {there} from there."
    intents = (HOME, Intent("icon", there))
    return Task("home screen", there, text, intents, (bind(showing, there),), before=(bind(launch, here),))


Template: TypeAlias = Callable[[Dice, State], Task]

SUITS: tuple[tuple[Template, ...], ...] = (
    (_note_delete, _note_pin, _alarm_delete, _chat_menu),  # a long press
    (_mail_refresh, _unreachable, _unreachable),  # always something to wait for
    (_contact_missing, _shop_sold_out),  # not doable
    (_back_to_settings, _other_app, _number_to_note, _settings_two),  # BACK or HOME
    (_settings_about, _contact_show, _contact_delete, _city_add, _shop_wish, _song_play),  # lists longer than the screen
    (_settings_search, _contact_favourite, _shop_cart, _mail_delete, _song_like),  # searches
    (_note_create, _contact_create, _alarm_create, _mail_write, _message_new),  # forms
    (_settings_switch, _settings_choice, _note_append, _alarm_switch, _shop_order),
    (_message_send, _mail_button, _mail_reply, _song_to_playlist),
)
"""Every kind of task, grouped by what it shows, so that any dozen of episodes in a row has something of everything."""

HANDS = 3


def template_for(seed: int, number: int) -> Template:
    """The kind of task that episode ``number`` of ``seed`` is about.

    Kinds are dealt like cards, suit by suit into three hands, so that each third of a round has long presses, waits and so
    on. Each round is shuffled again.
    """
    cards = sum(map(len, SUITS))
    dice = Dice("kinds", seed, number // cards)
    deck = [template for suit in SUITS for template in dice.shuffled(suit)]
    dealt = [template for hand in range(HANDS) for template in dice.shuffled(deck[hand::HANDS])]
    return dealt[number % cards]


# --- goals: conditions on a phone's state -------------------------------------------------------------------------------


def flagged(state: State, collection: str, key: str, flag: str, on: bool = True) -> bool:
    """Whether an item has a flag (or, without ``on``, does not have it)."""
    return any(item.key == key and (flag in item.flags) == on for item in state.items(collection))


def valued(state: State, collection: str, key: str, value: str) -> bool:
    """Whether an item has a value."""
    return any(item.key == key and item.value == value for item in state.items(collection))


def deleted(state: State, collection: str, key: str) -> bool:
    """Whether an item does not exist."""
    return all(item.key != key for item in state.items(collection))


def saved(state: State, collection: str, title: str, detail: str = "", body: str = "") -> bool:
    """Whether there is an item with exactly these texts."""
    return any((item.title, item.detail, item.body) == (title, detail, body) for item in state.items(collection))


def sent(state: State, key: str, text: str) -> bool:
    """Whether the newest message of a conversation is this one, sent by the user."""
    return any(chat.key == key and chat.lines[-1:] == (f">{text}",) for chat in state.items("chats"))


def showing(state: State, app: str, page: str = "main", item: str = "", search: str = "") -> bool:
    """Whether this page is in front, loaded and uncovered; ``search`` is the text in its search field."""
    view = state.view
    if view is None or view.loading or state.overlay:
        return False
    return (view.app, view.page, view.item, view.text("search")) == (app, page, item, search)

"""What is asked for: tasks on a furnished phone, each with what its solver means to do and what must be true in the end.

A task names widgets and never places; :mod:`guieval.testing.phone.episodes` finds out what has to be scrolled, waited for and
tapped.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from guieval.actions import StopStatus
from guieval.testing.phone import words
from guieval.testing.phone.dice import Dice
from guieval.testing.phone.state import Effects, Go, Item, Launch, Mark, State
from guieval.testing.phone.world import APPS


@dataclass(frozen=True)
class Start:
    """Bring an app to the front, with ``OPEN`` or by its icon on the home screen."""

    app: str
    by_icon: bool = False


@dataclass(frozen=True)
class Tap:
    """Find the widget ``name``, scrolling if need be, and tap it."""

    name: str


@dataclass(frozen=True)
class Hold:
    """Find the widget ``name`` and press it long."""

    name: str


@dataclass(frozen=True)
class Fill:
    """Type ``text`` into a field, tapping the field first unless the cursor is in it."""

    field: str
    text: str


@dataclass(frozen=True)
class Confirm:
    """Press ``ENTER``."""


@dataclass(frozen=True)
class Leave:
    """Press ``BACK``."""


@dataclass(frozen=True)
class GoHome:
    """Press ``HOME``."""


@dataclass(frozen=True)
class Pull:
    """Swipe down from the top of a list to load it anew."""


Intent: TypeAlias = Start | Tap | Hold | Fill | Confirm | Leave | GoHome | Pull


@dataclass(frozen=True)
class Flagged:
    """An item has a flag, or has it not."""

    collection: str
    key: str
    flag: str
    on: bool = True

    def holds(self, state: State) -> bool:
        """Whether it is so in ``state``."""
        return any(item.key == self.key and (self.flag in item.flags) == self.on for item in state.items(self.collection))


@dataclass(frozen=True)
class Valued:
    """A setting has a value."""

    collection: str
    key: str
    value: str

    def holds(self, state: State) -> bool:
        """Whether it is so in ``state``."""
        return any(item.key == self.key and item.value == self.value for item in state.items(self.collection))


@dataclass(frozen=True)
class Gone:
    """An item was deleted."""

    collection: str
    key: str

    def holds(self, state: State) -> bool:
        """Whether it is so in ``state``."""
        return all(item.key != self.key for item in state.items(self.collection))


@dataclass(frozen=True)
class Kept:
    """There is an item with exactly these texts."""

    collection: str
    title: str
    detail: str = ""
    body: str = ""

    def holds(self, state: State) -> bool:
        """Whether it is so in ``state``."""
        wanted = (self.title, self.detail, self.body)
        return any((item.title, item.detail, item.body) == wanted for item in state.items(self.collection))


@dataclass(frozen=True)
class Sent:
    """The newest line of a conversation is this one, sent by the user."""

    key: str
    text: str

    def holds(self, state: State) -> bool:
        """Whether it is so in ``state``."""
        return any(chat.key == self.key and chat.lines[-1:] == (f">{self.text}",) for chat in state.items("chats"))


@dataclass(frozen=True)
class Showing:
    """The page in front is this one, loaded, with nothing over it; ``search`` is what its search field holds."""

    app: str
    page: str = "main"
    item: str = ""
    search: str = ""

    def holds(self, state: State) -> bool:
        """Whether it is so in ``state``."""
        view = state.view
        if view is None or view.loading or state.overlay:
            return False
        return (view.app, view.page, view.item, view.text("search")) == (self.app, self.page, self.item, self.search)


Check: TypeAlias = Flagged | Valued | Gone | Kept | Sent | Showing


@dataclass(frozen=True)
class Task:
    """One task. ``before`` puts the phone into the state the task begins in; ``status`` is how it has to be stopped."""

    kind: str
    app: str
    instruction: str
    intents: tuple[Intent, ...]
    checks: tuple[Check, ...]
    status: StopStatus = "finish"
    before: Effects = ()

    def achieved(self, state: State) -> bool:
        """Whether the phone was stopped with the right status, in a state where everything asked for is true."""
        return state.stopped == self.status and self.fulfilled(state)

    def fulfilled(self, state: State) -> bool:
        """Whether everything asked for is true in ``state``, stopped or not."""
        return all(check.holds(state) for check in self.checks)


class NoSuchTask(Exception):
    """This phone has nothing that a task of the wanted kind could be about."""


def _start(dice: Dice, app: str) -> Start:
    return Start(app, by_icon=dice.chance(0.25))


def _pick(dice: Dice, items: list[Item]) -> Item:
    if not items:
        raise NoSuchTask
    return dice.pick(items)


def _onward(dice: Dice, fields: tuple[tuple[str, str], ...]) -> tuple[Intent, ...]:
    """Fill several fields, going on to the next by ENTER or by a tap."""
    by_enter = dice.chance(0.5)
    intents: list[Intent] = []
    for index, (name, text) in enumerate(fields):
        if index and by_enter:
            intents.append(Confirm())
        intents.append(Fill(name, text))
    return tuple(intents)


def _settings_switch(dice: Dice, state: State) -> Task:
    item = _pick(dice, [item for item in state.items("settings") if not item.options])
    on = "on" not in item.flags
    word = "on" if on else "off"
    text = dice.pick((f'Turn {word} "{item.title}" in Settings.', f'Open the Settings app and switch "{item.title}" {word}.'))
    part = dice.pick(("switch", "row"))
    intents = (_start(dice, "Settings"), Tap(f"section:{item.group}"), Tap(f"{part}:settings/{item.key}"))
    return Task("settings switch", "Settings", text, intents, (Flagged("settings", item.key, "on", on),))


def _settings_two(dice: Dice, state: State) -> Task:
    first = _pick(dice, [item for item in state.items("settings") if not item.options])
    second = _pick(dice, [item for item in state.items("settings") if not item.options and item.group != first.group])
    asked = [(item, "on" not in item.flags) for item in (first, second)]
    says = " and ".join(f'turn {"on" if on else "off"} "{item.title}"' for item, on in asked)
    text = f"In Settings, {says}."
    intents = (
        _start(dice, "Settings"),
        Tap(f"section:{first.group}"),
        Tap(f"switch:settings/{first.key}"),
        Leave(),
        Tap(f"section:{second.group}"),
        Tap(f"switch:settings/{second.key}"),
    )
    checks = tuple(Flagged("settings", item.key, "on", on) for item, on in asked)
    return Task("two settings", "Settings", text, intents, checks)


def _settings_choice(dice: Dice, state: State) -> Task:
    item = _pick(dice, [item for item in state.items("settings") if item.options])
    value = dice.pick([option for option in item.options if option != item.value])
    text = dice.pick((f'Set "{item.title}" to "{value}" in Settings.', f'Change the setting "{item.title}" to "{value}".'))
    intents = (
        _start(dice, "Settings"),
        Tap(f"section:{item.group}"),
        Tap(f"row:settings/{item.key}"),
        Tap(f"choice:{value}"),
    )
    return Task("settings choice", "Settings", text, intents, (Valued("settings", item.key, value),))


def _settings_search(dice: Dice, state: State) -> Task:
    item = _pick(dice, [item for item in state.items("settings") if not item.options])
    on = "on" not in item.flags
    text = f'Search for "{item.title}" in Settings and turn it {"on" if on else "off"}.'
    intents = (
        _start(dice, "Settings"),
        Fill("search", item.title),
        Tap(f"row:settings/{item.key}"),
        Tap(f"switch:settings/{item.key}"),
    )
    return Task("settings search", "Settings", text, intents, (Flagged("settings", item.key, "on", on),))


def _settings_about(dice: Dice, state: State) -> Task:
    what = dice.pick(("Android version", "build number", "serial number"))
    text = dice.pick((f"Show the {what} of this phone.", f'Find the {what} under "About phone" in Settings.'))
    intents = (_start(dice, "Settings"), Tap("section:About phone"))
    return Task("about phone", "Settings", text, intents, (Showing("Settings", "about"),))


def _back_to_settings(dice: Dice, state: State) -> Task:
    here, there = dice.sample([section for section, _, _ in words.SECTIONS], 2)
    text = f'Go back to the list of settings and open "{there}".'
    before = (Launch("Settings"), Go("section", here))
    checks = (Showing("Settings", "section", there),)
    return Task("back to settings", "Settings", text, (Leave(), Tap(f"section:{there}")), checks, before=before)


def _note_create(dice: Dice, state: State) -> Task:
    title, body = dice.pick(words.NEW_NOTES)
    text = dice.pick(
        (f'Create a note titled "{title}" that says "{body}".', f'In Notes, write a new note "{title}" with the text "{body}".')
    )
    intents = (
        _start(dice, "Notes"),
        Tap("fab"),
        *_onward(dice, (("Title", title), ("Note", body))),
        Tap("action:save"),
    )
    return Task("create note", "Notes", text, intents, (Kept("notes", title, body=body),))


def _note_append(dice: Dice, state: State) -> Task:
    note = _pick(dice, list(state.items("notes")))
    line = dice.pick([body for _, body in words.NEW_NOTES])
    text = f'Add the line "{line}" at the end of the note "{note.title}" and save it.'
    intents = (
        _start(dice, "Notes"),
        Tap(f"row:notes/{note.key}"),
        Tap("field:Note"),
        Confirm(),
        Fill("Note", line),
        Tap("action:save"),
    )
    return Task("add to note", "Notes", text, intents, (Kept("notes", note.title, body=f"{note.body}\n{line}"),))


def _note_delete(dice: Dice, state: State) -> Task:
    note = _pick(dice, list(state.items("notes")))
    text = dice.pick((f'Delete the note "{note.title}".', f'Remove "{note.title}" from the Notes app.'))
    intents = (_start(dice, "Notes"), Hold(f"row:notes/{note.key}"), Tap("choice:Delete"), Tap("choice:Delete"))
    return Task("delete note", "Notes", text, intents, (Gone("notes", note.key),))


def _note_pin(dice: Dice, state: State) -> Task:
    note = _pick(dice, list(state.items("notes")))
    text = f'Pin the note "{note.title}" to the top of Notes.'
    intents = (_start(dice, "Notes"), Hold(f"row:notes/{note.key}"), Tap("choice:Pin to top"))
    return Task("pin note", "Notes", text, intents, (Flagged("notes", note.key, "pinned"),))


def _contact_show(dice: Dice, state: State) -> Task:
    person = _pick(dice, list(state.items("contacts")))
    text = dice.pick((f"Show the phone number of {person.title}.", f"Open the contact {person.title} in Contacts."))
    intents = (_start(dice, "Contacts"), Tap(f"row:contacts/{person.key}"))
    return Task("show contact", "Contacts", text, intents, (Showing("Contacts", "person", person.key),))


def _contact_favourite(dice: Dice, state: State) -> Task:
    person = _pick(dice, list(state.items("contacts")))
    text = f'Search for "{person.title}" in Contacts and add this person to the favourites.'
    intents = (
        _start(dice, "Contacts"),
        Fill("search", person.title),
        Tap(f"row:contacts/{person.key}"),
        Tap("action:favourite"),
    )
    return Task("favourite contact", "Contacts", text, intents, (Flagged("contacts", person.key, "favourite"),))


def _stranger(dice: Dice, state: State) -> tuple[str, str]:
    known = {word for person in state.items("contacts") for word in person.title.split()}
    first = dice.pick([name for name in words.FIRST_NAMES if name not in known])
    return first, dice.pick([name for name in words.LAST_NAMES if name not in known])


def _contact_create(dice: Dice, state: State) -> Task:
    first, last = _stranger(dice, state)
    number = f"{dice.between(201, 989)} 555 {dice.between(0, 9999):04d}"
    text = f'Create a contact for {first} {last} with the phone number "{number}".'
    intents = (
        _start(dice, "Contacts"),
        Tap("fab"),
        *_onward(dice, (("First name", first), ("Last name", last), ("Phone", number))),
        Tap("action:save"),
    )
    return Task("create contact", "Contacts", text, intents, (Kept("contacts", f"{first} {last}", number),))


def _contact_delete(dice: Dice, state: State) -> Task:
    person = _pick(dice, list(state.items("contacts")))
    text = f"Delete {person.title} from Contacts."
    intents = (
        _start(dice, "Contacts"),
        Tap(f"row:contacts/{person.key}"),
        Tap("action:delete"),
        Tap("choice:Delete"),
    )
    return Task("delete contact", "Contacts", text, intents, (Gone("contacts", person.key),))


def _contact_missing(dice: Dice, state: State) -> Task:
    name = " ".join(_stranger(dice, state))
    text = f'Find the phone number of "{name}" in Contacts.'
    intents = (_start(dice, "Contacts"), Fill("search", name))
    checks = (Showing("Contacts", search=name),)
    return Task("missing contact", "Contacts", text, intents, checks, status="impossible")


def _number_to_note(dice: Dice, state: State) -> Task:
    person = _pick(dice, list(state.items("contacts"))[:14])
    text = f'Look up the phone number of {person.title} and save it as a note titled "{person.title}".'
    intents = (
        Start("Contacts"),
        Tap(f"row:contacts/{person.key}"),
        GoHome(),
        _start(dice, "Notes"),
        Tap("fab"),
        *_onward(dice, (("Title", person.title), ("Note", person.detail))),
        Tap("action:save"),
    )
    return Task("number to note", "Notes", text, intents, (Kept("notes", person.title, body=person.detail),))


def _alarm_switch(dice: Dice, state: State) -> Task:
    alarm = _pick(dice, list(state.items("alarms")))
    on = "on" not in alarm.flags
    text = f'Turn {"on" if on else "off"} the "{alarm.detail}" alarm at {alarm.title}.'
    intents = (_start(dice, "Clock"), Tap(f"switch:alarms/{alarm.key}"))
    return Task("switch alarm", "Clock", text, intents, (Flagged("alarms", alarm.key, "on", on),))


def _alarm_create(dice: Dice, state: State) -> Task:
    time = f"{dice.between(5, 22):02d}:{dice.between(1, 5)}{dice.pick('1234')}"
    label = dice.pick(words.ALARM_LABELS)
    text = f'Set an alarm for {time} with the label "{label}".'
    intents = (
        _start(dice, "Clock"),
        Tap("fab"),
        *_onward(dice, (("Time", time), ("Label", label))),
        Tap("action:save"),
    )
    return Task("create alarm", "Clock", text, intents, (Kept("alarms", time, label),))


def _alarm_delete(dice: Dice, state: State) -> Task:
    alarm = _pick(dice, list(state.items("alarms")))
    text = f"Delete the alarm at {alarm.title} in the Clock app."
    intents = (_start(dice, "Clock"), Hold(f"row:alarms/{alarm.key}"), Tap("choice:Delete"))
    return Task("delete alarm", "Clock", text, intents, (Gone("alarms", alarm.key),))


def _city_add(dice: Dice, state: State) -> Task:
    searched = dice.chance(0.4)
    cities = [city for city in state.items("cities") if "shown" not in city.flags]
    city = _pick(dice, cities if searched else cities[:28])
    text = f"Add {city.title} to the world clock."
    find: tuple[Intent, ...] = (Fill("search", city.title),) if searched else ()
    intents = (_start(dice, "Clock"), Tap("tab:World clock"), Tap("fab"), *find, Tap(f"row:cities/{city.key}"))
    return Task("add city", "Clock", text, intents, (Flagged("cities", city.key, "shown"),))


def _shop_cart(dice: Dice, state: State) -> Task:
    product = _pick(dice, [item for item in state.items("products") if "sold out" not in item.flags])
    text = dice.pick(
        (
            f'Search for "{product.group}" in Shop and put the "{product.title}" into the cart.',
            f'In the Shop app, look for "{product.group}" and add "{product.title}" to the cart.',
        )
    )
    intents = (
        _start(dice, "Shop"),
        Fill("search", product.group),
        Confirm(),
        Tap(f"row:products/{product.key}"),
        Tap("button:cart"),
    )
    return Task("fill cart", "Shop", text, intents, (Flagged("products", product.key, "cart"),))


def _shop_sold_out(dice: Dice, state: State) -> Task:
    product = _pick(dice, [item for item in state.items("products") if "sold out" in item.flags])
    text = f'Add the "{product.title}" to the cart in Shop.'
    intents = (
        _start(dice, "Shop"),
        Fill("search", product.title),
        Confirm(),
        Tap(f"row:products/{product.key}"),
    )
    checks = (Showing("Shop", "product", product.key),)
    return Task("sold out", "Shop", text, intents, checks, status="impossible")


def _shop_wish(dice: Dice, state: State) -> Task:
    product = _pick(dice, list(state.items("products")[:16]))
    text = f'Save the "{product.title}" from the offers in Shop to the wishlist.'
    intents = (_start(dice, "Shop"), Tap(f"row:products/{product.key}"), Tap("action:wish"))
    return Task("wishlist", "Shop", text, intents, (Flagged("products", product.key, "wished"),))


def _shop_order(dice: Dice, state: State) -> Task:
    product = _pick(dice, [item for item in state.items("products") if "sold out" not in item.flags])
    text = dice.pick(("Order what is in the cart of the Shop app.", f'Check out the cart with the "{product.title}" in Shop.'))
    intents = (_start(dice, "Shop"), Tap("tab:Cart"), Tap("button:checkout"), Tap("choice:Place order"))
    before = (Mark("products", product.key, "cart", True),)
    checks = (Flagged("products", product.key, "ordered"), Showing("Shop", "ordered"))
    return Task("order", "Shop", text, intents, checks, before=before)


def _message_send(dice: Dice, state: State) -> Task:
    chat = _pick(dice, [chat for chat in state.items("chats") if chat.lines])
    line = dice.pick(words.NEW_MESSAGES)
    text = dice.pick((f'Send "{line}" to {chat.title} in Messages.', f'Answer {chat.title} with the message "{line}".'))
    intents = (
        _start(dice, "Messages"),
        Tap(f"row:chats/{chat.key}"),
        Fill("message", line),
        Tap("action:send"),
    )
    return Task("send message", "Messages", text, intents, (Sent(chat.key, line),))


def _message_new(dice: Dice, state: State) -> Task:
    chat = _pick(dice, [chat for chat in state.items("chats") if not chat.lines])
    line = dice.pick(words.NEW_MESSAGES)
    text = f'Start a new chat with {chat.title} and send "{line}".'
    find: tuple[Intent, ...] = (Fill("search", chat.title),) if dice.chance(0.6) else ()
    send: Intent = Tap("action:send") if dice.chance(0.5) else Confirm()
    intents = (
        _start(dice, "Messages"),
        Tap("fab"),
        *find,
        Tap(f"row:contacts/{chat.key}"),
        Fill("message", line),
        send,
    )
    return Task("new chat", "Messages", text, intents, (Sent(chat.key, line),))


def _chat_menu(dice: Dice, state: State) -> Task:
    chat = _pick(dice, [chat for chat in state.items("chats") if chat.lines])
    word, flag = dice.pick((("Archive", "archived"), ("Mute", "muted")))
    text = f"{word} the conversation with {chat.title} in Messages."
    intents = (_start(dice, "Messages"), Hold(f"row:chats/{chat.key}"), Tap(f"choice:{word}"))
    return Task("chat menu", "Messages", text, intents, (Flagged("chats", chat.key, flag),))


def _mail_write(dice: Dice, state: State) -> Task:
    person = _pick(dice, list(state.items("contacts")))
    subject, body = dice.pick(words.NEW_MAILS)
    text = f'Write a mail to {person.body} with the subject "{subject}" and the text "{body}".'
    intents = (
        _start(dice, "Mail"),
        Tap("fab"),
        *_onward(dice, (("To", person.body), ("Subject", subject), ("Message", body))),
        Tap("action:send"),
    )
    return Task("write mail", "Mail", text, intents, (Kept("mails", subject, person.body, body),))


def _inbox(state: State) -> list[Item]:
    return [mail for mail in state.items("mails") if "incoming" not in mail.flags]


def _mail_button(dice: Dice, state: State) -> Task:
    star = dice.chance(0.5)
    mail = _pick(dice, [mail for mail in _inbox(state) if "starred" not in mail.flags])
    text = f'{"Star" if star else "Archive"} the mail "{mail.title}" from {mail.detail}.'
    button, flag = ("action:star", "starred") if star else ("action:archive", "archived")
    intents = (_start(dice, "Mail"), Tap(f"row:mails/{mail.key}"), Tap(button))
    return Task("star mail" if star else "archive mail", "Mail", text, intents, (Flagged("mails", mail.key, flag),))


def _mail_refresh(dice: Dice, state: State) -> Task:
    mail = next(mail for mail in state.items("mails") if "incoming" in mail.flags)
    text = dice.pick(("Refresh the inbox in Mail and read the newest mail.", f'Load new mail and open "{mail.title}".'))
    intents = (_start(dice, "Mail"), Pull(), Tap(f"row:mails/{mail.key}"))
    return Task("refresh mail", "Mail", text, intents, (Showing("Mail", "mail", mail.key),))


def _mail_reply(dice: Dice, state: State) -> Task:
    mail = _pick(dice, _inbox(state))
    line = dice.pick(words.NEW_MESSAGES)
    text = f'Reply "{line}" to the mail "{mail.title}".'
    intents = (
        _start(dice, "Mail"),
        Tap(f"row:mails/{mail.key}"),
        Tap("button:reply"),
        Fill("Message", line),
        Tap("action:send"),
    )
    return Task("reply to mail", "Mail", text, intents, (Kept("mails", f"Re: {mail.title}", mail.detail, line),))


def _mail_delete(dice: Dice, state: State) -> Task:
    mail = _pick(dice, _inbox(state))
    text = f'Search for the mail "{mail.title}" in Mail and delete it.'
    intents = (
        _start(dice, "Mail"),
        Fill("search", mail.title),
        Confirm(),
        Tap(f"row:mails/{mail.key}"),
        Tap("action:delete"),
    )
    return Task("delete mail", "Mail", text, intents, (Gone("mails", mail.key),))


def _song_play(dice: Dice, state: State) -> Task:
    song = _pick(dice, list(state.items("songs")))
    text = dice.pick((f'Play the song "{song.title}" in Music.', f'Listen to "{song.title}" by {song.detail}.'))
    intents = (_start(dice, "Music"), Tap(f"row:songs/{song.key}"), Tap("button:play"))
    return Task("play song", "Music", text, intents, (Flagged("songs", song.key, "playing"),))


def _song_like(dice: Dice, state: State) -> Task:
    song = _pick(dice, [song for song in state.items("songs") if "liked" not in song.flags])
    text = f'Search for "{song.title}" in Music and like the song.'
    intents = (
        _start(dice, "Music"),
        Fill("search", song.title),
        Confirm(),
        Tap(f"row:songs/{song.key}"),
        Tap("action:like"),
    )
    return Task("like song", "Music", text, intents, (Flagged("songs", song.key, "liked"),))


def _song_to_playlist(dice: Dice, state: State) -> Task:
    song = _pick(dice, list(state.items("songs")))
    playlist = dice.pick(state.items("playlists"))
    text = f'Add "{song.title}" to the playlist "{playlist.title}" in Music.'
    intents = (
        _start(dice, "Music"),
        Tap(f"row:songs/{song.key}"),
        Tap("button:add"),
        Tap(f"choice:{playlist.title}"),
    )
    return Task("song to playlist", "Music", text, intents, (Flagged("songs", song.key, f"in {playlist.key}"),))


def _unreachable(dice: Dice, state: State) -> Task:
    apps = [app for app in state.apps if app in words.MISSING_THINGS]
    if not apps:
        raise NoSuchTask
    app = dice.pick(apps)
    intents = (_start(dice, app), Tap("button:retry"))
    checks = (Showing(app),)
    return Task("no service", app, f"{words.MISSING_THINGS[app]}.", intents, checks, status="impossible")


def _other_app(dice: Dice, state: State) -> Task:
    here, there = dice.sample(APPS, 2)
    text = f"Go to the home screen and open {there} from there."
    intents = (GoHome(), Start(there, by_icon=True))
    return Task("home screen", there, text, intents, (Showing(there),), before=(Launch(here),))


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
    on; after a round all are dealt anew.
    """
    cards = sum(map(len, SUITS))
    dice = Dice("kinds", seed, number // cards)
    deck = [template for suit in SUITS for template in dice.shuffled(suit)]
    dealt = [template for hand in range(HANDS) for template in dice.shuffled(deck[hand::HANDS])]
    return dealt[number % cards]

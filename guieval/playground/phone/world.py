"""Furnishes a phone: its look, its apps and their content, all drawn from one :class:`~guieval.playground.phone.dice.Dice`."""

from __future__ import annotations

from guieval.playground.phone import words
from guieval.playground.phone.dice import Dice
from guieval.playground.phone.state import Choice, Colour, Item, Overlay, Size, State, Style, bind
from guieval.playground.phone.transitions import close, say

APPS = ("Settings", "Notes", "Contacts", "Clock", "Shop", "Messages", "Mail", "Music")
"""Apps that work. All others only show that they cannot reach their server."""

ACCENTS: tuple[Colour, ...] = (
    (25, 103, 210),
    (24, 128, 56),
    (176, 40, 96),
    (120, 60, 180),
    (0, 110, 120),
    (190, 70, 10),
    (60, 80, 160),
    (150, 40, 40),
)
WALLPAPERS: tuple[tuple[Colour, Colour], ...] = (
    ((18, 40, 76), (58, 90, 140)),
    ((60, 24, 70), (130, 60, 90)),
    ((14, 60, 56), (50, 110, 90)),
    ((40, 44, 52), (84, 92, 104)),
    ((90, 44, 20), (140, 84, 44)),
    ((24, 30, 60), (70, 44, 110)),
)


def furnish(dice: Dice, size: Size) -> State:
    """A phone of ``size`` (width, height) pixels on its home screen, with its own look and content."""
    style = Style(
        dark=dice.chance(0.35),
        accent=dice.pick(ACCENTS),
        wallpaper=dice.pick(WALLPAPERS),
        rows=dice.uniform(0.94, 1.12),
        text=dice.uniform(0.97, 1.06),
        margin=dice.between(14, 20),
        round_avatars=dice.chance(0.7),
        tabs_on_top=dice.chance(0.3),
    )
    people = _people(dice)
    others = dice.sample(words.ONLINE_APPS, dice.between(6, 11))
    placed = dice.shuffled([*APPS, *others])
    dock, shelf = tuple(placed[:4]), placed[4:]
    first = dice.between(6, 8)
    return State(
        size=size,
        style=style,
        clock=f"{dice.between(7, 21)}:{dice.between(0, 59):02d}",
        date=f"{dice.pick(words.WEEKDAYS)}, {dice.pick(words.MONTHS)} {dice.between(1, 28)}",
        home=(tuple(shelf[:first]), tuple(shelf[first:])),
        dock=dock,
        data={
            "settings": _settings(dice),
            "about": _about(dice),
            "notes": _notes(dice),
            "contacts": people,
            "alarms": _alarms(dice),
            "cities": _cities(dice),
            "products": _products(dice),
            "chats": _chats(dice, people),
            "mails": _mails(dice, people),
            "songs": _songs(dice),
            "playlists": tuple(Item(f"p{i}", name) for i, name in enumerate(dice.sample(words.PLAYLISTS, dice.between(3, 5)))),
        },
        slow=frozenset(name for name in SLOW if dice.chance(0.4)) | {f"{app}:launch" for app in others if dice.chance(0.5)},
        popups=tuple((app, _popup(dice, app)) for app in APPS if dice.chance(0.1)),
    )


SLOW = ("Shop:launch", "Shop:search", "Shop:page", "Mail:launch", "Mail:search", "Music:search", "Music:launch")


def _popup(dice: Dice, app: str) -> Overlay:
    title, text, yes, answer = dice.pick(
        (
            (f"Enjoying {app}?", "Your rating helps others to find us.", "Rate now", "Thank you"),
            ("Turn on notifications?", f"{app} would like to tell you about news.", "Turn on", "Notifications are on"),
            (f"What is new in {app}", "A fresh look, fewer taps and many small fixes.", "Show me", "There is more in the help"),
        )
    )
    return Overlay("dialog", title, (Choice("Not now", (bind(close),)), Choice(yes, (bind(close), bind(say, answer)))), text)


def _flag(name: str, on: bool) -> frozenset[str]:
    return frozenset({name} if on else ())


def _people(dice: Dice) -> tuple[Item, ...]:
    count = dice.between(24, 34)
    names = zip(dice.sample(words.FIRST_NAMES, count), dice.sample(words.LAST_NAMES, count), strict=True)
    people = []
    for index, (first, last) in enumerate(sorted(names)):
        number = f"{dice.between(201, 989)} 555 {dice.between(0, 9999):04d}"
        people.append(Item(f"c{index}", f"{first} {last}", number, f"{first}.{last}@mail.example".lower()))
    return tuple(people)


def _settings(dice: Dice) -> tuple[Item, ...]:
    items: list[Item] = []
    for section, _, names in words.SECTIONS:
        for name in names:
            flags = _flag("on", dice.chance(0.45))
            items.append(Item(f"s{len(items)}", name, group=section, flags=flags))
        for group, name, options in words.CHOICES:
            if group == section:
                items.append(Item(f"s{len(items)}", name, group=section, value=dice.pick(options), options=options))
    return tuple(items)


def _about(dice: Dice) -> tuple[Item, ...]:
    return tuple(Item(f"a{i}", name, value=dice.pick(values)) for i, (name, values) in enumerate(words.ABOUT))


def _notes(dice: Dice) -> tuple[Item, ...]:
    chosen = dice.sample(words.NOTES, dice.between(7, 13))
    return tuple(Item(f"n{i}", title, body=body) for i, (title, body) in enumerate(chosen))


def _alarms(dice: Dice) -> tuple[Item, ...]:
    hours = sorted(dice.sample(range(5, 23), dice.between(4, 7)))
    labels = dice.sample(words.ALARM_LABELS, len(hours))
    return tuple(
        Item(
            f"t{i}",
            f"{hour:02d}:{5 * dice.below(12):02d}",
            labels[i],
            group=dice.pick(words.ALARM_DAYS),
            flags=_flag("on", dice.chance(0.5)),
        )
        for i, hour in enumerate(hours)
    )


def _cities(dice: Dice) -> tuple[Item, ...]:
    shown = frozenset(dice.sample(words.CITIES, 3))
    return tuple(
        Item(f"w{i}", city, f"{dice.between(0, 23)}:{dice.between(0, 59):02d}", flags=_flag("shown", city in shown))
        for i, city in enumerate(words.CITIES)
    )


def _products(dice: Dice) -> tuple[Item, ...]:
    items: list[Item] = []
    for noun in dice.shuffled(words.PRODUCTS):
        for brand in dice.sample(words.BRANDS, dice.between(1, 3)):
            price = f"${dice.between(8, 180)}.{dice.pick(('00', '50', '90', '99'))}"
            flags = _flag("sold out", dice.chance(0.15))
            items.append(Item(f"g{len(items)}", f"{brand} {noun}", price, dice.pick(words.PRODUCT_TEXTS), noun, flags=flags))
    return tuple(dice.shuffled(items))


def _chats(dice: Dice, people: tuple[Item, ...]) -> tuple[Item, ...]:
    """A conversation with every contact, in order of time; those without messages are not listed."""
    talking = dice.between(9, 14)
    chats = []
    for index, person in enumerate(dice.shuffled(people)):
        lines = dice.sample(words.CHAT_LINES, dice.between(2, 9)) if index < talking else []
        marked = tuple(("<" if dice.chance(0.6) else ">") + line for line in lines)
        chats.append(Item(person.key, person.title, lines=marked))
    return tuple(chats)


def _mails(dice: Dice, people: tuple[Item, ...]) -> tuple[Item, ...]:
    mails: list[Item] = []
    chosen = dice.sample(words.SUBJECTS, dice.between(12, 18))
    for subject, body in [dice.pick(words.INCOMING_SUBJECTS), *chosen]:
        flags = {flag for flag, share in (("unread", 0.4), ("starred", 0.2)) if dice.chance(share)}
        if not mails:
            flags = {"unread", "incoming"}
        mails.append(Item(f"m{len(mails)}", subject, dice.pick(people).title, body, "inbox", flags=frozenset(flags)))
    return tuple(mails)


def _songs(dice: Dice) -> tuple[Item, ...]:
    titles = dice.sample(words.SONGS, dice.between(18, 24))
    return tuple(
        Item(f"u{i}", title, dice.pick(words.ARTISTS), flags=_flag("liked", dice.chance(0.25)))
        for i, title in enumerate(sorted(titles))
    )

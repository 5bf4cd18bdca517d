"""The apps: what each page shows for a state of the phone, and the effects of touching its parts. No places, no pixels."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from guieval.playground.phone import transitions as do
from guieval.playground.phone import widgets as ui
from guieval.playground.phone import words
from guieval.playground.phone.state import Choice, Effect, Item, Overlay, State, View, bind
from guieval.playground.phone.widgets import Page, Widget

SYMBOLS = {
    "Settings": "gear",
    "Notes": "note",
    "Contacts": "person",
    "Clock": "clock",
    "Shop": "bag",
    "Messages": "bubble",
    "Mail": "mail",
    "Music": "music",
}


TABS = {
    "Clock": (("Alarm", "bell"), ("World clock", "globe"), ("Timer", "clock")),
    "Shop": (("Store", "house"), ("Wishlist", "heart"), ("Cart", "bag")),
    "Music": (("Songs", "music"), ("Liked", "heart"), ("Playlists", "list")),
}


def page_of(state: State, view: View) -> Page:
    """The page that ``view`` shows."""
    build = PAGES.get((view.app, view.page))
    return build(state, view) if build else _unreachable(view)


def icons(apps: Iterable[str]) -> tuple[Widget, ...]:
    """The icons of ``apps`` on the home screen."""
    return tuple(Widget("icon", f"icon:{app}", app, symbol=SYMBOLS.get(app, ""), tap=(bind(do.launch, app),)) for app in apps)


def _matches(query: str, *texts: str) -> bool:
    text = " ".join(texts).lower()
    return all(word in text for word in query.lower().split())


def _menu_choice(label: str, *effects: Effect) -> Choice:
    return Choice(label, (bind(do.close), *effects))


def _confirm(question: str, text: str, yes: str, *effects: Effect) -> Effect:
    return bind(do.show, Overlay("dialog", question, (_menu_choice("Cancel"), _menu_choice(yes, *effects)), text))


def _settings_main(state: State, view: View) -> Page:
    query = view.text("search")
    if query:
        matching = [item for item in state.items("settings") if _matches(query, item.title)]
        body = tuple(
            ui.row("settings", item, item.group, tap=(bind(do.go, "section", item.group),)) for item in matching
        ) or ui.nothing("No results", f"Nothing matches {query}")
    else:
        body = (
            *(
                Widget("row", f"section:{name}", name, subtitle, tap=(bind(do.go, "section", name),))
                for name, subtitle, _ in words.SECTIONS
            ),
            Widget("row", "section:About phone", "About phone", "Version, device name", tap=(bind(do.go, "about"),)),
        )
    return Page("Settings", body, pinned=ui.search(view, "Search settings"), live_search=True)


def _settings_section(state: State, view: View) -> Page:
    rows = (_setting(item) for item in state.items("settings") if item.group == view.item)
    return Page(view.item, (Widget("header", label="Options"), *rows))


def _setting(item: Item) -> Widget:
    if not item.options:
        on = "on" in item.flags
        return ui.row("settings", item, on=on, tap=(bind(do.mark, "settings", item.key, "on", not on),))
    choices = tuple(
        Choice(option, (bind(do.choose, "settings", item.key, option), bind(do.close)), option == item.value)
        for option in item.options
    )
    return ui.row("settings", item, item.value, tap=(bind(do.show, Overlay("options", item.title, choices)),))


def _settings_about(state: State, view: View) -> Page:
    rows = (ui.row("about", item, item.value, tap=(bind(do.say, "Copied to clipboard"),)) for item in state.items("about"))
    return Page("About phone", (Widget("header", label="This device"), *rows))


def _notes_main(state: State, view: View) -> Page:
    notes = [note for note in state.items("notes") if _matches(view.text("search"), note.title, note.body)]
    notes.sort(key=lambda note: "pinned" not in note.flags)
    return Page(
        "Notes",
        tuple(map(_note_row, notes)) or ui.nothing("No notes found"),
        pinned=ui.search(view, "Search notes"),
        fab=ui.fab("New note", "edit"),
        live_search=True,
    )


def _note_row(note: Item) -> Widget:
    pinned = "pinned" in note.flags
    delete = _confirm("Delete this note?", f"{note.title} will be removed.", "Delete", bind(do.remove, "notes", note.key))
    choices = (
        _menu_choice("Unpin" if pinned else "Pin to top", bind(do.mark, "notes", note.key, "pinned", not pinned)),
        _menu_choice("Share", bind(do.say, "No app can receive this note")),
        Choice("Delete", (delete,)),
    )
    edit = bind(do.go, "edit", note.key, (("Title", note.title), ("Note", note.body)))
    first_line = note.body.partition("\n")[0]
    menu = Overlay("sheet", note.title, choices)
    return ui.row("notes", note, first_line, symbol="pin" if pinned else "", tap=(edit,), hold=menu)


def _notes_edit(state: State, view: View) -> Page:
    fields = (ui.field(view, "Title", hint="Title"), ui.field(view, "Note", hint="Write something", lines=6))
    title = "Edit note" if view.item else "New note"
    return Page(title, fields, actions=(ui.action("save", "Save", "", bind(do.save_note)),))


def _contacts_main(state: State, view: View) -> Page:
    query = view.text("search")
    body: list[Widget] = []
    letter = ""
    for person in state.items("contacts"):
        if not _matches(query, person.title):
            continue
        if person.title[0].upper() != letter:
            letter = person.title[0].upper()
            body.append(Widget("header", label=letter))
        body.append(ui.row("contacts", person, page="person", symbol=f"avatar:{person.title}"))
    return Page(
        "Contacts",
        tuple(body) or ui.nothing("No contacts found", f"Nobody matches {query}"),
        pinned=ui.search(view, "Search contacts"),
        fab=ui.fab("New contact", "new"),
        live_search=True,
    )


def _contacts_person(state: State, view: View) -> Page:
    person = state.item("contacts", view.item)
    remove = bind(do.remove, "contacts", person.key)
    delete = _confirm("Delete this contact?", f"{person.title} will be removed.", "Delete", remove, bind(do.back))
    rows = (
        ("phone", person.detail or "No number", "Mobile", "phone", "Number copied"),
        ("email", person.body or "No address", "Email", "mail", "Address copied"),
        ("ringtone", "Ringtone", "Default", "music", "Ringtone is set by the system"),
    )
    body = (
        Widget("art", symbol=f"avatar:{person.title}"),
        Widget("big", label=person.title),
        *(
            Widget("row", f"row:{name}", label, detail, symbol=symbol, tap=(bind(do.say, message),))
            for name, label, detail, symbol, message in rows
        ),
    )
    labels = ("Add to favourites", "Remove from favourites")
    messages = ("Added to favourites", "Removed from favourites")
    star = ui.toggle("favourite", "contacts", person, "favourite", "star", labels, messages)
    return Page("Contact", body, actions=(star, ui.action("delete", "Delete contact", "trash", delete)))


def _contacts_new(state: State, view: View) -> Page:
    fields = tuple(ui.field(view, name) for name in ("First name", "Last name", "Phone", "Email"))
    return Page("New contact", fields, actions=(ui.action("save", "Save", "", bind(do.save_contact)),))


def _clock_main(state: State, view: View) -> Page:
    tabs = ui.tabs(view, TABS["Clock"])
    if view.tab == "World clock":
        cities = (city for city in state.items("cities") if "shown" in city.flags)
        rows = tuple(ui.row("cities", city, "Local time", trailing=city.detail) for city in cities)
        return Page("Clock", rows, tabs=tabs, fab=ui.fab("Add city", "cities"))
    if view.tab == "Timer":
        presets = (
            ui.button(f"timer:{minutes}", f"Start {minutes} minutes", bind(do.say, f"Timer set for {minutes} minutes"))
            for minutes in (3, 5, 10, 20)
        )
        return Page("Clock", (Widget("big", label="00:00:00"), *presets), tabs=tabs)
    rows = tuple(map(_alarm, state.items("alarms"))) or ui.nothing("No alarms")
    return Page("Clock", rows, tabs=tabs, fab=ui.fab("Add alarm", "alarm"))


def _alarm(alarm: Item) -> Widget:
    on = "on" in alarm.flags
    flip = bind(do.mark, "alarms", alarm.key, "on", not on)
    delete = _menu_choice("Delete", bind(do.remove, "alarms", alarm.key), bind(do.say, "Alarm deleted"))
    menu = Overlay("sheet", f"Alarm {alarm.title}", (_menu_choice("Turn off" if on else "Turn on", flip), delete))
    return ui.row("alarms", alarm, ", ".join(filter(None, (alarm.detail, alarm.group))), on=on, tap=(flip,), hold=menu)


def _clock_alarm(state: State, view: View) -> Page:
    fields = (ui.field(view, "Time", hint="HH:MM"), ui.field(view, "Label", hint="Optional"))
    return Page("New alarm", fields, actions=(ui.action("save", "Save", "", bind(do.save_alarm)),))


def _clock_cities(state: State, view: View) -> Page:
    query = view.text("search")
    rows = tuple(
        ui.row("cities", city, tap=(bind(do.mark, "cities", city.key, "shown", True), bind(do.back)))
        for city in state.items("cities")
        if "shown" not in city.flags and _matches(query, city.title)
    )
    return Page("Add city", rows or ui.nothing("No city found"), pinned=ui.search(view, "Search for a city"), live_search=True)


def _shop_main(state: State, view: View) -> Page:
    products = state.items("products")
    tabs = ui.tabs(view, TABS["Shop"])
    if view.tab == "Wishlist":
        saved = tuple(_product_row(item) for item in products if "wished" in item.flags)
        return Page("Wishlist", saved or ui.nothing("Your wishlist is empty"), tabs=tabs)
    if view.tab == "Cart":
        rows = tuple(_product_row(item) for item in products if "cart" in item.flags)
        if not rows:
            return Page("Cart", ui.nothing("Your cart is empty"), tabs=tabs)
        buy = _confirm("Place this order?", "You pay on delivery.", "Place order", bind(do.order), bind(do.go, "ordered"))
        return Page("Cart", (*rows, ui.button("button:checkout", "Check out", buy)), tabs=tabs)
    pinned = ui.search(view, "Search products")
    if view.query:
        rows = tuple(_product_row(item) for item in products if _matches(view.query, item.title))
        body = rows or ui.nothing("No products found", f"Nothing matches {view.query}")
        return Page("Shop", (Widget("header", label=f"Results for {view.query}"), *body), pinned=pinned)
    tiles = (replace(_product_row(item), role="tile", detail=item.detail, symbol=item.group) for item in products[:16])
    return Page("Shop", (Widget("header", label="Today's offers"), *tiles), pinned=pinned, tabs=tabs)


def _product_row(item: Item) -> Widget:
    detail = "Out of stock" if "sold out" in item.flags else item.detail
    return ui.row("products", item, detail, page="product", symbol=f"thumb:{item.group}")


def _shop_product(state: State, view: View) -> Page:
    item = state.item("products", view.item)
    if "sold out" in item.flags:
        buy = Widget("text", label="Out of stock. This product cannot be ordered at the moment.")
    elif "cart" in item.flags:
        buy = Widget("text", label="This product is in your cart.")
    else:
        add = bind(do.mark, "products", item.key, "cart", True)
        buy = ui.button("button:cart", "Add to cart", add, bind(do.say, "Added to cart"))
    labels = ("Add to wishlist", "Remove from wishlist")
    messages = ("Saved to wishlist", "Removed from wishlist")
    heart = ui.toggle("wish", "products", item, "wished", "heart", labels, messages)
    body = (
        Widget("art", symbol=item.group),
        Widget("big", label=item.title, detail=item.detail),
        buy,
        Widget("header", label="Description"),
        Widget("text", label=item.body),
    )
    return Page("Product", body, actions=(heart,))


def _shop_ordered(state: State, view: View) -> Page:
    return Page("Order", ui.nothing("Order placed", "Thank you. We will write when it ships."))


def _messages_main(state: State, view: View) -> Page:
    chats = (chat for chat in state.items("chats") if chat.lines and "archived" not in chat.flags)
    rows = tuple(map(_chat_row, chats)) or ui.nothing("No conversations")
    return Page("Messages", rows, fab=ui.fab("Start chat", "pick", "bubble"))


def _chat_row(chat: Item) -> Widget:
    muted = "muted" in chat.flags
    archive = bind(do.mark, "chats", chat.key, "archived", True)
    choices = (
        _menu_choice("Archive", archive, bind(do.say, "Conversation archived")),
        _menu_choice("Unmute" if muted else "Mute", bind(do.mark, "chats", chat.key, "muted", not muted)),
        Choice("Delete", (_confirm("Delete this conversation?", "", "Delete", bind(do.remove, "chats", chat.key)),)),
    )
    return ui.row(
        "chats",
        chat,
        chat.lines[-1][1:],
        page="chat",
        trailing="Muted" if muted else "",
        symbol=f"avatar:{chat.title}",
        hold=Overlay("sheet", chat.title, choices),
    )


def _messages_pick(state: State, view: View) -> Page:
    query = view.text("search")
    known = {chat.key for chat in state.items("chats")}
    rows = tuple(
        ui.row("contacts", person, person.detail, page="chat", symbol=f"avatar:{person.title}")
        for person in state.items("contacts")
        if person.key in known and _matches(query, person.title)
    )
    return Page("New chat", rows or ui.nothing("Nobody found"), pinned=ui.search(view, "Search people"), live_search=True)


def _messages_chat(state: State, view: View) -> Page:
    chat = state.item("chats", view.item)
    body = tuple(Widget("received" if line[0] == "<" else "sent", label=line[1:]) for line in chat.lines)
    field = ui.field(view, "message", "Message", hint="Text message")
    send = ui.action("send", "Send", "send", bind(do.send_message))
    return Page(chat.title, body or ui.nothing("No messages yet"), footer=(field, send), from_end=bool(body))


def _mail_main(state: State, view: View) -> Page:
    rows = tuple(
        ui.row(
            "mails",
            mail,
            mail.detail,
            trailing="New" if "unread" in mail.flags else "",
            symbol=f"avatar:{mail.detail}",
            tap=(bind(do.mark, "mails", mail.key, "unread", False), bind(do.go, "mail", mail.key)),
        )
        for mail in state.items("mails")
        if mail.group == "inbox" and not mail.flags & {"incoming", "archived"} and _matches(view.query, mail.title, mail.detail)
    )
    return Page(
        "Inbox",
        rows or ui.nothing("No mail found"),
        pinned=ui.search(view, "Search mail"),
        fab=ui.fab("Compose", "compose", "edit"),
        refreshes=not view.query,
    )


def _mail_mail(state: State, view: View) -> Page:
    mail = state.item("mails", view.item)
    archive = (bind(do.mark, "mails", mail.key, "archived", True), bind(do.back), bind(do.say, "Mail archived"))
    delete = (bind(do.back), bind(do.remove, "mails", mail.key), bind(do.say, "Mail deleted"))
    actions = (
        ui.toggle("star", "mails", mail, "starred", "star", ("Add star", "Remove star")),
        ui.action("archive", "Archive", "archive", *archive),
        ui.action("delete", "Delete mail", "trash", *delete),
    )
    reply = bind(do.go, "compose", "", (("To", mail.detail), ("Subject", f"Re: {mail.title}")))
    body = (
        Widget("big", label=mail.title),
        Widget("row", "row:sender", mail.detail, "to me", symbol=f"avatar:{mail.detail}"),
        Widget("text", label=mail.body),
        ui.button("button:reply", "Reply", reply),
    )
    return Page("Mail", body, actions=actions)


def _mail_compose(state: State, view: View) -> Page:
    fields = (ui.field(view, "To"), ui.field(view, "Subject"), ui.field(view, "Message", hint="Write your mail", lines=4))
    return Page("New mail", fields, actions=(ui.action("send", "Send", "send", bind(do.send_mail)),))


def _music_main(state: State, view: View) -> Page:
    tabs = ui.tabs(view, TABS["Music"])
    if view.tab == "Playlists":
        return Page("Music", tuple(_playlist_row(state, item) for item in state.items("playlists")), tabs=tabs)
    songs = [song for song in state.items("songs") if view.tab != "Liked" or "liked" in song.flags]
    pinned = ui.search(view, "Search songs") if view.tab in ("", "Songs") else ()
    if view.query:
        songs = [song for song in songs if _matches(view.query, song.title, song.detail)]
        rows = tuple(map(_song_row, songs)) or ui.nothing("No songs found", f"Nothing matches {view.query}")
        return Page("Music", rows, pinned=pinned)
    return Page("Music", tuple(map(_song_row, songs)) or ui.nothing("Nothing here yet"), tabs=tabs, pinned=pinned)


def _song_row(song: Item) -> Widget:
    trailing = "Playing" if "playing" in song.flags else ""
    return ui.row("songs", song, song.detail, page="song", trailing=trailing, symbol="thumb:music")


def _playlist_row(state: State, playlist: Item) -> Widget:
    count = sum(f"in {playlist.key}" in song.flags for song in state.items("songs"))
    return ui.row("playlists", playlist, f"{count} song{'' if count == 1 else 's'}", page="playlist", symbol="thumb:list")


def _music_playlist(state: State, view: View) -> Page:
    rows = tuple(_song_row(song) for song in state.items("songs") if f"in {view.item}" in song.flags)
    return Page(state.item("playlists", view.item).title, rows or ui.nothing("No songs in this playlist"))


def _music_song(state: State, view: View) -> Page:
    song = state.item("songs", view.item)
    playing = "playing" in song.flags
    heart = ui.toggle("like", "songs", song, "liked", "heart", ("Like", "Unlike"))
    choices = tuple(_playlist_choice(song, playlist) for playlist in state.items("playlists"))
    play = bind(do.mark, "songs", song.key, "playing", not playing)
    body = (
        Widget("art", symbol="music"),
        Widget("big", label=song.title, detail=song.detail),
        ui.button("button:play", "Pause" if playing else "Play", play),
        ui.button("button:add", "Add to playlist", bind(do.show, Overlay("options", "Choose a playlist", choices))),
    )
    return Page("Now playing", body, actions=(heart,))


def _playlist_choice(song: Item, playlist: Item) -> Choice:
    flag = f"in {playlist.key}"
    add = bind(do.mark, "songs", song.key, flag, True)
    return Choice(playlist.title, (add, bind(do.close), bind(do.say, f"Added to {playlist.title}")), flag in song.flags)


def _unreachable(view: View) -> Page:
    empty = ui.nothing("Service unavailable", f"{view.app} cannot reach its server.")
    return Page(view.app, (*empty, ui.button("button:retry", "Try again", bind(do.reload))))


PAGES: dict[tuple[str, str], Callable[[State, View], Page]] = {
    ("Settings", "main"): _settings_main,
    ("Settings", "section"): _settings_section,
    ("Settings", "about"): _settings_about,
    ("Notes", "main"): _notes_main,
    ("Notes", "edit"): _notes_edit,
    ("Contacts", "main"): _contacts_main,
    ("Contacts", "person"): _contacts_person,
    ("Contacts", "new"): _contacts_new,
    ("Clock", "main"): _clock_main,
    ("Clock", "alarm"): _clock_alarm,
    ("Clock", "cities"): _clock_cities,
    ("Shop", "main"): _shop_main,
    ("Shop", "product"): _shop_product,
    ("Shop", "ordered"): _shop_ordered,
    ("Messages", "main"): _messages_main,
    ("Messages", "pick"): _messages_pick,
    ("Messages", "chat"): _messages_chat,
    ("Mail", "main"): _mail_main,
    ("Mail", "mail"): _mail_mail,
    ("Mail", "compose"): _mail_compose,
    ("Music", "main"): _music_main,
    ("Music", "song"): _music_song,
    ("Music", "playlist"): _music_playlist,
}

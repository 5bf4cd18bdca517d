"""The apps: what each page shows for a state of the phone, and what touching its parts does. No places, no pixels."""

from __future__ import annotations

from collections.abc import Callable

from guieval.testing.phone import words
from guieval.testing.phone.state import (
    Back,
    Choice,
    Choose,
    Close,
    Effect,
    Effects,
    Focus,
    Go,
    Item,
    Launch,
    Mark,
    Order,
    Overlay,
    Reload,
    Remove,
    Save,
    Say,
    Show,
    State,
    Tab,
    View,
)
from guieval.testing.phone.widgets import Page, Widget

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


def page_of(state: State, view: View) -> Page:
    """The page that ``view`` shows."""
    build = PAGES.get((view.app, view.page))
    return build(state, view) if build else _unreachable(view)


def home_icons(state: State) -> tuple[Widget, ...]:
    """The icons of the home screen's page in front."""
    return tuple(_icon(app) for app in state.home[state.home_page])


def dock_icons(state: State) -> tuple[Widget, ...]:
    """The icons that stay at the home screen's lower edge."""
    return tuple(_icon(app) for app in state.dock)


def _icon(app: str) -> Widget:
    return Widget("icon", f"icon:{app}", app, symbol=SYMBOLS.get(app, ""), tap=(Launch(app),))


def _field(view: View, name: str, *, hint: str = "", lines: int = 1) -> Widget:
    return Widget(
        "field",
        f"field:{name}",
        name,
        detail=view.text(name),
        hint=hint,
        on=view.focus == name,
        tap=(Focus(name),),
        lines=lines,
    )


def _search(view: View, hint: str) -> Widget:
    return Widget(
        "search",
        "field:search",
        "Search",
        detail=view.text("search"),
        hint=hint,
        symbol="search",
        on=view.focus == "search",
        tap=(Focus("search"),),
    )


def _action(name: str, label: str, symbol: str, *effects: Effect) -> Widget:
    return Widget("action", f"action:{name}", label, symbol=symbol, tap=effects)


def _tabs(view: View, names: tuple[tuple[str, str], ...]) -> tuple[Widget, ...]:
    present = view.tab or names[0][0]
    return tuple(
        Widget("tab", f"tab:{name}", name, symbol=symbol, on=name == present, tap=(Tab(name),)) for name, symbol in names
    )


def _nothing(text: str, hint: str = "") -> Widget:
    return Widget("empty", label=text, detail=hint)


def _matches(query: str, *texts: str) -> bool:
    words_there = " ".join(texts).lower()
    return all(word in words_there for word in query.lower().split())


def _switch(item: Item) -> Widget:
    on = "on" in item.flags
    return Widget("row", f"row:settings/{item.key}", item.title, on=on, tap=(Mark("settings", item.key, "on", not on),))


def _confirm(question: str, text: str, yes: str, *effects: Effect) -> Show:
    return Show(Overlay("dialog", question, (Choice("Cancel", (Close(),)), Choice(yes, (Close(), *effects))), text))


# Settings


def _settings_main(state: State, view: View) -> Page:
    query = view.text("search")
    if query:
        found = [item for item in state.items("settings") if _matches(query, item.title)]
        body = tuple(
            Widget(
                "row",
                f"row:settings/{item.key}",
                item.title,
                item.group,
                tap=(Go("section", item.group),),
            )
            for item in found
        ) or (_nothing("No results", f"Nothing matches {query}"),)
    else:
        body = (
            *(
                Widget("row", f"section:{name}", name, subtitle, tap=(Go("section", name),))
                for name, subtitle, _ in words.SECTIONS
            ),
            Widget("row", "section:About phone", "About phone", "Version, device name", tap=(Go("about"),)),
        )
    return Page("Settings", body, back=False, pinned=(_search(view, "Search settings"),), live_search=True)


def _settings_section(state: State, view: View) -> Page:
    body = [Widget("header", label="Options")]
    for item in state.items("settings"):
        if item.group != view.item:
            continue
        if not item.options:
            body.append(_switch(item))
            continue
        choices = tuple(
            Choice(option, (Choose("settings", item.key, option), Close()), option == item.value) for option in item.options
        )
        show = Show(Overlay("options", item.title, choices))
        body.append(Widget("row", f"row:settings/{item.key}", item.title, item.value, tap=(show,)))
    return Page(view.item, tuple(body))


def _settings_about(state: State, view: View) -> Page:
    body = tuple(
        Widget("row", f"row:about/{item.key}", item.title, item.value, tap=(Say("Copied to clipboard"),))
        for item in state.items("about")
    )
    return Page("About phone", (Widget("header", label="This device"), *body))


# Notes


def _notes_main(state: State, view: View) -> Page:
    query = view.text("search")
    found = [note for note in state.items("notes") if _matches(query, note.title, note.body)]
    found.sort(key=lambda note: "pinned" not in note.flags)
    rows = tuple(
        Widget(
            "row",
            f"row:notes/{note.key}",
            note.title,
            note.body.partition("\n")[0],
            symbol="pin" if "pinned" in note.flags else "",
            tap=(Go("edit", note.key, (("Title", note.title), ("Note", note.body))),),
            hold=(Show(_note_menu(note)),),
        )
        for note in found
    )
    return Page(
        "Notes",
        rows or (_nothing("No notes found"),),
        back=False,
        pinned=(_search(view, "Search notes"),),
        fab=Widget("fab", "fab", "New note", symbol="add", tap=(Go("edit"),)),
        live_search=True,
    )


def _note_menu(note: Item) -> Overlay:
    pinned = "pinned" in note.flags
    delete = _confirm("Delete this note?", f"{note.title} will be removed.", "Delete", Remove("notes", note.key))
    return Overlay(
        "sheet",
        note.title,
        (
            Choice("Unpin" if pinned else "Pin to top", (Close(), Mark("notes", note.key, "pinned", not pinned))),
            Choice("Share", (Close(), Say("No app can receive this note"))),
            Choice("Delete", (delete,)),
        ),
    )


def _notes_edit(state: State, view: View) -> Page:
    fields = (_field(view, "Title", hint="Title"), _field(view, "Note", hint="Write something", lines=6))
    title = "Edit note" if view.item else "New note"
    return Page(title, fields, actions=(_action("save", "Save", "", Save("note")),))


# Contacts


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
        body.append(
            Widget(
                "row",
                f"row:contacts/{person.key}",
                person.title,
                symbol=f"avatar:{person.title}",
                tap=(Go("person", person.key),),
            )
        )
    return Page(
        "Contacts",
        tuple(body) or (_nothing("No contacts found", f"Nobody matches {query}"),),
        back=False,
        pinned=(_search(view, "Search contacts"),),
        fab=Widget("fab", "fab", "New contact", symbol="add", tap=(Go("new"),)),
        live_search=True,
    )


def _contacts_person(state: State, view: View) -> Page:
    person = state.item("contacts", view.item)
    favourite = "favourite" in person.flags
    delete = _confirm(
        "Delete this contact?", f"{person.title} will be removed.", "Delete", Remove("contacts", person.key), Back()
    )
    body = (
        Widget("art", symbol=f"avatar:{person.title}"),
        Widget("big", label=person.title),
        Widget("row", "row:phone", person.detail or "No number", "Mobile", symbol="phone", tap=(Say("Number copied"),)),
        Widget("row", "row:email", person.body or "No address", "Email", symbol="mail", tap=(Say("Address copied"),)),
        Widget("row", "row:ringtone", "Ringtone", "Default", symbol="music", tap=(Say("Ringtone is set by the system"),)),
    )
    star = _action(
        "favourite",
        "Remove from favourites" if favourite else "Add to favourites",
        "star" if favourite else "star outline",
        Mark("contacts", person.key, "favourite", not favourite),
        Say("Removed from favourites" if favourite else "Added to favourites"),
    )
    return Page("Contact", body, actions=(star, _action("delete", "Delete contact", "trash", delete)))


def _contacts_new(state: State, view: View) -> Page:
    fields = tuple(_field(view, name) for name in ("First name", "Last name", "Phone", "Email"))
    return Page("New contact", fields, actions=(_action("save", "Save", "", Save("contact")),))


# Clock


CLOCK_TABS = (("Alarm", "bell"), ("World clock", "globe"), ("Timer", "clock"))


def _clock_main(state: State, view: View) -> Page:
    tabs = _tabs(view, CLOCK_TABS)
    if view.tab == "World clock":
        shown = tuple(
            Widget("row", f"row:cities/{city.key}", city.title, "Local time", trailing=city.detail)
            for city in state.items("cities")
            if "shown" in city.flags
        )
        add = Widget("fab", "fab", "Add city", symbol="add", tap=(Go("cities"),))
        return Page("Clock", shown, back=False, tabs=tabs, fab=add)
    if view.tab == "Timer":
        presets = tuple(
            Widget("button", f"timer:{minutes}", f"Start {minutes} minutes", tap=(Say(f"Timer set for {minutes} minutes"),))
            for minutes in (3, 5, 10, 20)
        )
        return Page("Clock", (Widget("big", label="00:00:00"), *presets), back=False, tabs=tabs)
    rows = tuple(_alarm(alarm) for alarm in state.items("alarms"))
    add = Widget("fab", "fab", "Add alarm", symbol="add", tap=(Go("alarm"),))
    return Page("Clock", rows or (_nothing("No alarms"),), back=False, tabs=tabs, fab=add)


def _alarm(alarm: Item) -> Widget:
    on = "on" in alarm.flags
    flip = Mark("alarms", alarm.key, "on", not on)
    menu = Overlay(
        "sheet",
        f"Alarm {alarm.title}",
        (
            Choice("Turn off" if on else "Turn on", (Close(), flip)),
            Choice("Delete", (Close(), Remove("alarms", alarm.key), Say("Alarm deleted"))),
        ),
    )
    detail = ", ".join(part for part in (alarm.detail, alarm.group) if part)
    return Widget("row", f"row:alarms/{alarm.key}", alarm.title, detail, on=on, tap=(flip,), hold=(Show(menu),))


def _clock_alarm(state: State, view: View) -> Page:
    fields = (_field(view, "Time", hint="HH:MM"), _field(view, "Label", hint="Optional"))
    return Page("New alarm", fields, actions=(_action("save", "Save", "", Save("alarm")),))


def _clock_cities(state: State, view: View) -> Page:
    query = view.text("search")
    rows = tuple(
        Widget("row", f"row:cities/{city.key}", city.title, tap=(Mark("cities", city.key, "shown", True), Back()))
        for city in state.items("cities")
        if "shown" not in city.flags and _matches(query, city.title)
    )
    pinned = (_search(view, "Search for a city"),)
    return Page("Add city", rows or (_nothing("No city found"),), pinned=pinned, live_search=True)


# Shop


SHOP_TABS = (("Store", "house"), ("Wishlist", "heart"), ("Cart", "bag"))


def _shop_main(state: State, view: View) -> Page:
    products = state.items("products")
    tabs = _tabs(view, SHOP_TABS)
    if view.tab == "Wishlist":
        saved = tuple(_product_row(item) for item in products if "wished" in item.flags)
        return Page("Wishlist", saved or (_nothing("Your wishlist is empty"),), back=False, tabs=tabs)
    if view.tab == "Cart":
        rows = tuple(_product_row(item) for item in products if "cart" in item.flags)
        if not rows:
            return Page("Cart", (_nothing("Your cart is empty"),), back=False, tabs=tabs)
        buy = _confirm("Place this order?", "You pay on delivery.", "Place order", Order(), Go("ordered"))
        return Page("Cart", (*rows, Widget("button", "button:checkout", "Check out", tap=(buy,))), back=False, tabs=tabs)
    pinned = (_search(view, "Search products"),)
    if view.query:
        rows = tuple(_product_row(item) for item in products if _matches(view.query, item.title))
        body = rows or (_nothing("No products found", f"Nothing matches {view.query}"),)
        return Page("Shop", (Widget("header", label=f"Results for {view.query}"), *body), pinned=pinned)
    tiles = tuple(
        Widget("tile", f"row:products/{item.key}", item.title, item.detail, symbol=item.group, tap=(Go("product", item.key),))
        for item in products[:16]
    )
    return Page("Shop", (Widget("header", label="Today's offers"), *tiles), back=False, pinned=pinned, tabs=tabs)


def _product_row(item: Item) -> Widget:
    return Widget(
        "row",
        f"row:products/{item.key}",
        item.title,
        "Out of stock" if "sold out" in item.flags else item.detail,
        symbol=f"thumb:{item.group}",
        tap=(Go("product", item.key),),
    )


def _shop_product(state: State, view: View) -> Page:
    item = state.item("products", view.item)
    wished = "wished" in item.flags
    if "sold out" in item.flags:
        buy = Widget("text", label="Out of stock. This product cannot be ordered at the moment.")
    elif "cart" in item.flags:
        buy = Widget("text", label="This product is in your cart.")
    else:
        effects: Effects = (Mark("products", item.key, "cart", True), Say("Added to cart"))
        buy = Widget("button", "button:cart", "Add to cart", tap=effects)
    heart = _action(
        "wish",
        "Remove from wishlist" if wished else "Add to wishlist",
        "heart" if wished else "heart outline",
        Mark("products", item.key, "wished", not wished),
        Say("Removed from wishlist" if wished else "Saved to wishlist"),
    )
    body = (
        Widget("art", symbol=item.group),
        Widget("big", label=item.title, detail=item.detail),
        buy,
        Widget("header", label="Description"),
        Widget("text", label=item.body),
    )
    return Page("Product", body, actions=(heart,))


def _shop_ordered(state: State, view: View) -> Page:
    return Page("Order", (_nothing("Order placed", "Thank you. We will write when it ships."),))


# Messages


def _messages_main(state: State, view: View) -> Page:
    def row(chat: Item) -> Widget:
        return Widget(
            "row",
            f"row:chats/{chat.key}",
            chat.title,
            chat.lines[-1][1:] if chat.lines else "",
            trailing="Muted" if "muted" in chat.flags else "",
            symbol=f"avatar:{chat.title}",
            tap=(Go("chat", chat.key),),
            hold=(Show(_chat_menu(chat)),),
        )

    rows = tuple(row(chat) for chat in state.items("chats") if chat.lines and "archived" not in chat.flags)
    fab = Widget("fab", "fab", "Start chat", symbol="bubble", tap=(Go("pick"),))
    return Page("Messages", rows or (_nothing("No conversations"),), back=False, fab=fab)


def _chat_menu(chat: Item) -> Overlay:
    muted = "muted" in chat.flags
    return Overlay(
        "sheet",
        chat.title,
        (
            Choice("Archive", (Close(), Mark("chats", chat.key, "archived", True), Say("Conversation archived"))),
            Choice("Unmute" if muted else "Mute", (Close(), Mark("chats", chat.key, "muted", not muted))),
            Choice("Delete", (_confirm("Delete this conversation?", "", "Delete", Remove("chats", chat.key)),)),
        ),
    )


def _messages_pick(state: State, view: View) -> Page:
    query = view.text("search")
    known = {chat.key for chat in state.items("chats")}
    rows = tuple(
        Widget(
            "row",
            f"row:contacts/{person.key}",
            person.title,
            person.detail,
            symbol=f"avatar:{person.title}",
            tap=(Go("chat", person.key),),
        )
        for person in state.items("contacts")
        if person.key in known and _matches(query, person.title)
    )
    pinned = (_search(view, "Search people"),)
    return Page("New chat", rows or (_nothing("Nobody found"),), pinned=pinned, live_search=True)


def _messages_chat(state: State, view: View) -> Page:
    chat = state.item("chats", view.item)
    body = tuple(Widget("received" if line[0] == "<" else "sent", label=line[1:]) for line in chat.lines)
    field = Widget(
        "field",
        "field:message",
        "Message",
        detail=view.text("message"),
        hint="Text message",
        on=view.focus == "message",
        tap=(Focus("message"),),
    )
    send = _action("send", "Send", "send", Save("message"))
    return Page(chat.title, body or (_nothing("No messages yet"),), footer=(field, send), from_end=bool(body))


# Mail


def _mail_main(state: State, view: View) -> Page:
    def shown(mail: Item) -> bool:
        return mail.group == "inbox" and not mail.flags & {"incoming", "archived"}

    rows = tuple(
        Widget(
            "row",
            f"row:mails/{mail.key}",
            mail.title,
            mail.detail,
            trailing="New" if "unread" in mail.flags else "",
            symbol=f"avatar:{mail.detail}",
            tap=(Mark("mails", mail.key, "unread", False), Go("mail", mail.key)),
        )
        for mail in state.items("mails")
        if shown(mail) and _matches(view.query, mail.title, mail.detail)
    )
    fab = Widget("fab", "fab", "Compose", symbol="edit", tap=(Go("compose"),))
    return Page(
        "Inbox",
        rows or (_nothing("No mail found"),),
        back=bool(view.query),
        pinned=(_search(view, "Search mail"),),
        fab=fab,
        refreshes=not view.query,
    )


def _mail_mail(state: State, view: View) -> Page:
    mail = state.item("mails", view.item)
    starred = "starred" in mail.flags
    star = _action(
        "star",
        "Remove star" if starred else "Add star",
        "star" if starred else "star outline",
        Mark("mails", mail.key, "starred", not starred),
    )
    archive = _action("archive", "Archive", "archive", Mark("mails", mail.key, "archived", True), Back(), Say("Mail archived"))
    delete = _action("delete", "Delete mail", "trash", Back(), Remove("mails", mail.key), Say("Mail deleted"))
    reply = Go("compose", "", (("To", mail.detail), ("Subject", f"Re: {mail.title}")))
    body = (
        Widget("big", label=mail.title),
        Widget("row", "row:sender", mail.detail, "to me", symbol=f"avatar:{mail.detail}"),
        Widget("text", label=mail.body),
        Widget("button", "button:reply", "Reply", tap=(reply,)),
    )
    return Page("Mail", body, actions=(star, archive, delete))


def _mail_compose(state: State, view: View) -> Page:
    fields = (_field(view, "To"), _field(view, "Subject"), _field(view, "Message", hint="Write your mail", lines=4))
    return Page("New mail", fields, actions=(_action("send", "Send", "send", Save("mail")),))


# Music


MUSIC_TABS = (("Songs", "music"), ("Liked", "heart"), ("Playlists", "list"))


def _music_main(state: State, view: View) -> Page:
    tabs = _tabs(view, MUSIC_TABS)
    if view.tab == "Playlists":
        rows = tuple(_playlist_row(state, playlist) for playlist in state.items("playlists"))
        return Page("Music", rows, back=False, tabs=tabs)
    songs = [song for song in state.items("songs") if view.tab != "Liked" or "liked" in song.flags]
    pinned = (_search(view, "Search songs"),) if view.tab in ("", "Songs") else ()
    if view.query:
        songs = [song for song in songs if _matches(view.query, song.title, song.detail)]
        found = tuple(_song_row(song) for song in songs) or (_nothing("No songs found", f"Nothing matches {view.query}"),)
        return Page("Music", found, pinned=pinned)
    body = tuple(_song_row(song) for song in songs) or (_nothing("Nothing here yet"),)
    return Page("Music", body, back=False, tabs=tabs, pinned=pinned)


def _song_row(song: Item) -> Widget:
    return Widget(
        "row",
        f"row:songs/{song.key}",
        song.title,
        song.detail,
        trailing="Playing" if "playing" in song.flags else "",
        symbol="thumb:music",
        tap=(Go("song", song.key),),
    )


def _playlist_row(state: State, playlist: Item) -> Widget:
    count = sum(f"in {playlist.key}" in song.flags for song in state.items("songs"))
    return Widget(
        "row",
        f"row:playlists/{playlist.key}",
        playlist.title,
        f"{count} song{'' if count == 1 else 's'}",
        symbol="thumb:list",
        tap=(Go("playlist", playlist.key),),
    )


def _music_playlist(state: State, view: View) -> Page:
    rows = tuple(_song_row(song) for song in state.items("songs") if f"in {view.item}" in song.flags)
    return Page(state.item("playlists", view.item).title, rows or (_nothing("No songs in this playlist"),))


def _music_song(state: State, view: View) -> Page:
    song = state.item("songs", view.item)
    liked, playing = "liked" in song.flags, "playing" in song.flags
    heart = _action(
        "like",
        "Unlike" if liked else "Like",
        "heart" if liked else "heart outline",
        Mark("songs", song.key, "liked", not liked),
    )
    choices = tuple(
        Choice(
            playlist.title,
            (Mark("songs", song.key, f"in {playlist.key}", True), Close(), Say(f"Added to {playlist.title}")),
            f"in {playlist.key}" in song.flags,
        )
        for playlist in state.items("playlists")
    )
    body = (
        Widget("art", symbol="music"),
        Widget("big", label=song.title, detail=song.detail),
        Widget("button", "button:play", "Pause" if playing else "Play", tap=(Mark("songs", song.key, "playing", not playing),)),
        Widget("button", "button:add", "Add to playlist", tap=(Show(Overlay("options", "Choose a playlist", choices)),)),
    )
    return Page("Now playing", body, actions=(heart,))


def _unreachable(view: View) -> Page:
    body = (
        _nothing("Service unavailable", f"{view.app} cannot reach its server."),
        Widget("button", "button:retry", "Try again", tap=(Reload(),)),
    )
    return Page(view.app, body, back=False)


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

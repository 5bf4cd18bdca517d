"""Changes of a phone's state, as functions of the state; :func:`~guieval.playground.phone.state.bind` makes effects of them.

The effects of an action depend on the screen, so :mod:`guieval.playground.phone.phone` selects them.
"""

from __future__ import annotations

from dataclasses import replace

from guieval.playground.phone.state import Effects, Item, Modal, State, View


def perform(state: State, effects: Effects) -> State:
    """The state after ``effects``, in order."""
    for effect in effects:
        state = effect(state)
    return state


def launch(state: State, app: str) -> State:
    """Bring an app to the front, at its first page."""
    popups = dict(state.popups)
    overlay = popups.pop(app, None)
    view = View(app, loading=f"{app}:launch" in state.slow)
    return replace(state, stack=(view,), overlay=overlay, popups=tuple(popups.items()))


def show(state: State, overlay: Modal) -> State:
    """Open a dialog or menu over the page."""
    return replace(state, overlay=overlay)


def close(state: State) -> State:
    """Close the dialog or menu."""
    return replace(state, overlay=None)


def say(state: State, text: str) -> State:
    """Show a short message at the bottom until the next action."""
    return replace(state, toast=text)


def mark(state: State, collection: str, key: str, flag: str, on: bool) -> State:
    """Set or remove a flag of an item."""
    item = state.item(collection, key)
    flags = item.flags | {flag} if on else item.flags - {flag}
    if (collection, flag) == ("songs", "playing"):  # one song at a time
        others = tuple(replace(song, flags=song.flags - {"playing"}) for song in state.items("songs"))
        state = state.with_items("songs", others)
    return state.with_item(collection, replace(item, flags=flags))


def choose(state: State, collection: str, key: str, value: str) -> State:
    """Set an item's value."""
    return state.with_item(collection, replace(state.item(collection, key), value=value))


def remove(state: State, collection: str, key: str) -> State:
    """Delete an item."""
    return state.with_items(collection, tuple(item for item in state.items(collection) if item.key != key))


def order(state: State) -> State:
    """Buy everything in the shop's cart."""
    bought = tuple(
        replace(item, flags=item.flags - {"cart"} | {"ordered"}) if "cart" in item.flags else item
        for item in state.items("products")
    )
    return state.with_items("products", bought)


# --- changes to the page in front: without one, only insert() may be called ------------------------------------------------


def go(state: State, page: str, item: str = "", fields: tuple[tuple[str, str], ...] = ()) -> State:
    """Open a page of the app in front."""
    view = state.stack[-1]
    loading = f"{view.app}:page" in state.slow and bool(item)
    opened = View(view.app, page, item, fields=fields, loading=loading)
    return replace(state, stack=(*state.stack[:-1], replace(view, focus=""), opened))


def back(state: State) -> State:
    """Leave the page."""
    return replace(state, stack=state.stack[:-1])


def switch_tab(state: State, name: str) -> State:
    """Switch to a tab of the page."""
    view = state.stack[-1]
    return state.with_view(View(view.app, view.page, tab=name))


def focus(state: State, field: str) -> State:
    """Put the cursor into a field, which opens the keyboard."""
    return state.with_view(replace(state.stack[-1], focus=field))


def submit(state: State) -> State:
    """Run the search typed on the page."""
    view = state.stack[-1]
    loading = f"{view.app}:search" in state.slow
    return state.with_view(replace(view, query=view.text("search"), focus="", scroll=0, loading=loading))


def insert(state: State, text: str) -> State:
    """Append text to the focused field, if there is one."""
    view = state.view
    if view is None or not view.focus:
        return state
    return state.with_view(view.with_text(view.focus, view.text(view.focus) + text))


def erase(state: State) -> State:
    """Remove the last character of the focused field."""
    view = state.stack[-1]
    return state.with_view(view.with_text(view.focus, view.text(view.focus)[:-1]))


def enter(state: State) -> State:
    """The keyboard's enter key. Its effect depends on the screen, so ``Phone`` carries it out, and this does nothing."""
    return state


def reload(state: State) -> State:
    """Load the page's content again."""
    view = state.stack[-1]
    state = state.with_view(replace(view, loading=True, scroll=0))
    arrived = tuple(replace(mail, flags=mail.flags - {"incoming"}) for mail in state.items("mails"))
    return state.with_items("mails", arrived) if view.app == "Mail" else state


# --- forms: an item from the page's fields; without the required fields, only a short message is shown --------------------


def save_note(state: State) -> State:
    """Create a note, or change the page's note."""
    view = state.stack[-1]
    title, body = view.text("Title").strip(), view.text("Note").strip()
    if not title and not body:
        return say(state, "The note is empty")
    if not view.item:
        return _added(state, "notes", Item(f"new{state.made}", title or "Untitled", body=body), "Note saved")
    note = replace(state.item("notes", view.item), title=title or "Untitled", body=body)
    return replace(state.with_item("notes", note), stack=state.stack[:-1], toast="Note saved")


def save_contact(state: State) -> State:
    """Add the form's contact; without a name only a notice is shown."""
    view = state.stack[-1]
    name = f"{view.text('First name').strip()} {view.text('Last name').strip()}".strip()
    if not name:
        return say(state, "Enter a name first")
    item = Item(f"new{state.made}", name, detail=view.text("Phone").strip(), body=view.text("Email").strip())
    return _added(state, "contacts", item, "Contact saved", by_title=True)


def save_alarm(state: State) -> State:
    """Create an alarm, switched on."""
    view = state.stack[-1]
    time = view.text("Time").strip()
    hour, _, minute = time.partition(":")
    if not (hour.isdecimal() and minute.isdecimal() and len(minute) == 2 and int(hour) < 24 and int(minute) < 60):
        return say(state, "Enter the time as HH:MM")
    item = Item(f"new{state.made}", time.zfill(5), detail=view.text("Label").strip(), flags=frozenset({"on"}))
    return _added(state, "alarms", item, "Alarm set", by_title=True)


def send_message(state: State) -> State:
    """Send the chat message; nothing happens while it is empty."""
    view = state.stack[-1]
    text = view.text("message").strip()
    if not text:
        return state
    chat = state.item("chats", view.item)
    state = state.with_item("chats", replace(chat, lines=(*chat.lines, f">{text}")))
    return state.with_view(replace(view.with_text("message", ""), focus="", scroll=0))


def send_mail(state: State) -> State:
    """Add the form's mail to the sent ones; without a recipient only a notice is shown."""
    view = state.stack[-1]
    to, subject, body = (view.text(name).strip() for name in ("To", "Subject", "Message"))
    if not to:
        return say(state, "Add a recipient first")
    mail = Item(f"new{state.made}", subject or "(no subject)", detail=to, body=body, group="sent")
    return _added(state, "mails", mail, "Message sent")


def _added(state: State, collection: str, item: Item, toast: str, *, by_title: bool = False) -> State:
    """The state with ``item`` first in its collection, or sorted in, after the form was left."""
    items = (item, *state.items(collection))
    if by_title:
        items = tuple(sorted(items, key=lambda item: item.title))
    return replace(state.with_items(collection, items), stack=state.stack[:-1], made=state.made + 1, toast=toast)

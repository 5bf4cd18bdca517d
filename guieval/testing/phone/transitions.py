"""Carries out one effect on a state. Which effects an action causes depends on the screen and is decided in ``phone``."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from guieval.testing.phone.state import (
    Back,
    Choose,
    Close,
    Effect,
    Erase,
    Focus,
    Form,
    Go,
    Insert,
    Item,
    Launch,
    Mark,
    Order,
    Reload,
    Remove,
    Save,
    Say,
    Show,
    State,
    Submit,
    Tab,
    View,
)


def perform_all(state: State, effects: Iterable[Effect]) -> State:
    """The state after ``effects``, in order."""
    for effect in effects:
        state = perform(state, effect)
    return state


def perform(state: State, effect: Effect) -> State:
    """The state after one effect. An effect that needs an app in front changes nothing on the home screen."""
    match effect:
        case Launch():
            return _launch(state, effect.app)
        case Show():
            return replace(state, overlay=effect.overlay)
        case Close():
            return replace(state, overlay=None)
        case Say():
            return replace(state, toast=effect.text)
        case Mark():
            return _mark(state, effect)
        case Choose():
            changed = replace(state.item(effect.collection, effect.key), value=effect.value)
            return _put(state, effect.collection, changed)
        case Remove():
            left = tuple(item for item in state.items(effect.collection) if item.key != effect.key)
            return state.with_items(effect.collection, left)
        case Order():
            bought = tuple(
                replace(item, flags=item.flags - {"cart"} | {"ordered"}) if "cart" in item.flags else item
                for item in state.items("products")
            )
            return state.with_items("products", bought)
    if state.view is None:
        return state
    return _on_page(state, state.view, effect)


def _on_page(state: State, view: View, effect: Effect) -> State:
    match effect:
        case Go():
            page = View(view.app, effect.page, effect.item, fields=effect.fields, loading=f"{view.app}:page" in state.slow)
            page = replace(page, loading=page.loading and bool(effect.item))
            return replace(state, stack=(*state.stack[:-1], replace(view, focus=""), page))
        case Back():
            return replace(state, stack=state.stack[:-1])
        case Tab():
            return state.with_view(View(view.app, view.page, tab=effect.name))
        case Focus():
            return state.with_view(replace(view, focus=effect.field))
        case Submit():
            loading = f"{view.app}:search" in state.slow
            return state.with_view(replace(view, query=view.text("search"), focus="", scroll=0, loading=loading))
        case Insert() | Erase():
            if not view.focus:
                return state
            text = view.text(view.focus)
            text = text + effect.text if isinstance(effect, Insert) else text[:-1]
            return state.with_view(view.with_text(view.focus, text))
        case Save():
            return _save(state, view, effect.form)
        case Reload():
            state = state.with_view(replace(view, loading=True, scroll=0))
            arrived = tuple(replace(mail, flags=mail.flags - {"incoming"}) for mail in state.items("mails"))
            return state.with_items("mails", arrived) if view.app == "Mail" else state
    raise AssertionError(f"unknown effect {effect!r}")


def _launch(state: State, app: str) -> State:
    popups = dict(state.popups)
    overlay = popups.pop(app, None)
    return replace(
        state,
        stack=(View(app, loading=f"{app}:launch" in state.slow),),
        overlay=overlay,
        popups=tuple(popups.items()),
    )


def _mark(state: State, mark: Mark) -> State:
    item = state.item(mark.collection, mark.key)
    flags = item.flags | {mark.flag} if mark.on else item.flags - {mark.flag}
    if (mark.collection, mark.flag) == ("songs", "playing"):  # one song at a time
        others = tuple(replace(song, flags=song.flags - {"playing"}) for song in state.items("songs"))
        state = state.with_items("songs", others)
    return _put(state, mark.collection, replace(item, flags=flags))


def _put(state: State, collection: str, changed: Item) -> State:
    return state.with_items(collection, tuple(changed if item.key == changed.key else item for item in state.items(collection)))


def _save(state: State, view: View, form: Form) -> State:
    match form:
        case "note":
            return _save_note(state, view)
        case "message":
            return _send_message(state, view)
        case "mail":
            return _send_mail(state, view)
        case "contact":
            name = " ".join(part for part in (view.text("First name").strip(), view.text("Last name").strip()) if part)
            if not name:
                return replace(state, toast="Enter a name first")
            item = Item(f"new{state.made}", name, detail=view.text("Phone").strip(), body=view.text("Email").strip())
            state = _added(state, "contacts", item, "Contact saved")
            return state.with_items("contacts", tuple(sorted(state.items("contacts"), key=lambda contact: contact.title)))
        case "alarm":
            time = view.text("Time").strip()
            hour, _, minute = time.partition(":")
            if not (hour.isdecimal() and minute.isdecimal() and len(minute) == 2 and int(hour) < 24 and int(minute) < 60):
                return replace(state, toast="Enter the time as HH:MM")
            item = Item(f"new{state.made}", time.zfill(5), detail=view.text("Label").strip(), flags=frozenset({"on"}))
            state = _added(state, "alarms", item, "Alarm set")
            return state.with_items("alarms", tuple(sorted(state.items("alarms"), key=lambda alarm: alarm.title)))


def _added(state: State, collection: str, item: Item, toast: str) -> State:
    """The state after ``item`` was put first in its collection and the form that made it was left."""
    state = state.with_items(collection, (item, *state.items(collection)))
    return replace(state, stack=state.stack[:-1], made=state.made + 1, toast=toast)


def _save_note(state: State, view: View) -> State:
    title, body = view.text("Title").strip(), view.text("Note").strip()
    if not title and not body:
        return replace(state, toast="The note is empty")
    if not view.item:
        return _added(state, "notes", Item(f"new{state.made}", title or "Untitled", body=body), "Note saved")
    note = replace(state.item("notes", view.item), title=title or "Untitled", body=body)
    return replace(_put(state, "notes", note), stack=state.stack[:-1], toast="Note saved")


def _send_message(state: State, view: View) -> State:
    text = view.text("message").strip()
    if not text:
        return state
    chat = state.item("chats", view.item)
    state = _put(state, "chats", replace(chat, lines=(*chat.lines, f">{text}")))
    return state.with_view(replace(view.with_text("message", ""), focus="", scroll=0))


def _send_mail(state: State, view: View) -> State:
    if not view.text("To").strip():
        return replace(state, toast="Add a recipient first")
    mail = Item(
        f"new{state.made}",
        view.text("Subject").strip() or "(no subject)",
        detail=view.text("To").strip(),
        body=view.text("Message").strip(),
        group="sent",
    )
    return _added(state, "mails", mail, "Message sent")

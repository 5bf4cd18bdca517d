"""The goals of tasks: conditions on a phone's state, as functions bound to their other arguments."""

from __future__ import annotations

from typing import TypeAlias

from guieval.testing.phone.state import Bound, State

Goal: TypeAlias = Bound[bool]


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

"""The parts of a page before they have a place on the screen. :mod:`.apps` combines them, and :mod:`.layout` places them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from guieval.playground.phone import transitions as do
from guieval.playground.phone.state import Effect, Effects, Item, Overlay, View, bind

Content: TypeAlias = Literal[
    "header", "row", "field", "search", "button", "text", "big", "art", "received", "sent", "icon", "tile", "empty"
]
"""Content of a page, stacked from top to bottom (icons and tiles side by side)."""
Fixed: TypeAlias = Literal["switch", "action", "tab", "fab", "key", "choice"]
"""Parts with a fixed place."""
Passive: TypeAlias = Literal["status", "bar", "title", "card", "scrim", "spinner", "toast", "clock", "dots", "list"]
"""Parts of the screen that do not belong to a page."""
Role: TypeAlias = Content | Fixed | Passive


@dataclass(frozen=True)
class Widget:
    """One part of a page.

    ``name`` is unique on its page, and empty for parts that cannot be touched. ``label`` is its main text; a pictogram
    (``action``, ``fab``) replaces it, and then it is the accessible description. ``detail`` and ``trailing`` are smaller
    texts, ``hint`` is shown in an empty field. ``on`` is the state of a switch or a selectable part, ``None`` for all others.
    ``symbol`` names a pictogram; ``tap`` and ``hold`` are the effects of a tap and of a long press.
    """

    role: Role
    name: str = ""
    label: str = ""
    detail: str = ""
    trailing: str = ""
    hint: str = ""
    symbol: str = ""
    on: bool | None = None
    tap: Effects = ()
    hold: Effects = ()
    lines: int = 1


@dataclass(frozen=True)
class Page:
    """An app's page: a top bar (``title``, ``actions``), parts ``pinned`` below it, the scrolling ``body``, a
    ``footer`` that stays above the keyboard, ``tabs`` and a floating button.

    ``from_end`` shows the body's end first (conversations), ``refreshes`` reloads it when it is pulled down, and
    ``live_search`` filters it while the user types.
    """

    title: str
    body: tuple[Widget, ...]
    actions: tuple[Widget, ...] = ()
    pinned: tuple[Widget, ...] = ()
    footer: tuple[Widget, ...] = ()
    tabs: tuple[Widget, ...] = ()
    fab: Widget | None = None
    from_end: bool = False
    refreshes: bool = False
    live_search: bool = False


def row(
    collection: str,
    item: Item,
    detail: str = "",
    *,
    page: str = "",
    tap: Effects = (),
    hold: Overlay | None = None,
    symbol: str = "",
    trailing: str = "",
    on: bool | None = None,
) -> Widget:
    """An item's row. A tap opens ``page``, or has the effects ``tap``; a long press opens the menu ``hold``."""
    return Widget(
        "row",
        f"row:{collection}/{item.key}",
        item.title,
        detail,
        trailing,
        symbol=symbol,
        on=on,
        tap=(bind(do.go, page, item.key),) if page else tap,
        hold=(bind(do.show, hold),) if hold else (),
    )


def field(view: View, name: str, label: str = "", *, hint: str = "", lines: int = 1) -> Widget:
    """A text field; a tap puts the cursor into it."""
    focus = (bind(do.focus, name),)
    on = view.focus == name
    return Widget("field", f"field:{name}", label or name, view.text(name), hint=hint, on=on, tap=focus, lines=lines)


def search(view: View, hint: str) -> tuple[Widget, ...]:
    """The search field at the top of a page."""
    tap = (bind(do.focus, "search"),)
    on = view.focus == "search"
    return (Widget("search", "field:search", "Search", view.text("search"), hint=hint, symbol="search", on=on, tap=tap),)


def action(name: str, label: str, symbol: str, *effects: Effect) -> Widget:
    """A pictogram in the top bar, with the effects of a tap."""
    return Widget("action", f"action:{name}", label, symbol=symbol, tap=effects)


def toggle(
    name: str, collection: str, item: Item, flag: str, symbol: str, labels: tuple[str, str], messages: tuple[str, ...] = ()
) -> Widget:
    """The action that sets an item's flag, or removes it: a label, and possibly a message, for either."""
    on = flag in item.flags
    effects = [bind(do.mark, collection, item.key, flag, not on)]
    if messages:
        effects.append(bind(do.say, messages[on]))
    return action(name, labels[on], symbol if on else f"{symbol} outline", *effects)


def button(name: str, label: str, *effects: Effect) -> Widget:
    """A button, with the effects of a tap."""
    return Widget("button", name, label, tap=effects)


def fab(label: str, page: str, symbol: str = "add") -> Widget:
    """The floating button, which opens ``page``."""
    return Widget("fab", "fab", label, symbol=symbol, tap=(bind(do.go, page),))


def tabs(view: View, names: tuple[tuple[str, str], ...]) -> tuple[Widget, ...]:
    """One tab per (name, pictogram); the first is selected unless the view names another."""
    present = view.tab or names[0][0]
    return tuple(
        Widget("tab", f"tab:{name}", name, symbol=symbol, on=name == present, tap=(bind(do.switch_tab, name),))
        for name, symbol in names
    )


def nothing(text: str, hint: str = "") -> tuple[Widget, ...]:
    """The text of a page without content."""
    return (Widget("empty", label=text, detail=hint),)

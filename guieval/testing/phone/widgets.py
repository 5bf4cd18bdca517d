"""The parts of a page before they have a place on the screen. :mod:`.apps` makes them, and :mod:`.layout` places them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from guieval.testing.phone.state import Effects

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

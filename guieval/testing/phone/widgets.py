"""What a page is made of, before it has a place on the screen: the words between :mod:`.apps` and :mod:`.layout`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from guieval.testing.phone.state import Effects

Role: TypeAlias = Literal[
    # content of a page, stacked from top to bottom (icons and tiles side by side)
    "header",
    "row",
    "field",
    "search",
    "button",
    "text",
    "big",
    "art",
    "received",
    "sent",
    "icon",
    "tile",
    # parts with a fixed place
    "switch",
    "action",
    "tab",
    "fab",
    "key",
    "choice",
    # what is drawn but never touched
    "status",
    "bar",
    "title",
    "card",
    "scrim",
    "spinner",
    "toast",
    "clock",
    "dots",
    "empty",
    "list",
]


@dataclass(frozen=True)
class Widget:
    """One part of a page.

    ``name`` addresses it and is unique on its page (empty for parts nobody touches); ``label`` is its main text, which is
    drawn except where a pictogram stands for it (``action``, ``fab``): there it is the accessible description. ``detail`` and
    ``trailing`` are smaller texts, ``hint`` stands in an empty field. ``on`` is a switch's or a selectable part's state,
    ``None`` for all others. ``symbol`` names a pictogram, ``tap`` and ``hold`` say what touching does.
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
    """An app's page: a top bar (``title``, back arrow, ``actions``), what is pinned below it, the scrolling ``body``, a
    ``footer`` that stays above the keyboard, ``tabs`` and a floating button.

    ``from_end`` shows the body's end first (conversations), ``refreshes`` reloads it when it is pulled down, and
    ``live_search`` filters it while the user types.
    """

    title: str
    body: tuple[Widget, ...]
    back: bool = True
    actions: tuple[Widget, ...] = ()
    pinned: tuple[Widget, ...] = ()
    footer: tuple[Widget, ...] = ()
    tabs: tuple[Widget, ...] = ()
    fab: Widget | None = None
    from_end: bool = False
    refreshes: bool = False
    live_search: bool = False

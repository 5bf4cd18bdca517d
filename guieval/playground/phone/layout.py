"""Places the parts of a page: from a state to the elements that are drawn, touched and published.

This is arithmetic without fonts, so a trajectory can be planned without drawing. Lengths are in dp (every screen is 360 dp
wide) until :meth:`_Grid.pixels` rounds them; boxes are half-open pixel rectangles.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

from guieval.actions import Box, Point
from guieval.playground.phone.apps import icons, page_of
from guieval.playground.phone.state import Effect, Size, State, Style, View, bind
from guieval.playground.phone.transitions import back, close, enter, erase, insert, switch_tab
from guieval.playground.phone.widgets import Page, Role, Widget

WIDTH = 360.0
STATUS, BAR, SEARCH, TABS, FOOTER, PILL = 26.0, 56.0, 60.0, 58.0, 64.0, 18.0
KEY_ROW = 48.0
BUBBLE = 224.0
TEXT_SIZES: dict[Role, float] = {"text": 15.0, "received": 15.0, "sent": 15.0, "big": 22.0, "field": 16.0}
OPAQUE: frozenset[Role] = frozenset({"bar", "card", "toast"})
KEYS = ("qwertyuiop", "asdfghjkl", "zxcvbnm")


class PixelBox(NamedTuple):
    """A rectangle in pixels of the screenshot, right and lower edge excluded."""

    x1: int
    y1: int
    x2: int
    y2: int

    def holds(self, x: float, y: float) -> bool:
        """Whether the place (x, y) in pixels is inside."""
        return self.x1 <= x < self.x2 and self.y1 <= y < self.y2

    @property
    def area(self) -> int:
        """Width times height; 0 for an empty rectangle."""
        return max(0, self.x2 - self.x1) * max(0, self.y2 - self.y1)

    def clip(self, other: PixelBox) -> PixelBox:
        """The intersection of both rectangles (possibly empty)."""
        return PixelBox(max(self.x1, other.x1), max(self.y1, other.y1), min(self.x2, other.x2), min(self.y2, other.y2))


@dataclass(frozen=True)
class Element:
    """A widget with its place. ``full`` is where it is drawn, ``box`` the part inside the screen and the scrolling area."""

    widget: Widget
    full: PixelBox
    box: PixelBox
    lines: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Its unique name on the screen, empty for parts that cannot be touched."""
        return self.widget.name

    @property
    def role(self) -> Role:
        return self.widget.role

    @property
    def label(self) -> str:
        """Its main text; for a pictogram the accessible description."""
        return self.widget.label

    @property
    def interactive(self) -> bool:
        """Whether touching it can do something."""
        return bool(self.widget.tap or self.widget.hold)

    @property
    def shown(self) -> float:
        """The visible share of its area, in [0, 1]."""
        return self.box.area / self.full.area if self.full.area else 0.0


@dataclass(frozen=True)
class Screen:
    """The content of the phone's screen. ``elements`` are in drawing order, the topmost last.

    ``page`` is the page in front, ``None`` on the home screen. A swipe scrolls inside ``scroll_area`` (``None`` if nothing
    scrolls); ``scroll``, ``max_scroll`` and ``page_height`` are in dp. ``offscreen`` are the body's parts that are scrolled
    out of sight, with an empty ``box``.
    """

    size: Size
    style: Style
    page: Page | None
    elements: tuple[Element, ...]
    scroll_area: PixelBox | None = None
    scroll: int = 0
    max_scroll: int = 0
    page_height: int = 0
    offscreen: tuple[Element, ...] = ()

    @cached_property
    def interactive(self) -> tuple[Element, ...]:
        """The elements that can be touched, in drawing order: with a dialog open, only its own."""
        modal = max((i for i, element in enumerate(self.elements) if element.role == "scrim"), default=-1)
        return tuple(element for element in self.elements[modal + 1 :] if element.interactive)

    def hidden(self, name: str) -> Element | None:
        """The element called ``name`` if it is scrolled out of sight, at least partly."""
        return next((e for e in self.offscreen + self.interactive if e.name == name and e.shown < 1), None)

    def find(self, name: str) -> Element | None:
        """The visible interactive element called ``name``."""
        return next((element for element in self.interactive if element.name == name), None)

    def hit(self, point: Point) -> Element | None:
        """The interactive element under ``point`` (unified coordinates), or ``None``."""
        x, y = self.pixel(point)
        for element in reversed(self.elements):
            if element.box.holds(x, y):
                if element.interactive:
                    return element
                if element.role in OPAQUE:
                    return None
        return None

    def pixel(self, point: Point) -> tuple[float, float]:
        """A point in unified coordinates as a place inside the screen, in pixels."""
        width, height = self.size
        return min(point.x * width / 1000, width - 0.5), min(point.y * height / 1000, height - 0.5)

    def unified(self, box: PixelBox) -> Box:
        width, height = self.size
        return Box(box.x1 * 1000 / width, box.y1 * 1000 / height, box.x2 * 1000 / width, box.y2 * 1000 / height)


def lay_out(state: State) -> Screen:
    """The widgets in ``state`` with their boxes in pixels, overlays and notices last."""
    grid = _Grid(state.size, state.style)
    if state.view is None:
        screen = _home(state, grid)
    elif state.view.loading:
        screen = _loading(state, state.view, grid)
    else:
        screen = _page(state, state.view, grid)
    extra = _toast(state, grid, screen) + _overlay(state, grid)
    return replace(screen, elements=screen.elements + extra)


@dataclass(frozen=True)
class _Grid:
    """Turns dp rectangles into elements for one screen size and style."""

    size: Size
    style: Style

    @property
    def scale(self) -> float:
        return self.size[0] / WIDTH

    @property
    def height(self) -> float:
        return self.size[1] / self.scale

    def pixels(self, x1: float, y1: float, x2: float, y2: float) -> PixelBox:
        scale = self.scale
        return PixelBox(round(x1 * scale), round(y1 * scale), round(x2 * scale), round(y2 * scale))

    def place(self, widget: Widget, x1: float, y1: float, x2: float, y2: float, *, within: PixelBox | None = None) -> Element:
        full = self.pixels(x1, y1, x2, y2)
        screen = PixelBox(0, 0, *self.size)
        wide = x2 - x1 - (0 if widget.role in ("text", "big") else 24)
        lines = self.wrapped(widget, wide) if widget.role in TEXT_SIZES else ()
        return Element(widget, full, full.clip(within or screen), lines)

    def wrapped(self, widget: Widget, wide: float) -> tuple[str, ...]:
        text = widget.detail if widget.role == "field" else widget.label
        return wrap(text, wide, TEXT_SIZES[widget.role] * self.style.text)


def wrap(text: str, width: float, size: float) -> tuple[str, ...]:
    """Lines of ``text`` that fit ``width`` at font size ``size`` (same unit), by a wide estimate of a letter's width."""
    letters = max(4, int(width / (size * 0.53)))
    return tuple(line for part in text.split("\n") for line in textwrap.wrap(part, letters) or [""])


def _home(state: State, grid: _Grid) -> Screen:
    height = grid.height
    elements = [
        grid.place(Widget("status", label=state.clock), 0, 0, WIDTH, STATUS),
        grid.place(Widget("clock", label=state.clock, detail=state.date), 0, 50, WIDTH, 140),
    ]
    elements += _icons(grid, icons(state.home[state.home_page]), 165)
    dots = Widget("dots", label=str(len(state.home)), detail=str(state.home_page))
    elements.append(grid.place(dots, 0, height - PILL - 112, WIDTH, height - PILL - 96))
    elements += _icons(grid, icons(state.dock), height - PILL - 92)
    return Screen(state.size, state.style, None, tuple(elements), scroll_area=PixelBox(0, 0, *state.size))


def _icons(grid: _Grid, widgets: Sequence[Widget], top: float) -> list[Element]:
    margin = grid.style.margin
    cell = (WIDTH - 2 * margin) / 4
    return [
        grid.place(
            icon, margin + cell * (i % 4) + 4, top + 90 * (i // 4), margin + cell * (i % 4 + 1) - 4, top + 90 * (i // 4) + 84
        )
        for i, icon in enumerate(widgets)
    ]


def _loading(state: State, view: View, grid: _Grid) -> Screen:
    page = Page(view.app, ())
    leave = bind(back) if len(state.stack) > 1 else None
    elements = [
        grid.place(Widget("spinner", label="Loading..."), 60, grid.height / 2 - 60, WIDTH - 60, grid.height / 2 + 50),
        *_top_bar(grid, state.clock, page, leave),
    ]
    return Screen(state.size, state.style, page, tuple(elements))


def _top_bar(grid: _Grid, clock: str, page: Page, leave: Effect | None) -> list[Element]:
    place = grid.place
    elements = [
        place(Widget("bar", symbol="top"), 0, 0, WIDTH, STATUS + BAR),
        place(Widget("status", label=clock), 0, 0, WIDTH, STATUS),
    ]
    left, right = float(grid.style.margin), WIDTH - 4
    if leave:
        widget = Widget("action", "action:back", "Back", symbol="back", tap=(leave,))
        elements.append(place(widget, 4, STATUS + 4, 52, STATUS + 52))
        left = 60.0
    for widget in reversed(page.actions):
        wide = 48 if widget.symbol else 64
        elements.append(place(widget, right - wide, STATUS + 4, right, STATUS + 52))
        right -= wide
    elements.append(place(Widget("title", label=page.title), left, STATUS, right - 4, STATUS + BAR))
    return elements


def _page(state: State, view: View, grid: _Grid) -> Screen:
    page = page_of(state, view)
    keyboard = bool(view.focus)
    top, bottom = STATUS + BAR, grid.height
    if view.page == "main" and not view.query:
        leave = None
    else:
        leave = bind(switch_tab, view.tab) if view.query or view.text("search") else bind(back)
    bars = _top_bar(grid, state.clock, page, leave)
    tabs = () if keyboard else page.tabs
    if keyboard:
        bottom -= 4 * KEY_ROW + 12 + PILL
        bars += _keyboard(grid, bottom)
    else:
        if tabs and not grid.style.tabs_on_top:
            bottom -= PILL + TABS
            bars.append(grid.place(Widget("bar", symbol="bottom"), 0, bottom, WIDTH, grid.height))
            bars += _tabs(grid, tabs, bottom)
        else:
            bottom -= PILL
            bars.append(grid.place(Widget("bar", symbol="pill"), 0, bottom, WIDTH, grid.height))
    if tabs and grid.style.tabs_on_top:
        bars.append(grid.place(Widget("bar", symbol="top"), 0, top, WIDTH, top + TABS))
        bars += _tabs(grid, tabs, top)
        top += TABS
    for widget in page.pinned:
        bars.append(grid.place(Widget("bar", symbol="top"), 0, top, WIDTH, top + SEARCH))
        bars.append(grid.place(widget, grid.style.margin, top + 6, WIDTH - grid.style.margin, top + SEARCH - 6))
        top += SEARCH
    if page.footer:
        bottom -= FOOTER
        field, send = page.footer
        bars.append(grid.place(Widget("bar", symbol="bottom"), 0, bottom, WIDTH, bottom + FOOTER))
        bars.append(grid.place(field, grid.style.margin, bottom + 8, WIDTH - 64, bottom + FOOTER - 8))
        bars.append(grid.place(send, WIDTH - 58, bottom + 8, WIDTH - 10, bottom + FOOTER - 8))
    body = _stacked(grid, page.body)
    spare = 84 if page.fab and not keyboard else 12
    room = bottom - top
    max_scroll = max(0, round(max((y2 for *_, y2 in body), default=0.0) + spare - room))
    scroll = min(view.scroll, max_scroll)
    shift = top - (max_scroll - scroll if page.from_end else scroll)
    area = grid.pixels(0, top, WIDTH, bottom)
    parts = [part for widget, *edges in body for part in _parts(grid, widget, *edges, shift=shift, area=area)]
    visible = [part for part in parts if part.box.area]
    if page.fab and not keyboard:
        edge = WIDTH - grid.style.margin
        visible.append(grid.place(page.fab, edge - 56, bottom - 72, edge, bottom - 16))
    return Screen(
        state.size,
        state.style,
        page,
        (*visible, *bars),
        scroll_area=area if max_scroll or page.refreshes else None,
        scroll=scroll,
        max_scroll=max_scroll,
        page_height=round(room),
        offscreen=tuple(part for part in parts if not part.box.area),
    )


def _tabs(grid: _Grid, tabs: Sequence[Widget], top: float) -> list[Element]:
    wide = WIDTH / len(tabs)
    return [grid.place(tab, wide * i, top, wide * (i + 1), top + TABS) for i, tab in enumerate(tabs)]


def _keyboard(grid: _Grid, top: float) -> list[Element]:
    elements = [grid.place(Widget("bar", symbol="keyboard"), 0, top, WIDTH, grid.height)]
    top += 6
    unit = WIDTH / 10

    def key(name: str, label: str, effect: Effect, x: float, row: int, wide: float, symbol: str = "") -> None:
        widget = Widget("key", f"key:{name}", label, symbol=symbol, tap=(effect,))
        y = top + KEY_ROW * row
        elements.append(grid.place(widget, x + 2, y + 3, x + wide - 2, y + KEY_ROW - 3))

    for row, letters in enumerate(KEYS):
        indent = (0.0, 0.5, 1.0)[row] * unit
        for column, letter in enumerate(letters):
            key(letter, letter, bind(insert, letter), indent + column * unit, row, unit)
    key("backspace", "Backspace", bind(erase), 8 * unit, 2, 2 * unit, "erase")
    key("comma", ",", bind(insert, ","), unit, 3, unit)
    key("space", "space", bind(insert, " "), 2 * unit, 3, 4.5 * unit)
    key("full stop", ".", bind(insert, "."), 6.5 * unit, 3, unit)
    key("enter", "Enter", bind(enter), 7.5 * unit, 3, 2.5 * unit, "enter")
    return elements


def _stacked(grid: _Grid, widgets: Iterable[Widget]) -> list[tuple[Widget, float, float, float, float]]:
    """The widgets of a page's body with their rectangles, stacked from y = 0; tiles come in pairs."""
    margin = float(grid.style.margin)
    wide = (WIDTH - 2 * margin - 10) / 2
    tile = 180 * grid.style.rows
    stacked: list[tuple[Widget, float, float, float, float]] = []
    y, column = 8.0, 0
    for widget in widgets:
        if widget.role == "tile":
            x = margin + column * (wide + 10)
            stacked.append((widget, x, y, x + wide, y + tile - 10))
            column = 1 - column
            y += 0 if column else tile
            continue
        if column:  # the last tile of an odd number has a line of its own
            y, column = y + tile, 0
        high = _height(grid, widget)
        left, right = _sides(grid, widget)
        gap = {"button": 8.0, "field": 6.0, "received": 4.0, "sent": 4.0}.get(widget.role, 0.0)
        stacked.append((widget, left, y + gap, right, y + high - gap))
        y += high
    return stacked


def _sides(grid: _Grid, widget: Widget) -> tuple[float, float]:
    if widget.role == "row":
        return 0.0, WIDTH
    margin = float(grid.style.margin)
    if widget.role in ("received", "sent"):
        letters = max(map(len, grid.wrapped(widget, BUBBLE)))
        wide = 28 + letters * TEXT_SIZES[widget.role] * grid.style.text * 0.53
        return (margin, margin + wide) if widget.role == "received" else (WIDTH - margin - wide, WIDTH - margin)
    return margin, WIDTH - margin


def _height(grid: _Grid, widget: Widget) -> float:
    rows, text = grid.style.rows, grid.style.text
    wide = WIDTH - 2 * grid.style.margin
    match widget.role:
        case "row":
            return (70.0 if widget.detail else 56.0) * rows
        case "header":
            return 38 * rows
        case "field":
            return (50 + 22 * text * widget.lines) * rows + 12
        case "button":
            return 66.0
        case "art":
            return 180 * rows
        case "text":
            return len(grid.wrapped(widget, wide)) * 22 * text + 20
        case "big":
            return len(grid.wrapped(widget, wide)) * 30 * text + (30 if widget.detail else 0) + 18
        case "received" | "sent":
            return len(grid.wrapped(widget, BUBBLE)) * 21 * text + 26
        case "empty":
            return 190.0
        case _:
            raise AssertionError(f"a {widget.role} has no place in a page's body")


def _parts(
    grid: _Grid, widget: Widget, x1: float, y1: float, x2: float, y2: float, *, shift: float, area: PixelBox
) -> Iterator[Element]:
    yield grid.place(widget, x1, y1 + shift, x2, y2 + shift, within=area)
    if widget.role == "row" and widget.on is not None:
        name = "switch:" + widget.name.partition(":")[2]
        switch = Widget("switch", name, widget.label, on=widget.on, tap=widget.tap)
        right, middle = x2 - grid.style.margin, (y1 + y2) / 2 + shift
        yield grid.place(switch, right - 50, middle - 15, right, middle + 15, within=area)


def _toast(state: State, grid: _Grid, screen: Screen) -> tuple[Element, ...]:
    if not state.toast:
        return ()
    floor = min(
        (e.full.y1 for e in screen.elements if e.role in ("bar", "fab") and e.full.y1 > state.size[1] / 2),
        default=state.size[1],
    )
    bottom = floor / grid.scale - 8
    wide = len(state.toast) * 8.2 * grid.style.text + 36
    box = (WIDTH / 2 - wide / 2, bottom - 38, WIDTH / 2 + wide / 2, bottom)
    return (grid.place(Widget("toast", label=state.toast), *box),)


def _overlay(state: State, grid: _Grid) -> tuple[Element, ...]:
    overlay = state.overlay
    if overlay is None:
        return ()
    height = grid.height
    scrim = grid.place(Widget("scrim", tap=(bind(close),)), 0, 0, WIDTH, height)
    choices = [
        Widget("choice", f"choice:{choice.label}", choice.label, tap=choice.effects, on=choice.chosen, detail=overlay.kind)
        for choice in overlay.choices
    ]
    if overlay.kind != "dialog":
        if overlay.kind == "sheet":
            left, row, head = 0.0, 54, 52
            top, bottom = height - PILL - row * len(choices) - 56, height
        else:
            left, row, head = 30.0, 50, 68
            high = 86.0 + row * len(choices)
            top = (height - high) / 2
            bottom = top + high
        card = grid.place(Widget("card", label=overlay.title, detail=overlay.kind), left, top, WIDTH - left, bottom)
        edges = [top + head + row * index for index in range(len(choices) + 1)]
        rows = zip(choices, edges, edges[1:], strict=False)
        return (scrim, card, *(grid.place(widget, left, y1, WIDTH - left, y2) for widget, y1, y2 in rows))
    lines = wrap(overlay.text, WIDTH - 108, 15 * grid.style.text) if overlay.text else ()
    high = 64 + 22 * grid.style.text * len(lines) + 72
    top = (height - high) / 2
    card = grid.place(Widget("card", label=overlay.title, detail="dialog"), 30, top, WIDTH - 30, top + high)
    right = WIDTH - 42.0
    buttons: list[Element] = []
    for widget in reversed(choices):
        wide = len(widget.label) * 9 * grid.style.text + 28
        buttons.append(grid.place(widget, right - wide, top + high - 58, right, top + high - 14))
        right -= wide + 8
    return (scrim, replace(card, lines=lines), *reversed(buttons))

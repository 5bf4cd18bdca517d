"""Places the parts of a page: from a state to the elements that are drawn, touched and published.

This is arithmetic without fonts, so a trajectory can be planned without drawing. Lengths are in dp (every screen is 360 dp
wide) until :meth:`_Grid.pixels` rounds them; boxes are half-open pixel rectangles.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

from guieval.actions import Box, Point
from guieval.testing.phone.apps import icons, page_of
from guieval.testing.phone.state import Effect, Size, State, Style, View, bind
from guieval.testing.phone.transitions import back, close, enter, erase, insert, switch_tab
from guieval.testing.phone.widgets import Page, Role, Widget

WIDTH = 360.0
STATUS, BAR, SEARCH, TABS, FOOTER, PILL = 26.0, 56.0, 60.0, 58.0, 64.0, 18.0
KEY_ROW = 48.0
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
        """What both rectangles share (empty when nothing)."""
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
        """Its address on the screen, empty for parts nobody touches."""
        return self.widget.name

    @property
    def role(self) -> Role:
        """What kind of part it is."""
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
        """Which part of it is visible, by area, in [0, 1]."""
        return self.box.area / self.full.area if self.full.area else 0.0


@dataclass(frozen=True)
class Screen:
    """What is on the phone's screen. ``elements`` come in drawing order, the topmost last.

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
        """What can be touched now, in drawing order: with a dialog open, only the dialog's parts."""
        modal = max((i for i, element in enumerate(self.elements) if element.role == "scrim"), default=-1)
        return tuple(element for element in self.elements[modal + 1 :] if element.interactive)

    def hidden(self, name: str) -> Element | None:
        """The part called ``name`` that is scrolled out of sight, wholly or in part."""
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
        """A pixel box in unified coordinates."""
        width, height = self.size
        return Box(box.x1 * 1000 / width, box.y1 * 1000 / height, box.x2 * 1000 / width, box.y2 * 1000 / height)


def lay_out(state: State) -> Screen:
    """Everything on the screen in ``state``."""
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
        size = TEXT_SIZES.get(widget.role)
        text = widget.detail if widget.role == "field" else widget.label
        lines = wrap(text, wide, size * self.style.text) if size else ()
        return Element(widget, full, full.clip(within or screen), lines)

    def row_height(self, widget: Widget) -> float:
        return (70.0 if widget.detail else 56.0) * self.style.rows

    def wrapped(self, widget: Widget, wide: float) -> int:
        return len(wrap(widget.label, wide, TEXT_SIZES[widget.role] * self.style.text))


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
            icon,
            margin + cell * (i % 4) + 4,
            top + 90 * (i // 4),
            margin + cell * (i % 4 + 1) - 4,
            top + 90 * (i // 4) + 84,
        )
        for i, icon in enumerate(widgets)
    ]


def _loading(state: State, view: View, grid: _Grid) -> Screen:
    page = Page(view.app, (), back=len(state.stack) > 1)
    elements = [
        grid.place(Widget("spinner", label="Loading..."), 60, grid.height / 2 - 60, WIDTH - 60, grid.height / 2 + 50),
        *_top_bar(grid, state.clock, page, bind(back)),
    ]
    return Screen(state.size, state.style, page, tuple(elements))


def _top_bar(grid: _Grid, clock: str, page: Page, leave: Effect) -> list[Element]:
    place = grid.place
    elements = [
        place(Widget("bar", symbol="top"), 0, 0, WIDTH, STATUS + BAR),
        place(Widget("status", label=clock), 0, 0, WIDTH, STATUS),
    ]
    left, right = float(grid.style.margin), WIDTH - 4
    if page.back:
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
    searching = bool(view.query or view.text("search"))
    bars = _top_bar(grid, state.clock, page, bind(switch_tab, view.tab) if searching else bind(back))
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
    body = _Body(grid, page.body)
    spare = 84 if page.fab and not keyboard else 12
    room = bottom - top
    max_scroll = max(0, round(body.height + spare - room))
    scroll = min(view.scroll, max_scroll)
    shift = top - (max_scroll - scroll if page.from_end else scroll)
    area = grid.pixels(0, top, WIDTH, bottom)
    visible, offscreen = body.placed(shift, area)
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
        offscreen=tuple(offscreen),
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


@dataclass(frozen=True)
class _Body:
    """The scrolling part of a page: its widgets stacked from the top, tiles two abreast."""

    grid: _Grid
    widgets: tuple[Widget, ...]

    @cached_property
    def stacked(self) -> tuple[tuple[Widget, float, float, float, float], ...]:
        """Every widget with its rectangle, y counted from the body's upper edge."""
        margin = float(self.grid.style.margin)
        placed: list[tuple[Widget, float, float, float, float]] = []
        y, column = 8.0, 0
        for widget in self.widgets:
            high = self.height_of(widget)
            if widget.role == "tile":
                wide = (WIDTH - 2 * margin - 10) / 2
                x = margin + column * (wide + 10)
                placed.append((widget, x, y, x + wide, y + high - 10))
                column = 1 - column
                y += 0 if column else high
                continue
            if column:  # an odd tile stands alone in its line
                y, column = y + 180 * self.grid.style.rows, 0
            left, right = self.sides(widget, margin)
            gap = {"button": 8.0, "field": 6.0, "received": 4.0, "sent": 4.0}.get(widget.role, 0.0)
            placed.append((widget, left, y + gap, right, y + high - gap))
            y += high
        if column:
            y += 180 * self.grid.style.rows
        return tuple(placed)

    @property
    def height(self) -> float:
        return max((y2 for *_, y2 in self.stacked), default=0.0)

    def sides(self, widget: Widget, margin: float) -> tuple[float, float]:
        if widget.role == "row":
            return 0.0, WIDTH
        if widget.role in ("received", "sent"):
            lines = wrap(widget.label, 224, TEXT_SIZES[widget.role] * self.grid.style.text)
            wide = 28 + max(map(len, lines)) * TEXT_SIZES[widget.role] * self.grid.style.text * 0.53
            return (margin, margin + wide) if widget.role == "received" else (WIDTH - margin - wide, WIDTH - margin)
        return margin, WIDTH - margin

    def height_of(self, widget: Widget) -> float:
        rows, text = self.grid.style.rows, self.grid.style.text
        wide = WIDTH - 2 * self.grid.style.margin
        match widget.role:
            case "row":
                return self.grid.row_height(widget)
            case "header":
                return 38 * rows
            case "field":
                return (50 + 22 * text * widget.lines) * rows + 12
            case "button":
                return 66.0
            case "tile":
                return 180 * rows
            case "art":
                return 180 * rows
            case "text":
                return self.grid.wrapped(widget, wide) * 22 * text + 20
            case "big":
                return self.grid.wrapped(widget, wide) * 30 * text + (30 if widget.detail else 0) + 18
            case "received" | "sent":
                return len(wrap(widget.label, 224, TEXT_SIZES[widget.role] * text)) * 21 * text + 26
            case "empty":
                return 190.0
            case _:
                raise AssertionError(f"a {widget.role} has no place in a page's body")

    def placed(self, shift: float, area: PixelBox) -> tuple[list[Element], list[Element]]:
        """The elements at least partly inside ``area``, and the others."""
        elements: list[Element] = []
        offscreen: list[Element] = []
        for widget, x1, y1, x2, y2 in self.stacked:
            element = self.grid.place(widget, x1, y1 + shift, x2, y2 + shift, within=area)
            parts = [element]
            if widget.role == "row" and widget.on is not None:
                parts.append(_switch_of(self.grid, element, area, x2, (y1 + y2) / 2 + shift))
            for part in parts:
                (elements if part.box.area else offscreen).append(part)
        return elements, offscreen


def _switch_of(grid: _Grid, row: Element, area: PixelBox, right: float, middle: float) -> Element:
    name = "switch:" + row.name.partition(":")[2]
    widget = Widget("switch", name, row.label, on=row.widget.on, tap=row.widget.tap)
    right -= grid.style.margin
    return grid.place(widget, right - 50, middle - 15, right, middle + 15, within=area)


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
    if overlay.kind == "sheet":
        top = height - PILL - 54 * len(choices) - 56
        card = grid.place(Widget("card", label=overlay.title, detail="sheet"), 0, top, WIDTH, height)
        return (scrim, card, *_stack(grid, choices, 0, WIDTH, top + 52))
    if overlay.kind == "options":
        high = 86.0 + 50 * len(choices)
        top = (height - high) / 2
        card = grid.place(Widget("card", label=overlay.title, detail="options"), 30, top, WIDTH - 30, top + high)
        return (scrim, card, *_stack(grid, choices, 30, WIDTH - 30, top + 68, 50))
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


def _stack(
    grid: _Grid, widgets: Iterable[Widget], left: float, right: float, top: float, high: float = 54
) -> tuple[Element, ...]:
    return tuple(grid.place(w, left, top + high * i, right, top + high * (i + 1)) for i, w in enumerate(widgets))

"""What a person sees around a page and a screenshot of the page lacks: tabs, an address bar, and the boxes of dialogs.

It draws them on a screenshot, and says what an action on them does; it drives no browser.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from posixpath import normpath
from typing import Any, Literal, NamedTuple, TypeAlias
from urllib.parse import unquote, urlsplit

from PIL import Image, ImageDraw, ImageFont

from guieval import actions as act
from guieval.connectors.pages.fonts import FOLDER
from guieval.connectors.pages.keys import key_name
from guieval.data.screenshots import picture, png

FONT = FOLDER / "DejaVuSans.ttf"
STRIP, ROW, LINE, MARGIN = 26, 30, 17, 8
"""Heights of the tab strip, of the row of the address bar and of a line of text, and the space around a text, in CSS pixels."""
BAR = STRIP + ROW
"""The height of all that is above a page with an address bar."""
WIDEST_BOX, WIDEST_TAB, BUTTON = 380, 180, 26
NO_FILES = "Files of this computer cannot be chosen here."
NO_ADDRESS = "This address cannot be opened here."
_WHITE, _BLACK, _GREY, _LIGHT, _BLUE = "#ffffff", "#1f1f1f", "#747775", "#dde3ea", "#0b57d0"
_EDGE = "#7cacf8"

Way: TypeAlias = Literal["accept", "dismiss", "back", "forward", "reload", "go", "show", "close"]
Area: TypeAlias = tuple[float, float, float, float]


class WindowCommand(NamedTuple):
    """What a browser is to do: ``text`` is that of a prompt or an address, ``tab`` the number of a tab."""

    way: Way
    text: str = ""
    tab: int = 0


class Tab(NamedTuple):
    """The title and the address of a page."""

    title: str
    address: str


class Dialog(NamedTuple):
    """A box over the page. ``kind`` is Playwright's of a dialog of the page, or ``notice`` for one of the browser's own."""

    kind: str
    message: str
    text: str = ""

    @property
    def heading(self) -> str:
        return {"beforeunload": "Leave this page?", "notice": "This browser says"}.get(self.kind, "This page says")

    @property
    def words(self) -> str:
        return "Changes you made may not be saved." if self.kind == "beforeunload" else self.message

    @property
    def buttons(self) -> tuple[tuple[str, Way], ...]:
        accept: tuple[str, Way] = ("Leave" if self.kind == "beforeunload" else "OK", "accept")
        return (accept,) if self.kind in ("alert", "notice") else (("Cancel", "dismiss"), accept)


class Window:
    """The tabs, the address bar and the dialog around a page of ``size`` (width, height) in CSS pixels.

    Without ``address_bar`` there is neither a bar nor a tab strip: the page fills the screen, as in a kiosk.
    """

    def __init__(self, size: tuple[int, int], *, address_bar: bool = False) -> None:
        self.width, self.height = size
        self.bar = BAR if address_bar else 0
        self.tabs: Sequence[Tab] = ()
        self.shown = 0
        self._dialog: Dialog | None = None
        self._field = _Field()
        """The text of a prompt, or of the address bar while it has the focus."""
        self._addressed = False

    @property
    def size(self) -> tuple[int, int]:
        """(width, height) of the whole in CSS pixels."""
        return self.width, self.height + self.bar

    def point(self, x: float, y: float) -> tuple[float, float]:
        """A place of the page in CSS pixels, in [0, 1000] of the whole."""
        return x / self.width * 1000, (y + self.bar) / (self.height + self.bar) * 1000

    @property
    def dialog(self) -> Dialog | None:
        """The box that is over the page."""
        return self._dialog

    @dialog.setter
    def dialog(self, dialog: Dialog | None) -> None:
        if dialog is not self._dialog:
            self._dialog, self._addressed = dialog, False
            self._field = _Field(dialog.text if dialog else "", chosen=True)

    def meant(self, action: act.ExecutableAction) -> WindowCommand | act.ExecutableAction | None:
        """What an action does: a command, an action of the page with its places in [0, 1000] of the page, or nothing."""
        keys = _keys(action)
        if isinstance(action, act.Stop | act.Answer | act.Ask):
            return action
        if self._dialog is not None:
            return self._of_dialog(self._dialog, action, keys)
        if self._addressed and (edited := self._field.edited(action, keys)) is not None:
            if edited == "escape":
                self._addressed = False
            if edited != "enter":
                return None
            self._addressed = False
            return WindowCommand("go", self._field.text.strip())
        return self._of_bar(action) if self._above(action) else self._of_keys(keys) or self._of_page(action)

    def _of_dialog(self, dialog: Dialog, action: act.ExecutableAction, keys: str) -> WindowCommand | None:
        way: Way | None = None
        if isinstance(action, act.Click | act.DoubleClick | act.LongPress):
            way = next((way for way, area in self._box(dialog).buttons if _inside(area, self._css(action.point))), None)
        else:
            edited = self._field.edited(action, keys)
            way = "accept" if edited == "enter" else "dismiss" if edited == "escape" or keys == "BACK" else None
        return None if way is None else WindowCommand(way, self._field.text if dialog.kind == "prompt" else "")

    def _of_bar(self, action: act.ExecutableAction) -> WindowCommand | None:
        if not isinstance(action, act.Click | act.DoubleClick | act.LongPress):
            return None
        place = self._css(action.point)
        self._addressed = False
        for command, area in self._controls():
            if _inside(area, place):
                if command.way == "go":
                    self._begin_address()
                    return None
                return command
        return None

    def _of_keys(self, keys: str) -> WindowCommand | None:
        step = {"Control+Tab": 1, "Control+PageDown": 1, "Control+Shift+Tab": -1, "Control+PageUp": -1}.get(keys)
        if keys in ("BACK", "Alt+ArrowLeft"):
            return WindowCommand("back")
        if keys == "Alt+ArrowRight":
            return WindowCommand("forward")
        if step is not None and len(self.tabs) > 1:
            return WindowCommand("show", tab=(self.shown + step) % len(self.tabs))
        if keys in ("Control+w", "Control+F4"):
            return WindowCommand("close", tab=self.shown)
        if self.bar and keys in ("F5", "Control+r"):
            return WindowCommand("reload")
        if self.bar and keys in ("Control+l", "Alt+d", "F6"):
            self._begin_address()
        return None

    def _of_page(self, action: act.ExecutableAction) -> act.ExecutableAction | None:
        if self._addressed and _points(action):
            self._addressed = False
        if self._addressed or not self.bar:
            return None if self._addressed else action

        def moved(point: act.Point) -> act.Point:
            return act.Point(point.x, min(1000.0, max(0.0, (self._css(point)[1] - self.bar) / self.height * 1000)))

        return action.model_copy(update={name: moved(point) for name, point in _points(action).items()})

    def _begin_address(self) -> None:
        self._addressed, self._field = True, _Field(self.tabs[self.shown].address, chosen=True)

    def _above(self, action: act.ExecutableAction) -> bool:
        return any(self._css(point)[1] < self.bar for point in _points(action).values())

    def _css(self, point: act.Point) -> tuple[float, float]:
        return point.x / 1000 * self.width, point.y / 1000 * (self.height + self.bar)

    def _controls(self) -> list[tuple[WindowCommand, Area]]:
        wide = min(WIDEST_TAB, self.width / max(1, len(self.tabs)))
        found: list[tuple[WindowCommand, Area]] = []
        for number in range(len(self.tabs)):
            right = (number + 1) * wide
            if len(self.tabs) > 1:
                found.append((WindowCommand("close", tab=number), (right - 18, 4, right - 4, STRIP - 4)))
            found.append((WindowCommand("show", tab=number), (right - wide, 0, right, STRIP)))
        ways: tuple[Way, ...] = ("back", "forward", "reload")
        for number, way in enumerate(ways):
            found.append((WindowCommand(way), (4 + number * BUTTON, STRIP + 2, 4 + (number + 1) * BUTTON, BAR - 2)))
        return [*found, (WindowCommand("go"), (8 + 3 * BUTTON, STRIP + 4, self.width - 4, BAR - 4))]

    def _box(self, dialog: Dialog) -> _Box:
        wide = min(WIDEST_BOX, self.width - 2 * MARGIN)
        room = int((self.height - 2 * MARGIN) / LINE) - (5 if dialog.kind == "prompt" else 4)
        lines = _wrapped(dialog.words, wide - 2 * MARGIN, max(1, room))
        left, top = (self.width - wide) / 2, self.bar + MARGIN
        y = top + MARGIN + LINE * (1 + len(lines)) + 4
        field = None
        if dialog.kind == "prompt":
            field = (left + MARGIN, y, left + wide - MARGIN, y + LINE + 6)
            y += LINE + 12
        buttons, right = [], left + wide - MARGIN
        for label, way in reversed(dialog.buttons):
            width = _length(label) + 2 * MARGIN
            buttons.append((way, (right - width, y, right, y + LINE + 6)))
            right -= width + 6
        return _Box((left, top, left + wide, y + LINE + 6 + MARGIN), lines, field, buttons)

    def draw(self, page: bytes) -> bytes:
        """A screenshot of the page as an image of the whole; the bytes as they are if there is nothing around the page."""
        if not self.bar and self._dialog is None:
            return page
        seen = picture(page)
        scale = seen.width / self.width
        whole = Image.new("RGB", (seen.width, seen.height + round(self.bar * scale)), _WHITE)
        whole.paste(seen, (0, round(self.bar * scale)))
        pen = _Pen(whole, scale)
        if self.bar:
            self._draw_bar(pen)
        if self._dialog is not None:
            self._draw_dialog(pen, self._dialog)
        return png(whole)

    def _draw_bar(self, pen: _Pen) -> None:
        pen.area((0, 0, self.width, STRIP), _LIGHT)
        pen.area((0, STRIP, self.width, BAR), _WHITE)
        for command, area in self._controls():
            left, top, right, bottom = area
            match command.way:
                case "show":
                    if command.tab == self.shown:
                        pen.area((left, top + 3, right, bottom), _WHITE)
                    tab = self.tabs[command.tab]
                    closes = 20 if len(self.tabs) > 1 else 4
                    pen.text((left + 6, top + 7), _cut(tab.title or tab.address, right - left - 6 - closes), _BLACK)
                case "close":
                    pass  # drawn last, over its tab
                case "go":
                    pen.area(area, _LIGHT, radius=8, outline=_EDGE if self._addressed else None)
                    if self._addressed:
                        pen.field(self._field, area)
                    else:
                        pen.text((left + 8, top + 4), _cut(self.tabs[self.shown].address, right - left - 16), _BLACK)
                case way:
                    pen.text((left + 6, top + 5), {"back": "\u2190", "forward": "\u2192"}.get(way, "\u21bb"), _BLACK)
        for command, (left, top, _, _) in self._controls():
            if command.way == "close":
                pen.text((left + 2, top + 2), "\u00d7", _BLACK)
        pen.area((0, BAR - 1, self.width, BAR), _GREY)

    def _draw_dialog(self, pen: _Pen, dialog: Dialog) -> None:
        box = self._box(dialog)
        left, top, _, _ = box.area
        pen.area(box.area, _WHITE, radius=6, outline=_GREY)
        for number, line in enumerate((_cut(dialog.heading, WIDEST_BOX), *box.lines)):
            pen.text((left + MARGIN, top + MARGIN + LINE * number), line, _GREY if number == 0 else _BLACK)
        if box.field is not None:
            pen.area(box.field, _WHITE, outline=_EDGE)
            pen.field(self._field, box.field)
        for (way, area), (label, _) in zip(box.buttons, reversed(dialog.buttons), strict=True):
            pen.area(area, _BLUE if way == "accept" else _LIGHT, radius=6)
            pen.text((area[0] + MARGIN, area[1] + 4), label, _WHITE if way == "accept" else _BLACK)


class _Box(NamedTuple):
    area: Area
    lines: Sequence[str]
    field: Area | None
    buttons: Sequence[tuple[Way, Area]]


class _Field:
    """A line of text that is edited at its end; while it is ``chosen``, typing replaces it."""

    def __init__(self, text: str = "", *, chosen: bool = False) -> None:
        self.text, self.chosen = text, chosen

    def edited(self, action: act.ExecutableAction, keys: str) -> Literal["edited", "enter", "escape"] | None:
        """What a key or a text does to it; ``None`` if it is neither."""
        if isinstance(action, act.Type):
            line, newline, _ = action.text.partition("\n")
            self.text, self.chosen = ("" if self.chosen else self.text) + line, False
            return "enter" if newline else "edited"
        match keys:
            case "Enter":
                return "enter"
            case "Escape":
                return "escape"
            case "Control+a":
                self.chosen = True
            case "Backspace" | "Delete":
                self.text, self.chosen = "" if self.chosen else self.text[:-1] if keys == "Backspace" else self.text, False
            case _:
                return None
        return "edited"


class _Pen:
    """Draws in CSS pixels on an image that is ``scale`` times as large."""

    def __init__(self, image: Image.Image, scale: float) -> None:
        self._draw, self._scale = ImageDraw.Draw(image), scale

    def area(self, area: Area, fill: str, *, radius: float = 0, outline: str | None = None) -> None:
        left, top, right, bottom = (round(edge * self._scale) for edge in area)
        width = max(1, round(self._scale))
        self._draw.rounded_rectangle((left, top, right - 1, bottom - 1), radius * self._scale, fill, outline, width)

    def text(self, place: tuple[float, float], text: str, colour: str) -> None:
        x, y = (round(part * self._scale) for part in place)
        self._draw.text((x, y), text, colour, _font(12 * self._scale))

    def field(self, field: _Field, area: Area) -> None:
        left, top, right, _ = area
        text = field.text
        while text and _length(text) > right - left - 2 * MARGIN:
            text = text[1:]  # the end has the caret
        end = left + MARGIN + _length(text)
        if field.chosen and text:
            self.area((left + MARGIN - 1, top + 3, end + 1, top + LINE + 2), "#a8c7fa")
        self.text((left + MARGIN, top + 4), text, _BLACK)
        if not field.chosen:
            self.area((end, top + 3, end + 1, top + LINE + 2), _BLACK)


def permitted(address: str, start: str) -> str | None:
    """The address that a person has typed, if it is of the server, or in the folder, of the page ``start``; else ``None``."""
    begin = urlsplit(start)
    try:
        asked = urlsplit(address if "://" in address else f"{begin.scheme}://{address}")
        same = asked.scheme == begin.scheme and asked.netloc == begin.netloc
    except ValueError:
        return None
    if begin.scheme == "file":
        same = same and normpath(unquote(asked.path)).startswith(begin.path.rpartition("/")[0] + "/")
    return asked.geturl() if same else None


def website(address: str) -> str | None:
    """The address of a website that a person has typed, with ``https`` if no scheme is named; ``None`` for another address."""
    try:
        asked = urlsplit(address if "://" in address else f"https://{address}")
    except ValueError:
        return None
    return asked.geturl() if asked.scheme in ("http", "https") and asked.hostname and " " not in asked.netloc else None


def _points(action: act.ExecutableAction) -> dict[str, act.Point]:
    found = {name: getattr(action, name, None) for name in ("point", "start", "end")}
    return {name: point for name, point in found.items() if isinstance(point, act.Point)}


def _keys(action: act.ExecutableAction) -> str:
    """Keys as ``Control+a``, or the name of a button; empty for another action."""
    match action:
        case act.Press():
            return {"ENTER": "Enter"}.get(action.button, action.button)
        case act.Hotkey():
            return "+".join(name for key in action.keys if (name := key_name(key)) is not None)
    return ""


def _inside(area: Area, place: tuple[float, float]) -> bool:
    return area[0] <= place[0] < area[2] and area[1] <= place[1] < area[3]


@cache
def _font(size: float) -> Any:
    return ImageFont.truetype(str(FONT), size)


def _length(text: str) -> float:
    return float(_font(12).getlength(text))


def _cut(text: str, width: float) -> str:
    """A text of one line, with an ellipsis if it is wider than ``width`` CSS pixels."""
    text = " ".join(text.split())
    if _length(text) <= width:
        return text
    while text and _length(text + "\u2026") > width:
        text = text[:-1]
    return text + "\u2026"


def _wrapped(text: str, width: float, most: int) -> list[str]:
    """A text in at most ``most`` lines of ``width`` CSS pixels, broken at words where a word fits."""
    lines: list[str] = []
    for paragraph in text[:5000].splitlines() or [""]:
        line = ""
        for word in paragraph.split():
            while _length(word) > width:
                fits = next(end for end in range(len(word) - 1, 0, -1) if _length(word[:end]) <= width or end == 1)
                lines += [line, word[:fits]] if line else [word[:fits]]
                line, word = "", word[fits:]
            longer = f"{line} {word}".strip()
            if _length(longer) > width:
                lines.append(line)
                line = word
            else:
                line = longer
        lines.append(line)
    if len(lines) > most:
        lines = [*lines[: most - 1], _cut(lines[most - 1] + "\u2026", width)]
    return lines

"""Draws a screen with Pillow and its built-in font, so that a screenshot depends on Pillow's version only.

Places and texts come from :mod:`guieval.playground.phone.layout`.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from guieval.playground.icons.pictograms import PICTOGRAMS, mask
from guieval.playground.phone.layout import WIDTH, Element, PixelBox, Screen
from guieval.playground.phone.state import Colour, Style

if TYPE_CHECKING:
    from PIL.Image import Image
    from PIL.ImageFont import FreeTypeFont


@dataclass(frozen=True)
class Palette:
    """A theme's colours; ``text`` and ``faint`` are readable (contrast above 4.5) on ``page``, ``raised`` and ``inset``."""

    page: Colour
    raised: Colour
    inset: Colour
    line: Colour
    off: Colour
    text: Colour
    faint: Colour


LIGHT = Palette((255, 255, 255), (248, 249, 251), (236, 238, 242), (214, 217, 222), (148, 152, 160), (28, 29, 33), (84, 89, 98))
DARK = Palette((20, 21, 24), (32, 34, 38), (46, 49, 55), (64, 67, 74), (90, 94, 102), (236, 237, 240), (176, 180, 188))
AVATARS: tuple[Colour, ...] = (
    (38, 98, 168),
    (140, 60, 110),
    (34, 112, 76),
    (150, 80, 20),
    (92, 72, 160),
    (20, 108, 122),
    (160, 52, 52),
    (84, 92, 104),
)
WHITE: Colour = (255, 255, 255)


def draw(screen: Screen) -> Image:
    """The screenshot of ``screen`` as an RGB image of its size."""
    brush = _Brush(screen)
    if screen.page is None:
        brush.wallpaper()
    for element in screen.elements:
        getattr(brush, element.role)(element)
    return brush.image


@lru_cache(maxsize=64)
def _font(size: int) -> FreeTypeFont:
    from PIL import ImageFont

    font = ImageFont.load_default(size)
    if not isinstance(font, ImageFont.FreeTypeFont):
        raise RuntimeError("this Pillow was built without FreeType, which drawing screens needs")
    return font


def _stable(text: str) -> int:
    return hashlib.sha256(text.encode()).digest()[0]


def accent_on(style: Style) -> Colour:
    """The accent as a text and icon colour on the page: lightened on dark themes until it can be read."""
    if not style.dark:
        return style.accent
    red, green, blue = (round(part + (255 - part) * 0.55) for part in style.accent)
    return red, green, blue


class _Brush:
    """One drawing in progress: a method of its own for each role of an element. ``px`` turns dp into pixels."""

    def __init__(self, screen: Screen) -> None:
        from PIL import Image, ImageDraw

        self.screen, self.style = screen, screen.style
        self.colours = DARK if screen.style.dark else LIGHT
        self.accent = accent_on(screen.style)
        self.scale = screen.size[0] / WIDTH
        self.image = Image.new("RGB", screen.size, self.colours.page)
        self.pen = ImageDraw.Draw(self.image)

    def px(self, length: float) -> int:
        return round(length * self.scale)

    def wallpaper(self) -> None:
        (r1, g1, b1), (r2, g2, b2) = self.style.wallpaper
        width, height = self.screen.size
        for y in range(height):
            share = (y * 256 // height) / 256
            shade = (round(r1 + (r2 - r1) * share), round(g1 + (g2 - g1) * share), round(b1 + (b2 - b1) * share))
            self.pen.line(((0, y), (width, y)), fill=shade)

    def font(self, size: float) -> FreeTypeFont:
        """The font at ``size`` dp, scaled by the phone's text setting."""
        return _font(max(8, self.px(size * self.style.text)))

    def write(
        self,
        place: tuple[float, float],
        text: str,
        size: float,
        colour: Colour,
        *,
        anchor: str = "lm",
        room: float | None = None,
        bold: bool = False,
    ) -> None:
        """Write one line at ``place`` (pixels) in ``size`` dp, cut with dots if it is longer than ``room`` pixels."""
        font = self.font(size)
        text = text.replace("\n", " ")
        if room is not None and font.getlength(text) > room:
            while text and font.getlength(text + "...") > room:
                text = text[:-1]
            text = text.rstrip() + "..."
        x, y = round(place[0]), round(place[1])
        self.pen.text((x, y), text, fill=colour, font=font, anchor=anchor)
        if bold:  # the font has one weight; a second print, a little to the right, makes it heavier
            self.pen.text((x + max(1, self.px(0.5)), y), text, fill=colour, font=font, anchor=anchor)

    def lines(self, left: float, top: float, element: Element, size: float, step: float, colour: Colour) -> None:
        for index, line in enumerate(element.lines):
            self.write((left, top + self.px(step * self.style.text) * index), line, size, colour, anchor="la")

    def symbol(self, name: str, x: float, y: float, size: float, colour: Colour) -> None:
        """Draw a pictogram of ``size`` dp with its middle at (x, y) pixels."""
        side = max(8, self.px(size))
        shape = mask(name, side)
        self.image.paste(colour, (round(x - side / 2), round(y - side / 2)), shape)

    def block(self, box: tuple[float, float, float, float], colour: Colour, radius: float = 0.0) -> None:
        x1, y1, x2, y2 = box
        if x2 - 1 < x1 or y2 - 1 < y1:
            return
        if radius:
            self.pen.rounded_rectangle((x1, y1, x2 - 1, y2 - 1), self.px(radius), fill=colour)
        else:
            self.pen.rectangle((x1, y1, x2 - 1, y2 - 1), fill=colour)

    def disc(self, x: float, y: float, radius: float, colour: Colour) -> None:
        self.block((x - radius, y - radius, x + radius, y + radius), colour, radius / self.scale)

    # content

    def header(self, element: Element) -> None:
        box = element.full
        self.write((box.x1, _middle(box) + self.px(3)), element.label, 13.5, self.accent, room=box.x2 - box.x1, bold=True)

    def row(self, element: Element) -> None:
        box, widget = element.full, element.widget
        left, right = float(box.x1 + self.px(self.style.margin)), box.x2 - self.px(self.style.margin)
        middle = _middle(box)
        if widget.symbol:
            left += self.lead(widget.symbol, left, middle)
        if widget.on is not None:
            right -= self.px(62)
        if widget.trailing:
            self.write((right, middle), widget.trailing, 13, self.accent, anchor="rm")
            right -= self.px(len(widget.trailing) * 8 + 12)
        first = middle - self.px(10) if widget.detail else middle
        self.write((left, first), widget.label, 16, self.colours.text, room=right - left)
        if widget.detail:
            self.write((left, middle + self.px(12)), widget.detail, 13.5, self.colours.faint, room=right - left)
        self.pen.line(((left, box.y2 - 1), (box.x2, box.y2 - 1)), fill=self.colours.inset)

    def lead(self, symbol: str, left: float, middle: float) -> float:
        """Draw the symbol before a row's text; return its width in pixels."""
        kind, _, name = symbol.partition(":")
        if kind not in ("avatar", "thumb"):
            self.symbol(symbol, left + self.px(12), middle, 22, self.accent)
            return self.px(36)
        side = self.px(40)
        top = middle - side / 2
        colour = AVATARS[_stable(name) % len(AVATARS)]
        corner = 20 if kind == "avatar" and self.style.round_avatars else 8
        self.block((left, top, left + side, top + side), colour, corner)
        self.emblem(name, left + side / 2, middle, 20)
        return self.px(54)

    def emblem(self, name: str, x: float, y: float, size: float) -> None:
        """Draw the pictogram of that name, or initials if there is none."""
        if name in PICTOGRAMS:
            self.symbol(name, x, y, size * 1.2, WHITE)
        else:
            initials = "".join(word[0] for word in name.split()[:2]).upper()
            self.write((x, y), initials, size * 0.85, WHITE, anchor="mm")

    def switch(self, element: Element) -> None:
        box = element.full
        on = bool(element.widget.on)
        self.block(box, self.style.accent if on else self.colours.off, 15)
        radius = (box.y2 - box.y1) / 2 - self.px(4)
        x = box.x2 - self.px(4) - radius if on else box.x1 + self.px(4) + radius
        self.disc(round(x), _middle(box), round(radius), WHITE if on or not self.style.dark else self.colours.faint)

    def field(self, element: Element) -> None:
        box, widget = element.full, element.widget
        inside = box.x1 + self.px(12)
        room = box.x2 - box.x1 - self.px(24)
        edge = self.accent if widget.on else self.colours.line
        self.block(box, edge, 10)
        line = self.px(2 if widget.on else 1) or 1
        self.block((box.x1 + line, box.y1 + line, box.x2 - line, box.y2 - line), self.colours.raised, 9)
        if element.name == "field:message":
            self.typed(inside, _middle(box), element, room)
            return
        label = self.accent if widget.on else self.colours.faint
        self.write((inside, box.y1 + self.px(14)), widget.label, 12.5, label, room=room)
        top = box.y1 + self.px(26)
        if widget.lines == 1:
            self.typed(inside, (top + box.y2) / 2 - self.px(2), element, room)
            return
        step = self.px(22 * self.style.text)
        for index, text in enumerate(element.lines[-widget.lines :] if widget.detail else (widget.hint,)):
            y = top + step * index + step / 2
            colour = self.colours.text if widget.detail else self.colours.faint
            self.write((inside, y), text, 16, colour, room=room)
        if widget.on and widget.detail:
            last = element.lines[-1]
            self.cursor(inside, top + step * (min(len(element.lines), widget.lines) - 0.5), last)

    def typed(self, x: float, y: float, element: Element, room: float) -> None:
        """Write a one-line field's text with the cursor, or its hint. Only the end of a long text is shown."""
        text = element.widget.detail
        font = self.font(16)
        while text and font.getlength(text) > room - self.px(6):
            text = text[1:]
        if text:
            self.write((x, y), text, 16, self.colours.text)
        else:
            self.write(
                (x + (self.px(4) if element.widget.on else 0), y), element.widget.hint, 16, self.colours.faint, room=room
            )
        if element.widget.on:
            self.cursor(x, y, text)

    def cursor(self, x: float, y: float, text: str) -> None:
        x += self.font(16).getlength(text) + self.px(1)
        self.block((round(x), round(y) - self.px(10), round(x) + max(1, self.px(1.5)), round(y) + self.px(10)), self.accent)

    def search(self, element: Element) -> None:
        box = element.full
        self.block(box, self.accent if element.widget.on else self.colours.inset, 24)
        if element.widget.on:
            line = max(1, self.px(1.5))
            self.block((box.x1 + line, box.y1 + line, box.x2 - line, box.y2 - line), self.colours.inset, 23)
        self.symbol("search", box.x1 + self.px(24), _middle(box), 20, self.colours.faint)
        self.typed(box.x1 + self.px(46), _middle(box), element, box.x2 - box.x1 - self.px(62))

    def button(self, element: Element) -> None:
        box = element.full
        self.block(box, self.style.accent, 12)
        self.write((_centre(box), _middle(box)), element.label, 16, WHITE, anchor="mm", room=box.x2 - box.x1)

    def text(self, element: Element) -> None:
        self.lines(element.full.x1, element.full.y1 + self.px(10), element, 15, 22, self.colours.text)

    def big(self, element: Element) -> None:
        box = element.full
        top = box.y1 + self.px(12)
        for index, line in enumerate(element.lines):
            place = (box.x1, top + self.px(30 * self.style.text) * index)
            self.write(place, line, 22, self.colours.text, anchor="la", bold=True)
        if element.widget.detail:
            place = (box.x1, box.y2 - self.px(10))
            self.write(place, element.widget.detail, 16, self.accent, anchor="ls")

    def art(self, element: Element) -> None:
        box = element.full
        name = element.widget.symbol.partition(":")[2] or element.widget.symbol
        self.picture((box.x1, box.y1 + self.px(8), box.x2, box.y2 - self.px(8)), name, 54)

    def picture(self, box: tuple[float, float, float, float], name: str, size: float) -> None:
        """Draw a placeholder for a photograph: a coloured rectangle with a band and an emblem."""
        x1, y1, x2, y2 = box
        number = _stable(name)
        colour = AVATARS[number % len(AVATARS)]
        self.block(box, colour, 12)
        band = (y2 - y1) * (0.15 + 0.1 * (number % 3))
        shade = (round(colour[0] * 0.8), round(colour[1] * 0.8), round(colour[2] * 0.8))
        self.block((x1, round(y2 - band), x2, y2), shade, 12)
        self.emblem(name, (x1 + x2) / 2, (y1 + y2) / 2, size)

    def received(self, element: Element) -> None:
        self.bubble(element, self.colours.inset, self.colours.text)

    def sent(self, element: Element) -> None:
        self.bubble(element, self.style.accent, WHITE)

    def bubble(self, element: Element, ground: Colour, text: Colour) -> None:
        box = element.full
        self.block(box, ground, 14)
        self.lines(box.x1 + self.px(14), box.y1 + self.px(9), element, 15, 21, text)

    def icon(self, element: Element) -> None:
        box, widget = element.full, element.widget
        side = self.px(52)
        x, y = _centre(box), box.y1 + self.px(4) + side / 2
        colour = AVATARS[_stable(widget.label) % len(AVATARS)]
        left, top = round(x - side / 2), round(y - side / 2)
        self.block((left, top, left + side, top + side), WHITE if self.style.round_avatars else colour, 15)
        if widget.symbol:
            self.symbol(widget.symbol, x, y, 30, colour if self.style.round_avatars else WHITE)
        else:
            self.write((x, y), widget.label[0], 26, colour if self.style.round_avatars else WHITE, anchor="mm", bold=True)
        self.write((x, top + side + self.px(15)), widget.label, 13, WHITE, anchor="mm", room=box.x2 - box.x1)

    def tile(self, element: Element) -> None:
        box, widget = element.full, element.widget
        self.block(box, self.colours.inset, 12)
        text = box.y2 - self.px(52)
        self.picture((box.x1 + self.px(6), box.y1 + self.px(6), box.x2 - self.px(6), text), widget.symbol, 26)
        left, room = box.x1 + self.px(10), box.x2 - box.x1 - self.px(16)
        self.write((left, text + self.px(16)), widget.label, 13, self.colours.text, room=room)
        self.write((left, text + self.px(37)), widget.detail, 14, self.accent, room=room)

    def empty(self, element: Element) -> None:
        box = element.full
        x, y = _centre(box), _middle(box)
        room = box.x2 - box.x1
        self.write((x, y - self.px(8)), element.label, 20, self.colours.text, anchor="mm", room=room, bold=True)
        self.write((x, y + self.px(22)), element.widget.detail, 15, self.colours.faint, anchor="mm", room=room)

    # parts with a fixed place

    def bar(self, element: Element) -> None:
        kind, box = element.widget.symbol, element.full
        if kind == "pill":
            self.block(box, self.colours.page)
        elif kind == "keyboard":
            self.block(box, self.colours.inset)
        else:
            self.block(box, self.colours.raised)
        if kind == "bottom":
            self.pen.line(((box.x1, box.y1), (box.x2, box.y1)), fill=self.colours.line)
        if kind != "top":
            self.pill()

    def pill(self) -> None:
        width, height = self.screen.size
        colour = WHITE if self.screen.page is None else self.colours.faint
        self.block((width / 2 - self.px(50), height - self.px(9), width / 2 + self.px(50), height - self.px(5)), colour, 2)

    def status(self, element: Element) -> None:
        colour = WHITE if self.screen.page is None else self.colours.text
        middle = _middle(element.full)
        self.write((self.px(16), middle), element.label, 13, colour)
        right = self.screen.size[0] - self.px(20)
        self.symbol("battery", right, middle, 15, colour)
        self.symbol("signal", right - self.px(20), middle, 13, colour)

    def title(self, element: Element) -> None:
        box = element.full
        self.write((box.x1, _middle(box)), element.label, 20, self.colours.text, room=box.x2 - box.x1, bold=True)

    def action(self, element: Element) -> None:
        x, y = _centre(element.full), _middle(element.full)
        if element.widget.symbol:
            self.symbol(element.widget.symbol, x, y, 24, self.colours.text)
        else:
            self.write((x, y), element.label, 16, self.accent, anchor="mm", bold=True)

    def tab(self, element: Element) -> None:
        box, widget = element.full, element.widget
        colour = self.accent if widget.on else self.colours.faint
        x, middle = _centre(box), _middle(box)
        if widget.on:
            self.block((x - self.px(28), middle - self.px(25), x + self.px(28), middle + self.px(3)), self.colours.inset, 14)
        self.symbol(widget.symbol, x, middle - self.px(11), 20, colour)
        self.write(
            (x, middle + self.px(15)), widget.label, 12.5, colour, anchor="mm", room=box.x2 - box.x1, bold=bool(widget.on)
        )

    def fab(self, element: Element) -> None:
        box = element.full
        self.block(box, self.style.accent, 18)
        self.symbol(element.widget.symbol, _centre(box), _middle(box), 26, WHITE)

    def key(self, element: Element) -> None:
        box, widget = element.full, element.widget
        enter = element.name == "key:enter"
        self.block(box, self.style.accent if enter else self.colours.page, 6)
        if widget.symbol:
            self.symbol(widget.symbol, _centre(box), _middle(box), 20, WHITE if enter else self.colours.text)
        else:
            size = 13 if len(widget.label) > 1 else 18
            self.write((_centre(box), _middle(box)), widget.label, size, self.colours.text, anchor="mm")

    def scrim(self, element: Element) -> None:
        self.image.paste(self.image.point([value * 9 // 20 for value in range(256)] * 3))

    def card(self, element: Element) -> None:
        box = element.full
        self.block(box, self.colours.raised, 20)
        left = box.x1 + self.px(24)
        room = box.x2 - box.x1 - self.px(48)
        if element.widget.detail == "sheet":
            self.block((box.x1, box.y2 - self.px(30), box.x2, box.y2), self.colours.raised)
            self.pill()
        self.write((left, box.y1 + self.px(34)), element.label, 18, self.colours.text, room=room, bold=True)
        self.lines(left, box.y1 + self.px(62), element, 15, 22, self.colours.faint)

    def choice(self, element: Element) -> None:
        box, widget = element.full, element.widget
        middle = _middle(box)
        if widget.detail == "dialog":
            self.write((_centre(box), middle), element.label, 16, self.accent, anchor="mm", bold=True)
            return
        left = box.x1 + self.px(24)
        if widget.detail == "options":
            radius = self.px(9)
            self.disc(left + radius, middle, radius, self.accent if widget.on else self.colours.faint)
            self.disc(left + radius, middle, radius - max(2, self.px(2)), self.colours.raised)
            if widget.on:
                self.disc(left + radius, middle, radius - self.px(4), self.accent)
            left += self.px(34)
        self.write((left, middle), element.label, 16, self.colours.text, room=box.x2 - left - self.px(12))

    def spinner(self, element: Element) -> None:
        box = element.full
        x, y, radius = _centre(box), box.y1 + self.px(36), self.px(22)
        ring = (x - radius, y - radius, x + radius, y + radius)
        self.pen.arc(ring, 0, 360, fill=self.colours.inset, width=self.px(4))
        self.pen.arc(ring, 270, 30, fill=self.accent, width=self.px(4))
        self.write((x, y + self.px(48)), element.label, 16, self.colours.faint, anchor="mm")

    def toast(self, element: Element) -> None:
        box = element.full
        self.block(box, (50, 52, 58), 19)
        self.write((_centre(box), _middle(box)), element.label, 14.5, WHITE, anchor="mm", room=box.x2 - box.x1 - self.px(20))

    def clock(self, element: Element) -> None:
        x, middle = _centre(element.full), _middle(element.full)
        self.write((x, middle - self.px(12)), element.label, 46, WHITE, anchor="mm")
        self.write((x, middle + self.px(32)), element.widget.detail, 15, WHITE, anchor="mm")

    def dots(self, element: Element) -> None:
        count, present = int(element.label), int(element.widget.detail)
        for index in range(count):
            x = _centre(element.full) + self.px(14) * (index - (count - 1) / 2)
            self.disc(round(x), _middle(element.full), self.px(4 if index == present else 3), WHITE)
        self.pill()


def _middle(box: PixelBox) -> float:
    return (box.y1 + box.y2) // 2


def _centre(box: PixelBox) -> float:
    return (box.x1 + box.x2) // 2

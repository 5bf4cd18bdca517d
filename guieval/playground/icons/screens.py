"""Screens of coloured icons, and goals that tap some of them in order: a world for a policy of a few million weights.

A goal names two to four icons ("tap red circle, blue star"). Every screen of its episode shows all of them, and further ones,
at new places, so that only the past tells which comes next. Goals belong to the split ``train`` or ``test``, never to both.
Everything is a pure function of seed, split and episode number, within one ``VERSION``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from guieval.actions import Box, Point
from guieval.frames import Size
from guieval.playground.phone.dice import Dice

if TYPE_CHECKING:
    from PIL.Image import Image

VERSION = 1
"""Changes when the same seed gives other screens or goals."""
WIDTH, HEIGHT = 252, 448
SIZE = (WIDTH, HEIGHT)
STATUS_BAR = 18
"""Height in pixels of the dark bar at the top, on a screen of :data:`SIZE`; lengths grow with a screen's shorter side."""

Split: TypeAlias = Literal["train", "test"]
SPLITS: tuple[Split, ...] = get_args(Split)

COLOURS: dict[str, tuple[int, int, int]] = {
    "red": (220, 40, 40),
    "green": (40, 170, 60),
    "blue": (40, 80, 220),
    "yellow": (235, 205, 40),
    "purple": (150, 50, 190),
    "orange": (245, 140, 30),
    "black": (20, 20, 20),
    "cyan": (40, 200, 210),
}
SHAPES = ("circle", "square", "triangle", "diamond", "star")
LEAST, MOST = 4, 8
"""Icons a screen."""
_MARGIN = 4
_SIDES = (34, 56)
_TRIES = 60
_TEST_PART = 5  # one goal in so many is for testing


@dataclass(frozen=True, order=True)
class Icon:
    """A kind of icon; a screen has at most one of each kind."""

    colour: str
    shape: str

    @property
    def name(self) -> str:
        """As goals name it: ``blue star``."""
        return f"{self.colour} {self.shape}"


ICONS = tuple(Icon(colour, shape) for colour in COLOURS for shape in SHAPES)
_NUMBERS = {icon: number for number, icon in enumerate(ICONS)}


@dataclass(frozen=True)
class PlacedIcon:
    """An icon on a screen of ``screen`` (width, height); ``left``, ``top`` and ``side`` of its square are in pixels."""

    icon: Icon
    left: int
    top: int
    side: int
    screen: Size = SIZE

    @property
    def pixels(self) -> tuple[int, int, int, int]:
        """Left, top, right, bottom in pixels."""
        return self.left, self.top, self.left + self.side, self.top + self.side

    @property
    def box(self) -> Box:
        """The square in the unified frame, [0, 1000] per axis."""
        (x1, y1, x2, y2), (width, height) = self.pixels, self.screen
        return Box(x1 / width * 1000, y1 / height * 1000, x2 / width * 1000, y2 / height * 1000)

    @property
    def centre(self) -> Point:
        """The square's middle in the unified frame; it is on the icon whatever its shape."""
        box = self.box
        return Point((box.x1 + box.x2) / 2, (box.y1 + box.y2) / 2)


@dataclass(frozen=True)
class IconScreen:
    """The content of one screenshot; ``background`` is an RGB colour."""

    icons: tuple[PlacedIcon, ...]
    background: tuple[int, int, int]
    size: Size = SIZE

    def find(self, icon: Icon) -> PlacedIcon:
        """Where ``icon`` is; ``KeyError`` when it is not shown."""
        for placed in self.icons:
            if placed.icon == icon:
                return placed
        raise KeyError(icon.name)

    def render(self) -> Image:
        """The screenshot as an RGB image of the screen's size in pixels."""
        from PIL import Image, ImageDraw

        image = Image.new("RGB", self.size, self.background)
        draw = ImageDraw.Draw(image)
        draw.rectangle((0, 0, self.size[0], _length(STATUS_BAR, self.size)), fill=(60, 60, 70))
        for placed in self.icons:
            colour = COLOURS[placed.icon.colour]
            if placed.icon.shape == "circle":
                draw.ellipse(placed.pixels, fill=colour)
            elif placed.icon.shape == "square":
                draw.rectangle(placed.pixels, fill=colour)
            else:
                draw.polygon(_corners(placed), fill=colour)
        return image


def _corners(placed: PlacedIcon) -> list[tuple[float, float]]:
    x1, y1, x2, y2 = placed.pixels
    x, y, radius = (x1 + x2) / 2, (y1 + y2) / 2, placed.side / 2
    if placed.icon.shape == "triangle":
        return [(x, y1), (x2, y2), (x1, y2)]
    if placed.icon.shape == "diamond":
        return [(x, y1), (x2, y), (x, y2), (x1, y)]
    lengths = [radius if corner % 2 == 0 else radius * 0.42 for corner in range(10)]
    turns = [corner * math.pi / 5 for corner in range(10)]
    return [(x + r * math.sin(turn), y - r * math.cos(turn)) for r, turn in zip(lengths, turns, strict=True)]


@dataclass(frozen=True)
class IconEpisode:
    """A goal and the screens on which it is done: on screen ``i``, ``goal[i]`` is to be tapped."""

    number: int
    goal: tuple[Icon, ...]
    screens: tuple[IconScreen, ...]

    def __len__(self) -> int:
        return len(self.goal)


def goal_text(goal: Sequence[Icon]) -> str:
    """The goal as the model's instruction: ``tap red circle, blue star``."""
    return "tap " + ", ".join(icon.name for icon in goal)


def split_of(goal: Sequence[Icon]) -> Split:
    """The split a goal belongs to, by which icons it names: another order of the same icons is in the same split."""
    return "test" if sum(_NUMBERS[icon] for icon in goal) % _TEST_PART == 0 else "train"


def draw_goal(dice: Dice, split: Split, shown: Sequence[Icon] = ICONS, length: int | None = None) -> tuple[Icon, ...] | None:
    """A goal of ``split`` over the icons ``shown``, of two to four or of ``length``; ``None`` when luck finds none."""
    for _ in range(_TRIES):
        goal = tuple(dice.sample(shown, dice.between(2, 4) if length is None else length))
        if split_of(goal) == split:
            return goal
    return None


def draw_screen(dice: Dice, holding: Sequence[Icon] = (), size: Size = SIZE) -> IconScreen:
    """A screen of four to eight icons, among them all of ``holding`` (at most four), at free places."""
    others = [icon for icon in ICONS if icon not in holding]
    count = dice.between(max(LEAST, len(holding)), MOST)
    kinds = [*holding, *dice.sample(others, count - len(holding))]
    shade = dice.between(228, 255)
    background = (shade, shade, min(255, shade + dice.below(7)))
    placed: list[PlacedIcon] = []
    for icon in kinds:
        place = _place(dice, icon, placed, size)
        if place is not None:
            placed.append(place)
        elif icon in holding or len(placed) < LEAST:
            return draw_screen(dice, holding, size)  # the goal's icons must all be there; crowding this bad is rare
    return IconScreen(tuple(placed), background, size)


def _place(dice: Dice, icon: Icon, placed: Sequence[PlacedIcon], size: Size) -> PlacedIcon | None:
    side, margin = dice.between(*(_length(side, size) for side in _SIDES)), _length(_MARGIN, size)
    for _ in range(_TRIES):
        left = dice.between(margin, size[0] - side - margin)
        top = dice.between(_length(STATUS_BAR + 2, size) + margin, size[1] - side - margin)
        if all(
            left > other.left + other.side + margin
            or left + side < other.left - margin
            or top > other.top + other.side + margin
            or top + side < other.top - margin
            for other in placed
        ):
            return PlacedIcon(icon, left, top, side, size)
    return None


def _length(pixels: int, size: Size) -> int:
    """A length on a screen of ``size`` that is ``pixels`` on one of :data:`SIZE`."""
    return round(pixels * min(size) / WIDTH)


def generate_icon_episode(seed: int, number: int, split: Split) -> IconEpisode:
    """Episode ``number`` of a split: the same for the same arguments on every platform."""
    dice = Dice("icons", VERSION, seed, split, number)
    goal = draw_goal(dice, split)
    while goal is None:
        goal = draw_goal(dice, split)
    return IconEpisode(number, goal, tuple(draw_screen(dice, goal) for _ in goal))

"""Coordinate frames: how models and data sets write a point on the screen, and exact conversions to the unified frame.

The unified frame is [0, 1000] floats per axis (:class:`guieval.actions.Point`). A frame turns a native pair into a
``Point`` (:meth:`decode`) and back (:meth:`encode`); :meth:`quantise` is ``encode`` followed by Python's half-even
rounding for frames whose models write integers. Sizes are (width, height) in pixels of the original screenshot.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

from guieval.actions import Point

Size = tuple[int, int]


class Frame(ABC):
    """A native coordinate system, which scales each axis by its extent."""

    @property
    @abstractmethod
    def name(self) -> str:
        """Short name for documentation and messages."""

    @abstractmethod
    def extent(self, size: Size) -> tuple[float, float]:
        """The native coordinates of the lower right corner for a screenshot of ``size``."""

    def decode(self, x: float, y: float, size: Size) -> Point:
        """Native pair to unified point.

        Raises ``ValueError`` when the pair is not finite or is outside the screen.
        """
        width, height = self.extent(size)
        if not (0.0 <= x <= width and 0.0 <= y <= height):  # also refuses NaN
            raise ValueError(f"({x:g}, {y:g}) lies outside the {width:g} x {height:g} frame {self.name!r}")
        return Point(min(x * 1000.0 / width, 1000.0), min(y * 1000.0 / height, 1000.0))  # the edge may round to above 1000

    def encode(self, point: Point, size: Size) -> tuple[float, float]:
        """Unified point to native pair, unrounded."""
        width, height = self.extent(size)
        return point.x * width / 1000.0, point.y * height / 1000.0

    def quantise(self, point: Point, size: Size) -> tuple[float, float]:
        """Unified point to the native pair a model would write."""
        x, y = self.encode(point, size)
        return round(x), round(y)


@dataclass(frozen=True)
class Normalised(Frame):
    """Both axes scaled to [0, ``scale``] for every screen size: 1 (relative), 999 (Qwen3-VL, GLM) or 1000 (UI-TARS 1.0)."""

    scale: float
    digits: int = 0  # decimals a model writes; 0 means integers

    @property
    def name(self) -> str:
        return f"0-{self.scale:g}"

    def extent(self, size: Size) -> tuple[float, float]:
        return self.scale, self.scale

    def quantise(self, point: Point, size: Size) -> tuple[float, float]:
        x, y = self.encode(point, size)
        return (round(x, self.digits), round(y, self.digits)) if self.digits else (round(x), round(y))


@dataclass(frozen=True)
class OriginalPixels(Frame):
    """Pixels of the screenshot file."""

    name: str = "pixels"

    def extent(self, size: Size) -> tuple[float, float]:
        return float(size[0]), float(size[1])


@dataclass(frozen=True)
class ResizedPixels(Frame):
    """Pixels of the image after the Qwen family's ``smart_resize``, which is the image that the model sees.

    With ``first``, the image goes through that resize before this one.
    """

    factor: int = 28
    min_pixels: int = 4 * 28 * 28
    max_pixels: int = 16384 * 28 * 28
    first: ResizedPixels | None = None

    @property
    def name(self) -> str:
        return f"pixels-resized-{self.factor}"

    def resized(self, size: Size) -> Size:
        """The (width, height) of the image that the model sees."""
        before = size if self.first is None else self.first.resized(size)
        return smart_resize(before, self.factor, self.min_pixels, self.max_pixels)

    def extent(self, size: Size) -> tuple[float, float]:
        width, height = self.resized(size)
        return float(width), float(height)


@dataclass(frozen=True)
class Canvas(Frame):
    """Parts of a white image, ``scale`` on each axis, whose upper left corner has the screenshot, as large as fits.

    ``sides`` are the (width, height) of the image in pixels, so a smaller screenshot is enlarged.
    """

    sides: Size
    scale: float = 1000.0

    @property
    def name(self) -> str:
        return "0-{:g} of a canvas of {} x {}".format(self.scale, *self.sides)

    def extent(self, size: Size) -> tuple[float, float]:
        across, down = size[0] * self.sides[1], size[1] * self.sides[0]
        return min(self.scale, self.scale * across / down), min(self.scale, self.scale * down / across)

    def shown(self, size: Size) -> Size:
        """The (width, height) of the screenshot on the image, in pixels."""
        (width, height), (across, down) = self.extent(size), self.sides
        return max(1, round(width * across / self.scale)), max(1, round(height * down / self.scale))

    def decode(self, x: float, y: float, size: Size) -> Point:
        """As others do, but for a number that is past the edge by less than one: models write whole numbers."""
        x, y = (edge if edge < value < edge + 1 else value for value, edge in zip((x, y), self.extent(size), strict=True))
        return super().decode(x, y, size)


RELATIVE = Normalised(1.0, digits=4)
PER_999 = Normalised(999.0)
PER_1000 = Normalised(1000.0)
PIXELS = OriginalPixels()


def smart_resize(size: Size, factor: int = 28, min_pixels: int = 4 * 28 * 28, max_pixels: int = 16384 * 28 * 28) -> Size:
    """The (width, height) to which Qwen processors resize an image of ``size`` (width, height), in pixels.

    Source: ``qwen-vl-utils`` ``vision_process.smart_resize``: each side to its nearest multiple of ``factor`` (half-even,
    at least one); above ``max_pixels`` both original sides shrink by one ratio and round down, below ``min_pixels`` they
    grow and round up. Raises ``ValueError`` for an empty image or an aspect ratio above 200, as the original does.
    """
    width, height = size
    if width < 1 or height < 1:
        raise ValueError(f"an image of {width} x {height} pixels cannot be resized")
    if max(width, height) / min(width, height) > 200:
        raise ValueError(f"the aspect ratio of {width} x {height} is above 200, which the model's processor refuses")
    new_width = max(factor, round(width / factor) * factor)
    new_height = max(factor, round(height / factor) * factor)
    if new_width * new_height > max_pixels:
        ratio = math.sqrt(width * height / max_pixels)
        new_width = max(factor, math.floor(width / ratio / factor) * factor)
        new_height = max(factor, math.floor(height / ratio / factor) * factor)
    elif new_width * new_height < min_pixels:
        ratio = math.sqrt(min_pixels / (width * height))
        new_width = math.ceil(width * ratio / factor) * factor
        new_height = math.ceil(height * ratio / factor) * factor
    return new_width, new_height

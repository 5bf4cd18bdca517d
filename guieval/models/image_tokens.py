"""Which resize a server's token counts show: the limits of Qwen's ``smart_resize``, found from the tokens of sent images.

One image token is a square of ``factor`` pixels, so a count is the area of the image that the model sees. Counts of images of
several sizes bound the limits in pixels from both sides.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

from guieval.frames import ResizedPixels, Size

FACTORS = (28, 32)
"""Qwen2-VL, Qwen2.5-VL and GLM; Qwen3-VL and Qwen3.5."""
ANY = 2**62
"""A limit above all images."""


def tokens_of(size: Size, factor: int, least: int = 1, most: int = ANY) -> int:
    """The tokens of an image of ``size`` (width, height) after :func:`guieval.frames.smart_resize`."""
    width, height = ResizedPixels(factor, least, most).resized(size)
    return width * height // factor**2


@dataclass(frozen=True)
class Limits:
    """Limits in pixels that explain all counts: ``least`` and ``most`` are each within two bounds, the upper one excluded.

    ``shrunk`` and ``enlarged`` are how many images a limit changes beyond rounding.
    """

    factor: int
    least: tuple[int, int]
    most: tuple[int, int]
    shrunk: int = 0
    enlarged: int = 0

    @property
    def frame(self) -> ResizedPixels:
        return ResizedPixels(self.factor, self.least[0], self.most[0] if self.shrunk else ANY)

    @property
    def sentence(self) -> str:
        """What the server does, in words that complete "the server ..."."""
        does = [f"rounds sides to multiples of {self.factor}"]
        if self.shrunk:
            does.append(f"shrinks larger pictures to at most {_between(self.most)} pixels")
        if self.enlarged:
            does.append(f"enlarges smaller ones to at least {_between(self.least)} pixels")
        return " and ".join(does)


def _between(bounds: tuple[int, int]) -> str:
    return f"{bounds[0]:,} to {bounds[1] - 1:,}" if bounds[1] - bounds[0] > 1 else f"{bounds[0]:,}"


def fitted(counts: Iterable[tuple[Size, int]], factor: int) -> Limits | None:
    """The limits that explain the counts of images sent in ``size`` (width, height); ``None`` if none do.

    All counts may be too high or too low by the same number, as those of text in the prompt are. The explanation with the
    fewest images beyond rounding is returned.
    """
    each = dict.fromkeys(counts)
    offsets = dict.fromkeys(tokens_of(size, factor) - number for size, number in each)
    found = (_fitted([(size, number + offset) for size, number in each], factor) for offset in offsets)
    return min(filter(None, found), key=lambda limits: limits.shrunk + limits.enlarged, default=None)


def _fitted(counts: Iterable[tuple[Size, int]], factor: int) -> Limits | None:
    (least_low, least_high), (most_low, most_high) = (1, ANY), (1, ANY)
    shrunk = enlarged = 0
    for size, tokens in counts:
        whole = tokens_of(size, factor)
        area = whole * factor**2
        if tokens == whole:
            least_high, most_low = min(least_high, area + 1), max(most_low, area)
        elif tokens < whole:
            shrunk += 1
            low, high = _bounds(partial(tokens_of, size, factor, 1), tokens, area)
            most_low, most_high = max(most_low, low), min(most_high, high)
        else:
            enlarged += 1
            low, high = _bounds(partial(tokens_of, size, factor), tokens, 2 * (tokens + 1) * factor**2)
            least_low, least_high = max(least_low, low), min(least_high, high)
    if least_low >= least_high or most_low >= most_high:
        return None
    return Limits(factor, (least_low, least_high), (most_low, most_high), shrunk, enlarged)


def _bounds(count: Callable[[int], int], tokens: int, room: int) -> tuple[int, int]:
    """The first limit in pixels at which ``count``, which rises with it, is ``tokens``, and the first at which it is more.

    They are equal if it is never ``tokens``. Limits are below ``room``.
    """
    low, high = (bisect_left(range(1, room), number, key=count) + 1 for number in (tokens, tokens + 1))
    return low, high

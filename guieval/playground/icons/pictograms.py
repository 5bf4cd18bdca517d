"""Pictograms as lists of simple shapes on a 24 x 24 grid, and their smooth masks at any size."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from PIL.Image import Image

Shape: TypeAlias = tuple[Literal["line", "shape", "disc", "ring", "frame", "block"], tuple[float, ...]]
"""``line``: width and points; ``shape``: points of a filled polygon; ``disc``: centre, radius; ``ring``: centre,
radius, width; ``frame``: box, width; ``block``: box, corner radius."""

_STAR = (12, 2, 15, 9, 22, 9.5, 16.5, 14, 18.5, 21.5, 12, 17.3, 5.5, 21.5, 7.5, 14, 2, 9.5, 9, 9)
_HEART = (12, 21, 3, 12, 2, 8, 4, 4.5, 8, 3.5, 12, 7, 16, 3.5, 20, 4.5, 22, 8, 21, 12)

PICTOGRAMS: dict[str, tuple[Shape, ...]] = {
    "back": (("line", (2.2, 13.5, 4.5, 6, 12, 13.5, 19.5)), ("line", (2.2, 6, 12, 20, 12))),
    "search": (("ring", (10.5, 10.5, 7, 2.2)), ("line", (2.4, 15.5, 15.5, 21, 21))),
    "add": (("line", (2.4, 12, 4, 12, 20)), ("line", (2.4, 4, 12, 20, 12))),
    "star": (("shape", _STAR),),
    "star outline": (("line", (1.9, *_STAR, 12, 2)),),
    "heart": (("shape", _HEART),),
    "heart outline": (("line", (1.9, *_HEART, 12, 21)),),
    "trash": (("frame", (6, 8, 18, 21, 2)), ("line", (2, 4, 6.5, 20, 6.5)), ("line", (2, 9.5, 3.5, 14.5, 3.5))),
    "archive": (("block", (3, 4, 21, 8.5, 1)), ("frame", (4.5, 8, 19.5, 20.5, 2)), ("line", (2, 9, 13, 15, 13))),
    "send": (("shape", (3, 3.5, 22, 12, 3, 20.5, 6.5, 12)),),
    "edit": (("line", (3.2, 6, 18, 17, 7)), ("shape", (4, 20, 4.8, 15.8, 8.2, 19.2)), ("line", (3.2, 18.3, 5.7, 19, 5))),
    "pin": (("disc", (12, 8, 5)), ("line", (2, 12, 12, 12, 22))),
    "phone": (("frame", (7, 2.5, 17, 21.5, 2)), ("line", (1.8, 10.5, 19, 13.5, 19))),
    "list": (("line", (2.2, 4, 6, 20, 6)), ("line", (2.2, 4, 12, 20, 12)), ("line", (2.2, 4, 18, 14, 18))),
    "house": (("shape", (12, 2.5, 22, 12, 19, 12, 19, 21, 5, 21, 5, 12, 2, 12)),),
    "bell": (("shape", (12, 3, 16.5, 6, 17.5, 13, 20, 18, 4, 18, 6.5, 13, 7.5, 6)), ("disc", (12, 20, 2))),
    "globe": (("ring", (12, 12, 9.5, 2)), ("line", (1.6, 2.5, 12, 21.5, 12)), ("line", (1.6, 12, 2.5, 12, 21.5))),
    "clock": (("ring", (12, 12, 9.5, 2.2)), ("line", (2, 12, 6, 12, 12.5, 16, 15))),
    "gear": (("ring", (12, 12, 7.5, 3.4)), *(("line", (3.4, *spoke)) for spoke in (
        (12, 1.5, 12, 5), (12, 19, 12, 22.5), (1.5, 12, 5, 12), (19, 12, 22.5, 12),
        (4.6, 4.6, 7, 7), (17, 17, 19.4, 19.4), (4.6, 19.4, 7, 17), (17, 7, 19.4, 4.6),
    ))),
    "note": (("frame", (4.5, 3, 19.5, 21, 2)), *(("line", (1.8, 8, y, x, y)) for x, y in ((16, 8), (16, 12), (13, 16)))),
    "person": (("disc", (12, 8, 4.6)), ("block", (4, 14, 20, 22, 6))),
    "bag": (("block", (4, 8, 20, 21.5, 2.5)), ("ring", (12, 8, 4.4, 2))),
    "bubble": (("block", (2.5, 4, 21.5, 17, 4)), ("shape", (6, 16, 6, 22, 12.5, 16))),
    "mail": (("frame", (2.5, 5, 21.5, 19.5, 2)), ("line", (2, 3, 6, 12, 13.5, 21, 6))),
    "music": (("disc", (7, 18, 3.4)), ("disc", (17.5, 16, 3.4)), ("line", (2.2, 9.4, 18, 9.4, 5, 19.9, 3, 19.9, 16))),
    "erase": (("line", (1.8, 8, 5, 21, 5, 21, 19, 8, 19, 2.5, 12, 8, 5)), ("line", (1.8, 11, 9, 17, 15)),
              ("line", (1.8, 17, 9, 11, 15))),
    "enter": (("line", (2.2, 20, 5, 20, 13, 4, 13)), ("line", (2.2, 9, 8, 4, 13, 9, 18))),
    "battery": (("block", (6, 4.5, 18, 22, 2)), ("block", (9.5, 2, 14.5, 6, 1))),
    "signal": (("shape", (2, 21, 21, 21, 21, 3)),),
}  # fmt: skip

_FINER = 4


@lru_cache(maxsize=512)
def mask(name: str, size: int) -> Image:
    """The pictogram ``name`` as an ``L`` image of ``size`` x ``size`` pixels, drawn finer and averaged down."""
    from PIL import Image, ImageDraw

    unit = size * _FINER / 24
    image = Image.new("L", (size * _FINER, size * _FINER))
    pen = ImageDraw.Draw(image)
    for kind, numbers in PICTOGRAMS[name]:
        values = [number * unit for number in numbers]
        flat = values[1:] if kind == "line" else values
        points = list(zip(flat[::2], flat[1::2], strict=False))
        match kind:
            case "line":
                pen.line(points, fill=255, width=round(values[0]), joint="curve")
                for x, y in (points[0], points[-1]):
                    radius = values[0] / 2
                    pen.ellipse((x - radius, y - radius, x + radius, y + radius), fill=255)
            case "shape":
                pen.polygon(points, fill=255)
            case "disc":
                x, y, radius = values
                pen.ellipse((x - radius, y - radius, x + radius, y + radius), fill=255)
            case "ring":
                x, y, radius, width = values
                pen.ellipse((x - radius, y - radius, x + radius, y + radius), outline=255, width=round(width))
            case "frame":
                pen.rounded_rectangle(values[:4], values[4], outline=255, width=round(values[4]))
            case "block":
                pen.rounded_rectangle(values[:4], values[4], fill=255)
    return image.reduce(_FINER)

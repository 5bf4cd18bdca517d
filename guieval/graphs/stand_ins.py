"""Stand-ins for recorded screens that are not there: the boxes of a screen's edges on white, and its name."""

from __future__ import annotations

from functools import lru_cache
from hashlib import sha256

from guieval.actions import Box
from guieval.data.screenshots import png
from guieval.graphs.graph import Graph

SIZE = (135, 297)


def drawn(graph: Graph, screen: str) -> bytes:
    """A PNG in place of a screen; another one for every name."""
    boxes = tuple(box for edge in graph.edges.get(screen, ()) for box in edge.targets)
    return _draw(screen, boxes)


@lru_cache(maxsize=256)
def _draw(name: str, boxes: tuple[Box, ...]) -> bytes:
    from PIL import Image, ImageDraw

    image = Image.new("RGB", SIZE, "white")
    draw = ImageDraw.Draw(image)
    for box in boxes:
        x1, y1, x2, y2 = (each * side / 1000 for each, side in zip(box, (*SIZE, *SIZE), strict=True))
        draw.rectangle((x1, y1, x2, y2), outline="navy")
    draw.text((4, 4), name[-44:], fill="black")
    colour = sha256(name.encode()).digest()[:3]
    draw.rectangle((0, SIZE[1] - 12, SIZE[0], SIZE[1]), fill=tuple(colour))
    return png(image)

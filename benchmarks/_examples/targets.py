"""What the writers of grounding sets put into rows: elements that played episodes tap, each with the screen it is on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import Literal

from guieval.actions import Click
from guieval.testing.phone import PhoneEpisode, PixelBox, encode, generate_episode

SIZE = (360, 800)


@dataclass(frozen=True)
class TappedElement:
    """An element, the instruction to tap it, and the PNG file of the screen, whose (width, height) is :data:`SIZE`.

    ``number`` counts the screens, so that it can name their files.
    """

    number: int
    png: bytes
    box: PixelBox
    instruction: str
    kind: Literal["text", "icon"]
    app: str


def tapped_elements(wanted: int, seed: int) -> list[TappedElement]:
    """``wanted`` elements, one of each episode that taps any: the first that its trajectory taps."""
    found: Iterator[TappedElement] = (element for number in count() for element in _first(generate_episode(seed, number, SIZE)))
    return [next(found) for _ in range(wanted)]


def _first(played: PhoneEpisode) -> Iterator[TappedElement]:
    for step in played.steps:
        if isinstance(step.action, Click) and step.target is not None and step.target.box.area > 0:
            kind: Literal["text", "icon"] = "icon" if step.target.role in ("icon", "switch", "fab", "action") else "text"
            png = encode(step.phone.render())
            yield TappedElement(played.number, png, step.target.box, step.instruction, kind, played.task.app)
            return

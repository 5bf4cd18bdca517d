"""What writers of examples share: episodes of the simulated phone that a format can express, and files."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import count, islice
from pathlib import Path
from typing import Any

from guieval.testing.phone import DEFAULT_SIZE, PhoneEpisode, PhoneStep, encode, generate_episode


def expressible(seed: int, fits: Callable[[PhoneStep], bool], size: tuple[int, int] = DEFAULT_SIZE) -> Iterator[PhoneEpisode]:
    """The episodes of ``seed`` of which every step fits, in order and without end."""
    played = (generate_episode(seed, number, size) for number in count())
    return (episode for episode in played if all(map(fits, episode.steps)))


def varied(seed: int, fits: Callable[[PhoneStep], bool], wanted: int) -> list[PhoneEpisode]:
    """``wanted`` of these, out of four times as many, that show many kinds of action."""
    candidates = islice(expressible(seed, fits), 4 * wanted)
    return sorted(candidates, key=lambda played: len({step.action.type for step in played.steps}), reverse=True)[:wanted]


def save(file: Path, data: bytes) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data)


def write_json(file: Path, value: Any, indent: int | None = 4) -> None:
    save(file, json.dumps(value, ensure_ascii=False, indent=indent).encode())


def draw(step: PhoneStep, file: Path) -> None:
    save(file, encode(step.phone.render()))

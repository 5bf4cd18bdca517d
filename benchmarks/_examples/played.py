"""Which episodes of the simulated phone an example is made of: those whose every step its format has a word for."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import count, islice
from pathlib import Path
from typing import Any

from guieval.testing.phone import PhoneEpisode, PhoneStep, generate_episode


def expressible(seed: int, size: tuple[int, int], fits: Callable[[PhoneStep], bool]) -> Iterator[PhoneEpisode]:
    """The episodes of ``seed`` of which every step fits, in order and without end."""
    played = (generate_episode(seed, number, size) for number in count())
    return (episode for episode in played if all(map(fits, episode.steps)))


def varied(seed: int, size: tuple[int, int], fits: Callable[[PhoneStep], bool], wanted: int) -> list[PhoneEpisode]:
    """``wanted`` of these, out of four times as many, that show many kinds of action."""
    candidates = islice(expressible(seed, size, fits), 4 * wanted)
    return sorted(candidates, key=lambda played: len({step.action.type for step in played.steps}), reverse=True)[:wanted]


def write_json(file: Path, value: Any, indent: int = 4) -> None:
    """Write a value as indented JSON."""
    file.write_text(json.dumps(value, ensure_ascii=False, indent=indent), encoding="utf-8")

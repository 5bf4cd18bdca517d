"""Shared by writers of examples: episodes of the simulated phone that a format can express, files, and AITW's action codes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from itertools import count, islice
from pathlib import Path
from typing import Any

from guieval.actions import Action, Click, LongPress, Press, Scroll, Stop, Type, scroll_path
from guieval.playground.phone import DEFAULT_SIZE, PhoneEpisode, PhoneStep, encode, generate_episode


def expressible(seed: int, fits: Callable[[PhoneStep], bool], size: tuple[int, int] = DEFAULT_SIZE) -> Iterator[PhoneEpisode]:
    """The episodes of ``seed`` whose steps all fit, in order, without end."""
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


def draw_all(steps: Iterable[PhoneStep], folder: Path, name: str) -> None:
    """The screenshots of ``steps``; ``name`` is a format of a step's position."""
    for index, step in enumerate(steps):
        draw(step, folder / name.format(index))


def write_lines(file: Path, rows: Iterable[Any]) -> None:
    save(file, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode())


# --- the action codes of AITW, which AiTZ, CAGUI and GUIEvalKit's AndroidControl share ---------------------------------

NOWHERE = [-1.0, -1.0]
_CODES = {
    **{"LONG_PRESS": 0, "WAIT": 1, "TYPE": 3, "CLICK": 4, "SCROLL": 4, "OPEN": 12},
    **{"BACK": 5, "HOME": 6, "ENTER": 7, "finish": 10, "impossible": 11},
}


def codes_fit(step: PhoneStep) -> bool:
    """Whether AITW's own codes have a word for a step."""
    return isinstance(step.action, Click | Scroll | Type | Press | Stop)


def code(action: Action) -> int:
    match action:
        case Press():
            return _CODES[action.button]
        case Stop():
            return _CODES[action.status]
        case _:
            return _CODES[action.type]


def gesture(action: Action, drift: float = 0.0) -> tuple[list[float], list[float]]:
    """Touch and lift as [y, x] fractions; a tap lifts ``drift`` of the screen's height away from its touch."""
    match action:
        case Click() | LongPress():
            y, x = action.point.y / 1000, action.point.x / 1000
            return [y, x], [y + (drift if y < 0.5 else -drift), x]
        case Scroll():
            start, end = scroll_path(action)
            return [start.y / 1000, start.x / 1000], [end.y / 1000, end.x / 1000]
        case _:
            return NOWHERE, NOWHERE


def labelled(action: Action, touch: list[float], lift: list[float]) -> dict[str, Any]:
    """The four label fields that AiTZ, CAGUI and GUIEvalKit's AndroidControl share."""
    return {
        "result_action_type": code(action),
        "result_action_text": action.text if isinstance(action, Type) else "",
        "result_touch_yx": json.dumps(touch),
        "result_lift_yx": json.dumps(lift),
    }

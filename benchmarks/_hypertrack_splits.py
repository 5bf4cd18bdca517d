"""Reads HyperTrack's ``episode_categorization.json``, whose form is not described: which episode belongs to which split.

Understood are the obvious forms: lists of episodes under the names of the splits (also below ``test`` or any other name that
means nothing by itself), the name of a split for every episode, and a list of objects with both.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from guieval.errors import DataError

from ._rows import parse, read_whole


class EpisodeSplit(NamedTuple):
    """Where an episode belongs: ``subset`` is one of the four test splits, or empty."""

    split: str
    subset: str = ""


PLACES: dict[str, EpisodeSplit] = {
    **dict.fromkeys(("train", "training"), EpisodeSplit("train")),
    **dict.fromkeys(("val", "valid", "validation"), EpisodeSplit("val")),
    **dict.fromkeys(("idd", "indomain"), EpisodeSplit("test", "idd")),
    "unseenapp": EpisodeSplit("test", "unseen-app"),
    "unseendevice": EpisodeSplit("test", "unseen-device"),
    **dict.fromkeys(
        ("unseenappdevice", "unseenappanddevice", "unseenappunseendevice"), EpisodeSplit("test", "unseen-app-device")
    ),
}
"""The names of Table 8, in lower case without anything but letters; ``test`` before a name changes nothing."""

WRAPPERS = frozenset({"test", "split", "splits", "category", "categories", "categorization", "episodes", "data"})
"""Names around the lists that have no meaning of their own."""

_EPISODE_KEYS = ("episode_id", "episodeid", "episode", "id")
_PLACE_KEYS = ("category", "split", "subset", "categorization")


def read_places(file: Path) -> dict[str, EpisodeSplit]:
    """The place of every episode that ``file`` names. :class:`DataError` for an unknown split or an episode in two."""
    places: dict[str, EpisodeSplit] = {}
    for name, place in _walk(parse(read_whole(file), str(file)), None, str(file)):
        if places.setdefault(name, place) != place:
            raise DataError(f"{file}: lists episode {name!r} both as {_words(places[name])} and as {_words(place)}")
    return places


def _walk(value: Any, inside: EpisodeSplit | None, where: str) -> Iterator[tuple[str, EpisodeSplit]]:
    if isinstance(value, list) and not any(isinstance(item, list) for item in value):
        for index, item in enumerate(value):
            if isinstance(item, str) and inside:
                yield item, inside
            else:
                yield from _walk(item, inside, f"{where}, item {index}")
    elif isinstance(value, dict) and (name := _first(value, _EPISODE_KEYS)) is not None:
        yield name, inside or _place(_first(value, _PLACE_KEYS), f"{where}, episode {name!r}")
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _entry(key, item, inside, f"{where}, field {key}")
    else:
        raise DataError(f"{where}: expected names of episodes under the names of splits, got {value!r:.80}")


def _entry(key: str, item: Any, inside: EpisodeSplit | None, where: str) -> Iterator[tuple[str, EpisodeSplit]]:
    """The episodes of one key, which is the name of a split or of an episode."""
    own = PLACES.get(_plain(key))
    if own or _plain(key) in WRAPPERS:
        yield from _walk(item, own or inside, where)
    elif isinstance(item, str):
        yield key, _place(item, where)
    elif isinstance(item, dict) and (stated := _first(item, _PLACE_KEYS)) is not None:
        yield key, _place(stated, where)
    else:
        raise DataError(f"{where}: is not the name of a split; known are {', '.join(sorted(PLACES))}")


def _place(stated: str | None, where: str) -> EpisodeSplit:
    place = PLACES.get(_plain(stated or ""))
    if place is None:
        raise DataError(f"{where}: expected the name of a split ({', '.join(sorted(PLACES))}), got {stated!r}")
    return place


def _first(value: dict[str, Any], keys: tuple[str, ...]) -> str | None:
    return next((value[key] for key in keys if isinstance(value.get(key), str)), None)


def _plain(name: str) -> str:
    letters = re.sub("[^a-z]", "", name.lower())
    return letters if letters == "test" else letters.removeprefix("test")


def _words(place: EpisodeSplit) -> str:
    return "/".join(part for part in place if part)

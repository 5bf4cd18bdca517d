"""Random mutations of JSON documents, for tests that read what somebody else has changed."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from random import Random
from typing import Any

HOSTILE: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 7, 2**63, 10**400, 0.5, -1e308, 1e308, float("nan"), float("inf")),
    *("", "x", "offline", "\u001b]52;c;AAAA\u0007", "\ud800", "../../etc/passwd", "x" * 5000, "1"),
    *([], [None], [[]], {}, {"x": None}, {"name": 3}, ["a", "b", "c", "d"], [1, 2, 3, 4], [{}]),
)

Place = tuple[Any, str | int]


def places(value: Any) -> Iterator[Place]:
    """Every container with each of its keys."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in inner:
        yield value, key
        yield from places(each)


def mutated(document: Any, source: Random) -> tuple[Any, str]:
    """A copy of a JSON document with one value replaced, removed, added or turned into another type; and what was done."""
    changed = copy.deepcopy(document)
    found = list(places(changed))
    if not found or source.random() < 0.02:
        value = source.choice(HOSTILE)
        return value, f"all replaced by {value!r:.40}"
    container, key = source.choice(found)
    how = source.choice((_replace, _replace, _remove, _retype, _add))
    return changed, how(container, key, source)


def _replace(container: Any, key: Any, source: Random) -> str:
    container[key] = source.choice(HOSTILE)
    return f"{key!r:.40} replaced by {container[key]!r:.40}"


def _remove(container: Any, key: Any, source: Random) -> str:
    del container[key]
    return f"{key!r:.40} removed"


def _retype(container: Any, key: Any, source: Random) -> str:
    was = container[key]
    forms = (str(was), [was], {"value": was}, json.dumps(was, default=str), [was, was], {str(was)[:50]: was})
    container[key] = source.choice(forms)
    return f"{key!r:.40} retyped to {container[key]!r:.60}"


def _add(container: Any, key: Any, source: Random) -> str:
    value = source.choice(HOSTILE)
    if isinstance(container, dict):
        container[f"{key}{source.choice(('_', '2', ' '))}"] = value
    else:
        container.insert(source.randrange(len(container) + 1), value)
    return f"beside {key!r:.40} added {value!r:.40}"

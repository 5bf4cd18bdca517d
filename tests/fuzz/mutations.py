"""How material is damaged: texts, bytes and JSON values, each change drawn with the dice of its case."""

from __future__ import annotations

import copy
import gzip
import json
from random import Random
from typing import Any

MOST = 20_000
"""Values of a document from which on it is not made larger."""
LONGEST = 200_000
"""Longest material, in characters or bytes: repeating a part may not make a case slow by its size alone."""

_MARKS = (
    *"'\"\\{}[](),=:\n\r\0",
    *("\x1b]52;c;aGk=\a", "\x1b[2J", "\u2028", "\u202e", "\ud800", "\\ud83d", "\\u", "é", "：", "｛", "，"),
    *("null", "true", "NaN", "-Infinity", "1e999", "1e308", "-1", "0x1f", "٣"),
    *("<think>", "</think>", "<tool_call>", "</tool_call>", "<action>", "<answer>", "<|im_end|>", "<point>"),
    *("Action:", "click(", "```json\n", '{"a":', "[[", "]]"),
    *("__import__('os')", "../../etc/passwd", "<script>", "9" * 400, "a" * 50),
)
_VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2**31, 2**63, 2**64 - 1, 10**400, 0.5, -0.0, 1e308, -1e308, float("nan"), float("inf")),
    *("", " ", "a", "damaged", "1", "nan", "\ud800", "\x1b[2J", "\n", "../../etc/passwd", "x" * 5000, "[1, 2]", "{"),
    *([], {}, [None], [[]], {"": None}, [1, 2], [1, 2, 3, 4], [1e308, 1e308], ["a"], {"a": 1}, {"type": "CLICK"}),
)


def text(dice: Random, material: str, other: str = "") -> str:
    """The text with a few changes; ``other`` is a text that parts may come from."""
    for _ in range(dice.choice((0, 1, 1, 2, 3, 5))):
        start = dice.randint(0, len(material))
        end = min(len(material), start + dice.choice((0, 0, 1, 3, 12, 200)))
        match dice.randrange(6):
            case 0 | 1:
                new = dice.choice(_MARKS)
            case 2:
                new = material[start:end] * dice.choice((2, 3, 500))
            case 3:
                at = dice.randint(0, len(other))
                new = other[at : at + dice.choice((1, 5, 40, 1000))]
            case 4:
                new = "".join(map(chr, (dice.choice((dice.randrange(128), dice.randrange(0x10FFFF))) for _ in range(3))))
            case _:
                new, end = "", dice.choice((end, len(material)))
        material = (material[:start] + new + material[end:])[:LONGEST]
    return material


def data(dice: Random, material: bytes) -> bytes:
    """Bytes with a few changes."""
    for _ in range(dice.choice((1, 1, 2, 4))):
        start = dice.randint(0, len(material))
        end = min(len(material), start + dice.choice((0, 1, 1, 4, 40)))
        match dice.randrange(6):
            case 0:
                new = bytes(dice.randrange(256) for _ in range(max(1, end - start)))
            case 1:
                new = dice.choice(_MARKS).encode("utf-8", "surrogatepass")
            case 2:
                new = material[start:end] * dice.choice((2, 3, 500))
            case 3:
                new, end = b"", len(material)
            case 4:
                new = dice.choice(
                    (b"\xff\xfe", b"\xef\xbb\xbf", b"\n\n", b"\x1f\x8b", b"\0" * 8, b"}", b"{" * 2000, b"[" * 2000)
                )
            case _:
                new = b""
        material = (material[:start] + new + material[end:])[:LONGEST]
    return material


def value(dice: Random, material: Any) -> Any:
    """A JSON value with a few of its parts replaced, taken out, or doubled."""
    material = json.loads(json.dumps(material))
    for _ in range(dice.choice((1, 1, 2, 3))):
        places = [(None, None, material), *_places(material)]
        if len(places) > MOST:
            break
        inside, key, old = dice.choice(places[1:] or places)
        new = _changed(dice, old, dice.choice(places)[2])
        if inside is None:
            return new
        if dice.random() < 0.15:
            del inside[key]
        elif dice.random() < 0.1 and isinstance(inside, dict):
            inside[dice.choice((key.upper(), key + "\n", ""))] = inside.pop(key)
        else:
            inside[key] = new
    return material


def _places(material: Any) -> list[tuple[Any, Any, Any]]:
    found: list[tuple[Any, Any, Any]] = []
    open_ = [material]
    while open_:
        inside = open_.pop()
        keys = inside if isinstance(inside, dict) else range(len(inside)) if isinstance(inside, list) else ()
        for key in keys:
            found.append((inside, key, inside[key]))
            open_.append(inside[key])
    return found


def _changed(dice: Random, old: Any, another: Any) -> Any:
    match dice.randrange(6):
        case 0 if isinstance(old, str):
            return text(dice, old)
        case 1 if isinstance(old, list) and old:
            return old * dice.choice((2, 50)) if dice.random() < 0.5 else old[: dice.randrange(len(old))]
        case 2:
            return json.loads(json.dumps(another))
        case 3 if isinstance(old, int | float) and not isinstance(old, bool):
            return dice.choice((-old, old * 10**6, str(old), [old], [old, old]))
        case 4 if dice.random() < 0.2:
            deep: Any = old
            for _ in range(dice.choice((50, 150, 400))):
                deep = [deep]
            return deep
    return copy.deepcopy(dice.choice(_VALUES))


def written(dice: Random, material: Any, *, lines: bool) -> bytes:
    """A JSON value as the bytes of a file; a list with ``lines`` as JSON lines."""
    if lines and isinstance(material, list):
        return b"".join(written(dice, row, lines=False) + b"\n" for row in material)
    try:
        return json.dumps(material, ensure_ascii=dice.random() < 0.5).encode("utf-8", "surrogatepass")
    except (ValueError, RecursionError):
        return b"null"


def file(dice: Random, content: bytes, name: str) -> bytes:
    """The content of a file, damaged as what its name says it is: JSON by its values, and anything by its bytes."""
    packed = name.endswith(".gz") and content[:2] == b"\x1f\x8b"
    if packed and dice.random() < 0.2:
        return data(dice, content)
    plain = gzip.decompress(content) if packed else content
    inner = name.removesuffix(".gz")
    if dice.random() < 0.75 and inner.endswith((".json", ".jsonl")):
        lines = inner.endswith(".jsonl")
        try:
            material = [json.loads(line) for line in plain.splitlines() if line.strip()] if lines else json.loads(plain)
            plain = written(dice, value(dice, material), lines=lines)
        except (ValueError, RecursionError):  # damaged, or nested too deep, by an earlier mutation
            plain = data(dice, plain)
    else:
        plain = data(dice, plain)
    return gzip.compress(plain, 1) if packed else plain

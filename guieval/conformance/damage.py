"""Damage to annotation files, and the changes of the records that it may cause.

The damage is derived from the file's content alone, without knowledge of the loader's format, which limits what can be
required. No loader can detect that one word was replaced by another, so the :attr:`~Damage.demand` of each :class:`Damage`
defines which differences in the records are a silent mistake.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, Literal, TypeAlias

from guieval.data.files import read_bytes

Demand: TypeAlias = Literal["refuse", "label", "word", "absent", "survive"]
"""The required result for damaged content, unless an error names and refuses it.

- ``refuse``: nothing else is accepted.
- ``label``: the records are the same but for ids and extras; a value of a wrong type was not taken for a label.
- ``word``: as one word can stand for another, texts may differ, but no action may be of another kind or at another place.
- ``absent``: what is optional in a record may be gone, but its action, instruction and screenshot are the same.
- ``survive``: no other exception.
"""

JsonPath: TypeAlias = tuple[str | int, ...]

IMAGES = frozenset({".png", ".jpg", ".jpeg", ".webp", ".gif", ".bmp"})
WORD = "damaged"
_NUMBER = 12345


@dataclass(frozen=True)
class Damage:
    """A file's damaged content. ``keys`` are the names around the damaged value, the innermost last; ``in_row`` says that it
    is within one of several rows (or files of one kind), so that the others can be read without it."""

    file: Path
    what: str
    content: bytes
    demand: Demand
    keys: tuple[str, ...] = ()
    in_row: bool = False


@dataclass(frozen=True)
class _Document:
    """A parsed annotation file; the lines of a JSONL file are a list."""

    file: Path
    value: Any
    lines: bool
    siblings: int

    def write(self, value: Any) -> bytes:
        if self.lines:
            text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in value)
        else:
            text = json.dumps(value, ensure_ascii=False)
        return _pack(self.file, text.encode())

    def in_row(self, path: JsonPath) -> bool:
        return self.siblings > 1 or (isinstance(self.value, list) and len(self.value) > 1 and len(path) > 0)


def annotation_files(folder: Path) -> list[Path]:
    """All files below ``folder`` that are not images."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return [file for file in files if file.suffix.lower() not in IMAGES]


def damages(folder: Path, most: int, seed: int = 0) -> list[Damage]:
    """Damage to the annotation files in ``folder``: to whole files, and to ``most`` single values, spread over all fields."""
    files = annotation_files(folder)
    kinds: dict[str, list[Path]] = {}
    for file in files:
        kinds.setdefault(_kind(file, folder), []).append(file)
    broken: list[Damage] = []
    documents: list[_Document] = []
    for same in kinds.values():
        broken += [damage for file in dict.fromkeys((same[0], same[-1])) for damage in _to_file(file, alone=len(files) == 1)]
        documents += [document for file in same if (document := _document(file, len(same))) is not None]
    return broken + _to_values(folder, documents, most, Random(seed))


def _kind(file: Path, folder: Path) -> str:
    """Files whose names differ only in numbers, hashes and episode names hold the same kind of thing."""
    relative = file.relative_to(folder)
    stem = relative.name.split(".")[0]
    parents = ["*" if any(char.isdigit() for char in part) or part == stem else part for part in relative.parent.parts]
    name = relative.name.removeprefix(stem)
    return "/".join([*parents, "*" + name if any(char.isdigit() for char in stem) else relative.name])


def _pack(file: Path, content: bytes) -> bytes:
    return gzip.compress(content, 1) if file.suffix == ".gz" else content


def _inner(file: Path) -> str:
    return (file.with_suffix("") if file.suffix == ".gz" else file).suffix.lower()


def _text(file: Path) -> bytes:
    content = read_bytes(file)
    return gzip.decompress(content) if file.suffix == ".gz" else content


def _document(file: Path, siblings: int) -> _Document | None:
    try:
        if _inner(file) == ".jsonl":
            rows = [json.loads(line) for line in _text(file).splitlines() if line.strip()]
            return _Document(file, rows, True, siblings)
        if _inner(file) == ".json":
            return _Document(file, json.loads(_text(file)), False, siblings)
    except ValueError:
        pass
    return None


def _to_file(file: Path, *, alone: bool) -> Iterator[Damage]:
    content, inner = read_bytes(file), _inner(file)
    if file.suffix == ".gz":
        yield Damage(file, "cut off in the middle", content[: len(content) // 2], "refuse")
        yield Damage(file, "replaced by text that is not gzip", b"not packed\n", "refuse")
    text = _text(file)
    if inner == ".json":
        yield Damage(file, "cut off in the middle", _pack(file, text[: len(text) // 2]), "refuse")
        yield Damage(file, "emptied", _pack(file, b""), "refuse")
    elif inner == ".jsonl":
        lines = [line for line in text.splitlines(keepends=True) if line.strip()]
        cut = len(lines) // 2
        kept = b"".join(lines[:cut])
        several = len(lines) > 1
        yield Damage(file, f"cut off within line {cut + 1}", _pack(file, kept + lines[cut][: len(lines[cut]) // 2]), "refuse")
        rest = b"".join(lines[cut + 1 :])
        yield Damage(file, f"line {cut + 1} is not JSON", _pack(file, kept + b"{\n" + rest), "refuse", in_row=several)
        yield Damage(file, f"line {cut + 1} is an empty object", _pack(file, kept + b"{}\n" + rest), "refuse", in_row=several)
        yield Damage(file, "emptied", _pack(file, b""), "refuse" if alone else "survive")
    else:
        yield Damage(file, "cut off in the middle", _pack(file, text[: len(text) // 2]), "survive")
        yield Damage(file, "emptied", _pack(file, b""), "survive")
    middle = len(text) // 2
    spoilt = text[:middle] + b"\xff\xfe\xff" + text[middle + 3 :]
    yield Damage(
        file, "no valid text in the middle", _pack(file, spoilt), "refuse" if inner in (".json", ".jsonl") else "survive"
    )


@dataclass(frozen=True)
class _Change:
    what: str
    value: Any
    demand: Demand


_REMOVED = object()
"""Marks a removed value."""


def _to_values(folder: Path, documents: Sequence[_Document], most: int, dice: Random) -> list[Damage]:
    places: dict[str, list[tuple[_Document, JsonPath, Any]]] = {}
    for document in documents:
        for path, value in _walk(document.value):
            shape = f"{_kind(document.file, folder)}{_shape(path)}:{type(value).__name__}"
            places.setdefault(shape, []).append((document, path, value))
    tries: list[tuple[_Document, JsonPath, _Change]] = []
    for turn in range(3):  # a field may count at some steps only, so each change is tried at several places
        for candidates in places.values():
            if turn < len(candidates):
                for change in _changes(candidates[0][2]):
                    document, path, value = dice.choice(candidates)
                    change = next((other for other in _changes(value) if other.what == change.what), change)
                    tries.append((document, path, change))
    dice.shuffle(tries)
    chosen: dict[tuple[Path, JsonPath, str], Damage] = {}
    for document, path, change in tries:
        key = (document.file, path, change.what)
        if len(chosen) < most and key not in chosen:
            chosen[key] = _changed(document, path, change)
    return list(chosen.values())


def _walk(value: Any, path: JsonPath = ()) -> Iterator[tuple[JsonPath, Any]]:
    if path:
        yield path, value
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _walk(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _walk(inner, (*path, index))


def _shape(path: JsonPath) -> str:
    """The path without positions and numbers, so that the same field of all rows counts as one."""
    return "".join("[]" if isinstance(part, int) else "." + re.sub(r"\d+", "#", part) for part in path)


def _changes(value: Any) -> list[_Change]:
    removed, null = _Change("missing", _REMOVED, "absent"), _Change("null", None, "absent")
    word, number = _Change(f"{WORD!r}", WORD, "label"), _Change(str(_NUMBER), _NUMBER, "label")
    listed, keyed = _Change(f"[{WORD!r}]", [WORD], "label"), _Change(f"{{{WORD!r}: 1}}", {WORD: 1}, "label")
    match value:
        case bool() | None:
            return [_Change(change.what, change.value, "survive") for change in (word, number, listed, keyed, removed)]
        case int() | float():
            large = [_Change(what, number, "survive") for what, number in (("1e9", 10**9), ("NaN", float("nan")))]
            return [word, listed, keyed, null, removed, *large, _Change("-1", -1, "survive")]
        case str():
            return [number, listed, keyed, null, removed, _Change(f"{WORD!r}", WORD, "word"), _Change("''", "", "survive")]
        case list():
            short = [_Change("its last number missing", value[:-1], "label")] if value and _all_numbers(value) else []
            return [word, number, keyed, null, removed, _Change("[]", [], "absent" if value else "survive"), *short]
        case dict():
            return [word, number, listed, null, removed, _Change("{}", {}, "absent" if value else "survive")]
        case _:
            return []


def _all_numbers(values: list[Any]) -> bool:
    return all(isinstance(value, int | float) for value in values)


def _changed(document: _Document, path: JsonPath, change: _Change) -> Damage:
    keys = tuple(part for part in path if isinstance(part, str))
    demand = change.demand
    if change.value is _REMOVED and isinstance(path[-1], int):
        demand = "survive"  # a shorter list, or one row less, cannot be detected
    content = document.write(_replaced(document.value, path, change.value))
    where = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return Damage(document.file, f"{where} is {change.what}", content, demand, keys, document.in_row(path))


def _replaced(value: Any, path: JsonPath, new: Any) -> Any:
    """A copy of ``value`` with the value at ``path`` replaced or removed."""
    first, rest = path[0], path[1:]
    copy: Any = dict(value) if isinstance(value, dict) else list(value)
    if rest:
        copy[first] = _replaced(copy[first], rest, new)
    elif new is _REMOVED:
        del copy[first]
    else:
        copy[first] = new
    return copy

"""The position of every episode in an ``episodes.jsonl``, stored as ``episodes.index.json`` to open large folders fast."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import overload

import numpy as np
from pydantic_core import from_json, to_json

from guieval.data.benchmark import EpisodeRef
from guieval.data.episodes.format import parsed_line
from guieval.data.text_files import repeated_key
from guieval.errors import DataError
from guieval.steps import EpisodeKey

INDEX_FORMAT = "guieval-episodes-index-1"


@dataclass
class EpisodeIndex(Sequence[EpisodeRef]):
    """The place of every episode's line, as columns: a million episodes take about a hundred bytes each.

    The locator of a reference is the episode's position.
    """

    benchmark: str
    ids: list[str] = field(default_factory=list)
    subsets: list[str] = field(default_factory=list)
    splits: list[str] = field(default_factory=list)
    lengths: array[int] = field(default_factory=lambda: array("q"))
    lines: array[int] = field(default_factory=lambda: array("q"))
    starts: array[int] = field(default_factory=lambda: array("q"))
    sizes: array[int] = field(default_factory=lambda: array("q"))

    def __len__(self) -> int:
        return len(self.ids)

    @overload
    def __getitem__(self, position: int) -> EpisodeRef: ...
    @overload
    def __getitem__(self, position: slice) -> Sequence[EpisodeRef]: ...
    def __getitem__(self, position: int | slice) -> EpisodeRef | Sequence[EpisodeRef]:
        if isinstance(position, slice):
            return [self[number] for number in range(*position.indices(len(self)))]
        position = range(len(self))[position]
        key = EpisodeKey(self.benchmark, self.subsets[position], self.ids[position])
        return EpisodeRef(key, self.lengths[position], position, self.splits[position])

    def add(self, ref: EpisodeRef, line: int, start: int, size: int) -> None:
        self.ids.append(ref.key.episode_id)
        self.subsets.append(ref.key.subset)
        self.splits.append(ref.split)
        self.lengths.append(ref.length)
        self.lines.append(line)
        self.starts.append(start)
        self.sizes.append(size)

    def to_json(self) -> bytes:
        """The stored form of the index of a file that has no blank lines; :meth:`from_json` reads it."""
        subsets, splits = list(dict.fromkeys(self.subsets)), list(dict.fromkeys(self.splits))
        code = {name: number for number, name in enumerate(subsets)}, {name: number for number, name in enumerate(splits)}
        return to_json(
            {
                "format": INDEX_FORMAT,
                "subsets": subsets,
                "splits": splits,
                "episode_ids": self.ids,
                "subset": [code[0][name] for name in self.subsets],
                "split": [code[1][name] for name in self.splits],
                "lengths": list(self.lengths),
                "sizes": list(self.sizes),
            }
        )

    @classmethod
    def from_json(cls, text: bytes, benchmark: str, size: int) -> EpisodeIndex | None:
        """The index in ``text``, or ``None`` if it does not describe a file of ``size`` bytes."""
        try:
            values = from_json(text)
            if values["format"] != INDEX_FORMAT or sum(values["sizes"]) != size:
                return None
            subsets = [values["subsets"][code] for code in values["subset"]]
            splits = [values["splits"][code] for code in values["split"]]
            lengths, sizes = array("q", values["lengths"]), array("q", values["sizes"])
            ids = values["episode_ids"]
            if not len(ids) == len(subsets) == len(splits) == len(lengths) == len(sizes):
                return None
        except (ValueError, TypeError, KeyError, IndexError, OverflowError):
            return None
        starts = array("q", [0])
        starts.extend(np.cumsum(np.array(sizes, dtype=np.int64))[:-1].tolist())
        return cls(benchmark, ids, subsets, splits, lengths, array("q", range(1, len(ids) + 1)), starts, sizes)


def line_head(benchmark: str, where: str, line: bytes) -> EpisodeRef:
    """Read the part of a line that the index needs; :class:`DataError` with place and field if it is missing."""
    try:
        values = from_json(line)
    except ValueError as error:
        raise DataError(f"{where}: is not JSON ({error}); a line has one whole episode in UTF-8") from None
    if (twice := repeated_key(line, values)) is not None:
        raise DataError(f"{where}, field {twice}: is given twice")
    match values:
        case {"episode_id": str() as name, "steps": [_, *others]} if name:
            subset, split = values.get("subset", ""), values.get("split", "test")
            if isinstance(subset, str) and isinstance(split, str):
                return EpisodeRef(EpisodeKey(benchmark, subset, name), 1 + len(others), split=split)
    parsed_line(where, line)  # raises an error that names the wrong field
    raise DataError(f"{where}: has no episode")

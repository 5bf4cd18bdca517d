"""Cells of several runs side by side: their common order, and how many steps each holds, for bars and curves alike."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from guieval.metrics.breakdown import Cell
from guieval.metrics.columns import TYPES


def ordered(labels: Iterable[str]) -> list[str]:
    """Each label once: action types as everywhere, then by the number a label starts with, then by name."""

    def place(label: str) -> tuple[int, int, str]:
        number = re.match(r"\d+", label)
        kind = TYPES.index(label) if label in TYPES else len(TYPES)
        return kind, int(number[0]) if number else -1, label

    return sorted(set(labels), key=place)


def counted(label: str, runs: Mapping[str, Sequence[Cell]]) -> str:
    """How many steps the runs have in the cells of a label, in a word."""
    found = [sum(cell.n for cell in cells if cell.label == label) for cells in runs.values()]
    low, high = min(found), max(found)
    return f"n = {low:,}" if low == high else f"n = {low:,}–{high:,}"

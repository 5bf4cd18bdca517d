"""Tables as the pages draw them: cells as text, with the number where a bar is drawn for it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from guieval.errors import harmless
from guieval.reports.tables.table import Cell, Number, Table, text
from guieval.steps import whole_text


def shown(table: Table | None, links: Iterable[str | None] = ()) -> list[dict[str, Any]]:
    """A table in a list, or an empty list; ``links`` are addresses for its rows, in order."""
    if table is None:
        return []
    addresses = list(links)
    return [
        {
            "title": clean(table.title),
            "columns": [{"name": clean(column.flat), "right": column.right} for column in table.columns],
            "rows": [[_cell(cell) for cell in row] for row in table.rows],
            "notes": [clean(note) for note in table.notes],
            "links": addresses,
        }
    ]


def clean(value: str) -> str:
    """A text without unprintable characters."""
    return harmless(whole_text(value))


def _cell(cell: Cell) -> dict[str, Any]:
    shown: dict[str, Any] = {"text": clean(text(cell))}
    if isinstance(cell, Number) and cell.of.unit == "share" and cell.of.value is not None and not cell.signed:
        shown["share"] = min(max(cell.of.value, 0.0), 1.0)
        if cell.of.interval is not None:
            shown["ends"] = [cell.of.low, cell.of.high]
    return shown

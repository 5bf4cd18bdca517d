"""Tables as the pages draw them: cells as text, with the number if a bar is drawn for it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from guieval.errors import harmless, whole_text
from guieval.reports.tables.table import Cell, Number, Table, text


def shown(*tables: Table | None, links: Iterable[str | None] = ()) -> list[dict[str, Any]]:
    """The tables that there are; ``links`` are addresses for the rows of each, in order."""
    addresses = list(links)
    return [
        {
            "title": clean(table.title),
            "columns": [{"name": clean(column.flat), "right": column.right} for column in table.columns],
            "rows": [[_cell(cell) for cell in row] for row in table.rows],
            "notes": [clean(note) for note in table.notes],
            "links": addresses,
        }
        for table in filter(None, tables)
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

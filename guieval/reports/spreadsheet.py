"""Names from outside in tables that a spreadsheet may open: none of them is run as a formula."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_STARTS = ("=", "+", "-", "@", "\t", "\r")


def defused_value(value: Any) -> Any:
    """A text that a spreadsheet would take for a formula, with an apostrophe in front; anything else as it is."""
    return f"'{value}" if isinstance(value, str) and value.startswith(_STARTS) else value


def defused(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row with :func:`defused_value` of each value."""
    return {name: defused_value(value) for name, value in row.items()}

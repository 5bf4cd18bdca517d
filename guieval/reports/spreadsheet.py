"""Names from outside in tables that a spreadsheet may open: none of them is run as a formula."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_STARTS = ("=", "+", "-", "@", "\t", "\r")


def defused(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row whose texts that a spreadsheet would take for a formula begin with an apostrophe; numbers stay as they are."""
    return {name: f"'{value}" if isinstance(value, str) and value.startswith(_STARTS) else value for name, value in row.items()}

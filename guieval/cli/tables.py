"""How lists are shown: as wide as the terminal, and wide enough for whole names where there is none."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

PIPED_WIDTH = 160


def print_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print rows under a header; the first column, a name to copy, is never cut or folded."""
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    table.add_column(header[0], no_wrap=True)
    for name in header[1:]:
        table.add_column(name, overflow="fold")
    for row in rows:
        table.add_row(*row)
    Console(width=None if sys.stdout.isatty() else PIPED_WIDTH).print(table, markup=False)

"""A table with more columns than a console is wide: cut into several below each other, each with the rows' names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeAlias, TypeVar

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.table import Table

Column = TypeVar("Column")
Row: TypeAlias = tuple[str, Iterable[str]]
"""A row's name, and its cell for each column."""


@dataclass(frozen=True)
class WideTable(Generic[Column]):
    """Rows in sections, under a title; as many columns to a table as the console is wide, and always one.

    ``head`` tells what stands above a column, ``sections`` the rows of the columns that it is given.
    """

    title: str
    columns: Sequence[Column]
    head: Callable[[Column], str]
    sections: Callable[[Sequence[Column]], Iterable[Iterable[Row]]]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich.measure import Measurement
        from rich.text import Text

        yield Text(self.title, style="bold")
        unlimited = options.update(max_width=100_000)
        rest = self.columns
        while rest:
            count = 1
            for more in range(2, len(rest) + 1):
                if Measurement.get(console, unlimited, self._table(rest[:more])).maximum > options.max_width:
                    break
                count = more
            yield self._table(rest[:count])
            rest = rest[count:]

    def _table(self, columns: Sequence[Column]) -> Table:
        from rich import box
        from rich.table import Table
        from rich.text import Text  # a plain string would be searched for markup

        table = Table(box=box.SIMPLE_HEAD, padding=(0, 1))
        table.add_column("")
        for column in columns:
            table.add_column(Text(self.head(column)), justify="right")
        for section in map(list, self.sections(columns)):
            for position, (name, cells) in enumerate(section):
                table.add_row(Text(name), *map(Text, cells), end_section=position == len(section) - 1)
        return table

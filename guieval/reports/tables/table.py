"""A table as data: typed columns and cells under a title."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeAlias

from guieval.metrics.rounding import percentage

if TYPE_CHECKING:
    from guieval.metrics.measured import Measured

NOTHING = "-"
"""Shown for a metric without a value: there are no data for it, or the run's mode does not define it."""


_UNITS = {"share": (".2f", "%"), "thousandths of the screen": (".1f", " ‰ of the screen"), "s": (".2f", " s"), "": (".3f", "")}
"""How numbers of a unit are written: their format, and what comes after them; of any other unit its name."""
_WHOLE = frozenset({"tokens"})


@dataclass(frozen=True)
class Number:
    """A :class:`guieval.metrics.measured.Measured` in a cell, with its interval, the number of its missing steps, and a
    ``mark``.

    Shares are shown in per cent (:func:`guieval.metrics.rounding.percentage`), other units with their name, unless ``unit`` is
    false, as under a heading that says it. ``form``: of the number, by default its unit's. ``show_n`` writes "of n" after the
    number. ``best`` sets it in bold.
    """

    of: Measured
    form: str = ""
    unit: bool = True
    signed: bool = False
    show_n: bool = False
    mark: str = ""
    best: bool = False

    @property
    def _form(self) -> tuple[str, str]:
        known = (
            (",.0f", f" {self.of.unit}") if self.of.unit in _WHOLE else _UNITS.get(self.of.unit, (".2f", f" {self.of.unit}"))
        )
        form = self.form or known[0]
        return f"+{form}" if self.signed else form, known[1] if self.unit else ""

    def _written(self, value: float, form: str) -> str:
        return percentage(value, form) if self.of.unit == "share" else f"{value:{form}}"

    @property
    def shown(self) -> str:
        if self.of.value is None:
            return NOTHING
        form, unit = self._form
        return self._written(self.of.value, form) + unit

    @property
    def ends(self) -> str:
        """The interval in brackets; empty without one. Of a share in tenths of a per cent."""
        if self.of.value is None or self.of.interval is None:
            return ""
        form = self._form[0].replace(".2f", ".1f") if self.of.unit == "share" and not self.form else self._form[0]
        scale = 100.0 if self.of.unit == "share" else 1.0
        return f"[{scale * self.of.interval.low:{form}}, {scale * self.of.interval.high:{form}}]"

    @property
    def marks(self) -> str:
        """The mark, the number of missing steps, and the spread between repeats."""
        spread = "" if self.of.spread is None else f"sd {self._spread}"
        return " ".join(filter(None, (self.mark, f"({self.of.missing:,} missing)" if self.of.missing else "", spread)))

    @property
    def _spread(self) -> str:
        form = (self.form or self._form[0]).removeprefix("+")
        return self._written(self.of.spread or 0.0, form)

    @property
    def without_ends(self) -> str:
        """The number with n and marks, without its interval."""
        of = ""
        if self.show_n and self.of.value is not None:
            of = f"of {self.of.n:,}" if self.of.unit == "share" else f"(n = {self.of.n:,})"
        return " ".join(filter(None, (self.shown, of, self.marks)))

    def __str__(self) -> str:
        return " ".join(filter(None, (self.without_ends, self.ends)))


Cell: TypeAlias = str | int | Number | None
Row: TypeAlias = tuple[Cell, ...]


def text(cell: Cell) -> str:
    """A cell as text for readers."""
    if cell is None:
        return NOTHING
    return f"{cell:,}" if isinstance(cell, int) else str(cell)


def bare(value: float | None, form: str, mark: str = "") -> Number:
    """A number without a unit, n or interval."""
    from guieval.metrics.measured import Measured  # only here, because tables of words need no numpy

    return Number(Measured(value, unit=""), form, mark=mark)


def share(value: float | None, form: str = "", *, unit: bool = True) -> Number:
    """A fraction in per cent, without n or interval."""
    from guieval.metrics.measured import Measured

    return Number(Measured(value), form, unit)


@dataclass(frozen=True)
class Column:
    """A column's heading and how it is laid out.

    ``folds``: its cells are sentences, which may go over several lines. ``spare``: if the width is too small, columns above 0
    are left out, the highest first.
    """

    name: str
    right: bool = True
    folds: bool = False
    spare: int = 0

    @property
    def flat(self) -> str:
        """The heading in one line."""
        return " ".join(self.name.split())


@dataclass(frozen=True)
class Table:
    """Rows of cells under a title. The first ``keys`` columns name a row; an empty row is a gap between sections.

    ``name`` is what CSV, JSON and LaTeX labels call the table, ``notes`` are sentences that belong below it. A table whose
    columns do not fit the width is cut into several, each with the key columns; one that ``turns`` first has a column for each
    row in place of a row, so that what was measured of one row stays together.
    """

    title: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()
    name: str = ""
    keys: int = 1
    turns: bool = False
    filled: list[Row] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "filled", [row for row in self.rows if row])
        if any(len(row) != len(self.columns) for row in self.filled):
            raise ValueError(f"the table {self.title!r} has a row that does not have {len(self.columns)} cells")


def turned(table: Table) -> Table:
    """The table with a row for each of its columns, and a column for each of its rows."""
    labels = ("\n".join(text(cell) for cell in row[: table.keys] if cell is not None) for row in table.filled)
    places = range(table.keys, len(table.columns))
    rows = [(table.columns[place].flat, *(row[place] for row in table.filled)) for place in places]
    return side_by_side(table.title, labels, rows, table.notes, table.name)


def without(table: Table, places: Collection[int]) -> Table:
    """The table without the columns at these places."""
    kept = [place for place in range(len(table.columns)) if place not in places]
    rows = tuple(tuple(row[place] for place in kept) if row else () for row in table.rows)
    keys = sum(place < table.keys for place in kept)
    return replace(table, columns=tuple(table.columns[place] for place in kept), rows=rows, keys=keys)


def columns(*names: str, keys: int = 1, folds: tuple[str, ...] = (), spare: tuple[str, ...] = ()) -> tuple[Column, ...]:
    """Columns of these names: the first ``keys`` of them, and those that fold, begin at the left.

    ``spare`` names the columns that may be left out, in the order in which they are.
    """
    return tuple(
        Column(
            name,
            right=place >= keys and name not in folds,
            folds=name in folds,
            spare=len(spare) - spare.index(name) if name in spare else 0,
        )
        for place, name in enumerate(names)
    )


def side_by_side(title: str, labels: Iterable[str], rows: Iterable[Row], notes: tuple[str, ...] = (), name: str = "") -> Table:
    """A table with a column for each of ``labels``, e.g. runs; the first cell of a row is its name."""
    return Table(title, (Column("", right=False), *map(Column, labels)), tuple(rows), notes, name)

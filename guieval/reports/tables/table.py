"""A table as data: typed columns and cells under a title."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from guieval.metrics.rounding import percentage

if TYPE_CHECKING:
    from guieval.metrics.intervals import Interval

NOTHING = "-"
"""Shown for a figure without a value: there are no data for it, or the run's mode does not define it."""


@dataclass(frozen=True)
class Number:
    """A number, and how it is shown: ``scale * value`` in the format ``form``, then ``unit``, n, ``mark`` and the interval.

    With the scale 100 it is a share (:func:`guieval.metrics.rounding.percentage`). ``ends_form`` is the format of the
    interval's ends. ``show_n`` writes "of n" after the number. ``best`` sets it in bold.
    """

    value: float | None
    form: str = ".3f"
    scale: float = 1.0
    unit: str = ""
    interval: Interval | None = None
    ends_form: str | None = None
    n: int | None = None
    show_n: bool = False
    mark: str = ""
    best: bool = False

    @property
    def shown(self) -> str:
        """The number alone, rounded."""
        if self.value is None:
            return NOTHING
        if self.scale == 100:
            return percentage(self.value, self.form) + self.unit
        return f"{self.value if self.scale == 1 else self.scale * self.value:{self.form}}{self.unit}"

    @property
    def ends(self) -> str:
        """The interval in brackets; empty without one."""
        return "" if self.value is None else bracketed(self.interval, self.ends_form or self.form, self.scale)

    def __str__(self) -> str:
        of = f"of {self.n:,}" if self.show_n and self.value is not None else ""
        return " ".join(filter(None, (self.shown, of, self.mark, self.ends)))


Cell: TypeAlias = str | int | Number | None
Row: TypeAlias = tuple[Cell, ...]


def text(cell: Cell) -> str:
    """A cell as text for readers."""
    if cell is None:
        return NOTHING
    return f"{cell:,}" if isinstance(cell, int) else str(cell)


def bracketed(interval: Interval | None, form: str = ".1f", scale: float = 100.0) -> str:
    """Both ends of an interval, by default of a share in per cent; empty without one."""
    return "" if interval is None else f"[{scale * interval.low:{form}}, {scale * interval.high:{form}}]"


def missing_mark(missing: int) -> str:
    """How many steps of a figure have no answer; empty where all have one."""
    return f"({missing:,} missing)" if missing else ""


def per_cent(
    value: float | None,
    n: int | None = None,
    interval: Interval | None = None,
    *,
    digits: int = 2,
    unit: str = "%",
    signed: bool = False,
    show_n: bool = True,
    mark: str = "",
    missing: int = 0,
    best: bool = False,
) -> Number:
    """A fraction shown in per cent, with its n, its interval and the number of its missing steps, as far as they are given."""
    sign = "+" if signed else ""
    ends = f"{sign}.{max(digits - 1, 1)}f"
    marks = " ".join(filter(None, (mark, missing_mark(missing))))
    return Number(value, f"{sign}.{digits}f", 100.0, unit, interval, ends, n, show_n and n is not None, marks, best)


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
    columns do not fit the width is cut into several, each with the key columns.
    """

    title: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()
    name: str = ""
    keys: int = 1
    filled: list[Row] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "filled", [row for row in self.rows if row])
        if any(len(row) != len(self.columns) for row in self.filled):
            raise ValueError(f"the table {self.title!r} has a row that does not have {len(self.columns)} cells")


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

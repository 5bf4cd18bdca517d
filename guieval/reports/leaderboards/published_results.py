"""Published tables as data: what papers print, with source, definitions and everything that could not be read for certain.

A table is one YAML file in ``configs/results``. Its numbers are as printed, in percent unless a column says otherwise; what a
paper leaves blank is ``None``. Columns name their protocol and metric, if these are known, so that a run's metrics can be
shown next to them (:mod:`guieval.reports.leaderboards.references`). Several tables are joined by the names of their rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple

from pydantic import Field, model_validator

from guieval.actions import Frozen
from guieval.data.names import natural_order
from guieval.data.shipped import config_folder
from guieval.data.user_files import read_record
from guieval.errors import UsageError, nearest


class _Named(Frozen):
    name: str = Field(min_length=1, description="what options call the column")
    title: str = Field(min_length=1, description="its head, short")
    meaning: str = Field(min_length=1, description="what it is, with its unit")


class ResultColumn(_Named):
    """One metric of a table; ``protocol``, ``metric`` and what it is over are given where guieval computes the same metric."""

    decimals: int = Field(ge=0, description="as printed")
    mode: str | None = Field(None, description="offline, soeval, sop, sop-retry or online")
    benchmark: str | None = Field(None, description="registered name, of a benchmark or an environment")
    tasks: int | None = Field(None, ge=1, description="number of tasks, if that says which of the environment's are meant")
    mean_over: dict[str, str] = Field({}, description="of a mean over benchmarks: the protocol's metric of each of them")
    protocol: str | None = None
    metric: str | None = Field(None, description="the protocol's name for it, or ours of a mean")

    @model_validator(mode="after")
    def _all_or_none(self) -> ResultColumn:
        given = [bool(value) for value in (self.benchmark or self.mean_over, self.protocol, self.metric)]
        if any(given) and not (all(given) and self.mode is not None):
            raise ValueError("benchmark (or mean_over), protocol, metric and mode are given together")
        if self.benchmark and self.mean_over:
            raise ValueError("a metric is of one benchmark, or a mean over several: mean_over")
        return self


class Derived(_Named):
    """A column that the paper does not print: the mean of some that it does; of a row without one of them it is ``None``."""

    mean_of: tuple[str, ...] = Field(min_length=1, description="names of columns of the table")


class PublishedModel(Frozen):
    """One model's metrics, in the columns' order."""

    model: str = Field(min_length=1, description="as the paper calls it; of a table of other things, what the row is of")
    variant: str = Field("", description="what distinguishes this row from others of the model")
    aliases: tuple[str, ...] = Field((), description="titles of the same model's rows in other tables")
    family: str = Field("", description="models that are alike; correlations have intervals over families if each row has one")
    checkpoint: str | None = Field(None, description="name in configs/models, if that is the same model with the same prompt")
    training: str | None = Field(None, description="name of the training in a campaign that shows this table")
    thinking: bool | None = Field(None, description="on or off, if the paper has the checkpoint both ways")
    samples: float | None = Field(None, ge=0, description="number of training samples")
    gpu_hours: float | None = Field(None, gt=0, description="GPU hours of the training")
    parameters: float | None = Field(None, gt=0, description="size of the model, in 10^9 parameters")
    values: tuple[float | None, ...]

    @property
    def title(self) -> str:
        """The model's name, with its variant in brackets if there is one."""
        return f"{self.model} ({self.variant})" if self.variant else self.model


class Statistic(Frozen):
    """A statistic that the paper prints for its columns."""

    name: Literal["r2", "spearman"]
    title: str
    values: tuple[float | None, ...]


class ResultTable(Frozen):
    """One table of one paper."""

    name: str
    paper: str = Field(min_length=1)
    short: str = Field(min_length=1, description="the paper in a word")
    table: str = Field(min_length=1, description="its number in the paper")
    caption: str = Field(min_length=1, description="what it shows, in our words")
    rows_are: str = Field("model", description="what a row is of")
    columns: tuple[ResultColumn, ...] = Field(min_length=1)
    derived: tuple[Derived, ...] = ()
    rows: tuple[PublishedModel, ...] = Field(min_length=1)
    statistics: tuple[Statistic, ...] = ()
    notes: tuple[str, ...] = Field((), description="what a reader must know to use the numbers")
    left_out: tuple[str, ...] = Field((), description="what of the table could not be read for certain")

    @model_validator(mode="after")
    def _consistent(self) -> ResultTable:
        names = [column.name for column in self.columns]
        if len(set(self.names)) < len(self.names):
            raise ValueError("two columns have one name")
        for column in self.derived:
            if unknown := next((name for name in column.mean_of if name not in names), None):
                raise ValueError(f"{column.name!r} is a mean of {unknown!r}, which is no column")
        titles = [row.title for row in self.rows]
        if twice := next((title for title in titles if titles.count(title) > 1), None):
            raise ValueError(f"{twice!r} has two rows")
        given = [(row.title, row.values) for row in self.rows] + [
            (statistic.title, statistic.values) for statistic in self.statistics
        ]
        for title, values in given:
            if len(values) != len(names):
                raise ValueError(f"{title!r} has {len(values)} values for {len(names)} columns")
        return self

    @property
    def source(self) -> str:
        """The paper in a word, and the table's number."""
        return f"{self.short}, {self.table}"

    @property
    def names(self) -> list[str]:
        """What options call its columns, printed and derived."""
        return [*(column.name for column in self.columns), *(column.name for column in self.derived)]

    def column(self, name: str) -> ResultColumn | Derived:
        """A column by its name; :class:`UsageError` with the nearest name when there is none."""
        if name not in self.names:
            hint = nearest(name, self.names)
            raise UsageError(f"table {self.name!r} has no column {name!r}{hint}; it has: {', '.join(self.names)}")
        every: tuple[ResultColumn | Derived, ...] = (*self.columns, *self.derived)
        return next(column for column in every if column.name == name)

    def values(self, name: str) -> list[float | None]:
        """The values of a column, a row each."""
        column = self.column(name)
        parts = [self.names.index(part) for part in (column.mean_of if isinstance(column, Derived) else (name,))]
        rows = [[row.values[part] for part in parts] for row in self.rows]
        known = [[value for value in row if value is not None] for row in rows]
        return [sum(row) / len(row) if len(row) == len(parts) else None for row in known]


class Joined(NamedTuple):
    """Several tables as one: rows are the same if their titles or aliases have a name in common."""

    tables: tuple[ResultTable, ...]

    @property
    def source(self) -> str:
        """The papers and the tables' numbers."""
        return "; ".join(table.source for table in self.tables)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader must know to use the numbers, of each table."""
        return tuple(note for table in self.tables for note in table.notes)

    @property
    def families(self) -> dict[str, str]:
        """The family of each model, by the titles of its rows; of rows that name none there is none."""
        return {row.title: row.family for table in self.tables for row in table.rows if row.family}

    def column(self, name: str) -> ResultColumn | Derived:
        """A column by its name, or by ``TABLE:NAME``; :class:`UsageError` when there is none, or more than one."""
        table, name = self._place(name)
        return table.column(name)

    def pairs(self, x: str, y: str) -> list[tuple[str, float, float]]:
        """(row title, x, y) of every row that has both columns, in the order of the table of y, with its titles."""
        (table, across), (other, up) = self._place(x), self._place(y)
        found = []
        for row, value in zip(other.rows, other.values(up), strict=True):
            names = {row.title, *row.aliases}
            same = [
                number
                for each, number in zip(table.rows, table.values(across), strict=True)
                if (each is row if table is other else names & {each.title, *each.aliases})
            ]
            if len(same) > 1:
                raise UsageError(
                    f"{len(same)} rows of {table.name!r} are {row.title!r} of {other.name!r}: their aliases overlap"
                )
            if same and value is not None and same[0] is not None:
                found.append((row.title, same[0], value))
        return found

    def _place(self, name: str) -> tuple[ResultTable, str]:
        table, _, column = name.rpartition(":")
        among = [each for each in self.tables if each.name == table] if table else self.tables
        if table and not among:
            names = [each.name for each in self.tables]
            raise UsageError(f"{name!r} names no table given{nearest(table, names)}; given are: {', '.join(names)}")
        having = [each for each in among if column in each.names]
        if len(having) > 1:
            full = " or ".join(f"{each.name}:{column}" for each in having)
            raise UsageError(f"{len(having)} tables have a column {column!r}; write {full}")
        if not having and len(among) == 1:
            among[0].column(column)
        if not having:
            known = [each for own in among for each in own.names]
            raise UsageError(f"no table given has a column {column!r}{nearest(column, known)}; they have: {', '.join(known)}")
        return having[0], column


def joined(names: Sequence[str]) -> Joined:
    """The tables of these names or paths as one; :class:`UsageError` as for :func:`get_results`, and for one given twice."""
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise UsageError(f"the table {twice!r} is given twice")
    return Joined(tuple(map(get_results, names)))


def list_results() -> list[str]:
    """Names of all shipped tables."""
    return sorted((path.stem for path in (config_folder() / "results").glob("*.yaml")), key=natural_order)


@cache
def get_results(name: str) -> ResultTable:
    """The shipped table called ``name``, or the one in a file when ``name`` is a path that ends in ``.yaml``.

    Raises :class:`UsageError` with the nearest name, or with what is wrong in the file.
    """
    path = Path(name) if name.endswith(".yaml") else config_folder() / "results" / f"{name}.yaml"
    if not name.endswith(".yaml") and name not in (known := list_results()):
        raise UsageError(
            f"unknown table {name!r}{nearest(name, known)}; `guieval leaderboard --list-references` lists them, and a path "
            "ending in .yaml names one of your own"
        )
    table = read_record(path, ResultTable, "the table", yaml=True)
    if table.name != path.stem:  # reports name a table by it: no file may pass for another
        raise UsageError(f"the table {str(path)!r} calls itself {table.name!r}; it must have its file's name")
    return table

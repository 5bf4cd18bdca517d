"""Published tables as data: what papers print, with source, definitions and everything that could not be read for certain.

A table is one YAML file in ``configs/results``. Its numbers are as printed, in percent unless a column says otherwise; what a
paper leaves blank is ``None``. Columns name their protocol and metric, where these are known, so that a run's metrics can be
shown next to them (:mod:`guieval.reports.leaderboards.leaderboard`).
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from guieval.data.files import read_text
from guieval.data.names import natural_order
from guieval.data.shipped import config_folder
from guieval.data.yaml_text import read_yaml
from guieval.errors import UsageError, first_problem, nearest


class _Value(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Column(_Value):
    """One metric of a table; the last four fields are given together, and only where guieval computes the same metric."""

    name: str = Field(min_length=1, description="what options call the column")
    title: str = Field(min_length=1, description="its head, short")
    meaning: str = Field(min_length=1, description="what it is, with its unit")
    decimals: int = Field(ge=0, description="as printed")
    mode: str | None = Field(None, description="offline, soeval or sop, if the metric comes from static data")
    benchmark: str | None = Field(None, description="registered name")
    protocol: str | None = None
    metric: str | None = Field(None, description="the protocol's name for it")

    @model_validator(mode="after")
    def _all_or_none(self) -> Column:
        given = [value is not None for value in (self.benchmark, self.protocol, self.metric)]
        if any(given) and not (all(given) and self.mode is not None):
            raise ValueError("benchmark, protocol, metric and mode are given together")
        return self


class Row(_Value):
    """One model's metrics, in the columns' order."""

    model: str = Field(min_length=1, description="as the paper calls it")
    variant: str = Field("", description="what distinguishes this row from others of the model")
    checkpoint: str | None = Field(None, description="name in configs/models, if that is the same model with the same prompt")
    thinking: bool | None = Field(None, description="on or off, if the paper has the checkpoint both ways")
    values: tuple[float | None, ...]

    @property
    def title(self) -> str:
        """The model with its variant."""
        return f"{self.model} ({self.variant})" if self.variant else self.model


class Statistic(_Value):
    """A statistic that the paper prints for its columns."""

    name: Literal["r2", "spearman"]
    title: str
    values: tuple[float | None, ...]


class ResultTable(_Value):
    """One table of one paper."""

    name: str
    paper: str = Field(min_length=1)
    short: str = Field(min_length=1, description="the paper in a word")
    table: str = Field(min_length=1, description="its number in the paper")
    caption: str = Field(min_length=1, description="what it shows, in our words")
    columns: tuple[Column, ...] = Field(min_length=1)
    rows: tuple[Row, ...] = Field(min_length=1)
    statistics: tuple[Statistic, ...] = ()
    notes: tuple[str, ...] = Field((), description="what a reader must know to use the numbers")
    left_out: tuple[str, ...] = Field((), description="what of the table could not be read for certain")

    @model_validator(mode="after")
    def _consistent(self) -> ResultTable:
        names = [column.name for column in self.columns]
        if len(set(names)) < len(names):
            raise ValueError("two columns have one name")
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

    def index(self, column: str) -> int:
        """The place of a column; :class:`UsageError` with the nearest name when there is none."""
        names = [each.name for each in self.columns]
        if column not in names:
            hint = nearest(column, names)
            raise UsageError(f"table {self.name!r} has no column {column!r}{hint}; it has: {', '.join(names)}")
        return names.index(column)

    def pairs(self, x: str, y: str) -> list[tuple[str, float, float]]:
        """(row title, x, y) of every row that has both columns."""
        across, up = self.index(x), self.index(y)
        found = [(row.title, row.values[across], row.values[up]) for row in self.rows]
        return [(title, one, other) for title, one, other in found if one is not None and other is not None]


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
    try:
        table = ResultTable.model_validate(read_yaml(read_text(path)))
    except OSError as error:
        raise UsageError(f"the table {str(path)!r} cannot be read: {error.strerror}") from None
    except ValidationError as error:
        problem = first_problem(error, ResultTable)
        field = f", field {problem.field}" if problem.field else ""
        raise UsageError(f"the table {str(path)!r} is not valid{field}: {problem.message}") from None
    except ValueError as error:
        raise UsageError(f"the table {str(path)!r} is not a YAML file: {error}") from None
    if table.name != path.stem:  # reports name a table by it: no file may pass for another
        raise UsageError(f"the table {str(path)!r} calls itself {table.name!r}; it must have its file's name")
    return table

"""A leaderboard as data: its columns, its rows with their cells, and the published numbers next to them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple, TypeVar

from guieval.metrics.columns import End
from guieval.metrics.measured import SHARE, Better, Measured
from guieval.reports.comparison import chosen_names
from guieval.running.costs import Spending

_T = TypeVar("_T")


@dataclass(frozen=True)
class BoardColumn:
    """A column. Runs share one if the first five fields are equal; ``steps`` is a digest of the planned steps.

    The other fields describe it: what the metric is over, its unit and which way is better, the steps in words, what they are
    (steps or tasks), the numbers of steps and episodes, and the sample set that the source's numbers are over, if it is known.
    """

    benchmark: str
    steps: str
    overlay: str
    protocol: str
    metric: str
    of: str = field(compare=False)
    unit: str = field(compare=False)
    better: Better | None = field(compare=False)
    dataset: str = field(compare=False)
    selection: str = field(compare=False)
    row: Literal["step", "task"] = field(compare=False)
    step_count: int = field(compare=False)
    episode_count: int = field(compare=False)
    published_set: str | None = field(compare=False)

    @property
    def name(self) -> str:
        """Benchmark, protocol and metric."""
        return f"{self.benchmark}, {self.protocol}, {self.metric}"

    @property
    def heading(self) -> str:
        return f"{self.metric} ({'%' if self.unit == SHARE else self.unit})"

    @property
    def over(self) -> str:
        """The steps in words, with the begin of their digest."""
        overlay = f", overlay {self.overlay}" if self.overlay else ""
        return f"{self.selection or 'all'} ({self.step_count:,} {self.row}s, {self.steps[:6]}{overlay})"


@dataclass(frozen=True)
class Cell:
    """A metric of a run, or its mean over repeats.

    ``rank`` is among the rows of the same column and mode (``None`` for a single one); rank 1 is the best row and all
    that do not differ from it significantly. ``coverage`` is the share of measured predictions inside both action spaces
    (``None`` of tasks), ``ends`` how the planned steps ended, of all repeats. ``published_steps``: whether the run was over the
    steps of the source's numbers, if these are a known set. ``spending``: ``None`` if no server reported tokens.
    """

    measured: Measured
    rank: int | None
    coverage: float | None
    ends: Mapping[End, int]
    directory: str
    published_steps: bool | None
    spending: Spending | None = None


@dataclass(frozen=True)
class BoardRow:
    """A model in a mode and a scaffold, over its repeats; ``cells`` in the columns' order. ``note`` distinguishes rows of one
    model and mode."""

    model: str
    mode: str
    thinking: bool | None
    scaffold: str
    note: str
    cells: tuple[Cell | None, ...]

    @property
    def name(self) -> str:
        """The model, whether it thinks, and the note."""
        thinking = {True: " thinking", False: " not thinking", None: ""}[self.thinking]
        return f"{self.model}{thinking}" + (f" ({self.note})" if self.note else "")

    @property
    def title(self) -> str:
        return f"{self.name} ({self.mode})"


class RunPair(NamedTuple):
    """Two runs that share a column and a mode, by the ``directory`` of their cells.

    ``between``: the first one's metric minus the second's, paired over episodes; ``p_value`` has Holm's correction over all
    pairs of the column and mode, NaN if there is none.
    """

    column: BoardColumn
    mode: str
    first: str
    second: str
    between: Measured
    p_value: float


@dataclass(frozen=True)
class ReferenceRow:
    """A paper's metrics in percent, in the columns' order, with the decimals it prints."""

    model: str
    mode: str
    source: str
    table: str
    values: tuple[tuple[float, int] | None, ...]


@dataclass(frozen=True)
class Reproduction:
    """A run's metric and the published one of the same checkpoint, mode, benchmark, protocol and name, in percent.

    ``inside``: whether the published value is in the interval of the run's metric.
    """

    model: str
    mode: str
    column: BoardColumn
    own: float
    published: float
    decimals: int
    inside: bool | None
    published_steps: bool | None
    source: str

    @property
    def difference(self) -> float:
        """The run's metric minus the published one, in points."""
        return self.own - self.published

    def __str__(self) -> str:
        text = (
            f"{self.model} ({self.mode}), {self.column.name}: {self.own:.2f} here, "
            f"{self.published:.{self.decimals}f} in {self.source}, {self.difference:+.2f} points"
        )
        if self.inside and self.published_steps is not False:
            near = math.ceil(10 * abs(self.difference) - 1e-6) / 10
            text += f": reproduced within {near:.1f}, inside the interval"
        elif self.inside is not None:
            text += f", {'inside' if self.inside else 'outside'} the interval"
        if self.published_steps is False:
            text += f" (other steps: the published ones are sample set {self.column.published_set})"
        return text


@dataclass(frozen=True)
class Board:
    """The whole table. ``notes`` are sentences below it in every format; brief tables mark those in ``marked``.

    ``pairs`` are the comparisons that its ranks come from.
    """

    columns: tuple[BoardColumn, ...]
    rows: tuple[BoardRow, ...]
    references: tuple[ReferenceRow, ...]
    reproductions: tuple[Reproduction, ...]
    notes: tuple[str, ...]
    marked: tuple[str, ...] = ()
    pairs: tuple[RunPair, ...] = ()


def arranged(board: Board, metrics: str | None = None, sort: str | None = None) -> Board:
    """The board with the columns of these metrics alone (``None``: all), its rows sorted by a metric, the best first.

    ``metrics`` has commas between its names. ``sort`` is by default the first column's; runs that do not have it come last.
    Raises :class:`UsageError` naming the nearest for a metric that the board does not have.
    """
    chosen = list(range(len(board.columns)))
    if metrics is not None:
        chosen = _places(board, metrics)
    order = _places(board, sort) if sort is not None else chosen

    def key(row: BoardRow) -> list[float]:
        return [-merit(row.cells[place]) for place in order]

    def kept(cells: Sequence[_T]) -> tuple[_T, ...]:
        return tuple(cells[place] for place in dict.fromkeys(chosen))

    columns = kept(board.columns)
    rows = [replace(row, cells=kept(row.cells)) for row in sorted(board.rows, key=key)]
    return replace(
        board,
        columns=columns,
        rows=tuple(row for row in rows if any(row.cells)),
        references=tuple(replace(row, values=kept(row.values)) for row in board.references if any(kept(row.values))),
        reproductions=tuple(reproduction for reproduction in board.reproductions if reproduction.column in columns),
    )


def merit(cell: Cell | None) -> float:
    """A number that is larger for a better cell; minus infinity for one without a value."""
    if cell is None or cell.measured.value is None:
        return -math.inf
    return -cell.measured.value if cell.measured.better == "less" else cell.measured.value


def _places(board: Board, metrics: str) -> list[int]:
    known = list(dict.fromkeys(column.metric for column in board.columns))
    chosen = chosen_names(metrics, known)
    return [place for name in chosen for place, column in enumerate(board.columns) if column.metric == name]

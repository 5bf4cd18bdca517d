"""The parts of a board: the metrics of one benchmark under one protocol, what their runs spend, and the Pareto fronts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby

from guieval.evaluation import get_protocol
from guieval.metrics.front import Spent, fronts
from guieval.metrics.measured import SHARE
from guieval.reports.leaderboards.board import Board, BoardColumn, BoardRow
from guieval.running.costs import COSTED_STEPS, Spending, amount


@dataclass(frozen=True)
class Front:
    """A metric against tokens, or against cost in ``currency``.

    ``left_out`` are the titles of the rows whose spending is not known.
    """

    column: BoardColumn
    axis: str
    currency: str | None
    points: tuple[Spent, ...]
    left_out: tuple[str, ...]

    @cached_property
    def best(self) -> list[list[Spent]]:
        """The points on the front of each mode."""
        return fronts(self.points)

    def is_best(self, point: Spent) -> bool:
        return any(point in best for best in self.best)

    def shown(self, point: Spent) -> str:
        """The cost of a run, as text."""
        return f"{point.spent:,.0f}" if self.currency is None else amount(point.spent, self.currency)


@dataclass(frozen=True)
class BoardSection:
    """The columns of a board, by their places, that stand under one benchmark and protocol."""

    board: Board
    places: tuple[int, ...]

    @property
    def head(self) -> tuple[str, str]:
        """The benchmark with its steps, and the protocol."""
        return head(self.board.columns[self.places[0]])

    @cached_property
    def rows(self) -> tuple[int, ...]:
        """The places of the rows that have a metric here."""
        of_rows = (any(row.cells[place] is not None for place in self.places) for row in self.board.rows)
        return tuple(number for number, has in enumerate(of_rows) if has)

    def spending(self, row: BoardRow) -> Spending | None:
        """The cost of these steps in the run of a row."""
        return next((cell.spending for place in self.places if (cell := row.cells[place]) is not None), None)

    @property
    def tokens(self) -> str:
        return f"tokens per {self.board.columns[self.places[0]].row}"

    @cached_property
    def cost(self) -> str | None:
        """The heading of costs; ``None`` if no run has a price."""
        return f"cost of {COSTED_STEPS:,} {self.board.columns[self.places[0]].row}s" if self._currencies else None

    @property
    def _currencies(self) -> list[str]:
        spent = [self.spending(self.board.rows[row]) for row in self.rows]
        return sorted({each.currency for each in spent if each is not None and each.currency is not None})

    def fronts(self) -> list[Front]:
        """Exact match (else the first share) against tokens, and against cost in each currency.

        There is one if at least two runs of a mode have both.
        """
        spent = [self.spending(self.board.rows[row]) for row in self.rows]
        found = [self._front([None if each is None else each.tokens for each in spent], self.tokens)]
        for currency in self._currencies:
            costs = [each.cost if each is not None and each.currency == currency else None for each in spent]
            found.append(self._front(costs, str(self.cost), currency))
        return [each for each in found if each is not None]

    def _front(self, spent: Sequence[float | None], axis: str, currency: str | None = None) -> Front | None:
        rows, columns = self.board.rows, self.board.columns
        place = next((each for each in self.places if columns[each].unit == SHARE), None)
        if place is None:
            return None
        points, left_out = [], []
        for row, cost in zip((rows[each] for each in self.rows), spent, strict=True):
            cell = row.cells[place]
            if cost is not None and cell is not None and cell.measured.value is not None:
                points.append(Spent(row.name, cost, cell.measured, row.mode))
            else:
                left_out.append(row.title)
        if max(Counter(point.mode for point in points).values(), default=0) < 2:
            return None
        return Front(columns[place], axis, currency, tuple(points), tuple(left_out))


def sections(board: Board) -> list[BoardSection]:
    """The parts of a board in the order of its columns."""
    places = groupby(range(len(board.columns)), key=lambda place: head(board.columns[place]))
    return [BoardSection(board, tuple(same)) for _, same in places]


def head(column: BoardColumn) -> tuple[str, str]:
    """The headings of a metric: the benchmark with its steps, and the protocol."""
    over = f"{column.step_count:,} {column.row}s"
    if column.selection:
        over = f"{column.selection}: {over}"
    mark = get_protocol(column.protocol).foreign_mark([column.dataset])
    return f"{column.benchmark} ({over})", f"{column.protocol} ({mark})" if mark else column.protocol

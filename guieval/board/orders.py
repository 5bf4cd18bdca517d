"""How often the order of two models depends on the protocol: the same answers, judged by other rules.

Only runs that a leaderboard ranks are compared: of the same benchmark, steps, overlay and mode. Their order is by what the
board leads with, exact match over all steps, so that nothing but the rules differs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias

from guieval.reports.leaderboards.board import Board, BoardColumn, Cell, merit

Order: TypeAlias = Literal["first", "second", "equal", "open"]
LEVEL = 0.05


class Comparable(NamedTuple):
    """What two numbers must share, besides the protocol, to be compared."""

    benchmark: str
    steps: str
    overlay: str
    mode: str


@dataclass
class PairOrder:
    """Which of two rows is ahead under each protocol; ``decided`` are those protocols whose test says so.

    ``open``: steps are missing, and what they may be decides the order.
    """

    among: Comparable
    column: BoardColumn
    first: str
    second: str
    orders: dict[str, Order] = field(default_factory=dict)
    decided: set[str] = field(default_factory=set)

    def under(self, order: Order) -> list[str]:
        """The protocols with this order."""
        return [protocol for protocol, found in self.orders.items() if found == order]

    @property
    def changes(self) -> bool:
        """Whether each of the two is ahead under some protocol."""
        return bool(self.under("first") and self.under("second"))

    @property
    def decidedly(self) -> bool:
        """Whether the tests decide both orders."""
        return all(self.decided.intersection(self.under(order)) for order in ("first", "second"))

    @property
    def levels(self) -> bool:
        """Whether they are equal under some protocols, and one of them is ahead under others."""
        return bool(self.under("equal")) and bool(self.under("first") or self.under("second"))


class OrderCount(NamedTuple):
    """How many pairs there are, of how many the order changes, with both orders decided, and how many are only levelled."""

    pairs: int
    changes: int
    decided: int
    levels: int

    @classmethod
    def of(cls, pairs: Sequence[PairOrder]) -> OrderCount:
        """Counts of these pairs; those under a single protocol are none."""
        several = [each for each in pairs if len(each.orders) > 1]
        changed = [each for each in several if each.changes]
        levels = sum(each.levels and not each.changes for each in several)
        return cls(len(several), len(changed), sum(each.decidedly for each in changed), levels)


def leading_columns(board: Board) -> Iterator[BoardColumn]:
    """The first column of each set of steps and protocol."""
    seen = set()
    for column in board.columns:
        if (kind := (column.benchmark, column.steps, column.overlay, column.protocol)) not in seen:
            seen.add(kind)
            yield column


def pair_orders(board: Board) -> list[PairOrder]:
    """Every pair of comparable runs with its order under each protocol."""
    cells = {(column, cell.directory): (row.name, cell) for row in board.rows for column, cell in _filled(board, row.cells)}
    leading = set(leading_columns(board))
    found: dict[tuple[Comparable, str, str], PairOrder] = {}
    for pair in board.pairs:
        column = pair.column
        if column not in leading:
            continue
        (one, first), (other, second) = cells[column, pair.first], cells[column, pair.second]
        among = Comparable(column.benchmark, column.steps, column.overlay, pair.mode)
        order = found.setdefault((among, pair.first, pair.second), PairOrder(among, column, one, other))
        order.orders[column.protocol] = _order(first, second)
        if pair.p_value < LEVEL and order.orders[column.protocol] in ("first", "second"):
            order.decided.add(column.protocol)
    return list(found.values())


def _filled(board: Board, cells: Sequence[Cell | None]) -> Iterator[tuple[BoardColumn, Cell]]:
    for column, cell in zip(board.columns, cells, strict=True):
        if cell is not None:
            yield column, cell


def _order(first: Cell, second: Cell) -> Order:
    """The order of two cells, whatever their missing steps may have been."""
    (one, best), (other, others_best) = _range(first), _range(second)
    if one > others_best:
        return "first"
    if other > best:
        return "second"
    return "equal" if one == best == other == others_best else "open"


def _range(cell: Cell) -> tuple[float, float]:
    """The merit with all missing steps wrong, and with all of them right."""
    least, of = merit(cell), cell.measured
    if of.upper is not None and of.better != "less":
        return least, max(least, of.upper)
    return least, (math.inf if of.missing else least)

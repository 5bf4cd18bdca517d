"""Published tables next to a board: means over benchmarks, rows of papers, and what of them a run reproduces."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import TypeAlias

from guieval.metrics.measured import Measured
from guieval.reports.leaderboards.board import Board, BoardColumn, BoardRow, Cell, ReferenceRow, Reproduction
from guieval.reports.leaderboards.published_results import ResultColumn, ResultTable

_Matching: TypeAlias = Sequence[tuple[int, int, ResultColumn]]
"""Which column of a published table is which of the board's: (place there, place here, the published one)."""


def with_references(board: Board, tables: Sequence[ResultTable]) -> Board:
    """The board with the means over benchmarks that the tables print, their rows, notes on them, and what is reproduced."""
    means = list(_means(tables, board.columns))
    columns = (*board.columns, *(column for column, _ in means))
    rows = [replace(row, cells=(*row.cells, *(_mean(row, places) for _, places in means))) for row in board.rows]
    board = replace(board, columns=columns, rows=tuple(rows))
    notes, published, reproductions = [*board.notes], list[ReferenceRow](), list[Reproduction]()
    for table in tables:
        matching = [
            (there, here, column)
            for there, column in enumerate(table.columns)
            for here, own in enumerate(columns)
            if (_benchmarks(column), column.protocol, column.metric) == (own.benchmark, own.protocol, own.metric)
            and column.tasks in (None, own.episode_count)
        ]
        notes += _notes(table, matching, board)
        published += _published_rows(table, matching, len(columns))
        reproductions += _reproductions(table, matching, board)
    return replace(board, references=tuple(published), reproductions=tuple(reproductions), notes=tuple(notes))


def _means(tables: Sequence[ResultTable], columns: Sequence[BoardColumn]) -> Iterator[tuple[BoardColumn, tuple[int, ...]]]:
    """The means that the tables print and the board has all parts of, each over one set of steps, with the parts' places."""
    seen: set[tuple[int, ...]] = set()
    for published in (column for table in tables for column in table.columns if column.mean_over):
        of = [
            [
                place
                for place, column in enumerate(columns)
                if (column.benchmark, column.protocol, column.metric) == (benchmark, published.protocol, metric)
            ]
            for benchmark, metric in published.mean_over.items()
        ]
        places = tuple(same[0] for same in of if len(same) == 1)
        if len(places) < len(of) or places in seen:
            continue
        seen.add(places)
        parts = [columns[place] for place in places]
        mean = replace(
            parts[0],
            benchmark=_benchmarks(published) or "",
            steps=sha256("".join(part.steps for part in parts).encode()).hexdigest()[:12],
            metric=published.metric or published.title,
            of=f"benchmarks with equal weights ({', '.join(f'{part.metric} on {part.benchmark}' for part in parts)})",
            selection="",
            step_count=sum(part.step_count for part in parts),
            episode_count=sum(part.episode_count for part in parts),
            published_set=None,
        )
        yield mean, places


def _benchmarks(published: ResultColumn) -> str | None:
    """What a board calls that which a published column is over."""
    return f"mean over {', '.join(published.mean_over)}" if published.mean_over else published.benchmark


def _mean(row: BoardRow, places: Sequence[int]) -> Cell | None:
    """The mean of a row's cells; ``None`` if one of them has no value.

    The benchmarks' numbers are independent, so the interval's distances from the mean are those of the parts, by Pythagoras and
    divided by their number (G. Y. Zou and A. Donner, "Construction of confidence limits about effect measures", 2008).
    """
    cells = [cell for place in places if (cell := row.cells[place]) is not None]
    parts = [cell.measured for cell in cells]
    values = [part.value for part in parts if part.value is not None]
    if len(values) < len(places):
        return None
    value = math.fsum(values) / len(values)
    ends = [part.interval for part in parts if part.interval is not None]
    interval = None
    if len(ends) == len(parts):
        below = math.hypot(*(at - each.low for at, each in zip(values, ends, strict=True))) / len(values)
        above = math.hypot(*(each.high - at for at, each in zip(values, ends, strict=True))) / len(values)
        interval = replace(ends[0], low=max(0.0, value - below), high=min(1.0, value + above))
    n, missing = sum(part.n for part in parts), sum(part.missing for part in parts)
    measured = Measured(value, n, of=parts[0].of, missing=missing, interval=interval, unit=parts[0].unit)
    known = {cell.published_steps for cell in cells}
    directories = ", ".join(dict.fromkeys(cell.directory for cell in cells))
    return Cell(measured, None, None, {}, directories, False if False in known else None if None in known else True)


def _notes(table: ResultTable, matching: _Matching, board: Board) -> Iterator[str]:
    """Notes on columns in which a published metric is, or may be, over other steps than the runs."""
    if not matching:
        yield f"{table.source} has none of these metrics"
    for here in dict.fromkeys(here for _, here, _ in matching):
        column = board.columns[here]
        if {cell.published_steps for row in board.rows if (cell := row.cells[here]) is not None} != {True}:
            over = "the paper's own steps" if column.published_set is None else f"sample set {column.published_set}"
            yield (
                f"{table.source}: what it prints for {column.name} is over {over}, "
                f"and the runs of that column are over {column.over}"
            )


def _published_rows(table: ResultTable, matching: _Matching, width: int) -> Iterator[ReferenceRow]:
    for row in table.rows:
        by_mode: defaultdict[str, list[tuple[float, int] | None]] = defaultdict(lambda: [None] * width)
        for there, here, published in matching:
            value = row.values[there]
            if value is not None and published.mode is not None:
                by_mode[published.mode][here] = (value, published.decimals)
        for mode, values in by_mode.items():
            yield ReferenceRow(row.title, mode, table.source, table.name, tuple(values))


def _reproductions(table: ResultTable, matching: _Matching, board: Board) -> Iterator[Reproduction]:
    for there, here, published in matching:
        for row in board.rows:
            cell = row.cells[here]
            if cell is None or (own := cell.measured.value) is None or row.mode != published.mode:
                continue
            for printed in table.rows:
                value = printed.values[there]
                if value is None or printed.checkpoint != row.model or printed.thinking not in (None, row.thinking):
                    continue
                interval = cell.measured.interval
                yield Reproduction(
                    model=printed.title,
                    mode=row.mode,
                    column=board.columns[here],
                    own=100 * own,
                    published=value,
                    decimals=published.decimals,
                    inside=None if interval is None else interval.low <= value / 100 <= interval.high,
                    published_steps=cell.published_steps,
                    source=table.source,
                )

"""Every number of a board as a row of one table, with what a reader needs to judge and to repeat it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path

import numpy as np

from guieval.board.commands import commands_of, published_command
from guieval.board.orders import Comparable
from guieval.evaluation import get_protocol
from guieval.journal import RunFolder
from guieval.journal.repeats import FOLDER
from guieval.journal.run_files import Manifest, setup_line
from guieval.metrics.columns import ENDS
from guieval.metrics.measured import SHARE, Measured
from guieval.metrics.paired import ranks
from guieval.reports.leaderboards.board import Board, BoardColumn, BoardRow, Cell
from guieval.reports.leaderboards.published_results import ResultColumn, ResultTable
from guieval.reports.tables.table import Number, Row, Table, bare, columns, share

HERE, PUBLISHED = "recomputed", "published"
_WORDS = ("model", "protocol", "metric", "kind", "mode", "steps", "edition", "set-up", "scaffold", "source")
_HEADS = (*_WORDS[:3], "value", "rank", "n", "missing", *_WORDS[3:])
KIND = _HEADS.index("kind")
FILTERED = ("protocol", "metric", "kind", "mode", "steps")
"""The columns that a reader can filter by a choice."""


@dataclass(frozen=True)
class BoardNumber:
    """A row of the table, and what it unfolds: facts by their names, and commands."""

    benchmark: str
    row: Row
    facts: tuple[tuple[str, str], ...]
    commands: tuple[str, ...]


def numbers_table(numbers: Sequence[BoardNumber]) -> Table:
    """The numbers as one table."""
    heads = columns(*_HEADS, folds=_WORDS)
    return Table("Numbers", heads, tuple(number.row for number in numbers), keys=1)


def numbers_of(board: Board) -> Iterator[BoardNumber]:
    """The board's own numbers: by steps and protocol, the best first."""
    runs: dict[str, _Runs] = {}
    pairs = ((row, column, cell) for row in board.rows for column, cell in zip(board.columns, row.cells, strict=True))
    ranked = Counter((column, row.mode) for row, column, cell in pairs if cell is not None)
    for place, column in enumerate(board.columns):
        having = [(row, cell) for row in board.rows if (cell := row.cells[place]) is not None]
        for row, cell in sorted(having, key=lambda pair: (pair[0].mode, pair[1].rank or 0)):
            if cell.directory not in runs:
                runs[cell.directory] = _Runs.of(cell.directory)
            yield _own(board, row, column, cell, runs[cell.directory], ranked[column, row.mode])


@dataclass(frozen=True)
class _Runs:
    """What the folders of a cell say of its run, or of its repeats."""

    directories: tuple[Path, ...]
    folder: Path
    manifests: tuple[Manifest, ...]

    @classmethod
    def of(cls, name: str) -> _Runs:
        if (Path(name) / "manifest.json").is_file() or not Path(name).is_dir():
            directories = tuple(Path(each) for each in ([name] if Path(name).is_dir() else name.split(", ")))
            folder = directories[0]
        else:
            folder = Path(name)
            directories = tuple(sorted(each for each in folder.iterdir() if FOLDER.fullmatch(each.name)))
        return cls(directories, folder, tuple(RunFolder(each).manifest for each in directories))

    @property
    def source(self) -> str:
        imported = self.manifests[0].imported
        return "a run" if imported is None else f"imported: {imported.source}"

    def facts(self) -> Iterator[tuple[str, str]]:
        """Where the number is from."""
        first, imported = self.manifests[0], self.manifests[0].imported
        yield "journal", ", ".join(str(each) for each in self.directories)
        if imported is not None:
            yield "file", imported.source + (f", sha256 {imported.sha256}" if imported.sha256 else "")
            yield from (("note", line) for line in imported.lines)
        if first.config.tracking.note:
            yield "note", first.config.tracking.note
        if first.benchmark.perturbation_line:
            yield "drawn into the screens", first.benchmark.perturbation_line


def _own(board: Board, row: BoardRow, column: BoardColumn, cell: Cell, runs: _Runs, among: int) -> BoardNumber:
    first = runs.manifests[0]
    number = Number(replace(cell.measured, missing=0), best=cell.rank == 1)
    rank = None if cell.rank is None else bare(cell.rank, ".0f", f"of {among}")
    edition = first.benchmark.edition_line or "not recorded"
    setup = setup_line(runs.manifests, request=False)
    ends = ", ".join(f"{cell.ends[end]:,} {end.replace('_', ' ')}" for end in ENDS if cell.ends.get(end))
    facts = [
        ("metric", f"{column.metric}, of {column.of}; the steps: {column.over}"),
        ("how they ended", ends),
        ("coverage", "" if cell.coverage is None else str(share(cell.coverage))),
        ("under other protocols", _elsewhere(board, row, column, cell)),
        ("note", get_protocol(column.protocol).foreign_note(column.dataset)),
        *runs.facts(),
    ]
    made, scored = commands_of(runs.manifests, runs.directories, runs.folder, column.protocol)
    return BoardNumber(
        column.benchmark,
        (
            *(row.name, column.protocol, column.metric, number, rank, cell.measured.n, cell.measured.missing, HERE, row.mode),
            *(f"{column.selection or 'all'}: {column.step_count:,} {column.row}s", edition, setup, row.scaffold, runs.source),
        ),
        tuple((name, text) for name, text in facts if text),
        tuple(filter(None, (made, scored))),
    )


def _elsewhere(board: Board, row: BoardRow, column: BoardColumn, cell: Cell) -> str:
    """The same metric of the same run under its other protocols, with its ranks."""
    found = []
    for other, own in zip(board.columns, row.cells, strict=True):
        if own is None or own.directory != cell.directory or other.protocol == column.protocol:
            continue
        if (other.metric, other.steps, other.benchmark) == (column.metric, column.steps, column.benchmark):
            rank = "" if own.rank is None else f" (#{own.rank})"
            shown = Number(replace(own.measured, interval=None))
            found.append(f"{other.protocol} {shown}{rank}")
    return "; ".join(found)


def protocols_table(board: Board, among: Comparable, leading: Sequence[BoardColumn]) -> Table:
    """What changes with the protocol: a row for each run of comparable ones, a column for each protocol."""
    places = [place for place, column in enumerate(board.columns) if column in leading and _is_among(column, among)]
    rows: list[Row] = []
    for row in board.rows:
        cells = [row.cells[place] for place in places]
        if row.mode == among.mode and any(cells):
            rows.append((row.name, *(None if cell is None else _ranked(cell) for cell in cells)))
    column = board.columns[places[0]]
    title = (
        f"{column.metric} under each protocol: {column.selection or 'all'}, {column.step_count:,} {column.row}s, {among.mode}"
    )
    return Table(title, columns("model", *(board.columns[place].protocol for place in places)), tuple(rows), keys=1)


def _is_among(column: BoardColumn, among: Comparable) -> bool:
    return (column.benchmark, column.steps, column.overlay) == among[:3]


def _ranked(cell: Cell) -> Number:
    mark = "" if cell.rank is None else f"#{cell.rank}"
    return Number(cell.measured, mark=mark, best=cell.rank == 1)


def published_numbers(tables: Sequence[ResultTable]) -> Iterator[BoardNumber]:
    """The printed numbers of columns of which guieval computes the same metric; ranked within their table alone."""
    for table in tables:
        for place, column in enumerate(table.columns):
            if column.benchmark is None or column.mode is None or column.protocol is None or column.metric is None:
                continue
            printed = [(row, value) for row in table.rows if (value := row.values[place]) is not None]
            values = [value for _, value in printed]
            order = ranks(values, np.zeros((len(values), len(values))))
            for (row, value), rank in sorted(zip(printed, order, strict=True), key=lambda each: each[1]):
                shown = Number(Measured(value / 100, unit=SHARE), f".{column.decimals}f")
                command = published_command(row, column)
                facts = [
                    ("printed in", f"{table.source}: {table.paper}"),
                    ("column", f"{column.title}: {column.meaning}"),
                    ("rank", f"as printed, among the {len(values)} rows of this table; there is no journal, so no test"),
                    *(("note", note) for note in table.notes),
                    *([] if command else [("command", "none: the paper's checkpoint is not one of guieval's")]),
                ]
                number: Row = (
                    *(row.title, column.protocol, column.metric, shown, bare(rank, ".0f", f"of {len(values)}"), None, None),
                    *(PUBLISHED, column.mode),
                    *("not stated", "not stated", "not stated", "not stated", table.source),
                )
                yield BoardNumber(column.benchmark, number, tuple(facts), (command,) if command else ())


def printed_tables(tables: Sequence[ResultTable]) -> Iterator[Table]:
    """The published tables as they are printed, with columns of which guieval computes no metric."""
    for table in tables:
        heads = columns(table.rows_are, *(column.title for column in table.columns))
        rows = tuple(
            (row.title, *(_printed(value, column) for value, column in zip(row.values, table.columns, strict=True)))
            for row in table.rows
        )
        left_out = tuple(f"left out: {each}" for each in table.left_out)
        yield Table(f"{table.source}: {table.caption}", heads, rows, (*table.notes, *left_out), name=table.name, keys=1)


def _printed(value: float | None, column: ResultColumn) -> Number | None:
    return None if value is None else bare(value, f".{column.decimals}f")


def by_benchmark(numbers: Sequence[BoardNumber]) -> Mapping[str, list[BoardNumber]]:
    """The numbers of each benchmark, sorted by its name."""
    found: defaultdict[str, list[BoardNumber]] = defaultdict(list)
    for name, of in groupby(sorted(numbers, key=lambda number: number.benchmark), key=lambda number: number.benchmark):
        found[name].extend(of)
    return found

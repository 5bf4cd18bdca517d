"""A leaderboard as tables for the terminal, Markdown and LaTeX, as CSV, JSON and one self-contained HTML page.

Percentages in what people read; fractions at full precision in CSV and JSON.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from hashlib import sha256
from itertools import groupby
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from guieval.errors import UsageError, nearest
from guieval.evaluation import get_protocol
from guieval.metrics.columns import ENDS
from guieval.reports.leaderboards.leaderboard import Board, BoardColumn, BoardRow, Cell, percent
from guieval.reports.tables.records import write_records
from guieval.reports.tables.table import Column, Number, Row, Table, bracketed, columns, missing_mark, per_cent
from guieval.reports.tables.terminal import as_text
from guieval.reports.tables.writers import json_text, latex, markdown, page
from guieval.steps import whole_text

Format: TypeAlias = Literal["text", "md", "csv", "latex", "json", "html"]
FORMATS: tuple[Format, ...] = get_args(Format)
_KEYS = (Column("model", right=False), Column("mode", right=False))
_ENDINGS: dict[str, Format] = {".txt": "text", ".md": "md", ".csv": "csv", ".tex": "latex", ".json": "json", ".html": "html"}


def format_named(name: str | None, out: Path | None, *, terminal: bool = False) -> Format:
    """The named format, else that of the file's ending, else text on a terminal and Markdown elsewhere.

    Raises :class:`UsageError` for any other.
    """
    if name is not None:
        if name not in FORMATS:
            raise UsageError(f"unknown format {name!r}{nearest(name, FORMATS)}; known: {', '.join(FORMATS)}")
        return name
    if out is None:
        return "text" if terminal else "md"
    if out.suffix not in _ENDINGS:
        raise UsageError(f"{str(out)!r} must end in {', '.join(_ENDINGS)}, unless --format names the format")
    return _ENDINGS[out.suffix]


def written(board: Board, form: Format) -> str:
    """The board as text of that format."""
    writers: dict[Format, Callable[[Board], str]] = {
        "text": lambda board: as_text(board_tables(board)),
        "md": lambda board: markdown(board_tables(board)),
        "csv": comma_separated,
        "latex": as_latex,
        "json": as_json,
        "html": html,
    }
    return writers[form](board)


def rank_note(board: Board) -> str:
    """How to read the figures: the meaning of bold, rank and brackets, and the seed."""
    return (
        "Rank 1 (bold): the best run of its mode and those next below it that do not differ from it significantly (paired "
        f"bootstrap over episodes, Holm's correction, 0.05); [..]: 95 % intervals over episodes; seed {board.seed}. "
        "Figures in %."
    )


def board_tables(board: Board) -> list[Table]:
    """A table of figures for each benchmark and protocol, and one of how steps ended, with the board's notes."""
    tables = []
    for above, same in groupby(range(len(board.columns)), key=lambda place: _head(board.columns[place])):
        places = list(same)
        heads = (*_KEYS, *(Column(board.columns[place].title) for place in places))
        tables.append(Table(" under ".join(above), heads, _rows(board, places), keys=2))
    tables[-1] = replace(tables[-1], notes=(rank_note(board),))
    return [*tables, _ends(board)]


def _rows(board: Board, places: Sequence[int], *, ranks: bool = True) -> tuple[Row, ...]:
    """The rows that have a figure in one of these columns: the runs', then the published ones."""
    own = [(_named(row), row.mode, *(_number(row.cells[place], ranks=ranks) for place in places)) for row in board.rows]
    published = [
        (f"{row.model} ({row.source})", row.mode, *(_published(row.values[place]) for place in places))
        for row in board.references
    ]
    rows = [[row for row in part if any(cell is not None for cell in row[2:])] for part in (own, published)]
    return (*rows[0], *([(), *rows[1]] if rows[1] else []))


def _number(cell: Cell | None, *, ranks: bool) -> Number | None:
    if cell is None:
        return None
    rank = f"#{cell.rank}" if ranks and cell.rank is not None and cell.value is not None else ""
    return per_cent(cell.value, interval=cell.interval, unit="", mark=rank, missing=cell.missing, best=cell.rank == 1)


def _published(value: tuple[float, int] | None) -> Number | None:
    return None if value is None else Number(value[0], f".{value[1]}f")


def _ends(board: Board) -> Table:
    """How the steps of each run ended, once for each protocol, and the notes on the whole board.

    Benchmark and protocol have a column only if they differ between rows, since on a terminal every part of a table repeats it.
    """
    ended = _ended(board)
    names = ("model", "mode", "benchmark", "protocol")
    values = list(zip(*((_named(row), row.mode, column.benchmark, column.protocol) for row, column, _ in ended), strict=True))
    keys = [place for place in range(len(names)) if place < 2 or len(set(values[place])) > 1]
    rows: tuple[Row, ...] = tuple(
        (*(values[key][place] for key in keys), per_cent(cell.coverage, unit=""), *(cell.ends[end] for end in ENDS))
        for place, (_, _, cell) in enumerate(ended)
    )
    heads = (*(names[key] for key in keys), "coverage (%)", *(end.replace("_", " ") for end in ENDS))
    notes = (*(f"beside published figures: {reproduction}" for reproduction in board.reproductions), *board.notes)
    return Table("How steps ended", columns(*heads, keys=len(keys)), rows, notes, keys=len(keys))


def comma_separated(board: Board) -> str:
    """One line for each figure of each run, and for each published one, which has only a value.

    A name that a spreadsheet would run as a formula begins with an apostrophe here; JSON has it as it is.
    """
    names = ["model", "mode", "thinking", "benchmark", "steps", "selection", "overlay", "protocol", "figure", "value"]
    names += ["low", "high", "n", "missing", "strict", "rank", "coverage", *ENDS, "source"]
    stream = io.StringIO(newline="")
    write_records(stream, _records(board), names, as_csv=True)
    return whole_text(stream.getvalue())


def _records(board: Board) -> Iterator[dict[str, Any]]:
    for row in board.rows:
        for column, cell in zip(board.columns, row.cells, strict=True):
            if cell is not None:
                who = {"model": row.model, "mode": row.mode, "thinking": row.thinking, "source": cell.directory}
                yield {**who, **_heading(column), "selection": column.selection, **_cell_fields(cell)}
    for reference in board.references:
        for column, value in zip(board.columns, reference.values, strict=True):
            if value is not None:
                printed = {"model": reference.model, "mode": reference.mode, "value": value[0] / 100}
                yield {**_heading(column), "steps": "", **printed, "source": reference.source}


def as_json(board: Board) -> str:
    """All data of the board."""
    reproductions = [
        {**vars(reproduction), "column": _heading(reproduction.column), "difference": reproduction.difference}
        for reproduction in board.reproductions
    ]
    return json_text(vars(board) | {"reproductions": reproductions})


def as_latex(board: Board) -> str:
    """One booktabs table, the best of each column and mode in bold; notes and differences are below it in small print."""
    heads = (*_KEYS, *(Column(column.title, _head(column)) for column in board.columns))
    notes = (rank_note(board), *map(str, board.reproductions), *board.notes)
    table = Table("", heads, _rows(board, range(len(board.columns)), ranks=False), notes, "leaderboard", keys=2)
    benchmarks = ", ".join(dict.fromkeys(column.benchmark for column in board.columns))
    return latex(table, caption=f"Results on {benchmarks}, in %.")


def html(board: Board) -> str:
    """One page without network requests: sortable by mouse and keyboard, light and dark; only its own script runs.

    The policy in its head allows exactly the page's style and script, by their hashes, so a name that contained markup could do
    nothing even if it were not escaped.
    """
    folder = Path(__file__).parent / "templates"
    # Both are in the page unchanged, because the policy allows them by their hash.
    style, script = ((folder / name).read_text(encoding="utf-8") for name in ("leaderboard.css", "leaderboard.js"))
    return page(
        folder / "leaderboard.html.jinja",
        board=board,
        heads=[(*_head(column), column.title) for column in board.columns],
        named=_named,
        percent=percent,
        missing_mark=missing_mark,
        bracketed=bracketed,
        ends=_ended(board),
        end_names=ENDS,
        rank_note=rank_note(board),
        style=style,
        script=script,
        style_hash=_hash(style),
        script_hash=_hash(script),
    )


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(sha256(text.encode()).digest()).decode()}"


def _head(column: BoardColumn) -> tuple[str, str]:
    """The headings above a figure: the benchmark with its steps, and the protocol."""
    over = f"{column.step_count:,} steps"
    if column.selection:
        over = f"{column.selection}: {over}"
    mark = get_protocol(column.protocol).foreign_mark([column.dataset])
    return f"{column.benchmark} ({over})", f"{column.protocol} ({mark})" if mark else column.protocol


def _heading(column: BoardColumn) -> dict[str, str]:
    return {name: getattr(column, name) for name in ("benchmark", "steps", "overlay", "protocol", "figure")}


def _named(row: BoardRow) -> str:
    thinking = {True: " thinking", False: " not thinking", None: ""}[row.thinking]
    return f"{row.model}{thinking}" + (f" ({row.note})" if row.note else "")


def _ended(board: Board) -> list[tuple[BoardRow, BoardColumn, Cell]]:
    """The first cell of each run, steps and protocol: how steps ended is shown once."""
    first: dict[tuple[int, BoardColumn], tuple[BoardRow, BoardColumn, Cell]] = {}
    for place, row in enumerate(board.rows):
        for column, cell in zip(board.columns, row.cells, strict=True):
            if cell is not None:
                first.setdefault((place, replace(column, figure="")), (row, column, cell))
    return list(first.values())


def _cell_fields(cell: Cell) -> dict[str, Any]:
    values = {name: getattr(cell, name) for name in ("value", "n", "missing", "strict", "rank", "coverage")}
    ends = {} if cell.interval is None else {"low": cell.interval.low, "high": cell.interval.high}
    return values | ends | {str(end): count for end, count in cell.ends.items()}

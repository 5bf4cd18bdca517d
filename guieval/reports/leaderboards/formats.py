"""A leaderboard as tables for the terminal, Markdown and LaTeX, as CSV, JSON and one self-contained HTML page.

Shares are in per cent in what people read, fractions at full precision in CSV and JSON.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

from guieval.metrics.columns import ENDS, End
from guieval.metrics.leading import denominators
from guieval.metrics.measured import Measured
from guieval.metrics.summary import COVERAGE_NEEDED
from guieval.reports.leaderboards.board import Board, BoardColumn, BoardRow, Cell
from guieval.reports.leaderboards.drawing import drawing
from guieval.reports.leaderboards.sections import BoardSection, Front, sections
from guieval.reports.pages.kit import NODES, SORTING, STYLE, THEME, whole_page
from guieval.reports.tables.latex import check_latex, several
from guieval.reports.tables.records import csv_text
from guieval.reports.tables.table import Column, Number, Row, Table, bare, columns, share
from guieval.reports.tables.terminal import as_text
from guieval.reports.tables.writers import Format, json_text, markdown
from guieval.running.costs import COSTED_STEPS, Spending, digits

FORMATS: tuple[Format, ...] = get_args(Format)
_KEYS = (Column("model", right=False), Column("mode", right=False))
NOT_REPORTED = "not reported"
"""Shown for tokens that the server did not count."""
NO_PRICE = "no price"
_SHORT: dict[End, str] = {"infrastructure_failure": "failed", "not_run": "never sent"}
"""Headings of the ends that leave a step missing."""


def written(board: Board, form: Format, *, intervals: bool = True, label: str | None = None, caption: str | None = None) -> str:
    """The board as text of that format. ``intervals``: whether readers see them; CSV and JSON always have them.

    ``label`` and ``caption`` replace those of LaTeX; :class:`UsageError` if the format is another.
    """
    check_latex(form, label, caption)
    shown = board if intervals else without_intervals(board)
    writers: dict[Format, Callable[[], str]] = {
        "text": lambda: as_text(board_tables(shown)),
        "md": lambda: markdown(board_tables(shown)),
        "csv": lambda: comma_separated(board),
        "latex": lambda: as_latex(shown, label, caption),
        "json": lambda: as_json(board),
        "html": lambda: html(shown),
    }
    return writers[form]()


def without_intervals(board: Board) -> Board:
    """The board as it is shown without its intervals."""
    rows = [
        replace(row, cells=tuple(cell and replace(cell, measured=replace(cell.measured, interval=None)) for cell in row.cells))
        for row in board.rows
    ]
    return replace(board, rows=tuple(rows))


def rank_note(board: Board) -> str:
    """How to read the numbers: the meaning of bold, rank and brackets."""
    numbers = [cell.measured for row in board.rows for cell in row.cells if cell is not None]
    over = "episodes and repeats" if any(each.spread is not None for each in numbers) else "episodes"
    brackets = f" [..]: 95 % intervals over {over}." * any(each.interval is not None for each in numbers)
    modes = "; modes are not comparable" * (len({row.mode for row in board.rows}) > 1)
    return (
        "#1 (bold): the best run of its mode, or not significantly below it (paired, Holm's correction, 0.05)"
        f"{modes}.{brackets}"
    )


def metric_notes(board: Board, *, brief: bool = False) -> Iterator[str]:
    """What the metrics that are shown are over, a sentence for each protocol; if ``brief``, which command says it."""
    if brief:
        names = dict.fromkeys(column.protocol for column in board.columns)
        yield f"What a metric is over: `guieval protocols {next(iter(names)) if len(names) == 1 else 'NAME'}`"
        return
    for protocol in dict.fromkeys(column.protocol for column in board.columns):
        yield denominators(protocol, {each.metric: each.of for each in board.columns if each.protocol == protocol})


def spending_notes(board: Board, *, brief: bool = False) -> list[str]:
    """How to read tokens and costs, and the fronts in words; nothing if no server reported tokens. ``brief``: only costs."""
    spent = [cell.spending for row in board.rows for cell in row.cells if cell is not None and cell.spending is not None]
    if not spent:
        return []
    notes = ["Tokens: mean of prompt and response together, of all samples, as the servers reported them."]
    if dates := sorted({each.as_of for each in spent if each.as_of is not None}):
        notes[0] += f" Cost: these tokens at the models' prices of {', '.join(dates)}."
    if brief:
        return notes[: len(dates[:1])]
    for section in sections(board):
        notes += [_front_sentence(board, section, front) for front in section.fronts()]
    return notes


def _front_sentence(board: Board, section: BoardSection, front: Front) -> str:
    best = [point.title for point in sorted(front.points, key=lambda point: point.spent) if front.is_best(point)]
    where = f", {' under '.join(section.head)}" if len(sections(board)) > 1 else ""
    return f"Pareto front of {front.column.metric} against {front.axis}{where}: {', '.join(best)}."


def board_tables(board: Board, *, brief: bool = False) -> list[Table]:
    """A table of metrics for each benchmark and protocol, and one of how steps ended, with the board's notes.

    ``brief``: a command in place of what each metric is over, and no words on Pareto fronts, which the files have, nor on what
    the tables mark.
    """
    tables = [_metrics(board, section) for section in sections(board)]
    ended = _ends(board)
    said = (note for note in ended.notes if not (brief and note in board.marked))
    notes = (*metric_notes(board, brief=brief), rank_note(board), *spending_notes(board, brief=brief), *said)
    return [*tables, replace(ended, notes=notes)]


def _metrics(board: Board, section: BoardSection, *, ranks: bool = True) -> Table:
    """The rows that have a metric of the section, and what they spend: the runs', then the published ones.

    With ``ranks`` also with the n of each number, and a run's missing steps next to its name.
    """
    titles = [board.columns[place].heading for place in section.places]
    titles += [section.tokens, *([section.cost] if section.cost else [])]
    rows: list[Row] = []
    for row in (board.rows[number] for number in section.rows):
        cells = [row.cells[place] for place in section.places]
        missing = max(cell.measured.missing for cell in cells if cell is not None) if ranks else 0
        name = row.name + (f" ({missing:,} missing)" if missing else "")
        rows.append((name, row.mode, *(_number(cell, ranks=ranks) for cell in cells), *_spent(section, row)))
    published: list[Row] = [
        (
            f"{row.model} ({row.source})",
            row.mode,
            *(_published(row.values[place]) for place in section.places),
            *(None for _ in titles[len(section.places) :]),
        )
        for row in board.references
        if any(row.values[place] is not None for place in section.places)
    ]
    heads = (*_KEYS, *map(Column, titles))
    title = " under ".join(section.head)
    every = (*rows, *([(), *published] if published else []))
    unknown = {len(heads) - 1} if all(row[-1] == NOT_REPORTED for row in rows) else set()
    modes = {row[1] for row in every if row}
    same = {1} if len(modes) == 1 else set()
    kept = [place for place in range(len(heads)) if place not in unknown | same]
    return Table(
        title + (f", {modes.pop()}" if same else ""),
        tuple(heads[place] for place in kept),
        tuple(tuple(row[place] for place in kept) if row else () for row in every),
        name=f"leaderboard {title}",
        keys=2 - len(same),
        turns=True,
    )


def _spent(section: BoardSection, row: BoardRow) -> list[str | Number]:
    """Tokens and cost of a row, the latter only in a section that has costs."""
    spent = section.spending(row)
    tokens = NOT_REPORTED if spent is None else bare(spent.tokens, ",.0f")
    return [tokens, *([_cost(spent)] if section.cost else [])]


def _cost(spent: Spending | None) -> str | Number:
    if spent is None:
        return NOT_REPORTED
    if spent.cost is None or spent.currency is None:
        return NO_PRICE
    return Number(Measured(spent.cost, unit=spent.currency), f",.{digits(spent.cost)}f")


def _number(cell: Cell | None, *, ranks: bool) -> Number | None:
    if cell is None:
        return None
    rank = f"#{cell.rank}" if ranks and cell.rank is not None and cell.measured.value is not None else ""
    measured = replace(cell.measured, missing=0) if ranks else cell.measured
    return Number(measured, unit=False, show_n=ranks, mark=rank, best=cell.rank == 1)


def _published(value: tuple[float, int] | None) -> Number | None:
    return None if value is None else bare(value[0], f".{value[1]}f")


def _ends(board: Board) -> Table:
    """How the steps of each run ended, once for each protocol, and the notes on the whole board.

    Mode, benchmark and protocol have a column only if they differ between rows, and an end only if a step of a run had it.
    """
    ended = _ended(board)
    names = ("model", "mode", "benchmark", "protocol")
    values = list(zip(*((row.name, row.mode, column.benchmark, column.protocol) for row, column, _ in ended), strict=True))
    keys = [place for place in range(len(names)) if not place or len(set(values[place])) > 1]
    if len(set(zip(*values[2:], strict=True))) == len(set(values[2])) > 1:
        keys = [key for key in keys if key != 3]  # each benchmark has one protocol, which the titles above say
    ends = [end for end in ENDS if any(cell.ends[end] for _, _, cell in ended)]
    covered = any(cell.coverage is not None for _, _, cell in ended)
    rows: tuple[Row, ...] = tuple(
        (
            *(values[key][place] for key in keys),
            *([_coverage(cell.coverage)] if covered else []),
            *(cell.ends[end] for end in ends),
        )
        for place, (_, _, cell) in enumerate(ended)
    )
    heads = (
        *(names[key] for key in keys),
        *["coverage (%)"] * covered,
        *(_SHORT.get(end) or end.replace("_", " ") for end in ends),
    )
    notes = (*(f"next to published numbers: {reproduction}" for reproduction in board.reproductions), *board.notes)
    several = any(cell.measured.spread is not None for row in board.rows for cell in row.cells if cell is not None)
    title = "How steps ended" + ", counts of all repeats" * several
    return Table(title, columns(*heads, keys=len(keys)), rows, notes, keys=len(keys), turns=True)


def _coverage(value: float | None) -> Number:
    low = value is not None and value < COVERAGE_NEEDED
    return replace(share(value, unit=False), mark=f"(< {100 * COVERAGE_NEEDED:.0f})" * low)


def comma_separated(board: Board) -> str:
    """One line for each metric of each run, and for each published one, which has only a value.

    Tokens are means per step, and ``cost_1000`` is the cost of 1,000 steps in ``currency``; both are empty if not known.
    A name that a spreadsheet would run as a formula begins with an apostrophe here; JSON has it as it is.
    """
    names = "model mode thinking scaffold benchmark steps selection overlay protocol metric value low high spread repeats n "
    names += "missing unit upper dropped_as_wrong rank coverage "
    costs = ("prompt_tokens", "completion_tokens", f"cost_{COSTED_STEPS}", "currency", "as_of", "source")
    return csv_text(_records(board), [*names.split(), *ENDS, *costs])


def _records(board: Board) -> Iterator[dict[str, Any]]:
    for row in board.rows:
        for column, cell in zip(board.columns, row.cells, strict=True):
            if cell is not None:
                who = {name: getattr(row, name) for name in ("model", "mode", "thinking", "scaffold")}
                yield {**who, "source": cell.directory, **_heading(column), "selection": column.selection, **_cell_fields(cell)}
    for reference in board.references:
        for column, value in zip(board.columns, reference.values, strict=True):
            if value is not None:
                printed = {"model": reference.model, "mode": reference.mode, "value": value[0] / 100}
                yield {**_heading(column), "steps": "", **printed, "source": reference.source}


def as_json(board: Board) -> str:
    """All data of the board: sections, rows and notes, numbers unrounded."""
    reproductions = [
        {**vars(reproduction), "column": _heading(reproduction.column), "difference": reproduction.difference}
        for reproduction in board.reproductions
    ]
    fronts = [
        {
            **{name: getattr(front, name) for name in ("axis", "currency", "left_out")},
            "column": _heading(front.column),
            "points": [{**point._asdict(), "best": front.is_best(point)} for point in front.points],
        }
        for section in sections(board)
        for front in section.fronts()
    ]
    own = {name: value for name, value in vars(board).items() if name != "pairs"}  # `guieval compare` has these
    return json_text(own | {"reproductions": reproductions, "fronts": fronts})


def as_latex(board: Board, label: str | None = None, caption: str | None = None) -> str:
    """A table for each benchmark and protocol, the best of each column and mode in bold; the notes are comments above it.

    ``label`` is that of the first table, by default the benchmark's name; further ones are numbered. :class:`UsageError` for a
    ``caption`` of several.
    """
    notes = (*metric_notes(board), *spending_notes(board), *map(str, board.reproductions), *board.notes)
    made = []
    for place, section in enumerate(sections(board)):
        table = _metrics(board, section, ranks=False)
        named = tuple(replace(column, name=column.name.removesuffix(" (%)")) for column in table.columns)
        text = f"Results on {table.title}, shares in per cent. {_reading(board)}"
        table = replace(table, columns=named, notes=() if place else notes)
        made.append((table, text, board.columns[section.places[0]].benchmark))
    return several(made, label, caption, "this board has", "--protocol chooses one")


def _reading(board: Board) -> str:
    """How to read the numbers of a paper's table, in a sentence."""
    cells = [cell for row in board.rows for cell in row.cells if cell is not None]
    parts = ["below each metric is its 95 % interval over episodes"] * any(cell.measured.interval is not None for cell in cells)
    if any(cell.rank is not None for cell in cells):
        among = " of its mode" * (len({row.mode for row in board.rows}) > 1)
        parts.append(
            f"bold are the best run{among} and those that do not differ from it significantly (paired over episodes, Holm's "
            "correction, 0.05)"
        )
    sentence = "; ".join(parts) or "intervals are left out"
    return f"{sentence[0].upper()}{sentence[1:]}."


def html(board: Board) -> str:
    """One page without network requests: sortable by mouse and keyboard, light and dark; only its own script runs."""
    folder = Path(__file__).parent
    return whole_page(
        folder / "leaderboard.html.jinja",
        [STYLE, folder / "leaderboard.css"],
        [NODES, THEME, SORTING],
        tables=board_tables(board),
        fronts=[(section, front, drawing(front)) for section in sections(board) for front in section.fronts()],
        number=Number,
    )


def _heading(column: BoardColumn) -> dict[str, str]:
    return {name: getattr(column, name) for name in ("benchmark", "steps", "overlay", "protocol", "metric")}


def _ended(board: Board) -> list[tuple[BoardRow, BoardColumn, Cell]]:
    """The first cell of each run, steps and protocol: how steps ended is shown once."""
    first: dict[tuple[int, BoardColumn], tuple[BoardRow, BoardColumn, Cell]] = {}
    for place, row in enumerate(board.rows):
        for column, cell in zip(board.columns, row.cells, strict=True):
            if cell is not None and cell.ends:  # a mean over benchmarks has none
                first.setdefault((place, replace(column, metric="")), (row, column, cell))
    return list(first.values())


def _cell_fields(cell: Cell) -> dict[str, Any]:
    names = ("value", "low", "high", "spread", "n", "missing", "unit", "upper", "dropped_as_wrong")
    values = {name: getattr(cell.measured, name) for name in names} | {"rank": cell.rank, "coverage": cell.coverage}
    values["repeats"] = max(1, len(getattr(cell.measured, "repeats", ())))
    return values | {str(end): count for end, count in cell.ends.items()} | _spent_fields(cell.spending)


def _spent_fields(spent: Spending | None) -> dict[str, Any]:
    if spent is None:
        return {}
    names = ("prompt_tokens", "completion_tokens", "currency", "as_of")
    return {name: getattr(spent, name) for name in names} | {f"cost_{COSTED_STEPS}": spent.cost}

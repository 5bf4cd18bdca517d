"""A leaderboard as Markdown, CSV, LaTeX, JSON and one self-contained HTML page; every name from outside is escaped.

Percentages in what people read; fractions at full precision in CSV and JSON.
"""

from __future__ import annotations

import base64
import csv
import io
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import asdict
from hashlib import sha256
from itertools import groupby
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from guieval.errors import UsageError, nearest
from guieval.metrics.columns import ENDS
from guieval.reports.leaderboard import Board, BoardColumn, BoardRow, Cell
from guieval.reports.spreadsheet import defused
from guieval.steps import whole_text

Format: TypeAlias = Literal["md", "csv", "latex", "json", "html"]
FORMATS: tuple[Format, ...] = get_args(Format)
_ENDINGS: dict[str, Format] = {".md": "md", ".csv": "csv", ".tex": "latex", ".json": "json", ".html": "html"}
NOTHING = "-"


def format_named(name: str | None, out: Path | None) -> Format:
    """The format asked for, else the one that the file's ending says, else Markdown; :class:`UsageError` for any other."""
    for known in FORMATS:
        if name == known:
            return known
    if name is not None:
        raise UsageError(f"unknown format {name!r}{nearest(name, FORMATS)}; known: {', '.join(FORMATS)}")
    if out is None:
        return "md"
    if out.suffix not in _ENDINGS:
        raise UsageError(f"{str(out)!r} ends in none of {', '.join(_ENDINGS)}; --format says what to write")
    return _ENDINGS[out.suffix]


def written(board: Board, form: Format) -> str:
    """The board as text of that format."""
    writers: dict[Format, Callable[[Board], str]] = {
        "md": markdown,
        "csv": comma_separated,
        "latex": latex,
        "json": as_json,
        "html": html,
    }
    return writers[form](board)


def rank_note(board: Board) -> str:
    """How to read the figures: what bold, rank and brackets say, and the seed that draws them again."""
    return (
        "Rank 1 (bold): the best run of its mode and those next below it that do not differ from it significantly (paired "
        f"bootstrap over episodes, Holm's correction, 0.05); [..]: 95 % intervals over episodes; seed {board.seed}. "
        "Figures in %."
    )


def markdown(board: Board) -> str:
    """A table of figures, one of how steps ended, then notes; columns are benchmark, protocol and figure, one below another."""
    heads = ["model", "mode", *(f"{'<br>'.join(map(_md, _head(each)))}" for each in board.columns)]
    lines = [_md_row(heads), _md_row(["---", "---", *["---:"] * len(board.columns)])]
    for row in board.rows:
        cells = [_md_cell(cell) for cell in row.cells]
        lines.append(_md_row([_md(_named(row)), _md(row.mode), *cells]))
    for told in board.references:
        values = [NOTHING if each is None else f"{each[0]:.{each[1]}f}" for each in told.values]
        lines.append(_md_row([f"{_md(told.model)} *({_md(told.source)})*", _md(told.mode), *values]))
    lines += ["", rank_note(board), "", *_md_ends(board)]
    if board.reproductions:
        lines += ["", "Beside published figures:", "", *(f"- {_md(str(each))}" for each in board.reproductions)]
    if board.notes:
        lines += ["", "Notes:", "", *(f"- {_md(each)}" for each in board.notes)]
    return "\n".join(lines) + "\n"


def comma_separated(board: Board) -> str:
    """One line for each figure of each run, and for each published one, of which only the value is known.

    A name that a spreadsheet would run as a formula begins with an apostrophe here; JSON has it as it is.
    """
    names = [
        "model",
        "mode",
        "thinking",
        "benchmark",
        "steps",
        "selection",
        "overlay",
        "protocol",
        "figure",
        "value",
        "low",
        "high",
    ]
    names += ["n", "strict", "rank", "coverage", *ENDS, "source"]
    stream = io.StringIO(newline="")
    writer = csv.DictWriter(stream, names, restval="", lineterminator="\n")
    writer.writeheader()
    for row in board.rows:
        for column, cell in zip(board.columns, row.cells, strict=True):
            if cell is not None:
                who = {"model": row.model, "mode": row.mode, "thinking": row.thinking, "source": cell.directory}
                writer.writerow(defused({**who, **_column_fields(column), **_cell_fields(cell)}))
    for told in board.references:
        for column, value in zip(board.columns, told.values, strict=True):
            if value is not None:
                printed = {"model": told.model, "mode": told.mode, "value": value[0] / 100, "source": told.source}
                writer.writerow(defused({**_column_fields(column), "steps": "", "selection": "", **printed}))
    return whole_text(stream.getvalue())


def as_json(board: Board) -> str:
    """Everything the board holds."""
    columns = [{**column.heading._asdict(), **asdict(column)} for column in board.columns]
    for column in columns:
        del column["heading"]
    values = {
        "columns": columns,
        "rows": [asdict(row) for row in board.rows],
        "references": [asdict(row) for row in board.references],
        "reproductions": [
            {**asdict(each), "column": each.column.heading._asdict(), "difference": each.difference}
            for each in board.reproductions
        ],
        "notes": board.notes,
        "seed": board.seed,
    }
    return json.dumps(values, indent=2, ensure_ascii=True, allow_nan=False) + "\n"


def latex(board: Board) -> str:
    """A booktabs table, the best of each column and mode in bold; \\usepackage{booktabs} is all it needs."""
    width = len(board.columns)
    lines = [
        r"% needs \usepackage{booktabs}",
        r"\begin{table}",
        r"\centering",
        rf"\begin{{tabular}}{{ll{'r' * width}}}",
        r"\toprule",
    ]
    heads = [_head(column) for column in board.columns]
    for level in range(3):
        parts, rules, place = [], [], 3
        for _, same in groupby(heads, key=lambda head: head[: level + 1]):
            count, name = 0, ""
            for head in same:
                count, name = count + 1, head[level]
            parts.append(rf"\multicolumn{{{count}}}{{c}}{{{_tex(name)}}}" if level < 2 else _tex(name))
            rules.append(rf"\cmidrule(lr){{{place}-{place + count - 1}}}")
            place += count
        first = "model & mode" if level == 2 else " &"
        lines.append(f"{first} & {' & '.join(parts)} \\\\")
        if level < 2 and width > 1:
            lines.append(" ".join(rules))
    lines.append(r"\midrule")
    for row in board.rows:
        lines.append(f"{_tex(_named(row))} & {_tex(row.mode)} & {' & '.join(map(_tex_cell, row.cells))} \\\\")
    if board.references:
        lines.append(r"\midrule")
    for told in board.references:
        values = [NOTHING if each is None else f"{each[0]:.{each[1]}f}" for each in told.values]
        lines.append(f"{_tex(told.model)} ({_tex(told.source)}) & {_tex(told.mode)} & {' & '.join(values)} \\\\")
    below = [*map(str, board.reproductions), *board.notes]
    caption = " ".join([rank_note(board), *(f"{note}." for note in below)])
    lines += [r"\bottomrule", r"\end{tabular}", rf"\caption{{{_tex(caption)}}}", r"\end{table}"]
    if any(mark > _LATIN for mark in "".join(lines)):
        lines.insert(
            1, "% holds characters that pdfLaTeX has no font for: compile with LuaLaTeX or XeLaTeX and a font that does"
        )
    return "\n".join(lines) + "\n"


def html(board: Board) -> str:
    """One page without any request: sortable by mouse and keyboard, light and dark; nothing runs in it but its own script.

    The policy in its head allows exactly the page's style and script, by their hashes, so a name that held markup could do
    nothing even if it were not escaped.
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    folder = Path(__file__).parent / "templates"
    environment = Environment(
        loader=FileSystemLoader(folder), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    # The two come as they are and hashed, for the policy allows what has that hash.
    style, script = ((folder / name).read_text(encoding="utf-8") for name in ("leaderboard.css", "leaderboard.js"))
    ends = [
        (row, column, cell)
        for row in board.rows
        for column, cell in zip(board.columns, row.cells, strict=True)
        if cell is not None and _first_of_protocol(board, row, column)
    ]
    text = environment.get_template("leaderboard.html.jinja").render(
        board=board,
        heads=[_head(column) for column in board.columns],
        named=_named,
        percent=_percent,
        interval=_interval,
        ends=ends,
        end_names=ENDS,
        rank_note=rank_note(board),
        style=style,
        script=script,
        style_hash=_hash(style),
        script_hash=_hash(script),
    )
    return whole_text(text)


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(sha256(text.encode()).digest()).decode()}"


def _head(column: BoardColumn) -> tuple[str, str, str]:
    heading = column.heading
    over = f"{column.step_count:,} steps"
    if column.selection:
        over = f"{column.selection}: {over}"
    return f"{heading.benchmark} ({over})", heading.protocol, heading.figure


def _named(row: BoardRow) -> str:
    thinking = {True: " thinking", False: " not thinking", None: ""}[row.thinking]
    return f"{row.model}{thinking}" + (f" ({row.note})" if row.note else "")


def _percent(value: float | None) -> str:
    return NOTHING if value is None else f"{100 * value:.2f}"


def _interval(cell: Cell) -> str:
    if cell.interval is None:
        return ""
    return f"[{100 * cell.interval.low:.1f}, {100 * cell.interval.high:.1f}]"


def _first_of_protocol(board: Board, row: BoardRow, column: BoardColumn) -> bool:
    """Whether the column is the first of the row's that is under its protocol on its steps: how steps end is told once."""
    same = (
        each.heading
        for each, cell in zip(board.columns, row.cells, strict=True)
        if cell is not None and each.heading[:4] == column.heading[:4]
    )
    return next(same) == column.heading


_MD = {"&": "&amp;", "<": "&lt;", ">": "&gt;", **{mark: f"\\{mark}" for mark in "\\`*_{}[]|~$"}}


def _md(text: str) -> str:
    """Text that Markdown shows as it is, within a table cell too."""
    flat = " ".join(whole_text(text).split())
    return "".join(_MD.get(mark, mark) for mark in flat)


def _md_row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _md_cell(cell: Cell | None) -> str:
    if cell is None or cell.value is None:
        return NOTHING
    value = f"**{_percent(cell.value)}**" if cell.rank == 1 else _percent(cell.value)
    rank = "" if cell.rank is None else f" #{cell.rank}"
    return f"{value} {_interval(cell).replace('[', chr(92) + '[')}".rstrip() + rank


def _md_ends(board: Board) -> list[str]:
    names = ["coverage", *(end.replace("_", " ") for end in ENDS)]
    lines = [_md_row(["model", "mode", "benchmark", "protocol", *names]), _md_row([*["---"] * 4, *["---:"] * len(names)])]
    for row in board.rows:
        for column, cell in zip(board.columns, row.cells, strict=True):
            if cell is not None and _first_of_protocol(board, row, column):
                who = [_named(row), row.mode, column.heading.benchmark, column.heading.protocol]
                counts = [_percent(cell.coverage), *(f"{cell.ends[end]:,}" for end in ENDS)]
                lines.append(_md_row([*map(_md, who), *counts]))
    return lines


def _column_fields(column: BoardColumn) -> dict[str, Any]:
    return {**column.heading._asdict(), "selection": column.selection}


def _cell_fields(cell: Cell) -> dict[str, Any]:
    ends = {} if cell.interval is None else {"low": cell.interval.low, "high": cell.interval.high}
    return {"value": cell.value, "n": cell.n, "strict": cell.strict, "rank": cell.rank, "coverage": cell.coverage, **ends} | {
        str(end): count for end, count in cell.ends.items()
    }


_TEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "`": r"\textasciigrave{}",
    **{mark: f"\\{mark}" for mark in "{}$&#_%"},
}


_LATIN = "\u024f"
"""The last letter that LaTeX sets without a font of its own."""


def _tex(text: str) -> str:
    """Text that LaTeX sets as it is."""
    flat = " ".join(whole_text(text).split())
    plain = "".join(_TEX.get(mark, mark) for mark in flat if mark.isprintable())
    return re.sub("(?<=[-'])(?=[-'])", "{}", plain)  # two hyphens would be set as a dash, two apostrophes as a quotation mark


def _tex_cell(cell: Cell | None) -> str:
    if cell is None or cell.value is None:
        return NOTHING
    value = rf"\textbf{{{_percent(cell.value)}}}" if cell.rank == 1 else _percent(cell.value)
    # The braces keep \\ of the row before from taking the bracket for an option.
    return f"{value} {{\\scriptsize {_interval(cell)}}}" if cell.interval is not None else value

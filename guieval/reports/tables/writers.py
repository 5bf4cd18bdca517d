"""Tables as Markdown, CSV, JSON, LaTeX and HTML, and HTML pages from templates; every name from outside is escaped."""

from __future__ import annotations

import html
import io
import json
import math
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from guieval.errors import harmless
from guieval.metrics.measured import Measured
from guieval.reports.tables.records import write_records
from guieval.reports.tables.table import Cell, Column, Number, Row, Table, text
from guieval.steps import whole_text

_MD = {"&": "&amp;", "<": "&lt;", ">": "&gt;", **{mark: f"\\{mark}" for mark in "\\`*_{}[]|~$"}}
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
_HEAD_WIDTH = 10
"""Characters of a line of a heading in LaTeX, as wide as an interval in small print."""
_TEXT_LIMIT = 4000
"""Characters of a text that a notebook shows."""
_NARROW = 6
"""The most columns of a LaTeX table that fit one column of a page with two."""


def markdown(tables: Sequence[Table]) -> str:
    """Tables of GitHub's Markdown, each under a heading, with its notes as a list."""
    return "\n".join("\n".join(_markdown(table)) for table in tables)


def _markdown(table: Table) -> Iterator[str]:
    if table.title:
        yield from (f"### {md(table.title)}", "")
    yield _md_row("<br>".join(map(md, column.name.split("\n"))) for column in table.columns)
    yield _md_row("---:" if column.right else "---" for column in table.columns)
    for row in table.filled:
        yield _md_row(map(_md_cell, row))
    yield ""
    if table.notes:
        yield from (*(f"- {md(note)}" for note in table.notes), "")


def md(value: str) -> str:
    """Text with Markdown's special characters escaped, also for table cells."""
    return "".join(_MD.get(mark, mark) for mark in harmless(" ".join(whole_text(value).split())))


def _md_cell(cell: Cell) -> str:
    if isinstance(cell, Number) and cell.best:
        return md(text(cell)).replace(md(cell.shown), f"**{md(cell.shown)}**", 1)
    return md(text(cell))


def _md_row(cells: Any) -> str:
    return f"| {' | '.join(cells)} |"


def comma_separated(tables: Sequence[Table]) -> str:
    """One line for each cell: table, title, row, column, value, and low, high, n, missing and unit if the value has them.

    A name that a spreadsheet would run as a formula begins with an apostrophe here.
    """
    out = io.StringIO(newline="")
    names = ("table", "title", "row", "column", "value", "low", "high", "n", "missing", "unit")
    write_records(out, _records(tables), names, as_csv=True)
    return whole_text(out.getvalue())


def _records(tables: Sequence[Table]) -> Iterator[dict[str, Any]]:
    for table in tables:
        for row in table.filled:
            name = ", ".join(text(cell).strip() for cell in row[: table.keys])
            for column, cell in zip(table.columns[table.keys :], row[table.keys :], strict=True):
                values = {"value": plain(cell)}
                if isinstance(cell, Number):
                    values = {name: plain(getattr(cell.of, name)) for name in ("value", "low", "high", "n", "missing", "unit")}
                yield {"table": table.name, "title": table.title, "row": name, "column": column.flat, **values}


def json_text(value: Any) -> str:
    """The value as JSON of standard form, ending in a newline."""
    return json.dumps(plain(value), indent=2, ensure_ascii=True, allow_nan=False) + "\n"


def plain(value: Any) -> Any:
    """Dictionaries, lists, texts, numbers and ``None``; a number without a finite value is ``None``."""
    if isinstance(value, Number):
        return plain(value.of) if value.of.n or value.of.interval is not None else plain(value.of.value)
    if isinstance(value, Measured):
        always = ("value", "n", "missing", "unit")
        held = {field.name: getattr(value, field.name) for field in fields(value)} | {"spread": value.spread}
        return {name: plain(each) for name, each in held.items() if name in always or each is not None}
    if isinstance(value, Table):
        return {
            "name": value.name,
            "title": value.title,
            "header": [column.flat for column in value.columns],
            "rows": [[plain(cell) for cell in row] for row in value.filled],
            "notes": list(value.notes),
        }
    if isinstance(value, BaseModel):
        return plain(value.model_dump(mode="python"))
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return plain(value._asdict())
    if isinstance(value, Sequence | Set) and not isinstance(value, str):
        return [plain(item) for item in value]
    if hasattr(value, "tolist"):  # numpy's
        return plain(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return str(value) if isinstance(value, Path) else value


def latex(table: Table, *, caption: str) -> str:
    """A booktabs table with its label; the notes are below it in small print. It needs ``\\usepackage{booktabs}``.

    Long headings are broken into lines, and what a cell has besides its number (its interval) is below it, so that six metrics
    fit the width of a page; a table of more than :data:`_NARROW` columns takes both columns of a page with two.
    """
    places = "".join("r" if column.right else "l" for column in table.columns)
    environment = "table" if len(table.columns) <= _NARROW else "table*"
    name = re.sub("[^a-z0-9]+", "-", (table.name or table.title).lower()).strip("-")
    lines = [
        r"% needs \usepackage{booktabs}",
        rf"\begin{{{environment}}}",
        r"\centering",
        rf"\caption{{{tex(caption)}}}",
        rf"\label{{tab:{name}}}",
        r"\footnotesize\setlength{\tabcolsep}{3pt}",
        rf"\begin{{tabular}}{{{places}}}",
        r"\toprule",
        " & ".join(map(_tex_head, table.columns)) + r" \\",
        r"\midrule",
    ]
    for row in table.rows:
        lines += _tex_row(row) if row else [r"\midrule"]
    lines += [r"\bottomrule", r"\end{tabular}"]
    if table.notes:
        lines += [r"\par\smallskip", r"\begin{minipage}{\linewidth}\footnotesize"]
        lines += [f"{tex(note)}{'' if note.endswith('.') else '.'}" for note in table.notes]
        lines.append(r"\end{minipage}")
    lines.append(rf"\end{{{environment}}}")
    if any(mark > _LATIN for mark in "".join(lines)):
        lines.insert(1, "% has characters that pdfLaTeX has no font for: compile with LuaLaTeX or XeLaTeX and a font that does")
    return "\n".join(lines) + "\n"


def _tex_head(column: Column) -> str:
    lines = textwrap.wrap(column.flat, _HEAD_WIDTH, break_long_words=False)
    head = r" \\ ".join(map(_tex_text, lines))
    return rf"\shortstack[{'r' if column.right else 'l'}]{{{head}}}" if len(lines) > 1 else head


def _tex_row(row: Row) -> list[str]:
    values = " & ".join(map(_tex_cell, row)) + r" \\"
    below = [" ".join(filter(None, (cell.marks, cell.ends))) if isinstance(cell, Number) else "" for cell in row]
    if not any(below):
        return [values]
    small = (rf"{{\tiny {tex(each)}}}" if each else "" for each in below)
    return [values, " & ".join(small) + r" \\ \addlinespace"]


def tex(value: str) -> str:
    """Text with LaTeX's special characters escaped."""
    flat = " ".join(whole_text(value).split())
    escaped = "".join(_TEX.get(mark, mark) for mark in flat if mark.isprintable())
    return re.sub("(?<=[-'])(?=[-'])", "{}", escaped)  # two hyphens would be set as a dash, two apostrophes as a quotation mark


def _tex_text(value: str) -> str:
    """Text at the begin of a line, where a bracket or an asterisk would be an option of the line break before it."""
    return ("{}" if value.startswith(("[", "*")) else "") + tex(value)


def _tex_cell(cell: Cell) -> str:
    if not isinstance(cell, Number):
        return _tex_text(text(cell))
    return rf"\textbf{{{tex(cell.shown)}}}" if cell.best and cell.of.value is not None else tex(cell.shown)


def escaped(text: object) -> str:
    """Text that a page shows as it is: it has no markup and does not turn the text around it."""
    shown = str(text)
    cut = f"{shown[:_TEXT_LIMIT]} [...]" if len(shown) > _TEXT_LIMIT else shown
    return f"<bdi>{html.escape(harmless(cut))}</bdi>"


def html_table(table: Table) -> str:
    """A table as HTML; every name is escaped."""
    heads = "".join(f'<th style="white-space:pre-line">{escaped(column.name)}</th>' for column in table.columns)
    rows = "".join(
        "<tr>"
        + "".join(
            f'<td style="text-align:{"right" if column.right else "left"};white-space:pre">{escaped(text(cell))}</td>'
            for column, cell in zip(table.columns, row, strict=True)
        )
        + "</tr>"
        for row in table.filled
    )
    notes = "".join(f"<p>{escaped(note)}</p>" for note in table.notes)
    return f"<h4>{escaped(table.title)}</h4><table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>{notes}"


def page(template: Path, **values: Any) -> str:
    """The page that a template makes of some values."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(template.parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return harmless(whole_text(environment.get_template(template.name).render(**values)))

"""Tables as Markdown, CSV, JSON, LaTeX and HTML, and HTML pages from templates; every name from outside is escaped."""

from __future__ import annotations

import io
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import fields, is_dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from guieval.data.display.notebook import escaped
from guieval.errors import harmless
from guieval.reports.tables.records import write_records
from guieval.reports.tables.table import Cell, Column, Number, Table, text
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


def markdown(tables: Sequence[Table]) -> str:
    """Tables of GitHub's Markdown, each under a heading, with its notes as a list."""
    return "\n".join("\n".join(_markdown(table)) for table in tables)


def _markdown(table: Table) -> Iterator[str]:
    if table.title:
        yield from (f"### {md(table.title)}", "")
    yield _md_row("<br>".join(map(md, (*column.above, *column.name.split("\n")))) for column in table.columns)
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
        return md(text(cell)).replace(cell.shown, f"**{cell.shown}**", 1)
    return md(text(cell))


def _md_row(cells: Any) -> str:
    return f"| {' | '.join(cells)} |"


def comma_separated(tables: Sequence[Table]) -> str:
    """One line for each cell: table, title, row, column, value, and low, high and n if the value has them.

    A name that a spreadsheet would run as a formula begins with an apostrophe here.
    """
    out = io.StringIO(newline="")
    write_records(out, _records(tables), ("table", "title", "row", "column", "value", "low", "high", "n"), as_csv=True)
    return whole_text(out.getvalue())


def _records(tables: Sequence[Table]) -> Iterator[dict[str, Any]]:
    for table in tables:
        for row in table.filled:
            name = ", ".join(text(cell).strip() for cell in row[: table.keys])
            for column, cell in zip(table.columns[table.keys :], row[table.keys :], strict=True):
                value = plain(cell)
                values = value if isinstance(value, dict) else {"value": value}
                yield {"table": table.name, "title": table.title, "row": name, "column": column.flat, **values}


def json_text(value: Any) -> str:
    """The value as JSON of standard form, ending in a newline."""
    return json.dumps(plain(value), indent=2, ensure_ascii=True, allow_nan=False) + "\n"


def plain(value: Any) -> Any:
    """Dictionaries, lists, texts, numbers and ``None``; a number without a finite value is ``None``."""
    if isinstance(value, Number):
        n = {} if value.n is None else {"n": value.n}
        ends = {} if value.interval is None else {"low": plain(value.interval.low), "high": plain(value.interval.high)}
        return {"value": plain(value.value), **ends, **n} if ends or n else plain(value.value)
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
    """A booktabs table with its label; the notes are below it in small print. It needs ``\\usepackage{booktabs}``."""
    places = "".join("r" if column.right else "l" for column in table.columns)
    lines = [
        r"% needs \usepackage{booktabs}",
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{tex(caption)}}}",
        rf"\label{{tab:{re.sub('[^a-z0-9]+', '-', (table.name or table.title).lower()).strip('-')}}}",
        rf"\begin{{tabular}}{{{places}}}",
        r"\toprule",
        *_tex_heads(table.columns),
        r"\midrule",
    ]
    for row in table.rows:
        lines.append(" & ".join(map(_tex_cell, row)) + r" \\" if row else r"\midrule")
    lines += [r"\bottomrule", r"\end{tabular}"]
    if table.notes:
        lines += [r"\par\smallskip", r"\begin{minipage}{\linewidth}\footnotesize"]
        lines += [f"{tex(note)}{'' if note.endswith('.') else '.'}" for note in table.notes]
        lines.append(r"\end{minipage}")
    lines.append(r"\end{table}")
    if any(mark > _LATIN for mark in "".join(lines)):
        lines.insert(1, "% has characters that pdfLaTeX has no font for: compile with LuaLaTeX or XeLaTeX and a font that does")
    return "\n".join(lines) + "\n"


def _tex_heads(columns: Sequence[Column]) -> Iterator[str]:
    """A line for each level of shared headings, with a rule below each, then the columns' own."""
    for level in range(max(len(column.above) for column in columns)):
        parts, rules, place = [], [], 1
        for above, same in groupby(columns, key=lambda column: column.above[: level + 1]):
            count = len(list(same))
            if above:
                parts.append(rf"\multicolumn{{{count}}}{{c}}{{{tex(above[-1])}}}")
                rules.append(rf"\cmidrule(lr){{{place}-{place + count - 1}}}")
            else:
                parts += [""] * count
            place += count
        yield " & ".join(parts) + r" \\"
        yield " ".join(rules)
    yield " & ".join(tex(column.name) for column in columns) + r" \\"


def tex(value: str) -> str:
    """Text with LaTeX's special characters escaped."""
    flat = " ".join(whole_text(value).split())
    escaped = "".join(_TEX.get(mark, mark) for mark in flat if mark.isprintable())
    return re.sub("(?<=[-'])(?=[-'])", "{}", escaped)  # two hyphens would be set as a dash, two apostrophes as a quotation mark


def _tex_cell(cell: Cell) -> str:
    if not isinstance(cell, Number) or cell.value is None:
        return tex(text(cell))
    value = rf"\textbf{{{tex(cell.shown)}}}" if cell.best else tex(cell.shown)
    value += f" {tex(cell.mark)}" if cell.mark else ""
    # The braces keep \\ of the row before from taking the bracket for an option.
    return f"{value} {{\\scriptsize {tex(cell.ends)}}}" if cell.ends else value


def html(table: Table) -> str:
    """A table for a notebook; every name is escaped."""
    heads = "".join(
        f'<th style="white-space:pre-line">{escaped(" ".join((*column.above, column.name)))}</th>' for column in table.columns
    )
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

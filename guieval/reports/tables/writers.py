"""Tables as Markdown, CSV, JSON and HTML; every name from outside is escaped."""

from __future__ import annotations

import html
import json
import math
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from pydantic import BaseModel

from guieval.errors import UsageError, harmless, known_name, whole_text
from guieval.metrics.measured import Measured
from guieval.reports.tables.records import csv_text
from guieval.reports.tables.table import Cell, Number, Table, text

_MD = {"&": "&amp;", "<": "&lt;", ">": "&gt;", **{mark: f"\\{mark}" for mark in "\\`*_{}[]|~$"}}
Format: TypeAlias = Literal["text", "md", "csv", "latex", "json", "html"]
_ENDINGS: dict[str, Format] = {".txt": "text", ".md": "md", ".csv": "csv", ".tex": "latex", ".json": "json", ".html": "html"}
_TEXT_LIMIT = 4000
"""Characters of a text that a notebook shows."""


def format_named(name: str | None, out: Path | None, formats: Sequence[Format], default: Format = "md") -> Format:
    """The named one of these formats, else that of the file's ending, else the default; :class:`UsageError` for any other."""
    if name is not None:
        return known_name("format", name, formats)
    if out is None:
        return default
    endings = {ending: form for ending, form in _ENDINGS.items() if form in formats}
    if out.suffix not in endings:
        raise UsageError(f"{str(out)!r} must end in {', '.join(endings)}, unless --format names the format")
    return endings[out.suffix]


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
    return csv_text(_records(tables), ("table", "title", "row", "column", "value", "low", "high", "n", "missing", "unit"))


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

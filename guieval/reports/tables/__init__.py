"""Tables of figures as data, and their writers: terminal, Markdown, CSV, JSON, LaTeX and HTML.

A command builds :class:`Table` values and never lays out text itself. Figures are :class:`Number` cells, which keep their full
precision, interval and n for CSV and JSON and know how they are rounded for people.
"""

from guieval.reports.tables.table import (
    NOTHING,
    Cell,
    Column,
    Number,
    Row,
    Table,
    bracketed,
    columns,
    missing_mark,
    per_cent,
    side_by_side,
)
from guieval.reports.tables.terminal import PIPED_WIDTH, as_text, fold, rendered
from guieval.reports.tables.writers import comma_separated, html, json_text, latex, markdown, page, plain

__all__ = [
    "NOTHING",
    "PIPED_WIDTH",
    "Cell",
    "Column",
    "Number",
    "Row",
    "Table",
    "as_text",
    "bracketed",
    "columns",
    "comma_separated",
    "fold",
    "html",
    "json_text",
    "latex",
    "markdown",
    "missing_mark",
    "page",
    "per_cent",
    "plain",
    "rendered",
    "side_by_side",
]

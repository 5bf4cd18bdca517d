"""How commands print: tables and sentences as wide as the terminal, and plain values as JSON."""

from __future__ import annotations

import os
import sys
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, TextIO, TypeAlias

import typer

from guieval.errors import harmless

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from guieval.reports.tables.table import Table

FORMATS = ("text", "md", "csv", "json")
LEFT_OUT = "A wider terminal shows all, and so does --json."


_json_to: ContextVar[TextIO | None] = ContextVar("_json_to", default=None)
"""Standard output; everything but JSON goes to standard error."""


def _asked(json: bool) -> bool:
    _json_to.set(sys.stdout if json else None)
    if json:
        sys.stdout = sys.stderr  # what the program was started with is put back at its end, in main
    return json


JSON: TypeAlias = Annotated[
    bool,
    typer.Option("--json", callback=_asked, help="Print the metrics as JSON on standard output, all else on standard error."),
]
"""The option of every command that prints metrics: what it prints besides :func:`print_json` then goes to standard error."""


def known_width(*, err: bool = False) -> int | None:
    """The terminal's width, or the value of COLUMNS; ``None`` if the output goes to a file or another program."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isdecimal() and int(columns):
        return int(columns)
    if not (sys.stderr if err else sys.stdout).isatty():
        return None
    from rich.console import Console

    return Console().width


def show(*tables: Table | None, full: str = LEFT_OUT) -> None:
    """Print tables, a blank line between two."""
    from rich.console import Console

    from guieval.reports.tables.terminal import PIPED_WIDTH, rendered

    width = known_width() or PIPED_WIDTH
    console = Console(width=width)
    for table in filter(None, tables):
        for line in rendered(table, width, full):
            console.print(line, soft_wrap=True, highlight=False)


def present(form: str, out: Path | None, text: Callable[[], str], shown: Callable[[], None] | None = None) -> None:
    """End a command that makes one thing in several formats: name the file that has it, or print it.

    ``text`` is it in the format ``form``; ``shown`` prints it for the terminal in place of that, if the format is text.
    """
    if out is not None:
        echo(f"written:  {out}", err=_json_to.get() is not None)
    elif form == "text" and shown is not None:
        shown()
    else:
        print_text(text())


def write_tables(tables: Sequence[Table], form: str, out: Path | None = None) -> None:
    """Print tables in one of :data:`FORMATS`, or write them to a file and print its name."""
    from guieval.reports.tables.terminal import as_text
    from guieval.reports.tables.writers import comma_separated, json_text, markdown

    writers = {"text": as_text, "md": markdown, "csv": comma_separated, "json": lambda each: json_text({"tables": each})}
    text = partial(writers[form], tables)
    if out is not None:
        out.write_text(text(), encoding="utf-8")
    present(form, out, text, partial(show, *tables))


def echo(text: str = "", *, err: bool = False, nl: bool = True) -> None:
    """Print text as every command does: without what a terminal would obey, for much of it is data."""
    typer.echo(harmless(text), err=err, nl=nl)


def say(text: str = "", *, err: bool = False, indent: int = 2) -> None:
    """Print prose, each of its lines folded between words if the width is known, with further lines indented."""
    from guieval.reports.tables.terminal import fold

    width = known_width(err=err)
    for sentence in text.split("\n"):
        for line in [sentence] if width is None else fold(sentence, width, indent):
            echo(line, err=err)


def print_json(values: Any) -> None:
    """Print our values as plain ones: see :func:`guieval.reports.tables.writers.plain`."""
    from guieval.reports.tables.writers import json_text

    print_text(json_text(values))


def print_text(text: str) -> None:
    """Print what another program reads as it is."""
    typer.echo(text, nl=False, file=_json_to.get())

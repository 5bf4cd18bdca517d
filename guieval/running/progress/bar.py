"""How far a command is, on standard error: a bar that stays in place on a terminal, elsewhere a plain line now and then."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TypeAlias

from guieval.errors import harmless
from guieval.running.progress.view import clock, part_done

LINE_SECONDS = 10.0
"""Seconds between two plain lines."""

Update: TypeAlias = Callable[[int, int | None], None]
"""Called with the number that is done, and the number of all, ``None`` if it is not known."""


def is_live() -> bool:
    """Whether standard error is a terminal on which lines can be drawn over."""
    return sys.stderr.isatty() and os.environ.get("TERM") not in ("dumb", "unknown")


@contextmanager
def progress_bar(title: str, unit: str) -> Iterator[Update]:
    """Show how many ``unit``s (a word in the plural) are done."""
    with (_bar if is_live() else _lines)(title, unit) as update:
        yield update


@contextmanager
def _bar(title: str, unit: str) -> Iterator[Update]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
    from rich.table import Column

    name = TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=True, overflow="ellipsis"))
    state = TextColumn("{task.fields[state]}", markup=False, table_column=Column(no_wrap=True, min_width=16))
    with Progress(name, BarColumn(None), state, TimeRemainingColumn(), console=Console(stderr=True), expand=True) as bar:
        task = bar.add_task(harmless(title), total=None, state="")
        yield lambda done, total: bar.update(task, completed=done, total=total, state=_state(done, total, unit))


@contextmanager
def _lines(title: str, unit: str) -> Iterator[Update]:
    begun = shown = time.monotonic()
    state = printed = ""

    def show() -> None:
        nonlocal shown, printed
        shown, printed = time.monotonic(), state
        with suppress(OSError):  # a closed pipe
            print(harmless(f"progress: {title}: {state}, {clock(shown - begun)} elapsed"), file=sys.stderr, flush=True)

    def update(done: int, total: int | None) -> None:
        nonlocal state
        state = _state(done, total, unit)
        if time.monotonic() - shown >= LINE_SECONDS:
            show()

    yield update
    if state != printed:
        show()


def _state(done: int, total: int | None, unit: str) -> str:
    return f"{done:,} {unit}" if not total else f"{part_done(done, total)}, {done:,} of {total:,} {unit}"

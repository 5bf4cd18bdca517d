"""The display of a run in progress: on a terminal a picture that stays in place, elsewhere a plain line now and then.

Drawing is done in a thread of its own, so that it costs a step next to nothing and goes on while no step ends.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from guieval.errors import harmless
from guieval.running.progress.bar import is_live
from guieval.running.progress.display import RunDisplay
from guieval.running.progress.view import ProgressView, ProgressWatch, clock, part_done

if TYPE_CHECKING:
    from rich.console import RenderableType

    from guieval.engines import EndpointStats
    from guieval.running.costs import Tokens
    from guieval.running.progress.counts import RunProgress
    from guieval.steps import Verdict

REFRESH_SECONDS = 0.25
PLAIN_SECONDS = 30.0
MOST_ENDPOINTS = 8
_VERDICTS: tuple[tuple[Verdict, str, str], ...] = (
    ("right", "right", "green"),
    ("wrong", "wrong", "yellow"),
    ("unparseable", "unparseable", "magenta"),
    ("unsupported", "unsupported", "magenta"),
    ("infrastructure_failure", "failed", "red"),
)


def plain_line(view: ProgressView, *, over: bool = False) -> str:
    """A view as one line of text; ``over``: nothing more will happen."""
    run, load = view.progress, view.load
    parts = [
        f"{_part(run)}{run.done:,}/{run.total:,} {run.units}",
        f"{_rate(view.recent)} {run.units}/s (mean {_rate(view.mean)})",
        *([] if over else [f"{run.in_flight:,} in flight", _queue(view)]),
        view.exact_match,
        ", ".join(f"{label} {run.verdicts[name]:,}" for name, label, _ in _VERDICTS),
        *([f"tokens {view.tokens}"] if view.tokens else []),
        *([f"cost {view.cost}"] if view.cost else []),
        *([] if over else map(_endpoint, load.endpoints[:MOST_ENDPOINTS])),
        *([] if over or run.last_failure is None else [f"last failed at {': '.join(run.last_failure)[:200]}"]),
        f"{clock(view.elapsed)} elapsed",
        "stopped" if over and run.done < run.total else view.time_left,
    ]
    return f"progress: {view.title}: {'; '.join(parts)}"


def picture(view: ProgressView) -> RenderableType:
    """A view as rich draws it: a bar, and a few lines that fold if the terminal is narrow."""
    from rich.console import Group
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    run, load = view.progress, view.load
    rows = Table.grid(padding=(0, 2))
    rows.add_column(style="dim", no_wrap=True)
    rows.add_column(overflow="fold")

    def add(label: str, text: str, style: str = "") -> None:
        rows.add_row(label, Text(harmless(text), style))  # a plain string would be searched for markup

    add(run.units, f"{_part(run)}{run.done:,} of {run.total:,}, {clock(view.elapsed)} elapsed, {view.time_left}")
    add("rate", f"{_rate(view.recent)} {run.units}/s, mean {_rate(view.mean)}")
    add("queue", f"{run.in_flight:,} {run.units} in flight, {_queue(view)}")
    verdicts = Text()
    for name, label, style in _VERDICTS:
        count = run.verdicts[name]
        verdicts.append(f"{label} {count:,}", style if count else "dim").append(", ")
    rows.add_row("verdicts", verdicts.append(view.exact_match, "bold"))
    if view.tokens:
        add("tokens", view.tokens + (f", {view.cost}" if view.cost else ""))
    for number, each in enumerate(load.endpoints[:MOST_ENDPOINTS]):
        add("" if number else "servers", _endpoint(each), "yellow" if each.resting else "")
    if len(load.endpoints) > MOST_ENDPOINTS:
        add("", f"and {len(load.endpoints) - MOST_ENDPOINTS:,} more")
    if run.last_failure is not None:
        failure = ": ".join(run.last_failure)
        rows.add_row("last failed", Text(harmless(failure), "red", overflow="ellipsis", no_wrap=True))
    if run.halted is not None:
        add("ending", run.halted, "yellow")
    bar = Table.grid(expand=True)  # by itself a bar does not end its line
    bar.add_row(ProgressBar(total=max(run.total, 1), completed=run.done))
    return Group(Text(harmless(view.title), "bold"), bar, rows)


def _part(run: RunProgress) -> str:
    return f"{part_done(run.done, run.total)}, " if run.total else ""


def _queue(view: ProgressView) -> str:
    load = view.load
    if view.progress.unit == "task":
        return f"{load.ready + load.waiting:,} waiting"
    return f"episodes: {load.ready:,} ready, {load.waiting:,} waiting"


def _rate(value: float | None) -> str:
    return "-" if value is None else f"{value:,.1f}"


def _endpoint(stats: EndpointStats) -> str:
    mean = "" if stats.seconds_mean is None else f", {stats.seconds_mean:.2f} s mean"
    resting = ", put aside" if stats.aside is not None else ", resting" if stats.resting else ""
    return f"{stats.name}: {stats.in_flight:,} in flight, {stats.answered:,} answered, {stats.failed:,} failed{mean}{resting}"


class Dashboard(RunDisplay):
    """Shows a run as it goes, on standard error. A context manager; :meth:`update` costs about a microsecond.

    ``quiet``: shows nothing at all. ``cost`` tells what tokens cost, in words. Whatever happens inside, the terminal is left
    as it was, with one line that says how far the run came.
    """

    def __init__(self, title: str, *, quiet: bool, cost: Callable[[Tokens], str | None] = lambda tokens: None) -> None:
        self._title = title
        self._quiet = quiet
        self._watch = ProgressWatch(title, cost)
        self._progress: RunProgress | None = None
        self._warned = 0
        self._live: Any = None
        self._width = 0
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Dashboard:
        if self._quiet:
            return self
        if is_live():
            from rich.console import Console
            from rich.live import Live

            self._live = Live(console=Console(stderr=True), auto_refresh=False, transient=True)
            self._live.start()
        self._thread = threading.Thread(target=self._keep_showing, name="dashboard", daemon=True)
        self._thread.start()
        return self

    def update(self, progress: RunProgress) -> None:
        """Show the run's progress, at the next occasion; new warnings at once."""
        if self._progress is None:  # rates count from here on, not from when they are first shown
            self._watch.look(progress, time.monotonic())
        self._progress = progress
        if len(progress.warnings) > self._warned:
            new, self._warned = progress.warnings[self._warned :], len(progress.warnings)
            for warning in new:
                self.warn(warning)

    def warn(self, text: str) -> None:
        """Print a warning while there is time to stop the run; the result is to repeat it."""
        self._print(f"warning:  {self._title}: {text}")

    def __exit__(self, *exception: object) -> None:
        self._over.set()
        if self._thread is not None:
            self._thread.join()
        try:
            if self._live is not None:
                self._live.stop()
        except OSError:
            self._quiet = True
        if self._progress is not None:
            self._print(plain_line(self._watch.look(self._progress, time.monotonic()), over=True))

    def _keep_showing(self) -> None:
        while not self._over.wait(PLAIN_SECONDS if self._live is None else REFRESH_SECONDS) and not self._quiet:
            if self._progress is None:
                continue
            view = self._watch.look(self._progress, time.monotonic())
            if self._live is None:
                self._print(plain_line(view))
                continue
            try:
                self._draw(view)
            except OSError:  # nobody can see it any more: a closed terminal
                self._quiet = True

    def _draw(self, view: ProgressView) -> None:
        width = self._live.console.width
        if width != self._width:
            if self._width:  # the terminal folded the lines that are to be drawn over, so where they begin is not known
                self._live.console.clear()
            self._width = width
        self._live.update(picture(view), refresh=True)

    def _print(self, line: str) -> None:
        if self._quiet:
            return
        line = harmless(line)
        try:
            if self._live is not None:
                self._live.console.print(line, markup=False, highlight=False)
            else:
                print(line, file=sys.stderr, flush=True)
        except OSError:  # a closed pipe
            self._quiet = True

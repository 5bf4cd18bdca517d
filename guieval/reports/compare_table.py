"""A comparison of two runs for the terminal. Differences are in percentage points, the second run minus the first."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from guieval.metrics.columns import RunColumns
from guieval.reports.comparison import Comparison, FigureDifference

if TYPE_CHECKING:
    from rich.console import Console

NOTHING = "-"
_NAME_WIDTH = 24
"""What a figure's name has at least, however narrow the terminal."""
LEVEL = 0.05
"""A difference whose p-value is below this is marked with a star."""


def print_comparison(comparison: Comparison, console: Console | None = None) -> None:
    """Print who is compared, what speaks against it, the figures' differences, and McNemar's test of exact match."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = console or Console()
    for letter, run in (("A", comparison.first), ("B", comparison.second)):
        console.print(Text(f"{letter}: {_named(run)}"), soft_wrap=True)
    for line in comparison.unlike:
        console.print(Text(f"Warning: unlike runs, compared anyway: {line}", style="yellow"), soft_wrap=True)
    for line in comparison.notes:
        console.print(Text(f"note: {line}"), soft_wrap=True)
    rows = [_row(each) for each in comparison.figures]
    heads = ("% of n", "n", "A", "B", "B - A", "95 % interval", "p", "detectable")
    widths = [_NAME_WIDTH, *(max(map(len, column)) for column in list(zip(heads, *rows, strict=True))[1:])]
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1))
    for name, width in zip(heads, widths, strict=True):
        first = name == heads[0]
        table.add_column(name, justify="left" if first else "right", no_wrap=not first, overflow="fold", min_width=width)
    protocol = None
    for each, row in zip(comparison.figures, rows, strict=True):
        if each.protocol != protocol:
            table.add_row(Text(each.protocol, style="bold"))
            protocol = each.protocol
        table.add_row(*map(Text, row))
    # Wider than a narrow terminal rather than cut: a number without its last digits is another number.
    needed = sum(widths) + 2 * len(widths) + 2
    if needed > console.width:
        table.width = needed
    console.print(table, crop=False)
    for line in footnotes(comparison):
        console.print(Text(line), soft_wrap=True)


def footnotes(comparison: Comparison) -> Iterator[str]:
    """What stands below the table: the steps that flipped, and how to read the columns."""
    for name, found in comparison.exact.items():
        discordant = found.only_first + found.only_second
        n = found.both + found.neither + discordant
        yield (
            f"{name}: of {n:,} steps both runs answered, {found.only_first:,} are exact in A alone, {found.only_second:,} in B "
            f"alone, {found.both:,} in both and {found.neither:,} in neither; McNemar's test ({found.method}), which takes "
            f"steps for independent: p {'' if found.p_value < 0.001 else '= '}{p_value(found.p_value)}"
        )
    if any(each.shared for each in comparison.figures):
        yield "(shared): over the steps that both runs answered, figures of episodes over those that both did"
    yield (
        f"interval and p: paired bootstrap over whole episodes, seed {comparison.seed}; * p < 0.05, not adjusted for the "
        "number of figures"
    )
    yield "detectable: the true difference these steps would show 4 times out of 5"


def p_value(p: float | None) -> str:
    """A p-value as a reader wants it."""
    if p is None:
        return NOTHING
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def _named(run: RunColumns) -> str:
    return f"{run.model}, {run.benchmark}, {run.mode} ({len(run):,} steps of {len(run.episodes):,} episodes)"


def _row(each: FigureDifference) -> list[str]:
    found = each.difference
    between, p = NOTHING, p_value(found.p_value)
    if found.interval is not None:
        between = f"{100 * found.interval.low:+.2f} to {100 * found.interval.high:+.2f}"
    if found.p_value is not None and found.p_value < LEVEL:
        p += " *"
    sizes = dict.fromkeys(f"{value.n:,}" for value in (each.first, each.second))
    return [
        f"  {each.figure.name}" + (" (shared)" if each.shared else ""),
        " / ".join(sizes),
        _percent(each.first.value),
        _percent(each.second.value),
        NOTHING if found.value is None else f"{100 * found.value:+.2f}",
        between,
        p,
        _percent(each.smallest),
    ]


def _percent(value: float | None) -> str:
    return NOTHING if value is None else f"{100 * value:.2f}"

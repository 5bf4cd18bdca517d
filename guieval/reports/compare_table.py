"""A comparison of two runs as tables, sentences and plain values. Differences are the second run minus the first."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any

from guieval.metrics.columns import RunColumns
from guieval.reports.comparison import Comparison, FigureDifference
from guieval.reports.tables import NOTHING, Row, Table, columns, per_cent

LEVEL = 0.05
"""A difference whose p-value is below this is marked with a star."""
_HEADS = ("figure (%)", "n", "A", "B", "B - A", "95 % interval", "p", "detectable")


def compare_tables(comparison: Comparison) -> list[Table]:
    """The figures' differences, a table for each protocol."""
    heads = columns(*_HEADS, folds=_HEADS[:1], spare=("detectable", "n"))
    grouped = groupby(comparison.figures, key=lambda each: each.protocol)
    return [Table(f"Under {name}", heads, tuple(map(_row, found)), name=name) for name, found in grouped]


def headings(comparison: Comparison) -> Iterator[str]:
    """The two runs, the reasons against comparing them, and notes."""
    for letter, run in (("A", comparison.first), ("B", comparison.second)):
        yield f"{letter}: {run.model}, {run.benchmark}, {run.mode} ({len(run):,} steps of {len(run.episodes):,} episodes)"
    yield from (f"Warning: unlike runs, compared anyway: {line}" for line in comparison.unlike)
    yield from (f"note: {line}" for line in comparison.notes)


def footnotes(comparison: Comparison) -> Iterator[str]:
    """The lines below the tables: the steps that flipped, and how to read the columns."""
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


def compare_json(comparison: Comparison) -> dict[str, Any]:
    """The whole comparison; fractions in [0, 1]."""
    return {
        "runs": {letter: _named(run) for letter, run in (("A", comparison.first), ("B", comparison.second))},
        "unlike": comparison.unlike,
        "notes": comparison.notes,
        "figures": [
            {
                "protocol": each.protocol,
                "figure": each.figure.name,
                "meaning": each.figure.describe(),
                "A": each.first,
                "B": each.second,
                "difference": each.difference,
                "detectable": each.smallest,
                "shared": each.shared,
            }
            for each in comparison.figures
        ],
        "exact_match": comparison.exact,
        "seed": comparison.seed,
    }


def p_value(p: float | None) -> str:
    """A p-value with three digits."""
    if p is None:
        return NOTHING
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def _named(run: RunColumns) -> dict[str, Any]:
    return {
        "model": run.model,
        "benchmark": run.benchmark,
        "mode": run.mode,
        "steps": len(run),
        "episodes": len(run.episodes),
    }


def _row(each: FigureDifference) -> Row:
    found = each.difference
    between = NOTHING
    if found.interval is not None:
        between = f"{100 * found.interval.low:+.2f} to {100 * found.interval.high:+.2f}"
    star = " *" if found.p_value is not None and found.p_value < LEVEL else ""
    sizes = dict.fromkeys(f"{value.n:,}" for value in (each.first, each.second))
    return (
        each.figure.name + (" (shared)" if each.shared else ""),
        " / ".join(sizes),
        per_cent(each.first.value, unit=""),
        per_cent(each.second.value, unit=""),
        per_cent(found.value, unit="", signed=True),
        between,
        p_value(found.p_value) + star,
        per_cent(each.smallest, unit=""),
    )

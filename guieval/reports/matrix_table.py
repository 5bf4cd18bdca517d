"""One prediction under every protocol, as a table: a column for each protocol, its source's own figures as rows.

Below each figure stands its interval, and where a protocol drops steps, its figure with these counted as wrong when the two
differ. Then come coverage and how each planned step ended. Tables that are too wide are cut into several, by protocols, each
with only the figures that its protocols have.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from guieval.evaluation import Figure
from guieval.matrix import JudgedAnswers, Placed, agreeing, disputed
from guieval.metrics.columns import ENDS, NOT_RUN, UNSUPPORTED, RunColumns
from guieval.metrics.figures import FigureValue
from guieval.metrics.intervals import LEVEL, Interval
from guieval.reports.score_tables import cell_json, interval_json, interval_text, sample_json
from guieval.reports.wide_table import WideTable

if TYPE_CHECKING:
    from rich.console import RenderableType

NOTHING = "-"
"""Shown where a protocol's source has no such figure, or it has nothing to be computed from."""
SHOWN = 0.001
"""Differences above this, 0.1 points, between a figure and the same with dropped steps counted as wrong are shown."""


@dataclass(frozen=True)
class _Column:
    """One protocol's numbers."""

    placed: Placed

    @cached_property
    def figures(self) -> dict[str, tuple[Figure, FigureValue, Interval | None]]:
        return {figure.name: (figure, value, interval) for figure, value, interval in self.placed.figures}

    @cached_property
    def ends(self) -> dict[str, int]:
        counts = np.bincount(self.placed.judged.end, minlength=len(ENDS)).tolist()
        return dict(zip(ENDS, counts, strict=True))

    @cached_property
    def coverage(self) -> tuple[int, int]:
        """Answers in both action spaces, and all that were judged."""
        measured = self.placed.judged.measured
        return int((self.placed.columns.covered & measured).sum()), int(measured.sum())

    @property
    def head(self) -> str:
        return "\n".join(filter(None, (self.placed.protocol.name, self.placed.part.title)))


def matrix_table(placed: Sequence[Placed]) -> RenderableType:
    """The table of :func:`guieval.matrix.on_own_sets`' protocols, as wide as the console allows at a time."""
    return _tables([_Column(each) for each in placed])


def glance_table(columns: RunColumns, placed: Sequence[Placed]) -> RenderableType:
    """Every protocol in one row: type match and exact match on the same steps, and its source's leading figure on its own.

    The first two are over all steps of ``columns`` that the mode reaches, whatever was not judged counting as wrong, so that
    the rules alone make the difference.
    """
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), title="At a glance (%)", title_justify="left", title_style="bold")
    table.add_column("")
    for head in ("type match", "exact match", "its own first figure"):
        table.add_column(head, justify="right")
    for each in placed:
        judged = columns.judged[each.protocol.name]
        n = int(judged.reached.sum())
        shares = [
            f"{100 * int(match[judged.reached].sum()) / n:.2f}" if n else NOTHING
            for match in (judged.type_match, judged.exact_match)
        ]
        figure, value, _ = each.figures[0]
        own = f"{figure.name} {NOTHING if value.value is None else f'{100 * value.value:.2f}'}"
        table.add_row(*map(Text, (each.protocol.name, *shares, own)))
    return table


def step_lines(placed: Sequence[Placed]) -> list[str]:
    """Which steps each protocol is on, in one line for each set of steps."""
    held: defaultdict[str, list[str]] = defaultdict(list)
    lacking: defaultdict[str, list[str]] = defaultdict(list)
    others: defaultdict[str, list[str]] = defaultdict(list)
    for each in placed:
        name = each.protocol.name
        if each.held:
            held[each.part.text].append(name)
        elif each.sample_set is not None:
            lacking[each.sample_set].append(name)
        if not each.held:
            others[each.part.text].append(name)
    lines = [f"steps of: {text}: {', '.join(names)}" for text, names in (*others.items(), *held.items())]
    if len(lines) == 1:
        lines = [f"steps of: {text}" for text in (*others, *held)]
    if lacking:
        missing = "; ".join(f"{name} ({', '.join(names)})" for name, names in lacking.items())
        lines.append(f"note:     not on their own sample set, which is not all here: {missing}")
    return lines


def unmeasured_lines(placed: Sequence[Placed]) -> list[str]:
    """How many steps were not measured under which protocols; nothing when all were."""
    found: defaultdict[tuple[int, int, int], list[str]] = defaultdict(list)
    for each in placed:
        ends = _Column(each).ends
        if ends["infrastructure_failure"] or ends["not_run"]:
            found[ends["infrastructure_failure"], ends["not_run"], len(each.columns)].append(each.protocol.name)
    return [
        f"incomplete: {failed + missing:,} of {planned:,} steps were not measured ({failed:,} failed, {missing:,} never asked) "
        f"under {'every protocol' if len(names) == len(placed) else ', '.join(names)}"
        for (failed, missing, planned), names in found.items()
    ]


def agreement_lines(columns: RunColumns) -> list[str]:
    """How far the protocols of ``columns`` agree on its steps: groups that judge every step alike, and the rest."""
    groups = agreeing(columns)
    if len(columns.judged) < 2:
        return []
    if len(groups) == 1:
        return [f"agreement: the {len(columns.judged)} protocols judge all {len(columns):,} steps alike"]
    some = int(disputed(columns).sum())
    lines = [f"agreement: {some:,} of {len(columns):,} steps are exact under some of the {len(columns.judged)} protocols only"]
    lines += [f"  alike:   {', '.join(group)}" for group in groups if len(group) > 1]
    alone = [name for group in groups if len(group) == 1 for name in group]
    return [*lines, f"  each by itself: {', '.join(alone)}"] if alone else lines


def matrix_json(answers: JudgedAnswers, placed: Sequence[Placed], by: Sequence[str] = ()) -> str:
    """The whole matrix as JSON: every figure with what it was divided by and its interval, how each step ended, by protocol.

    ``by`` names breakdowns to add (:mod:`guieval.reports.score_tables`).
    """
    values = {
        "title": answers.title,
        "benchmark": answers.benchmark,
        "dataset": answers.dataset,
        "model": answers.model,
        "mode": answers.mode,
        "own_protocol": answers.own,
        "overlays": list(answers.overlays),
        "protocols": [_as_json(_Column(each), by) for each in placed],
    }
    return json.dumps(values, indent=2) + "\n"


def _as_json(column: _Column, by: Sequence[str]) -> Mapping[str, Any]:
    placed = column.placed
    covered, measured = column.coverage
    return {
        "name": placed.protocol.name,
        "version": placed.protocol.version,
        "steps": placed.part.text,
        "sample_set": placed.sample_set,
        "on_own_sample_set": placed.held,
        "figures": [
            {
                "name": name,
                "meaning": figure.describe(),
                "value": value.value,
                "count": value.count,
                "n": value.n,
                "dropped_as_wrong": value.strict,
                "unmeasured_as_right": value.value if value.upper is None else value.upper,
                "interval": interval_json(interval),
            }
            for name, (figure, value, interval) in column.figures.items()
        ],
        "samples": sample_json(placed.columns, placed.protocol.name),
        "breakdowns": {name: cell_json(placed.columns, placed.protocol.name, name) for name in by},
        "coverage": {"value": covered / measured if measured else None, "count": covered, "n": measured},
        "verdicts": {**column.ends, "planned": len(placed.columns)},
    }


def _tables(columns: Sequence[_Column]) -> WideTable[_Column]:
    return WideTable(
        "Every protocol's own figures (% of n)",
        columns,
        lambda column: column.head,
        lambda shown: (_figure_rows(shown), _coverage_rows(shown), _end_rows(shown)),
    )


def _figure_rows(columns: Sequence[_Column]) -> Iterator[tuple[str, list[str]]]:
    for name in dict.fromkeys(name for column in columns for name in column.figures):
        values = [column.figures[name][1] if name in column.figures else None for column in columns]
        yield name, [NOTHING if each is None else _share(each.value, each.n) for each in values]
        intervals = [column.figures[name][2] if name in column.figures else None for column in columns]
        if any(intervals):
            yield f"  {100 * LEVEL:.0f}% interval", ["" if each is None else interval_text(each) for each in intervals]
        strict = [_strict(each) for each in values]
        if any(strict):
            yield "  dropped steps as wrong", strict


def _strict(value: FigureValue | None) -> str:
    if value is None or value.strict is None or (value.value is not None and abs(value.strict - value.value) <= SHOWN):
        return ""
    return f"{100 * value.strict:.2f}%"


def _coverage_rows(columns: Sequence[_Column]) -> Iterator[tuple[str, list[str]]]:
    yield "coverage", [_share(covered / n if n else None, n) for covered, n in (column.coverage for column in columns)]


def _end_rows(columns: Sequence[_Column]) -> Iterator[tuple[str, list[str]]]:
    names = [*ENDS[: UNSUPPORTED + 1], "infrastructure_failure", ENDS[NOT_RUN]]
    if any(column.ends["not_reached"] for column in columns):
        names.append("not_reached")
    for name in names:
        yield name.replace("_", " "), [f"{column.ends[name]:,}" for column in columns]
    yield "planned steps", [f"{len(column.placed.columns):,}" for column in columns]


def _share(value: float | None, n: int) -> str:
    return NOTHING if value is None else f"{100 * value:.2f}% of {n:,}"

"""The tables of ``guieval decisions``, as plain values, and written as Markdown, CSV or JSON.

Which of the paper's tables and figures each one answers to is in its title. Cells are text, whole numbers, estimates with their
intervals, or nothing.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from guieval.decisions.measures import (
    LEVELS,
    DecisionColumns,
    Estimate,
    level_share,
    mean_decisions,
    mean_diversity,
    mean_stability,
    mean_support,
    pass_at,
    pass_sizes,
)
from guieval.decisions.sensitivity import (
    ALIGNED,
    METRIC_RADII,
    MOVED,
    SUPPORT_RADII,
    TREND_RADII,
    Neighbourhood,
    Sensitivity,
    TrendCounts,
    as_printed,
    l2,
    trends,
    turned_about,
)
from guieval.decisions.shifts import TRENDS, Shifts

NOTHING = "-"


@dataclass(frozen=True)
class Number:
    """A number and how many digits after the point it is shown with; ``signed`` shows a plus."""

    value: float | None
    digits: int = 3
    signed: bool = False
    estimate: Estimate | None = None

    def __str__(self) -> str:
        if self.value is None:
            return NOTHING
        form = f"{'+' if self.signed else ''}.{self.digits}f"
        shown = f"{self.value:{form}}"
        interval = self.estimate.interval if self.estimate else None
        return f"{shown} [{interval.low:{form}}, {interval.high:{form}}]" if interval else shown


@dataclass(frozen=True)
class Moved:
    """A count and by how much it differs from the baseline's."""

    count: int
    by: int

    def __str__(self) -> str:
        return f"{self.count:,} ({self.by:+d})"


@dataclass(frozen=True)
class Part:
    """A count, and the share of ``of`` that it is."""

    count: int
    of: int

    def __str__(self) -> str:
        return f"{self.count:,} ({self.count / self.of:.1%})" if self.of else f"{self.count:,}"


Cell: TypeAlias = str | int | Number | Moved | Part | None
Rows: TypeAlias = tuple[tuple[Cell, ...], ...]


@dataclass(frozen=True)
class Table:
    """Rows of cells under a header; ``name`` is what CSV and JSON call it."""

    name: str
    title: str
    header: tuple[str, ...]
    rows: Rows
    note: str = ""


def estimated(of: Estimate, digits: int = 3, *, signed: bool = False) -> Number:
    """A cell of an estimate with its interval."""
    return Number(of.value, digits, signed, of)


def run_tables(runs: Sequence[DecisionColumns], seed: int = 0) -> list[Table]:
    """What each run's decisions are: figures, stability levels, PASS@n."""
    header = ("", *(run.title for run in runs))

    def row(name: str, cells: Iterable[Cell]) -> tuple[Cell, ...]:
        return (name, *cells)

    def total(run: DecisionColumns, name: str) -> Part:
        return Part(int(getattr(run, name).sum()), int(run.n.sum()))

    figures = [
        row("steps measured", (int(run.measured.sum()) for run in runs)),
        row("executions measured", (int(run.n.sum()) for run in runs)),
        row("of them unparseable", (total(run, "unparseable") for run in runs)),
        row("of them unsupported", (total(run, "unsupported") for run in runs)),
        row("never answered", (int(run.failed.sum()) for run in runs)),
        row("stability (mean)", (estimated(mean_stability(run, seed=seed)) for run in runs)),
        row("diversity, nats (mean)", (estimated(mean_diversity(run, seed=seed)) for run in runs)),
        row("support size exp(H) (mean)", (estimated(mean_support(run, seed=seed)) for run in runs)),
        row("decisions |D| (mean)", (estimated(mean_decisions(run, seed=seed), 2) for run in runs)),
    ]
    levels = [
        row(level, (cell for run in runs for cell in (int((run.level == place).sum()), _share(run, place, seed))))
        for place, level in enumerate(LEVELS)
    ]
    sizes = sorted({k for run in runs for k in pass_sizes(run)})
    passes = [row(str(k), (_pass(run, k, seed) if k in pass_sizes(run) else None for run in runs)) for k in sizes]
    twice = ("level", *(name for run in runs for name in (f"{run.title}: steps", "share")))
    return [
        Table("decisions", "Decisions", header, tuple(figures), runs[0].settings.describe()),
        Table("levels", "Stability levels (low up to 0.4, high above 0.8)", twice, tuple(levels)),
        Table(
            "pass",
            "PASS@n (Figure 6)",
            ("n", *(run.title for run in runs)),
            tuple(passes),
            "requests never answered are not right",
        ),
    ]


def _share(run: DecisionColumns, place: int, seed: int) -> Number:
    return estimated(level_share(run, LEVELS[place], seed=seed))


def _pass(run: DecisionColumns, k: int, seed: int) -> Number:
    found = pass_at(run, k, seed=seed)
    return Number(found.value, 3, False, Estimate(found.value, found.n, found.interval))


def shift_tables(shifts: Shifts, seed: int = 0) -> list[Table]:
    """What changes from the baseline to another run."""
    named = f"{shifts.before.title} to {shifts.after.title}"
    steps = len(shifts)
    means: list[tuple[Cell, ...]] = [
        (trend, int((shifts.stability_trend == place).sum()), estimated(shifts.mean_by_trend(trend, seed=seed), 4, signed=True))
        for place, trend in enumerate(TRENDS)
    ]
    means.append(("all", steps, estimated(shifts.mean_stability(seed=seed), 4, signed=True)))
    note = f"{steps:,} steps measured in both runs"
    if shifts.only_before or shifts.only_after:
        note += f"; left out: {shifts.only_before:,} of the baseline alone, {shifts.only_after:,} of the other alone"
    support = shifts.mean_support(seed=seed)
    wider = f"mean shift of the support size {estimated(support, 3, signed=True)} over {support.n:,} steps"
    trends_of = ("stability dec", "stability negl", "stability inc")
    return [
        Table(
            "mean-shift", f"Stability shift by trend (Table 4): {named}", ("trend", "steps", "mean shift"), tuple(means), note
        ),
        Table(
            "level-by-shift",
            f"Baseline stability and its shift (Figure 4): {named}",
            ("baseline stability", *trends_of),
            _crossed(LEVELS, shifts.levels_by_trend().tolist()),
        ),
        Table(
            "diversity-by-shift",
            f"Diversity and stability (Figure 8): {named}",
            ("support size exp(H)", *trends_of),
            _crossed(TRENDS, shifts.support_by_stability().tolist()),
            f"support size: negl within 0.1; {wider}",
        ),
    ]


def _crossed(names: Sequence[str], counts: list[list[int]]) -> Rows:
    total = sum(map(sum, counts))
    return tuple((name, *(Part(count, total) for count in row)) for name, row in zip(names, counts, strict=True))


def sensitivity_tables(run: Sensitivity, seed: int = 0) -> list[Table]:
    """Tables 10 to 13 of one run."""
    where = f": {run.title}" if run.title else ""
    support: Rows = (
        ("decisions |D|", *(estimated(run.mean_decisions(l2(radius), seed=seed), 2) for radius in SUPPORT_RADII)),
        ("support size exp(H)", *(estimated(run.mean_support(l2(radius), seed=seed), 2) for radius in SUPPORT_RADII)),
    )
    aligned: Rows = (("R² of |D|", *(Number(run.r2(l2(one), l2(other)), 2) for one, other in ALIGNED)),)
    moved: Rows = (("W1 normalised", *(estimated(run.mean_moved((l2(one), l2(other)), seed=seed), 5) for one, other in MOVED)),)
    metrics: Rows = (
        (
            "L1 at ε, L2 at 1.207 ε (as printed)",
            *(estimated(run.mean_moved(as_printed(each), seed=seed), 6) for each in METRIC_RADII),
        ),
        ("L1 at 1.207 ε, L2 at ε", *(estimated(run.mean_moved(turned_about(each), seed=seed), 6) for each in METRIC_RADII)),
    )
    over = f"{len(run.keys):,} steps; {run.settings.describe()}"
    typed = f"over {len(run.moved_row):,} pairs of a step and a type of points"
    return [
        Table(
            "support-by-radius", f"Decision support by radius (Table 10){where}", ("ε", *_radii(SUPPORT_RADII)), support, over
        ),
        Table("support-alignment", f"Alignment of support sizes (Table 11){where}", ("ε pair", *_pairs(ALIGNED, "-")), aligned),
        Table("radius-distance", f"Distance between radii (Table 12){where}", ("ε pair", *_pairs(MOVED, "→")), moved, typed),
        Table("metric-distance", f"Distance between L1 and L2 (Table 13){where}", ("ε", *_radii(METRIC_RADII)), metrics, typed),
    ]


def trend_tables(before: Sensitivity, after: Sensitivity) -> list[Table]:
    """Tables 14 and 15 of two runs: steps whose diversity and stability both moved."""
    named = f"{before.title} to {after.title}"
    base = before.baseline
    held = trends(before, after, base)
    radii = [l2(radius) for radius in TREND_RADII if l2(radius) != base]
    metrics = [*as_printed(base.radius), turned_about(base.radius)[0]]
    header = ("setting", "diversity", "stability up", "stability down")

    def rows(asked: Sequence[Neighbourhood]) -> Iterator[tuple[Cell, ...]]:
        for at in asked:
            yield from _trend_rows(at, trends(before, after, at), held)

    baseline = tuple(_trend_rows(base, held, None))
    return [
        Table("trend-by-radius", f"Diversity and stability by radius (Table 14): {named}", header, (*baseline, *rows(radii))),
        Table(
            "trend-by-metric",
            f"Diversity and stability by metric (Table 15): {named}",
            header,
            (*baseline, *rows(metrics)),
            "in parentheses: the difference to the baseline; the factor of L1 and L2 is (√2 + 1) / 2",
        ),
    ]


def _trend_rows(at: Neighbourhood, found: TrendCounts, base: TrendCounts | None) -> Iterator[tuple[Cell, ...]]:
    differs = found.minus(base) if base else None
    for place, name in enumerate(("up", "down")):
        counts = found.counts[place]
        cells: list[Cell] = list(counts)
        if differs is not None:
            cells = [Moved(count, by) for count, by in zip(counts, differs[place], strict=True)]
        yield (str(at) if base else f"{at} (baseline)", name, *cells)


def _radii(radii: Sequence[float]) -> tuple[str, ...]:
    return tuple(f"{radius:g}" for radius in radii)


def _pairs(pairs: Sequence[tuple[float, float]], between: str) -> tuple[str, ...]:
    return tuple(f"{one:g}{between}{other:g}" for one, other in pairs)


def shown(cell: Cell) -> str:
    """A cell as a reader sees it."""
    if cell is None:
        return NOTHING
    return f"{cell:,}" if isinstance(cell, int) else str(cell)


def markdown(tables: Sequence[Table]) -> str:
    """Tables of GitHub's Markdown, each under a heading."""
    lines: list[str] = []
    for table in tables:
        lines += [f"### {table.title}", ""]
        lines += [_line(table.header), _line(["---", *["---:"] * (len(table.header) - 1)])]
        lines += [_line([shown(cell) for cell in row]) for row in table.rows]
        lines += ["", *([table.note, ""] if table.note else [])]
    return "\n".join(lines)


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def comma_separated(tables: Sequence[Table]) -> str:
    """One line for each number: table, row, column, value, and low, high, n where it has them."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["table", "title", "row", "column", "value", "low", "high", "n"])
    for table in tables:
        named = 2 if table.name.startswith("trend-by") else 1
        for row in table.rows:
            name = ", ".join(shown(cell) for cell in row[:named])
            for column, cell in zip(table.header[named:], row[named:], strict=True):
                plain = _plain(cell)
                values = plain if isinstance(plain, dict) else {"value": plain}
                ends = [values.get(key, "") for key in ("low", "high", "n")]
                writer.writerow([table.name, table.title, name, column, values["value"], *ends])
    return out.getvalue()


def as_json(tables: Sequence[Table]) -> str:
    """The tables with their numbers in full."""
    listed = [
        {
            "name": table.name,
            "title": table.title,
            "header": table.header,
            "rows": [[_plain(cell) for cell in row] for row in table.rows],
            "note": table.note,
        }
        for table in tables
    ]
    return json.dumps(listed, ensure_ascii=False, indent=1) + "\n"


def _plain(cell: Cell) -> Any:
    """A cell for another program."""
    match cell:
        case Number(value=value, estimate=None):
            return value
        case Number(value=value, estimate=Estimate(n=n, interval=interval)):
            low, high = (interval.low, interval.high) if interval else (None, None)
            return {"value": value, "low": low, "high": high, "n": n}
        case Moved(count=count, by=by):
            return {"value": count, "by": by}
        case Part(count=count, of=of):
            return {"value": count, "n": of}
        case _:
            return cell

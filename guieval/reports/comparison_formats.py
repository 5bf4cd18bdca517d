"""Comparisons as text, Markdown, CSV, JSON, and as a LaTeX table of differences, intervals and p-values for a paper."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

from guieval.metrics.measured import SHARE
from guieval.reports.comparison import Compared, Comparison, compare_json, footnotes, headings, p_value, shown_parts
from guieval.reports.tables.latex import check_latex, several
from guieval.reports.tables.records import csv_text
from guieval.reports.tables.table import Number, Row, Table, columns, without
from guieval.reports.tables.terminal import as_text
from guieval.reports.tables.writers import Format, json_text, markdown

FORMATS: tuple[Format, ...] = ("text", "md", "csv", "latex", "json")


def written(found: Sequence[Comparison], form: Format, *, label: str | None = None, caption: str | None = None) -> str:
    """Comparisons in one of :data:`FORMATS`; CSV and JSON have shares as fractions, at full precision.

    ``label`` and ``caption`` replace those of LaTeX; :class:`UsageError` if the format is another.
    """
    check_latex(form, label, caption)
    if form == "latex":
        return as_latex(found, label, caption)
    if form == "csv":
        return comma_separated(found)
    if form == "json":
        return json_text({"comparisons": [compare_json(each) for each in found]})
    parts = []
    for each, (heads, tables, feet) in zip(found, shown_parts(found), strict=True):
        if form == "md":
            one, other = each.labels
            tables = [
                replace(table, title=f"{one} (A) and {other} (B), {each.first.mode}, under {table.name}") for table in tables
            ]
            tables[-1] = replace(tables[-1], notes=(*heads, *feet))
            parts.append(markdown(tables))
        else:
            parts.append("".join(f"{line}\n" for line in heads) + as_text(tables) + "".join(f"{line}\n" for line in feet))
    return "\n".join(parts)


def comma_separated(found: Sequence[Comparison]) -> str:
    """One line for each metric of each comparison; differences are B minus A."""
    names = "benchmark A B mode_A mode_B protocol metric shared unit value_A n_A missing_A value_B n_B missing_B "
    names += "difference low high p holm detectable"
    return csv_text((line for each in found for line in _records(each)), names.split())


def _records(found: Comparison) -> Iterator[dict[str, Any]]:
    runs = dict(zip("AB", (found.first, found.second), strict=True))
    who: dict[str, Any] = {"benchmark": found.first.benchmark, **dict(zip("AB", found.labels, strict=True)), "holm": found.holm}
    who |= {f"mode_{letter}": run.mode for letter, run in runs.items()}
    for each in found.metrics:
        line = {**who, "protocol": each.protocol, "metric": each.name, "shared": each.shared, "unit": each.difference.unit}
        for letter, of in zip("AB", (each.first, each.second), strict=True):
            line |= {f"value_{letter}": of.value, f"n_{letter}": of.n, f"missing_{letter}": of.missing}
        between = each.difference
        line |= {"difference": between.value, "low": between.low, "high": between.high, "p": between.p_value}
        yield line | {"detectable": each.smallest}


def as_latex(found: Sequence[Comparison], label: str | None = None, caption: str | None = None) -> str:
    """A table for each first run and protocol: every metric of the runs, the difference with its interval below, and p.

    What else is to know are comments. ``label`` is the first table's, by default ``BENCHMARK-differences``; further ones are
    numbered. Raises :class:`UsageError` for a ``caption`` of several tables.
    """
    groups = (list(same) for _, same in groupby(found, key=lambda each: each.directories[0]))
    made = [(table, text, f"{table.name}-differences") for same in groups for table, text in _paper_tables(same)]
    return several(made, label, caption, "these are", "name two runs and one --protocol")


def _paper_tables(same: Sequence[Comparison]) -> Iterator[tuple[Table, str]]:
    """A table for each protocol of comparisons with the same first run, and its caption of two sentences."""
    first, one, baseline = same[0].first, len(same) == 1, same[0].labels[0]
    count = Counter(each.labels[1] for each in same)
    others = [
        f"{name} ({each.directories[1].name})" if count[name := each.labels[1]] > 1 and name == each.second.model else name
        for each in same
    ]
    notes = tuple(dict.fromkeys(line for each in same for line in (*headings(each), *footnotes(each))))
    heads = columns(
        "metric",
        "model",
        "n",
        baseline,
        others[0] if one else "model's value",
        "difference",
        "p" if one else "p (Holm)",
        keys=2,
    )
    modes = ", ".join(dict.fromkeys(mode for each in same for mode in (each.first.mode, each.second.mode)))
    for protocol in dict.fromkeys(each.protocol for each in same[0].metrics):
        found = [[each for each in comparison.metrics if each.protocol == protocol] for comparison in same]
        rows: list[Row] = []
        for title in dict.fromkeys(each.title for metrics in found for each in metrics):
            of_title = [(name, each) for name, of in zip(others, found, strict=True) for each in of if each.title == title]
            rows += [()] if rows and not one else []
            rows += [_row(name, each, "" if place else title) for place, (name, each) in enumerate(of_title)]
        table = Table(f"{first.mode}, {protocol}", heads, tuple(rows), notes, first.benchmark, keys=2)
        yield (
            without(table, {1}) if one else table,
            f"{others[0] if one else 'Each model'} against {baseline} on {first.benchmark} ({first.size}), {modes}, under "
            f"{protocol}, shares in per cent. Differences of shares are in percentage points, with their 95 % intervals "
            "over episodes below; p is two-sided and paired over episodes"
            f"{'' if one else f', with the correction of Holm for {len(same)} models'}"
            f"{'; shared: of the steps that both runs answered' * any(each.shared for of in found for each in of)}.",
        )


def _row(name: str, each: Compared, title: str) -> Row:
    unit = each.difference.unit
    numbers = [Number(replace(value, interval=None), unit=False) for value in (each.first, each.second)]
    return (
        title if unit == SHARE or not title else f"{title} ({unit})",
        name,
        " / ".join(dict.fromkeys(f"{value.n:,}" for value in (each.first, each.second))),
        *numbers,
        Number(each.difference, signed=True, unit=False),
        p_value(each.difference.p_value),
    )

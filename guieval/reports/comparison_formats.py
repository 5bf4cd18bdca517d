"""Comparisons in words, as text, Markdown, CSV and JSON, and as a LaTeX table for a paper."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

from guieval.metrics.measured import SHARE, Measured
from guieval.reports.comparison import Compared, Comparison
from guieval.reports.tables.latex import check_latex, several
from guieval.reports.tables.records import csv_text
from guieval.reports.tables.table import NOTHING, Number, Row, Table, columns, without
from guieval.reports.tables.terminal import as_text
from guieval.reports.tables.writers import Format, json_text, markdown

SIGNIFICANT = 0.05
"""A difference whose p-value is below this is marked with a star."""
_RIGHT = {"step": "are exact", "task": "succeed at first"}
_HEADS = ("metric", "n", "A", "B", "B - A [95 % interval]", "p", "detectable")
_JSON = {"protocol": "protocol", "metric": "title", "meaning": "meaning", "A": "first", "B": "second"}
_JSON |= {"difference": "difference", "detectable": "smallest", "shared": "shared"}
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
            rows += [_paper_row(name, each, "" if place else title) for place, (name, each) in enumerate(of_title)]
        table = Table(f"{first.mode}, {protocol}", heads, tuple(rows), notes, first.benchmark, keys=2)
        yield (
            without(table, {1}) if one else table,
            f"{others[0] if one else 'Each model'} against {baseline} on {first.benchmark} ({first.size}), {modes}, under "
            f"{protocol}, shares in per cent. Differences of shares are in percentage points, with their 95 % intervals "
            "over episodes below; p is two-sided and paired over episodes"
            f"{'' if one else f', with the correction of Holm for {len(same)} models'}"
            f"{'; shared: of the steps that both runs answered' * any(each.shared for of in found for each in of)}.",
        )


def _paper_row(name: str, each: Compared, title: str) -> Row:
    unit = each.difference.unit
    numbers = [Number(replace(value, interval=None), unit=False) for value in (each.first, each.second)]
    return (
        title if unit == SHARE or not title else f"{title} ({unit})",
        name,
        each.sizes,
        *numbers,
        Number(each.difference, signed=True, unit=False),
        p_value(each.difference.p_value),
    )


def compare_tables(comparison: Comparison) -> list[Table]:
    """The metrics' differences, a table for each protocol."""
    heads = columns(*_HEADS, folds=_HEADS[:1], spare=("detectable",))
    grouped = groupby(comparison.metrics, key=lambda each: each.protocol)
    return [Table(f"Under {name}", heads, tuple(map(_row, found)), name=name) for name, found in grouped]


def headings(comparison: Comparison) -> Iterator[str]:
    """The two runs, the reasons against comparing them, and notes."""
    for letter, run in (("A", comparison.first), ("B", comparison.second)):
        yield f"{letter}: {run.model}, {run.benchmark}, {run.mode} ({run.size})"
    for line in dict.fromkeys(run.edition_line for run in (comparison.first, comparison.second) if run.edition_line):
        yield f"labels: {line}"
    if comparison.first.scaffold == comparison.second.scaffold:
        yield f"scaffold: {comparison.first.scaffold}"
    else:
        yield f"scaffold: {comparison.first.scaffold} (A), {comparison.second.scaffold} (B)"
    first, second = comparison.setups
    yield from [f"set-up: {first}"] if first == second else [f"set-up of A: {first}", f"set-up of B: {second}"]
    yield from (f"Warning: unlike runs, compared anyway: {line}" for line in comparison.unlike)
    yield from (f"note: {line}" for line in comparison.notes)


def footnotes(comparison: Comparison) -> list[str]:
    """The lines below the tables: the steps that flipped, and how to read the columns."""
    return [*_flipped(comparison), *_reading(comparison)]


def _flipped(comparison: Comparison) -> Iterator[str]:
    unit, right = comparison.first.unit, _RIGHT[comparison.first.unit]
    for name, found in comparison.exact.items():
        discordant = found.only_first + found.only_second
        n = found.both + found.neither + discordant
        yield (
            f"{name}: of {n:,} {unit}s both runs answered, {found.only_first:,} {right} in A alone, {found.only_second:,} "
            f"in B alone, {found.both:,} in both and {found.neither:,} in neither; McNemar's test ({found.method}), which "
            f"takes {unit}s for independent: {p_words(found.p_value)}"
        )


def _reading(comparison: Comparison) -> Iterator[str]:
    if not comparison.exact:
        yield (
            "A and B are compared episode by episode, each episode with its mean over repeats; McNemar's test is of single runs"
        )
    if any(each.shared for each in comparison.metrics):
        yield (
            "(shared): over the steps that both runs answered, metrics of episodes over those that both did; a difference of "
            "all steps would count missing answers"
        )
    yield (
        f"interval and p: over whole episodes, the same for both runs; * p < 0.05, {_adjusted(comparison)}; differences of "
        "shares are in percentage points"
    )
    yield "detectable: the smallest true difference that these steps can detect (power 80 %, level 0.05)"


def shown_parts(found: Sequence[Comparison]) -> Iterator[tuple[list[str], list[Table], list[str]]]:
    """What is above, in and below the tables of each: a line of several only above the first, or only below the last.

    What is said of A, or of B, is of several if these are the same runs.
    """
    said: set[tuple[str, ...]] = set()
    reading = [list(_reading(each)) for each in found]
    for place, each in enumerate(found):
        runs = dict(zip("AB", map(str, each.directories), strict=True))
        above = []
        for line in headings(each):
            of = re.findall(r"\b[AB]\b", line) or "AB" * line.startswith(("note:", "Warning:"))
            about = (line, *(runs[letter] for letter in of))
            above += [line] * (line.startswith(("A: ", "B: ")) or about not in said)
            said.add(about)
        later = {line for lines in reading[place + 1 :] for line in lines}
        yield above, compare_tables(each), [*_flipped(each), *(line for line in reading[place] if line not in later)]


def _adjusted(comparison: Comparison) -> str:
    """What p is adjusted for, in words."""
    if comparison.holm == 1:
        return "not adjusted for the number of metrics"
    return (
        f"with Holm's correction for {comparison.holm} comparisons with {comparison.labels[0]}, not for the number of metrics"
    )


def compare_json(comparison: Comparison) -> dict[str, Any]:
    """The whole comparison; fractions in [0, 1]."""
    runs: dict[str, Any] = {}
    sides = zip("AB", (comparison.first, comparison.second), comparison.setups, comparison.directories, strict=True)
    for letter, run, setup, directory in sides:
        size = {"steps": len(run), "episodes": len(run.episodes)}
        about = {"edition": run.edition, "scaffold": run.scaffold, "setup": setup, "directory": directory}
        runs[letter] = {"model": run.model, "benchmark": run.benchmark, "mode": run.mode, **size, **about}
    return {
        "runs": runs,
        "holm": comparison.holm,
        "unlike": comparison.unlike,
        "notes": comparison.notes,
        "metrics": [{name: getattr(each, field) for name, field in _JSON.items()} for each in comparison.metrics],
        "exact_match": comparison.exact,
    }


def p_value(p: float | None) -> str:
    """A p-value with three digits."""
    if p is None:
        return NOTHING
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def p_words(p: float) -> str:
    """``p = 0.012`` or ``p < 0.001``."""
    return f"p {'' if p < 0.001 else '= '}{p_value(p)}"


def _row(each: Compared) -> Row:
    found = each.difference
    star = " *" if found.p_value is not None and found.p_value < SIGNIFICANT else ""
    values = zip("AB", (each.first, each.second), strict=True)
    marks = [f"{letter}: {value.missing:,} missing" for letter, value in values if value.missing]
    return (
        each.title + (f" ({', '.join(marks)})" if marks else ""),
        each.sizes,
        *(Number(replace(value, interval=None, missing=0)) for value in (each.first, each.second)),
        Number(found, signed=True, unit=found.unit != SHARE),
        p_value(found.p_value) + star,
        Number(Measured(each.smallest, unit=found.unit), unit=found.unit != SHARE),
    )

"""The comparison of several runs: the differences of their metrics, and who was right where."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import numpy as np

from guieval.metrics.columns import TYPES, RunColumns
from guieval.reports.comparison import compare_runs
from guieval.reports.comparison_formats import compare_tables, footnotes, headings
from guieval.reports.console import Run, online_tables
from guieval.reports.server.overview import JudgedRun
from guieval.reports.server.shown_tables import clean, shown
from guieval.reports.tables.table import Row, Table, columns, share
from guieval.reports.trajectories.reading import OnlineTrajectories
from guieval.scoring.matrix import judge_run

LETTERS = "ABCDEFGH"
MOST_TASKS = 500
"""Number of tasks in the table of online runs."""
_SECOND = re.compile(r"^B(?=: )|(?<=in )B(?= alone)")
_HEADS = {"B": "{}", "B - A": "{} - A"}


def differences_section(first: Path, second: Path, letter: str) -> dict[str, Any]:
    """The metrics of two runs and how sure their differences are, on the steps that they share; ``letter`` is the second's."""
    found = compare_runs(first, second, anyway=True)
    lines = [_SECOND.sub(letter, clean(line)) for line in (*headings(found), *footnotes(found))]
    return {"tables": shown(*(_lettered(table, letter) for table in compare_tables(found))), "notes": lines}


def _lettered(table: Table, letter: str) -> Table:
    heads = tuple(replace(column, name=_HEADS.get(column.name, column.name).format(letter)) for column in table.columns)
    return replace(table, columns=heads)


def patterns_section(directories: Sequence[Path], judged: Sequence[JudgedRun]) -> dict[str, Any]:
    """On how many of the shared steps which of the runs were right, under the first run's protocol, and by action type."""
    protocol = judged[0].metrics.protocol
    runs = [
        run.columns if run.metrics.protocol == protocol else judge_run(directory, [protocol]).columns()
        for run, directory in zip(judged, directories, strict=True)
    ]
    types, right = _shared(runs, protocol)
    letters = LETTERS[: len(runs)]
    patterns = Counter(map(tuple, right.tolist()))
    n = len(right)
    rows: list[Row] = []
    links: list[str | None] = []
    for pattern, count in sorted(patterns.items(), key=lambda each: -each[1]):
        right_in = ", ".join(letter for letter, each in zip(letters, pattern, strict=True) if each)
        rows.append((right_in or "none", count, share(count / n)))
        links.append(_pattern_link(pattern))
    title = f"Who was right where, under {protocol} ({n:,} steps that all runs answered)"
    who = Table(title, columns("right in", "steps", "share"), tuple(rows), name="patterns")
    return {"tables": shown(who, links=links) + shown(_by_type(types, right, letters))}


def _shared(runs: Sequence[RunColumns], protocol: str) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """The reference types (n,) and exact matches (n, runs) of the steps that all runs answered."""
    answered = []
    for run in runs:
        judged = run.judged[protocol]
        rows = np.flatnonzero(judged.measured).tolist()
        answered.append({run.key_of(row): row for row in rows})
    keys = [key for key in answered[0] if all(key in other for other in answered[1:])]
    places = np.array([[of_run[key] for of_run in answered] for key in keys], dtype=np.int64).reshape(len(keys), len(runs))
    right = [run.judged[protocol].exact_match[places[:, number]] for number, run in enumerate(runs)]
    return runs[0].reference_type[places[:, 0]], np.stack(right, axis=1)


def _pattern_link(pattern: tuple[bool, ...]) -> str | None:
    """The address of these steps in the step viewer, whose filter knows all, none, one alone, and all but one."""
    count = sum(pattern)
    if count in (0, len(pattern)):
        name = "all" if count else "none"
    elif count == 1:
        name = f"only{LETTERS[pattern.index(True)]}"
    elif count == len(pattern) - 1:
        name = f"not{LETTERS[pattern.index(False)]}"
    else:
        return None
    return f"steps/#?{urlencode({'flipped': name})}"


def _by_type(types: np.ndarray[Any, Any], right: np.ndarray[Any, Any], letters: str) -> Table | None:
    rows: list[Row] = []
    for code in sorted(set(types.tolist())):
        chosen = right[types == code]
        name = TYPES[code] if code >= 0 else "unknown"
        rows.append((name, *(share(float(each)) for each in chosen.mean(axis=0)), len(chosen)))
    return (
        Table("Exact match by reference action", columns("action", *letters, "n"), tuple(rows), name="types") if rows else None
    )


def online_sections(runs: Sequence[OnlineTrajectories]) -> dict[str, Any]:
    """The metrics of online runs side by side, and how each task ended in each; success counts if every repetition did."""
    letters = LETTERS[: len(runs)]
    tables = online_tables([Run(letter, run.metrics) for letter, run in zip(letters, runs, strict=True)])
    ended: list[dict[Any, str]] = []
    for run in runs:
        grouped = groupby(run, key=lambda trajectory: trajectory.key)
        ended.append({key: ", ".join(dict.fromkeys(each.ended for each in of_task)) for key, of_task in grouped})
    keys = list(dict.fromkeys(key for of_run in ended for key in of_run))
    rows: list[Row] = [(str(key), *(of_run.get(key, "-") for of_run in ended)) for key in keys]
    rows.sort(key=lambda row: len(set(row[1:])) == 1)  # the tasks that ended differently come first
    note = (f"The first {MOST_TASKS:,} of {len(rows):,} tasks.",) if len(rows) > MOST_TASKS else ()
    grid = Table("How each task ended, different ends first", columns("task", *letters), tuple(rows[:MOST_TASKS]), note, "ends")
    return {"tables": shown(*tables, grid)}

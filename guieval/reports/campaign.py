"""The tables of a campaign: its leaderboard, and every model against the first one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from guieval.errors import UsageError
from guieval.history.modes import ONLINE
from guieval.journal import has_records, read_manifest
from guieval.metrics.paired import holm
from guieval.reports.comparison import FigureDifference, compare_runs, p_value
from guieval.reports.leaderboards.leaderboard import Board, arranged, leaderboard
from guieval.reports.leaderboards.published_results import get_results
from guieval.reports.tables.table import Row, Table, bracketed, columns, per_cent


def board_of_campaign(
    directories: Sequence[Path], protocols: Sequence[str], references: Sequence[str], figures: str | None
) -> Board | None:
    """The leaderboard of the runs that have answers; ``None`` if none has."""
    begun = [directory for directory in directories if has_records(directory)]
    if not begun:
        return None
    return arranged(leaderboard(begun, list(protocols) or None, [get_results(name) for name in references]), figures)


def comparison_table(pairs: Sequence[tuple[str, Path, Path]]) -> Table | None:
    """The difference in exact match of each pair of runs, second minus first, with a name; ``None`` without pairs.

    The p-values are those of `guieval compare`, with Holm's correction over all pairs.
    """
    found: list[tuple[str, Sequence[Path], FigureDifference]] = []
    notes = []
    for name, *pair in pairs:
        if not all(map(has_records, pair)) or any(read_manifest(each).mode.name == ONLINE for each in pair):
            continue
        try:
            compared = compare_runs(pair[0], pair[1])
        except UsageError as error:
            notes.append(f"{name}: not compared: {error}")
            continue
        exact = [each for each in compared.figures if each.figure.measure == "exact"] or list(compared.figures)
        found.append((name, pair, exact[0]))
    if not found and not notes:
        return None
    p_values = iter(holm([each.difference.p_value for _, _, each in found if each.difference.p_value is not None]))
    rows: list[Row] = []
    for name, (first, second), each in found:
        own, value = each.difference, each.difference.value
        shown = per_cent(value, unit="") if value is not None else None
        p = p_value(next(p_values) if own.p_value is not None else None)
        models = (read_manifest(first).model_name, read_manifest(second).model_name)
        rows.append((name, *models, each.figure.title, shown, bracketed(own.interval), p))
    heads = columns("run", "A", "B", "figure", "B - A (points)", "95 % interval", "p (Holm)", keys=4)
    return Table("Each model against the first", heads, tuple(rows), tuple(notes), keys=4)

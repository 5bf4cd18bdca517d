"""The tables of a campaign: its leaderboard, and every model against the first one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from guieval.errors import UsageError
from guieval.journal import RunFolder, has_records
from guieval.journal.repeats import Repeats
from guieval.metrics.paired import holm
from guieval.reports.comparison import Compared, compare_runs, p_value
from guieval.reports.leaderboards.leaderboard import Board, arranged, leaderboard
from guieval.reports.leaderboards.published_results import get_results
from guieval.reports.tables.table import Number, Row, Table, columns
from guieval.scoring.score import summary_of_run


def board_of_campaign(
    directories: Sequence[Path],
    protocols: Sequence[str],
    references: Sequence[str],
    metrics: str | None,
    *,
    anyway: bool = False,
) -> Board | None:
    """The leaderboard of the runs that have responses, also with unlike labels if ``anyway``; ``None`` if none has."""
    begun = [directory for directory in directories if has_records(directory)]
    if all(summary_of_run(RunFolder(directory)).state == "never answered" for directory in begun):
        return None
    published = [get_results(name) for name in references]
    return arranged(leaderboard(begun, list(protocols) or None, published, anyway=anyway), metrics)


def comparison_table(pairs: Sequence[tuple[str, Repeats, Repeats]], *, anyway: bool = False) -> Table | None:
    """The difference in exact match of each pair of models, second minus first, with a name; ``None`` without pairs.

    Repeats of a model are one question. The p-values are those of `guieval compare`, with Holm's correction over all pairs.
    """
    found: list[tuple[str, Sequence[Repeats], Compared]] = []
    notes = []
    for name, *pair in pairs:
        pair = [each.only([run for run in each.directories if has_records(run)]) for each in pair]
        if not all(each.directories for each in pair):
            continue
        try:
            compared = compare_runs(pair[0], pair[1], anyway=anyway)
        except UsageError as error:
            notes.append(f"{name}: not compared: {error}")
            continue
        notes += [f"{name}: unlike runs, compared anyway: {reason}" for reason in compared.unlike]
        known = (each for each in compared.metrics if each.difference.value is not None)
        found.append((name, pair, next(known, compared.metrics[0])))
    if not found and not notes:
        return None
    p_values = iter(holm([each.difference.p_value for _, _, each in found if each.difference.p_value is not None]))
    rows: list[Row] = []
    for name, (_, second), each in found:
        p = p_value(next(p_values) if each.difference.p_value is not None else None)
        model = RunFolder(second.first).manifest.model_name
        mark = "(shared)" if each.shared else ""
        rows.append((name, model, each.name, Number(each.difference, unit=False, signed=True, mark=mark), p))
    metrics = {each.name for _, _, each in found}
    if len(metrics) == 1:
        rows = [(*row[:2], *row[3:]) for row in rows]
    if any(each.shared for _, _, each in found):
        notes.append("(shared): over the steps that both runs answered")
    against = ", ".join(dict.fromkeys(RunFolder(first.first).manifest.model_name for _, (first, _), _ in found))
    heads = ("benchmark and mode", "model", *(["metric"] if len(metrics) > 1 else []), "points [95 % interval]", "p (Holm)")
    keys = len(heads) - 2
    title = f"Each model minus {against}, the first" + (f": {metrics.pop()}" if len(metrics) == 1 else "")
    return Table(title, columns(*heads, keys=keys, folds=heads[:keys]), tuple(rows), tuple(notes), "against the first", keys)

"""Campaigns: :func:`guieval.campaign`, and the tables of one, which are its leaderboard and every model against the first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Unpack

from guieval.errors import UsageError
from guieval.given import AnyPath, OneOrMore, every, one_path
from guieval.journal import RunFolder, has_records, is_run
from guieval.journal.repeats import Repeats, grouped
from guieval.metrics.paired import holm
from guieval.reports.comparison import Compared, compare_runs
from guieval.reports.comparison_formats import p_value
from guieval.reports.leaderboards.board import Board, arranged
from guieval.reports.leaderboards.formats import FORMATS, written
from guieval.reports.leaderboards.leaderboard import leaderboard
from guieval.reports.leaderboards.published_results import get_results
from guieval.reports.tables.table import Number, Row, Table, columns, without
from guieval.reports.tables.writers import format_named
from guieval.running.api import display_of, plain, run_all
from guieval.running.campaign import Campaign, PlannedRun, planned, read_campaign, staged, trainings_of
from guieval.running.execute import Result, resolve_jobs
from guieval.running.keywords import RunSettings
from guieval.scoring.score import summary_of_run
from guieval.wings import offered


@dataclass(frozen=True)
class CampaignResult:
    """The results of the runs of a campaign in ``directory``, in the order in which they were done.

    ``board`` is the leaderboard of all its runs so far, and ``against_first`` compares every model with the first one; both are
    ``None`` before there is anything to show.
    """

    directory: Path
    runs: tuple[Result, ...]
    complete: bool
    board: Board | None = field(repr=False)
    against_first: Table | None = field(repr=False)


def planned_campaign(
    file: Path, out: Path | None, overrides: Sequence[str], only: Sequence[str], settings: Mapping[str, Any]
) -> tuple[Campaign, Path, list[PlannedRun]]:
    """A campaign, its folder and its runs; :class:`UsageError` for settings that several models or benchmarks cannot share."""
    of_trainings = [each for each in overrides if each.startswith("train.")]
    read, folder = read_campaign(file, of_trainings), out or Path("runs") / file.stem
    if "data" in settings and len(read.benchmarks) > 1:
        raise UsageError("--data is for a campaign with one benchmark; give each of several its own 'data' in the file")
    if settings.keys() & {"base_url", "base_urls"} and len(read.models) > 1:
        raise UsageError("--base-url is for a campaign with one model; give each of several its own 'base_urls' in the file")
    runs = planned(read, folder, [each for each in overrides if each not in of_trainings], only, settings)
    if trainings := trainings_of(runs):
        offered("campaigns", "check")(trainings)
    return read, folder, runs


def campaign(
    file: AnyPath,
    *,
    out: AnyPath | None = None,
    only: OneOrMore | None = None,
    anyway: bool = False,
    progress: bool | None = None,
    **settings: Unpack[RunSettings],
) -> CampaignResult:
    """Do every run of a campaign, as ``guieval campaign`` does, or continue one that was stopped.

    ``file`` is the campaign's, or the name of a shipped one; ``settings`` count for every run, over the file's. The other
    arguments are the options of the same names. Raises :class:`guieval.errors.GuievalError` as :func:`guieval.run` does.
    """
    read, folder, runs = planned_campaign(Path(file), one_path(out), [], every(only), plain(settings))
    display, results = display_of(progress), list[Result]()
    for group in staged(runs, display.note):
        done = run_all(resolve_jobs(group, root=folder), fresh=False, display=display)
        results += done
        if not all(result.complete for result in done):
            break
    complete = len(results) == len(runs) and all(result.complete for result in results)
    return CampaignResult(folder, tuple(results), complete, *written_board(read, runs, folder, anyway=anyway))


def written_board(
    read: Campaign, runs: Sequence[PlannedRun], folder: Path, *, anyway: bool
) -> tuple[Board | None, Table | None]:
    """The leaderboard, which is written next to the runs in three formats, and the table of each model against the first."""
    board = board_of_campaign([run.directory for run in runs], read.protocols, read.references, read.metrics, anyway=anyway)
    if board is None:
        return None, None
    first = runs[0].model
    by_rest: dict[str, dict[str, list[Path]]] = {}
    for run in runs:
        if is_run(run.directory):
            by_rest.setdefault(run.rest, {}).setdefault(run.model, []).append(run.directory)
    pairs = [
        (rest, one, other)
        for rest, same in by_rest.items()
        for model in same
        if first in same and model != first
        for one, other in zip(grouped(same[first]), grouped(same[model]), strict=False)
    ]
    for name in ("leaderboard.md", "leaderboard.html", "leaderboard.tex"):
        (folder / name).write_text(written(board, format_named(None, folder / name, FORMATS)), encoding="utf-8")
    return board, comparison_table(pairs, anyway=anyway)


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
    if any(each.shared for _, _, each in found):
        notes.append("(shared): over the steps that both runs answered")
    against = ", ".join(dict.fromkeys(RunFolder(first.first).manifest.model_name for _, (first, _), _ in found))
    names = ("benchmark and mode", "model", "metric")
    heads = columns(*names, "points [95 % interval]", "p (Holm)", keys=3, folds=names)
    metrics = {each.name for _, _, each in found}
    title = f"Each model minus {against}, the first" + (f": {next(iter(metrics))}" if len(metrics) == 1 else "")
    table = Table(title, heads, tuple(rows), tuple(notes), "against the first", keys=3)
    return table if len(metrics) > 1 else without(table, {2})

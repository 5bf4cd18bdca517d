"""Several runs as one table: a row for each model and mode, a column for each metric, with ranks that chance cannot explain.

Exact match over all steps leads. Metrics that may not be compared have separate columns: by benchmark, steps, overlay, protocol
and metric. Modes share a column in separate rows, and ranks are within a mode. Published tables are shown next to the runs'
metrics (:mod:`guieval.reports.leaderboards.references`). :mod:`guieval.reports.leaderboards.formats` writes a board.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path

import numpy as np

from guieval.errors import UsageError
from guieval.evaluation import get_protocol
from guieval.journal import RunFolder
from guieval.journal.repeats import FOLDER, Repeats, grouped
from guieval.journal.run_files import Manifest, setup_line
from guieval.metrics.breakdown import rows_by
from guieval.metrics.columns import RunColumns
from guieval.metrics.intervals import Terms
from guieval.metrics.leading import Leading, leading
from guieval.metrics.measured import SHARE
from guieval.metrics.of_group import OfGroup
from guieval.metrics.paired import holm_pairs, ranks
from guieval.metrics.repeats import differences, in_order, measured
from guieval.metrics.summary import COVERAGE_NEEDED
from guieval.reports.cut_short import cut_short, judged_with_own, unanswered_of
from guieval.reports.leaderboards.board import Board, BoardColumn, BoardRow, Cell, RunPair, merit
from guieval.reports.leaderboards.published_results import ResultTable
from guieval.reports.leaderboards.references import with_references
from guieval.reports.unlike import unlike_labels
from guieval.running.costs import AnyPrice, Price, mean_spending, price_of_run, spending

_LOW = f"coverage is below {100 * COVERAGE_NEEDED:.0f} %"


@dataclass(frozen=True)
class _Run:
    directory: Path
    manifest: Manifest
    columns: RunColumns
    notes: tuple[str, ...]
    steps: str
    price: AnyPrice | None

    @property
    def title(self) -> str:
        """Which steps these are, in short; earlier versions did not write it down."""
        return "" if self.manifest.selection is None else self.manifest.selection.title


@dataclass(frozen=True)
class _RepeatedModel:
    """The runs of a model that are repeats of one another, or its only run."""

    repeats: Repeats
    runs: tuple[_Run, ...]

    @property
    def first(self) -> _Run:
        return self.runs[0]


def leaderboard(
    directories: Sequence[Path],
    protocols: Sequence[str] | None = None,
    references: Sequence[ResultTable] = (),
    *,
    anyway: bool = False,
    prices: Sequence[Price] = (),
    by: Sequence[str] = (),
) -> Board:
    """Score every run and put the metrics into one table, those of repeats as their mean.

    ``by``: labels, of whose groups there is a column each after the first metric, in place of the other metrics.
    ``protocols``: names; ``None``: each run's own; ``all`` among them: every one of the run's data set. ``prices`` come before
    those that the runs recorded. Raises :class:`guieval.errors.UsageError` for a directory without a run, for an unknown
    protocol, and, without ``anyway``, for runs of one column whose labels differ; with it a note names the steps.
    """
    groups = grouped(directories)
    scored = [[_scored(directory, protocols, prices) for directory in each.directories] for each in groups]
    answered = [tuple(run for run in own if run.columns.answered) for own in scored]
    models = [
        _RepeatedModel(each.only([run.directory for run in own]), own)
        for each, own in zip(groups, answered, strict=True)
        if own
    ]
    runs = [run for model in models for run in model.runs]
    if not runs:
        raise UsageError("no step of these runs was answered, so there are no metrics to show")
    unlike = list(_unlike(runs))
    if unlike and not anyway:
        raise UsageError(f"{unlike[0]}; --anyway puts them into one table")
    cells = [
        {
            (column := _column(model.first, name, metric)): _cell(model, name, metric, column)
            for name in model.first.columns.judged
            for metric in _metrics(model.first.columns, name, by)
        }
        for model in models
    ]
    pairs = tuple(_rank(models, cells, by))
    columns = tuple(dict.fromkeys(column for own in cells for column in own))
    rows = tuple(_rows(models, cells, columns))
    left_out = [run.directory for own in scored for run in own if not run.columns.answered]
    notes = [f"the run {str(each)!r} is left out: no step of it was answered" for each in left_out]
    notes += [f"unlike labels, ranked anyway: {each}" for each in unlike]
    short, marked = _merged(models)
    notes += [*_notes(models, rows, columns), *short, *marked]
    return with_references(Board(columns, rows, (), (), tuple(notes), tuple(marked), pairs), references)


def _scored(directory: Path, protocols: Sequence[str] | None, prices: Sequence[Price]) -> _Run:
    answers, names = judged_with_own(directory, protocols)
    columns = answers.columns(protocols=names)
    folder = RunFolder(directory)
    notes = (*answers.notes, *cut_short(answers, names))
    return _Run(directory, folder.manifest, columns, notes, folder.planned_digest[:12], price_of_run(folder, prices))


def _unlike(runs: Sequence[_Run]) -> Iterator[str]:
    """How the labels of runs over the same steps differ from those of the first of them."""
    firsts: dict[tuple[str, str, str], _Run] = {}
    for run in runs:
        overlay = "" if run.manifest.overlay is None else run.manifest.overlay.sha256
        first = firsts.setdefault((run.columns.benchmark, run.steps, overlay), run)
        order, reordered = (sorted(range(len(each.columns)), key=each.columns.key_of) for each in (first, run))
        reasons = unlike_labels(first.columns.only(np.array(order)), run.columns.only(np.array(reordered)))
        if reasons:
            yield f"the labels of {str(first.directory)!r} and {str(run.directory)!r} differ: {'; '.join(reasons)}"


def _column(run: _Run, protocol: str, metric: Leading) -> BoardColumn:
    columns = run.columns
    return BoardColumn(
        benchmark=columns.benchmark,
        steps=run.steps,
        overlay="" if run.manifest.overlay is None else run.manifest.overlay.sha256[:12],
        protocol=protocol,
        metric=metric.name,
        of=metric.of,
        unit=metric.unit,
        better=metric.better,
        dataset=columns.dataset,
        selection=run.title,
        row=columns.unit,
        step_count=len(columns),
        episode_count=len(columns.episodes),
        published_set=get_protocol(protocol).sample_sets.get(columns.dataset),
    )


def _metrics(columns: RunColumns, protocol: str, by: Sequence[str]) -> list[Leading]:
    """The metrics of the columns; with ``by`` the first one, of all rows and of each group."""
    metrics = leading(get_protocol(protocol), columns.unit)
    return [metrics[0], *(OfGroup(metrics[0], tuple(by), labels) for labels in rows_by(columns, by))] if by else metrics


def _cell(model: _RepeatedModel, protocol: str, metric: Leading, column: BoardColumn) -> Cell:
    judged = [(run.columns, run.columns.judged[protocol]) for run in model.runs]
    ends = [columns.ends(own) for columns, own in judged]
    coverage = [share for columns, own in judged if (share := columns.coverage(own).value) is not None]
    spent = [spending(columns, own, model.first.price) for columns, own in judged]
    return Cell(
        measured=measured(metric, judged),
        rank=None,
        coverage=math.fsum(coverage) / len(coverage) if coverage else None,
        ends={end: sum(each[end] for each in ends) for end in ends[0]},
        directory=model.repeats.name,
        # The selection's title is exactly the set's name if no limit or subset reduces the set.
        published_steps=None if column.published_set is None else model.first.title == column.published_set,
        spending=mean_spending([each for each in spent if each is not None]),
    )


def _rank(models: Sequence[_RepeatedModel], cells: Sequence[dict[BoardColumn, Cell]], by: Sequence[str]) -> Iterator[RunPair]:
    """Put ranks into the cells, column by column and mode by mode, if at least two models have the metric.

    Yields the comparisons of all pairs.
    """
    comparable: defaultdict[tuple[BoardColumn, str], list[int]] = defaultdict(list)
    for place, (model, own) in enumerate(zip(models, cells, strict=True)):
        for column, cell in own.items():
            if cell.measured.value is not None:
                comparable[column, model.first.columns.mode].append(place)
    for (column, mode), places in comparable.items():
        if len(places) < 2:
            continue
        terms = [[_terms(run.columns, column, by) for run in models[place].runs] for place in places]
        table = differences(terms, share=column.unit == SHARE)
        values = [merit(cells[place][column]) for place in places]
        p_values = holm_pairs(table)
        for place, rank in zip(places, ranks(values, p_values), strict=True):
            cells[place][column] = replace(cells[place][column], rank=rank)
        for i, j in combinations(range(len(places)), 2):
            first, second = (cells[places[each]][column].directory for each in (i, j))
            yield RunPair(column, mode, first, second, table[i][j], float(p_values[i, j]))


def _terms(columns: RunColumns, column: BoardColumn, by: Sequence[str]) -> Terms:
    """A metric's terms with the episodes in the same order for all runs."""
    metric = next(each for each in _metrics(columns, column.protocol, by) if each.name == column.metric)
    return in_order(columns, metric.terms(columns, columns.judged[column.protocol]))


def _rows(
    models: Sequence[_RepeatedModel], cells: Sequence[Mapping[BoardColumn, Cell]], columns: Sequence[BoardColumn]
) -> Iterator[BoardRow]:
    """Runs of one model, mode and scaffold share a row if no two have the same column; the others get rows of their own."""
    by_name: defaultdict[tuple[str, str, bool | None, str], list[dict[BoardColumn, Cell]]] = defaultdict(list)
    for run, own in ((model.first, own) for model, own in zip(models, cells, strict=True)):
        rows = by_name[run.columns.model, run.columns.mode, run.manifest.thinking, run.columns.scaffold]
        row = next((row for row in rows if not row.keys() & own.keys()), None)
        if row is None:
            rows.append(dict(own))
        else:
            row.update(own)
    scaffolds: defaultdict[tuple[str, str, bool | None], int] = defaultdict(int)
    for model, mode, thinking, _ in by_name:
        scaffolds[model, mode, thinking] += 1
    every = [(model.repeats.name, model.first.directory) for model in models]
    ends = [directory.name for _, directory in every]
    folders = {
        name: directory.name if ends.count(directory.name) == 1 and name == str(directory) else name
        for name, directory in every
    }
    for (model, mode, thinking, scaffold), rows in by_name.items():
        for row in rows:
            directories = ", ".join(dict.fromkeys(folders[row[column].directory] for column in columns if column in row))
            notes = [scaffold] * (scaffolds[model, mode, thinking] > 1) + [directories] * (len(rows) > 1)
            yield BoardRow(model, mode, thinking, scaffold, ", ".join(notes), tuple(map(row.get, columns)))


def _notes(models: Sequence[_RepeatedModel], rows: Sequence[BoardRow], columns: Sequence[BoardColumn]) -> Iterator[str]:
    runs, firsts = [run for model in models for run in model.runs], [model.first for model in models]
    yield from _repeats(models)
    editions: defaultdict[str, list[str]] = defaultdict(list)
    for line in dict.fromkeys(run.columns.edition_line for run in runs if run.columns.edition_line):
        edition, _, digest = line.removesuffix(")").partition(" (digest ")
        editions[edition].append(digest)
    for edition, digests in editions.items():
        yield f"labels: {edition}" + (f" (digest {', '.join(digests)})" if any(digests) else "")
    scaffolds: defaultdict[str, list[str]] = defaultdict(list)
    for row in rows:
        scaffolds[row.scaffold].append(row.model)
    named = (f"{scaffold} ({', '.join(dict.fromkeys(of))})" for scaffold, of in scaffolds.items())
    yield f"scaffold: {', '.join(scaffolds if len(scaffolds) == 1 else named)}"
    setups: defaultdict[str, list[_Run]] = defaultdict(list)
    for model in models:
        setups[setup_line([run.manifest for run in model.runs], request=False)].append(model.first)
    for setup, alike in setups.items():
        yield f"set-up: {setup}" if len(setups) == 1 else f"set-up of {_named(alike, firsts)}: {setup}"
    by_benchmark: defaultdict[str, dict[tuple[str, str], BoardColumn]] = defaultdict(dict)
    for column in columns:
        by_benchmark[column.benchmark].setdefault((column.steps, column.overlay), column)
    for benchmark, kinds in by_benchmark.items():
        if len({(column.selection, column.step_count) for column in kinds.values()}) < len(kinds):  # else their titles say it
            parts = "; ".join(column.over for column in kinds.values())
            yield f"runs on {benchmark} differ in their steps, or in accepted actions, and so share no column: {parts}"


def _merged(models: Sequence[_RepeatedModel]) -> tuple[list[str], list[str]]:
    """What a reader must know of runs, each note once with its runs; second those that a table marks in headings and cells."""
    merged: defaultdict[str, list[_Run]] = defaultdict(list)
    marks = {_LOW}
    for model in models:
        for run in model.runs:
            marks |= {get_protocol(name).foreign_note(run.columns.dataset) for name in run.columns.judged}
        for note in dict.fromkeys(note for run in model.runs for note in _shortcomings(run)):
            merged[note].append(model.first)
    firsts = [model.first for model in models]
    said = {note: f"{note}: {_named(alike, firsts)}" for note, alike in merged.items()}
    return [said[note] for note in said if note not in marks], [said[note] for note in said if note in marks]


def _named(some: Sequence[_Run], runs: Sequence[_Run]) -> str:
    """Some of the runs, of repeats the first: a model of which these are all, of others the mode, benchmark and folder."""
    fields = [field for field in ("mode", "benchmark") if len({getattr(run.columns, field) for run in runs}) > 1]
    for name in fields:
        values = {getattr(run.columns, name) for run in some}
        if len(values) == 1 and len(some) == sum(getattr(run.columns, name) in values for run in runs) > 1:
            return f"all on {values.pop()}" if name == "benchmark" else f"all {values.pop()}"
    parts = []
    for model in dict.fromkeys(run.columns.model for run in some):
        own, alike = ([run for run in of if run.columns.model == model] for of in (runs, some))
        told = [" on ".join(getattr(run.columns, field) for field in fields) for run in own]
        named = [
            name if told.count(name) == 1 else _folder(run.directory)
            for name, run in zip(told, own, strict=True)
            if run in alike
        ]
        parts.append(model if len(alike) == len(own) else f"{model} ({', '.join(named)})")
    return ", ".join(parts)


def _folder(directory: Path) -> str:
    """A run by its directory, a repeat by that of all of them."""
    return (directory.parent if FOLDER.fullmatch(directory.name) else directory).name


def _repeats(models: Sequence[_RepeatedModel]) -> Iterator[str]:
    """Of which repeats the rows are means, and how to read them; those of which repeats are absent first."""
    lines: defaultdict[str, list[_Run]] = defaultdict(list)
    for model in models:
        if model.repeats.several:
            line = model.repeats.line
            line += ", sd between them" * (not line.startswith("only"))
            lines[line].append(model.first)
    firsts = [model.first for model in models]
    for line in sorted(lines, key=lambda line: not line.startswith("only")):
        yield f"each model: {line}" if len(lines[line]) == len(models) else f"{_named(lines[line], firsts)}: {line}"


def _shortcomings(run: _Run) -> Iterator[str]:
    """What a reader must know of a run, runs share a note, for tables have the numbers."""
    columns = run.columns
    yield from run.notes
    if columns.stop == "first-mismatch":
        yield "metrics of steps are over those that a run reached"
    if unanswered_of(columns, run.manifest.protocol.name):
        yield "incomplete (`guieval run --resume RUN` asks again)"
    spent = spending(columns, next(iter(columns.judged.values())), None)
    if spent is not None and spent.steps < spent.reached:
        yield "tokens are means over the steps with known tokens"
    coverage = columns.coverage(next(iter(columns.judged.values()))).value
    if coverage is not None and coverage < COVERAGE_NEEDED:
        yield _LOW

"""The results of a campaign's trainings: their metrics next to the printed ones, with GPU hours, as a table and as JSON.

A printed row belongs to the training that it names (``training`` in ``configs/results``). ``trainings.jsonl`` in the campaign's
folder has every metric of every training with the settings in which it differs from the others; ``guieval study fit-scaling``
and ``guieval plot study`` read it (:mod:`guieval.studies.trained`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from guieval.journal import write_atomically
from guieval.metrics import Measured
from guieval.metrics.measured import SHARE
from guieval.reports.campaign import board_of_campaign
from guieval.reports.leaderboards.board import Board
from guieval.reports.leaderboards.published_results import ResultColumn, ResultTable, get_results
from guieval.reports.tables.table import Cell, Number, Row, Table, columns
from guieval.running.campaign import Campaign, PlannedRun
from guieval.studies.trained import RESULTS, TrainedModel
from guieval.training.trainings import PlannedTraining, hours, spent


class _Own(NamedTuple):
    """A metric of a training's runs of one benchmark and mode (``rest``)."""

    benchmark: str
    protocol: str
    metric: str
    mode: str
    rest: str
    measured: Measured


def study_table(read: Campaign, runs: Sequence[PlannedRun], folder: Path, *, anyway: bool) -> Table:
    """A row for each model: its metrics, in brackets the printed ones, and the GPU hours of its training.

    Of ``references`` every column is shown, else the campaign's ``metrics``; of a benchmark and mode without either the first
    one. The results are also written to ``trainings.jsonl`` in ``folder``.
    """
    board = board_of_campaign([run.directory for run in runs], read.protocols, (), None, anyway=anyway)
    own: dict[str, list[_Own]] = {run.model: [] for run in runs}
    for model, found in _metrics(board, runs) if board is not None else ():
        own[model].append(found)
    trainings = {run.model: run.training for run in runs}
    _write(folder / RESULTS, own, trainings)
    tables = [get_results(name) for name in read.references]
    heads, cells = _against(tables, own) if tables else _alone(read.metrics, own)
    rows: list[Row] = [(model, *cells[model], _hours(trainings[model])) for model in own]
    notes = [f"in brackets: as printed in {', '.join(table.source for table in tables)}"] * bool(tables)
    notes += ["GPU hours: seconds of the optimiser steps times cards"] * any(_recorded(each) for each in trainings.values())
    return Table("Trainings", columns("model", *heads, "GPU hours", keys=1), tuple(rows), tuple(notes), "trainings", 1)


def _metrics(board: Board, runs: Sequence[PlannedRun]) -> Iterator[tuple[str, _Own]]:
    placed = {str(place): run for run in runs for place in (run.directory.parent, run.directory)}
    for row in board.rows:
        for column, cell in zip(board.columns, row.cells, strict=True):
            if cell is not None and (run := placed.get(cell.directory)) is not None:
                yield run.model, _Own(column.benchmark, column.protocol, column.metric, row.mode, run.rest, cell.measured)


def _against(tables: Sequence[ResultTable], own: Mapping[str, Sequence[_Own]]) -> tuple[list[str], dict[str, list[Cell]]]:
    """Headings, and the cells of each model, of every column of published tables."""
    shown = [(table, place, column) for table in tables for place, column in enumerate(table.columns)]
    heads = [f"{column.title} (%)" if "in %" in column.meaning else column.title for _, _, column in shown]
    cells = {
        model: [_cell(found, column, _printed(table, model, place)) for table, place, column in shown]
        for model, found in own.items()
    }
    rests = {each.rest for found in own.values() for each in found for _, _, column in shown if _is(each, column)}
    others = {model: [each for each in found if each.rest not in rests] for model, found in own.items()}
    more_heads, more = _alone(None, others)
    return [*heads, *more_heads], {model: [*cells[model], *more[model]] for model in own}


def _printed(table: ResultTable, model: str, place: int) -> float | None:
    return next((row.values[place] for row in table.rows if model in (row.training, row.checkpoint)), None)


def _is(each: _Own, column: ResultColumn) -> bool:
    """Whether a column is of this metric; one that names none is of the benchmark that the campaign calls as the column."""
    if column.benchmark is None:
        return each.rest == f"{column.name}-{each.mode}"
    return each[:4] == (column.benchmark, column.protocol, column.metric, column.mode)


def _cell(found: Sequence[_Own], column: ResultColumn, printed: float | None) -> Cell:
    measured = next((each.measured for each in found if _is(each, column)), Measured(None))
    if printed is None and measured.value is None:
        return None
    return Number(measured, unit=False, mark="" if printed is None else f"({printed:.{column.decimals}f})")


def _alone(metrics: str | None, own: Mapping[str, Sequence[_Own]]) -> tuple[list[str], dict[str, list[Cell]]]:
    wanted = [] if metrics is None else [name.strip() for name in metrics.split(",")]
    found = dict.fromkeys((each.rest, each.metric, each.measured.unit) for every in own.values() for each in every)
    first: dict[str, str] = {}
    for rest, metric, _ in found:
        first.setdefault(rest, metric)
    shown = [key for key in found if (key[1] in wanted if wanted else first[key[0]] == key[1])]
    heads = [f"{rest}\n{metric} ({'%' if unit == SHARE else unit})" for rest, metric, unit in shown]
    cells: dict[str, list[Cell]] = {}
    for model, every in own.items():
        by_key = {(each.rest, each.metric, each.measured.unit): each.measured for each in every}
        cells[model] = [Number(by_key[key], unit=False) if key in by_key else None for key in shown]
    return heads, cells


def _recorded(training: PlannedTraining | None) -> bool:
    return training is not None and spent(training.directory) is not None


def _hours(training: PlannedTraining | None) -> str | None:
    if training is None:
        return None
    took = spent(training.directory)
    known = [] if took is None else [hours(took.hours) + (" (CPU)" if took.card == "cpu" else "")]
    return " ".join([*(known or ["-"]), *([] if training.gpu_hours is None else [f"({training.gpu_hours:g})"])])


def _write(file: Path, own: Mapping[str, Sequence[_Own]], trainings: Mapping[str, PlannedTraining | None]) -> None:
    """Write the results of the trainings that have some."""
    lines = []
    for model, found in own.items():
        training = trainings[model]
        if training is None or not found:
            continue
        several = len({each.rest for each in found}) > 1
        metrics = {
            f"{each.rest}: {each.metric}" if several else each.metric: each.measured.value
            * (100 if each.measured.unit == SHARE else 1)
            for each in found
            if each.measured.value is not None
        }
        took = spent(training.directory)
        gpu_hours = None if took is None else took.hours
        lines.append(TrainedModel(model, dict(training.varied), metrics, gpu_hours))
    if lines:
        write_atomically(file, "".join(json.dumps(each._asdict()) + "\n" for each in lines))

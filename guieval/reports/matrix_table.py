"""One prediction under every protocol, as a table: a column for each protocol, with exact match over all steps and its own
metrics.

Each has its interval, and what it is over in a note. Coverage and the counts of how planned steps ended follow. The steps that
protocols judge differently go to a file.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from guieval.evaluation.protocol import EXACT_MATCH, TYPE_MATCH
from guieval.metrics.columns import ENDS, NOT_REACHED, End, RunColumns
from guieval.metrics.leading import denominators, leading
from guieval.metrics.protocol_metric import ProtocolMetric
from guieval.reports.score_tables import breakdown_cells, sample_metrics
from guieval.reports.tables.records import check_ending, write_file
from guieval.reports.tables.table import Number, Row, Table, columns, side_by_side
from guieval.scoring.matrix import Disagreement, JudgedAnswers, Placed, agreeing, disputed
from guieval.steps import StepKey


def _foreign(placed: Placed) -> str:
    """The protocol's mark if its source does not evaluate such data."""
    return placed.protocol.foreign_mark([placed.columns.dataset])


def matrix_table(placed: Sequence[Placed]) -> Table:
    """The protocols of :func:`guieval.scoring.matrix.on_own_sets` side by side."""
    coverage: Row = ("coverage", *(Number(column.columns.coverage(column.judged), show_n=True) for column in placed))
    names = dict.fromkeys(name for column in placed for name in column.metrics)
    values: list[Row] = [(name, *(_number(column, name) for column in placed)) for name in names]
    rows = (*values, (), coverage, (), *_end_rows(placed))
    notes = tuple(denominators(each.protocol.name, {name: own.of for name, own in each.metrics.items()}) for each in placed)
    heads = ("\n".join(filter(None, (column.protocol.name, _foreign(column), column.part.title))) for column in placed)
    return side_by_side("Exact match over all steps, and every protocol's own metrics", heads, rows, notes, "protocols")


def glance_table(run: RunColumns, placed: Sequence[Placed]) -> Table:
    """Every protocol in one row: exact match and type match on the same steps, and its source's leading metric on its own.

    The first two are over all steps of ``run`` that the mode reaches, unjudged ones as wrong, so that only the rules differ.
    """
    rows: list[Row] = []
    for column in placed:
        judged = run.judged[column.protocol.name]
        shares = [ProtocolMetric(each).measure(run, judged, intervals=False) for each in (EXACT_MATCH, TYPE_MATCH)]
        first = column.protocol.metrics[0].name
        own = Number(replace(column.metrics[first], interval=None))
        name = " ".join(filter(None, (column.protocol.name, _foreign(column))))
        rows.append((name, *(Number(each, unit=False) for each in shares), f"{first} {own}"))
    names = ("protocol", "exact match (%)", "type match (%)", "its own first metric")
    return Table("At a glance", columns(*names, folds=names[:1], spare=names[-1:]), tuple(rows), name="glance")


def step_lines(placed: Sequence[Placed]) -> list[str]:
    """Which steps each protocol is on, in one line for each set of steps."""
    held: defaultdict[str, list[str]] = defaultdict(list)
    lacking: defaultdict[str, list[str]] = defaultdict(list)
    others: defaultdict[str, list[str]] = defaultdict(list)
    for column in placed:
        name = column.protocol.name
        (held if column.held else others)[column.part.text].append(name)
        if not column.held and column.sample_set is not None:
            lacking[column.sample_set].append(name)
    lines = [f"data:     {text}: {', '.join(names)}" for text, names in (*others.items(), *held.items())]
    if len(lines) == 1:
        lines = [f"data:     {text}" for text in (*others, *held)]
    if lacking:
        missing = "; ".join(f"{name} ({', '.join(names)})" for name, names in lacking.items())
        lines.append(f"note:     not on their own sample set, which is not all here: {missing}")
    return lines


def unmeasured_lines(placed: Sequence[Placed]) -> list[str]:
    """How many steps are missing under which protocols; empty if none is."""
    found: defaultdict[tuple[int, int, int], list[str]] = defaultdict(list)
    for column in placed:
        if column.judged.unmeasured.any():
            counts = column.judged.counts
            found[counts["infrastructure_failure"], counts["not_run"], len(column.columns)].append(column.protocol.name)
    return [
        f"incomplete: {failed + missing:,} of {planned:,} steps are missing ({failed:,} failed, {missing:,} unrecorded) "
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


def matrix_json(answers: JudgedAnswers, placed: Sequence[Placed], by: Sequence[str] = ()) -> dict[str, Any]:
    """The whole matrix as plain values, by protocol: each metric with its n and its interval, and how the steps ended.

    ``by`` names breakdowns to add (:mod:`guieval.reports.score_tables`).
    """
    return {
        "title": answers.answered.title,
        "benchmark": answers.answered.benchmark,
        "dataset": answers.answered.dataset,
        "model": answers.answered.model,
        "mode": answers.answered.mode.label,
        "own_protocol": answers.answered.protocol,
        "overlays": list(answers.answered.overlays),
        "protocols": [_as_json(column, by) for column in placed],
    }


def write_disagreements(file: Path, rows: Iterable[Disagreement], protocols: Sequence[str]) -> int:
    """Write every row in the form that the file's ending names, and return the number of rows.

    Both forms hold the step's name, reference and prediction as unified actions, and for each of ``protocols`` how the step
    ended and why. Raises :class:`UsageError` for another ending, and when the file cannot be written.
    """
    as_csv = check_ending(file)
    names = [*StepKey._fields, "reference", "prediction", *protocols, *(f"{name}: reason" for name in protocols)]
    values = (_disagreement(row, protocols, flat=as_csv) for row in rows)
    return write_file(file, values, names, json_in=("reference", "prediction"), end="\r\n")


def _disagreement(row: Disagreement, protocols: Sequence[str], *, flat: bool) -> dict[str, Any]:
    prediction = row.prediction and row.prediction.model_dump(mode="json")
    step = {**row.key._asdict(), "reference": row.reference.model_dump(mode="json"), "prediction": prediction}
    if not flat:
        return {**step, "verdicts": dict(row.verdicts), "reasons": dict(row.reasons)}
    verdicts = {name: row.verdicts[name] for name in protocols}
    return {**step, **verdicts, **{f"{name}: reason": row.reasons[name] for name in protocols}}


def _as_json(placed: Placed, by: Sequence[str]) -> dict[str, Any]:
    return {
        "name": placed.protocol.name,
        "version": placed.protocol.version,
        "written_for_this_data": not _foreign(placed),
        "steps": placed.part.text,
        "sample_set": placed.sample_set,
        "on_own_sample_set": placed.held,
        "metrics": placed.metrics,
        "meanings": {each.name: f"{each.meaning}; of {each.of}" for each in leading(placed.protocol)},
        "samples": {each.name: each.measured for each in sample_metrics(placed.columns, placed.protocol.name)},
        "breakdowns": {name: breakdown_cells(placed.columns, placed.protocol.name, name) for name in by},
        "coverage": placed.columns.coverage(placed.judged),
        "verdicts": {**placed.judged.counts, "planned": len(placed.columns)},
    }


def _number(placed: Placed, name: str) -> Number | None:
    found = placed.metrics.get(name)
    return None if found is None else Number(found, show_n=True)


def _end_rows(placed: Sequence[Placed]) -> Iterator[Row]:
    counts = [column.judged.counts for column in placed]
    names: list[End] = [*ENDS[:NOT_REACHED], "not_run"]
    if any(count["not_reached"] for count in counts):
        names.append("not_reached")
    for name in names:
        yield (name.replace("_", " "), *(each[name] for each in counts))
    yield ("planned steps", *(len(each.columns) for each in placed))

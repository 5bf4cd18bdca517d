"""``guieval study judges``: how far judges agree with people, and what success rates of a run that makes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from guieval.cli.settings import RUN, Given, path_argument, path_option
from guieval.cli.tables import JSON, print_json, say, show
from guieval.errors import UsageError
from guieval.journal import RunFolder
from guieval.journal.run_folders import one_run
from guieval.metrics.measured import Measured
from guieval.reports.leaderboards.published_results import ResultTable, get_results
from guieval.reports.tables.table import NOTHING, Cell, Column, Number, Table, bare
from guieval.running.costs import describe
from guieval.studies.commands.judge import (
    MAX_TOKENS,
    REPEATS,
    SERVER,
    TEMPERATURE,
    JudgeVerdicts,
    asked,
    cost_of,
    verdicts_of,
)
from guieval.studies.judges.agreement import Agreement, LabelsAndVerdicts, agreement, by, length, self_consistency, share
from guieval.studies.judges.asking import apply, read_judgements
from guieval.studies.judges.cases import Case, of_run
from guieval.studies.judges.correction import corrected
from guieval.studies.judges.datasets import read_labelled
from guieval.studies.judges.judge import FOLDER, RULES, AnyJudge, Rule, list_judges, load_judge

GROUPS = {"steps": length, "platform": lambda case: case.platform, "agent": lambda case: case.agent}
"""What trajectories are grouped by."""
JUDGE = Column("judge", right=False, folds=True)


class OnRun(NamedTuple):
    """The success rates of a run under a judge: as it says, and corrected for its errors on the data set."""

    judge: str
    judged: Measured
    corrected: Measured


class ComparedJudge(NamedTuple):
    """A judge against the labels, of all trajectories and ``by`` their groups, against itself, and what it cost."""

    verdicts: JudgeVerdicts
    agreement: Agreement
    itself: Measured | None
    cost: dict[str, object] | None
    by: dict[str, dict[str, Agreement]]

    def plain(self) -> dict[str, Any]:
        """What ``--json`` prints."""
        digest = next((one.judge for one in self.verdicts.found.values()), None)
        of_groups = {name: {of: each._asdict() for of, each in parts.items()} for name, parts in self.by.items()}
        about = {"version": self.verdicts.judge.version, "digest": digest, "cost": self.cost}
        return {**self.agreement._asdict(), "self_consistency": self.itself, **about, "by": of_groups}


@RUN.options(*SERVER)
def judges(
    settings: Given,
    dataset: Annotated[Path, path_argument("DATASET", "A folder of trajectories with people's labels, or an online run.")],
    judge: Annotated[
        list[str] | None,
        typer.Option(help="A judge; may be repeated (default: the rules, and all judges with verdicts in the folder)."),
    ] = None,
    run: Annotated[Path | None, path_option("An online run: its success rates under every judge.", metavar="RUN")] = None,
    reference: Annotated[
        list[str] | None,
        typer.Option(
            help="A published table to compare with, e.g. agentrewardbench-judges; may be repeated. A .yaml path: your own."
        ),
    ] = None,
    out: Annotated[Path | None, path_option("The folder of the verdicts (default: DATASET/judges).")] = None,
    repeats: REPEATS = 1,
    temperature: TEMPERATURE = None,
    max_tokens: MAX_TOKENS = None,
    json: JSON = False,
) -> None:
    """Compare judges with people's labels: agreement, errors, cost, and the success rates of a run under each."""
    published = [get_results(name) for name in reference or ()]
    labelled = read_labelled(dataset)
    folder = out or dataset / FOLDER
    found: list[JudgeVerdicts] = []
    for name in judge or ():
        there = [] if settings.get("base_urls") else _there(load_judge(name), folder, labelled.cases)
        found += there or [verdicts_of(asked(name, settings, temperature, max_tokens, repeats), folder, labelled.cases)]
    if not judge:
        found = [each for name in list_judges() for each in _there(load_judge(name), folder, labelled.cases)]
    groups = {name: by(labelled.cases, group) for name, group in GROUPS.items()}
    groups = {name: parts for name, parts in groups.items() if len(parts) > 1}
    compared = [_compared(each, labelled.cases, groups) for each in found]
    compared = [each for each in compared if judge or each.agreement.accuracy.n]
    rates = None if run is None else _rates(one_run(run), compared, labelled.cases)
    if json:
        matrix = None if rates is None else [each._asdict() for each in rates]
        judged = {each.verdicts.name: each.plain() for each in compared}
        print_json({"labels": labelled.title, "left_out": labelled.left_out, "judges": judged, "run": matrix})
        return
    about = f"{len(labelled.cases):,} trajectories, labels of {labelled.title}"
    show(
        _agreement(f"Agreement, {about} (95 % intervals)", compared),
        _errors(compared),
        *(_groups(name, parts, compared) for name, parts in groups.items()),
        None if rates is None else _matrix(rates, labelled.title),
        *map(_published, published),
    )
    for each in compared:
        if each.cost is not None and (sentence := describe(each.cost)):
            say(f"cost of {each.verdicts.name}: {sentence}")
    for sentence in labelled.left_out:
        say(f"note: {sentence}")


def _compared(judge: JudgeVerdicts, cases: Sequence[Case], groups: Mapping[str, Mapping[str, Sequence[Case]]]) -> ComparedJudge:
    def with_labels(some: Sequence[Case]) -> Agreement:
        return agreement(LabelsAndVerdicts.of(some, judge.found))

    of_groups = {name: {of: with_labels(some) for of, some in parts.items()} for name, parts in groups.items()}
    return ComparedJudge(judge, with_labels(cases), self_consistency(cases, judge.found), cost_of(judge), of_groups)


def _there(judge: AnyJudge, folder: Path, cases: Sequence[Case]) -> list[JudgeVerdicts]:
    """A rule's verdicts, or those of a judge's models that a folder has."""
    if isinstance(judge, Rule):
        return [JudgeVerdicts(judge, "", apply(judge, cases), folder / f"{judge.file}.jsonl")]
    read = ((file, read_judgements(file, judge)) for file in sorted(folder.glob(f"{judge.file}--*.jsonl")))
    return [JudgeVerdicts(judge, next(iter(found.values())).model, found, file) for file, found in read if found]


def _rates(run: Path, compared: Sequence[ComparedJudge], labelled: Sequence[Case]) -> list[OnRun]:
    """The success rates of a run under the judges that have verdicts on it, from the same requests as on the data set."""
    cases = of_run(run, RunFolder(run).tasks)
    if not cases:
        raise UsageError(f"{str(run)!r} has no task with an outcome")
    own = LabelsAndVerdicts.of(cases, apply(RULES["rule-own"], cases))
    rows = [OnRun("the environment", share(own, own.said), Measured(None))]
    for each in (one.verdicts for one in compared):
        for there in _there(each.judge, run / FOLDER, cases):
            same = [next(iter(part.found.values())) for part in (each, there) if part.found]
            if len({(one.judge, one.model) for one in same}) == 1:
                judged = LabelsAndVerdicts.of(cases, there.found)
                rows.append(
                    OnRun(there.name, share(judged, judged.said), corrected(judged, LabelsAndVerdicts.of(labelled, each.found)))
                )
    return rows


def _agreement(title: str, compared: Sequence[ComparedJudge]) -> Table:
    heads = ("n", "missing", "accuracy", "balanced\naccuracy", "Cohen's\nkappa", "F1 of\nsuccess", "F1 of\nfailure")
    rows: list[tuple[Cell, ...]] = []
    for each in compared:
        of = each.agreement
        cells = (of.accuracy, of.balanced, of.kappa, of.f1_success, of.f1_failure)
        rows.append((each.verdicts.name, of.accuracy.n, of.accuracy.missing, *map(_plain_number, cells)))
    notes = ("In %, but for kappa; missing are verdicts that cannot be read or were not given.",)
    return Table(title, (JUDGE, *map(Column, heads)), tuple(rows), notes=notes)


def _plain_number(of: Measured) -> Number:
    return Number(replace(of, missing=0), unit=False)


def _errors(compared: Sequence[ComparedJudge]) -> Table:
    heads = ("successes\ncalled so", "failures\ncalled so", "precision\nof success", "as judged\nminus labels", "with\nitself")
    rows: list[tuple[Cell, ...]] = []
    for each in compared:
        of = each.agreement
        cells = map(_plain_number, (of.sensitivity, of.specificity, of.precision, of.leniency))
        rows.append((each.verdicts.name, *cells, NOTHING if each.itself is None else _plain_number(each.itself)))
    return Table("Errors, in %", (JUDGE, *map(Column, heads)), tuple(rows))


def _groups(name: str, parts: Mapping[str, Sequence[Case]], compared: Sequence[ComparedJudge]) -> Table:
    columns = (Column(name, right=False), Column("n"), *(Column(each.verdicts.name) for each in compared))
    rows: list[tuple[Cell, ...]] = []
    for of, cases in parts.items():
        accuracy = (Number(each.by[name][of].accuracy, unit=False) for each in compared)
        rows.append((of or "not known", len(cases), *accuracy))
    return Table(f"Accuracy by {name}, in %", columns, tuple(rows), notes=("Kappa and F1 of each group: --json.",))


def _published(table: ResultTable) -> Table:
    """A table as it was printed."""
    columns = (Column(table.rows_are, right=False, folds=True), *(Column(each.title) for each in table.columns))
    rows: list[tuple[Cell, ...]] = []
    for row in table.rows:
        rows.append(
            (row.title, *(bare(value, f".{of.decimals}f") for of, value in zip(table.columns, row.values, strict=True)))
        )
    return Table(f"{table.short}, {table.table}: {table.caption}", columns, tuple(rows), notes=table.notes)


def _matrix(rates: Sequence[OnRun], title: str) -> Table:
    columns = (JUDGE, Column("success rate\nas judged"), Column("corrected for\nthe judge's errors"))
    rows = tuple((each.judge, Number(each.judged, unit=False), Number(each.corrected, unit=False)) for each in rates)
    notes = (
        f"Corrected by the errors on the labels of {title} (Rogan and Gladen), with the doubt of both (Lang and Reiczigel): "
        "right if a judge errs on the run as there. Judges that hardly differ from guessing have no corrected rate.",
    )
    return Table("Success rates of the run, in % (95 % intervals)", columns, rows, notes=notes)

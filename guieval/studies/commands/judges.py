"""``guieval study judges``: how far judges agree with people, and what success rates of a run that makes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from guieval.cli.settings import RUN, Given, path_argument, path_option
from guieval.cli.tables import JSON, print_json, say, show
from guieval.errors import UsageError
from guieval.journal import RunFolder
from guieval.journal.run_folders import one_run
from guieval.metrics.measured import Measured
from guieval.reports.tables.table import NOTHING, Cell, Column, Number, Table
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


@RUN.options(*SERVER)
def judges(
    settings: Given,
    dataset: Annotated[Path, path_argument("DATASET", "A folder of trajectories with people's labels, or an online run.")],
    judge: Annotated[
        list[str] | None,
        typer.Option(help="A judge; may be repeated (default: the rules, and all judges with verdicts in the folder)."),
    ] = None,
    run: Annotated[Path | None, path_option("An online run: its success rates under every judge.", metavar="RUN")] = None,
    out: Annotated[Path | None, path_option("The folder of the verdicts (default: DATASET/judges).")] = None,
    repeats: REPEATS = 1,
    temperature: TEMPERATURE = None,
    max_tokens: MAX_TOKENS = None,
    json: JSON = False,
) -> None:
    """Compare judges with people's labels: agreement, errors, cost, and the success rates of a run under each."""
    labelled = read_labelled(dataset)
    folder = out or dataset / FOLDER
    found: list[JudgeVerdicts] = []
    for name in judge or ():
        there = [] if settings.get("base_urls") else _there(load_judge(name), folder, labelled.cases)
        found += there or [verdicts_of(asked(name, settings, temperature, max_tokens, repeats), folder, labelled.cases)]
    if not judge:
        found = [each for name in list_judges() for each in _there(load_judge(name), folder, labelled.cases)]
    measured = {each.name: agreement(LabelsAndVerdicts.of(labelled.cases, each.found)) for each in found}
    found = [each for each in found if judge or measured[each.name].accuracy.n]
    itself = {each.name: self_consistency(labelled.cases, each.found) for each in found}
    costs = {each.name: cost_of(each) for each in found}
    groups = {name: by(labelled.cases, group) for name, group in GROUPS.items()}
    grouped = {name: {each.name: _grouped(parts, each) for each in found} for name, parts in groups.items() if len(parts) > 1}
    rates = None if run is None else _rates(one_run(run), found, labelled.cases)
    if json:
        overall = {
            each.name: {
                **measured[each.name]._asdict(),
                "self_consistency": itself[each.name],
                "cost": costs[each.name],
                "version": each.judge.version,
                "digest": next((one.judge for one in each.found.values()), None),
            }
            for each in found
        }
        by_group = {name: {of: _plain(parts) for of, parts in judged.items()} for name, judged in grouped.items()}
        matrix = None if rates is None else [each._asdict() for each in rates]
        print_json({"labels": labelled.title, "left_out": labelled.left_out, "judges": overall, "by": by_group, "run": matrix})
        return
    about = f"{len(labelled.cases):,} trajectories, labels of {labelled.title}"
    show(
        _agreement(f"Agreement, {about} (95 % intervals)", measured, found),
        _errors(measured, itself, found),
        *(_groups(name, groups[name], judged) for name, judged in grouped.items()),
        None if rates is None else _matrix(rates, labelled.title),
    )
    for each in found:
        if (cost := costs[each.name]) is not None and (sentence := describe(cost)):
            say(f"cost of {each.name}: {sentence}")
    for sentence in labelled.left_out:
        say(f"note: {sentence}")


def _grouped(parts: Mapping[str, Sequence[Case]], judge: JudgeVerdicts) -> dict[str, Agreement]:
    return {of: agreement(LabelsAndVerdicts.of(cases, judge.found)) for of, cases in parts.items()}


def _plain(parts: Mapping[str, Agreement]) -> dict[str, Any]:
    return {name: each._asdict() for name, each in parts.items()}


def _there(judge: AnyJudge, folder: Path, cases: Sequence[Case]) -> list[JudgeVerdicts]:
    """A rule's verdicts, or those of a judge's models that a folder has."""
    if isinstance(judge, Rule):
        return [JudgeVerdicts(judge, "", apply(judge, cases), folder / f"{judge.file}.jsonl")]
    read = ((file, read_judgements(file, judge)) for file in sorted(folder.glob(f"{judge.file}--*.jsonl")))
    return [JudgeVerdicts(judge, next(iter(found.values())).model, found, file) for file, found in read if found]


def _rates(run: Path, found: Sequence[JudgeVerdicts], labelled: Sequence[Case]) -> list[OnRun]:
    """The success rates of a run under the judges that have verdicts on it, from the same requests as on the data set."""
    cases = of_run(run, RunFolder(run).tasks)
    if not cases:
        raise UsageError(f"{str(run)!r} has no task with an outcome")
    own = LabelsAndVerdicts.of(cases, apply(RULES["rule-own"], cases))
    rows = [OnRun("the environment", share(own, own.said), Measured(None))]
    for each in found:
        for there in _there(each.judge, run / FOLDER, cases):
            same = [next(iter(part.found.values())) for part in (each, there) if part.found]
            if len({(one.judge, one.model) for one in same}) == 1:
                judged = LabelsAndVerdicts.of(cases, there.found)
                rows.append(
                    OnRun(there.name, share(judged, judged.said), corrected(judged, LabelsAndVerdicts.of(labelled, each.found)))
                )
    return rows


def _agreement(title: str, measured: Mapping[str, Agreement], found: Sequence[JudgeVerdicts]) -> Table:
    heads = ("accuracy", "balanced\naccuracy", "Cohen's\nkappa", "F1 of\nsuccess", "F1 of\nfailure")
    rows: list[tuple[Cell, ...]] = []
    for each in found:
        of = measured[each.name]
        cells = (of.accuracy, of.balanced, of.kappa, of.f1_success, of.f1_failure)
        rows.append((each.name, *(Number(cell, unit=False) for cell in cells)))
    notes = ("In %, but for kappa; verdicts that cannot be read are missing.",)
    return Table(title, (JUDGE, *map(Column, heads)), tuple(rows), notes=notes)


def _errors(measured: Mapping[str, Agreement], itself: Mapping[str, Measured | None], found: Sequence[JudgeVerdicts]) -> Table:
    heads = ("successes\ncalled so", "failures\ncalled so", "as judged\nminus labels", "with\nitself")
    rows: list[tuple[Cell, ...]] = []
    for each in found:
        of, own = measured[each.name], itself[each.name]
        cells = [Number(cell, unit=False) for cell in (of.sensitivity, of.specificity, of.leniency)]
        rows.append((each.name, *cells, NOTHING if own is None else Number(own, unit=False)))
    return Table("Errors, in %", (JUDGE, *map(Column, heads)), tuple(rows))


def _groups(name: str, parts: Mapping[str, Sequence[Case]], judged: Mapping[str, Mapping[str, Agreement]]) -> Table:
    columns = (Column(name, right=False), Column("n"), *(Column(judge) for judge in judged))
    rows: list[tuple[Cell, ...]] = []
    for of, cases in parts.items():
        accuracy = (each[of].accuracy for each in judged.values())
        rows.append((of or "not known", len(cases), *(Number(each, unit=False) for each in accuracy)))
    return Table(f"Accuracy by {name}, in %", columns, tuple(rows), notes=("Kappa and F1 of each group: --json.",))


def _matrix(rates: Sequence[OnRun], title: str) -> Table:
    columns = (JUDGE, Column("success rate\nas judged"), Column("corrected for\nthe judge's errors"))
    rows = tuple((each.judge, Number(each.judged, unit=False), Number(each.corrected, unit=False)) for each in rates)
    notes = (
        f"Corrected by the errors on the labels of {title} (Rogan and Gladen), with the doubt of both (Lang and Reiczigel): "
        "it holds if a judge errs on the run as it does there. Judges that hardly differ from guessing have no corrected rate.",
    )
    return Table("Success rates of the run, in % (95 % intervals)", columns, rows, notes=notes)

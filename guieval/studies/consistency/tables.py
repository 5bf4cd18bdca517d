"""Reasoning-execution consistency as tables: the judges, human labels, exact match, failures, and examples of these.

The forms are those of the GUIEvalKit paper's Tables 5, 6, 7, 21 and 22. The page with screenshots is
:mod:`guieval.studies.consistency.page`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from guieval.history import describe, in_words
from guieval.metrics import Measured
from guieval.metrics.measured import mean_over_episodes
from guieval.metrics.rounding import percentage
from guieval.reports.tables.table import NOTHING, Number, Row, Table, bare, columns, share
from guieval.steps import EpisodeKey
from guieval.studies.consistency.contingency import Contingency, Stratified
from guieval.studies.consistency.judging import Consistency, JudgeFinding, Majority, Trace, contingency, detection, failures

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]+")
LONGEST = 240
"""Characters of a thought in a table of words; a page and a file of steps have it whole."""
CONFOUNDED = 0.1
"""The part of the smaller by which the odds ratios over all steps and within benchmarks may differ: a usual limit."""
DIFFERENT = 0.05
"""The p-value below which the benchmarks' odds ratios are said to differ."""
_WITHIN = "within benchmarks"
MEANING = {
    "action type": "another type of action than the consensus: planning or action selection",
    "action target": "the same type with another place, text, direction or button: grounding",
    "invalid action": "no action of the unified space",
}


def tables(found: Consistency, *, undecided_as: bool | None = None) -> list[Table]:
    """All counts and rates. Undecided steps are counted separately, or as ``undecided_as``."""
    made = [_votes(found)]
    if found.labelled:
        made += [_rates(found, undecided_as), _confusion(found, undecided_as)]
    table = contingency(found.traces, undecided_as=undecided_as)
    made.append(_matches(found, table, undecided_as))
    if len(cut := _cut_by_benchmark(found, undecided_as)) == 1:
        return [*made, _association(found.match, table), _taxonomy(found)]
    within = Stratified(tuple(cut.values()))
    return [*made, _benchmarks(found, cut, table), _association(found.match, table, within), _taxonomy(found)]


def _cut_by_benchmark(found: Consistency, undecided_as: bool | None) -> dict[str, Contingency]:
    return {name: contingency(traces, undecided_as=undecided_as) for name, traces in found.by_benchmark.items()}


def examples(found: Consistency, each: int) -> list[tuple[str, Trace]]:
    """The first ``each`` inconsistent traces of every kind, in order of the judges' agreement."""
    shown: list[tuple[str, Trace]] = []
    for kind, traces in failures(found.traces).items():
        ordered = sorted(traces, key=lambda trace: -_agreement(trace.joint))
        shown += [(kind, trace) for trace in ordered[:each]]
    return shown


def example_table(found: Consistency, each: int) -> Table:
    """:func:`examples` in words, long ones cut."""
    rows = tuple(
        (str(trace.task.key), kind, *map(_cut, (in_words(trace.action), decided(trace.joint), trace.thought)))
        for kind, trace in examples(found, each)
    )
    words = ("execution", "judges' consensus", "thought")
    heads = columns("step", "failure", *words, keys=2, folds=words)
    return Table("Examples of inconsistent steps", heads, rows, name="examples", keys=2)


def consistency_json(found: Consistency, each: int, *, undecided_as: bool | None = None) -> dict[str, Any]:
    """All metrics at full precision, and the examples."""
    values: dict[str, Any] = {
        "run": str(found.run),
        "model": found.model,
        "protocol": found.protocol,
        "settings": vars(found.settings),
        "steps": {
            "judged": len(found.traces),
            "undecided": found.undecided,
            "undecided_as": undecided_as,
            "without_thought": found.without_thought,
            "not_judged": found.not_judged,
            "unknown_labels": found.unknown_labels,
        },
        "judges": [{**vars(judge), "directory": str(judge.directory)} for judge in found.judges],
        "contingency": contingency(found.traces, undecided_as=undecided_as).to_json(),
        **_strata_json(_cut_by_benchmark(found, undecided_as)),
        "failures": {kind: len(traces) for kind, traces in failures(found.traces).items()},
        "examples": [{"failure": kind, **step_row(trace, found)} for kind, trace in examples(found, each)],
    }
    if found.labelled:
        values["detection"] = {
            "together": detection(found.traces, undecided_as=undecided_as).to_json(),
            "judges": {
                judge.title: detection(found.traces, place, undecided_as=undecided_as).to_json()
                for place, judge in enumerate(found.judges)
            },
        }
    return values


def _strata_json(cut: Mapping[str, Contingency]) -> dict[str, Any]:
    """The benchmarks' tables and what holds within them, if there are several."""
    if len(cut) == 1:
        return {}
    within = Stratified(tuple(cut.values())).to_json()
    return {"benchmarks": {name: table.to_json() for name, table in cut.items()}, "within_benchmarks": within}


def step_row(trace: Trace, found: Consistency) -> dict[str, Any]:
    """A trace as one line of a file; its ``consistent`` column is the human label, which a reader can fill in."""
    joint = trace.joint
    names = {True: "consistent", False: "inconsistent", None: "undecided"}
    return {
        **trace.task.key._asdict(),
        "consistent": trace.human,
        "judged": names[joint.consistent],
        "failure": joint.failure,
        "exact_match": trace.exact,
        "execution": None if trace.action is None else trace.action.model_dump(mode="json"),
        "consensus": joint.decision.prototype.model_dump(mode="json") if isinstance(joint.decision, Majority) else None,
        "abstention": None if isinstance(joint.decision, Majority) else joint.decision,
        "judges": {judge.title: names[each.consistent] for judge, each in zip(found.judges, trace.judges, strict=True)},
        "thought": trace.thought,
    }


def decided(finding: JudgeFinding) -> str:
    """A decision in plain words, with its votes."""
    if isinstance(finding.decision, Majority):
        return f"{describe(finding.decision.prototype)} ({finding.decision.votes} of {finding.decision.of})"
    return f"none: {finding.decision}"


def _cut(text: str) -> str:
    line = " ".join(_CONTROL.sub(" ", text).split())  # a thought may contain anything, even terminal commands
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 3]}..."


def _agreement(finding: JudgeFinding) -> float:
    return finding.decision.votes / finding.decision.of if isinstance(finding.decision, Majority) else 0.0


def _votes(found: Consistency) -> Table:
    rows: list[Row] = []
    for place, judge in enumerate(found.judges):
        findings = [trace.judges[place] for trace in found.traces]
        counts = (judge.steps, judge.executions, judge.without_decision, judge.failed)
        rows.append((judge.title, *counts, *_counts(findings)))
    joint = _counts([trace.joint for trace in found.traces])
    rows.append(("all together", len(found.traces), None, None, None, *joint))
    notes = [f"{len(found.traces):,} reasoning traces of {found.model}, judged under {found.settings.describe()}"]
    if found.without_thought:
        notes.append(f"{found.without_thought:,} answered steps have no thought, so there is nothing to judge")
    if found.not_judged:
        notes.append(f"{found.not_judged:,} traces were not executed by any judge")
    if found.unknown_labels:
        notes.append(f"{found.unknown_labels:,} human labels are of steps that are not judged here")
    header = ("judge", "steps", "executions", "without action", "failed", "consistent", "inconsistent", "undecided")
    return Table("Judges", columns(*header), tuple(rows), tuple(notes), "judges")


def _counts(findings: Sequence[JudgeFinding]) -> tuple[int, ...]:
    return tuple(sum(finding.consistent is kind for finding in findings) for kind in (True, False, None))


def _rates(found: Consistency, undecided_as: bool | None) -> Table:
    rows: list[Row] = []
    places: list[tuple[str, int | None]] = [(judge.title, place) for place, judge in enumerate(found.judges)]
    for name, place in [*places, ("two-stage voting", None)]:
        rates = detection(found.traces, place, undecided_as=undecided_as)
        three = (rates.accuracy, rates.true_positive_rate, rates.true_negative_rate)
        rows.append((name, *(Number(each, unit=False) for each in three), rates.accuracy.n, rates.undecided))
    header = columns("voting", "accuracy", "TPR", "TNR", "steps", "undecided")
    notes = ("in percent, with Wilson's 95 % interval; positive is consistent; undecided steps are in no rate",)
    return Table("Against human labels", header, tuple(rows), notes, "detection")


def _confusion(found: Consistency, undecided_as: bool | None) -> Table:
    each = detection(found.traces, undecided_as=undecided_as)
    labelled = [trace for trace in found.traces if trace.human is not None]
    rows = []
    for name, human, cells in (
        ("consistent", True, (each.true_positive, each.false_negative)),
        ("inconsistent", False, (each.false_positive, each.true_negative)),
    ):
        total = sum(trace.human is human for trace in labelled)
        rows.append((name, *cells, total - sum(cells), total))
    header = columns("human label", "judged consistent", "judged inconsistent", "undecided", "total")
    return Table("Two-stage voting against human labels", header, tuple(rows), name="confusion")


def _matches(found: Consistency, table: Contingency, undecided_as: bool | None) -> Table:
    apart = [trace for trace in found.traces if trace.joint.consistent is None] if undecided_as is None else []
    exact = sum(trace.exact for trace in apart)
    rows: tuple[Row, ...] = (
        ("true", table.consistent_exact, table.inconsistent_exact, exact),
        ("false", table.consistent_missed, table.inconsistent_missed, len(apart) - exact),
        (
            "match ratio",
            *(_ratio(found.traces, kind, undecided_as) for kind in (True, False)),
            _ratio(apart, None, undecided_as),
        ),
    )
    notes = (f"{found.match} under {found.protocol}; ratios in percent, 95 % intervals by episode",)
    title, name = found.match.capitalize(), found.match.replace(" ", "-")
    return Table(title, columns(found.match, "consistent", "inconsistent", "undecided"), rows, notes, name)


def _ratio(traces: Iterable[Trace], kind: bool | None, undecided_as: bool | None) -> Number:
    """The match ratio of the traces of a kind, with an interval over whole episodes."""
    sums: dict[EpisodeKey, list[float]] = {}
    for trace in traces:
        consistent = undecided_as if trace.joint.consistent is None else trace.joint.consistent
        if consistent is kind:
            one = sums.setdefault(trace.task.episode_key, [0.0, 0.0])
            one[0] += trace.exact
            one[1] += 1.0
    if not sums:
        return Number(Measured(None, 0))
    right, n = np.array(list(sums.values())).T
    return Number(mean_over_episodes(right, n, share=True), unit=False)


def _benchmarks(found: Consistency, cut: Mapping[str, Contingency], whole: Contingency) -> Table:
    rows: list[Row] = []
    traces = {**found.by_benchmark, "all": found.traces}
    for name, each in {**cut, "all": whole}.items():
        ratios = [share(value, unit=False) for value in (each.consistent_ratio, each.inconsistent_ratio)]
        rows.append(
            (
                name,
                *(each.consistent, each.inconsistent, len(traces[name]) - each.n),
                *ratios,
                *(bare(value, ".2f") for value in (each.relative_risk, each.odds_ratio)),
                bare(each.phi, ".3f"),
            )
        )
    header = columns(
        *("benchmark", "consistent", "inconsistent", "undecided", "match, consistent (%)", "match, inconsistent (%)"),
        *("relative risk", "odds ratio", "phi"),
    )
    return Table("Benchmark by benchmark", header, tuple(rows), name="benchmarks")


def _association(match: str, table: Contingency, within: Stratified | None = None) -> Table:
    rows: tuple[Row, ...] = (
        ("difference of the match ratios", _points(table.difference), ""),
        ("relative risk", bare(table.relative_risk, ".2f"), _ends(table.relative_risk_interval())),
        ("odds ratio", bare(table.odds_ratio, ".2f"), _ends(table.odds_ratio_interval())),
        ("chi-square, 1 degree of freedom", bare(table.chi_square, ".2f"), ""),
        ("phi", bare(table.phi, ".3f"), ""),
        ("p", _p(table.log10_p), ""),
    )
    notes: tuple[str, ...] = (
        f"of {table.n:,} steps, taken as independent of each other; chi-square without continuity correction; "
        "inf: divided by no step at all",
    )
    if within is not None:
        rows += (
            (f"relative risk {_WITHIN}", bare(within.relative_risk, ".2f"), _ends(within.relative_risk_interval())),
            (f"odds ratio {_WITHIN}", bare(within.odds_ratio, ".2f"), _ends(within.odds_ratio_interval())),
            (f"chi-square {_WITHIN}", bare(within.chi_square, ".2f"), ""),
            (f"p {_WITHIN}", _p(within.log10_p), ""),
        )
        notes += (
            "within benchmarks: Mantel-Haenszel, which compares steps of the same benchmark only",
            *warnings(table, within),
        )
    header = columns("measure", "value", "95 % interval")
    return Table(f"How consistency and {match} go together", header, rows, notes, "association")


def warnings(table: Contingency, within: Stratified) -> list[str]:
    """Why the sum of all benchmarks' tables misleads, if it does."""
    pooled, own, found = table.odds_ratio, within.odds_ratio, []
    if pooled is not None and own is not None and pooled != own and abs(pooled - own) > CONFOUNDED * min(pooled, own):
        found.append(
            f"pooling misleads: the odds ratio is {pooled:.2f} over all steps and {own:.2f} within benchmarks, which differ "
            "both in consistency and in exact match; report the second"
        )
    if (equal := within.equal_odds()) is not None and equal[2] < DIFFERENT:
        square, freedom, p = equal
        found.append(
            f"the odds ratios of the benchmarks differ (Breslow-Day-Tarone chi-square {square:.2f}, degrees of freedom "
            f"{freedom}, p {p:.4f}): no single one describes them all; report them one by one"
        )
    return found


def _taxonomy(found: Consistency) -> Table:
    kinds = failures(found.traces)
    total = sum(map(len, kinds.values()))
    rows = tuple(
        (kind, len(traces), share(len(traces) / total if total else None, unit=False), MEANING[kind])
        for kind, traces in kinds.items()
    )
    header = columns("failure", "steps", "ratio (%)", "what it is", folds=("what it is",))
    return Table(f"Failures: {total:,} inconsistent steps", header, rows, name="failures")


def _points(difference: float | None) -> str:
    return NOTHING if difference is None else f"{percentage(difference, '+.2f')} points"


def _ends(interval: tuple[float, float] | None) -> str:
    return "" if interval is None else f"{interval[0]:.2f} to {interval[1]:.2f}"


def _p(log10_p: float | None) -> str:
    if log10_p is None:
        return NOTHING
    return f"{10**log10_p:.4f}" if log10_p > -4 else f"10^{log10_p:.1f}"

"""Two runs on the same steps: their settings, the differences of their metrics, and the steps that flipped.

Either may be several runs that are repeats: then its metrics are means over them, and each difference is one question.

Both are judged by today's rules of the same protocols, so which protocol a run was made with matters only as the default. How
sure a difference is comes from :mod:`guieval.metrics.paired`. Differences are the second run minus the first.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from guieval.actions import Action
from guieval.data.doctor.counts import counted
from guieval.data.editions import PARTS
from guieval.data.sample_sets import some
from guieval.errors import UsageError, nearest
from guieval.evaluation import get_protocol
from guieval.journal import RunFolder
from guieval.journal.repeats import Repeats
from guieval.journal.run_files import Manifest, setup_line
from guieval.journal.setup import differences
from guieval.metrics.columns import Judged, RunColumns
from guieval.metrics.leading import leading
from guieval.metrics.measured import SHARE, Measured
from guieval.metrics.paired import McNemar, holm, mcnemar, shared_steps, smallest_difference
from guieval.metrics.repeats import mean_difference, measured
from guieval.reports.cut_short import cut_short, incomplete, judged_with_own, unanswered
from guieval.reports.tables.records import write_file
from guieval.reports.tables.table import NOTHING, Number, Row, Table, columns
from guieval.scoring.matrix import JudgedAnswers
from guieval.steps import StepKey

_RIGHT = {"step": "are exact", "task": "succeed at first"}
SIGNIFICANT = 0.05
"""A difference whose p-value is below this is marked with a star."""
_HEADS = ("metric", "n", "A", "B", "B - A [95 % interval]", "p", "detectable")
_JSON = {"protocol": "protocol", "metric": "title", "meaning": "meaning", "A": "first", "B": "second"}
_JSON |= {"difference": "difference", "detectable": "smallest", "shared": "shared"}


@dataclass(frozen=True)
class Compared:
    """One metric of both runs, and the ``difference``, the second minus the first.

    ``smallest`` is the smallest true difference that these steps can detect (power 0.8, level 0.05).
    ``shared``: the metric is over the steps that both runs answered, or, if it is of whole episodes, over those in
    which no answer of either is missing, and that these are not all.
    """

    protocol: str
    name: str
    meaning: str
    first: Measured
    second: Measured
    difference: Measured
    smallest: float | None
    shared: bool

    @property
    def title(self) -> str:
        """The name, with a mark if it is not over all steps."""
        return self.name + (" (shared)" if self.shared else "")


@dataclass(frozen=True)
class Comparison:
    """Two runs cut down to the steps they share. ``unlike`` is why they should not be compared, ``notes`` what to know.

    ``exact``: by protocol, how exact match falls on the steps that both runs answered; first is right alone in ``only_first``;
    empty if one of them is several ``repeats``, the first of which are ``first`` and ``second`` then. ``answers`` are both
    runs' answers, uncut; ``setups`` their set-ups in words; ``holm`` the number of comparisons with the first run that the
    p-values are corrected for, by Holm's method; ``flips_file`` has the steps that flipped, if they were written.
    """

    directories: tuple[Path, Path]
    first: RunColumns
    second: RunColumns
    answers: tuple[JudgedAnswers, JudgedAnswers] = field(repr=False)
    setups: tuple[str, str]
    unlike: tuple[str, ...]
    notes: tuple[str, ...]
    metrics: tuple[Compared, ...]
    exact: Mapping[str, McNemar]
    repeats: tuple[Repeats, Repeats]
    holm: int = 1
    flips_file: Path | None = None

    @property
    def labels(self) -> tuple[str, str]:
        """What tables call the runs: their models, with the modes if these differ, and the folders if the models do not."""
        runs = (self.first, self.second)
        modes = [f" ({run.mode})" * (self.first.mode != self.second.mode) for run in runs]
        names = [f"{run.model}{mode}" for run, mode in zip(runs, modes, strict=True)]
        alike = names[0] == names[1]
        one, other = (f"{name} ({where.name})" if alike else name for name, where in zip(names, self.directories, strict=True))
        return one, other


@dataclass(frozen=True)
class Flip:
    """A step that one run has right and the other does not; ``now_right``: the second has it. A task has no actions."""

    protocol: str
    key: StepKey
    now_right: bool
    reference: Action | None
    first: Action | None
    first_reason: str
    second: Action | None
    second_reason: str

    def to_json(self) -> dict[str, Any]:
        """One line of a file of flips."""
        actions = {"reference": self.reference, "first": self.first, "second": self.second}
        return {
            "protocol": self.protocol,
            **self.key._asdict(),
            "right": "second" if self.now_right else "first",
            **{name: action and action.model_dump(mode="json") for name, action in actions.items()},
            "first_reason": self.first_reason,
            "second_reason": self.second_reason,
        }


def compare_runs(
    first: Path | Repeats, second: Path | Repeats, protocols: Sequence[str] | None = None, *, anyway: bool = False
) -> Comparison:
    """Compare two run directories, or the repeats of two models, under ``protocols``: by default the one both were run with;
    ``all``: all of their data set.

    Raises :class:`UsageError` naming every reason why the runs are unlike: benchmark, steps, data set, labels, overlay,
    protocol (if none is given), a mode that stops and one that does not. With ``anyway`` they are compared on the steps
    they share, and the reasons are in ``unlike``; without shared steps there is nothing to compare.
    """
    repeats = tuple(each if isinstance(each, Repeats) else Repeats.of(each) for each in (first, second))
    first, second = (each.first for each in repeats)
    manifests = [RunFolder(each).manifest for each in (first, second)]
    unlike = [*_unlike_manifests(*manifests, protocol_given=bool(protocols)), *_unlike_plans(first, second)]
    if unlike and not anyway:
        raise UsageError(_refusal(first, second, unlike))
    requested = list(protocols or [manifests[0].protocol.name])
    judged = [[judged_with_own(each, requested) for each in of.directories] for of in repeats]
    names = [name for name in judged[0][0][1] if name in judged[1][0][1]]
    every = [[answers.columns(protocols=names) for answers, _ in of] for of in judged]
    whole = [of[0] for of in every]
    one, other = shared_steps(*whole)
    cut = [[shared_steps(one, run)[1] for run in of] for of in every]
    notes = [*_notes(manifests, whole, one), *_repeats(repeats)]
    for letter, of, runs, group in zip("AB", judged, cut, repeats, strict=True):
        of_note: dict[str, list[str]] = {}
        for (answers, _), run, directory in zip(of, runs, group.directories, strict=True):
            lines = [*answers.notes, incomplete(run, answers.answered.protocol, directory), *cut_short(answers, names)]
            for note in filter(None, lines):
                of_note.setdefault(note, []).append(directory.name)
        notes += [
            f"{', '.join([letter, *some] if len(some) < len(runs) else [letter])}: {note}" for note, some in of_note.items()
        ]
    unlike += unlike_labels(one, other)
    if unlike and not anyway:
        raise UsageError(_refusal(first, second, unlike))
    missing = [
        unanswered(run, answers.answered.protocol)
        for of, runs in zip(judged, cut, strict=True)
        for (answers, _), run in zip(of, runs, strict=True)
    ]
    lost: NDArray[np.bool_] = np.logical_or.reduce(missing)
    metrics = [found for name in names for found in _compared(name, cut[0], cut[1], lost)]
    exact = {}
    for name in names if len(missing) == 2 else ():
        here = one.judged[name].measured & other.judged[name].measured
        exact[name] = mcnemar(one.judged[name].exact_match[here], other.judged[name].exact_match[here])
    named = [setup_line([RunFolder(run).manifest for run in of.directories]) for of in repeats]
    return Comparison(
        (repeats[0].folder, repeats[1].folder),
        one,
        other,
        (judged[0][0][0], judged[1][0][0]),
        (named[0], named[1]),
        tuple(unlike),
        tuple(notes),
        tuple(metrics),
        exact,
        (repeats[0], repeats[1]),
    )


def compare_all(
    pairs: Sequence[tuple[Path | Repeats, Path | Repeats]],
    protocols: Sequence[str] | None = None,
    metrics: str | None = None,
    *,
    anyway: bool = False,
) -> list[Comparison]:
    """:func:`compare_runs` of each pair; the p-values of pairs with one first run are Holm's, over these pairs, by metric.

    ``metrics``: the only ones, with commas between their names; :class:`UsageError` names the nearest of one that is unknown.
    """
    found = [compare_runs(*pair, protocols, anyway=anyway) for pair in pairs]
    if metrics is not None:
        chosen = chosen_names(metrics, list(dict.fromkeys(each.name for one in found for each in one.metrics)))
        found = [replace(one, metrics=tuple(each for each in one.metrics if each.name in chosen)) for one in found]
    return [_corrected(one, [other for other in found if other.directories[0] == one.directories[0]]) for one in found]


def chosen_names(words: str, known: Sequence[str]) -> list[str]:
    """The names between the commas; since some contain commas themselves, the longest known one is taken first.

    Raises :class:`UsageError` naming the nearest for a name that is not ``known``.
    """
    chosen: list[str] = []
    parts = words.split(",")
    while parts:
        ends = range(len(parts), 0, -1)
        taken = next((end for end in ends if ",".join(parts[:end]).strip() in known), 1)
        name = ",".join(parts[:taken]).strip()
        if name not in known:
            raise UsageError(f"no run has a metric {name!r}{nearest(name, known)}; expected one of: {'; '.join(known)}")
        chosen.append(name)
        parts = parts[taken:]
    return chosen


def _corrected(comparison: Comparison, same: Sequence[Comparison]) -> Comparison:
    """The comparison with Holm's p-values over all that have the ``same`` first run."""
    metrics = []
    for metric in comparison.metrics:
        key = (metric.protocol, metric.title)
        asked = [each for one in same for each in one.metrics if (each.protocol, each.title) == key]
        p_values = [each.difference.p_value for each in asked if each.difference.p_value is not None]
        if metric.difference.p_value is not None:
            p = holm(p_values)[p_values.index(metric.difference.p_value)]
            metric = replace(metric, difference=replace(metric.difference, p_value=p))
        metrics.append(metric)
    return replace(comparison, metrics=tuple(metrics), holm=len(same))


def flips(comparison: Comparison) -> Iterator[Flip]:
    """Every step whose exact match differs and that both runs answered, by protocol, in the runs' order.

    Reads both journals again, for the answers and the reasons of their verdicts. Raises :class:`UsageError` for several
    repeats, of which each has flips of its own.
    """
    if several := next((each for each in comparison.repeats if len(each.directories) > 1), None):
        raise UsageError(f"{several.name!r} is {len(several.directories)} repeats; steps flip between single runs: name one")
    one, other = comparison.first, comparison.second
    rows: dict[str, list[int]] = {}
    for name, judged in one.judged.items():
        beside = other.judged[name]
        both = judged.measured & beside.measured
        rows[name] = np.flatnonzero(both & (judged.exact_match != beside.exact_match)).tolist()
    wanted = {one.key_of(row) for of_protocol in rows.values() for row in of_protocol}
    runs = comparison.answers
    answers = [{each[0].key: each for each in run.again() if each[0].key in wanted} for run in runs]
    for name, of_protocol in rows.items():
        for row in of_protocol:
            key = one.key_of(row)
            outcomes = [run.outcome(name, of_run[key]) for run, of_run in zip(runs, answers, strict=True)]
            reasons = [outcome.reason or outcome.verdict for outcome in outcomes]
            (task, first), (_, second) = (of_run[key] for of_run in answers)
            actions = [getattr(each, "action", None) for each in (task, first, second)]  # tasks and their outcomes have none
            now_right = bool(other.judged[name].exact_match[row])
            yield Flip(name, key, now_right, actions[0], actions[1], reasons[0], actions[2], reasons[1])


def write_flips(found: Sequence[Flip], file: Path) -> None:
    """Write flips as CSV or JSONL, by the file's ending; :class:`UsageError` for any other."""
    names = ("protocol", *StepKey._fields, "right", "reference", "first", "first_reason", "second", "second_reason")
    write_file(file, (flip.to_json() for flip in found), names, json_in=("reference", "first", "second"))


def _refusal(first: Path, second: Path, unlike: Sequence[str]) -> str:
    reasons = "; ".join(unlike)
    return f"{str(first)!r} and {str(second)!r} cannot be compared: {reasons}; --anyway compares the steps they share"


def _unlike_manifests(first: Manifest, second: Manifest, *, protocol_given: bool) -> Iterator[str]:
    pairs: dict[str, list[str | None]] = {
        "the benchmark": [each.benchmark.name for each in (first, second)],
        "the environment's version": [each.benchmark.environment for each in (first, second)],
        "the overlay of accepted actions": [
            "none" if each.overlay is None else each.overlay.sha256[:12] for each in (first, second)
        ],
    }
    if not protocol_given:
        pairs["the protocol"] = [each.protocol.name for each in (first, second)]
    for what, (one, other) in pairs.items():
        if one != other:
            hint = ", --protocol names one for both" if what == "the protocol" else ""
            yield f"{what} differs ({one!r} and {other!r}{hint})"
    modes = [each.mode for each in (first, second)]
    named = " and ".join(repr(mode.label) for mode in modes)
    if modes[0].stop != modes[1].stop:
        yield f"the modes {named} do not reach the same steps, for one of them ends an episode at its first mismatch"
    elif modes[0].mismatches != modes[1].mismatches:
        yield f"the modes {named} do not reach the same steps, for they patch another number of mismatches"


def _unlike_plans(first: Path, second: Path) -> Iterator[str]:
    plans = [RunFolder(directory).plan for directory in (first, second)]
    one, other = ({(key, index) for key, counted in plan.items() for index in counted} for plan in plans)
    parts = []
    for which, missing in (("first", one - other), ("second", other - one)):
        if missing:
            key, index = min(missing)
            parts.append(f"{counted(len(missing), 'step')} only in the {which}, e.g. {StepKey(*key, index)}")
    if parts:
        yield f"the steps differ ({' and '.join(parts)}, {len(one & other):,} in both)"


def unlike_labels(first: RunColumns, second: RunColumns) -> list[str]:
    """How the labels of two runs over the same steps differ, part by part, with the steps; empty if they do not."""
    unlike = []
    if first.dataset != second.dataset:
        unlike.append(f"the data set differs ({first.dataset!r} and {second.dataset!r})")
    if first.label_digests is None or second.label_digests is None:
        return unlike
    known = np.logical_and(first.label_digests.any(axis=1), second.label_digests.any(axis=1))
    for part, ours, theirs in zip(PARTS, first.label_digests.T, second.label_digests.T, strict=True):
        keys = [first.key_of(row) for row in np.flatnonzero(known & (ours != theirs)).tolist()]
        if keys:
            unlike.append(f"{counted(len(keys), 'shared step')} with other {part} ({some(keys)})")
    types = (
        ~known & (first.reference_type != second.reference_type) & (first.reference_type >= 0) & (second.reference_type >= 0)
    )
    if types.any():
        unlike.append(f"{counted(int(types.sum()), 'shared step')} with references of another type")
    if len(unlike) > (first.dataset != second.dataset) and first.edition_line:
        unlike[-1] += f": the first run is on {first.edition_line}, the second on {second.edition_line or 'an unknown one'}"
    return unlike


def _notes(manifests: Sequence[Manifest], whole: Sequence[RunColumns], shared: RunColumns) -> list[str]:
    notes = []
    modes = [manifest.mode.label for manifest in manifests]
    if modes[0] != modes[1]:
        notes.append(f"the modes differ ({modes[0]} and {modes[1]}): the runs saw different histories")
    models = [each.model_name for each in manifests]
    settings = [_settings(each) for each in manifests]
    changed = sorted(name for name in settings[0] if settings[0][name] != settings[1][name])
    if changed:
        kind = "the runs are of one model and" if models[0] == models[1] else "besides the model, the runs"
        notes.append(f"{kind} differ in {', '.join(changed)}")
    if setups := differences(*(each.setups for each in manifests), same_model=models[0] == models[1]):
        notes.append(f"the set-ups differ in {'; '.join(change.said(' and ') for change in setups)}")
    if setups := differences(*(each.patch_setups for each in manifests)):
        notes.append(f"the set-ups of patches differ in {'; '.join(change.said(' and ') for change in setups)}")
    if any(len(each) != len(shared) for each in whole):
        sizes = [dict(zip(run.episodes, np.bincount(run.episode).tolist(), strict=True)) for run in (shared, *whole)]
        cut = sum(any(each[key] != size for each in sizes[1:]) for key, size in sizes[0].items())
        notes.append(
            f"compared on the {len(shared):,} steps of {len(shared.episodes):,} episodes that both planned"
            + (f"; {cut:,} episodes are cut short by that, also in metrics of episodes" if cut else "")
        )
    return notes


def _settings(manifest: Manifest) -> dict[str, Any]:
    return {
        "scaffold": manifest.scaffold and manifest.scaffold.name,
        "thinking": manifest.thinking,
        "sampling": manifest.sampling,
        "adapter": manifest.model.adapter,
        "rules": manifest.rules or {},
    }


def _repeats(groups: Sequence[Repeats]) -> Iterator[str]:
    for letter, group in zip("AB", groups, strict=True):
        if group.line:
            yield f"{letter}: {group.line}"
    counts = [len(group.directories) for group in groups]
    if min(counts) == 1 < max(counts):
        yield "one of the two is a single run: what it would vary by between repeats is not in the intervals and p values"


def _compared(
    protocol: str, firsts: Sequence[RunColumns], seconds: Sequence[RunColumns], lost: NDArray[np.bool_]
) -> Iterator[Compared]:
    """Exact match over all steps, and every metric of a protocol on what all runs answered, each model's mean over repeats.

    ``lost``: (n,) steps that at least one of them did not. A failure of a server must not make a difference: otherwise such
    a step would be in one of the two metrics only, or count as wrong in one.
    """
    first = firsts[0]
    both: NDArray[np.bool_] = np.logical_and.reduce([run.judged[protocol].measured for run in (*firsts, *seconds)])
    whole = (first.per_episode(lost) == 0)[first.episode]
    metrics = leading(get_protocol(protocol), first.unit)

    def scored(runs: Sequence[RunColumns]) -> list[tuple[RunColumns, Judged]]:
        return [(run, run.judged[protocol]) for run in runs]

    if not both.all():
        before, after = (measured(metrics[0], scored(runs)) for runs in (firsts, seconds))
        yield Compared(protocol, metrics[0].name, metrics[0].meaning, before, after, Measured(None), None, shared=False)
    for metric in metrics:
        rows = whole if metric.of_episodes else both
        cut = [scored([run.only(rows) for run in runs] if not rows.all() else runs) for runs in (firsts, seconds)]
        before, after = (measured(metric, runs) for runs in cut)
        one, other = ([metric.terms(*run) for run in runs] for runs in cut)
        between = mean_difference(other, one, share=metric.unit == SHARE)
        between = replace(between, n=min(before.n, after.n), of=before.of, unit=metric.unit, better=metric.better)
        smallest = smallest_difference(between)
        yield Compared(protocol, metric.name, metric.meaning, before, after, between, smallest, shared=not rows.all())


def compare_tables(comparison: Comparison) -> list[Table]:
    """The metrics' differences, a table for each protocol."""
    heads = columns(*_HEADS, folds=_HEADS[:1], spare=("detectable",))
    grouped = groupby(comparison.metrics, key=lambda each: each.protocol)
    return [Table(f"Under {name}", heads, tuple(map(_row, found)), name=name) for name, found in grouped]


def headings(comparison: Comparison) -> Iterator[str]:
    """The two runs, the reasons against comparing them, and notes."""
    for letter, run in (("A", comparison.first), ("B", comparison.second)):
        yield f"{letter}: {run.model}, {run.benchmark}, {run.mode} ({run.size})"
    for line in dict.fromkeys(run.edition_line for run in (comparison.first, comparison.second) if run.edition_line):
        yield f"labels: {line}"
    if comparison.first.scaffold == comparison.second.scaffold:
        yield f"scaffold: {comparison.first.scaffold}"
    else:
        yield f"scaffold: {comparison.first.scaffold} (A), {comparison.second.scaffold} (B)"
    first, second = comparison.setups
    yield from [f"set-up: {first}"] if first == second else [f"set-up of A: {first}", f"set-up of B: {second}"]
    yield from (f"Warning: unlike runs, compared anyway: {line}" for line in comparison.unlike)
    yield from (f"note: {line}" for line in comparison.notes)


def footnotes(comparison: Comparison) -> list[str]:
    """The lines below the tables: the steps that flipped, and how to read the columns."""
    return [*_flipped(comparison), *_reading(comparison)]


def _flipped(comparison: Comparison) -> Iterator[str]:
    unit, right = comparison.first.unit, _RIGHT[comparison.first.unit]
    for name, found in comparison.exact.items():
        discordant = found.only_first + found.only_second
        n = found.both + found.neither + discordant
        yield (
            f"{name}: of {n:,} {unit}s both runs answered, {found.only_first:,} {right} in A alone, {found.only_second:,} "
            f"in B alone, {found.both:,} in both and {found.neither:,} in neither; McNemar's test ({found.method}), which "
            f"takes {unit}s for independent: p {'' if found.p_value < 0.001 else '= '}{p_value(found.p_value)}"
        )


def _reading(comparison: Comparison) -> Iterator[str]:
    if not comparison.exact:
        yield (
            "A and B are compared episode by episode, each episode with its mean over repeats; McNemar's test is of single runs"
        )
    if any(each.shared for each in comparison.metrics):
        yield (
            "(shared): over the steps that both runs answered, metrics of episodes over those that both did; a difference of "
            "all steps would count missing answers"
        )
    yield (
        f"interval and p: over whole episodes, the same for both runs; * p < 0.05, {_adjusted(comparison)}; differences of "
        "shares are in percentage points"
    )
    yield "detectable: the smallest true difference that these steps can detect (power 80 %, level 0.05)"


def shown_parts(found: Sequence[Comparison]) -> Iterator[tuple[list[str], list[Table], list[str]]]:
    """What is above, in and below the tables of each: a line of several only above the first, or only below the last.

    What is said of A, or of B, is of several if these are the same runs.
    """
    said: set[tuple[str, ...]] = set()
    reading = [list(_reading(each)) for each in found]
    for place, each in enumerate(found):
        runs = dict(zip("AB", map(str, each.directories), strict=True))
        above = []
        for line in headings(each):
            of = re.findall(r"\b[AB]\b", line) or "AB" * line.startswith(("note:", "Warning:"))
            about = (line, *(runs[letter] for letter in of))
            above += [line] * (line.startswith(("A: ", "B: ")) or about not in said)
            said.add(about)
        later = {line for lines in reading[place + 1 :] for line in lines}
        yield above, compare_tables(each), [*_flipped(each), *(line for line in reading[place] if line not in later)]


def _adjusted(comparison: Comparison) -> str:
    """What p is adjusted for, in words."""
    if comparison.holm == 1:
        return "not adjusted for the number of metrics"
    return (
        f"with Holm's correction for {comparison.holm} comparisons with {comparison.labels[0]}, not for the number of metrics"
    )


def compare_json(comparison: Comparison) -> dict[str, Any]:
    """The whole comparison; fractions in [0, 1]."""
    runs: dict[str, Any] = {}
    sides = zip("AB", (comparison.first, comparison.second), comparison.setups, comparison.directories, strict=True)
    for letter, run, setup, directory in sides:
        size = {"steps": len(run), "episodes": len(run.episodes)}
        about = {"edition": run.edition, "scaffold": run.scaffold, "setup": setup, "directory": directory}
        runs[letter] = {"model": run.model, "benchmark": run.benchmark, "mode": run.mode, **size, **about}
    return {
        "runs": runs,
        "holm": comparison.holm,
        "unlike": comparison.unlike,
        "notes": comparison.notes,
        "metrics": [{name: getattr(each, field) for name, field in _JSON.items()} for each in comparison.metrics],
        "exact_match": comparison.exact,
    }


def p_value(p: float | None) -> str:
    """A p-value with three digits."""
    if p is None:
        return NOTHING
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def _row(each: Compared) -> Row:
    found = each.difference
    star = " *" if found.p_value is not None and found.p_value < SIGNIFICANT else ""
    sizes = dict.fromkeys(f"{value.n:,}" for value in (each.first, each.second))
    missing = [f"{letter}: {value.missing:,} missing" for letter, value in zip("AB", (each.first, each.second), strict=True)]
    marks = [mark for mark, value in zip(missing, (each.first, each.second), strict=True) if value.missing]
    return (
        each.title + (f" ({', '.join(marks)})" if marks else ""),
        " / ".join(sizes),
        *(Number(replace(value, interval=None, missing=0)) for value in (each.first, each.second)),
        Number(found, signed=True, unit=found.unit != SHARE),
        p_value(found.p_value) + star,
        Number(Measured(each.smallest, unit=found.unit), unit=found.unit != SHARE),
    )

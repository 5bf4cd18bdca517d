"""Two runs on the same steps: their settings, the differences of their metrics, and the steps that flipped.

Either may be several runs that are repeats: then its metrics are means over them, and each difference is one question.

Both are judged by today's rules of the same protocols, so which protocol a run was made with matters only as the default. How
sure a difference is comes from :mod:`guieval.metrics.paired`. Differences are the second run minus the first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from guieval.actions import Action
from guieval.errors import UsageError, nearest
from guieval.evaluation import get_protocol
from guieval.journal import RunFolder
from guieval.journal.repeats import Repeats
from guieval.journal.run_files import setup_line
from guieval.metrics.columns import Judged, RunColumns
from guieval.metrics.leading import leading
from guieval.metrics.measured import SHARE, Measured
from guieval.metrics.paired import McNemar, holm, mcnemar, shared_steps, smallest_difference
from guieval.metrics.repeats import mean_difference, measured
from guieval.reports.cut_short import cut_short, incomplete, judged_with_own, unanswered
from guieval.reports.tables.records import write_file
from guieval.reports.unlike import refusal, remarks, unlike_labels, unlike_runs
from guieval.scoring.matrix import JudgedAnswers
from guieval.steps import StepKey


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

    @property
    def sizes(self) -> str:
        """n of both, once if it is the same."""
        return " / ".join(dict.fromkeys(f"{value.n:,}" for value in (self.first, self.second)))


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
    unlike = unlike_runs(first, second, protocol_given=bool(protocols))
    if unlike and not anyway:
        raise UsageError(refusal(first, second, unlike))
    requested = list(protocols or [manifests[0].protocol.name])
    judged = [[judged_with_own(each, requested) for each in of.directories] for of in repeats]
    names = [name for name in judged[0][0][1] if name in judged[1][0][1]]
    every = [[answers.columns(protocols=names) for answers, _ in of] for of in judged]
    whole = [of[0] for of in every]
    one, other = shared_steps(*whole)
    cut = [[shared_steps(one, run)[1] for run in of] for of in every]
    notes = remarks(manifests, whole, one, repeats)
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
        raise UsageError(refusal(first, second, unlike))
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

"""Breakdowns of a run: its metrics by properties of the steps, and its mismatches by kind of error.

As in the tables of :mod:`guieval.metrics.summary`, the denominator of a cell is the number of planned steps that the mode
reaches: a step without an answer counts as a mismatch, unless its cell is unknown (a step without a record has no action type
and no label). A label that the benchmark does not provide has no cell.

Source of the stratification by step index and step ratio: GUIEvalKit paper, appendix D.4 and Figure 19.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from guieval.errors import UsageError, nearest
from guieval.evaluation import Protocol, get_protocol
from guieval.metrics.columns import FAILED, NOT_RUN, TYPES, UNPARSEABLE, UNSUPPORTED, WRONG, Judged, RunColumns
from guieval.metrics.intervals import Interval, Terms, pooled, quoted, spanning
from guieval.metrics.measured import Measured, share_of
from guieval.metrics.repeats import in_order, over_repeats
from guieval.steps import SEVERAL

STEP_RATIOS = 5
"""The number of equal parts of the step ratio (t + 1) / T, upper borders included, so an episode's last step is in the last
part: the paper's fifths (0-20 %, 20-40 %, ...)."""
LENGTHS: tuple[tuple[int, int | None], ...] = ((1, 1), (2, 5), (6, 10), (11, 15), (16, 20), (21, None))
"""Groups of episode lengths, first and last included. Single steps are a group of their own (no history, and success equals
exact match); the others are in fives, because the paper discusses steps 5 and 15."""
REASONING: tuple[tuple[int, int | None], ...] = (
    (0, 0),
    (1, 100),
    (101, 200),
    (201, 400),
    (401, 800),
    (801, 1600),
    (1601, None),
)
"""Groups of lengths of reasoning, in characters, first and last included; each is twice as wide as the one before."""
NEAR = 140.0
"""The largest distance of a near miss if the protocol allows no distance, or one in pixels, which columns do not have; in
thousandths of the screen. It is OS-Atlas's 0.14, the widest distance in common use."""

ErrorKind: TypeAlias = Literal[
    "type",
    "near miss",
    "other element",
    "far",
    "target",
    "text",
    "app",
    "direction",
    "button",
    "other",
    "unparseable",
    "unsupported",
    "infrastructure",
    "not run",
]
ERROR_KINDS: tuple[ErrorKind, ...] = get_args(ErrorKind)
"""The kinds that :func:`error_kinds` indexes. ``type``: an action of another type. The next ones have the right type:
``other element``, ``near miss`` and ``far`` are points that miss their target: inside another box of the screen, however
close (:attr:`guieval.metrics.columns.RunColumns.elsewhere`), or otherwise close to it (:func:`near_limit`) or not; ``target``
is a point without a distance (e.g. a click next to the icon of an app to open); ``text``: typed; ``app``: opened; ``other``:
anything else a protocol compares, e.g. the status of a stop. ``infrastructure``: a request without an answer."""
_BY_TYPE: dict[str, ErrorKind] = {
    "CLICK": "target",
    "LONG_PRESS": "target",
    "TYPE": "text",
    "OPEN": "app",
    "SCROLL": "direction",
    "PRESS": "button",
}
_BY_END: dict[int, ErrorKind] = {
    UNPARSEABLE: "unparseable",
    UNSUPPORTED: "unsupported",
    FAILED: "infrastructure",
    NOT_RUN: "not run",
}
_Ways: TypeAlias = tuple[Measured, list[Terms]]
Cut: TypeAlias = tuple[NDArray[np.int64], Sequence[str]]
"""(n,) the index of each step's label, -1 for none; and the labels in natural order."""
_DIFFICULTIES = {"easy": 1, "medium": 2, "hard": 3}
"""Labels of tasks in their natural order; others are sorted by letter."""
_OPTIONAL_LABELS = ("app", "category", "language", "element")
"""Labels of some benchmarks that are accepted for every run; a run without them has no cells."""


@dataclass(frozen=True)
class BreakdownCell:
    """The steps with these ``labels``, one for each property of the breakdown, and the shares of them that match.

    An interval is over episodes (:func:`guieval.metrics.intervals.quoted`); it reaches up to that with all unanswered steps
    right, and is ``None`` if none was answered.
    """

    labels: tuple[str, ...]
    type_match: Measured
    exact_match: Measured

    @property
    def n(self) -> int:
        return self.exact_match.n

    @property
    def label(self) -> str:
        return " / ".join(self.labels)


def ways(columns: RunColumns) -> tuple[str, ...]:
    """The properties that :func:`breakdown` accepts for this run, or :func:`rows_by` for one of tasks."""
    own = ("action", "length", "step", "ratio", "reasoning", "subset") if columns.unit == "step" else ("subset",)
    return (*own, *sorted(key for key in columns.groups if key not in own))


def breakdown(columns: RunColumns, protocol: str, by: str | Sequence[str]) -> list[BreakdownCell]:
    """The run's reached steps by ``action`` (the reference's type), episode ``length`` (:data:`LENGTHS`), ``step`` (index
    from 0), step ``ratio`` (:data:`STEP_RATIOS`), length of the ``reasoning`` (:data:`REASONING`), ``subset``,
    or a label of the benchmark (a key of ``columns.groups``).

    Several names give a cell for each combination that occurs; the paper's horizon analysis is ``("ratio", "step")``. Cells
    are in natural order, without empty ones. A label of other benchmarks (app, category, ...) that this one does not
    provide gives no cell. Raises :class:`UsageError` for an unknown name or a protocol the run was not judged by.
    """
    return mean_breakdown([columns], protocol, by)


def mean_breakdown(runs: Sequence[RunColumns], protocol: str, by: str | Sequence[str]) -> list[BreakdownCell]:
    """:func:`breakdown` of runs that are repeats: each cell is the mean over those that have it, its interval over both."""
    found: dict[tuple[str, ...], list[tuple[_Ways, _Ways]]] = {}
    for columns in runs:
        judged = columns.judged_by(protocol)
        cuts = [_labels(columns, name) for name in ([by] if isinstance(by, str) else by)]
        for cell, rows in _cells(columns, judged, cuts):
            typed = _ways(columns, judged, cell.type_match, judged.type_match & rows, rows)
            exact = _ways(columns, judged, cell.exact_match, judged.exact_match & rows, rows)
            found.setdefault(cell.labels, []).append((typed, exact))
    return [
        BreakdownCell(
            labels,
            *(over_repeats([each for each, _ in of], [possible for _, possible in of]) for of in zip(*both, strict=True)),
        )
        for labels, both in found.items()
    ]


def rows_by(columns: RunColumns, by: Sequence[str]) -> dict[tuple[str, ...], NDArray[np.bool_]]:
    """(n,) the rows of each combination of labels that occurs, in natural order; a task is under each of its tags or apps.

    Raises :class:`UsageError` for an unknown name.
    """
    found: dict[tuple[str, ...], NDArray[np.bool_]] = {(): np.ones(len(columns), dtype=np.bool_)}
    for name in by:
        of_label = _rows_of(columns, name)
        both = {(*labels, label): rows & own for labels, rows in found.items() for label, own in of_label.items()}
        found = {labels: rows for labels, rows in both.items() if rows.any()}
    return found


def _rows_of(columns: RunColumns, name: str) -> dict[str, NDArray[np.bool_]]:
    if columns.unit == "step" or name not in ways(columns):
        codes, names = _labels(columns, name)
        return {names[code]: codes == code for code in sorted({*codes.tolist()} - {-1})}
    several = [set(each.split(SEVERAL)) for each in columns.labels(name)]
    labels = sorted(set().union(*several) - {""}, key=lambda label: (_DIFFICULTIES.get(label, 0), label))
    return {label: np.array([label in each for each in several]) for label in labels}


def by_action(columns: RunColumns, judged: Judged) -> list[BreakdownCell]:
    """The reached steps by the type of their reference, without intervals."""
    return [cell for cell, _ in _cells(columns, judged, [_labels(columns, "action")])]


def by_groups(columns: RunColumns, judged: Judged, keys: Sequence[str]) -> list[BreakdownCell]:
    """The reached steps by some of the benchmark's labels, without intervals."""
    return [cell for cell, _ in _cells(columns, judged, [_numbered(columns.groups[key]) for key in keys])]


def _cells(columns: RunColumns, judged: Judged, cuts: Sequence[Cut]) -> Iterator[tuple[BreakdownCell, NDArray[np.bool_]]]:
    """A cell for each combination of labels that occurs, in natural order, and (n,) its rows."""
    counted = judged.reached & np.logical_and.reduce([codes >= 0 for codes, _ in cuts])
    if not counted.any():
        return
    combinations, where = np.unique(np.stack([codes[counted] for codes, _ in cuts]), axis=1, return_inverse=True)
    flags = np.stack([counted, judged.unmeasured, judged.type_match, judged.exact_match])[:, counted]
    sums = [np.bincount(where.reshape(-1), weights=each).astype(np.int64).tolist() for each in flags]
    place = np.full(len(columns), -1)
    place[counted] = where.reshape(-1)
    for number, (codes, n, missing, typed, exact) in enumerate(zip(combinations.T.tolist(), *sums, strict=True)):
        labels = tuple(names[code] for code, (_, names) in zip(codes, cuts, strict=True))
        yield BreakdownCell(labels, *(share_of(count, n, missing=missing) for count in (typed, exact))), place == number


def misses(columns: RunColumns, protocol: str | Protocol) -> dict[ErrorKind, Measured]:
    """How often each kind of error occurs among the run's reached steps; together with the exact ones these are all.

    Raises :class:`UsageError` as :func:`error_kinds` does.
    """
    judged = columns.judged_by(protocol if isinstance(protocol, str) else protocol.name)
    kinds, n = error_kinds(columns, protocol), int(judged.reached.sum())
    found: dict[ErrorKind, Measured] = {}
    for code, kind in enumerate(ERROR_KINDS):
        if count := int((kinds == code).sum()):
            interval = _interval(columns, judged, kinds == code, judged.reached)
            found[kind] = Measured(count / n, n, count=count, interval=interval, better="less")
    return found


def error_kinds(columns: RunColumns, protocol: str | Protocol) -> NDArray[np.int8]:
    """(n,) the kind of error at each step, as codes of :data:`ERROR_KINDS`; -1 for exact and for not reached steps.

    For a step with alternatives it depends on the type of the predicted action, which agrees with one of them.
    Raises :class:`UsageError` for an unknown protocol or one that the run was not judged by.
    """
    rule = get_protocol(protocol) if isinstance(protocol, str) else protocol
    judged = columns.judged_by(rule.name)
    code = {kind: number for number, kind in enumerate(ERROR_KINDS)}
    kinds = np.full(len(columns), -1, dtype=np.int8)
    for end, kind in _BY_END.items():
        kinds[judged.end == end] = code[kind]
    wrong = judged.end == WRONG
    kinds[wrong & ~judged.type_match] = code["type"]
    by_type = np.array([code[_BY_TYPE.get(each, "other")] for each in TYPES] + [code["other"]], dtype=np.int8)
    typed = wrong & judged.type_match
    kinds[typed] = by_type[columns.predicted_type[typed]]
    measured = (kinds == code["target"]) & np.isfinite(judged.distance)
    kinds[measured] = np.where(judged.distance[measured] <= near_limit(rule, columns.dataset), code["near miss"], code["far"])
    if columns.elsewhere is not None:
        kinds[measured & columns.elsewhere] = code["other element"]
    return kinds


def near_limit(protocol: Protocol, dataset: str) -> float:
    """The largest distance of a near miss, in thousandths: twice what the protocol accepts, or :data:`NEAR`."""
    click = protocol.rules_for(dataset).click
    return NEAR if click.fallback is None or click.measure != "fraction" else 2000.0 * click.fallback


def _ways(columns: RunColumns, judged: Judged, share: Measured, counted: NDArray[np.bool_], among: NDArray[np.bool_]) -> _Ways:
    """A share of rows with its interval, and the terms that the mean of repeats takes."""
    lost, below = judged.unmeasured & among, columns.per_episode(among).astype(np.float64)
    above = [columns.per_episode(rows).astype(np.float64) for rows in ([counted, counted | lost] if lost.any() else [counted])]
    terms = [in_order(columns, Terms(each[:, None], below[:, None], pooled)) for each in above]
    return replace(share, interval=_interval(columns, judged, counted, among)), terms


def _interval(columns: RunColumns, judged: Judged, counted: NDArray[np.bool_], among: NDArray[np.bool_]) -> Interval | None:
    """Of the share of rows ``counted`` among others, whatever those that were not measured would have been."""
    below, lost = columns.per_episode(among), judged.unmeasured & among
    if not (judged.measured & among).any():
        return None
    above = [counted, counted | lost] if lost.any() else [counted]
    return spanning([quoted(columns.per_episode(rows), below) for rows in above])


def _labels(columns: RunColumns, name: str) -> Cut:
    match name if columns.unit == "step" else "":
        case "action":
            return columns.reference_type.astype(np.int64), TYPES
        case "length":
            return _grouped(columns.length, LENGTHS)
        case "reasoning":
            return _grouped(np.full(len(columns), -1) if columns.reasoning is None else columns.reasoning, REASONING)
        case "step":
            last = int(columns.step_index.max(initial=0))
            return columns.step_index.astype(np.int64), [str(index) for index in range(last + 1)]
        case "ratio":
            # In integers, because with ceil(parts x ratio) in floats some borders would fall on the wrong side.
            part = (STEP_RATIOS * (columns.step_index.astype(np.int64) + 1) - 1) // columns.length
            borders = [round(100 * each / STEP_RATIOS) for each in range(STEP_RATIOS + 1)]
            words = [f"{low}-{high} %" for low, high in pairwise(borders)]
            # The length of an episode without any record is its number of planned steps, so a later step has no known place.
            return np.where(part < STEP_RATIOS, part, -1), words
        case "subset":
            return _numbered(columns.labels("subset"))
    if name in columns.groups:
        return _numbered(columns.groups[name])
    if name in _OPTIONAL_LABELS and columns.unit == "step":
        return np.full(len(columns), -1, dtype=np.int64), ()
    known = ways(columns)
    raise UsageError(f"a run cannot be broken down by {name!r}{nearest(name, known)}; this one can by {', '.join(known)}")


def _grouped(values: NDArray[np.int32] | NDArray[np.int64], groups: Sequence[tuple[int, int | None]]) -> Cut:
    """The group of each value, -1 of one below the first."""
    firsts = np.array([first for first, _ in groups])
    words = [f"{first}+" if last is None else f"{first}-{last}".removesuffix(f"-{first}") for first, last in groups]
    return np.searchsorted(firsts, values, side="right").astype(np.int64) - 1, words


def _numbered(values: Sequence[str]) -> Cut:
    names = sorted(set(values) - {""})
    numbers = {"": -1, **{name: number for number, name in enumerate(names)}}
    return np.array([numbers[value] for value in values], dtype=np.int64), names

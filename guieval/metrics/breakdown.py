"""Where a run is right and where it is not: its steps apart by what they are, and its misses by what went wrong.

Cells divide, like the tables of :mod:`guieval.metrics.summary`, by the planned steps that the mode reaches: a step without an
answer counts as a mismatch, unless it is not known which cell it belongs to (a step that was never recorded has no action
type and no label). Nothing is guessed: a label that the benchmark does not give makes no cell.

Source of the stratification by step index and step ratio: GUIEvalKit paper, appendix D.4 and Figure 19.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from guieval.errors import UsageError, nearest
from guieval.evaluation import Protocol, get_protocol
from guieval.metrics.columns import FAILED, NOT_RUN, TYPES, UNPARSEABLE, UNSUPPORTED, WRONG, Judged, RunColumns
from guieval.metrics.intervals import LEVEL, RESAMPLES, Interval, quoted

STEP_RATIOS = 5
"""Into how many equal parts (0, 1] is cut by step ratio (t + 1) / T, upper borders included, so an episode's last step is in
the last part: the paper's fifths (0-20 %, 20-40 %, ...)."""
LENGTHS: tuple[tuple[int, int | None], ...] = ((1, 1), (2, 5), (6, 10), (11, 15), (16, 20), (21, None))
"""Episode lengths that are put together, first and last included. Single steps stand apart (no history, and success is exact
match there); from then on by fives, as the paper's text speaks of steps 5 and 15."""
NEAR = 140.0
"""How far from its target a point may land to be a near miss where the protocol allows no distance, or one in pixels, which
columns do not know; in thousandths of the screen. It is OS-Atlas's 0.14, the widest distance in common use."""

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
"""What the codes of :func:`error_kinds` index. ``type``: an action of another type. The next ones are of the right type:
``other element``, ``near miss`` and ``far`` are points off their target: inside another of the step's boxes, however close
(:attr:`guieval.metrics.columns.RunColumns.elsewhere`), else close to it (:func:`near_limit`) or not; ``target`` is a point
whose distance nobody told (a click in place of opening an app, beside its icon); ``text``: typed; ``app``: opened; ``other``:
whatever else a protocol compares, e.g. a stop's status. ``infrastructure``: asked without an answer."""
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
_OPTIONAL_LABELS = ("app", "language", "element")
"""Labels of benchmarks that may be asked for of any run; one without them has no cells."""


@dataclass(frozen=True)
class Cell:
    """The ``n`` steps that carry ``labels``, one for each thing the run is cut by, and the shares of them that match.

    ``interval`` is of ``exact_match``, over episodes; ``None`` where one episode holds them all
    (:func:`guieval.metrics.intervals.quoted`).
    """

    labels: tuple[str, ...]
    n: int
    type_match: float
    exact_match: float
    interval: Interval | None

    @property
    def label(self) -> str:
        """The labels as one text."""
        return " / ".join(self.labels)


@dataclass(frozen=True)
class Misses:
    """``n`` of ``of`` reached steps are missed in one way; ``interval`` is of the share n / of, over episodes."""

    kind: ErrorKind
    n: int
    of: int
    share: float
    interval: Interval | None


def ways(columns: RunColumns) -> tuple[str, ...]:
    """What :func:`breakdown` can cut this run by."""
    own = ("action", "length", "step", "ratio", "subset")
    return (*own, *sorted(key for key in columns.groups if key not in own))


def breakdown(
    columns: RunColumns,
    protocol: str,
    by: str | Sequence[str],
    seed: int = 0,
    resamples: int = RESAMPLES,
    level: float = LEVEL,
) -> list[Cell]:
    """The run's reached steps apart by ``action`` (the reference's type), episode ``length`` (:data:`LENGTHS`), ``step`` (index
    from 0), step ``ratio`` (:data:`STEP_RATIOS`), ``subset``, or a label of the benchmark (a key of ``columns.groups``).

    Several names give a cell for each combination that occurs; the paper's horizon analysis is ``("ratio", "step")``. Cells
    come in natural order, empty ones not at all. A label that may exist (app, language, element) but that this benchmark
    does not give yields no cell. Raises :class:`UsageError` for an unknown name or a protocol the run was not judged by.
    """
    judged = _judged(columns, protocol)
    cut = [_labels(columns, name) for name in ([by] if isinstance(by, str) else by)]
    counted = judged.reached & np.logical_and.reduce([codes >= 0 for codes, _ in cut])
    if not counted.any():
        return []
    found, which = np.unique(np.stack([codes[counted] for codes, _ in cut]), axis=1, return_inverse=True)
    of_row = np.full(len(columns), -1)
    of_row[counted] = which.reshape(-1)
    cells = []
    for number, codes in enumerate(found.T.tolist()):
        rows = of_row == number
        n = int(rows.sum())
        exact = columns.per_episode(judged.exact_match & rows)
        cells.append(
            Cell(
                labels=tuple(names[code] for code, (_, names) in zip(codes, cut, strict=True)),
                n=n,
                type_match=int((judged.type_match & rows).sum()) / n,
                exact_match=float(exact.sum()) / n,
                interval=quoted(exact, columns.per_episode(rows), seed=seed, resamples=resamples, level=level),
            )
        )
    return cells


def misses(
    columns: RunColumns, protocol: str | Protocol, seed: int = 0, resamples: int = RESAMPLES, level: float = LEVEL
) -> list[Misses]:
    """How often the run's reached steps are missed in each way that occurs; with the exact ones they are all of them.

    Raises :class:`UsageError` as :func:`error_kinds` does.
    """
    name = protocol if isinstance(protocol, str) else protocol.name
    kinds, reached = error_kinds(columns, protocol), _judged(columns, name).reached
    below, n = columns.per_episode(reached), int(reached.sum())
    found = []
    for code, kind in enumerate(ERROR_KINDS):
        above = columns.per_episode(kinds == code)
        if count := int(above.sum()):
            found.append(Misses(kind, count, n, count / n, quoted(above, below, seed=seed, resamples=resamples, level=level)))
    return found


def error_kinds(columns: RunColumns, protocol: str | Protocol) -> NDArray[np.int8]:
    """(n,) what went wrong at each step, as codes of :data:`ERROR_KINDS`; -1 for exact and for not reached steps.

    Of a step with alternatives it is told by the action given, whose type agrees with one of them.
    Raises :class:`UsageError` for an unknown protocol or one that the run was not judged by.
    """
    rule = get_protocol(protocol) if isinstance(protocol, str) else protocol
    judged = _judged(columns, rule.name)
    code = {kind: number for number, kind in enumerate(ERROR_KINDS)}
    kinds = np.full(len(columns), -1, dtype=np.int8)
    for end, kind in _BY_END.items():
        kinds[judged.end == end] = code[kind]
    wrong = judged.end == WRONG
    kinds[wrong & ~judged.type_match] = code["type"]
    by_type = np.array([code[_BY_TYPE.get(each, "other")] for each in TYPES] + [code["other"]], dtype=np.int8)
    typed = wrong & judged.type_match
    kinds[typed] = by_type[columns.predicted_type[typed]]
    told = (kinds == code["target"]) & np.isfinite(judged.distance)
    kinds[told] = np.where(judged.distance[told] <= near_limit(rule, columns.dataset), code["near miss"], code["far"])
    if columns.elsewhere is not None:
        kinds[told & columns.elsewhere] = code["other element"]
    return kinds


def near_limit(protocol: Protocol, dataset: str) -> float:
    """How far from its target a point is a near miss, in thousandths: twice what the protocol accepts, or :data:`NEAR`."""
    click = protocol.rules_for(dataset).click
    return NEAR if click.fallback is None or click.measure != "fraction" else 2000.0 * click.fallback


def _judged(columns: RunColumns, protocol: str) -> Judged:
    if protocol not in columns.judged:
        raise UsageError(f"{columns.title!r} was not judged by {protocol!r}{nearest(protocol, columns.judged)}")
    return columns.judged[protocol]


def _labels(columns: RunColumns, name: str) -> tuple[NDArray[np.int64], Sequence[str]]:
    """(n,) which of the labels a step carries, -1 for none; and the labels in natural order."""
    match name:
        case "action":
            return columns.reference_type.astype(np.int64), TYPES
        case "length":
            firsts = np.array([first for first, _ in LENGTHS])
            words = [f"{first}+" if last is None else f"{first}-{last}".removesuffix(f"-{first}") for first, last in LENGTHS]
            return np.searchsorted(firsts, columns.length, side="right").astype(np.int64) - 1, words
        case "step":
            last = int(columns.step_index.max(initial=0))
            return columns.step_index.astype(np.int64), [str(index) for index in range(last + 1)]
        case "ratio":
            # In whole numbers: of ceil(parts x ratio), floats would put some borders on the wrong side.
            part = (STEP_RATIOS * (columns.step_index.astype(np.int64) + 1) - 1) // columns.length
            borders = [round(100 * each / STEP_RATIOS) for each in range(STEP_RATIOS + 1)]
            words = [f"{low}-{high} %" for low, high in pairwise(borders)]
            # The length of an episode without any record is its planned steps, which says nothing of a later step's place.
            return np.where(part < STEP_RATIOS, part, -1), words
        case "subset":
            return _numbered(columns.labels("subset"))
    if name in columns.groups:
        return _numbered(columns.groups[name])
    if name in _OPTIONAL_LABELS:
        return np.full(len(columns), -1, dtype=np.int64), ()
    known = ways(columns)
    raise UsageError(f"a run cannot be broken down by {name!r}{nearest(name, known)}; this one can by {', '.join(known)}")


def _numbered(values: Sequence[str]) -> tuple[NDArray[np.int64], Sequence[str]]:
    names = sorted(set(values) - {""})
    numbers = {"": -1, **{name: number for number, name in enumerate(names)}}
    return np.array([numbers[value] for value in values], dtype=np.int64), names

"""From executions to decisions: which executions of a step mean the same, and how often the model decides for each.

Executions are grouped by action type; then points are clustered by density (:mod:`guieval.studies.decisions.points`), texts by
Algorithm 1 (:mod:`guieval.studies.decisions.text_clusters`), scrolls by direction and presses by button. An execution that
DBSCAN labels as noise is a decision of its own. docs/studies/decisions.md has the choices that the paper leaves open.

Source: GUIEvalKit paper, section 5.1 (equations 6 and 7) and appendix C.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from guieval.actions import Action, ActionType, Click, LongPress, Open, Point, Press, Scroll, Stop, Type, Unsupported, Wait
from guieval.errors import UsageError, known_name
from guieval.studies.decisions.executions import StepExecutions
from guieval.studies.decisions.points import METRICS, NOISE, Floats, Ints, Metric, dbscan, in_order
from guieval.studies.decisions.text_clusters import LOOSE, STRICT, cluster_texts

RADIUS = 70.0
"""The paper's neighbourhood radius, in thousandths of the screen."""
FEW, LEAST_OF_FEW, LEAST = 7, 2, 5
UNDECIDED = -1
"""Label of an execution without a decision."""


@dataclass(frozen=True)
class ClusterSettings:
    """How executions become decisions.

    ``radius``, in thousandths of the screen, and ``metric`` (``l2`` or ``l1``) define which points are neighbours.
    ``min_samples`` executions within the radius make a point a core. The paper does not give it; ``None`` is the authors'
    released code: 2 if the step has at most 7 executions of the type, else 5. ``loose`` and ``strict`` are Algorithm 1's
    thresholds for texts.

    Raises :class:`UsageError` for a value out of range.
    """

    radius: float = RADIUS
    metric: Metric = "l2"
    min_samples: int | None = None
    loose: float = LOOSE
    strict: float = STRICT

    def __post_init__(self) -> None:
        known_name("metric", self.metric, METRICS)
        if not 0 < self.radius < float("inf"):
            raise UsageError(f"the radius must be above 0, in thousandths of the screen, got {self.radius:g}")
        if self.min_samples is not None and self.min_samples < 1:
            raise UsageError(f"min_samples must be at least 1, got {self.min_samples}")
        for name, value in (("loose", self.loose), ("strict", self.strict)):
            if not 0 <= value <= 1:
                raise UsageError(f"the threshold {name!r} must be a normalised edit distance in 0 to 1, got {value:g}")

    def needed(self, executions: int) -> int:
        """How many executions within the radius make a core, for a number of executions of the type."""
        if self.min_samples is not None:
            return self.min_samples
        return LEAST_OF_FEW if executions <= FEW else LEAST

    def describe(self) -> str:
        least = (
            f"{LEAST_OF_FEW} up to {FEW} executions of a type, else {LEAST}" if self.min_samples is None else self.min_samples
        )
        return (
            f"DBSCAN radius {self.radius:g}, {self.metric.upper()}, min_samples {least}; "
            f"texts loose {self.loose:g}, strict {self.strict:g}"
        )


DEFAULTS = ClusterSettings()


@dataclass(frozen=True, eq=False)
class DecisionCluster:
    """One decision of a step, and its executions.

    ``prototype``: of points the mean of the executions (each as often as it was drawn), of texts the one that began the
    cluster, else the execution drawn most often. ``members``: indices into the executions, ascending. ``isolated``: a point
    that DBSCAN labels as noise.
    """

    type: ActionType
    prototype: Action
    count: int
    members: Ints
    isolated: bool = False


@dataclass(frozen=True, eq=False)
class Decisions:
    """A model's K decisions at one step, most frequent first, ties in the order first seen.

    ``labels`` (k,): the decision of each different execution, as an index into ``clusters``, or :data:`UNDECIDED`. ``n``
    executions were measured, ``right`` of them are exact matches, ``unparseable`` hold no action and ``unsupported`` one
    outside of the space; ``failed`` requests were never answered and are in nothing else.
    """

    clusters: tuple[DecisionCluster, ...]
    labels: Ints
    n: int
    right: int
    unparseable: int
    unsupported: int
    failed: int

    @cached_property
    def distribution(self) -> Floats:
        """(K,) equation 6: the share of each decision among the executions that have one; they sum to 1."""
        counts = np.array([each.count for each in self.clusters], dtype=np.float64)
        return counts / counts.sum() if len(counts) else counts

    @property
    def diversity(self) -> float | None:
        """Equation 7: the entropy of the distribution, in nats; ``None`` if no execution has a decision."""
        return entropy(self.distribution) if self.clusters else None

    @property
    def support_size(self) -> float | None:
        """exp(diversity): the number of equally likely decisions with the same diversity (appendix C.3.1)."""
        return None if (diversity := self.diversity) is None else float(np.exp(diversity))


def entropy(counts: NDArray[np.float64] | NDArray[np.int64]) -> float:
    """-sum p log p, natural logarithm, of counts or shares above 0 (they are divided by their sum); 0 for a single one."""
    if len(counts) < 2:
        return 0.0
    shares = counts / counts.sum()
    return float(-(shares * np.log(shares)).sum())


def cluster(actions: Sequence[Action | None], counts: Sequence[int] | Ints, settings: ClusterSettings = DEFAULTS) -> Ints:
    """(k,) the decision of each execution, numbered from 0 in the order of ``actions``.

    ``counts``: how often each was drawn. Equal executions may occur more than once. Noise has a decision of its own;
    ``None`` and :class:`guieval.actions.Unsupported` have none, :data:`UNDECIDED`.
    """
    return _labelled(actions, counts, settings)[0]


def decide(executions: StepExecutions, settings: ClusterSettings = DEFAULTS) -> Decisions:
    """The decisions of a step, and how often each is taken."""
    actions, counts = executions.actions, executions.counts
    found, isolated, begun = _labelled(actions, counts, settings)
    total = int(found.max(initial=UNDECIDED)) + 1
    known = found >= 0
    sizes = np.bincount(found[known], weights=counts[known], minlength=total).astype(np.int64)
    order = np.argsort(-sizes, kind="stable")
    labels = np.full(len(found), UNDECIDED, dtype=np.int64)
    labels[known] = np.argsort(order)[found[known]]
    members = np.split(np.argsort(labels, kind="stable"), np.cumsum(np.bincount(labels + 1, minlength=total + 1))[:-1])[1:]
    clusters = []
    for old, own in zip(order.tolist(), members, strict=True):
        first = actions[begun.get(old, int(own[counts[own].argmax()]))]
        assert first is not None and first.type != "UNSUPPORTED"  # both are undecided
        stands = prototype(first, [actions[place] for place in own.tolist()], counts[own])
        clusters.append(DecisionCluster(first.type, stands, int(sizes[old]), own, old in isolated))
    return Decisions(
        clusters=tuple(clusters),
        labels=labels,
        n=executions.n,
        right=executions.right,
        unparseable=executions.unparseable,
        unsupported=executions.unsupported,
        failed=executions.failed,
    )


class Literals(NamedTuple):
    """The different executions of one action type, as far as the type tells them apart, in the order first seen.

    ``counts``: how often each was drawn; ``members``: which of a step's executions it is.
    """

    values: list[Point] | list[str]
    counts: Ints
    members: list[list[int]]


def literals(actions: Sequence[Action | None], counts: Sequence[int] | Ints) -> dict[ActionType, Literals]:
    """The executions of a step by action type; equal ones are merged, and those without a decision left out."""
    held: dict[ActionType, dict[Point | str, list[int]]] = {}
    for place, action in enumerate(actions):
        if action is None or isinstance(action, Unsupported):
            continue
        held.setdefault(action.type, {}).setdefault(_literal(action), []).append(place)
    weights = [int(count) for count in counts]
    found: dict[ActionType, Literals] = {}
    for kind, of_value in held.items():
        members = list(of_value.values())
        sizes = np.array([sum(weights[place] for place in places) for places in members], dtype=np.int64)
        found[kind] = Literals(list(of_value), sizes, members)  # type: ignore[arg-type]  # points or texts, by the type
    return found


def _literal(action: Action) -> Point | str:
    """The value that distinguishes executions of a type."""
    match action:
        case Click() | LongPress():
            return action.point
        case Scroll():
            return action.direction
        case Type():
            return action.text
        case Open():
            return action.app
        case Press():
            return action.button
        case Wait() | Stop() | Unsupported():
            return ""


def _labelled(
    actions: Sequence[Action | None], counts: Sequence[int] | Ints, settings: ClusterSettings
) -> tuple[Ints, set[int], dict[int, int]]:
    """The decision of each execution; which decisions are isolated points; the execution that began each decision of texts."""
    labels = np.full(len(actions), UNDECIDED, dtype=np.int64)
    next_label = 0
    isolated: list[int] = []
    begun: list[tuple[int, int]] = []
    for kind, found in literals(actions, counts).items():
        begin = next_label
        if kind in ("CLICK", "LONG_PRESS"):
            points, least = np.array(found.values, dtype=np.float64), settings.needed(int(found.counts.sum()))
            own, alone = noise_apart(dbscan(points, found.counts, settings.radius, least, settings.metric))
            isolated += (begin + alone).tolist()
        elif kind in ("TYPE", "OPEN"):
            own, prototypes = cluster_texts([str(value) for value in found.values], settings.loose, settings.strict)
            begun += [(begin + number, found.members[place][0]) for number, place in enumerate(prototypes)]
        else:
            own = np.arange(len(found.values), dtype=np.int64)
        next_label = begin + int(own.max(initial=-1)) + 1
        for label, members in zip((begin + own).tolist(), found.members, strict=True):
            labels[members] = label
    ordered = in_order(labels)
    renamed = dict(zip(labels.tolist(), ordered.tolist(), strict=True))
    return ordered, {renamed[each] for each in isolated}, {renamed[label]: place for label, place in begun}


def noise_apart(labels: Ints) -> tuple[Ints, Ints]:
    """The labels with a number of its own for each point that is noise, and these numbers."""
    noise = labels == NOISE
    first = int(labels.max(initial=NOISE)) + 1
    numbers = np.arange(first, first + int(noise.sum()), dtype=np.int64)
    found = labels.copy()
    found[noise] = numbers
    return found, numbers


def prototype(first: Action, actions: Sequence[Action | None], counts: Ints | Sequence[int]) -> Action:
    """The action that represents equivalent ones: ``first``, or of several points their mean, each as often as it was drawn."""
    if not isinstance(first, Click | LongPress) or len(actions) < 2:
        return first
    points = np.array([action.point for action in actions if isinstance(action, Click | LongPress)])
    x, y = np.average(points, axis=0, weights=counts).tolist()
    return first.model_copy(update={"point": Point(min(x, 1000.0), min(y, 1000.0))})

"""Judges many steps at once on arrays: what :class:`ActionEvaluator` says, without a Python call per step.

Targets are compiled once with the rules' own functions (which boxes count, which direction is expected), so a threshold is
never written twice; predictions come as arrays. For audits, ablations over thresholds, and rewards over large batches. It
tells matches and distances only: verdicts, reasons and text similarity are :mod:`guieval.evaluation.evaluator`'s.

Where what is accepted is not known before the prediction is (:attr:`ClickRule.depends_on_prediction`), and where a leniency
concerns the two types, a step is judged one by one through the same rules, at their speed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from guieval.actions import (
    ACTION_TYPES,
    BUTTONS,
    DIRECTIONS,
    Action,
    Click,
    LongPress,
    Open,
    Point,
    Press,
    Scroll,
    Stop,
    StopStatus,
    Type,
    Unsupported,
    Wait,
)
from guieval.evaluation.click_rule import ClickRule, Polygon, in_polygon
from guieval.evaluation.protocol import Protocol
from guieval.evaluation.protocols import get_protocol
from guieval.evaluation.rules import AnyType, StepRules, patterns_of, polygon_of, unsupported_key
from guieval.evaluation.text_rule import TextRule
from guieval.steps import StepTaskModel

UNPARSEABLE = -1
"""Type code of a reply that holds no action."""
UNSUPPORTED = len(ACTION_TYPES)
"""Type code of an action outside the unified space. The codes below it index :data:`guieval.actions.ACTION_TYPES`."""

_TYPES: tuple[AnyType, ...] = (*ACTION_TYPES, "UNSUPPORTED")
_TYPE_CODES: dict[str, int] = {name: code for code, name in enumerate(ACTION_TYPES)}
_DIRECTION_CODES: dict[str, int] = {name: code for code, name in enumerate(DIRECTIONS)}
_BUTTON_CODES: dict[str, int] = {name: code for code, name in enumerate(BUTTONS)}
STATUSES: tuple[StopStatus, ...] = get_args(StopStatus)
"""What the codes of :attr:`PredictionTable.status` index."""

_STATUS_CODES: dict[str, int] = {name: code for code, name in enumerate(STATUSES)}
_CLICK, _LONG_PRESS, _SCROLL, _TYPE, _OPEN, _PRESS, _WAIT, _STOP = (
    _TYPE_CODES[name] for name in ("CLICK", "LONG_PRESS", "SCROLL", "TYPE", "OPEN", "PRESS", "WAIT", "STOP")
)
_NOTHING = -2  # a target's button that no prediction has
_ANY = -3  # a target's status or button that every prediction has
_NO_DIRECTION = 7  # the bit that a scroll without direction (-1) has in a set of directions
_EVERY_DIRECTION = (1 << len(DIRECTIONS)) - 1 | 1 << _NO_DIRECTION
_END_OF_NAME = "\0"  # parts name and arguments in the text of an action outside the space; JSON holds it in neither


@dataclass(frozen=True, eq=False)
class PredictionTable:
    """One prediction per step, as arrays of one length n; make it with :meth:`from_actions` or :meth:`from_arrays`.

    ``type``: int8 codes. ``point``: (n, 2) x, y in thousandths of the screen. ``duration``: milliseconds. ``direction``,
    ``button`` and ``status``: int8 indices into :data:`guieval.actions.DIRECTIONS`, :data:`~guieval.actions.BUTTONS` and
    :data:`STATUSES`. ``text``: typed text or app name as given; for an action outside the unified space its name and
    arguments in one text. What a type has no use for is NaN, -1 or an empty text.
    """

    type: NDArray[np.int8]
    point: NDArray[np.float64]
    duration: NDArray[np.float64]
    direction: NDArray[np.int8]
    button: NDArray[np.int8]
    status: NDArray[np.int8]
    text: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.type)

    def action(self, row: int) -> Action:
        """The action in a row that holds one. What the arrays leave out is NaN or ``None``, which no rule takes as right."""
        point = Point(*self.point[row].tolist())
        match _TYPES[self.type[row]]:
            case "CLICK":
                return Click.model_construct(point=point)
            case "LONG_PRESS":
                return LongPress.model_construct(point=point, duration=float(self.duration[row]))
            case "SCROLL":
                return Scroll.model_construct(point=point, direction=_named(DIRECTIONS, self.direction[row]))
            case "TYPE":
                return Type.model_construct(text=self.text[row])
            case "OPEN":
                return Open.model_construct(app=self.text[row])
            case "PRESS":
                return Press.model_construct(button=_named(BUTTONS, self.button[row]))
            case "WAIT":
                return Wait.model_construct(duration=float(self.duration[row]))
            case "STOP":
                return Stop.model_construct(status=_named(STATUSES, self.status[row]))
        name, _, arguments = self.text[row].partition(_END_OF_NAME)
        return Unsupported.model_construct(name=json.loads(name), arguments=json.loads(arguments))

    @classmethod
    def from_arrays(
        cls,
        type: ArrayLike,
        *,
        point: ArrayLike | None = None,
        duration: ArrayLike | None = None,
        direction: ArrayLike | None = None,
        button: ArrayLike | None = None,
        status: ArrayLike | None = None,
        text: Sequence[str] | None = None,
    ) -> PredictionTable:
        """Build the table from array-likes of one length n; what is left out is filled with "not given".

        ``type`` holds indices into :data:`guieval.actions.ACTION_TYPES`, :data:`UNPARSEABLE` or :data:`UNSUPPORTED`;
        ``point`` is (n, 2), in thousandths. A long press without duration lasts its type's default, 1000 ms, and a
        stop without status is a finish. Raises ``ValueError`` for unlike lengths, a code out of range, or a click or long
        press whose point is not on the screen.
        """
        codes = np.asarray(type)
        n = len(codes)
        points = np.full((n, 2), np.nan) if point is None else np.asarray(point, dtype=np.float64)
        durations = np.full(n, 1000.0) if duration is None else np.asarray(duration, dtype=np.float64)
        directions = np.full(n, -1) if direction is None else np.asarray(direction)
        buttons = np.full(n, -1) if button is None else np.asarray(button)
        statuses = np.zeros(n) if status is None else np.asarray(status)
        texts = ("",) * n if text is None else tuple(text)
        columns = (durations, directions, buttons, statuses)
        if points.shape != (n, 2) or {*(column.shape for column in columns), (len(texts),)} != {(n,)}:
            raise ValueError(f"all columns must have one length ({n}), and point the shape ({n}, 2), got {points.shape}")
        for name, column, low, high in (
            ("type", codes, UNPARSEABLE, UNSUPPORTED),
            ("direction", directions, -1, len(DIRECTIONS) - 1),
            ("button", buttons, -1, len(BUTTONS) - 1),
            ("status", statuses, -1, len(STATUSES) - 1),
        ):
            if n and not (low <= column.min() and column.max() <= high):
                raise ValueError(f"{name} codes must lie between {low} and {high}")
        where = points[(codes == _CLICK) | (codes == _LONG_PRESS)]
        if not ((where >= 0.0) & (where <= 1000.0)).all():
            raise ValueError("the point of a click or long press must lie between 0 and 1000 on both axes")
        return cls(
            type=codes.astype(np.int8),
            point=points,
            duration=durations,
            direction=directions.astype(np.int8),
            button=buttons.astype(np.int8),
            status=statuses.astype(np.int8),
            text=texts,
        )

    @classmethod
    def from_actions(cls, actions: Iterable[Action | None]) -> PredictionTable:
        """Build the table from actions; ``None`` is a reply that holds no action."""
        rows = list(actions)
        n = len(rows)
        point = np.full((n, 2), np.nan)
        duration = np.full(n, np.nan)
        codes, direction, button, status = ([-1] * n for _ in range(4))
        text = [""] * n
        for i, action in enumerate(rows):
            if action is None:
                continue
            codes[i] = UNSUPPORTED if action.type == "UNSUPPORTED" else _TYPE_CODES[action.type]
            if isinstance(action, Click | LongPress | Scroll):
                point[i] = action.point
            if isinstance(action, LongPress | Wait):
                duration[i] = action.duration
            elif isinstance(action, Scroll):
                direction[i] = _DIRECTION_CODES[action.direction]
            elif isinstance(action, Press):
                button[i] = _BUTTON_CODES[action.button]
            elif isinstance(action, Stop):
                status[i] = _STATUS_CODES[action.status]
            elif isinstance(action, Type):
                text[i] = action.text
            elif isinstance(action, Open):
                text[i] = action.app
            elif isinstance(action, Unsupported):
                text[i] = _unsupported_text(action)
        return cls.from_arrays(
            codes, point=point, duration=duration, direction=direction, button=button, status=status, text=text
        )


def _named(names: Sequence[Any], code: np.int8) -> Any:
    return names[int(code)] if code >= 0 else None


def _unsupported_text(action: Unsupported) -> str:
    name, arguments = unsupported_key(action)
    return json.dumps(name) + _END_OF_NAME + arguments


@dataclass(frozen=True, eq=False)
class _BoxTable:
    """The accepted boxes of many rows, by rank: first the first box of every row, then the second of those that have two...

    With the rows sorted by their number of boxes, those that have a box of rank k are always the first ones, so one rank is
    tested with plain slices: nothing is gathered or padded, however uneven the numbers are (0 to 150).
    """

    order: NDArray[np.intp]
    """Rows that have boxes, most boxes first."""
    bounds: tuple[int, ...]
    """Where each rank begins in ``columns``, and the end."""
    columns: NDArray[np.float64]
    """(4, all boxes): x1, y1, x2, y2 in screen fractions."""

    @classmethod
    def build(cls, boxes: Sequence[NDArray[np.float64]]) -> _BoxTable:
        """Arrange one (4, k) array per row."""
        counts = np.array([each.shape[1] for each in boxes], dtype=np.intp)
        order = np.argsort(-counts, kind="stable")[: np.count_nonzero(counts)]
        if not len(order):
            return cls(order, (0,), np.empty((4, 0)))
        sizes = counts[order]
        flat = np.concatenate([boxes[row] for row in order.tolist()], axis=1)
        starts = np.cumsum(sizes) - sizes
        ranks = [starts[: np.count_nonzero(sizes > rank)] + rank for rank in range(int(sizes[0]))]
        bounds = np.cumsum([0, *(len(each) for each in ranks)])
        return cls(order, tuple(bounds.tolist()), np.ascontiguousarray(flat[:, np.concatenate(ranks)]))

    def contains(self, x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.bool_]:
        """For every row, whether the point (screen fractions) lies in one of its boxes; NaN lies in none."""
        inside = np.zeros(len(x), dtype=np.bool_)
        x, y = x[self.order], y[self.order]
        hit = np.zeros(len(self.order), dtype=np.bool_)
        for begin, end in pairwise(self.bounds):
            x1, y1, x2, y2 = self.columns[:, begin:end]
            n = end - begin
            hit[:n] |= (x1 <= x[:n]) & (x[:n] <= x2) & (y1 <= y[:n]) & (y[:n] <= y2)
        inside[self.order] = hit
        return inside


class _Expected(NamedTuple):
    """A row's text, in the form its rule compares, and what else that rule accepts."""

    rule: TextRule
    text: str
    patterns: Sequence[str] = ()


class _Single(NamedTuple):
    """A row as the rules see it, for predictions that are judged one by one."""

    rules: StepRules
    task: StepTaskModel
    reference: Action


@dataclass(frozen=True, eq=False)
class TargetTable:
    """Steps compiled under one protocol, one row per accepted action; make it with :func:`compile_targets`."""

    step: NDArray[np.intp]
    """Which step a row belongs to, ascending; a step has a row for its reference and one for each alternative."""
    first: NDArray[np.intp]
    """Each step's first row."""
    type: NDArray[np.int8]
    point: NDArray[np.float64]
    """(rows, 2) in thousandths: what is pointed at; for OPEN rows that a click can satisfy, the icon; else NaN."""
    reach: NDArray[np.float64]
    """(rows, 3): what differences in screen fractions are multiplied by on either axis, and the accepted distance to ``point``
    then; NaN for none. See :meth:`ClickRule.reach`."""
    tap_limit: NDArray[np.float64]
    """Longest predicted press, in milliseconds, that counts as a click; NaN for none."""
    icon: NDArray[np.bool_]
    """OPEN rows that a click can satisfy."""
    directions: NDArray[np.uint8]
    """The finger directions a scroll may have, as bits; the highest stands for a scroll that tells none."""
    button: NDArray[np.int8]
    status: NDArray[np.int8]
    own_types: NDArray[np.bool_]
    """PRESS and STOP rows whose button or status is a type of its own, so that another one is no type match."""
    text: tuple[_Expected | None, ...]
    boxes: _BoxTable
    polygons: tuple[tuple[int, Polygon], ...]
    """Rows judged by a polygon in place of boxes."""
    alone: NDArray[np.uint16]
    """The predicted types, as bits, against which a row is judged one by one."""
    singles: dict[int, _Single]
    """What is judged in the rows that have such types."""

    def __len__(self) -> int:
        """The number of steps."""
        return len(self.first)


class Scores(NamedTuple):
    """Arrays of one entry per step: matches, and the distance in thousandths (NaN where it has no meaning)."""

    type_match: NDArray[np.bool_]
    exact_match: NDArray[np.bool_]
    distance: NDArray[np.float64]


class _Row(NamedTuple):
    step: int
    type: int
    point: tuple[float, float] = (np.nan, np.nan)
    reach: tuple[float, float, float] = (np.nan, np.nan, np.nan)
    tap_limit: float | None = None
    icon: bool = False
    directions: int = 0
    button: int = _NOTHING
    status: int = _ANY
    own_types: bool = False
    text: _Expected | None = None
    boxes: NDArray[np.float64] = np.empty((4, 0))
    polygon: Polygon | None = None


def compile_targets(tasks: Iterable[StepTaskModel], protocol: str | Protocol) -> TargetTable:
    """Work out once what ``protocol`` accepts at each step. Raises :class:`UsageError` for an unknown protocol."""
    chosen = get_protocol(protocol) if isinstance(protocol, str) else protocol
    rows: list[_Row] = []
    first: list[int] = []
    alone: list[int] = []
    singles: dict[int, _Single] = {}
    types: dict[tuple[int, str], int] = {}
    for step, task in enumerate(tasks):
        rules = chosen.rules_for(task.dataset)
        first.append(len(rows))
        for reference in (task.action, *task.alternatives):
            kind = id(rules), reference.type
            if kind not in types:
                types[kind] = _alone(rules, reference.type)
            if types[kind]:
                singles[len(rows)] = _Single(rules, task, reference)
            alone.append(types[kind])
            rows.append(_compile(step, task, reference, rules))

    def column(name: str, dtype: Any) -> NDArray[Any]:
        return np.array([getattr(row, name) for row in rows], dtype=dtype)

    return TargetTable(
        step=column("step", np.intp),
        first=np.array(first, dtype=np.intp),
        type=column("type", np.int8),
        point=column("point", np.float64).reshape(-1, 2),
        reach=column("reach", np.float64).reshape(-1, 3),
        tap_limit=column("tap_limit", np.float64),
        icon=column("icon", np.bool_),
        directions=column("directions", np.uint8),
        button=column("button", np.int8),
        status=column("status", np.int8),
        own_types=column("own_types", np.bool_),
        text=tuple(row.text for row in rows),
        boxes=_BoxTable.build([row.boxes for row in rows]),
        polygons=tuple((index, row.polygon) for index, row in enumerate(rows) if row.polygon is not None),
        alone=np.array(alone, dtype=np.uint16),
        singles=singles,
    )


def _alone(rules: StepRules, reference: AnyType) -> int:
    """The predicted types, as bits, against which such a reference must be judged one by one."""

    def must(expected: AnyType, given: AnyType) -> bool:
        if any(each.concerns(expected, given) for each in rules.leniencies):
            return True
        if (expected, given) == ("OPEN", "CLICK"):
            return rules.open.icon is not None and rules.open.icon.depends_on_prediction
        return expected == given and given in ("CLICK", "LONG_PRESS") and rules.click.depends_on_prediction

    return sum(
        1 << code for code, predicted in enumerate(_TYPES) if any(must(reference, given) for given in rules.readings(predicted))
    )


def _compile(step: int, task: StepTaskModel, reference: Action, rules: StepRules) -> _Row:
    row = _Row(step, _TYPE_CODES.get(reference.type, UNSUPPORTED), tap_limit=rules.tap_limit)
    if isinstance(reference, Click | LongPress):
        polygon = polygon_of(task) if rules.click.polygon else None
        if polygon is not None:
            return row._replace(point=reference.point, reach=_reach(rules.click, task), polygon=polygon)
        return _pointing(row, rules.click, task, reference.point)
    if isinstance(reference, Scroll):
        return row._replace(directions=_direction_bits(rules.scroll.expected(task, reference)))
    if isinstance(reference, Type):
        return row._replace(text=_Expected(rules.text, rules.text.normalise(reference.text, label=True), patterns_of(task)))
    if isinstance(reference, Open):
        row = row._replace(text=_Expected(rules.app_text, rules.app_text.normalise(reference.app, label=True)))
        if rules.open.icon is not None and len(task.boxes):
            return _pointing(row, rules.open.icon, task, rules.open.icon_point(task.boxes))._replace(icon=True)
        return row
    if isinstance(reference, Unsupported):
        return row._replace(text=_Expected(rules.text, _unsupported_text(reference)))
    if isinstance(reference, Stop) and (rules.stop == "status" or rules.status_types):
        return row._replace(status=_STATUS_CODES[reference.status], own_types=rules.status_types)
    if isinstance(reference, Press):
        alike = rules.press == "type-only" and not rules.button_types
        return row._replace(button=_ANY if alike else _BUTTON_CODES[reference.button], own_types=rules.button_types)
    return row


def _pointing(row: _Row, rule: ClickRule, task: StepTaskModel, target: Point) -> _Row:
    if rule.depends_on_prediction:
        return row._replace(point=target)
    boxes = rule.accepted(task.boxes, target, screen=task.screenshot_size) if len(task.boxes) else row.boxes
    return row._replace(point=target, reach=_reach(rule, task), boxes=boxes)


def _reach(rule: ClickRule, task: StepTaskModel) -> tuple[float, float, float]:
    return (np.nan, np.nan, np.nan) if rule.fallback is None else rule.reach(task.screenshot_size)


def _direction_bits(words: Sequence[str]) -> int:
    if len(words) == len(DIRECTIONS):
        return _EVERY_DIRECTION
    return sum(1 << _DIRECTION_CODES[word] for word in words if word in _DIRECTION_CODES)


def score(targets: TargetTable, predictions: PredictionTable) -> Scores:
    """Judge prediction i as the answer to step i, exactly as :meth:`ActionEvaluator.evaluate` does one by one.

    Raises ``ValueError`` when the two tables are not of one length.
    """
    if len(targets) != len(predictions):
        raise ValueError(f"{len(predictions)} predictions cannot answer {len(targets)} steps")
    if not len(targets):
        return Scores(np.empty(0, np.bool_), np.empty(0, np.bool_), np.empty(0))
    one_each = len(targets.step) == len(targets)
    rows = slice(None) if one_each else targets.step
    given, point = predictions.type[rows], predictions.point[rows]
    # A NaN limit (no limit) compares false, so such rows keep their long presses.
    given = np.where((given == _LONG_PRESS) & (predictions.duration[rows] <= targets.tap_limit), np.int8(_CLICK), given)
    same = given == targets.type
    by_icon = targets.icon & (given == _CLICK)
    pointing = (same & ((given == _CLICK) | (given == _LONG_PRESS))) | by_icon

    difference = point - targets.point
    distance = np.sqrt(difference[:, 0] * difference[:, 0] + difference[:, 1] * difference[:, 1])
    fractions = point / 1000.0
    difference = (fractions - targets.point / 1000.0) * targets.reach[:, :2]
    close = np.sqrt(difference[:, 0] * difference[:, 0] + difference[:, 1] * difference[:, 1]) <= targets.reach[:, 2]
    exact = pointing & (close | targets.boxes.contains(fractions[:, 0], fractions[:, 1]))

    for row, polygon in targets.polygons:
        if pointing[row] and not exact[row]:
            exact[row] = in_polygon(polygon, *point[row].tolist())

    exact |= same & (given == _WAIT)
    stops, presses = same & (given == _STOP), same & (given == _PRESS)
    exact |= stops & ((targets.status == _ANY) | (predictions.status[rows] == targets.status))
    exact |= presses & ((targets.button == _ANY) | (predictions.button[rows] == targets.button))
    same &= exact | ~(targets.own_types & (stops | presses))
    bits = (predictions.direction[rows] & _NO_DIRECTION).astype(np.uint8)  # -1 becomes the bit of no direction
    exact |= same & (given == _SCROLL) & ((targets.directions >> bits & 1) == 1)
    written = (same & ((given == _TYPE) | (given == _OPEN) | (given == UNSUPPORTED))).nonzero()[0]
    texts = predictions.text
    for row, step in zip(written.tolist(), targets.step[written].tolist(), strict=True):
        expected, text = targets.text[row], texts[step]
        assert expected is not None, "every row of these types has a text"
        if given[row] == UNSUPPORTED:
            exact[row] = text == expected.text
            same[row] = text.partition(_END_OF_NAME)[0] == expected.text.partition(_END_OF_NAME)[0]
        else:
            exact[row] = expected.rule.accepts(expected.text, text, expected.patterns)

    matched = same | by_icon
    distance[~pointing | by_icon] = np.nan
    # The type of no action, -1, becomes the highest bit, which no row has.
    alone = (targets.alone >> (predictions.type[rows] & 15).astype(np.uint16) & 1).nonzero()[0]
    for row, step in zip(alone.tolist(), targets.step[alone].tolist(), strict=True):
        rules, task, reference = targets.singles[row]
        judged = rules.judge(task, reference, predictions.action(step))
        matched[row], exact[row] = judged.type_match, judged.exact_match
        distance[row] = np.nan if judged.distance is None else judged.distance
    if one_each:
        return Scores(matched, exact, distance)
    # The best row of a step: exact before type match before none, then the nearest; as the evaluator ranks them.
    rank = 2 * exact.astype(np.int8) + matched
    best = np.maximum.reduceat(rank, targets.first)
    nearest = np.fmin.reduceat(np.where(rank == best[targets.step], distance, np.nan), targets.first)
    return Scores((best & 1) == 1, best >= 2, nearest)

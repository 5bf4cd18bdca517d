"""The unified action space, into which all labels and all model responses are translated.

Source: Table 9 of the GUIEvalKit paper (Scaling, Benchmarking, and Reasoning of Vision-Language Agents for Mobile GUI
Navigation). Points are floats in [0, 1000] per axis, x to the right and y down. A scroll's direction is the *finger's*.
Conversions between coordinate frames are in :mod:`guieval.frames`; the formats of models are in the adapters.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias, get_args, overload

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, GetCoreSchemaHandler, GetJsonSchemaHandler, TypeAdapter
from pydantic_core import core_schema

ActionType: TypeAlias = Literal["CLICK", "LONG_PRESS", "SCROLL", "TYPE", "OPEN", "PRESS", "WAIT", "STOP"]
Direction: TypeAlias = Literal["up", "down", "left", "right"]
Button: TypeAlias = Literal["BACK", "HOME", "ENTER", "RECENT"]
StopStatus: TypeAlias = Literal["finish", "impossible"]

ACTION_TYPES: tuple[ActionType, ...] = get_args(ActionType)
DIRECTIONS: tuple[Direction, ...] = get_args(Direction)
BUTTONS: tuple[Button, ...] = get_args(Button)

Coordinate: TypeAlias = Annotated[float, Field(ge=0.0, le=1000.0, allow_inf_nan=False)]


class Point(NamedTuple):
    """A point on the screen, both axes in [0, 1000]."""

    x: Coordinate
    y: Coordinate


class Box(NamedTuple):
    """An axis-parallel rectangle, both corners in unified coordinates; (x1, y1) is the upper left one."""

    x1: float
    y1: float
    x2: float
    y2: float

    @property
    def centre(self) -> Point:
        """The middle of both axes, in thousandths of the screen."""
        return Point((self.x1 + self.x2) / 2, (self.y1 + self.y2) / 2)


BORDER = 1e-6
"""Tolerance of every comparison of a point with a box, in [0, 1000]: far below a pixel, and above the rounding error of a
pixel that is written as a fraction of the screen and read again."""
OUTWARD = np.array([[-BORDER], [-BORDER], [BORDER], [BORDER]])
"""(4, 1) what moves each corner of a box by the tolerance."""


class Boxes:
    """An immutable list of boxes, held as one read-only float64 array of shape (n, 4): x1, y1, x2, y2 in [0, 1000].

    An array, because a screen has up to 150 boxes and a Python loop over them would slow down scoring. Boxes may extend
    beyond the screen (accessibility trees do), so the numbers must be finite but have no range.
    """

    def __init__(self, boxes: Iterable[Iterable[float]] | NDArray[np.float64] = ()) -> None:
        try:
            array = np.array(boxes if isinstance(boxes, np.ndarray) else list(boxes), dtype=np.float64)
        except (TypeError, ValueError, OverflowError):  # OverflowError: a number of 400 digits
            raise ValueError("boxes must be a list of [x1, y1, x2, y2]") from None
        if array.size == 0:
            array = np.empty((0, 4), dtype=np.float64)
        if array.ndim != 2 or array.shape[1] != 4:
            raise ValueError("boxes must be a list of [x1, y1, x2, y2]")
        if not np.isfinite(array).all():
            raise ValueError("boxes must hold finite numbers")
        array.setflags(write=False)
        self.array = array

    def __len__(self) -> int:
        return int(self.array.shape[0])

    def __iter__(self) -> Iterator[Box]:
        return (Box(*row) for row in self.array.tolist())

    @overload
    def __getitem__(self, index: int) -> Box: ...
    @overload
    def __getitem__(self, index: slice) -> Boxes: ...
    def __getitem__(self, index: int | slice) -> Box | Boxes:
        return Boxes(self.array[index]) if isinstance(index, slice) else Box(*self.array[index].tolist())

    def __add__(self, other: Boxes) -> Boxes:
        """These boxes, and then the others."""
        if len(self) and len(other):
            return Boxes(np.concatenate([self.array, other.array]))
        return self if len(self) else other

    def containing(self, point: Point) -> NDArray[np.bool_]:
        """Mask of the boxes that contain the point, border included (:data:`BORDER`)."""
        return contain(self.array.T + OUTWARD, *point)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Boxes) and np.array_equal(self.array, other.array)

    def __hash__(self) -> int:
        return hash(self.array.tobytes())

    def __repr__(self) -> str:
        return f"Boxes({self.array.tolist()!r})"

    def __reduce__(self) -> tuple[type[Boxes], tuple[list[list[float]]]]:
        return (Boxes, (self.array.tolist(),))

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        def validate(value: Any) -> Boxes:
            return value if isinstance(value, Boxes) else cls(value)

        return core_schema.no_info_plain_validator_function(
            validate, serialization=core_schema.plain_serializer_function_ser_schema(lambda boxes: boxes.array.tolist())
        )

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {"type": "array", "items": {"type": "array", "items": {"type": "number"}, "minItems": 4, "maxItems": 4}}


def contain(corners: NDArray[np.float64], x: float, y: float) -> NDArray[np.bool_]:
    """Mask of the columns x1, y1, x2, y2 of a (4, k) array that contain the point; add :data:`OUTWARD` for their borders."""
    x1, y1, x2, y2 = corners
    at_x, at_y = np.array(x), np.array(y)  # numpy compares faster with these than with Python's numbers
    inside: NDArray[np.bool_] = x1 <= at_x
    inside &= at_x <= x2
    inside &= y1 <= at_y
    inside &= at_y <= y2
    return inside


def _is_none(value: object) -> bool:
    return value is None


class _Action(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Click(_Action):
    """Tap at ``point``."""

    type: Literal["CLICK"] = "CLICK"
    point: Point


class LongPress(_Action):
    """Press and hold at ``point`` for ``duration`` milliseconds."""

    type: Literal["LONG_PRESS"] = "LONG_PRESS"
    point: Point
    duration: Annotated[float, Field(ge=0.0, allow_inf_nan=False)] = 1000.0


class Scroll(_Action):
    """Swipe from ``point``; ``direction`` is the finger's (the content moves with it).

    ``distance`` is in thousandths of the screen along the direction, if the model stated one; only devices use it.
    """

    type: Literal["SCROLL"] = "SCROLL"
    point: Point
    direction: Direction
    distance: Annotated[float | None, Field(gt=0.0, allow_inf_nan=False, exclude_if=_is_none)] = None


class Type(_Action):
    """Enter ``text`` into the focused field."""

    type: Literal["TYPE"] = "TYPE"
    text: str


class Open(_Action):
    """Launch the application named ``app``."""

    type: Literal["OPEN"] = "OPEN"
    app: str


class Press(_Action):
    """Press a system button."""

    type: Literal["PRESS"] = "PRESS"
    button: Button


class Wait(_Action):
    """Wait for ``duration`` milliseconds."""

    type: Literal["WAIT"] = "WAIT"
    duration: Annotated[float, Field(ge=0.0, allow_inf_nan=False)] = 1000.0


class Stop(_Action):
    """End the task, as done (``finish``) or as not doable (``impossible``)."""

    type: Literal["STOP"] = "STOP"
    status: StopStatus = "finish"


class DoubleClick(_Action):
    """Click the left button twice at ``point``."""

    type: Literal["DOUBLE_CLICK"] = "DOUBLE_CLICK"
    point: Point


class RightClick(_Action):
    """Click the right button at ``point``."""

    type: Literal["RIGHT_CLICK"] = "RIGHT_CLICK"
    point: Point


class Hover(_Action):
    """Move the pointer to ``point`` without a click."""

    type: Literal["HOVER"] = "HOVER"
    point: Point


class Drag(_Action):
    """Press at ``start``, move to ``end``, and release; without ``start``, from where the pointer is."""

    type: Literal["DRAG"] = "DRAG"
    start: Point | None = None
    end: Point


class Hotkey(_Action):
    """Press ``keys`` together, e.g. ``("ctrl", "c")``; names in lower case, as pyautogui's."""

    type: Literal["HOTKEY"] = "HOTKEY"
    keys: Annotated[tuple[str, ...], Field(min_length=1)]


class Answer(_Action):
    """Answer the task's question with ``text``; the task goes on until it is stopped."""

    type: Literal["ANSWER"] = "ANSWER"
    text: str


class Ask(_Action):
    """Ask the user the question ``text``; an environment with a simulated user adds its answer to the goal."""

    type: Literal["ASK"] = "ASK"
    text: str


DeviceAction: TypeAlias = Annotated[
    DoubleClick | RightClick | Hover | Drag | Hotkey | Answer | Ask, Field(discriminator="type")
]
"""Actions of devices that Table 9 does not have."""


class Unsupported(_Action):
    """A valid action of a model's own format that Table 9 does not have; kept to compute coverage.

    ``device`` is what it does on a device, if guieval knows: mode ``online`` carries that out. Offline protocols compare
    ``name`` and ``arguments``, unless they state a rule for device actions.

    ``known`` marks an incomplete action: its type is one of Table 9, and ``problem`` says in a sentence which of its arguments
    cannot be used, e.g. a click outside the model's coordinate frame. ``arguments`` are as they were written. Offline protocols
    that look at nothing but the type of such an action count it, and the others count its type alone.
    """

    type: Literal["UNSUPPORTED"] = "UNSUPPORTED"
    name: str
    arguments: dict[str, Any] = Field(default_factory=dict)
    device: Annotated[DeviceAction | None, Field(exclude_if=_is_none)] = None
    known: Annotated[ActionType | None, Field(exclude_if=_is_none)] = None
    problem: Annotated[str | None, Field(exclude_if=_is_none)] = None


TableNineAction: TypeAlias = Click | LongPress | Scroll | Type | Open | Press | Wait | Stop
Action: TypeAlias = Annotated[TableNineAction | Unsupported, Field(discriminator="type")]
ExecutableAction: TypeAlias = TableNineAction | DeviceAction
"""An action that a device can carry out."""
AnyType: TypeAlias = ActionType | Literal["UNSUPPORTED"]


def type_of(action: Action) -> AnyType:
    """The type of an action, also of one of which only the type is known."""
    return (action.known or "UNSUPPORTED") if isinstance(action, Unsupported) else action.type


def executable(action: Action) -> ExecutableAction | None:
    """What ``action`` does on a device; ``None`` for an unsupported action without a meaning there."""
    return action.device if isinstance(action, Unsupported) else action


_ADAPTER: TypeAdapter[Action] = TypeAdapter(Action)


def action_from_json(data: str | bytes | dict[str, Any]) -> Action:
    """Read one action from JSON text or an already parsed object.

    Raises :class:`pydantic.ValidationError` (a ``ValueError``) naming the field when it is not one.
    """
    return _ADAPTER.validate_json(data) if isinstance(data, str | bytes) else _ADAPTER.validate_python(data)


def action_to_json(action: Action) -> str:
    """Write one action as a JSON object; :func:`action_from_json` reads back an equal one."""
    return action.model_dump_json()


@dataclass(frozen=True)
class ActionSpace:
    """The unified actions that a benchmark's labels or a model's format can express (coverage is their intersection)."""

    types: frozenset[ActionType] = frozenset(ACTION_TYPES)
    buttons: frozenset[Button] = frozenset({"BACK", "HOME", "ENTER"})
    statuses: frozenset[StopStatus] = frozenset({"finish", "impossible"})

    def __contains__(self, action: Action) -> bool:
        if type_of(action) not in self.types:
            return False
        if isinstance(action, Press):
            return action.button in self.buttons
        return not isinstance(action, Stop) or action.status in self.statuses

    def to_json(self) -> dict[str, list[str]]:
        """As JSON values for the manifest."""
        return {"types": sorted(self.types), "buttons": sorted(self.buttons), "statuses": sorted(self.statuses)}

    @cached_property
    def examples(self) -> tuple[Action, ...]:
        """A few actions of each type in this space, for conformance checks and documentation."""
        points = (Point(500.0, 750.0), Point(0.0, 0.0), Point(1000.0, 1000.0), Point(123.25, 987.5))
        actions: list[Action] = [Click(point=point) for point in points]
        actions += [LongPress(point=points[0]), LongPress(point=points[3])]
        actions += [Scroll(point=Point(500.0, 500.0), direction=direction) for direction in DIRECTIONS]
        actions += [
            Type(text=text) for text in ("hello world", 'it\'s "quoted", \\ and {braced}', "多行\n文本 ✓", "a)b(c, d='e'")
        ]
        actions += [Open(app="Google Maps"), Open(app='Bob\'s "Shop"')]
        actions += [Press(button=button) for button in BUTTONS]
        actions += [Wait(), Stop(), Stop(status="impossible")]
        return tuple(action for action in actions if action in self)


def path_direction(start: tuple[float, float], end: tuple[float, float]) -> Direction | None:
    """The finger's direction along a path, both ends in the same coordinate frame.

    The axis with the larger movement decides and a tie is vertical, as in UI-S1's ``predict_direction`` and in the
    nearest-cosine rule of AgentCPM-GUI and GUIEvalKit. ``None`` for a path of length 0.
    """
    dx, dy = end[0] - start[0], end[1] - start[1]
    if (dx == 0 and dy == 0) or math.isnan(dx) or math.isnan(dy):
        return None
    if abs(dx) > abs(dy):
        return "right" if dx > 0 else "left"
    return "down" if dy > 0 else "up"


OPPOSITE: dict[Direction, Direction] = {"up": "down", "down": "up", "left": "right", "right": "left"}


NOTCH_PIXELS = 100
"""How far a page moves at one notch of a mouse wheel, about."""


def wheel_distance(notches: object, direction: Direction, size: tuple[int, int]) -> float | None:
    """The distance of a scroll by so many notches on a screen of ``size`` in pixels; ``None`` if it is not a number."""
    if isinstance(notches, bool) or not isinstance(notches, int | float) or not 0 < abs(notches) < 1e9:
        return None
    return 1000.0 * abs(notches) * NOTCH_PIXELS / size[0 if direction in ("left", "right") else 1]


def scroll_path(action: Scroll, length: float = 300.0) -> tuple[Point, Point]:
    """Start and end of a scroll as a path on the screen: of its distance, else of ``length`` thousandths.

    For formats that write both ends instead of a direction. The path starts at the action's point and is cut at the
    edge of the screen; if less than a tenth would remain, it starts in the middle of that axis instead.
    """
    x, y = action.point
    length = length if action.distance is None else action.distance
    sign = -1.0 if action.direction in ("up", "left") else 1.0
    along = y if action.direction in ("up", "down") else x
    end = min(1000.0, max(0.0, along + sign * length))
    if abs(end - along) < length / 10:
        along, end = 500.0, 500.0 + sign * length
    if action.direction in ("up", "down"):
        return Point(x, along), Point(x, end)
    return Point(along, y), Point(end, y)

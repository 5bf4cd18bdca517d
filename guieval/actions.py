"""The unified action space: what every benchmark's label and every model's reply is translated into.

Source: Table 9 of the GUIEvalKit paper (Scaling, Benchmarking, and Reasoning of Vision-Language Agents for Mobile GUI
Navigation). Points are floats in [0, 1000] per axis, x to the right and y down. A scroll's direction is the *finger's*.
Translation from and to other coordinate frames is in :mod:`guieval.frames`; formats of models are in the adapters.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, GetCoreSchemaHandler, TypeAdapter
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
    """A place on the screen, both axes in [0, 1000]."""

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
        """The middle of the box."""
        return Point((self.x1 + self.x2) / 2, (self.y1 + self.y2) / 2)


class Boxes:
    """An immutable list of boxes, held as one read-only float64 array of shape (n, 4): x1, y1, x2, y2 in [0, 1000].

    An array, because a screen has up to 150 of them and scoring a step must not touch them one by one. Boxes may reach
    outside the screen (accessibility trees do), so no range is enforced, only that all numbers are finite.
    """

    def __init__(self, boxes: Iterable[Iterable[float]] | NDArray[np.float64] = ()) -> None:
        array = np.array(boxes if isinstance(boxes, np.ndarray) else list(boxes), dtype=np.float64)
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

    def __getitem__(self, index: int) -> Box:
        return Box(*self.array[index].tolist())

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
            if isinstance(value, Boxes):
                return value
            try:
                return cls(value)
            except TypeError as error:
                raise ValueError("boxes must be a list of [x1, y1, x2, y2]") from error

        return core_schema.no_info_plain_validator_function(
            validate, serialization=core_schema.plain_serializer_function_ser_schema(lambda boxes: boxes.array.tolist())
        )


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
    """Swipe from ``point``; ``direction`` is where the finger moves (the content moves with it)."""

    type: Literal["SCROLL"] = "SCROLL"
    point: Point
    direction: Direction


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


class Unsupported(_Action):
    """What a model validly said in its own format but the unified space has no word for; kept, so coverage can be told."""

    type: Literal["UNSUPPORTED"] = "UNSUPPORTED"
    name: str
    arguments: dict[str, Any] = Field(default_factory=dict)


Action: TypeAlias = Annotated[
    Click | LongPress | Scroll | Type | Open | Press | Wait | Stop | Unsupported, Field(discriminator="type")
]

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
    """Which unified actions a benchmark's labels or a model's format can express (coverage is their intersection)."""

    types: frozenset[ActionType] = frozenset(ACTION_TYPES)
    buttons: frozenset[Button] = frozenset({"BACK", "HOME", "ENTER"})
    statuses: frozenset[StopStatus] = frozenset({"finish", "impossible"})

    def __contains__(self, action: Action) -> bool:
        if action.type not in self.types:
            return False
        if isinstance(action, Press):
            return action.button in self.buttons
        return not isinstance(action, Stop) or action.status in self.statuses

    def to_json(self) -> dict[str, list[str]]:
        """As JSON-able values; :meth:`from_json` reads back an equal space."""
        return {"types": sorted(self.types), "buttons": sorted(self.buttons), "statuses": sorted(self.statuses)}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> ActionSpace:
        """Read what :meth:`to_json` wrote."""
        return cls(frozenset(values["types"]), frozenset(values["buttons"]), frozenset(values["statuses"]))

    @cached_property
    def examples(self) -> tuple[Action, ...]:
        """A few actions of each type in this space, for conformance checks and documentation."""
        points = (Point(500.0, 750.0), Point(0.0, 0.0), Point(1000.0, 1000.0), Point(123.25, 987.5))
        every: list[Action] = [Click(point=point) for point in points]
        every += [LongPress(point=points[0]), LongPress(point=points[3])]
        every += [Scroll(point=Point(500.0, 500.0), direction=direction) for direction in DIRECTIONS]
        every += [
            Type(text=text) for text in ("hello world", 'it\'s "quoted", \\ and {braced}', "多行\n文本 ✓", "a)b(c, d='e'")
        ]
        every += [Open(app="Google Maps"), Open(app='Bob\'s "Shop"')]
        every += [Press(button=button) for button in BUTTONS]
        every += [Wait(), Stop(), Stop(status="impossible")]
        return tuple(action for action in every if action in self)


def path_direction(start: tuple[float, float], end: tuple[float, float]) -> Direction | None:
    """The finger's direction along a path given in any frame whose axes are scaled alike on both ends.

    The axis with the larger movement decides and a tie is vertical, as in UI-S1's ``predict_direction`` and in the
    nearest-cosine rule of AgentCPM-GUI and GUIEvalKit. ``None`` for a path of no length, which has no direction.
    """
    dx, dy = end[0] - start[0], end[1] - start[1]
    if (dx == 0 and dy == 0) or math.isnan(dx) or math.isnan(dy):
        return None
    if abs(dx) > abs(dy):
        return "right" if dx > 0 else "left"
    return "down" if dy > 0 else "up"


OPPOSITE: dict[Direction, Direction] = {"up": "down", "down": "up", "left": "right", "right": "left"}


def scroll_path(action: Scroll, length: float = 300.0) -> tuple[Point, Point]:
    """Where the finger touches and lifts when a scroll is drawn as a path ``length`` thousandths long, on the screen.

    Formats that know no direction word write the two ends. The path starts at the action's point and is cut at the
    screen's edge; where the edge leaves less than a tenth of it, it starts in the middle of that axis instead.
    """
    x, y = action.point
    sign = -1.0 if action.direction in ("up", "left") else 1.0
    along = y if action.direction in ("up", "down") else x
    end = min(1000.0, max(0.0, along + sign * length))
    if abs(end - along) < length / 10:
        along, end = 500.0, 500.0 + sign * length
    if action.direction in ("up", "down"):
        return Point(x, along), Point(x, end)
    return Point(along, y), Point(end, y)

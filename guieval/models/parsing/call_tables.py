"""The meaning of a family's calls: a table from the name of a call to an action, read and written from the same entry.

An entry is an action, for a call whose arguments do not matter, or a :class:`Form`, which states the meaning of each argument.
An adapter declares its family's table and keeps only what no other family does.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar

from guieval import actions as act
from guieval.errors import IncompleteAction, ParseError
from guieval.frames import Frame, Size
from guieval.models.parsing.calls import call_text
from guieval.models.parsing.points import decoded, place

Value = TypeVar("Value")
ScrollWords: TypeAlias = Literal["finger", "content"]
"""What a scroll's direction names: where the finger goes, or where the content comes from, which is the opposite side."""

BACK, HOME, ENTER, RECENT = (act.Press(button=button) for button in ("BACK", "HOME", "ENTER", "RECENT"))
FINISH, IMPOSSIBLE = act.Stop(status="finish"), act.Stop(status="impossible")
BUTTON_NAMES: dict[str, act.Button] = {"back": "BACK", "home": "HOME", "enter": "ENTER"}
"""The names that most families give the buttons, in lower case."""
MIDDLE = act.Point(500.0, 500.0)
"""The start of a scroll whose call gives no place."""
XY = ("x", "y")
"""As the keys of a place: its two numbers are two arguments."""


class Arguments(NamedTuple):
    """A call with its arguments, which are read one by one; a :class:`ParseError` names what is missing or unreadable."""

    name: str
    values: Mapping[str, Any]
    frame: Frame
    size: Size
    scroll_words: ScrollWords = "finger"

    def found(self, *keys: str) -> Any:
        """The first of the arguments that is given, else ``None``."""
        for key in keys:
            if (value := self.values.get(key)) is not None:
                return value
        return None

    def needed(self, *keys: str) -> Any:
        """The first of the arguments that is given; without it only the action's type is known (:class:`IncompleteAction`)."""
        value = self.found(*keys)
        if value is None:
            raise IncompleteAction(f"{self.name} lacks {keys[0]!r}")
        return value

    def deciding(self, *keys: str) -> Any:
        """The first of the arguments that is given, on which the action's type depends."""
        try:
            return self.needed(*keys)
        except IncompleteAction as error:
            raise ParseError(str(error)) from None

    def text(self, *keys: str) -> str:
        """An argument as text; a number counts as text."""
        value = self.needed(*keys)
        if isinstance(value, str):
            return value
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ParseError(f"{self.name} has {value!r:.80} as {keys[0]!r}")
        return str(value)

    def one_of(self, choices: Mapping[str, Value], *keys: str) -> Value:
        """The meaning of an argument's word, in upper or lower case."""
        value = self.needed(*keys)
        word = value.strip().lower() if isinstance(value, str) else None
        if word is None or word not in choices:
            raise ParseError(f"the {self.name}'s {keys[0]} {value!r:.80} is none of {', '.join(choices)}")
        return choices[word]

    def point(self, *keys: str) -> act.Point:
        """A place in the family's frame, as a unified point."""
        if keys != XY:
            return decoded(self.needed(*keys), self.frame, self.size)
        pair = [self.needed(key) for key in XY]
        if any(isinstance(side, list) for side in pair):
            raise ParseError(f"{pair!r:.80} is not a point")
        return decoded(pair, self.frame, self.size)

    def milliseconds(self, key: str) -> float:
        """A time given in seconds; one second if it is missing."""
        value = self.values.get(key)
        return amount(1 if value is None else value, f"the {self.name}'s {key}", "seconds") * 1000

    def swipe(self, start: object, end: object) -> act.Scroll:
        """The swipe along a path between two places; both have to be on the screen."""
        point, last = decoded(start, self.frame, self.size), decoded(end, self.frame, self.size)
        direction = act.path_direction(place(start), place(end))
        if direction is None:
            raise IncompleteAction(f"the {self.name} has no length, so it has no direction")
        axis = 0 if direction in ("left", "right") else 1
        return act.Scroll(point=point, direction=direction, distance=round(abs(last[axis] - point[axis]), 3) or None)

    def scroll(self, key: str, point: act.Point = MIDDLE) -> act.Scroll:
        """The scroll from ``point`` that a direction word names."""
        direction = self.one_of(_BY_NAME, key)
        return act.Scroll(point=point, direction=turned(direction, self.scroll_words))

    def keys(self, *keys: str) -> act.Hotkey:
        """Keys to press together: a list of their names, or a text such as ``ctrl c``, ``ctrl+c`` or ``['ctrl', 'c']``.

        One of them may be a button, and any others are outside of the action space.
        """
        value = self.deciding(*keys)
        names = re.findall(r"[^\s+,'\"\[\]]+", value) or [value] if isinstance(value, str) else value
        if not isinstance(names, list) or not names or not all(isinstance(name, str) and name for name in names):
            raise ParseError(f"{self.name} has {value!r:.80} as {keys[0]!r}")
        return act.Hotkey(keys=tuple(name.strip().lower() if len(name) > 1 else name for name in names))

    def unsupported(self, device: act.DeviceAction | None = None) -> act.Unsupported:
        """The call as it is, for an action outside of the unified space, with its action on a device."""
        return act.Unsupported(name=self.name, arguments=dict(self.values), device=device)

    def incomplete(self, known: act.ActionType, problem: str) -> act.Unsupported:
        """The call as it is, for an action of which only the type is known; ``problem`` says why in a sentence."""
        return act.Unsupported(name=self.name, arguments=dict(self.values), known=known, problem=problem)


def amount(value: Any, name: str, unit: str) -> float:
    """A time as a number, which may be in quotes; the error calls it by ``name`` and ``unit``."""
    number = _number(value)
    if not 0 <= number < 1e9:
        raise ParseError(f"{name} {value!r:.80} is not a number of {unit}")
    return number


def _number(value: Any) -> float:
    """A number, which may be in quotes; NaN for anything else."""
    try:
        return math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan


_BY_NAME: dict[str, act.Direction] = {direction: direction for direction in act.DIRECTIONS}


def turned(direction: act.Direction, scroll_words: ScrollWords) -> act.Direction:
    """A scroll's word as the finger's direction, or the finger's direction as a word."""
    return direction if scroll_words == "finger" else act.OPPOSITE[direction]


class Writing(NamedTuple):
    """How a family writes a place, and what its scroll words name."""

    place: Callable[[act.Point], Any]
    scroll_words: ScrollWords = "finger"

    def at(self, keys: tuple[str, ...], point: act.Point) -> dict[str, Any]:
        """A place under its key, or as two numbers."""
        return dict(zip(XY, self.place(point), strict=True)) if keys == XY else {keys[0]: self.place(point)}


@dataclass(frozen=True)
class Form:
    """How one kind of action is read from a call's arguments, and which arguments are written for it.

    ``write`` gives ``None`` for an action that the call has no way to express. If an argument has several names, the first
    one is written.
    """

    kind: type[act.Action]
    read: Callable[[Arguments], act.Action]
    write: Callable[[Any, Writing], dict[str, Any] | None] = lambda action, writing: None


OUTSIDE = Form(act.Unsupported, Arguments.unsupported)
"""A call outside of the unified action space."""


def on_device(read: Callable[[Arguments], act.DeviceAction]) -> Form:
    """A call outside of the unified action space, with its action on a device if its arguments name one."""

    def unsupported(call: Arguments) -> act.Unsupported:
        try:
            return call.unsupported(read(call))
        except ParseError:
            return call.unsupported()

    return Form(act.Unsupported, unsupported)


def _pointed(kind: Callable[..., act.DeviceAction]) -> Callable[..., Form]:
    return lambda *keys: on_device(lambda call: kind(point=call.point(*keys)))


double_clicked, right_clicked, hovered = _pointed(act.DoubleClick), _pointed(act.RightClick), _pointed(act.Hover)
"""A double click, a click of the right button, and a move of the pointer, to a place by the names of its arguments."""


def dragged(start: tuple[str, ...], end: tuple[str, ...]) -> Form:
    """A drag between two places; without names for the start, from where the pointer is."""
    return on_device(lambda call: act.Drag(start=call.point(*start) if start else None, end=call.point(*end)))


def pressed_together(*keys: str) -> Form:
    """Keys pressed at the same time."""
    return on_device(lambda call: call.keys(*keys))


def answered(*keys: str) -> Form:
    """An answer to the task's question."""
    return on_device(lambda call: act.Answer(text=call.text(*keys)))


def asked(*keys: str) -> Form:
    """A question to the user."""
    return on_device(lambda call: act.Ask(text=call.text(*keys)))


def selected(*keys: str) -> Form:
    """A choice from a list by its value, as Mind2Web's labels name it: its place is not part of it, nor is that of a text."""

    def read(call: Arguments) -> act.Unsupported:
        value = call.found(*keys)
        return act.Unsupported(name="SELECT", arguments={"value": value}) if isinstance(value, str) else call.unsupported()

    return Form(act.Unsupported, read)


def outside(*names: str) -> dict[str, Form]:
    """The rows of a table for calls outside of the unified action space."""
    return dict.fromkeys(names, OUTSIDE)


def tap(*keys: str) -> Form:
    """A click at a place."""
    return Form(
        act.Click, lambda call: act.Click(point=call.point(*keys)), lambda action, writing: writing.at(keys, action.point)
    )


def hold(*keys: str, seconds: str | None = None) -> Form:
    """A long press at a place, for a time if the family has an argument for it."""

    def read(call: Arguments) -> act.Action:
        point = call.point(*keys)
        return (
            act.LongPress(point=point) if seconds is None else act.LongPress(point=point, duration=call.milliseconds(seconds))
        )

    return Form(
        act.LongPress, read, lambda action, writing: writing.at(keys, action.point) | _seconds(seconds, action.duration)
    )


def waited(seconds: str) -> Form:
    """A pause for a time."""
    return Form(
        act.Wait,
        lambda call: act.Wait(duration=call.milliseconds(seconds)),
        lambda action, writing: _seconds(seconds, action.duration),
    )


def _seconds(key: str | None, milliseconds: float) -> dict[str, float]:
    seconds = milliseconds / 1000
    return {} if key is None else {key: int(seconds) if seconds.is_integer() else seconds}


def typed(*keys: str) -> Form:
    """A call that types: the text is under the first of ``keys`` that is given, and written under ``keys[0]``."""
    return Form(act.Type, lambda call: act.Type(text=call.text(*keys)), lambda action, writing: {keys[0]: action.text})


def opened(*keys: str) -> Form:
    """Opening an app by its name."""

    def read(call: Arguments) -> act.Action:
        app = call.text(*keys)
        if not app.strip():
            raise IncompleteAction(f"{call.name} names no app")
        return act.Open(app=app)

    return Form(act.Open, read, lambda action, writing: {keys[0]: action.app})


def swiped(start: str, *end: str) -> Form:
    """A scroll along a path."""

    def write(action: act.Scroll, writing: Writing) -> dict[str, Any]:
        first, last = act.scroll_path(action)
        return {start: writing.place(first), end[0]: writing.place(last)}

    def read(call: Arguments) -> act.Action:
        return call.swipe(call.needed(start), call.needed(*end))

    return Form(act.Scroll, read, write)


def scrolled(word: str, *keys: str, needs_place: bool = False) -> Form:
    """A scroll by a direction word, from a place if the family has an argument for it, else from the middle."""

    def read(call: Arguments) -> act.Action:
        placed = needs_place or call.found(*keys) is not None
        return call.scroll(word, call.point(*keys) if placed else MIDDLE)

    def write(action: act.Scroll, writing: Writing) -> dict[str, Any]:
        place = writing.at(keys, action.point) if keys else {}
        return {**place, word: turned(action.direction, writing.scroll_words)}

    return Form(act.Scroll, read, write)


def wheel(
    positive: act.Direction,
    negative: act.Direction,
    *amounts: str,
    place: tuple[str, ...] = (),
    unit: Literal["notches", "screens"] | None = "notches",
    written: int = 5,
) -> Form:
    """A turn of the wheel by an amount: the finger's direction for a positive and a negative one.

    ``unit`` is what the amount counts, ``None`` if it says nothing about the distance; ``written`` is the amount of a scroll
    that is written. ``place`` are the names of the argument with the place, if the family has one.
    """

    def read(call: Arguments) -> act.Action:
        value = call.needed(*amounts)
        amount = _number(value)
        if not 0 < abs(amount) < math.inf:
            raise ParseError(f"{call.name} has {value!r:.80} as {amounts[0]!r}")
        direction = positive if amount > 0 else negative
        distance = act.wheel_distance(amount, direction, call.size) if unit == "notches" else 1000.0 * abs(amount)
        point = call.point(*place) if place and call.found(*place) is not None else MIDDLE
        return act.Scroll(point=point, direction=direction, distance=distance if unit and abs(amount) < 1e9 else None)

    def write(action: act.Scroll, writing: Writing) -> dict[str, Any] | None:
        sign = {positive: 1, negative: -1}.get(action.direction)
        return None if sign is None else {amounts[0]: sign * written}

    return Form(act.Scroll, read, write)


def pressed(key: str, buttons: Mapping[str, act.Button]) -> Form:
    """A button by its name, which is read in any case and written as it is given."""
    lowered = {name.lower(): button for name, button in buttons.items()}
    return Form(
        act.Press,
        lambda call: act.Press(button=call.one_of(lowered, key)),
        lambda action, writing: _first_name(key, buttons, action.button),
    )


def enter(read: Callable[[Arguments], act.Action], **written: Any) -> Form:
    """Keys; of the buttons only Enter is written so, as the arguments ``written``."""
    return Form(act.Press, read, lambda action, writing: dict(written) if action == ENTER else None)


SUCCESS: dict[str, act.StopStatus] = {"success": "finish", "failure": "impossible"}
"""The words that most families have for how a task ended."""


def stopped(key: str, statuses: Mapping[str, act.StopStatus] = SUCCESS, default: act.StopStatus | None = None) -> Form:
    """The end of a task, with a word for how it ended; ``default`` is what it means without one."""
    return Form(
        act.Stop,
        lambda call: act.Stop(status=default if default and key not in call.values else call.one_of(statuses, key)),
        lambda action, writing: _first_name(key, statuses, action.status),
    )


def _first_name(key: str, names: Mapping[str, str], meaning: str) -> dict[str, Any] | None:
    return next(({key: name} for name, stands_for in names.items() if stands_for == meaning), None)


_NAME = re.compile(r"[\w.+ -]{1,40}")


def _unknown(name: str) -> str:
    """Why a call of that name is no action: if it cannot be a name at all, the response was not understood."""
    if not name:
        return "the response names no action"
    if _NAME.fullmatch(name) is None:
        return f"what is given as the action's name is none: {name!r:.60}"
    return f"{name!r} is not an action of this family"


class CallTable(dict[str, act.Action | Form]):
    """The calls of a family by their names."""

    def outside(self, name: str) -> bool:
        """Whether a call of this name is outside of the unified action space."""
        entry = self.get(name)
        return isinstance(entry, act.Unsupported) or (isinstance(entry, Form) and entry.kind is act.Unsupported)

    def read(
        self, name: str, arguments: Mapping[str, Any], frame: Frame, size: Size, scroll_words: ScrollWords = "finger"
    ) -> act.Action:
        """The action that a call means, its places read in ``frame`` on a screenshot of ``size``.

        If an argument is missing or a place is outside the screen, it is an action of which only the type is known.
        """
        entry = self.get(name)
        if entry is None:
            raise ParseError(_unknown(name))
        if not isinstance(entry, Form):
            return entry
        call = Arguments(name, arguments, frame, size, scroll_words)
        try:
            return entry.read(call)
        except IncompleteAction as error:
            return call.incomplete(entry.kind.model_fields["type"].default, str(error))

    def write(
        self, action: act.Action, place: Callable[[act.Point], Any], scroll_words: ScrollWords = "finger"
    ) -> tuple[str, dict[str, Any]]:
        """The first call of the table that means ``action``: its name and its arguments, with places as ``place`` writes them.

        ``ValueError`` if there is none. An unsupported action is written as the call that it is.
        """
        if isinstance(action, act.Unsupported):
            return action.name, dict(action.arguments)
        writing = Writing(place, scroll_words)
        for name, entry in self.items():
            if not isinstance(entry, Form):
                if entry == action or (isinstance(entry, act.Wait) and isinstance(action, act.Wait)):
                    return name, {}
            elif entry.kind is type(action) and (arguments := entry.write(action, writing)) is not None:
                return name, arguments
        raise ValueError(f"no call of this family means {action!r}")

    def write_text(self, action: act.Action, place: Callable[[act.Point], Any], scroll_words: ScrollWords = "finger") -> str:
        """As :meth:`write`, as a call expression with all text in quotes."""
        name, arguments = self.write(action, place, scroll_words)
        if isinstance(action, act.Unsupported):
            arguments = {key: str(value) for key, value in arguments.items()}
        return call_text(name, arguments)

"""UI-Genie's results on AndroidControl: wrong responses with their labels, and right ones as verdicts without a response.

The files are :mod:`.ui_genie_files`. The labels are the authors' own, rewritten from AndroidControl's, so they count also if
the benchmark's data is named; that gives the screens' sizes. Places are in pixels of the screenshot after ``smart_resize`` with
at most 602,112 pixels (``src/ms-swift/exps/eval_androidcontrol_swift_high_level.sh``).

A right response counts as right under ``ui-genie``, by which the authors judged it, and is not measured under other protocols.
Of its label only the type is known; the rest of the step's action is a placeholder, which nothing is compared with. A response
that was not JSON is unparseable.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from pydantic_core import from_json

from guieval.actions import Action, Click, LongPress, Open, Press, Scroll, StopStatus, Type, Unsupported, Wait
from guieval.errors import ParseError
from guieval.exchange.predictions.predicted import NO_BOXES, SCREEN, Format, Predicted, ReadRow, Rows, episode_lengths
from guieval.exchange.predictions.rows import PredictionRow
from guieval.exchange.predictions.ui_genie_files import RIGHT, UNREADABLE, WRONG, place_of
from guieval.frames import ResizedPixels, Size
from guieval.models.parsing import CallTable
from guieval.models.parsing import call_tables as calls
from guieval.steps import StepTaskModel

BENCHMARK = "androidcontrol"
PROTOCOL = "ui-genie"
FRAME = ResizedPixels(max_pixels=768 * 28 * 28)
_STATUSES: dict[str, StopStatus] = {"success": "finish", "failure": "impossible"}
_CALLS = CallTable(
    {
        "click": calls.tap("coordinate"),
        "long_press": calls.hold("coordinate", seconds="time"),
        "swipe": calls.scrolled("direction"),
        "type": calls.typed("text"),
        "open": calls.opened("text"),
        "system_button": calls.pressed("button", calls.BUTTON_NAMES),
        "wait": calls.waited("time"),
        "terminate": calls.stopped("status", _STATUSES),
    }
)
PLACEHOLDERS: Mapping[str, Action] = {
    "click": Click(point=calls.MIDDLE),
    "long_press": LongPress(point=calls.MIDDLE),
    "swipe": Scroll(point=calls.MIDDLE, direction="up"),
    "type": Type(text=""),
    "open": Open(app="unknown"),
    "system_button": Press(button="BACK"),
    "wait": Wait(),
    "terminate": calls.FINISH,
}
"""An action of each type, for a label of which the file keeps the type alone."""


def _reader(rows: Rows, steps: Iterable[StepTaskModel]) -> ReadRow:
    sizes = {task.episode_id: task.screenshot_size for task in steps}
    return partial(_read, lengths=episode_lengths(rows, place_of), sizes=sizes)


def _read(row: PredictionRow, lengths: Mapping[str, int], sizes: Mapping[str, Size]) -> Predicted | None:
    reply, place = row.text("reply"), place_of(row)
    if reply not in (RIGHT, WRONG, UNREADABLE):
        raise row.error("reply", f"expected {RIGHT}, {WRONG} or {UNREADABLE}, got {reply!r:.80}")
    if reply == UNREADABLE and "type" not in row:
        return None
    type_ = row.text("type")
    if type_ not in PLACEHOLDERS:
        raise row.error("type", f"{type_!r:.80} is none of {', '.join(PLACEHOLDERS)}")
    size = sizes.get(place.episode, SCREEN)
    action = row.build("gt", lambda: _label(row.text("gt"), size)) if reply == WRONG else PLACEHOLDERS[type_]
    task = row.task(
        benchmark=BENCHMARK,
        dataset=BENCHMARK,
        episode_id=place.episode,
        step_index=place.step,
        episode_length=lengths[place.episode],
        instruction="",
        screenshot="",
        screenshot_size=size,
        action=action,
        extras={} if place.episode in sizes else {"screen_size_from": "assumed"},
    )
    if reply == RIGHT:
        return Predicted(*task.key, task=task, right_under=PROTOCOL)
    if reply == UNREADABLE:
        return Predicted(*task.key, reason="the response is not JSON", task=task)
    answer = row.text("answer")
    return Predicted.of(task, lambda: _answered(answer, size))


def _label(call: str, size: Size) -> Action:
    _, tag, text = call.partition("<tool_call>")
    if not tag:
        raise ParseError(f"{call[:80]!r} has no <tool_call>")
    return _action(_object(_object(text.partition("</tool_call>")[0]).get("arguments")), size)


def _answered(answer: str, size: Size) -> Action:
    """The response's action. What cannot be read of it is unsupported: the authors count every JSON object as an answer."""
    arguments = _object(answer)
    try:
        return _action(arguments, size)
    except ParseError:
        return Unsupported(name=str(arguments.get("action")), arguments=arguments)


def _action(arguments: Mapping[str, Any], size: Size) -> Action:
    return _CALLS.read(str(arguments.get("action", "")).lower(), arguments, FRAME, size)


def _object(text: Any) -> dict[str, Any]:
    try:
        value = from_json(text) if isinstance(text, str) else text
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise ParseError(f"{text!r:.80} is not a JSON object")
    return value


UI_GENIE = Format(
    "ui-genie",
    "UI-Genie's details.json, with the *_badcase.json next to it",
    frozenset({"questionID", "reply"}),
    _reader,
    assumed=("screens are taken to be 1080 x 2400 pixels if no data (--data) gives their size", NO_BOXES),
    relabelled=True,
)

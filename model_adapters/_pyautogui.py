"""Python code of ``pyautogui`` calls as models write it: read with :mod:`ast`, never run.

Arguments may be given by name or by position, which are those of pyautogui itself. A step's calls are one action: a place that
``moveTo`` goes to is where the next call acts.
"""

from __future__ import annotations

import ast
import math
import re
import warnings
from collections.abc import Mapping
from typing import Any, NamedTuple

from guieval import actions as act
from guieval.errors import ParseError, whole_text
from guieval.models import ABCModel
from guieval.models.parsing import call_tables as calls
from guieval.steps import StepTaskModel

_MODULES = ("pyautogui", "computer", "time")
_XY = ("x", "y")
POSITIONS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("write", "typewrite"), ("message",)),
    **dict.fromkeys(("press", "hotkey", "keyDown", "keyUp"), ("keys",)),
    **dict.fromkeys(("scroll", "hscroll", "vscroll"), ("clicks", *_XY)),
    "sleep": ("seconds",),
    "terminate": ("status",),
}
"""The names of arguments by position; a place for all other calls."""
_FENCED = re.compile(r"^[ \t]*```[a-z]*[ \t]*\n(.*?)(?:\n[ \t]*(?:```|`{1,2}\Z)|\Z)", re.DOTALL | re.MULTILINE)
_CALL_LINE = re.compile(rf"^[ \t`]*((?:{'|'.join(_MODULES)})\.\w+\(.*?\))[ \t`]*$", re.MULTILINE)

MOST_MARKS = 1_000
_MARKS = re.compile(r"[,;+()\[\]{}\n]")


class PyAutoGuiCall(NamedTuple):
    """A call of a function by its name without the module's, with its arguments by their names."""

    name: str
    arguments: Mapping[str, Any]


def calls_in(text: str) -> list[PyAutoGuiCall]:
    """The calls in a response's code: in its first fence, else the lines that are calls. Raises :class:`ParseError`."""
    fenced = _FENCED.search(text)
    if fenced is None:
        return calls_of("\n".join(_CALL_LINE.findall(text)), POSITIONS)
    try:
        return calls_of(fenced[1], POSITIONS)
    except ParseError:
        if not fenced[0].endswith("```") or fenced[1].count("(") != fenced[1].count(")") + 1:
            raise
        return calls_of(f"{fenced[1]})", POSITIONS)  # nothing was cut off


def calls_of(code: str, positions: Mapping[str, tuple[str, ...]], *, bare: bool = False) -> list[PyAutoGuiCall]:
    """The calls that a code consists of, their arguments named by ``positions``. Raises :class:`ParseError`.

    With ``bare``, functions are called without a module. One bracket too many at the end is tolerated. A code with more than
    1,000 marks is not read: a model stuck in a loop writes many thousands, which Python takes long for.
    """
    if len(_MARKS.findall(code)) > MOST_MARKS:
        raise ParseError(f"the response's code is too long to be a step's: {code.strip()[:80]!r}")
    code = code.strip()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of escapes that Python does not know
            body = ast.parse(code).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        if code.endswith("))") and code.count("(") + 1 == code.count(")"):
            return calls_of(code[:-1], positions, bare=bare)
        raise ParseError(f"the response's code cannot be read: {code[:80]!r}") from None
    found = [_call(one, positions, bare) for one in body if not isinstance(one, ast.Import | ast.ImportFrom)]
    if not found:
        raise ParseError(f"the response has no call: {code[:80]!r}")
    return found


def _call(statement: ast.stmt, positions: Mapping[str, tuple[str, ...]], bare: bool) -> PyAutoGuiCall:
    call = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(call, ast.Call):
        raise ParseError(f"the response's code has more than calls: {type(statement).__name__}")
    match call.func:
        case ast.Attribute(value=ast.Name(id=module), attr=name) if module in _MODULES:
            pass
        case ast.Name(id=name) if bare:
            pass
        case _:
            raise ParseError("the response's code calls a function that is not pyautogui's")
    given = [_value(argument) for argument in call.args]
    if name in ("hotkey", "press") and len(given) > 1 and all(isinstance(key, str) for key in given):
        given = [given]
    arguments = dict(zip(positions.get(name, _XY), given, strict=False))
    return PyAutoGuiCall(
        name, arguments | {keyword.arg: _value(keyword.value) for keyword in call.keywords if keyword.arg is not None}
    )


def _value(node: ast.expr) -> Any:
    try:
        return _plain(ast.literal_eval(node))
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        raise ParseError("the response's code has an argument that is not a constant") from None


def _plain(value: object) -> Any:
    """A constant as JSON can hold it."""
    match value:
        case str():
            return whole_text(value)
        case list() | tuple():
            return [_plain(item) for item in value]
        case None | bool():
            return value
        case int() | float() if abs(value) < 1e15 and math.isfinite(value):
            return value
    raise ValueError(value)


def action_of(model: ABCModel, task: StepTaskModel, found: list[PyAutoGuiCall]) -> act.Action:
    """The action of a step's calls: the first one that acts, at the place of the ``moveTo`` before it."""
    moved: dict[str, Any] = {}
    for number, (name, arguments) in enumerate(found, 1):
        last = number == len(found)
        if name == "sleep" and not last:
            continue
        if name == "moveTo" and not last:
            moved = {key: arguments[key] for key in _XY if key in arguments}
            continue
        if name in ("dragTo", "drag") and len(moved) == 2:
            arguments = {"start": [moved["x"], moved["y"]], **arguments}
        elif name not in ("write", "typewrite", "press", "hotkey"):
            arguments = {**moved, **arguments}
        return model.read_call(task, name, arguments)
    raise ParseError("the response's code moves the pointer only")


def written(model: ABCModel, task: StepTaskModel, action: act.Action) -> str:
    """The code for an action; ``ValueError`` if the family's table has none."""

    def place(point: act.Point) -> list[float]:
        return [int(side) if side == int(side) else side for side in model.write_place(task, point)]

    name, arguments = model.table.write(action, place)
    lead = ""
    if isinstance(action, act.Scroll):
        if action.point != calls.MIDDLE:
            x, y = place(action.point)
            lead = f"pyautogui.moveTo(x={x}, y={y})\n"
        return f"{lead}pyautogui.{name}({arguments['clicks']})"
    module = "computer" if name in ("terminate", "wait", "triple_click") else "pyautogui"
    return f"{module}.{name}({', '.join(f'{key}={value!r}' for key, value in arguments.items())})"


# --- what each call means ---------------------------------------------------------------------------------------------


def _click(call: calls.Arguments) -> act.Action:
    button, count = call.values.get("button", "left"), call.values.get("clicks", 1)
    point = call.point(*calls.XY)
    if button == "left" and count == 1:
        return act.Click(point=point)
    if button == "right" and count == 1:
        return call.unsupported(act.RightClick(point=point))
    return call.unsupported(act.DoubleClick(point=point) if (button, count) == ("left", 2) else None)


def _press(call: calls.Arguments) -> act.Action:
    keys, times = call.keys("keys", "key").keys, call.values.get("presses", 1)
    if len(keys) != 1 or times != 1:
        return call.unsupported()
    return calls.ENTER if keys[0].lower() in ("enter", "return") else call.unsupported(act.Hotkey(keys=keys))


def _drag(call: calls.Arguments) -> act.Drag:
    return act.Drag(start=call.point("start") if "start" in call.values else None, end=call.point(*calls.XY))


_STATUSES: dict[str, act.StopStatus] = {"success": "finish", "failure": "impossible", "fail": "impossible"}
CALLS = calls.CallTable(
    {
        **dict.fromkeys(("click", "leftClick"), calls.Form(act.Click, _click, calls.tap(*calls.XY).write)),
        **dict.fromkeys(("write", "typewrite"), calls.typed("message")),
        "press": calls.enter(_press, keys=["enter"]),
        # a positive number moves the view up or right, hence the finger down or left
        **dict.fromkeys(("scroll", "vscroll"), calls.wheel("down", "up", "clicks", "amount", "page", place=calls.XY)),
        "hscroll": calls.wheel("left", "right", "clicks", "amount", "page", place=calls.XY),
        "terminate": calls.stopped("status", _STATUSES),
        "wait": act.Wait(),
        "sleep": calls.waited("seconds"),
        "doubleClick": calls.double_clicked(*calls.XY),
        "rightClick": calls.right_clicked(*calls.XY),
        "moveTo": calls.hovered(*calls.XY),
        "dragTo": calls.on_device(_drag),
        "hotkey": calls.pressed_together("keys"),
        **calls.outside("triple_click", "tripleClick", "middleClick", "moveRel", "dragRel", "move", "drag"),
        **calls.outside("keyDown", "keyUp", "mouseDown", "mouseUp"),
    }
)
"""pyautogui's calls, and the ``computer`` ones that OpenCUA's prompts add."""

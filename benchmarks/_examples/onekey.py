"""The contest's onekey cases: ``<case>/ref.json``, a graph of screens with the actions accepted on each, and its screenshots.

After the starter data and the scorer in github.com/hzy1522/ZTE-code-for-student. Ranges are whole thousandths of the screen
and, as ``x_real`` and ``y_real``, pixels; a pattern is marked by "正则 ".
"""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Any

from guieval.actions import Action, Click, Open, Stop, Type
from guieval.playground.phone import PhoneStep

from .played import draw, expressible, write_json

SIZE = (360, 800)
_SPECIAL = frozenset("\\^$.|?*+()[]{}")


def write_onekey(folder: Path, *, episodes: int, seed: int) -> None:
    """The first ``episodes`` of ``seed`` that the format has words for: those that only open apps, click, type and end
    as done.

    Every second typed text is given as a pattern. The step before the last one may also be taken by way of a state of its own
    ("…-1"), and a last screenshot belongs to no state, as both are in the starter data.
    """
    for played in islice(expressible(seed, _known, SIZE), episodes):
        case = folder / f"step_{played.task.app.lower().replace(' ', '')}_onekey_{played.number:04d}"
        width, height = SIZE
        overview = {"instruction": played.task.instruction, "app": played.task.app, "screen_shape": [width, height]}
        graph: dict[str, Any] = {"case_overview": overview}
        typed = 0
        for number, step in enumerate(played.steps):
            typed += isinstance(step.action, Type)
            following = "#" if number + 1 == len(played) else str(number + 1)
            graph[str(number)] = _accepted(step, following, pattern=typed % 2 == 1)
            draw(step, case / f"{number}.png")
        last = len(played) - 1
        graph[str(last - 1)].append({**graph[str(last - 1)][0], "next": f"{last}-1"})
        graph[f"{last}-1"] = graph[str(last)]
        for name in (f"{last}-1", f"{last + 1}"):
            draw(played.steps[-1], case / f"{name}.png")
        write_json(case / "ref.json", graph)


def _known(step: PhoneStep) -> bool:
    match step.action:
        case Click():
            return step.target is not None
        case Open() | Type() | Stop(status="finish"):
            return True
        case _:
            return False


def _accepted(step: PhoneStep, following: str, *, pattern: bool) -> list[dict[str, Any]]:
    moves = [_move(step.action, step, following, pattern)]
    if isinstance(step.action, Click):
        moves += [_move(other, step, following, pattern) for other in step.alternatives if isinstance(other, Open)]
    return moves


def _move(action: Action, step: PhoneStep, following: str, pattern: bool) -> dict[str, Any]:
    params: dict[str, Any]
    match action:
        case Click():
            assert step.target is not None, "only clicks with a target are taken"
            width, height = SIZE
            x1, y1, x2, y2 = step.target.box
            grid = {"x": [x1 * 1000 // width, x2 * 1000 // width], "y": [y1 * 1000 // height, y2 * 1000 // height]}
            params = {"x_real": [x1, x2], "y_real": [y1, y2], **grid}
        case Open():
            params = {"app": action.app}
        case Type():
            params = {"text": f"正则 .*{action.text}.*" if pattern and not _SPECIAL & set(action.text) else action.text}
        case _:
            params = {}
    return {"action": "COMPLETE" if isinstance(action, Stop) else action.type, "params": params, "next": following}

"""MobiBench's folders of tasks: ``<app>/<number>/`` with ``<i>.png``, ``<i>_answers.json`` and ``instruction.txt``.

After dataset/README.md and the samples of github.com/fclab-skku/Mobi-Bench, in whose lists the default action need not be the
first.
"""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Any

from guieval.actions import Action, Click, LongPress, Open, Press, Scroll, Stop, Type
from guieval.playground.phone import PhoneStep

from .played import draw, expressible, save, write_json


def write_mobi_bench(folder: Path, *, episodes: int, seed: int) -> None:
    """The first ``episodes`` of ``seed`` that the format has words for, each in the folder of its app."""
    for number, played in enumerate(islice(expressible(seed, _known), episodes), 1):
        task = folder / played.task.app / str(number)
        save(task / "instruction.txt", played.task.instruction.encode())
        for index, step in enumerate(played.steps):
            draw(step, task / f"{index}.png")
            write_json(task / f"{index}_answers.json", _answers(step))


def _known(step: PhoneStep) -> bool:
    match step.action:
        case Click() | LongPress():
            return step.target is not None
        case Press():
            return step.action.button == "BACK"
        case Stop():
            return step.action.status == "finish"
        case _:
            return step.action.type in ("TYPE", "SCROLL", "OPEN")


def _answers(step: PhoneStep) -> list[dict[str, Any]]:
    opened = [other for other in step.alternatives if isinstance(other, Open)] if isinstance(step.action, Click) else []
    return [*(_answer(other, step, default=False) for other in opened), _answer(step.action, step, default=True)]


def _answer(action: Action, step: PhoneStep, *, default: bool) -> dict[str, Any]:
    bounds, params = None, {}
    match action:
        case Click() | LongPress():
            assert step.target is not None, "only touches of a target are taken"
            x1, y1, x2, y2 = step.target.box
            name, bounds = "Click" if isinstance(action, Click) else "Long Click", f"[{x1},{y1}][{x2},{y2}]"
        case Type():
            name, params = "Input", {"text": action.text}
        case Open():
            name, params = "OpenApp", {"app": action.app}
        case Scroll():
            name = "Scroll"
        case Press():
            name = "Navigate Back"
        case _:
            return {"type": "Finish", "default": default}
    return {"type": name, "index": -1, "bounds": bounds, "params": params, "default": default}

"""What a task of the desktop is: a start and an end of HOME, written with placeholders that a seed fills, and its judge.

A task is data, so its judge is one function of two states: files by their paths, and settings of applications.
"""

from __future__ import annotations

import configparser
import math
import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from guieval.actions import Action, Click, DeviceAction, DoubleClick, Hotkey, Open, Point, Press, Stop, Type, Unsupported
from guieval.connectors.desktop.documents import made, parts
from guieval.connectors.desktop.home import APPLICATIONS, KEYFILE
from guieval.steps import Score

Language: TypeAlias = Literal["en", "zh"]
State: TypeAlias = Mapping[str, str]
"""Texts of files by their paths in HOME; a folder is ``PATH/``. What is no file has a name that no path can have: the right to
execute ``PATH//executable``, parts of a document, a setting ``//setting SCHEMA KEY``, and :data:`CLIPBOARD`."""
CLIPBOARD = "//clipboard"
SIZE = (1280, 800)
"""(width, height) of the screen in pixels; the places of the experts' clicks are in it."""
_NAMES = (
    "agenda",
    "budget",
    "contract",
    "draft",
    "invoice",
    "journal",
    "letter",
    "minutes",
    "offer",
    "report",
    "summary",
    "travel",
)
_WORDS = (
    "amber",
    "bridge",
    "candle",
    "dolphin",
    "engine",
    "forest",
    "garden",
    "harbor",
    "island",
    "jacket",
    "kettle",
    "lantern",
)
_FOLDERS = ("archive", "clients", "exports", "finance", "museum", "office", "plans", "shared")
_CHINESE = ("苹果", "北京", "春天", "电脑", "风景", "故事", "河流", "花园", "火车", "教室")


@dataclass(frozen=True)
class DesktopTask:
    """A task in ``application``, which shows ``opened`` when it begins.

    ``start`` are the files; ``goal`` is what the end has in addition or in their place, ``None`` for what is gone. ``steps`` is
    how the expert does it: ``key ctrl+s``, ``type TEXT``, ``click X Y`` and ``double X Y`` in pixels, ``open APPLICATION``. All
    texts may have placeholders (:func:`values_of`). ``also`` is a second application that the task needs.
    """

    id: str
    application: str
    english: str
    chinese: str
    start: Mapping[str, str]
    goal: Mapping[str, str | None]
    steps: tuple[str, ...]
    opened: str = ""
    also: str = ""

    @property
    def difficulty(self) -> str:
        """By the number of the expert's steps."""
        return "easy" if len(self.steps) <= 4 else "medium" if len(self.steps) <= 8 else "hard"


@dataclass(frozen=True)
class SeededTask:
    """A task with the names, words and numbers of a seed."""

    instruction: str
    command: str
    files: Mapping[str, bytes] = field(compare=False)  # documents have the time at which they were made
    start: State
    goal: Mapping[str, str | None]
    actions: tuple[Action, ...]


class Values(dict[str, str | int]):
    """The placeholders of a task; ``{3*m+nm}`` is calculated from numbers, with ``nm`` one number of the digits of both."""

    def __missing__(self, key: str) -> int:
        if key.isdigit() or key == "nm":
            return int(key) if key.isdigit() else int(f"{self['n']}{self['m']}")
        if "+" not in key and "*" not in key:
            raise KeyError(key)
        return sum(math.prod(int(self[factor]) for factor in part.split("*")) for part in key.split("+"))


def values_of(task: str, seed: int) -> Values:
    """The values of a seed: ``a`` to ``d`` names of files, ``f`` to ``h`` of folders, ``u`` to ``z`` words, ``m`` and ``n``
    numbers from 11 to 98, ``p`` and ``q`` Chinese words. All of a kind differ.
    """
    dice = random.Random(f"{task} {seed}")
    found = Values()
    for letters, kind in (("abcd", _NAMES), ("fgh", _FOLDERS), ("uvwxyz", _WORDS), ("pq", _CHINESE)):
        found.update(zip(letters, dice.sample(kind, len(letters)), strict=True))
    found.update(zip("mn", dice.sample(range(11, 99), 2), strict=True))
    return found


def seeded(task: DesktopTask, seed: int, language: Language) -> SeededTask:
    """The task with the values of a seed."""
    values = values_of(task.id, seed)

    def filled(text: str) -> str:
        return text.format_map(values)

    files = _with_folders({filled(path): made(filled(path), filled(text)) for path, text in task.start.items()})
    opened = f" '{filled(task.opened)}'" if task.opened else ""
    return SeededTask(
        instruction=filled(task.english if language == "en" else task.chinese),
        command=APPLICATIONS[task.application] + opened,
        files=files,
        start=state_of(files),
        goal={filled(path): None if text is None else filled(text).rstrip("\n") for path, text in task.goal.items()},
        actions=(*(_action(filled(step)) for step in task.steps), Stop()),
    )


def _with_folders(files: Mapping[str, bytes]) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for path, text in files.items():
        parts = path.rstrip("/").split("/")
        found.update({"/".join(parts[:count]) + "/": b"" for count in range(1, len(parts))})
        found[path] = text
    return found


def _action(step: str) -> Action:
    kind, _, rest = step.partition(" ")
    match kind:
        case "key" if rest == "enter":
            return Press(button="ENTER")
        case "key":
            return _unsupported(Hotkey(keys=tuple(rest.split("+"))))
        case "type":
            return Type(text=rest)
        case "click":
            return Click(point=_point(rest))
        case "double":
            return _unsupported(DoubleClick(point=_point(rest)))
        case "open":
            return Open(app=rest)
    raise ValueError(f"{step!r} is no step of an expert")


def _point(place: str) -> Point:
    """The middle of a pixel."""
    x, y = (1000 * (int(part) + 0.5) / length for part, length in zip(place.split(), SIZE, strict=True))
    return Point(x, y)


def _unsupported(action: DeviceAction) -> Unsupported:
    values = action.model_dump(mode="json")
    return Unsupported(name=values.pop("type").lower(), arguments=values, device=action)


def state_of(home: Mapping[str, bytes]) -> dict[str, str]:
    """What judges compare: the parts of files, and folders, without the hidden ones of HOME itself, and settings."""
    settings = configparser.RawConfigParser(strict=False, delimiters=("=",))
    settings.optionxform = str  # type: ignore[method-assign,assignment]
    try:
        settings.read_string(home.get(KEYFILE, b"").decode(errors="replace"))
    except configparser.Error:
        settings.clear()
    found: dict[str, str] = {}
    for path, content in home.items():
        if not path.startswith("."):
            found.update(parts(path, content))
    for schema in settings.sections():
        found.update({f"//setting {schema} {key}": value for key, value in settings.items(schema)})
    return found


def judged(task: SeededTask, end: State) -> Score:
    """A success reaches every goal and changes no other file; ``end`` is from :func:`state_of`.

    Progress is the share of the goals that the end reaches. Side effects are other files that were added, changed or deleted.
    """
    goals = task.goal
    open_goals = [path for path in goals if end.get(path) != goals[path]]
    effects = [
        f"{'deleted' if path not in end else 'changed' if path in task.start else 'added'} {path}"
        for path in sorted({*task.start, *end})
        if path not in goals and not path.startswith("//") and task.start.get(path) != end.get(path)
    ]
    success = not open_goals and not effects
    progress = (len(goals) - len(open_goals)) / len(goals)
    reached = f"{len(goals) - len(open_goals)} of {len(goals)} goals are reached"
    missing = f"; not {open_goals[0]}" if open_goals else ""
    other = f"; {effects[0]}" if effects else ""
    return Score(
        success=success,
        progress=1.0 if success else min(progress, 0.99),
        side_effects=tuple(effects),
        reason=reached + missing + other,
    )

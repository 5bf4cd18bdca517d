"""The "onekey" cases of ZTE's GUI agent contest (2026): Chinese tasks in real Android apps, each a graph of screens.

There are about a dozen cases; no count is published. Tested with five of them: 48 steps with 54 accepted actions, and 57
accepted actions with the states off the reference paths. The organisers' scorer is ``test_runner.py`` in their repository.

**Layout**: a folder per case with ``ref.json`` and a screenshot for every state; ``root`` is the folder of cases, or one that
has it as ``test_data/offline`` or ``offline``. ``case_overview`` tells the instruction, the app and the size of the screens;
every other key is a state, named as its screenshot without suffix (any image suffix is taken), with the list of actions
accepted there, and the ``next`` state each leads to. Screenshots that belong to no state are ignored.

**What becomes an episode**: the path from the first state ("0"; "0-0" or "1-1" if there is one, as in the scorer) to "#"
along the first accepted action of every state, which is the path the scorer takes by default. A state's further actions are
alternatives, wherever they lead, so states off that path are not asked. ``extras`` keep the state, and its actions as they
stand (``accepted``).

**Labels**: ``CLICK`` ranges ``x`` and ``y`` on a grid of 1000 are a box, whose middle is the reference point; the scorer
leaves the border out, and so does the protocol ``onekey``. ``TYPE`` takes its text letter for letter; a text with "正则 "
("regular expression") is a pattern, which the scorer asks the beginning of the typed text to match. It goes into
``extras["text_patterns"]``, extended by "and then anything" so that it matches whole texts; the reference is a text made from
the pattern, which must consist of literal characters and ``.*``. ``OPEN`` takes the app's name letter for letter, ``COMPLETE``
is ``Stop``. ``SCROLL`` without places, or without ``is_precise``, agrees with every scroll, so all four directions are
accepted; else the direction of its path counts (the scorer also compares angles or places, which the unified scroll has not).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from guieval.actions import DIRECTIONS, Action, ActionSpace, Boxes, Click, Open, Point, Scroll, Stop, Type, path_direction
from guieval.data.benchmark import ABCBenchmark, EpisodeRef
from guieval.frames import PER_1000, Size
from guieval.steps import Episode, EpisodeKey, StepTaskModel

from ._examples import written_by
from ._grounding import stated_size
from ._images import find_image
from ._rows import Row, episode, listed, placed, read_row, step

FOLDERS = ("", "test_data/offline", "offline")
FILE = "ref.json"
FIRST_STATES = ("0-0", "1-1", "0")
END = "#"
PATTERN_MARK = "正则"
_AND_ANYTHING = r"[\s\S]*"
_SPECIAL = re.compile(r"[\\^$.|?*+()\[\]{}]")


class OneKey(ABCBenchmark):
    """The contest's offline cases: ``<case>/ref.json`` with one screenshot per state."""

    name = "onekey"
    title = "ZTE onekey"
    source = (
        "the offline cases of ZTE's GUI agent contest 2026: <case>/ref.json and <case>/<state>.png from test_data/offline of "
        "github.com/hannibal114514/ZTE_2026_GUI_Agent"
    )
    paper = "none; the contest's statement and scorer are in github.com/hzy1522/ZTE-code-for-student"
    licence = "none stated"
    dataset = "onekey"
    protocol = "onekey"
    action_space = ActionSpace(frozenset({"OPEN", "CLICK", "TYPE", "SCROLL", "STOP"}), frozenset(), frozenset({"finish"}))
    write_example = written_by("onekey.write_onekey")

    def __init__(self, root: Path, **options: Any) -> None:
        super().__init__(root, **options)
        folder = next((name for name in FOLDERS if any((root / name).glob(f"*/{FILE}"))), None)
        if folder is None:
            raise self.wrong_folder(root, f"<case>/{FILE}")
        self._folder = folder

    def index(self) -> Sequence[EpisodeRef]:
        return listed(self, sorted((self.root / self._folder).glob(f"*/{FILE}")), self._ref)

    def _ref(self, file: Path) -> EpisodeRef:
        return EpisodeRef(EpisodeKey(self.name, "", file.parent.name), len(_path(read_row(file))), file)

    def load(self, ref: EpisodeRef) -> Episode:
        case = read_row(ref.locator)
        about = case.row("case_overview")
        size = stated_size(about, "screen_shape")
        states = _path(case)
        steps = [self._step(ref, index, state, about, size, moves) for index, (state, moves) in enumerate(states.items())]
        return episode(case.where, steps)

    def _step(self, ref: EpisodeRef, index: int, state: str, about: Row, size: Size, moves: Sequence[Row]) -> StepTaskModel:
        accepted: list[Action] = []
        boxes: list[list[float]] = []
        patterns: list[str] = []
        for move in moves:
            accepted += [action for action in _actions(move, boxes, patterns) if action not in accepted]
        extras: dict[str, Any] = {"state": state, "accepted": [dict(move.values) for move in moves]}
        if patterns:
            extras["text_patterns"] = patterns
        return step(
            moves[0].where,
            **placed(self, ref, index, ref.length),
            instruction=about.text("instruction"),
            screenshot=find_image(self.root, f"{self._folder}/{ref.key.episode_id}/{state}".lstrip("/")),
            screenshot_size=size,
            action=accepted[0],
            alternatives=tuple(accepted[1:]),
            targets=Boxes(boxes),
            groups={"app": about.text("app")},
            extras=extras,
        )


def _path(case: Row) -> dict[str, list[Row]]:
    """The accepted actions of the states from the first one to the end, along the first action of each."""
    name = next((first for first in FIRST_STATES if first in case), FIRST_STATES[-1])
    states: dict[str, list[Row]] = {}
    while name != END:
        if name in states:
            raise case.error(name, f"the first accepted actions lead back to state {name!r} and never to the end")
        states[name] = moves = _moves(case, name)
        name = moves[0].text("next")
        if name != END and name not in case:
            raise moves[0].error("next", f"there is no state {name!r}")
    return states


def _moves(case: Row, state: str) -> list[Row]:
    value = case.value(state)
    moves = [value] if isinstance(value, Mapping) else value
    if not isinstance(moves, list) or not moves:
        raise case.error(state, f"expected a list of accepted actions, got {value!r:.80}")
    return [Row.of(move, f"{case.where}, state {state!r}, action {number}") for number, move in enumerate(moves)]


def _actions(move: Row, boxes: list[list[float]], patterns: list[str]) -> list[Action]:
    """The unified actions that an accepted action means; its range and its pattern are added to the lists."""
    params = move.row("params")
    match move.text("action"):
        case "CLICK":
            box = _range(params)
            boxes.append(box)
            return [Click(point=Point((box[0] + box[2]) / 2, (box[1] + box[3]) / 2))]
        case "TYPE":
            text = params.text("text")
            if PATTERN_MARK not in text:
                return [Type(text=text)]
            pattern = text.replace(f"{PATTERN_MARK} ", "")
            example = _matching_text(params, pattern)
            patterns.append(f"(?:{pattern}){_AND_ANYTHING}")
            return [Type(text=example)]
        case "OPEN":
            return [Open(app=params.text("app"))]
        case "COMPLETE":
            return [Stop(status="finish")]
        case "SCROLL":
            return _scrolls(params)
        case name:
            raise move.error("action", f"expected CLICK, TYPE, OPEN, COMPLETE or SCROLL, got {name!r}")


def _range(params: Row) -> list[float]:
    (left, right), (top, bottom) = params.numbers("x", 2), params.numbers("y", 2)
    for name, low, high in (("x", left, right), ("y", top, bottom)):
        if not 0 <= low < high <= 1000:
            raise params.error(name, f"expected a range [min, max] between 0 and 1000, got {params.value(name)!r}")
    return [left, top, right, bottom]


def _matching_text(params: Row, pattern: str) -> str:
    """A text that the pattern matches: its literal characters. Other patterns than literals and ``.*`` are refused."""
    parts = pattern.removeprefix("^").removesuffix("$").split(".*")
    text = "".join(parts)
    if _SPECIAL.search(text):
        raise params.error("text", f"expected a pattern of literal characters and '.*', got {pattern!r:.80}")
    return text


def _scrolls(params: Row) -> list[Action]:
    if "x" not in params or params.values.get("is_precise") is None:
        return [Scroll(point=Point(500, 500), direction=direction) for direction in DIRECTIONS]
    (from_x, to_x), (from_y, to_y) = params.numbers("x", 2), params.numbers("y", 2)
    direction = path_direction((from_x, from_y), (to_x, to_y))
    if direction is None:
        raise params.error("x", "expected a path from one place to another")
    return [Scroll(point=params.build("x", lambda: PER_1000.decode(from_x, from_y, (1, 1))), direction=direction)]

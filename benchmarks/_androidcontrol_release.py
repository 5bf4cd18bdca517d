"""AndroidControl as its authors release it: gzip shards of TFRecords, one episode a record, screenshots and trees inside.

    android_control-00000-of-00020 ... android_control-00019-of-00020
    splits.json              {"train": [episode ids], "validation": [...], "test": [...]}
    test_subsplits.json      {"IDD": [...], "app_unseen": [...], "task_unseen": [...], "category_unseen": [...]}

A record is a ``tf.train.Example`` with episode_id, goal, screenshots (PNG), accessibility_trees, screenshot_widths,
screenshot_heights, and for each pair of consecutive screenshots one of actions (JSON) and of step_instructions.

Assumptions: a scroll has no place in the data and is put in the middle of the screen, as GUIEvalKit does;
its direction is the content's (GUIEvalKit turns it around, and the instructions agree). The action "type" of an early README
(click, type and confirm in one) has no word in the unified space and is kept as unsupported; it is not known to occur. The
finish step's own instruction is GUIEvalKit's. Boxes are all rectangles of the trees, as GUIEvalKit takes them; option ``trees``
keeps the trees whole, as ``tree`` of every step. Some training
episodes have no action at all: with the finish step they are one step long, without it they are left out.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, Protocol

from guieval import actions as act
from guieval.data.benchmark import ABCBenchmark, EpisodeRef, Release, ReleasedEpisode
from guieval.data.screenshots import header
from guieval.errors import DataError, UsageError, nearest
from guieval.frames import PIXELS, Size
from guieval.steps import EpisodeKey, StepTaskModel

from ._rows import Row, episode, meant, one_of, parse, pixel_boxes, placed, read_row, step
from ._tfrecord import Field, MessageClass, TfExample, decode, message_class, records

FINISH_INSTRUCTION = "finish the task"
IN_DISTRIBUTION = "IDD"

MOST_SHARDS = 10_000
_SHARD = re.compile(r"android_control-(\d+)-of-(\d+)(\.tfrecord)?(\.gz)?")


def shards(folder: Path) -> list[Path]:
    """The release's shards in ``folder``, in their order."""
    if not folder.is_dir():
        return []
    return sorted(file for file in folder.iterdir() if _SHARD.fullmatch(file.name) and file.is_file())


class AndroidControlRelease(Release):
    """The release in ``source``; ``splits`` ("all", a name, or several with commas) are those to take.

    ``trees`` keeps each screen's accessibility tree in ``extras`` (``tree``): of every node its class, texts and states.
    """

    def __init__(
        self,
        kind: type[ABCBenchmark],
        source: Path,
        /,
        *,
        splits: str | Sequence[str] = "test,validation",
        finish: bool = True,
        trees: bool = False,
    ) -> None:
        super().__init__()
        self.kind = kind
        self.finish = finish
        self.trees = trees
        self._source = source
        self._files = {file.name: file for file in shards(source)}
        if not (source / "splits.json").is_file():
            raise UsageError(f"the release in {str(source)!r} lacks 'splits.json', which lists the episodes of each split")
        listed = _lists(source / "splits.json")
        self.splits = {name: split for split, names in listed.items() for name in names}
        doubled = sum(map(len, listed.values())) - len(self.splits)
        if doubled:
            raise DataError(f"{source / 'splits.json'}: {doubled} episodes are listed more than once")
        self.wanted = _wanted(splits, list(listed))
        self.subsplits = _members(source / "test_subsplits.json")
        if not self._absent():
            self.episodes_expected = sum(split in self.wanted for split in self.splits.values())

    def parts(self) -> Sequence[str]:
        """The shards that are there; those that are not are refused, or what was prepared would count as all there is."""
        if absent := self._absent():
            self.refuse(DataError(f"{self._source}: lacks {len(absent)} of the release's shards, the first is {absent[0]!r}"))
        return tuple(self._files)

    def _absent(self) -> list[str]:
        matches = [match for name in self._files if (match := _SHARD.fullmatch(name))]
        there = {int(match[1]) for match in matches}
        count = max(int(match[2]) for match in matches)
        if count > MOST_SHARDS:
            raise DataError(f"{self._source}: a file name tells of {count:,} shards; expected {MOST_SHARDS:,} at most")
        return [f"android_control-{number:05d}-of-{count:05d}" for number in range(count) if number not in there]

    def episodes(self, part: str, done: Callable[[EpisodeKey], bool]) -> Iterator[ReleasedEpisode]:
        for record in records(self._files[part]):
            released = None
            try:
                if isinstance(record, DataError):
                    raise record
                released = self._episode(TfExample(record.data, f"{self._files[part]}, record {record.number}"), done)
            except DataError as error:
                self.refuse(error)
            del record  # the example has a copy, and an episode may be 100 MB
            if released is not None:
                yield released
                del released  # or it would stay while the next one is read

    def _episode(self, example: TfExample, done: Callable[[EpisodeKey], bool]) -> ReleasedEpisode | None:
        """The episode of a record; ``None`` if it is not wanted or done, which is found out before its content is read."""
        name = example.number("episode_id")
        split = self.splits.get(name)
        if split is None:
            raise example.error("episode_id", f"episode {name} is in no list of splits.json")
        if split not in self.wanted or done(EpisodeKey(self.kind.name, "", str(name))):
            return None
        return _RecordReader(self, example, name, split).released()


class _RecordReader:
    """One record turned into an episode."""

    def __init__(self, release: AndroidControlRelease, example: TfExample, name: int, split: str) -> None:
        self._release = release
        self._example = example
        self._name = name
        self._split = split
        self._goal = example.text("goal")
        self._actions = example.texts("actions")
        self._instructions = example.texts("step_instructions")
        self._images = example.blobs("screenshots")
        self._trees = example.blobs("accessibility_trees")
        self._sizes = list(zip(example.numbers("screenshot_widths"), example.numbers("screenshot_heights"), strict=False))
        screens = len(self._actions) + 1
        for field, count, expected in (
            ("step_instructions", len(self._instructions), screens - 1),
            ("screenshots", len(self._images), screens),
            ("accessibility_trees", len(self._trees), screens),
            ("screenshot_widths", len(example.numbers("screenshot_widths")), screens),
            ("screenshot_heights", len(example.numbers("screenshot_heights")), screens),
        ):
            if count != expected:
                raise example.error(field, f"expected {expected} for {screens - 1} actions, got {count}")
        for index, (width, height) in enumerate(self._sizes):
            if width < 1 or height < 1:
                raise example.error("screenshot_widths", f"screenshot {index} is stated as {width} x {height} pixels")

    def released(self) -> ReleasedEpisode | None:
        count = len(self._actions)
        length = count + self._release.finish
        if not length:
            return None
        steps = [self._acted(index, length) for index in range(count)]
        if self._release.finish:
            steps.append(self._step(count, length, FINISH_INSTRUCTION, act.Stop(), {"synthetic": True}))
        for index in range(length):
            self._check_image(index)
        screenshots = {path(self._name, index): partial(self._image, index) for index in range(length)}
        return ReleasedEpisode(episode(self._example.where, steps), screenshots)

    def _image(self, index: int) -> bytes:
        return bytes(self._images[index])

    def _acted(self, index: int, length: int) -> StepTaskModel:
        where = f"{self._example.where}, action {index}"
        row = Row.of(parse(self._actions[index], where), where)
        extras: dict[str, Any] = {}
        action = released_action(row, self._sizes[index], extras)
        return self._step(index, length, self._instructions[index], action, extras)

    def _step(self, index: int, length: int, instruction: str, action: act.Action, extras: dict[str, Any]) -> StepTaskModel:
        where = f"{self._example.where}, screenshot {index}"
        forest = _forest(self._trees[index], f"{self._example.where}, field accessibility_trees, screenshot {index}")
        if self._release.trees:
            extras["tree"] = _tree(forest, self._sizes[index])
        ref = EpisodeRef(EpisodeKey(self._release.kind.name, "", str(self._name)), length, split=self._split)
        groups = {}
        if self._name in self._release.subsplits:
            extras["subsplits"] = list(self._release.subsplits[self._name])
            groups["domain"] = "IDD" if IN_DISTRIBUTION in extras["subsplits"] else "OOD"
        return step(
            where,
            **placed(self._release.kind, ref, index, length),
            instruction=self._goal,
            low_level_instruction=instruction,
            screenshot=path(self._name, index),
            screenshot_size=self._sizes[index],
            action=action,
            elements=pixel_boxes(_rectangles(forest), self._sizes[index]),
            groups=groups,
            extras=extras,
        )

    def _check_image(self, index: int) -> None:
        try:
            found = header(io.BytesIO(self._images[index]))
            if found.format != "png":
                raise ValueError
        except ValueError:
            raise self._example.error("screenshots", f"screenshot {index} is not a PNG image") from None
        if other := found.other_size(self._sizes[index]):
            raise self._example.error("screenshots", f"screenshot {index} {other}")


def path(episode_id: int, index: int) -> str:
    return f"screenshots/{episode_id}/{index}.png"


def released_action(row: Row, size: Size, extras: dict[str, Any]) -> act.Action:
    """The action of a label in AndroidControl's own words; a scroll's word goes into ``extras``."""

    def point() -> act.Point:
        x, y = row.number("x"), row.number("y")
        return row.build("x, y", lambda: PIXELS.decode(x, y, size))

    def scroll() -> act.Action:
        extras["direction_label"] = word = one_of(row, "direction", act.DIRECTIONS)
        return act.Scroll(point=act.Point(500.0, 500.0), direction=act.OPPOSITE[word])

    others = {field: value for field, value in row.values.items() if field != "action_type"}
    meanings: dict[str, Callable[[], act.Action]] = {
        "click": lambda: act.Click(point=point()),
        "long_press": lambda: act.LongPress(point=point()),
        "scroll": scroll,
        "input_text": lambda: act.Type(text=row.text("text")),
        "open_app": lambda: act.Open(app=row.text("app_name")),
        "navigate_back": lambda: act.Press(button="BACK"),
        "navigate_home": lambda: act.Press(button="HOME"),
        "wait": act.Wait,
        "type": lambda: act.Unsupported(name="type", arguments=others),
    }
    return meant(row, "action_type", meanings)


class _Rect(Protocol):
    left: int
    top: int
    right: int
    bottom: int


class _Bounded(Protocol):
    bounds_in_screen: _Rect

    def HasField(self, name: str, /) -> bool: ...


class _Node(_Bounded, Protocol):
    depth: int


class _Tree(Protocol):
    nodes: Sequence[_Node]


class _Window(_Bounded, Protocol):
    tree: _Tree


class _Forest(Protocol):
    windows: Sequence[_Window]


def _forest(data: bytes, where: str) -> _Forest:
    return decode(_forest_class(), data, where, "an AndroidAccessibilityForest")


def _rectangles(forest: _Forest) -> list[tuple[int, int, int, int]]:
    """Every rectangle of an android_env ``AndroidAccessibilityForest`` as (left, top, right, bottom) in pixels.

    For each window its own rectangle comes first, then those of its nodes.

    As in GUIEvalKit's process_ac.py, nodes come in the order they are stored, whether or not they can be seen or touched, zero
    areas and doubles included, without nodes that state no bounds.
    """
    boxes = []
    for window in forest.windows:
        holders: list[_Bounded] = [window, *window.tree.nodes]
        for bounds in (holder.bounds_in_screen for holder in holders if holder.HasField("bounds_in_screen")):
            boxes.append((bounds.left, bounds.top, bounds.right, bounds.bottom))
    return boxes


def _tree(forest: _Forest, size: Size) -> list[dict[str, Any]]:
    """Every node with its words, the states that it is in, its depth, and its box in thousandths of the screen."""
    nodes = []
    for node in (node for window in forest.windows for node in window.tree.nodes):
        told: dict[str, Any] = {name: text for name in TEXTS if (text := getattr(node, name).decode(errors="replace"))}
        if states := [name for name in STATES if getattr(node, name)]:
            told["states"] = states
        if node.depth:
            told["depth"] = node.depth
        if node.HasField("bounds_in_screen"):
            edges = (getattr(node.bounds_in_screen, name) for name in EDGES)
            told["box"] = [round(edge * 1000.0 / side, 2) for edge, side in zip(edges, (*size, *size), strict=True)]
        nodes.append(told)
    return nodes


TEXTS = {"class": 3, "description": 4, "hint": 5, "text": 7, "id": 10}
STATES = {
    **{"checkable": 12, "checked": 13, "clickable": 14, "editable": 15, "enabled": 16, "focusable": 17, "focused": 18},
    **{"long_clickable": 19, "password": 20, "scrollable": 21, "selected": 22, "visible": 23},
}
"""A node's fields by the numbers of AndroidAccessibilityNodeInfo; ``visible`` is *probably* visible to the user."""
EDGES = ("left", "top", "right", "bottom")


@cache
def _forest_class() -> MessageClass[_Forest]:
    """The fields that are read of android_env/proto/a11y/*.proto in github.com/google-deepmind/android_env."""
    schema = {
        "Forest": [Field("windows", 1, "Window", repeated=True)],
        "Window": [Field("bounds_in_screen", 1, "Rect"), Field("tree", 11, "Tree")],
        "Tree": [Field("nodes", 1, "Node", repeated=True)],
        "Node": [
            Field("bounds_in_screen", 2, "Rect"),
            *(Field(name, number, "bytes") for name, number in TEXTS.items()),
            *(Field(name, number, "int32") for name, number in {**STATES, "depth": 27}.items()),
        ],
        "Rect": [Field(name, number, "int32") for number, name in enumerate(EDGES, 1)],
    }
    found: MessageClass[_Forest] = message_class("guieval.android_env", schema, "Forest")
    return found


def _lists(file: Path) -> dict[str, list[int]]:
    row = read_row(file)
    for name, numbers in row.values.items():
        if not isinstance(numbers, list) or not all(type(number) is int for number in numbers):
            raise row.error(name, f"expected a list of episode numbers, got {numbers!r:.80}")
    return dict(row.values)


def _members(file: Path) -> dict[int, list[str]]:
    """The sub-splits of each test episode, in the file's order; they overlap. None if the file was not downloaded."""
    members: dict[int, list[str]] = {}
    if file.is_file():
        for name, numbers in _lists(file).items():
            for number in dict.fromkeys(numbers):
                members.setdefault(number, []).append(name)
    return members


def _wanted(splits: str | Sequence[str], known: list[str]) -> frozenset[str]:
    if isinstance(splits, str):
        splits = [name.strip() for name in splits.split(",")]
    names: list[object] = list(splits) if isinstance(splits, list | tuple) else [splits]
    if names == ["all"]:
        return frozenset(known)
    for name in names:
        if name not in known:
            raise UsageError(
                f"splits.json lists no split {name!r}{nearest(str(name), known)}; "
                f"expected all, or one or more of {', '.join(known)}"
            )
    return frozenset(map(str, names))

"""HyperTrack (GUIEvalKit paper, 2026): everyday tasks in 674 Chinese apps on phones and tablets.

The full data set is under review by its authors; a preview of the format is public.

**Only its description is public, no example**: this loader was written without having seen a file. What is described: a folder
``test_filtered/`` with one folder per episode (named by 33 characters) and ``episode_categorization.json`` with the splits; of
each episode a high-level instruction, screenshots (1,080 to 1,800 pixels wide) each with a textual observation, actions OPEN,
CLICK, SCROLL, TYPE and STOP each with a description in words, click coordinates and bounding boxes if they apply, the
device's model, system and resolution. What is assumed, and where to change it:

- Spelling of keys: the table :data:`KEYS`. Upper case, underscores and hyphens do not matter, and objects named in
  :data:`NESTED` are looked into. A field that is found under none of its keys is an error that lists the keys there are.
- An episode is the JSON file named like its folder, or the folder's only one: an object with a list of steps, or a bare list
  of steps that repeat the episode's fields (the form GUIEvalKit keeps its other benchmarks in).
- Places are [x, y] in pixels of the screenshot; option ``coordinates`` = ``fractions`` or ``thousandths`` changes this.
- Boxes are [x1, y1, x2, y2] in the same frame; option ``boxes`` = ``sizes`` reads [x, y, width, height]. Boxes with named
  sides need no option.
- A scroll's word is the finger's direction, as in the paper's action space (Table 9), since the paper describes the actions as
  normalised; option ``scroll`` = ``content`` turns it round. A scroll without a place starts in the middle of the screen.
- STOP means *finish* unless its status means *impossible*.
- The screenshot's size is what the step states, else the image's own; the device's resolution counts only if there is no
  image.
- Names of splits: Table 8's, in any spelling (:mod:`._hypertrack_splits`). The categorisation may name episodes that are not
  there (the preview is a subset), but has to name those that are. Without that file an episode is of the split its folder is
  named after, and in no subset.

Texts of a screen are in ``extras``: ``observation``, ``tree`` (a UI document, as it is given) and ``system``; what is under no
key of the table is kept there too, as ``unread``.

The paper's four test splits are subsets of ``test`` here. Its scores leave OPEN steps out, as the protocol ``guievalkit``
does.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Literal

from guieval import actions as act
from guieval.data.benchmark import ABCBenchmark, EpisodeRef, PublishedCount
from guieval.data.names import parts_inside
from guieval.errors import DataError
from guieval.frames import PER_1000, PIXELS, RELATIVE, Frame, Size
from guieval.steps import Episode, EpisodeKey, StepTaskModel

from ._episode_folders import episode_folders
from ._examples import written_by
from ._hypertrack_splits import EpisodeSplit, read_places
from ._images import RecordedPaths, size_of
from ._rows import Row, episode, listed, one_of, parse, placed, read_whole, step, step_rows

KEYS: dict[str, tuple[str, ...]] = {
    # of an episode
    "episode": ("episodeid", "episode", "taskid", "traceid"),
    "instruction": ("instruction", "highlevelinstruction", "highinstruction", "goal", "task", "query"),
    "steps": ("steps", "trajectory", "stepdata", "records"),
    "device": ("devicemodel", "model", "devicename", "device"),
    "system": ("operatingsystem", "os", "osversion", "system", "platform"),
    "resolution": ("resolution", "screenresolution", "screensize"),
    "app": ("appname", "app", "application"),
    "category": ("appcategory", "category"),
    # of a step
    "number": ("stepid", "step", "stepindex", "index"),
    "screenshot": ("screenshot", "screenshotpath", "image", "imagepath", "imgpath", "img"),
    "width": ("imagewidth", "screenshotwidth", "width"),
    "height": ("imageheight", "screenshotheight", "height"),
    "observation": ("observation", "screenobservation", "screendescription", "textualobservation"),
    "tree": ("uitree", "uidocument", "uihierarchy", "viewhierarchy", "accessibilitytree", "a11ytree", "tree"),
    # of its action
    "type": ("actiontype", "type", "action", "actionname", "name"),
    "description": ("actiondescription", "lowlevelinstruction", "lowinstruction", "stepinstruction", "description"),
    "point": ("coordinate", "coordinates", "clickcoordinates", "clickcoordinate", "clickpoint", "point", "start", "startpoint"),
    "end": ("coordinate2", "end", "endpoint", "endcoordinate"),
    "box": ("bbox", "boundingbox", "box", "bounds", "bboxes"),
    "direction": ("direction", "scrolldirection", "swipedirection"),
    "text": ("text", "inputtext", "content", "value"),
    "opened": ("appname", "app", "application", "targetapp", "text", "value"),
    "status": ("status", "stopstatus"),
}
"""Every field with the keys it is looked for under, the likeliest first, in lower case without underscores and hyphens."""

ACTIONS = frozenset({"action", "actioninfo", "annotation", "parameters", "params", "args", "arguments"})
NESTED = ACTIONS | {"deviceinfo", "device", "metadata", "meta", "episodeinfo", "taskinfo"}
"""Objects that only group fields: theirs are read as if they stood outside, before those outside."""

FOLDERS = {"test_filtered": "test", "test": "test", "val": "val", "train": "train"}
"""Folders of episode folders below ``root``, and the split of their episodes if there is no categorisation."""

TYPES: dict[str, str] = {
    **dict.fromkeys(("click", "tap"), "click"),
    **dict.fromkeys(("scroll", "swipe"), "scroll"),
    **dict.fromkeys(("type", "input", "inputtext", "typetext"), "type"),
    **dict.fromkeys(("open", "openapp", "launch", "launchapp"), "open"),
    **dict.fromkeys(("stop", "finish", "finished", "complete", "terminate"), "stop"),
}

STATUSES: dict[str, act.StopStatus] = {
    **dict.fromkeys(("", "finish", "finished", "success", "complete", "completed"), "finish"),
    **dict.fromkeys(("impossible", "infeasible", "failure", "fail"), "impossible"),
}

FRAMES: dict[str, Frame] = {"pixels": PIXELS, "fractions": RELATIVE, "thousandths": PER_1000}
CATEGORISATION = "episode_categorization.json"

_WHERE_TO_ADAPT = "if the release spells it in another way, add its key to KEYS in benchmarks/hypertrack.py"
_TABLE_8 = "GUIEvalKit paper (arXiv 2605.27134), Table 8"


class HyperTrack(ABCBenchmark):
    """HyperTrack by its description; see the module for what is assumed and which option changes it."""

    name = "hypertrack"
    title = "HyperTrack"
    source = (
        "HyperTrackPreview on Hugging Face (the full set is not public yet): test_filtered/<episode>/<episode>.json with the "
        "screenshots next to it, and episode_categorization.json"
    )
    paper = "arXiv 2605.27134"
    licence = "none stated"
    published = (
        PublishedCount("the four test splits", steps=12_247, episodes=2_365, split="test", source=f"{_TABLE_8}, added up"),
        PublishedCount("Train", steps=69_223, episodes=13_555, split="train", source=_TABLE_8),
        PublishedCount("Val", steps=834, episodes=160, split="val", source=_TABLE_8),
        PublishedCount("IDD", steps=2_843, episodes=562, split="test", subset="idd", source=_TABLE_8),
        PublishedCount("Unseen App", steps=3_353, episodes=664, split="test", subset="unseen-app", source=_TABLE_8),
        PublishedCount("Unseen Device", steps=3_929, episodes=735, split="test", subset="unseen-device", source=_TABLE_8),
        PublishedCount("Unseen App & Device", 2_122, _TABLE_8, 404, split="test", subset="unseen-app-device"),
    )
    dataset = "hypertrack"
    protocol = "guievalkit"
    action_space = act.ActionSpace(frozenset({"OPEN", "CLICK", "SCROLL", "TYPE", "STOP"}), frozenset())
    write_example = written_by("hypertrack.write_hypertrack")

    def __init__(
        self,
        root: Path,
        *,
        coordinates: Literal["pixels", "fractions", "thousandths"] = "pixels",
        boxes: Literal["corners", "sizes"] = "corners",
        scroll: Literal["finger", "content"] = "finger",
        **options: Any,
    ) -> None:
        super().__init__(root, **options)
        self._frame = FRAMES[coordinates]
        self._sizes = boxes == "sizes"
        self._content = scroll == "content"
        self._images = RecordedPaths(root)
        self._categorisation = next(
            (place / CATEGORISATION for place in (root, root.resolve().parent) if (place / CATEGORISATION).is_file()), None
        )
        self._folders = [(root / name, split) for name, split in FOLDERS.items() if (root / name).is_dir()]
        if not self._folders and self._categorisation:
            self._folders = [(root, FOLDERS.get(root.resolve().name, "unlisted"))]
        if not any(_episode_files(folder) for folder, _ in self._folders):
            raise self.wrong_folder(root, f"test_filtered/<episode>/<episode>.json or {CATEGORISATION} beside such folders")

    @cached_property
    def _places(self) -> Mapping[str, EpisodeSplit]:
        return read_places(self._categorisation) if self._categorisation else {}

    def _place(self, name: str, split: str) -> EpisodeSplit:
        if self._categorisation and name not in self._places:
            splits = "train, val, idd, unseen_app, unseen_device or unseen_app_device"
            raise DataError(f"{self._categorisation}: does not list episode {name!r} under {splits}")
        return self._places.get(name, EpisodeSplit(split))

    def index(self) -> Sequence[EpisodeRef]:
        folders = ((folder, split) for parent, split in self._folders for folder in episode_folders(parent))
        return listed(self, folders, self._ref)

    def _ref(self, found: tuple[Path, str]) -> EpisodeRef | None:
        folder, split = found
        files = sorted(folder.glob("*.json"))
        if not files:
            return None
        file = next((file for file in files if file.stem == folder.name), files[0])
        if len(files) > 1 and file.stem != folder.name:
            raise DataError(f"{folder}: holds {len(files)} JSON files and none is called {folder.name}.json")
        place = self._place(folder.name, split)
        rows, _ = _rows(file)
        return EpisodeRef(EpisodeKey(self.name, place.subset, folder.name), len(rows), file, place.split)

    def load(self, ref: EpisodeRef) -> Episode:
        file: Path = ref.locator
        rows, shared = _rows(file)
        steps = [self._step(ref, file, _Fields.read(row), index, len(rows), shared) for index, row in enumerate(rows)]
        return episode(str(file), steps)

    def _step(
        self, ref: EpisodeRef, file: Path, fields: _Fields, index: int, length: int, shared: _Fields | None
    ) -> StepTaskModel:
        about = shared or fields
        if "episode" in about and str(about.value("episode")) != ref.key.episode_id:
            raise about.error("episode", f"is {about.value('episode')!r}, but its folder is {ref.key.episode_id!r}")
        screenshot = self._screenshot(file.parent, fields.text("screenshot"))
        size = self._size(screenshot, fields, about)
        texts = {name: fields if name in fields else shared for name in ("observation", "tree")}
        extras = {name: found.value(name) for name, found in texts.items() if found and name in found}
        if found := _about("system", shared, fields):
            extras["system"] = found.value("system")
        if unread := {**(shared.unread if shared else {}), **fields.unread}:
            extras["unread"] = unread
        if "number" in fields and fields.value("number") != index:
            extras["step_id"] = fields.value("number")
        return step(
            fields.where,
            **placed(self, ref, index, length),
            instruction=about.text("instruction"),
            low_level_instruction=fields.text("description") if "description" in fields else None,
            screenshot=screenshot,
            screenshot_size=size,
            action=self._action(fields, size, extras),
            targets=self._box(fields, size),
            groups={
                name: found.text(name) for name in ("device", "app", "category") if (found := _about(name, shared, fields))
            },
            extras=extras,
        )

    def _screenshot(self, folder: Path, recorded: str) -> str:
        """The screenshot's path relative to ``root``: next to its annotation, if it is there under its last name or path."""
        name = recorded.replace("\\", "/").rpartition("/")[2]
        for given in (recorded, name):
            with suppress(ValueError):  # reading refuses it
                path = folder.joinpath(*parts_inside(given))
                if os.path.isfile(path):
                    return path.relative_to(self.root).as_posix()
        return self._images.relative(recorded)

    def _size(self, screenshot: str, fields: _Fields, about: _Fields) -> Size:
        if "width" in fields and "height" in fields:
            return fields.whole("width"), fields.whole("height")
        size = size_of(fields, "screenshot", self.root, screenshot)
        if size is None and "resolution" in about:
            return about.size("resolution")
        if size is None:
            raise fields.error("screenshot", f"there is no image {screenshot!r}, and no size is stated")
        return size

    def _action(self, fields: _Fields, size: Size, extras: dict[str, Any]) -> act.Action:
        match TYPES.get(_plain(fields.text("type"))):
            case "click":
                return act.Click(point=self._point(fields, "point", size))
            case "scroll":
                return self._scroll(fields, size, extras)
            case "type":
                return act.Type(text=fields.text("text"))
            case "open":
                if not (app := fields.text("opened")):
                    raise fields.error("opened", "names no app")
                return act.Open(app=app)
            case "stop":
                return act.Stop(status=_status(fields))
            case _:
                raise fields.error("type", f"expected OPEN, CLICK, SCROLL, TYPE or STOP, got {fields.value('type')!r}")

    def _scroll(self, fields: _Fields, size: Size, extras: dict[str, Any]) -> act.Scroll:
        start = self._point(fields, "point", size) if "point" in fields else act.Point(500.0, 500.0)
        if "direction" in fields:
            word = one_of(fields, "direction", act.DIRECTIONS, _direction_word)
            return act.Scroll(point=start, direction=act.OPPOSITE[word] if self._content else word)
        end = self._point(fields, "end", size)
        direction = act.path_direction(start, end)
        if direction is None or "point" not in fields:
            raise fields.error("end", "expected another place than the finger's start, or a direction")
        extras["path"] = [list(start), list(end)]
        return act.Scroll(point=start, direction=direction)

    def _point(self, fields: _Fields, field: str, size: Size) -> act.Point:
        x, y = fields.named_numbers(field, ("x", "y"))
        self._plausible(fields, field, (x, y))
        return fields.build(field, lambda: self._frame.decode(x, y, size))

    def _box(self, fields: _Fields, size: Size) -> act.Boxes:
        if "box" not in fields:
            return act.Boxes()
        value = fields.value("box")
        keys = set(value) if isinstance(value, dict) else set()
        for sides in (("left", "top", "right", "bottom"), ("x1", "y1", "x2", "y2"), ("xmin", "ymin", "xmax", "ymax")):
            if keys >= set(sides):
                x1, y1, x2, y2 = fields.named_numbers("box", sides)
                break
        else:
            x1, y1, x2, y2 = fields.named_numbers("box", ("x", "y", "width", "height"))
            if self._sizes or keys:
                x2, y2 = x1 + x2, y1 + y2
        self._plausible(fields, "box", (x1, y1, x2, y2))
        if not (x1 <= x2 and y1 <= y2):
            raise fields.error(
                "box", f"expected [x1, y1, x2, y2], got {value!r}; use the option boxes=sizes for widths and heights"
            )
        width, height = self._frame.extent(size)
        corners = [x1 / width, y1 / height, x2 / width, y2 / height]
        return fields.build("box", lambda: act.Boxes([[edge * 1000.0 for edge in corners]]))

    def _plausible(self, fields: _Fields, field: str, numbers: Sequence[float]) -> None:
        if self._frame is PIXELS and max(numbers) <= 1.0 and any(numbers):
            raise fields.error(field, f"{list(numbers)} seem to be fractions, not pixels; use the option coordinates=fractions")


class HyperTrackLow(HyperTrack):
    """HyperTrack with the description of the step's action given (*low*)."""

    name = "hypertrack-low"
    title = "HyperTrack (low)"
    setting = "low"


@dataclass(frozen=True)
class _Fields(Row):
    """An object's values under the names of :data:`KEYS`, whatever its own keys are and however deep they are grouped.

    ``spelled`` has the object's own key of each field, and ``keys`` all of its keys, for messages. A field that is null or
    empty is not there (only a text may be empty).
    """

    spelled: Mapping[str, str]
    keys: Sequence[str]
    unread: Mapping[str, Any]

    @classmethod
    def read(cls, row: Row) -> _Fields:
        """The fields of ``row`` and of the objects in it that only group fields."""
        found: dict[str, tuple[str, Any]] = {}
        of_action: set[str] = set()
        entries = list(_entries(row))
        for key, place, in_action, value in entries:
            if value not in (None, [], "") or (value == "" and key in KEYS["text"]):
                found.setdefault(key, (place, value))
                of_action |= {key} if in_action else set()
        named: dict[str, tuple[str, Any]] = {}
        for field, keys in KEYS.items():
            if field == "opened":  # a key of the action is preferred to the app of the step or episode
                keys = tuple(sorted(keys, key=lambda key: key not in of_action))
            if first := next((key for key in keys if key in found), None):
                named[field] = found[first]
        values = {field: value for field, (_, value) in named.items()}
        spelled = {field: place for field, (place, _) in named.items()}
        known = {key for keys in KEYS.values() for key in keys}
        unread = {
            place.replace(", field ", "."): value for key, place, _, value in entries if not (key in known or value is None)
        }
        return cls(values, row.where, spelled, [place.rpartition(", field ")[2] for _, place, _, _ in entries], unread)

    def of_episode(self, field: str) -> bool:
        """Whether the field is there and is none of the action, whose app is the one that it opens."""
        return field in self and not any(_plain(group) in ACTIONS for group in self.spelled[field].split(", field ")[:-1])

    def error(self, field: str, problem: str) -> DataError:
        """The error for a field, under its name in the file."""
        return super().error(self.spelled.get(field, field), problem)

    def value(self, field: str) -> Any:
        """The field's value; :class:`DataError` listing the keys that there are when the field is not there."""
        if field in self:
            return self.values[field]
        raise DataError(
            f"{self.where}, field {field}: is under none of {', '.join(KEYS[field])}; found are {', '.join(self.keys)}; "
            f"{_WHERE_TO_ADAPT}"
        )

    def named_numbers(self, field: str, names: tuple[str, ...]) -> tuple[float, ...]:
        """Numbers given as a list, also of pairs, or as an object that names each."""
        value = self.value(field)
        if isinstance(value, dict):
            inner = Row(value, f"{self.where}, field {self.spelled[field]}")
            return tuple(inner.number(name) for name in names)
        if isinstance(value, list) and all(isinstance(item, list) for item in value):
            return replace(self, values={field: [number for item in value for number in item]}).numbers(field, len(names))
        return self.numbers(field, len(names))

    def size(self, field: str) -> Size:
        """A width and a height, as a list, an object or text like ``1080x2400``."""
        value = self.value(field)
        if isinstance(value, str) and (sides := re.fullmatch(r"\s*(\d+)\s*[xX×*]\s*(\d+)\s*", value)):
            return int(sides[1]), int(sides[2])
        width, height = self.named_numbers(field, ("width", "height"))
        return int(width), int(height)


def _about(field: str, shared: _Fields | None, fields: _Fields) -> _Fields | None:
    """Where a field of the episode is: in the episode's own object, else in the step's; ``None`` if it is in neither."""
    return shared if shared and field in shared else fields if fields.of_episode(field) else None


def _entries(row: Row, path: str = "", in_action: bool = False) -> Iterator[tuple[str, str, bool, Any]]:
    """Every value, inner ones first, with its key in plain spelling, its place, and whether it is of the action."""
    groups = {key for key, value in row.values.items() if _plain(key) in NESTED and not _may_be_text(key, value)}
    for key in row.values:
        if key in groups and row.values[key] is not None:
            yield from _entries(row.row(key), f"{path}{key}, field ", _plain(key) in ACTIONS)
    yield from ((_plain(key), f"{path}{key}", in_action, value) for key, value in row.values.items() if key not in groups)


def _rows(file: Path) -> tuple[list[Row], _Fields | None]:
    """The steps of an episode's file, and the fields of the episode if they are apart."""
    value = parse(read_whole(file), str(file))
    shared: _Fields | None = None
    if isinstance(value, dict):
        shared = _Fields.read(Row.of(value, str(file)))
        value = shared.value("steps")
    return step_rows(value, str(file)), shared


def _episode_files(folder: Path) -> bool:
    entries: Iterable[Path] = folder.iterdir()
    return any(next(entry.glob("*.json"), None) for entry in entries if entry.is_dir())


def _may_be_text(key: str, value: Any) -> bool:
    """Whether a group's name is that of a field here, as in ``"action": "CLICK"``."""
    return isinstance(value, str) and any(_plain(key) in keys for keys in KEYS.values())


def _direction_word(label: str) -> str:
    word = _plain(label).removeprefix("scroll").removeprefix("swipe").removeprefix("向")
    return {"上": "up", "下": "down", "左": "left", "右": "right"}.get(word, word)


def _status(fields: _Fields) -> act.StopStatus:
    status = STATUSES.get(_plain(fields.text("status")) if "status" in fields else "")
    if status is None:
        raise fields.error("status", f"expected finish or impossible, got {fields.value('status')!r}")
    return status


@cache
def _plain(key: str) -> str:
    return re.sub(r"[\s_\-]", "", key.lower())

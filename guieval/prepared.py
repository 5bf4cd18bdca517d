"""Our own episode format, ``guieval-episodes-1``, and the benchmarks served from a folder that holds it.

A folder has ``episodes.jsonl``, one episode a line, beside its screenshots; ``docs/episodes.md`` describes a line. One that
``guieval prepare`` wrote has ``prepared.json`` too, which says of which benchmark and from what, and
``episodes.index.json``, by which a large folder opens without being read. Steps are read when they are asked for; what stays
in memory is where each episode's line lies.
"""

from __future__ import annotations

import gzip
import io
import os
import shlex
import struct
import zlib
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias, get_args, overload

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator
from pydantic_core import PydanticSerializationError, from_json, to_json

from guieval.actions import Action, Boxes, Click, LongPress, Open, Point, Press, Scroll, Stop, Type, Unsupported, Wait
from guieval.benchmark import ABCBenchmark, EpisodeRef
from guieval.errors import DataError, ScreenshotError, UsageError, first_problem, nearest
from guieval.frames import PIXELS, RELATIVE, Size
from guieval.screenshots import header, resolve
from guieval.steps import Episode, EpisodeKey, Setting, StepTaskModel, pattern_problem

FORMAT = "guieval-episodes-1"
EPISODES, PACKED, PREPARED, INDEX = "episodes.jsonl", "episodes.jsonl.gz", "prepared.json", "episodes.index.json"
INDEX_FORMAT = "guieval-episodes-index-1"
_MARK = b"\xef\xbb\xbf"  # the byte-order mark some editors write

EpisodesFrame: TypeAlias = Literal["unified", "pixels", "relative"]
_FRAMES = ", ".join(get_args(EpisodesFrame))

_ACTIONS: dict[str, type[BaseModel]] = {
    "CLICK": Click,
    "LONG_PRESS": LongPress,
    "SCROLL": Scroll,
    "TYPE": Type,
    "OPEN": Open,
    "PRESS": Press,
    "WAIT": Wait,
    "STOP": Stop,
    "UNSUPPORTED": Unsupported,
}


Side: TypeAlias = Annotated[int, Field(ge=1, lt=2**31)]
"""A width or height in pixels; no image format has larger ones."""


class StepLine(BaseModel):
    """One step as a line of the format holds it."""

    model_config = ConfigDict(strict=True, extra="forbid")

    screenshot: str = Field(description="path of the image, relative to the folder")
    screenshot_size: tuple[Side, Side] | None = Field(
        None, description="[width, height] in pixels; read from the image when not given"
    )
    action: dict[str, Any] = Field(description="reference action, in unified words")
    alternatives: list[dict[str, Any]] = Field([], description="further actions that are as right as the reference")
    boxes: list[tuple[float, float, float, float]] = Field([], description="rectangles [x1, y1, x2, y2]")
    instruction: str | None = Field(None, description="takes the place of the episode's instruction at this step")
    low_level_instruction: str | None = Field(None, description="what to do at this step")
    groups: dict[str, str] = Field({}, description="labels to report apart")
    extras: dict[str, Any] = Field({}, description="anything else, kept as it is")

    @field_validator("extras")
    @classmethod
    def _read_by_rules(cls, extras: dict[str, Any]) -> dict[str, Any]:
        """Refuse what the rules would pass over silently."""
        patterns = extras.get("text_patterns", [])
        if not isinstance(patterns, list) or not all(isinstance(each, str) for each in patterns):
            raise ValueError(f"text_patterns must be a list of regular expressions, got {patterns!r:.80}")
        if problem := next(filter(None, map(pattern_problem, patterns)), None):
            raise ValueError(problem)
        corners = extras.get("polygon", [[0, 0]] * 3)
        numbers = [side for each in corners if isinstance(each, list) for side in each] if isinstance(corners, list) else []
        if len(numbers) < 6 or len(numbers) != 2 * len(corners) or not all(type(side) in (int, float) for side in numbers):
            raise ValueError(f"polygon must be a list of at least three [x, y] in thousandths, got {corners!r:.80}")
        return extras


class EpisodeLine(BaseModel):
    """One line of ``episodes.jsonl``."""

    model_config = ConfigDict(strict=True, extra="forbid")

    episode_id: str = Field(min_length=1)
    subset: str = ""
    split: str = "test"
    dataset: str | None = Field(None, min_length=1, description="data set by which protocols choose their rules")
    setting: Setting | None = Field(None, description="what the model is told: high, low or grounding")
    instruction: str
    frame: EpisodesFrame | None = Field(None, description="frame of all points and boxes; needed where there are any")
    steps: list[StepLine] = Field(min_length=1)


class Preparation(BaseModel):
    """``prepared.json``: what a prepared folder holds, of which release, and whether all of it is there."""

    model_config = ConfigDict(extra="ignore")

    format: str
    benchmark: str
    dataset: str
    setting: Setting = "high"
    source: str
    options: dict[str, Any] = Field(default_factory=dict)
    limit: int | None = None
    screenshots: bool = True
    complete: bool = False
    parts: list[str] = Field(default_factory=list, description="parts of the release that were read to their end")
    expected: int | None = Field(None, description="episodes that the release said to hold when all of it had been read")
    episodes: int = 0
    steps: int = 0
    sha256: str = ""
    skipped: list[str] = Field(default_factory=list, description="damaged records that were left out")
    version: str = ""

    def command(self, out: Path) -> str:
        """The command that prepares this folder, or goes on with it."""
        parts = ["guieval", "prepare", self.benchmark, "--source", self.source, "--out", str(out)]
        for name, value in self.options.items():
            parts += ["--set", f"{name}={value if isinstance(value, str) else to_json(value).decode()}"]
        if self.limit is not None:
            parts += ["--limit", str(self.limit)]
        return shlex.join(parts + ([] if self.screenshots else ["--without-screenshots"]))


def is_prepared(folder: Path) -> bool:
    """Whether ``guieval prepare`` wrote this folder, to the end or not."""
    return (folder / PREPARED).is_file()


def read_preparation(folder: Path) -> Preparation:
    """What ``prepared.json`` says; :class:`UsageError` when this version cannot read it."""
    file = folder / PREPARED
    try:
        found = Preparation.model_validate_json(file.read_bytes())
    except OSError as error:
        raise UsageError(f"{str(file)!r} cannot be read: {error.strerror}") from None
    except ValidationError as error:
        problem = first_problem(error)
        place = f"field {problem.field}: " if problem.field else ""
        raise UsageError(f"{str(file)!r} cannot be read: {place}{problem.said}") from None
    if found.format != FORMAT:
        raise UsageError(f"{str(file)!r} is of format {found.format!r}; this version reads {FORMAT!r}")
    return found


@dataclass
class EpisodeIndex(Sequence[EpisodeRef]):
    """Where every episode's line lies, as columns: a million episodes take about a hundred bytes each.

    The locator of a reference is the episode's position.
    """

    benchmark: str
    ids: list[str] = field(default_factory=list)
    subsets: list[str] = field(default_factory=list)
    splits: list[str] = field(default_factory=list)
    lengths: array[int] = field(default_factory=lambda: array("q"))
    lines: array[int] = field(default_factory=lambda: array("q"))
    starts: array[int] = field(default_factory=lambda: array("q"))
    sizes: array[int] = field(default_factory=lambda: array("q"))

    def __len__(self) -> int:
        return len(self.ids)

    @overload
    def __getitem__(self, position: int) -> EpisodeRef: ...
    @overload
    def __getitem__(self, position: slice) -> Sequence[EpisodeRef]: ...
    def __getitem__(self, position: int | slice) -> EpisodeRef | Sequence[EpisodeRef]:
        if isinstance(position, slice):
            return [self[each] for each in range(*position.indices(len(self)))]
        position = range(len(self))[position]
        key = EpisodeKey(self.benchmark, self.subsets[position], self.ids[position])
        return EpisodeRef(key, self.lengths[position], position, self.splits[position])

    def add(self, told: LineHead, line: int, start: int, size: int) -> None:
        """Note one more episode."""
        self.ids.append(told.episode_id)
        self.subsets.append(told.subset)
        self.splits.append(told.split)
        self.lengths.append(told.length)
        self.lines.append(line)
        self.starts.append(start)
        self.sizes.append(size)

    def to_json(self) -> bytes:
        """The stored form of the index of a file that has no blank lines; :meth:`from_json` reads it."""
        subsets, splits = list(dict.fromkeys(self.subsets)), list(dict.fromkeys(self.splits))
        code = {name: number for number, name in enumerate(subsets)}, {name: number for number, name in enumerate(splits)}
        return to_json(
            {
                "format": INDEX_FORMAT,
                "subsets": subsets,
                "splits": splits,
                "episode_ids": self.ids,
                "subset": [code[0][name] for name in self.subsets],
                "split": [code[1][name] for name in self.splits],
                "lengths": list(self.lengths),
                "sizes": list(self.sizes),
            }
        )

    @classmethod
    def from_json(cls, text: bytes, benchmark: str, size: int) -> EpisodeIndex | None:
        """The index in ``text``, or ``None`` when it is none of a file of ``size`` bytes."""
        try:
            values = from_json(text)
            if values["format"] != INDEX_FORMAT or sum(values["sizes"]) != size:
                return None
            subsets = [values["subsets"][code] for code in values["subset"]]
            splits = [values["splits"][code] for code in values["split"]]
            lengths, sizes = array("q", values["lengths"]), array("q", values["sizes"])
            ids = values["episode_ids"]
            if not len(ids) == len(subsets) == len(splits) == len(lengths) == len(sizes):
                return None
        except (ValueError, TypeError, KeyError, IndexError, OverflowError):
            return None
        starts = array("q", [0])
        starts.extend(np.cumsum(np.array(sizes, dtype=np.int64))[:-1].tolist())
        return cls(benchmark, ids, subsets, splits, lengths, array("q", range(1, len(ids) + 1)), starts, sizes)


@dataclass(frozen=True)
class LineHead:
    """What the index needs of a line."""

    subset: str
    episode_id: str
    split: str
    length: int


def line_head(where: str, line: bytes) -> LineHead:
    """Read what the index needs; :class:`DataError` naming place and field when it is not there."""
    try:
        values = from_json(line)
    except ValueError as error:
        raise DataError(f"{where}: is not JSON ({error}); a line holds one whole episode in UTF-8") from None
    match values:
        case {"episode_id": str() as name, "steps": [_, *others]} if name:
            subset, split = values.get("subset", ""), values.get("split", "test")
            if isinstance(subset, str) and isinstance(split, str):
                return LineHead(subset, name, split, 1 + len(others))
    _parsed(where, line)  # says what is wrong
    raise DataError(f"{where}: holds no episode")


class EpisodesFolder(ABCBenchmark):
    """Episodes of our format in ``root``: ``episodes.jsonl`` (or ``.jsonl.gz``, which is unpacked into memory), or ``file``.

    A folder that was not prepared to its end is refused.
    """

    def __init__(self, root: Path, *, file: str | None = None, **options: Any) -> None:
        super().__init__(root, **options)
        self._preparation = read_preparation(root) if file is None and is_prepared(root) else None
        if self._preparation is not None and not self._preparation.complete:
            raise UsageError(
                f"the folder {str(root)!r} was not prepared to its end; go on with `{self._preparation.command(root)}`"
            )
        names = (EPISODES, PACKED) if file is None else (file,)
        found = [root / name for name in names if (root / name).is_file()]
        if not found:
            if self._preparation is not None:
                raise UsageError(f"the folder {str(root)!r} has lost its {EPISODES}; prepare it anew")
            files = (each.name for each in root.iterdir() if each.name.endswith((".jsonl", ".jsonl.gz")))
            raise self.wrong_folder(root, " or ".join(names) + nearest(names[0], files))
        self._file = found[0]
        self._unpacked: bytes | None = None
        self._index: EpisodeIndex | None = None

    def told(self) -> dict[str, str]:
        """Data set and setting as ``prepared.json``, else the first line, says them; without what is not said.

        They describe the folder. A line that does not say its own has the defaults, whatever the first one says.
        """
        if self._preparation is not None:
            return {"dataset": self._preparation.dataset, "setting": self._preparation.setting}
        first = next((line for line in self._lines() if line.strip()), b"")
        try:
            values = from_json(first.removeprefix(_MARK))
        except ValueError:
            return {}  # listing the episodes will tell
        match values:
            case {"setting": "high" | "low" | "grounding" as setting}:
                found = {"setting": setting}
            case _:
                found = {}
        match values:
            case {"dataset": str() as dataset} if dataset:
                found["dataset"] = dataset
        return found

    def index(self) -> Sequence[EpisodeRef]:
        if self._index is None:
            self._index = self._stored_index() or self._read_index()
        return self._index

    def _stored_index(self) -> EpisodeIndex | None:
        try:
            size = self._file.stat().st_size
            text = (self.root / INDEX).read_bytes() if self._preparation is not None else b""
        except OSError:
            return None
        found = EpisodeIndex.from_json(text, self.name, size)
        return (
            found if found is not None and self._preparation is not None and len(found) == self._preparation.episodes else None
        )

    def _read_index(self) -> EpisodeIndex:
        index = EpisodeIndex(self.name)
        seen: dict[tuple[str, str], int] = {}
        start = 0
        for number, line in enumerate(self._lines(), 1):
            if line.strip():
                try:
                    told = line_head(self._where(number), _text_of(line, number))
                    if (told.subset, told.episode_id) in seen:
                        raise DataError(
                            f"{self._where(number)}, field episode_id: {told.episode_id!r} is already on line "
                            f"{seen[told.subset, told.episode_id]}"
                        )
                except DataError as error:
                    self.refuse(error)
                else:
                    seen[told.subset, told.episode_id] = number
                    index.add(told, number, start, len(line))
            start += len(line)
        if self._preparation is not None and len(index) + len(self.skipped) != self._preparation.episodes:
            raise DataError(
                f"{self._file}: holds {len(index):,} episodes, but {PREPARED} says {self._preparation.episodes:,}: "
                "the file was cut or changed since it was prepared"
            )
        if not index and not self.skipped:
            raise DataError(f"{self._file}: holds no episode")
        return index

    def _lines(self) -> Iterator[bytes]:
        if self._file.suffix == ".gz":
            yield from io.BytesIO(self._text())
            return
        try:
            with self._file.open("rb") as stream:
                yield from stream
        except OSError as error:
            raise DataError(f"{self._file}: cannot be read: {error.strerror}") from None

    def _text(self) -> bytes:
        """A packed file cannot be read from the middle, so its text is kept."""
        if self._unpacked is None:
            try:
                self._unpacked = gzip.decompress(self._file.read_bytes())
            except (EOFError, zlib.error, gzip.BadGzipFile):
                raise DataError(f"{self._file}: is damaged: it cannot be unpacked as gzip") from None
            except OSError as error:
                raise DataError(f"{self._file}: cannot be read: {error.strerror}") from None
        return self._unpacked

    def _where(self, number: int) -> str:
        return f"{self._file}, line {number}"

    def load(self, ref: EpisodeRef) -> Episode:
        self.index()
        assert self._index is not None
        if not isinstance(ref.locator, int) or not 0 <= ref.locator < len(self._index) or self._index[ref.locator] != ref:
            raise DataError(f"{self._file}: has no episode {ref.key} of {ref.length} steps")
        number = self._index.lines[ref.locator]
        where = self._where(number)
        line = _parsed(where, _text_of(self._cut(ref.locator), number))
        if (line.subset, line.episode_id, line.split, len(line.steps)) != (*ref.key[1:], ref.split, ref.length):
            raise DataError(f"{where}, field episode_id: is not episode {ref.key} any more; delete {INDEX} and open it again")
        return self._episode(where, line)

    def _cut(self, position: int) -> bytes:
        assert self._index is not None
        start, size = self._index.starts[position], self._index.sizes[position]
        if self._file.suffix == ".gz":
            return self._text()[start : start + size]
        try:
            stream = os.open(self._file, os.O_RDONLY)
            try:
                return os.pread(stream, size, start)
            finally:
                os.close(stream)
        except OSError as error:
            raise DataError(f"{self._file}: cannot be read: {error.strerror}") from None

    def _setting_of(self, line: EpisodeLine) -> Setting:
        return line.setting or "high"

    def _episode(self, where: str, line: EpisodeLine) -> Episode:
        shared: dict[str, Any] = {
            "benchmark": self.name,
            "dataset": line.dataset or type(self).dataset or self.name,
            "subset": line.subset,
            "split": line.split,
            "episode_id": line.episode_id,
            "episode_length": len(line.steps),
            "setting": self._setting_of(line),
        }
        frame = line.frame
        if frame is None:  # a default would read pixels as thousandths, and nobody would notice
            for number, step in enumerate(line.steps):
                if step.boxes or any("point" in action for action in (step.action, *step.alternatives)):
                    raise DataError(f"{where}, field frame: is missing, but step {number} has places; expected {_FRAMES}")
            frame = "unified"
        steps = []
        for number, step in enumerate(line.steps):
            place = f"{where}, field steps.{number}"
            if step.low_level_instruction is None and shared["setting"] == "low":
                raise DataError(
                    f"{place}.low_level_instruction: is missing, but the setting 'low' tells the model nothing else"
                )
            size = step.screenshot_size or self._image_size(place, step.screenshot)
            try:
                steps.append(
                    StepTaskModel(
                        **shared,
                        step_index=number,
                        instruction=line.instruction if step.instruction is None else step.instruction,
                        low_level_instruction=step.low_level_instruction,
                        screenshot=step.screenshot,
                        screenshot_size=size,
                        action=_unified(f"{place}.action", step.action, frame, size),
                        alternatives=tuple(
                            _unified(f"{place}.alternatives.{each}", alternative, frame, size)
                            for each, alternative in enumerate(step.alternatives)
                        ),
                        boxes=_boxes(place, step.boxes, frame, size),
                        groups=step.groups,
                        extras=step.extras,
                    )
                )
            except ValidationError as error:
                raise _first_problem(place + ".", error) from None
        return Episode(steps=tuple(steps))

    def _image_size(self, place: str, screenshot: str) -> Size:
        try:
            return header(resolve(self.root, screenshot))[1]
        except ScreenshotError as error:
            raise DataError(f"{place}.screenshot_size: is missing, and cannot be taken from the image: {error}") from None
        except ValueError as error:
            raise DataError(f"{place}.screenshot: {screenshot!r} {error}") from None


class PreparedEpisodes(EpisodesFolder):
    """A folder that ``guieval prepare`` wrote, under the name, setting and protocol of the benchmark that was asked for.

    Records are equal to those that the benchmark's own loader gives for the release. Where a benchmark and ``maker``, the one
    the folder was prepared as, are the same data in the settings *high* and *low*, and one is made from the other, the folder
    serves both. Two of the same setting differ in their labels or texts, so one is never served as the other.
    """

    def __init__(self, root: Path, kind: type[ABCBenchmark], maker: type[ABCBenchmark] | None, **options: Any) -> None:
        # what a benchmark's class says is said by this object instead, for it stands for any benchmark
        inherited = {name: getattr(kind, name) for name in ABCBenchmark.__annotations__ if hasattr(kind, name)}
        vars(self).update(inherited)
        told = read_preparation(root)
        if options:
            name = next(iter(options))
            raise UsageError(
                f"option {name!r} of {kind.name!r} says how a release is read, but the folder {str(root)!r} is one already "
                "prepared"
            )
        related = maker is not None and (issubclass(kind, maker) or issubclass(maker, kind))
        served = kind.name == told.benchmark or (related and {kind.setting, told.setting} == {"high", "low"})
        if not served or (kind.dataset and told.dataset != kind.dataset):
            raise UsageError(
                f"the folder {str(root)!r} holds {told.dataset!r}, prepared as {told.benchmark!r}, and not {kind.title}; "
                f"run it with --bench {told.benchmark}, or convert a release by "
                f"`guieval prepare {kind.name} --source RELEASE --out DIR`"
            )
        super().__init__(root)
        self._told = told

    def _setting_of(self, line: EpisodeLine) -> Setting:
        return line.setting if line.setting and self._told.benchmark == self.name else self.setting


def _text_of(line: bytes, number: int) -> bytes:
    return line.removeprefix(_MARK) if number == 1 else line


def _parsed(where: str, line: bytes) -> EpisodeLine:
    try:
        return EpisodeLine.model_validate_json(line)
    except ValidationError as error:
        raise _first_problem(f"{where}, field ", error) from None


def _first_problem(place: str, error: ValidationError) -> DataError:
    """The first problem that pydantic tells, with the nearest name where a name is unknown."""
    problem = first_problem(error)
    path = problem.path
    field = ".".join(part for part in path if part not in _ACTIONS)
    match problem.kind:
        case "json_invalid":
            return DataError(f"{place.removesuffix(', field ')}: is not JSON ({problem.said.removeprefix('invalid JSON: ')})")
        case "extra_forbidden":
            action = next((each for each in path if each in _ACTIONS), None)
            model = _ACTIONS[action] if action else EpisodeLine if len(path) == 1 else StepLine
            known = model.model_fields
            return DataError(f"{place}{field}: is not known{nearest(path[-1], known)}; known: {', '.join(known)}")
        case "union_tag_invalid" | "union_tag_not_found":
            told = problem.value.get("type")
            return DataError(f"{place}{field}.type: expected {', '.join(_ACTIONS)}, got {told!r}{nearest(str(told), _ACTIONS)}")
        case "missing":
            return DataError(f"{place}{field}: is missing")
        case "model_type":
            return DataError(f"{f'{place}{field}'.removesuffix(', field ')}: expected an object, got {problem.value!r:.80}")
        case _:
            return DataError(f"{place}{field}: {problem.said} (got {problem.value!r:.80})")


def _unified(place: str, action: dict[str, Any], frame: EpisodesFrame, size: Size) -> dict[str, Any]:
    """The action with its point unified; whether it is one is the record's check."""
    if "point" not in action:
        return action
    match action["point"]:
        case [int() | float() as x, int() | float() as y] if not isinstance(x, bool) and not isinstance(y, bool):
            pass
        case other:
            raise DataError(f"{place}.point: expected [x, y], got {other!r:.80}")
    try:
        x, y = float(x), float(y)
        point = Point(x, y) if frame == "unified" else (PIXELS if frame == "pixels" else RELATIVE).decode(x, y, size)
    except (ValueError, OverflowError) as error:
        raise DataError(f"{place}.point: {error}") from None
    return {**action, "point": point}


def _boxes(place: str, boxes: list[tuple[float, float, float, float]], frame: EpisodesFrame, size: Size) -> Boxes:
    if not boxes:
        return Boxes()
    # packing is half the time of numpy's own reading of nested lists, and most of a step's time is its boxes
    values: NDArray[np.float64] = np.frombuffer(struct.pack(f"{4 * len(boxes)}d", *chain.from_iterable(boxes))).reshape(-1, 4)
    if frame != "unified":
        values = values * 1000.0
        values /= np.array([*size, *size] if frame == "pixels" else 1.0, dtype=np.float64)
    try:
        return Boxes(values)
    except ValueError as error:
        raise DataError(f"{place}.boxes: {error}") from None


def episode_line(episode: Episode) -> bytes:
    """An episode as one line of the format, without its end; reading it gives equal records.

    Coordinates are written in pixels where every one of them comes back bit for bit from a whole or half pixel, which is
    short and can be read by eye, else as unified floats. Raises :class:`DataError` for an episode that no line can hold.
    """
    first = episode.steps[0]
    for number, step in enumerate(episode.steps):
        for name in ("dataset", "split", "setting"):
            if getattr(step, name) != getattr(first, name):
                raise DataError(f"episode {first.episode_key}, step {number}, field {name}: differs from that of step 0")
    in_pixels = _steps_in_pixels(episode)
    values: dict[str, Any] = {"episode_id": first.episode_id}
    if first.subset:
        values["subset"] = first.subset
    values |= {"split": first.split, "dataset": first.dataset, "setting": first.setting, "instruction": first.instruction}
    values["frame"] = "unified" if in_pixels is None else "pixels"
    values["steps"] = _steps_unified(episode) if in_pixels is None else in_pixels
    try:
        return to_json(values)
    except PydanticSerializationError as error:  # half a surrogate pair in a text, or extras that are not JSON
        raise DataError(f"episode {first.episode_key}: cannot be written as JSON ({error})") from None


def _steps_unified(episode: Episode) -> list[dict[str, Any]]:
    return [
        _step_values(
            step,
            episode.steps[0].instruction,
            [action.model_dump() for action in (step.action, *step.alternatives)],
            step.boxes.array.tolist(),
        )
        for step in episode.steps
    ]


def _steps_in_pixels(episode: Episode) -> list[dict[str, Any]] | None:
    steps = []
    for step in episode.steps:
        actions = [_action_in_pixels(action, step.screenshot_size) for action in (step.action, *step.alternatives)]
        boxes = _boxes_in_pixels(step.boxes, step.screenshot_size)
        if boxes is None or not all(actions):
            return None
        steps.append(_step_values(step, episode.steps[0].instruction, actions, boxes))
    return steps


def _action_in_pixels(action: Action, size: Size) -> dict[str, Any] | None:
    values = action.model_dump()
    if not isinstance(action, Click | LongPress | Scroll):
        return values
    x, y = (_half_pixel(value, side) for value, side in zip(action.point, size, strict=True))
    try:
        back = PIXELS.decode(x, y, size)
    except ValueError:
        return None
    if struct.pack("2d", *back) != struct.pack("2d", *action.point):
        return None
    return {**values, "point": [x, y]}


def _half_pixel(value: float, side: int) -> float:
    twice = round(value * side / 500.0)
    return twice // 2 if twice % 2 == 0 else twice / 2


def _boxes_in_pixels(boxes: Boxes, size: Size) -> list[list[float]] | None:
    sides = np.array([*size, *size], dtype=np.float64)
    with np.errstate(over="ignore"):  # a box may be as far off the screen as it likes
        pixels = np.round(boxes.array * sides / 500.0) / 2.0
        if (pixels * 1000.0 / sides).tobytes() != boxes.array.tobytes():
            return None
    return [[int(edge) if edge.is_integer() else edge for edge in box] for box in pixels.tolist()]


def _step_values(
    step: StepTaskModel, instruction: str, actions: Sequence[dict[str, Any] | None], boxes: list[list[float]]
) -> dict[str, Any]:
    """What is written of a step; what is empty is left out."""
    values: dict[str, Any] = {"screenshot": step.screenshot, "screenshot_size": step.screenshot_size, "action": actions[0]}
    optional = {
        "instruction": None if step.instruction == instruction else step.instruction,
        "low_level_instruction": step.low_level_instruction,
        "alternatives": list(actions[1:]) or None,
        "boxes": boxes or None,
        "groups": step.groups or None,
        "extras": step.extras or None,
    }
    return values | {name: value for name, value in optional.items() if value is not None}

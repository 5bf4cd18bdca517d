"""Benchmarks served from a folder of our own episode format, ``episodes.jsonl`` next to its screenshots.

Steps are read on demand; only the place of every line stays in memory (:mod:`guieval.data.episodes.index`).
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError
from pydantic_core import from_json

from guieval.actions import Boxes, Point
from guieval.data.benchmark import CLASS_ATTRIBUTES, ABCBenchmark, EpisodeRef
from guieval.data.earlier_boxes import divided_line
from guieval.data.episodes.format import (
    EPISODES,
    FRAMES,
    INDEX,
    PACKED,
    PREPARED,
    Corners,
    EpisodeLine,
    EpisodesFrame,
    at_first_problem,
    is_prepared,
    parsed_line,
    read_preparation,
)
from guieval.data.episodes.index import EpisodeIndex, line_head
from guieval.data.files import read_bytes
from guieval.data.screenshots import header, resolve
from guieval.data.text_files import LineFile
from guieval.errors import DataError, ScreenshotError, UsageError, nearest
from guieval.frames import PIXELS, RELATIVE, Size
from guieval.steps import Episode, EpisodeKey, Setting, StepTaskModel


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
        existing = [root / name for name in names if (root / name).is_file()]
        if not existing:
            if self._preparation is not None:
                raise UsageError(f"the folder {str(root)!r} has lost its {EPISODES}; prepare it again")
            files = (entry.name for entry in root.iterdir() if entry.name.endswith((".jsonl", ".jsonl.gz")))
            raise self.wrong_folder(root, " or ".join(names) + nearest(names[0], files))
        self._file = existing[0]
        self._lines = LineFile(existing[0])
        self._index: EpisodeIndex | None = None

    def declared(self) -> dict[str, str]:
        """Data set and setting in ``prepared.json``, else those in the first line, if they are given.

        They describe the folder. A line without its own has the defaults, whatever the first line has.
        """
        if self._preparation is not None:
            return {"dataset": self._preparation.dataset, "setting": self._preparation.setting}
        first = next((line for _, _, line in self._lines if line.strip()), b"")
        try:
            values = from_json(first)
        except ValueError:
            return {}  # index() raises the error
        declared: dict[str, str] = {}
        match values:
            case {"setting": "high" | "low" | "grounding" as setting}:
                declared["setting"] = setting
        match values:
            case {"dataset": str() as dataset} if dataset:
                declared["dataset"] = dataset
        return declared

    def index(self) -> Sequence[EpisodeRef]:
        if self._index is None:
            self._index = self._stored_index() or self._read_index()
        return self._index

    def _stored_index(self) -> EpisodeIndex | None:
        if self._preparation is None:
            return None
        try:
            index = EpisodeIndex.from_json(read_bytes(self.root / INDEX), self.name, self._file.stat().st_size)
        except OSError:
            return None
        return index if index is not None and len(index) == self._preparation.episodes else None

    def _read_index(self) -> EpisodeIndex:
        index = EpisodeIndex(self.name)
        seen: dict[EpisodeKey, int] = {}
        for number, start, line in self._lines:
            if not line.strip():
                continue
            try:
                ref = line_head(self.name, self._where(number), line)
                if (first := seen.setdefault(ref.key, number)) != number:
                    name = ref.key.episode_id
                    raise DataError(f"{self._where(number)}, field episode_id: {name!r} is already on line {first}")
            except DataError as error:
                self.refuse(error)
            else:
                index.add(ref, number, start, len(line))
        if self._preparation is not None and len(index) + len(self.skipped) != self._preparation.episodes:
            raise DataError(
                f"{self._file}: holds {len(index):,} episodes, but {PREPARED} says {self._preparation.episodes:,}: "
                "the file was cut or changed since it was prepared"
            )
        if not index and not self.skipped:
            raise DataError(f"{self._file}: has no episode")
        return index

    def _where(self, number: int) -> str:
        return f"{self._file}, line {number}"

    def load(self, ref: EpisodeRef) -> Episode:
        self.index()
        assert self._index is not None
        if not isinstance(ref.locator, int) or not 0 <= ref.locator < len(self._index) or self._index[ref.locator] != ref:
            raise DataError(f"{self._file}: has no episode {ref.key} of {ref.length} steps")
        number = self._index.lines[ref.locator]
        where = self._where(number)
        text = self._lines.part(self._index.starts[ref.locator], self._index.sizes[ref.locator])
        if self._preparation is not None:
            text = divided_line(text, self._preparation.dataset)
        line = parsed_line(where, text)
        if (line.subset, line.episode_id, line.split, len(line.steps)) != (*ref.key[1:], ref.split, ref.length):
            raise DataError(f"{where}, field episode_id: is not episode {ref.key} any more; delete {INDEX} and open it again")
        return self._episode(where, line)

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
                if step.targets or step.elements or any(map(_has_places, (step.action, *step.alternatives))):
                    raise DataError(f"{where}, field frame: is missing, but step {number} has places; expected {FRAMES}")
            frame = "unified"
        steps = []
        for number, step in enumerate(line.steps):
            place = f"{where}, field steps.{number}"
            if step.low_level_instruction is None and shared["setting"] == "low":
                raise DataError(
                    f"{place}.low_level_instruction: is missing, but the setting 'low' gives the model no other instruction"
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
                            _unified(f"{place}.alternatives.{index}", alternative, frame, size)
                            for index, alternative in enumerate(step.alternatives)
                        ),
                        targets=_boxes(f"{place}.targets", step.targets, frame, size),
                        elements=_boxes(f"{place}.elements", step.elements, frame, size),
                        groups=step.groups,
                        extras=step.extras,
                    )
                )
            except ValidationError as error:
                raise at_first_problem(place + ".", error, StepTaskModel) from None
        return Episode(steps=tuple(steps))

    def _image_size(self, place: str, screenshot: str) -> Size:
        try:
            return header(resolve(self.root, screenshot)).size
        except ScreenshotError as error:
            raise DataError(f"{place}.screenshot_size: is missing, and cannot be taken from the image: {error}") from None
        except ValueError as error:
            raise DataError(f"{place}.screenshot: {screenshot!r} {error}") from None


class PreparedEpisodes(EpisodesFolder):
    """A folder that ``guieval data prepare`` wrote, under the name, setting and protocol of the requested benchmark.

    Records are equal to those that the benchmark's own loader gives for the release. If a benchmark and ``maker``, the one
    the folder was prepared as, are the same data in the settings *high* and *low*, and one is made from the other, the folder
    serves both. Two of the same setting differ in their labels or texts, so one is never served as the other.
    """

    def __init__(self, root: Path, kind: type[ABCBenchmark], maker: type[ABCBenchmark] | None, **options: Any) -> None:
        # this object represents any benchmark, so it takes over the attributes of that class
        inherited = {name: getattr(kind, name) for name in CLASS_ATTRIBUTES if hasattr(kind, name)}
        vars(self).update(inherited)
        made = read_preparation(root)
        if options:
            name = next(iter(options))
            raise UsageError(
                f"option {name!r} of {kind.name!r} says how a release is read, but the folder {str(root)!r} is one already "
                "prepared"
            )
        related = maker is not None and (issubclass(kind, maker) or issubclass(maker, kind))
        served = kind.name == made.benchmark or (related and {kind.setting, made.setting} == {"high", "low"})
        if not served or (kind.dataset and made.dataset != kind.dataset):
            raise UsageError(
                f"the folder {str(root)!r} holds {made.dataset!r}, prepared as {made.benchmark!r}, and not {kind.title}; "
                f"run it with --bench {made.benchmark}, or convert a release by "
                f"`guieval data prepare {kind.name} --source RELEASE --out DIR`"
            )
        super().__init__(root)
        self._made = made

    def _setting_of(self, line: EpisodeLine) -> Setting:
        return line.setting if line.setting and self._made.benchmark == self.name else self.setting


PLACES = ("point", "start", "end")
"""The fields of an action, or of what it does on a device, that are points."""


def _has_places(action: dict[str, Any]) -> bool:
    device = action.get("device")
    return any(name in action or (isinstance(device, dict) and name in device) for name in PLACES)


def _unified(place: str, action: dict[str, Any], frame: EpisodesFrame, size: Size) -> dict[str, Any]:
    """The action with its points unified; whether it is one is the record's check."""
    points = {
        name: _point(f"{place}.{name}", action[name], frame, size)
        for name in PLACES
        if name in action and (name, action[name]) != ("start", None)
    }
    if isinstance(device := action.get("device"), dict):
        points["device"] = _unified(f"{place}.device", device, frame, size)
    return {**action, **points} if points else action


def _point(place: str, value: Any, frame: EpisodesFrame, size: Size) -> Any:
    match value:
        case [int() | float() as x, int() | float() as y] if not isinstance(x, bool) and not isinstance(y, bool):
            pass
        case other:
            raise DataError(f"{place}: expected [x, y], got {other!r:.80}")
    try:
        x, y = float(x), float(y)
        return Point(x, y) if frame == "unified" else (PIXELS if frame == "pixels" else RELATIVE).decode(x, y, size)
    except (ValueError, OverflowError) as error:
        raise DataError(f"{place}: {error}") from None


def _boxes(place: str, boxes: list[Corners], frame: EpisodesFrame, size: Size) -> Boxes:
    if not boxes:
        return Boxes()
    # packing is half the time of numpy's own reading of nested lists, and most of a step's time is its boxes
    values: NDArray[np.float64] = np.frombuffer(struct.pack(f"{4 * len(boxes)}d", *chain.from_iterable(boxes))).reshape(-1, 4)
    if frame != "unified":
        with np.errstate(over="ignore"):  # what is not finite is refused below, without a warning
            values = values * 1000.0
        values /= np.array([*size, *size] if frame == "pixels" else 1.0, dtype=np.float64)
    try:
        return Boxes(values)
    except ValueError as error:
        raise DataError(f"{place}: {error}") from None

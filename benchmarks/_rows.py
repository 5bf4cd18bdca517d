"""Reads annotation files of JSON and JSON lines, and makes records of their rows; an error names the damaged place."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
from pydantic import ValidationError
from pydantic_core import from_json

from guieval.actions import Boxes
from guieval.data.benchmark import ABCBenchmark, EpisodeRef
from guieval.data.text_files import MARK, repeated_key
from guieval.data.text_files import read_whole as read_whole
from guieval.data.typed_rows import Row as Row
from guieval.errors import DataError, first_problem
from guieval.frames import Size
from guieval.steps import Episode, EpisodeKey, StepTaskModel

Meaning = TypeVar("Meaning")
Place = TypeVar("Place")
Word = TypeVar("Word", bound=str)


def parse(text: bytes | str, where: str) -> Any:
    """Parse JSON; :class:`DataError` naming the place if the text is not JSON, or gives a key of an object twice."""
    data = (text if isinstance(text, bytes) else text.encode(errors="surrogatepass")).removeprefix(MARK)
    try:
        value = from_json(data)
    except ValueError as error:
        raise DataError(f"{where}: is not JSON ({error})") from None
    if (twice := repeated_key(data, value)) is not None:
        raise DataError(f"{where}: gives the key {twice!r:.80} twice in one object")
    return value


def read_list(file: Path) -> list[Any]:
    """A file with one JSON list. :class:`DataError` when it cannot be read or holds anything else."""
    value = parse(read_whole(file), str(file))
    if not isinstance(value, list):
        raise DataError(f"{file}: expected a list, got {value!r:.80}")
    return value


def read_row(file: Path) -> Row:
    """A file with one JSON object. :class:`DataError` when it cannot be read or holds anything else."""
    return Row.of(parse(read_whole(file), str(file)), str(file))


def step_rows(value: Any, where: str, episode_field: str | None = None) -> list[Row]:
    """The objects of a list of steps, at least one; in ``episode_field`` all must have the same value."""
    if not isinstance(value, list) or not value:
        raise DataError(f"{where}: expected a list of steps, got {value!r:.80}")
    rows = [Row.of(item, f"{where}, step {index}") for index, item in enumerate(value)]
    for row in rows if episode_field else ():
        if (stated := row.value(episode_field or "")) != (first := rows[0].value(episode_field or "")):
            raise row.error(episode_field or "", f"is {stated!r:.80}, but step 0 has {first!r:.80}")
    return rows


def line_row(file: Path, number: int, line: bytes) -> Row:
    """The JSON object on a line of ``file``, counted from 1."""
    where = f"{file}, line {number}"
    return Row.of(parse(line, where), where)


def one_of(row: Row, field: str, known: Sequence[Word], spelled: Callable[[str], str] = str) -> Word:
    """A label that must be one of a few words; ``spelled`` normalises its spelling."""
    value = spelled(row.text(field))
    for word in known:
        if word == value:
            return word
    expected = f"{', '.join(known[:-1])} or {known[-1]}"
    raise row.error(field, f"expected {expected}, got {row.value(field)!r:.80}")


def meant(row: Row, field: str, meanings: Mapping[str, Callable[[], Meaning]]) -> Meaning:
    """What a label means that must be one of the words of ``meanings``."""
    return meanings[one_of(row, field, tuple(meanings))]()


def pixel_boxes(boxes: Sequence[Sequence[float]], size: Size) -> Boxes:
    """Boxes from corners [x1, y1, x2, y2] in pixels of an image of ``size``, also of those that reach beyond it."""
    return Boxes(np.array(boxes, dtype=np.float64) * 1000.0 / np.array([*size, *size])) if boxes else Boxes()


class Span(NamedTuple):
    """A part of a file: its name in messages, and its place in the unpacked file, in bytes."""

    where: str
    start: int
    size: int

    def __str__(self) -> str:
        return self.where


def listed(benchmark: ABCBenchmark, places: Iterable[Place], ref_of: Callable[[Place], EpisodeRef | None]) -> list[EpisodeRef]:
    """The episodes at ``places``, whose locators name them; damaged and repeated ones are passed to ``refuse``."""
    refs: dict[EpisodeKey, EpisodeRef] = {}
    for place in places:
        try:
            ref = ref_of(place)
            if ref is not None and ref.key in refs:
                raise DataError(f"{ref.locator}: episode {ref.key} is already in {refs[ref.key].locator}")
        except DataError as error:
            benchmark.refuse(error)
            continue
        if ref is not None:
            refs[ref.key] = ref
    return list(refs.values())


def step(where: str, **fields: Any) -> StepTaskModel:
    """A step record; :class:`DataError` naming the place and the record's field if a value does not fit."""
    try:
        return StepTaskModel(**fields)
    except ValidationError as error:
        raise _invalid(where, error) from None


def placed(benchmark: ABCBenchmark | type[ABCBenchmark], ref: EpisodeRef, index: int, length: int) -> dict[str, Any]:
    """The fields that place a step in its episode: step ``index`` of the ``length`` steps of ``ref``."""
    return {
        "benchmark": benchmark.name,
        "dataset": benchmark.dataset,
        "subset": ref.key.subset,
        "split": ref.split,
        "episode_id": ref.key.episode_id,
        "step_index": index,
        "episode_length": length,
        "setting": benchmark.setting,
    }


def episode(where: str, steps: Sequence[StepTaskModel]) -> Episode:
    """An episode of these steps; :class:`DataError` when they do not belong together."""
    try:
        return Episode(steps=tuple(steps))
    except ValidationError as error:
        raise _invalid(where, error) from None


def _invalid(where: str, error: ValidationError) -> DataError:
    problem = first_problem(error)
    return DataError(f"{where}, field {problem.field or '(whole row)'}: {problem.sentence}")

"""Annotation files of JSON and JSON lines, and the records made of their rows; an error names the place of a damaged label."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_core import from_json

from guieval.actions import Direction
from guieval.data.benchmark import ABCBenchmark, EpisodeRef
from guieval.data.text_files import read_whole as read
from guieval.data.typed_rows import Row
from guieval.errors import DataError, first_problem
from guieval.steps import Episode, StepTaskModel

__all__ = ["Row", "direction", "episode", "parse", "placed", "read", "read_list", "read_row", "step"]


def parse(text: bytes | str, where: str) -> Any:
    """Parse JSON; :class:`DataError` naming the place when it is none."""
    try:
        # some editors write a byte-order mark
        return from_json(text.removeprefix(b"\xef\xbb\xbf" if isinstance(text, bytes) else "\ufeff"))  # type: ignore[arg-type]
    except ValueError as error:
        raise DataError(f"{where}: is not JSON ({error})") from None


def read_list(file: Path) -> list[Any]:
    """A file that holds one JSON list. :class:`DataError` when it cannot be read or holds anything else."""
    value = parse(read(file), str(file))
    if not isinstance(value, list):
        raise DataError(f"{file}: expected a list, got {value!r:.80}")
    return value


def read_row(file: Path) -> Row:
    """A file that holds one JSON object. :class:`DataError` when it cannot be read or holds anything else."""
    return Row.of(parse(read(file), str(file)), str(file))


def direction(row: Row) -> Direction:
    """The row's field ``direction``; :class:`DataError` when it is not one of the four words."""
    match row.text("direction"):
        case "up" | "down" | "left" | "right" as word:
            return word
        case other:
            raise row.error("direction", f"expected up, down, left or right, got {other!r:.80}")


def step(where: str, **fields: Any) -> StepTaskModel:
    """A step record; :class:`DataError` naming the place and the record's field where a value does not fit."""
    try:
        return StepTaskModel(**fields)
    except ValidationError as error:
        raise _told(where, error) from None


def placed(benchmark: ABCBenchmark, ref: EpisodeRef, index: int, length: int) -> dict[str, Any]:
    """The fields of a step that say where it belongs: to the episode of ``ref``, of ``length`` steps, as number ``index``."""
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
        raise _told(where, error) from None


def _told(where: str, error: ValidationError) -> DataError:
    problem = first_problem(error)
    return DataError(f"{where}, field {problem.field or '(whole row)'}: {problem.sentence}")

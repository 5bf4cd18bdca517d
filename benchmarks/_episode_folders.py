"""A folder for every episode, with its annotation and its screenshots: how AiTZ and CAGUI lay their files out.

The labels in them are AITW's (:mod:`guieval.data.aitw_labels`).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from guieval.errors import DataError

from ._images import IMAGE_SUFFIXES
from ._rows import Row, parse, read_whole, step_rows


def holds_episodes(folder: Path) -> bool:
    """Whether ``folder`` has any ``<episode>/<episode>.json``."""
    return folder.is_dir() and any((entry / f"{entry.name}.json").is_file() for entry in folder.iterdir())


def episode_folders(folder: Path) -> Iterator[Path]:
    return iter(sorted(entry for entry in folder.iterdir() if entry.is_dir()))


def annotation_in(folder: Path) -> Path:
    """The episode's annotation: the JSON file named like its folder, or the only one there is, as GUIEvalKit takes it."""
    named = folder / f"{folder.name}.json"
    if named.is_file():
        return named
    files = sorted(folder.glob("*.json"))
    if len(files) != 1:
        raise DataError(f"{folder}: expected {named.name!r}, found {len(files)} other JSON files")
    return files[0]


def steps_in(file: Path) -> list[Row]:
    """The steps of an annotation file, all of the same episode and at least one."""
    return step_rows(parse(read_whole(file), str(file)), str(file), "episode_id")


def screenshot_beside(root: Path, file: Path, row: Row) -> str:
    """The path below ``root`` of the image that ``image_path`` names; it is next to the annotation."""
    name = row.text("image_path").replace("\\", "/").rsplit("/", 1)[-1]
    if not name.lower().endswith(IMAGE_SUFFIXES):
        raise row.error("image_path", f"expected the path of a PNG or JPEG image, got {row.value('image_path')!r:.80}")
    return (file.parent.relative_to(root) / name).as_posix()


def other_place(row: Row, index: int, length: int, name: str) -> dict[str, Any]:
    """The place and episode that the row states, if they differ from its actual ones."""
    own = {"step_id": index, "episode_length": length, "episode_id": name}
    stated = {field: row.whole(field) for field in ("step_id", "episode_length")} | {"episode_id": row.value("episode_id")}
    return {field: value for field, value in stated.items() if value != own[field]}


def ui_boxes(row: Row, field: str = "ui_positions") -> list[list[float]]:
    """The row's boxes as they stand there; none when the row has none."""
    return row.boxes(field) if row.values.get(field) not in (None, "") else []


def text_or_none(row: Row, field: str) -> str | None:
    return None if row.values.get(field) is None else row.text(field)

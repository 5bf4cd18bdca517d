"""What Python's functions take for a command's path, or an option that may be repeated."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

AnyPath: TypeAlias = str | Path
OneOrMore: TypeAlias = str | Sequence[str]
Paths: TypeAlias = AnyPath | Sequence[AnyPath]


def every(values: str | Sequence[str] | None) -> list[str]:
    """The values as a list; a single one needs none."""
    return [values] if isinstance(values, str) else list(values or ())


def every_path(paths: Paths | None) -> list[Path]:
    """The paths as a list; a single one needs none."""
    return [Path(paths)] if isinstance(paths, str | Path) else [Path(each) for each in paths or ()]


def one_path(path: AnyPath | None) -> Path | None:
    """The path, if there is one."""
    return None if path is None else Path(path)

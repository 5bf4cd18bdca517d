"""Names in listings and archives that become paths: each leads to a file in the folder, or is refused."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

_LONGEST_PART = 255  # bytes; most file systems take no longer name
_LONGEST = 1024


def path_inside(folder: Path, name: str) -> Path:
    """The path of ``name``, with ``/`` between its parts, in a folder.

    Raises ``ValueError``, which completes "it holds X, which ...", for a name that leads out of the folder, also by a link that
    lies in it, and for one that no file can have everywhere.
    """
    parts = name.removesuffix("/").split("/")
    if PurePosixPath(name).is_absolute() or ".." in parts or "\\" in name or ":" in parts[0]:
        raise ValueError("leads out of its folder")
    if not name.isprintable() or any(part in ("", ".") or part != part.strip() for part in parts):
        raise ValueError("is no name of a file")
    size = max(len(part.encode("utf-8", "replace")) for part in parts)
    if size > _LONGEST_PART or len(name) > _LONGEST:
        raise ValueError("is too long for the name of a file")
    try:
        inside = folder.joinpath(*parts).resolve().is_relative_to(folder.resolve())
    except (OSError, RuntimeError):  # links in a circle
        inside = False
    if not inside:
        raise ValueError("leads out of its folder")
    return folder.joinpath(*parts)

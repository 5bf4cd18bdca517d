"""The one check of names that become paths: each leads to a file in its folder, or is refused; and the order of names.

Names come from listings, archives, annotations, run folders and servers. What no file of another system may be called (``CON``,
a dot at the end) is allowed, since such a file is in its folder too.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path, PureWindowsPath
from unicodedata import category

_LONGEST_PART = 255  # bytes; most file systems take no longer name
_LONGEST = 1024


def parts_inside(name: str) -> tuple[str, ...]:
    """The parts of a path below a folder, with ``/`` between them; links are not looked at.

    Raises ``ValueError``, which completes "X ...", for a name that leads out of the folder, also where ``\\`` or a drive letter
    would, and for one that no file can have.
    """
    if not name.isprintable() and (bad := next((sign for sign in name if category(sign) == "Cc"), None)):
        raise ValueError(f"is no name of a file: it holds {bad!r}")
    try:
        os.fsencode(name)  # names of bytes that are no UTF-8 have surrogates, which stand for them
    except UnicodeEncodeError as error:
        raise ValueError(f"is no name of a file: it holds {name[error.start]!r}") from None
    if name.startswith("/") or PureWindowsPath(name).anchor or ".." in name.replace("\\", "/").split("/"):
        raise ValueError("leads out of its folder")
    parts = tuple(part for part in name.split("/") if part not in ("", "."))
    if not parts:
        raise ValueError("is no name of a file: it is empty")
    if len(name) > _LONGEST or max(len(os.fsencode(part)) for part in parts) > _LONGEST_PART:
        raise ValueError("is too long for the name of a file")
    return parts


def path_inside(folder: Path, name: str) -> Path:
    """The path of ``name`` in a folder, without links.

    Raises ``ValueError`` as :func:`parts_inside`, also for a link in the folder that leads out of it.
    """
    parts = parts_inside(name)
    try:
        base = folder.resolve()
        path = base.joinpath(*parts).resolve()
        with suppress(FileNotFoundError, NotADirectoryError, PermissionError):
            path.stat()  # from Python 3.13 on, resolve() returns links in a circle as if they led somewhere
    except (OSError, RuntimeError):  # links in a circle
        raise ValueError("cannot be followed") from None
    if not path.is_relative_to(base):
        raise ValueError("leads out of its folder")
    return path


def name_part(text: str) -> str:
    """A text as part of the name of a file or folder: letters, digits, dots and hyphens; two texts may have the same."""
    return re.sub(r"[^\w.-]+", "-", text)


def natural_order(name: str) -> list[tuple[int, str]]:
    """A key that sorts the numbers within names as numbers: table 3 before table 20."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name)]

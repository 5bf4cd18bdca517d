"""The place of a screenshot named in an annotation below the user's data folder, and how large it is by its header.

Annotation files carry paths of the machine they were made on. Reading a label must not need the image, so a path that is
not there yet is still answered; opening and checking an image is left to :mod:`guieval.data.screenshots`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

from guieval.data.screenshots import header, resolve
from guieval.data.typed_rows import Row
from guieval.errors import ScreenshotError
from guieval.frames import Size

IMAGE_FOLDERS = frozenset({"images", "screenshots"})
IMAGE_SUFFIXES = (".png", ".jpg", ".jpeg", ".webp")


class RecordedPaths:
    """Translates recorded image paths to paths relative to ``root``.

    The longest end of a recorded path that exists below ``root`` is taken, and the part cut off is remembered: a data set
    names all its images alike, so the next path is translated without touching the disk. If no image is found, the path
    from the last folder called ``images`` or ``screenshots`` on is the most plausible one.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._cut = ""

    @cached_property
    def _top(self) -> frozenset[str]:
        return frozenset(entry.name for entry in self._root.iterdir())

    def relative(self, recorded: str) -> str:
        """The path relative to ``root``, with forward slashes. One that climbs with ``..`` is left for reading to refuse."""
        path = recorded.replace("\\", "/")
        parts = [part for part in path.split("/") if part not in ("", ".")]
        if ".." in parts:
            return path
        path = ("/" if path.startswith("/") else "") + "/".join(parts)
        if self._cut and path.startswith(self._cut):
            return path[len(self._cut) :]
        for start, part in enumerate(parts):
            end = "/".join(parts[start:])
            if part in self._top and os.path.isfile(self._root / end):  # a Path raises OSError for a long name
                self._cut = path.removesuffix(end)
                return end
        folders = [index for index, part in enumerate(parts[:-1]) if part in IMAGE_FOLDERS]
        return "/".join(parts[folders[-1] if folders else -2 :])


def find_image(root: Path, *paths: str) -> str:
    """The first of ``paths``, relative to ``root``, that is there, with its own suffix or with another image suffix.

    Some annotations have no suffix, and some copies have re-encoded their images. If none is there, the first path, with
    ``.png`` if it has no image suffix.
    """
    named = [name for path in paths for name in _with_suffixes(path)]
    return next((name for name in named if os.path.isfile(os.path.join(root, name))), named[0])


def _with_suffixes(path: str) -> Iterator[str]:
    stem, suffix = os.path.splitext(path)
    if suffix.lower() in IMAGE_SUFFIXES:
        yield path
    else:
        stem = path
    yield from (stem + ending for ending in IMAGE_SUFFIXES)


def size_of(row: Row, field: str, root: Path, relative: str) -> Size | None:
    """(width, height) in pixels of the image in ``field``, turned as it asks for; ``None`` if it is not inside ``root``.

    Raises :class:`DataError` if the file is not an image.
    """
    if not os.path.isfile(os.path.join(root, relative)):  # by far the most frequent case, and resolving costs ten times this
        return None
    try:
        return header(resolve(root, relative)).size
    except ScreenshotError:
        return None
    except ValueError as error:
        raise row.error(field, f"the image {relative!r} {error}") from None


def needed_size(row: Row, field: str, root: Path, relative: str) -> Size:
    """:func:`size_of` for a row that cannot be read without it; :class:`DataError` if the image is missing."""
    size = size_of(row, field, root, relative)
    if size is None:
        raise row.error(field, f"there is no image {relative!r} in {str(root)!r}, whose size is needed to read the label")
    return size
